use std::fmt;
use std::sync::Arc;

use messaging::{Settlement, Settler};

use crate::subscriber::Intake;

/// The right to settle one delivery; dropped unsettled, it gives the message back.
pub(crate) struct MemorySettler {
    intake: Arc<Intake>,
    slot: usize,
    number: u64,
    settled: bool,
}

impl MemorySettler {
    pub(crate) fn new(intake: Arc<Intake>, slot: usize, number: u64) -> Self {
        Self { intake, slot, number, settled: false }
    }
}

impl Settler for MemorySettler {
    fn settle(mut self: Box<Self>, settlement: Settlement) {
        self.settled = true;
        self.intake.queue.settle(&self.intake, self.slot, settlement);
    }

    fn still_ours(&self) -> bool {
        self.intake.queue.is_ours(self.slot)
    }

    fn identity(&self) -> Option<String> {
        Some(self.number.to_string())
    }
}

impl Drop for MemorySettler {
    fn drop(&mut self) {
        if !self.settled {
            self.intake.queue.give_back(self.slot);
        }
    }
}

impl fmt::Debug for MemorySettler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySettler")
            .field("queue", &self.intake.queue.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
