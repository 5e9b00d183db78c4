//! What the author of a driver writes to have it tested.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging::{BoxError, MessagingDriver};

/// A broker to run the suite against, and how a process gets to it.
///
/// # Contract
/// - All clients MUST reach the same queues, and each MUST be as independent of the others as the driver of another
///   process: the suite closes one and looks at what is left through the next.
/// - All clients MUST be configured alike: the first one's capabilities choose the cases.
/// - The queues that the suite names are its own, new in each run. It publishes to a queue only after it has subscribed
///   to it, or to the queue whose dead letters go there; what must exist even before that is made by
///   [`prepare`](Self::prepare).
///
/// ```
/// use messaging_memory::MemoryDriver;
/// use messaging_testkit::conformance::{Client, Suite, TestBroker, Timing};
///
/// struct Memory(MemoryDriver);
///
/// impl TestBroker for Memory {
///     fn client(&self) -> Client {
///         Client::new(self.0.another_process())
///     }
///
///     fn timing(&self) -> Timing {
///         Timing::paused()
///     }
/// }
///
/// let report = Suite::new("memory", Memory(MemoryDriver::new())).only("p9_shutdown").check();
/// assert!(report.failures().next().is_none(), "{report}");
/// ```
#[async_trait]
pub trait TestBroker: Send + Sync + 'static {
    /// The way of one more process to the broker: a new driver, not connected yet.
    fn client(&self) -> Client;

    /// Why the broker is not there, as in `RABBITMQ_URL is not set`; then every case shows as ignored.
    fn missing(&self) -> Option<String> {
        None
    }

    /// The name of a queue for which the suite has chosen a unique one, of at most 40 letters, digits, `-` and `_`.
    fn queue_name(&self, unique: &str) -> String {
        unique.to_owned()
    }

    /// Makes a queue, where the driver does not when it subscribes; called once for each, before it is used.
    ///
    /// # Errors
    /// Why it cannot; the case fails.
    async fn prepare(&self, _queue: &str) -> Result<(), BoxError> {
        Ok(())
    }

    /// Removes a queue that a case is done with.
    async fn remove(&self, _queue: &str) {}

    /// The broker's process, where the suite may end and start it; the cases that do run alone.
    fn process(&self) -> Option<&dyn BrokerProcess> {
        None
    }

    /// How long to wait for what.
    fn timing(&self) -> Timing {
        Timing::default()
    }
}

/// The process of a broker.
#[async_trait]
pub trait BrokerProcess: Send + Sync {
    /// Ends it without a warning, as a power cut does.
    ///
    /// # Errors
    /// Why it cannot; the case fails.
    async fn kill(&self) -> Result<(), BoxError>;

    /// Starts it again, and returns when it answers.
    ///
    /// # Errors
    /// Why it cannot; the case fails.
    async fn start(&self) -> Result<(), BoxError>;
}

type Cut = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// One process's way to the broker.
#[derive(Clone)]
#[must_use]
pub struct Client {
    pub(super) driver: Arc<dyn MessagingDriver>,
    cut: Option<Cut>,
}

impl Client {
    /// A driver that is not connected yet.
    pub fn new(driver: impl MessagingDriver) -> Self {
        Self { driver: Arc::new(driver), cut: None }
    }

    /// Says how this client's connection is lost, as by a network that fails for a moment: at once, with everything in
    /// flight, and nobody else's. A [`Relay`](crate::Relay) between driver and broker can do it.
    pub fn cut_by<F, R>(mut self, cut: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.cut = Some(Arc::new(move || Box::pin(cut())));
        self
    }

    /// The same way, by a driver around this one.
    pub(super) fn around(self, driver: impl MessagingDriver) -> Self {
        Self { driver: Arc::new(driver), ..self }
    }

    pub(super) fn can_be_cut(&self) -> bool {
        self.cut.is_some()
    }

    pub(super) async fn cut(&self) {
        if let Some(cut) = &self.cut {
            cut().await;
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("driver", &self.driver).field("can_be_cut", &self.can_be_cut()).finish()
    }
}

/// How long the suite waits, and how exact a delay is.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Timing {
    pub(super) paused: bool,
    pub(super) arrival: Duration,
    pub(super) quiet: Duration,
    pub(super) late: Duration,
    pub(super) limit: Duration,
}

impl Timing {
    /// For a driver that waits on tokio's clock alone and knows no network: the clock is paused, and waits take no time.
    pub fn paused() -> Self {
        Self { paused: true, quiet: Duration::from_secs(60), arrival: Duration::from_secs(120), ..Self::default() }
    }

    /// The longest that something may take to happen; 15 s unless set. What breaks a promise by not happening is found
    /// after that.
    pub fn arrival(mut self, arrival: Duration) -> Self {
        self.arrival = arrival;
        self
    }

    /// How long to look whether something happens that must not; 1 s unless set.
    pub fn quiet(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// How much later than asked a delay may end; 2 s unless set.
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// The longest that a case may take, on the clock on the wall; 60 s unless set. One that takes longer has failed, and
    /// is left behind.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            paused: false,
            arrival: Duration::from_secs(15),
            quiet: Duration::from_secs(1),
            late: Duration::from_secs(2),
            limit: Duration::from_secs(60),
        }
    }
}
