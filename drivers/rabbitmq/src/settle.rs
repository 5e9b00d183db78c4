use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use messaging::{Error, InboundMessage, Settlement, Settler};
use tokio::sync::mpsc;

use crate::error;
use crate::intake::Intake;

/// What a channel's task is told.
pub(crate) enum Note {
    /// A settlement was decided.
    Settled { tag: u64, settlement: Settlement },
    /// The right to settle was dropped.
    Dropped { tag: u64 },
    /// The copy that a settlement needed is published, or is not.
    Copied { tag: u64, settlement: Settlement, result: Result<(), Error> },
}

/// One channel that delivers, as its settlers see it.
pub(crate) struct Side {
    pub(crate) number: u64,
    pub(crate) notes: mpsc::UnboundedSender<Note>,
    pub(crate) dead: AtomicBool,
}

pub(crate) struct RabbitMqSettler {
    intake: Arc<Intake>,
    side: Arc<Side>,
    message: Arc<InboundMessage>,
    tag: u64,
    settled: bool,
}

impl RabbitMqSettler {
    pub(crate) fn new(intake: Arc<Intake>, side: Arc<Side>, message: Arc<InboundMessage>, tag: u64) -> Self {
        Self { intake, side, message, tag, settled: false }
    }
}

impl Settler for RabbitMqSettler {
    fn settle(mut self: Box<Self>, settlement: Settlement) {
        self.settled = true;
        self.intake.handed_over();
        if self.side.notes.send(Note::Settled { tag: self.tag, settlement }).is_err() {
            self.intake.tell(&self.message, &settlement, Err(error::lost()));
        }
    }

    fn still_ours(&self) -> bool {
        !self.side.dead.load(Ordering::Acquire) && !self.intake.closed.is_cancelled()
    }
}

impl Drop for RabbitMqSettler {
    fn drop(&mut self) {
        if !self.settled {
            self.intake.handed_over();
            if self.side.notes.send(Note::Dropped { tag: self.tag }).is_err() {
                self.intake.done();
            }
        }
    }
}

impl fmt::Debug for RabbitMqSettler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqSettler")
            .field("queue", &self.intake.queue)
            .field("channel", &self.side.number)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
