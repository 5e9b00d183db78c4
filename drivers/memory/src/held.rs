use std::sync::Arc;

use messaging::Settlement;
use tokio::time::Instant;

use crate::subscriber::Intake;

/// Settlements that were handed over and are not carried out yet, because of a fault.
#[derive(Default)]
pub(crate) struct HeldBack(Vec<Held>);

pub(crate) struct Held {
    pub(crate) slot: usize,
    pub(crate) settlement: Settlement,
    pub(crate) intake: Arc<Intake>,
    /// `None` for one that hangs.
    pub(crate) due: Option<Instant>,
}

impl HeldBack {
    pub(crate) fn push(&mut self, held: Held) {
        self.0.push(held);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.0.iter().filter_map(|held| held.due).min()
    }

    /// Takes the first that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Held> {
        let (index, _) = self.0.iter().enumerate().min_by_key(|(_, held)| (held.due.is_none(), held.due))?;
        if self.0[index].due.is_some_and(|due| due <= now) { Some(self.0.remove(index)) } else { None }
    }

    /// Takes those that hang.
    pub(crate) fn take_hung(&mut self) -> Vec<Held> {
        self.0.extract_if(.., |held| held.due.is_none()).collect()
    }

    /// Takes those of a connection.
    pub(crate) fn take_of(&mut self, connection: u64) -> Vec<Held> {
        self.0.extract_if(.., |held| held.intake.connection == connection).collect()
    }

    /// Whether there are any of that intake, and when the next of them is due; none is, if all hang.
    pub(crate) fn of(&self, intake: &Arc<Intake>) -> Option<Option<Instant>> {
        let own = || self.0.iter().filter(|held| Arc::ptr_eq(&held.intake, intake));
        own().next()?;
        Some(own().filter_map(|held| held.due).min())
    }
}
