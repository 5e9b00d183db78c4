//! How the queues of an application are.

use std::sync::Arc;

/// Whether a queue is being consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueState {
    /// Not subscribed yet.
    Starting,
    /// Consumed.
    Consuming,
    /// Not consumed; the driver is healing a fault.
    Healing,
    /// Not consumed, and that cannot heal.
    Ended,
    /// Stopped, as asked.
    Stopped,
}

/// Every state, for a state kept as a number.
pub(super) const STATES: [QueueState; 5] =
    [QueueState::Starting, QueueState::Consuming, QueueState::Healing, QueueState::Ended, QueueState::Stopped];

/// How many messages of a queue came to what, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Deliveries.
    pub received: u64,
    /// Handled.
    pub acked: u64,
    /// Sent to be tried again.
    pub retried: u64,
    /// Given back.
    pub released: u64,
    /// Copied to the dead-letter queue.
    pub dead_lettered: u64,
    /// Dropped on purpose.
    pub discarded: u64,
    /// Settlements that did not reach the broker.
    pub settlements_failed: u64,
    /// Dead-letter copies that were not confirmed.
    pub copies_failed: u64,
    /// Faults that the driver told of.
    pub faults: u64,
}

/// How one queue is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueHealth {
    /// The queue.
    pub queue: Arc<str>,
    /// The consumer.
    pub consumer: Arc<str>,
    /// Whether it is consumed.
    pub state: QueueState,
    /// The last fault, or the last copy or settlement that failed.
    pub last_error: Option<String>,
    /// What came of its messages.
    pub counts: Counts,
}

/// How an application's queues are; from [`MessageBroker::health`](crate::MessageBroker::health).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// Whether the driver is connected and every queue is consumed.
    pub ready: bool,
    /// Each queue that is consumed; none in a process that only publishes.
    pub queues: Vec<QueueHealth>,
}
