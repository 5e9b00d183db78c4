//! The plugin's options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower::{Layer, Service};

use crate::codec::{Codec, Codecs};
use crate::dispatch::{ErasedLayer, Event, HandlerService, Incoming, Listener, erase};
use crate::driver::MessagingDriver;
use crate::error::BoxError;
use crate::retry::RetryPolicy;
use crate::violation::{Violation, ViolationKind};
use crate::wire_names::DEFAULT_PREFIX;

/// A driver, and how the plugin uses it.
///
/// ```
/// use std::time::Duration;
/// use messaging::{MessagingOptions, RetryPolicy};
/// use messaging_memory::MemoryDriver;
///
/// let options = MessagingOptions::new(MemoryDriver::new())
///     .retry(RetryPolicy::new(5).max_delay(Duration::from_secs(60)))
///     .concurrency(10)
///     .dead_letter(|queue| format!("{queue}.failed"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct MessagingOptions {
    pub(crate) driver: Arc<dyn MessagingDriver>,
    pub(crate) retry: RetryPolicy,
    pub(crate) concurrency: usize,
    pub(crate) dead_letter: DefaultDeadLetter,
    pub(crate) requeue_delay: Duration,
    pub(crate) copy_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) flush_timeout: Duration,
    pub(crate) consume: bool,
    pub(crate) codecs: Codecs,
    pub(crate) layers: Vec<ErasedLayer>,
    pub(crate) listener: Option<Listener>,
    pub(crate) prefix: String,
}

/// The most messages that a consumer can handle at once.
pub(crate) const MOST_WORKERS: usize = 65_535;

/// Where dead letters go when a consumer does not say.
#[derive(Clone)]
pub(crate) enum DefaultDeadLetter {
    /// Where the driver says.
    Driver,
    /// Where a function says.
    Named(Arc<dyn Fn(&str) -> String + Send + Sync>),
    /// Nowhere.
    None,
}

impl MessagingOptions {
    /// That driver, with every default.
    pub fn new(driver: impl MessagingDriver) -> Self {
        Self::from(Arc::new(driver) as Arc<dyn MessagingDriver>)
    }

    /// The policy of handlers that have none of their own; 3 attempts, exponential from 1 s, capped at 30 s, unless set.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How many messages a consumer handles at once when it does not say; 1 unless set.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Names the dead-letter queue of a queue when the consumer does not; the driver's name unless set.
    pub fn dead_letter(mut self, name: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.dead_letter = DefaultDeadLetter::Named(Arc::new(name));
        self
    }

    /// Without a dead-letter queue, unless the consumer names one: what cannot be handled is discarded, with an error event each.
    pub fn no_dead_letter(mut self) -> Self {
        self.dead_letter = DefaultDeadLetter::None;
        self
    }

    /// How long a message is held back after its dead-letter copy failed; 1 s unless set. It doubles with each failure, up to 30 s.
    pub fn requeue_delay(mut self, delay: Duration) -> Self {
        self.requeue_delay = delay;
        self
    }

    /// How long to wait for the confirmation of a dead-letter copy; 10 s unless set.
    pub fn copy_timeout(mut self, timeout: Duration) -> Self {
        self.copy_timeout = timeout;
        self
    }

    /// How long running handlers are awaited when the application stops; 20 s unless set. Then they are cut off, and their
    /// messages given back.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long to wait, after the handlers, for settlements to reach the broker, and again for the driver to close; 5 s
    /// unless set.
    pub fn flush_timeout(mut self, timeout: Duration) -> Self {
        self.flush_timeout = timeout;
        self
    }

    /// Whether consumers are subscribed; `false` for a process that only publishes. What is declared is checked all the same.
    pub fn consume(mut self, consume: bool) -> Self {
        self.consume = consume;
        self
    }

    /// Decodes messages of one more content type, and encodes publishes that name it.
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.codecs.add(Arc::new(codec));
        self
    }

    /// The codec of publishes that name no content type, and a codec for consumers; JSON unless set.
    pub fn publish_codec(mut self, codec: impl Codec) -> Self {
        self.codecs.publish_with(Arc::new(codec));
        self
    }

    /// Puts a tower layer around scope, decoding and handler of every message; the first is the outermost.
    ///
    /// Each consumer has one stack for all its workers, so a limit in it is a limit of the consumer. A handler's failure
    /// comes out as a [`HandlerError`](crate::HandlerError). A layer that answers without calling on has handled the message.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<HandlerService> + Send + Sync + 'static,
        L::Service: Service<Incoming, Response = (), Error: Into<BoxError>, Future: Send> + Send + 'static,
    {
        self.layers.push(erase(layer));
        self
    }

    /// Told of everything that happens; called where it happens, so it returns at once.
    pub fn on_event(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// The prefix of the library's headers, `x-<prefix>-attempt` and so on; `znight` unless set.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// What is wrong with the options themselves.
    pub(crate) fn check(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut refuse = |option: &str, problem: String, fix: &str| {
            violations.push(Violation::new(ViolationKind::Options, problem, fix).subject(format!("option `{option}`")));
        };
        if self.concurrency == 0 {
            refuse(
                "concurrency",
                "is 0, and nothing would be handled".into(),
                "set it to 1 or more; a process that only publishes says `consume(false)`",
            );
        }
        let plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        if self.concurrency > MOST_WORKERS {
            refuse(
                "concurrency",
                format!("is {}, and {MOST_WORKERS} are the most", self.concurrency),
                "a few hundred are many: each is a task, and a message in flight",
            );
        }
        if self.prefix.is_empty() || !self.prefix.chars().all(plain) {
            refuse(
                "prefix",
                format!("is `{}`", self.prefix),
                "use lower-case letters, digits and `-`: it is part of header and queue names",
            );
        }
        if self.requeue_delay.is_zero() {
            refuse(
                "requeue_delay",
                "is zero, and a dead-letter queue that refuses copies would be tried without a pause".into(),
                "leave it out, or set a second or more",
            );
        }
        if self.copy_timeout.is_zero() {
            refuse(
                "copy_timeout",
                "is zero, and no dead-letter copy would ever be confirmed".into(),
                "leave it out, or set a second or more",
            );
        }
        violations
    }
}

impl<D: MessagingDriver> From<D> for MessagingOptions {
    fn from(driver: D) -> Self {
        Self::new(driver)
    }
}

impl From<Arc<dyn MessagingDriver>> for MessagingOptions {
    fn from(driver: Arc<dyn MessagingDriver>) -> Self {
        Self {
            driver,
            retry: RetryPolicy::default(),
            concurrency: 1,
            dead_letter: DefaultDeadLetter::Driver,
            requeue_delay: Duration::from_secs(1),
            copy_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(20),
            flush_timeout: Duration::from_secs(5),
            consume: true,
            codecs: Codecs::default(),
            layers: Vec::new(),
            listener: None,
            prefix: DEFAULT_PREFIX.to_owned(),
        }
    }
}

impl fmt::Debug for MessagingOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagingOptions")
            .field("driver", &self.driver)
            .field("retry", &self.retry)
            .field("concurrency", &self.concurrency)
            .field("consume", &self.consume)
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}
