use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use messaging::Error;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// What hangs by a fault hangs here.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    opened: AtomicU64,
    changed: Notify,
}

impl Gate {
    /// How often it was opened; taken before one decides to wait.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    /// Lets everything go that hangs.
    pub(crate) fn open(&self) {
        self.opened.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Lets everything that hangs look whether it is to give up.
    pub(crate) fn look(&self) {
        self.changed.notify_waiters();
    }

    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Hangs until the gate was opened once more than `opened`, or `give_up` says so.
    pub(crate) async fn wait(&self, opened: u64, give_up: impl Fn() -> Result<(), Error>) -> Result<(), Error> {
        loop {
            let mut changed = pin!(self.changed());
            changed.as_mut().enable();
            give_up()?;
            if self.opened() != opened {
                return Ok(());
            }
            changed.await;
        }
    }
}
