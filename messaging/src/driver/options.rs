use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::DriverEvents;
use crate::wire_names::WireNames;

/// What a driver is told about the consumer of a queue.
#[derive(Clone)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// The queue to consume.
    pub queue: Arc<str>,
    /// The consumer's name, for logs and consumer tags.
    pub consumer: Arc<str>,
    /// How many messages are handled at once, and how many lanes to open.
    pub concurrency: usize,
    /// Where dead letters go; `None` where the consumer declares none.
    pub dead_letter: Option<Arc<str>>,
    /// The largest number of attempts of any handler.
    pub max_attempts: u32,
    /// The delays that the broker itself must be able to hold for this queue's retries.
    pub native_delays: BTreeSet<Duration>,
    /// The longest that all delays of one message can add up to.
    pub longest_wait: Duration,
    /// Whether a retry can have a delay that is not in `native_delays`, because a handler asked for it.
    pub requested_delays: bool,
    /// The longest timeout of any handler; `None` where one of them has none.
    pub longest_run: Option<Duration>,
    /// The names of the library's headers.
    pub names: WireNames,
    /// The consumer's options for drivers; each driver takes its own and ignores the others'.
    pub driver: DriverOptions,
    /// Where the driver tells what happens.
    pub events: Arc<dyn DriverEvents>,
    /// Cancelled when the application stops: the parent of every message's signal.
    pub stopping: Arc<CancellationToken>,
}

impl SubscribeOptions {
    /// Options for a queue, with one worker and the defaults of a consumer that has no retries.
    #[must_use]
    pub fn new(queue: impl Into<Arc<str>>, events: Arc<dyn DriverEvents>) -> Self {
        let queue = queue.into();
        Self {
            consumer: Arc::clone(&queue),
            queue,
            concurrency: 1,
            dead_letter: None,
            max_attempts: 1,
            native_delays: BTreeSet::new(),
            longest_wait: Duration::ZERO,
            requested_delays: true,
            longest_run: None,
            names: WireNames::default(),
            driver: DriverOptions::default(),
            events,
            stopping: Arc::default(),
        }
    }
}

impl fmt::Debug for SubscribeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscribeOptions")
            .field("queue", &self.queue)
            .field("consumer", &self.consumer)
            .field("concurrency", &self.concurrency)
            .field("dead_letter", &self.dead_letter)
            .field("max_attempts", &self.max_attempts)
            .field("native_delays", &self.native_delays)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

/// Options of a consumer that only one driver understands, by their type.
///
/// A driver looks for its own type and ignores the rest: the same consumer runs on another driver, and in memory in tests.
///
/// ```
/// use messaging::driver::DriverOptions;
///
/// #[derive(Debug)]
/// struct MyBrokerConsumer { prefetch: u16 }
///
/// let options = DriverOptions::default().with(MyBrokerConsumer { prefetch: 64 });
/// assert_eq!(options.get::<MyBrokerConsumer>().map(|options| options.prefetch), Some(64));
/// ```
#[derive(Clone, Default)]
pub struct DriverOptions(Vec<(TypeId, &'static str, Arc<dyn Any + Send + Sync>)>);

impl DriverOptions {
    /// Adds one driver's options; options of the same type are replaced.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, options: T) -> Self {
        let id = TypeId::of::<T>();
        self.0.retain(|(known, ..)| *known != id);
        self.0.push((id, std::any::type_name::<T>(), Arc::new(options)));
        self
    }

    /// The options of that type, where they were given.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.iter().find(|(known, ..)| *known == TypeId::of::<T>()).and_then(|(.., options)| options.downcast_ref())
    }
}

impl fmt::Debug for DriverOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, name, _)| name)).finish()
    }
}
