//! What a driver can do, as plain data.

use std::time::Duration;

/// What the broker's own count of a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeliveryCount {
    /// There is none: an attempt advances only on a copy that carries the number.
    None,
    /// How often the message failed or was lost in a crash.
    Failures,
    /// How often the message was handed out, whatever became of it.
    HandOuts,
}

/// Which order a queue keeps for one consumer of concurrency 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// None that a consumer may rely on.
    None,
    /// The order in which messages were published; a retry falls behind.
    Queue,
    /// The order of the messages that share a key.
    Key,
}

/// What a configured driver can do; boot proves every policy against it before anything connects.
///
/// It is constant for a configured driver: what `connect` finds out must not take any of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the broker itself can hold a message back for a retry.
    pub native_delay: bool,
    /// The longest retry delay the broker holds; zero without `native_delay`.
    pub max_native_delay: Duration,
    /// What native delays are rounded up to.
    pub native_delay_granularity: Duration,
    /// The longest retry delay that the driver waits in process; `Duration::MAX` is without bound.
    pub max_in_process_delay: Duration,
    /// What the broker counts.
    pub delivery_count: DeliveryCount,
    /// Whether giving a message back unhandled counts as an attempt.
    pub release_counts: bool,
    /// Whether a run that ended in a crash counts as an attempt.
    pub crash_counts: bool,
    /// The longest that a handler may run before the broker takes the message back; the engine cuts it off at that.
    pub max_run: Option<Duration>,
    /// The longest delay of a publish; zero means that a delayed publish is an error.
    pub max_publish_delay: Duration,
    /// Which order is kept.
    pub order: Order,
    /// Whether a key decides where a message goes or what it waits for; without, keys are carried and mean nothing.
    pub keys: bool,
    /// The largest message, in bytes, where the driver knows a limit.
    pub max_message_size: Option<usize>,
    /// The most headers of a message, where there is a limit.
    pub max_headers: Option<usize>,
}

impl Capabilities {
    /// What a driver can do that can do nothing beyond delivering: a base for struct updates.
    pub const NONE: Self = Self {
        native_delay: false,
        max_native_delay: Duration::ZERO,
        native_delay_granularity: Duration::ZERO,
        max_in_process_delay: Duration::ZERO,
        delivery_count: DeliveryCount::None,
        release_counts: false,
        crash_counts: false,
        max_run: None,
        max_publish_delay: Duration::ZERO,
        order: Order::None,
        keys: false,
        max_message_size: None,
        max_headers: None,
    };

    /// The longest delay that a retry can have on this driver.
    #[must_use]
    pub fn longest_delay(&self) -> Duration {
        if self.native_delay { self.max_in_process_delay.max(self.max_native_delay) } else { self.max_in_process_delay }
    }
}
