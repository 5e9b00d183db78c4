use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts the queues that are consumed and not empty.
///
/// A queue enters before what made it busy can be taken, and leaves after what its last settlement caused is told and
/// stored; so the count never touches zero in between.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    busy: AtomicUsize,
    none_busy: Notify,
}

impl Idle {
    pub(crate) fn enter(&self) {
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn leave(&self) {
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none_busy.notify_waiters();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }

    pub(crate) async fn wait(&self) {
        loop {
            let mut told = pin!(self.none_busy.notified());
            told.as_mut().enable();
            if self.is_idle() {
                return;
            }
            told.await;
        }
    }
}
