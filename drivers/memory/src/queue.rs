use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use messaging::{Delivery, ErrorKind, OutboundMessage, Settlement};
use tokio::time::Instant;

use crate::after::After;
use crate::desk::{Desk, Polled};
use crate::lock;
use crate::recorder::Recorder;
use crate::store::Common;
use crate::subscriber::{DeadLetters, Intake};

/// One queue and those who wait for it, behind one lock that is held for no call to the outside.
pub(crate) struct Queue {
    pub(crate) name: Arc<str>,
    pub(crate) common: Arc<Common>,
    desk: Mutex<Desk>,
}

impl Queue {
    pub(crate) fn new(name: Arc<str>, common: Arc<Common>) -> Self {
        let desk = Desk::new(Arc::clone(&name), Arc::clone(&common));
        Self { name, common, desk: Mutex::new(desk) }
    }

    /// Works at the desk; what is to be done outside of it is done when `after` is dropped.
    fn at_desk<R>(&self, after: &mut After<'_>, work: impl FnOnce(&mut Desk, &mut After<'_>) -> R) -> R {
        let mut desk = lock(&self.desk);
        desk.bring_due(after);
        let result = work(&mut desk, after);
        desk.note_busy(after);
        result
    }

    fn after(&self) -> After<'_> {
        After::new(&self.common.idle)
    }

    /// Stores a message `copies` times; `recorded` where the application published it.
    pub(crate) fn store(&self, message: OutboundMessage, recorded: bool, copies: usize) {
        self.at_desk(&mut self.after(), |desk, after| desk.store(message, recorded, copies, after));
    }

    /// Lets an intake consume, and numbers its lanes.
    pub(crate) fn open(&self, intake: &Arc<Intake>, dead_letters: DeadLetters, lanes: usize) -> Range<u64> {
        self.at_desk(&mut self.after(), |desk, _| desk.open(intake, dead_letters, lanes))
    }

    /// Ends an intake's lanes; what is ready or delayed stays.
    pub(crate) fn stop(&self, intake: &Arc<Intake>) {
        self.at_desk(&mut self.after(), |desk, after| desk.stop(intake, after));
    }

    /// Takes up to `max` messages for a lane, or lets it wait; `waits` says whether it may be waiting already.
    pub(crate) fn poll(
        &self,
        intake: &Arc<Intake>,
        lane: u64,
        waits: &mut bool,
        waker: &Waker,
        max: usize,
        out: &mut VecDeque<Delivery>,
    ) -> Polled {
        self.at_desk(&mut self.after(), |desk, after| {
            if intake.is_stopped() {
                return Polled::Ended;
            }
            if !desk.has_ready() {
                *waits = true;
                return desk.wait(lane, waker, after);
            }
            if *waits {
                desk.wait_no_more(lane, after);
                *waits = false;
            }
            desk.take(intake, max, out, after)
        })
    }

    /// A lane is gone: it waits no more, and a wake that it was given goes to another one.
    pub(crate) fn leave(&self, lane: u64) {
        self.at_desk(&mut self.after(), |desk, after| {
            desk.wait_no_more(lane, after);
            desk.pass_on(after);
        });
    }

    pub(crate) fn is_ours(&self, slot: usize) -> bool {
        lock(&self.desk).is_ours(slot)
    }

    /// Carries out a settlement, unless a fault says otherwise, and tells what came of it.
    pub(crate) fn settle(&self, intake: &Arc<Intake>, slot: usize, settlement: Settlement) {
        let mut after = self.after();
        let settled = self.at_desk(&mut after, |desk, after| desk.settle(intake, slot, settlement, after));
        if let Some((message, result)) = settled {
            intake.events.settled(&message, &settlement, result);
        }
    }

    /// Puts a message back whose settler was dropped.
    pub(crate) fn give_back(&self, slot: usize) {
        drop(self.at_desk(&mut self.after(), |desk, after| desk.give_back(slot, after)));
    }

    /// Takes back everything that a connection has in flight, as if its process had ended.
    ///
    /// It looks at no clock: every queue is asked, also those that only others use, and theirs may be another one.
    pub(crate) fn lose(&self, connection: u64, kind: ErrorKind) {
        let mut after = self.after();
        let mut desk = lock(&self.desk);
        desk.lose(connection, kind, &mut after);
        desk.note_busy(&mut after);
    }

    /// Carries out every settlement that hangs.
    pub(crate) fn release_hung(&self) {
        self.at_desk(&mut self.after(), Desk::release_hung);
    }

    /// Whether an intake has settlements that are not carried out yet, and when the next one is; none, if all hang.
    pub(crate) fn held(&self, intake: &Arc<Intake>) -> Option<Option<Instant>> {
        self.at_desk(&mut self.after(), |desk, _| desk.held(intake))
    }

    pub(crate) fn intakes(&self) -> Vec<Arc<Intake>> {
        lock(&self.desk).intakes().to_vec()
    }

    pub(crate) fn pending(&self) -> usize {
        lock(&self.desk).pending()
    }

    pub(crate) fn dead_letters(&self) -> Option<DeadLetters> {
        lock(&self.desk).dead_letters().cloned()
    }

    pub(crate) fn recorded<R>(&self, read: impl FnOnce(&Recorder) -> R) -> R {
        read(lock(&self.desk).recorder())
    }

    /// What keeps the queue busy, in words.
    pub(crate) fn describe(&self) -> Option<String> {
        lock(&self.desk).describe()
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).field("pending", &self.pending()).finish_non_exhaustive()
    }
}
