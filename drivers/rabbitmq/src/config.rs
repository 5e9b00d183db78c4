use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapin::uri::{AMQPScheme, AMQPUri};
use messaging::driver::{DriverFactory, MessagingDriver};
use messaging::{Error, ErrorKind};

use crate::RabbitMqDriver;

inventory::submit! {
    DriverFactory { schemes: &["amqp", "amqps"], create: |url| Ok(Arc::new(RabbitMqDriver::new(RabbitMqConfig::new(url)?)) as Arc<dyn MessagingDriver>) }
}

/// How often each side shows that it lives, in seconds, where the URL does not say; a silent peer is given up after two.
const HEARTBEAT: u16 = 15;

/// Which type of queue the driver declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueType {
    /// Replicated, and it counts deliveries.
    #[default]
    Quorum,
    /// Not replicated, without a count: the attempt travels in a header, and a crash is not counted.
    Classic,
}

impl QueueType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quorum => "quorum",
            Self::Classic => "classic",
        }
    }
}

/// How the driver connects, and what it declares. Its `Debug` never shows the credentials.
///
/// ```
/// use messaging_rabbitmq::{QueueType, RabbitMqConfig};
///
/// let config = RabbitMqConfig::new("amqp://app:secret@localhost/shop")?.queue_type(QueueType::Classic).prefetch(200);
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok::<(), messaging::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct RabbitMqConfig {
    pub(crate) uri: AMQPUri,
    pub(crate) queue_type: QueueType,
    pub(crate) prefetch: Option<u16>,
    pub(crate) connection_name: String,
    pub(crate) publish_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) wait_for_broker: Duration,
    pub(crate) delay_levels: String,
}

impl RabbitMqConfig {
    /// The broker and the virtual host that a URL names: `amqp://user:password@host:port/vhost`, or `amqps`.
    ///
    /// # Errors
    /// `Config`, when it is not such a URL; the message does not repeat it.
    pub fn new(url: &str) -> Result<Self, Error> {
        let mut uri: AMQPUri = url.parse().map_err(|_| {
            let what = "a RabbitMQ URL is `amqp://user:password@host:port/vhost`, or `amqps`, with `%2f` for a slash in the vhost";
            Error::new(ErrorKind::Config, what)
        })?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT);
        Ok(Self {
            uri,
            queue_type: QueueType::default(),
            prefetch: None,
            connection_name: "messaging".into(),
            publish_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            wait_for_broker: Duration::ZERO,
            delay_levels: "znight.delays".into(),
        })
    }

    /// User and password, in place of the URL's.
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.uri.authority.userinfo.username = user.into();
        self.uri.authority.userinfo.password = password.into();
        self
    }

    /// The virtual host, in place of the URL's.
    pub fn vhost(mut self, vhost: impl Into<String>) -> Self {
        self.uri.vhost = vhost.into();
        self
    }

    /// Which type of queue is declared; quorum unless set.
    pub fn queue_type(mut self, queue_type: QueueType) -> Self {
        self.queue_type = queue_type;
        self
    }

    /// How many unsettled messages a consumer holds, the ones that wait for a retry in process among them. 64 unless set, or
    /// more where the concurrency needs it; never less than the concurrency.
    pub fn prefetch(mut self, prefetch: u16) -> Self {
        self.prefetch = Some(prefetch);
        self
    }

    /// What the broker shows the connections as, followed by `/publish` and `/consume`; `messaging` unless set.
    pub fn connection_name(mut self, name: impl Into<String>) -> Self {
        self.connection_name = name.into();
        self
    }

    /// How long a publish waits for the broker's confirmation; 10 s unless set.
    pub fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.publish_timeout = timeout;
        self
    }

    /// How long one attempt to connect, to open a channel or to declare may take; 10 s unless set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the first connect waits for a broker that cannot be reached; it fails at once unless set.
    pub fn wait_for_broker(mut self, wait: Duration) -> Self {
        self.wait_for_broker = wait;
        self
    }

    /// What the names of the exchanges and queues of delayed publishes start with, `.0` to `.31` and others behind it;
    /// `znight.delays` unless set. All processes of a virtual host share them.
    pub fn delay_levels(mut self, prefix: impl Into<String>) -> Self {
        self.delay_levels = prefix.into();
        self
    }

    /// The host and port, for messages.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.uri.authority.host, self.uri.authority.port)
    }

    /// How many unsettled messages a consumer of that concurrency holds.
    pub(crate) fn prefetch_for(&self, concurrency: usize) -> u16 {
        let least = u16::try_from(concurrency).unwrap_or(u16::MAX).max(1);
        let headroom = least.saturating_add(least.max(10));
        self.prefetch.map_or(headroom.max(64), |prefetch| prefetch.max(least))
    }
}

impl fmt::Debug for RabbitMqConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqConfig")
            .field("address", &self.address())
            .field("tls", &(self.uri.scheme == AMQPScheme::AMQPS))
            .field("vhost", &self.uri.vhost)
            .field("queue_type", &self.queue_type)
            .field("prefetch", &self.prefetch)
            .field("connection_name", &self.connection_name)
            .finish_non_exhaustive()
    }
}
