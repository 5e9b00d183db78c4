use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use messaging::{Error, ErrorKind};
use tokio::sync::Notify;

/// What hangs by a fault hangs here.
#[derive(Debug, Default)]
pub(super) struct Gate {
    opened: AtomicU64,
    closed: AtomicBool,
    changed: Notify,
}

impl Gate {
    /// Lets everything go that hangs.
    pub(super) fn open(&self) {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Ends everything that hangs, and will.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Hangs until the gate is opened the next time.
    pub(super) async fn wait(&self) -> Result<(), Error> {
        let opened = self.opened.load(Ordering::SeqCst);
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.closed.load(Ordering::SeqCst) {
                return Err(Error::new(
                    ErrorKind::Closed,
                    "the driver was closed under what hung by an injected fault",
                ));
            }
            if self.opened.load(Ordering::SeqCst) != opened {
                return Ok(());
            }
            changed.await;
        }
    }
}
