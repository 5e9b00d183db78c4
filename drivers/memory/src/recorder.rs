use std::panic::Location;
use std::sync::Arc;

use messaging::{Attempt, InboundMessage, MessageId, OutboundMessage, Settlement};
use tokio::time::Instant;

/// One settlement that was carried out; [`MemoryDriver::timeline`](crate::MemoryDriver::timeline) lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// What was settled.
    pub id: MessageId,
    /// The attempt that was settled.
    pub attempt: Attempt,
    /// How.
    pub settlement: Settlement,
    /// What went wrong in this attempt, where something did.
    pub error: Option<Arc<str>>,
    /// When, on tokio's clock.
    pub at: Instant,
}

impl Entry {
    pub(crate) fn new(message: &InboundMessage, settlement: Settlement) -> Self {
        Self {
            id: message.id.clone(),
            attempt: message.attempt(),
            settlement,
            error: message.failure().map(Arc::from),
            at: Instant::now(),
        }
    }
}

/// What is recorded about one queue.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) settled: Record<Entry>,
    pub(crate) published: Record<OutboundMessage>,
}

/// The first so many of what happened, and how many that were.
#[derive(Debug)]
pub(crate) struct Record<T> {
    kept: Vec<T>,
    happened: u64,
}

impl<T> Record<T> {
    pub(crate) fn note(&mut self, limit: usize, what: impl FnOnce() -> T) {
        if self.kept.len() < limit {
            self.kept.push(what());
        }
        self.happened += 1;
    }

    /// All that happened, or a panic where not all was kept.
    pub(crate) fn read(&self, what: &str, queue: &str, caller: &Location<'_>) -> &[T] {
        let kept = self.kept.len();
        assert!(
            self.happened == kept as u64,
            "the {what} of queue `{queue}` are {}, and only the first {kept} are kept: keep more with \
             `MemoryDriver::recording(n)`, before the driver is used\n  read at {caller}",
            self.happened
        );
        &self.kept
    }
}

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), happened: 0 }
    }
}
