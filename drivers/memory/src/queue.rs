use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use messaging::driver::DelayHeap;
use messaging::{
    Attempt, Capabilities, Delivery, Envelope, Error, ErrorKind, InboundMessage, OutboundMessage, Settlement,
};
use tokio::time::Instant;

use crate::after::{After, Told};
use crate::faults::{Effect, Faults, Operation, injected};
use crate::gate::Gate;
use crate::idle::Idle;
use crate::lock;
use crate::recorder::{Entry, Recorder};
use crate::settle::MemorySettler;
use crate::state::{Change, Counting, QueueState};
use crate::subscriber::Intake;
use crate::waiting::Waiting;

/// What all queues share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) capabilities: Capabilities,
    pub(crate) idle: Idle,
    pub(crate) faults: Faults,
    pub(crate) gate: Gate,
    pub(crate) recording: AtomicUsize,
}

/// One queue and those who wait for it; one lock, held for no call to the outside.
pub(crate) struct Queue {
    pub(crate) name: Arc<str>,
    pub(crate) common: Arc<Common>,
    desk: Mutex<Desk>,
}

struct Desk {
    state: QueueState,
    waiting: Waiting,
    lanes: u64,
    intakes: Vec<Arc<Intake>>,
    held: Vec<Held>,
    busy: bool,
    recorder: Recorder,
    /// Where the newest consumer's dead letters go.
    dead_letter: Option<DeadLetters>,
}

/// Where a consumer's dead letters go, and the header that tells whose they are.
#[derive(Clone, Debug)]
pub(crate) struct DeadLetters {
    pub(crate) queue: Option<Arc<str>>,
    pub(crate) origin: Arc<str>,
}

/// A settlement that was handed over and is not carried out yet, because of a fault.
struct Held {
    slot: usize,
    settlement: Settlement,
    intake: Arc<Intake>,
    /// `None` for one that hangs.
    due: Option<Instant>,
}

/// What a lane's poll came to.
pub(crate) enum Polled {
    Took,
    Nothing { next_due: Option<Instant> },
    Ended,
}

impl Queue {
    pub(crate) fn new(name: Arc<str>, common: Arc<Common>) -> Self {
        let desk = Desk {
            state: QueueState::new(Counting::of(&common.capabilities)),
            waiting: Waiting::default(),
            lanes: 0,
            intakes: Vec::new(),
            held: Vec::new(),
            busy: false,
            recorder: Recorder::default(),
            dead_letter: None,
        };
        Self { name, common, desk: Mutex::new(desk) }
    }

    /// Works at the desk, then does what is to be done outside of it.
    fn at_desk<R>(&self, work: impl FnOnce(&mut Desk, &mut After) -> R) -> R {
        let mut after = After::default();
        let result = {
            let mut desk = lock(&self.desk);
            desk.bring_due(self, &mut after);
            let result = work(&mut desk, &mut after);
            desk.note_busy(&self.common.idle, &mut after);
            result
        };
        after.run(&self.common.idle);
        result
    }

    /// Stores a message; `recorded` where the application published it.
    pub(crate) fn store(&self, message: OutboundMessage, recorded: bool, copies: usize) {
        self.at_desk(|desk, after| {
            if recorded {
                let limit = self.common.recording.load(Ordering::Relaxed);
                desk.recorder.published.note(limit, || message.clone());
            }
            let delay = message.delay_by();
            let due = (!delay.is_zero()).then(|| DelayHeap::<()>::due(Instant::now(), delay));
            let (_, envelope) = message.into_parts();
            for _ in 1..copies {
                desk.store(envelope.clone(), due, after);
            }
            desk.store(envelope, due, after);
        });
    }

    pub(crate) fn open(&self, intake: &Arc<Intake>, dead_letter: DeadLetters, lanes: usize) -> std::ops::Range<u64> {
        self.at_desk(|desk, _| {
            desk.intakes.push(Arc::clone(intake));
            desk.dead_letter = Some(dead_letter);
            let first = desk.lanes;
            desk.lanes += lanes as u64;
            first..desk.lanes
        })
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
        self.at_desk(|desk, after| {
            if *waits {
                drop(desk.waiting.remove(lane));
                *waits = false;
            }
            if intake.is_stopped() {
                return Polled::Ended;
            }
            if !desk.state.has_ready() {
                desk.waiting.insert(lane, waker);
                *waits = true;
                return Polled::Nothing { next_due: desk.next_due() };
            }
            let open = |envelope: Envelope, attempt: Attempt| {
                InboundMessage::new(Arc::clone(&self.name), envelope, attempt).parent(intake.stopping.clone())
            };
            for _ in 0..max.max(1) {
                let Some(taken) = desk.state.take(intake.connection, open) else { break };
                let settler = MemorySettler::new(Arc::clone(intake), taken.slot, taken.number);
                out.push_back(Delivery { message: taken.message, settler: Box::new(settler) });
            }
            if desk.state.has_ready() {
                after.wake(desk.waiting.pop());
            }
            Polled::Took
        })
    }

    /// A lane is gone: it waits no more, and a wake that it was given goes to another one.
    pub(crate) fn leave(&self, lane: u64) {
        self.at_desk(|desk, after| {
            drop(desk.waiting.remove(lane));
            if desk.state.has_ready() {
                after.wake(desk.waiting.pop());
            }
        });
    }

    pub(crate) fn started(&self, slot: usize) {
        lock(&self.desk).state.started(slot);
    }

    pub(crate) fn is_ours(&self, slot: usize) -> bool {
        lock(&self.desk).state.is_ours(slot)
    }

    /// Carries out a settlement, unless a fault says otherwise, and tells.
    pub(crate) fn settle(&self, intake: &Arc<Intake>, slot: usize, settlement: Settlement) {
        let mut after = After::default();
        let settled = {
            let mut desk = lock(&self.desk);
            desk.bring_due(self, &mut after);
            let settled = desk.settle(self, intake, slot, settlement, &mut after);
            desk.note_busy(&self.common.idle, &mut after);
            settled
        };
        if let Some((message, result)) = settled {
            intake.events.settled(&message, &settlement, result);
        }
        after.run(&self.common.idle);
    }

    /// Puts a message back whose settler was dropped.
    pub(crate) fn give_back(&self, slot: usize) {
        let lost = self.at_desk(|desk, after| {
            let Some(message) = desk.state.give_back(slot, true) else { return None };
            desk.stir(Change::Ready, after);
            Some(message)
        });
        drop(lost);
    }

    /// Ends an intake's lanes; what is ready or delayed stays.
    pub(crate) fn stop(&self, intake: &Arc<Intake>) {
        self.at_desk(|desk, after| {
            intake.note_stopped();
            desk.intakes.retain(|known| !Arc::ptr_eq(known, intake));
            after.wake_all(desk.waiting.drain());
        });
    }

    /// Takes back everything that a connection has in flight, and tells what was handed over and not carried out.
    pub(crate) fn lose(&self, connection: u64, kind: ErrorKind) {
        self.at_desk(|desk, after| {
            let lost = desk.state.crash(connection);
            if lost.is_empty() {
                return;
            }
            let (held, kept) =
                std::mem::take(&mut desk.held).into_iter().partition(|held| held.intake.connection == connection);
            desk.held = kept;
            for Held { slot, settlement, intake, .. } in held {
                if let Some(message) = desk.state.forget_void(slot) {
                    let result = Err(lost_settlement(kind));
                    after.tell(Told { events: Arc::clone(&intake.events), message, settlement, result });
                }
            }
            after.cancel(lost);
            after.wake_all(desk.waiting.drain());
        });
    }

    /// Carries out every settlement that hangs.
    pub(crate) fn release_hung(&self) {
        self.at_desk(|desk, after| {
            let (hung, kept) = std::mem::take(&mut desk.held).into_iter().partition(|held| held.due.is_none());
            desk.held = kept;
            hung.into_iter().for_each(|held: Held| desk.carry_out_held(self, held, after));
        });
    }

    /// Whether an intake has settlements that are not carried out yet, and when the next one is.
    pub(crate) fn held(&self, intake: &Arc<Intake>) -> Option<Option<Instant>> {
        self.at_desk(|desk, _| {
            let held = || desk.held.iter().filter(|held| Arc::ptr_eq(&held.intake, intake));
            held().next()?;
            Some(held().filter_map(|held| held.due).min())
        })
    }

    pub(crate) fn intakes(&self) -> Vec<Arc<Intake>> {
        lock(&self.desk).intakes.clone()
    }

    pub(crate) fn pending(&self) -> usize {
        lock(&self.desk).state.pending()
    }

    pub(crate) fn dead_letter(&self) -> Option<DeadLetters> {
        lock(&self.desk).dead_letter.clone()
    }

    pub(crate) fn recorded<R>(&self, read: impl FnOnce(&Recorder) -> R) -> R {
        read(&lock(&self.desk).recorder)
    }

    /// What keeps the queue busy, in words.
    pub(crate) fn describe(&self) -> Option<String> {
        let desk = lock(&self.desk);
        desk.state.describe(Instant::now()).filter(|_| desk.busy)
    }
}

impl Desk {
    /// Does what is due; the clock is read only where something waits for it.
    fn bring_due(&mut self, queue: &Queue, after: &mut After) {
        if self.state.next_due().is_none() && self.held.is_empty() {
            return;
        }
        let now = Instant::now();
        self.state.bring_due(now);
        while let Some(index) = self.held.iter().position(|held| held.due.is_some_and(|due| due <= now)) {
            let held = self.held.remove(index);
            self.carry_out_held(queue, held, after);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.held.iter().filter_map(|held| held.due).chain(self.state.next_due()).min()
    }

    fn store(&mut self, envelope: Envelope, due: Option<Instant>, after: &mut After) {
        let change = self.state.store(envelope, due);
        self.stir(change, after);
    }

    fn settle(
        &mut self,
        queue: &Queue,
        intake: &Arc<Intake>,
        slot: usize,
        settlement: Settlement,
        after: &mut After,
    ) -> Option<(Arc<InboundMessage>, Result<(), Error>)> {
        if !self.state.is_ours(slot) {
            let message = self.state.forget_void(slot)?;
            return Some((message, Err(lost_settlement(ErrorKind::Connection))));
        }
        let fault = queue.common.faults.meet(Operation::of(&settlement), Some(&queue.name));
        let failed = |kind| Err(injected(kind, &format!("the {} of a message of", settlement.name()), &queue.name));
        let result = match fault {
            None => Ok(()),
            Some(Effect::ErrorAfter(kind)) => failed(kind),
            Some(Effect::Duplicate) => {
                self.state.duplicate(slot);
                self.stir(Change::Ready, after);
                Ok(())
            }
            Some(Effect::Error(kind)) => return self.refuse(slot, false, after, failed(kind)),
            Some(Effect::Crash) => return self.refuse(slot, true, after, failed(ErrorKind::Connection)),
            Some(Effect::Delay(delay)) => {
                let due = Some(DelayHeap::<()>::due(Instant::now(), delay));
                self.held.push(Held { slot, settlement, intake: Arc::clone(intake), due });
                self.stir(Change::DueEarlier, after);
                return None;
            }
            Some(Effect::Hang) => {
                self.held.push(Held { slot, settlement, intake: Arc::clone(intake), due: None });
                return None;
            }
        };
        let message = self.carry_out(queue, slot, settlement, after)?;
        Some((message, result))
    }

    fn carry_out(
        &mut self,
        queue: &Queue,
        slot: usize,
        settlement: Settlement,
        after: &mut After,
    ) -> Option<Arc<InboundMessage>> {
        let (message, change) = self.state.settle(slot, settlement, Instant::now)?;
        self.stir(change, after);
        let limit = queue.common.recording.load(Ordering::Relaxed);
        self.recorder.settled.note(limit, || Entry::new(&message, settlement));
        Some(message)
    }

    fn carry_out_held(&mut self, queue: &Queue, held: Held, after: &mut After) {
        let Held { slot, settlement, intake, .. } = held;
        if let Some(message) = self.carry_out(queue, slot, settlement, after) {
            after.tell(Told { events: Arc::clone(&intake.events), message, settlement, result: Ok(()) });
        }
    }

    fn refuse(
        &mut self,
        slot: usize,
        lost: bool,
        after: &mut After,
        result: Result<(), Error>,
    ) -> Option<(Arc<InboundMessage>, Result<(), Error>)> {
        let message = self.state.give_back(slot, lost)?;
        self.stir(Change::Ready, after);
        Some((message, result))
    }

    fn stir(&mut self, change: Change, after: &mut After) {
        match change {
            Change::Nothing => (),
            Change::Ready => after.wake(self.waiting.pop()),
            Change::DueEarlier => after.wake_all(self.waiting.drain()),
        }
    }

    /// Counts the queue as busy while it is consumed and not empty.
    fn note_busy(&mut self, idle: &Idle, after: &mut After) {
        let busy = !self.intakes.is_empty() && self.state.pending() > 0;
        match (self.busy, busy) {
            (false, true) => idle.enter(),
            (true, false) => after.leave_idle(),
            (false, false) | (true, true) => (),
        }
        self.busy = busy;
    }
}

fn lost_settlement(kind: ErrorKind) -> Error {
    Error::new(kind, "the connection was lost before the settlement was carried out")
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).field("pending", &self.pending()).finish_non_exhaustive()
    }
}
