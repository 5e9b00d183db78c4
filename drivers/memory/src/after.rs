use std::sync::Arc;
use std::task::Waker;

use messaging::{Error, InboundMessage, Settlement};

use crate::idle::Idle;
use crate::subscriber::Intake;

/// What is to be done once a queue's lock is free again; dropped, it is done.
pub(crate) struct After<'i> {
    idle: &'i Idle,
    wake: Option<Waker>,
    /// Only to be dropped: what a waker holds may come back to the queue.
    discarded: Option<Waker>,
    leaves_idle: bool,
    rare: Option<Box<Rare>>,
}

/// What no message on its straight way needs.
#[derive(Default)]
struct Rare {
    wake: Vec<Waker>,
    told: Vec<Told>,
    lost: Vec<Arc<InboundMessage>>,
}

/// What is to be told about a settlement.
pub(crate) struct Told {
    pub(crate) intake: Arc<Intake>,
    pub(crate) message: Arc<InboundMessage>,
    pub(crate) settlement: Settlement,
    pub(crate) result: Result<(), Error>,
}

impl<'i> After<'i> {
    /// Declared before the lock is taken, it is dropped after the lock is free, also by a panic.
    pub(crate) fn new(idle: &'i Idle) -> Self {
        Self { idle, wake: None, discarded: None, leaves_idle: false, rare: None }
    }

    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        let Some(waker) = waker else { return };
        match self.wake {
            None => self.wake = Some(waker),
            Some(_) => self.rare().wake.push(waker),
        }
    }

    pub(crate) fn wake_all(&mut self, wakers: impl ExactSizeIterator<Item = Waker>) {
        if wakers.len() > 0 {
            self.rare().wake.extend(wakers);
        }
    }

    pub(crate) fn discard(&mut self, waker: Option<Waker>) {
        self.discarded = waker;
    }

    pub(crate) fn tell(&mut self, told: Told) {
        self.rare().told.push(told);
    }

    pub(crate) fn cancel(&mut self, lost: Vec<Arc<InboundMessage>>) {
        self.rare().lost = lost;
    }

    /// The queue is not busy any more; told last, so that whoever waits for it sees everything done.
    pub(crate) fn leave_idle(&mut self) {
        self.leaves_idle = true;
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

impl Drop for After<'_> {
    fn drop(&mut self) {
        if let Some(waker) = self.wake.take() {
            waker.wake();
        }
        if let Some(rare) = self.rare.take() {
            rare.run();
        }
        if self.leaves_idle {
            self.idle.leave();
        }
    }
}

impl Rare {
    fn run(self) {
        self.wake.into_iter().for_each(Waker::wake);
        self.lost.iter().for_each(|message| message.cancel());
        for Told { intake, message, settlement, result } in self.told {
            intake.events.settled(&message, &settlement, result);
        }
    }
}
