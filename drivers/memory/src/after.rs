use std::sync::Arc;
use std::task::Waker;

use messaging::{Error, InboundMessage, Settlement};

use crate::idle::Idle;
use crate::subscriber::Intake;

/// What is to be done once a queue's lock is free again.
#[derive(Default)]
pub(crate) struct After {
    wake: Option<Waker>,
    wake_more: Vec<Waker>,
    /// Only to be dropped: what a waker holds may come back to the queue.
    discarded: Option<Waker>,
    told: Vec<Told>,
    lost: Vec<Arc<InboundMessage>>,
    leaves_idle: bool,
}

/// What is to be told about a settlement.
pub(crate) struct Told {
    pub(crate) intake: Arc<Intake>,
    pub(crate) message: Arc<InboundMessage>,
    pub(crate) settlement: Settlement,
    pub(crate) result: Result<(), Error>,
}

impl After {
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        if self.wake.is_none() {
            self.wake = waker;
        } else {
            self.wake_more.extend(waker);
        }
    }

    pub(crate) fn wake_all(&mut self, wakers: impl Iterator<Item = Waker>) {
        self.wake_more.extend(wakers);
    }

    pub(crate) fn discard(&mut self, waker: Option<Waker>) {
        self.discarded = waker;
    }

    pub(crate) fn tell(&mut self, told: Told) {
        self.told.push(told);
    }

    pub(crate) fn cancel(&mut self, lost: Vec<Arc<InboundMessage>>) {
        self.lost = lost;
    }

    /// The queue is not busy any more; told last, so that whoever waits for it sees everything done.
    pub(crate) fn leave_idle(&mut self) {
        self.leaves_idle = true;
    }

    pub(crate) fn run(self, idle: &Idle) {
        self.wake.into_iter().chain(self.wake_more).for_each(Waker::wake);
        self.lost.iter().for_each(|message| message.cancel());
        for Told { intake, message, settlement, result } in self.told {
            intake.events.settled(&message, &settlement, result);
        }
        if self.leaves_idle {
            idle.leave();
        }
    }
}
