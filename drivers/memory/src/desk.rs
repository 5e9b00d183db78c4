use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use messaging::driver::DelayHeap;
use messaging::{Delivery, Error, ErrorKind, InboundMessage, OutboundMessage, Settlement};
use tokio::time::Instant;

use crate::after::{After, Told};
use crate::counting::{Counting, Ending};
use crate::faults::{Effect, Operation, injected};
use crate::held::{Held, HeldBack};
use crate::recorder::{Entry, Recorder};
use crate::settle::MemorySettler;
use crate::state::{Change, QueueState};
use crate::store::Common;
use crate::subscriber::{DeadLetters, Intake};
use crate::waiting::Waiting;

/// What a queue's lock protects: its messages, who waits for them, and what was recorded.
///
/// It calls nobody; what has to be called goes into [`After`].
pub(crate) struct Desk {
    name: Arc<str>,
    common: Arc<Common>,
    state: QueueState,
    waiting: Waiting,
    lanes: u64,
    intakes: Vec<Arc<Intake>>,
    held: HeldBack,
    busy: bool,
    recorder: Recorder,
    /// Of the newest consumer.
    dead_letters: Option<DeadLetters>,
}

/// What a lane's poll came to.
pub(crate) enum Polled {
    Took,
    Nothing { next_due: Option<Instant> },
    Ended,
}

/// What came of a settlement, to be told.
type Settled = Option<(Arc<InboundMessage>, Result<(), Error>)>;

impl Desk {
    pub(crate) fn new(name: Arc<str>, common: Arc<Common>) -> Self {
        Self {
            name,
            state: QueueState::new(Counting::of(&common.capabilities)),
            common,
            waiting: Waiting::default(),
            lanes: 0,
            intakes: Vec::new(),
            held: HeldBack::default(),
            busy: false,
            recorder: Recorder::default(),
            dead_letters: None,
        }
    }

    /// Does what is due; the clock is read only where something waits for it.
    #[inline]
    pub(crate) fn bring_due(&mut self, after: &mut After<'_>) {
        if self.state.next_due().is_some() || !self.held.is_empty() {
            self.bring_due_now(after);
        }
    }

    fn bring_due_now(&mut self, after: &mut After<'_>) {
        let now = Instant::now();
        self.state.bring_due(now);
        while let Some(held) = self.held.pop_due(now) {
            self.carry_out_held(held, after);
        }
    }

    /// Counts the queue as busy while it is consumed and not empty.
    pub(crate) fn note_busy(&mut self, after: &mut After<'_>) {
        let busy = !self.intakes.is_empty() && self.state.pending() > 0;
        match (self.busy, busy) {
            (false, true) => self.common.idle.enter(),
            (true, false) => after.leave_idle(),
            (false, false) | (true, true) => (),
        }
        self.busy = busy;
    }

    pub(crate) fn store(&mut self, message: OutboundMessage, recorded: bool, copies: usize, after: &mut After<'_>) {
        if recorded {
            let limit = self.common.recording.load(Ordering::Relaxed);
            self.recorder.published.note(limit, || message.clone());
        }
        let delay = message.delay_by();
        let due = (!delay.is_zero()).then(|| DelayHeap::<()>::due(Instant::now(), delay));
        let (_, envelope) = message.into_parts();
        for _ in 1..copies {
            let change = self.state.store(envelope.clone(), due);
            self.stir(change, after);
        }
        let change = self.state.store(envelope, due);
        self.stir(change, after);
    }

    pub(crate) fn open(&mut self, intake: &Arc<Intake>, dead_letters: DeadLetters, lanes: usize) -> Range<u64> {
        self.intakes.push(Arc::clone(intake));
        self.dead_letters = Some(dead_letters);
        let first = self.lanes;
        self.lanes += lanes as u64;
        first..self.lanes
    }

    pub(crate) fn stop(&mut self, intake: &Arc<Intake>, after: &mut After<'_>) {
        intake.note_stopped();
        self.intakes.retain(|known| !Arc::ptr_eq(known, intake));
        after.wake_all(self.waiting.drain());
    }

    pub(crate) fn has_ready(&self) -> bool {
        self.state.has_ready()
    }

    pub(crate) fn take(
        &mut self,
        intake: &Arc<Intake>,
        max: usize,
        out: &mut VecDeque<Delivery>,
        after: &mut After<'_>,
    ) -> Polled {
        for _ in 0..max.max(1) {
            let taken = self.state.take(intake.connection, |envelope, attempt| {
                InboundMessage::new(Arc::clone(&self.name), envelope, attempt).parent(Arc::clone(&intake.stopping))
            });
            let Some(taken) = taken else { break };
            let settler = Box::new(MemorySettler::new(Arc::clone(intake), taken.slot, taken.number));
            out.push_back(Delivery { message: taken.message, settler });
        }
        self.pass_on(after);
        Polled::Took
    }

    pub(crate) fn wait(&mut self, lane: u64, waker: &Waker, after: &mut After<'_>) -> Polled {
        after.discard(self.waiting.insert(lane, waker));
        Polled::Nothing { next_due: self.state.next_due().into_iter().chain(self.held.next_due()).min() }
    }

    pub(crate) fn wait_no_more(&mut self, lane: u64, after: &mut After<'_>) {
        after.discard(self.waiting.remove(lane));
    }

    /// Wakes another lane where there is more to take.
    pub(crate) fn pass_on(&mut self, after: &mut After<'_>) {
        if self.state.has_ready() {
            after.wake(self.waiting.pop());
        }
    }

    pub(crate) fn is_ours(&self, slot: usize) -> bool {
        self.state.is_ours(slot)
    }

    pub(crate) fn settle(
        &mut self,
        intake: &Arc<Intake>,
        slot: usize,
        settlement: Settlement,
        after: &mut After<'_>,
    ) -> Settled {
        if !self.state.is_ours(slot) {
            let message = self.state.forget_void(slot)?;
            return Some((message, Err(lost(ErrorKind::Connection))));
        }
        let result = match self.common.faults.meet(Operation::of(&settlement), Some(&self.name)) {
            None => Ok(()),
            Some(Effect::ErrorAfter(kind)) => Err(self.failed(kind, settlement)),
            Some(Effect::Duplicate) => {
                self.state.duplicate(slot);
                self.stir(Change::Ready, after);
                Ok(())
            }
            Some(Effect::Error(kind)) => {
                let error = self.failed(kind, settlement);
                return self.refuse(slot, Ending::Refused, error, after);
            }
            Some(Effect::Crash) => {
                let error = self.failed(ErrorKind::Connection, settlement);
                return self.refuse(slot, Ending::Crashed, error, after);
            }
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
        let message = self.carry_out(slot, settlement, after)?;
        Some((message, result))
    }

    pub(crate) fn give_back(&mut self, slot: usize, after: &mut After<'_>) -> Option<Arc<InboundMessage>> {
        let message = self.state.give_back(slot, Ending::Dropped)?;
        self.stir(Change::Ready, after);
        Some(message)
    }

    pub(crate) fn lose(&mut self, connection: u64, kind: ErrorKind, after: &mut After<'_>) {
        after.cancel(self.state.crash(connection));
        for Held { slot, settlement, intake, .. } in self.held.take_of(connection) {
            if let Some(message) = self.state.forget_void(slot) {
                after.tell(Told { intake, message, settlement, result: Err(lost(kind)) });
            }
        }
        after.wake_all(self.waiting.drain());
    }

    pub(crate) fn release_hung(&mut self, after: &mut After<'_>) {
        self.held.take_hung().into_iter().for_each(|held| self.carry_out_held(held, after));
    }

    pub(crate) fn held(&self, intake: &Arc<Intake>) -> Option<Option<Instant>> {
        self.held.of(intake)
    }

    pub(crate) fn intakes(&self) -> &[Arc<Intake>] {
        &self.intakes
    }

    pub(crate) fn pending(&self) -> usize {
        self.state.pending()
    }

    pub(crate) fn dead_letters(&self) -> Option<&DeadLetters> {
        self.dead_letters.as_ref()
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    pub(crate) fn describe(&self) -> Option<String> {
        if self.busy { self.state.describe(Instant::now()) } else { None }
    }

    fn carry_out(&mut self, slot: usize, settlement: Settlement, after: &mut After<'_>) -> Option<Arc<InboundMessage>> {
        let (message, change) = self.state.settle(slot, settlement, Instant::now)?;
        self.stir(change, after);
        let limit = self.common.recording.load(Ordering::Relaxed);
        self.recorder.settled.note(limit, || Entry::new(&message, settlement));
        Some(message)
    }

    fn carry_out_held(&mut self, held: Held, after: &mut After<'_>) {
        let Held { slot, settlement, intake, .. } = held;
        if let Some(message) = self.carry_out(slot, settlement, after) {
            after.tell(Told { intake, message, settlement, result: Ok(()) });
        }
    }

    fn refuse(&mut self, slot: usize, ending: Ending, error: Error, after: &mut After<'_>) -> Settled {
        let message = self.state.give_back(slot, ending)?;
        self.stir(Change::Ready, after);
        Some((message, Err(error)))
    }

    #[inline]
    fn stir(&mut self, change: Change, after: &mut After<'_>) {
        match change {
            Change::Nothing => (),
            Change::Ready => after.wake(self.waiting.pop()),
            Change::DueEarlier => after.wake_all(self.waiting.drain()),
        }
    }

    fn failed(&self, kind: ErrorKind, settlement: Settlement) -> Error {
        injected(kind, &format!("the {} of a message of", settlement.name()), &self.name)
    }
}

fn lost(kind: ErrorKind) -> Error {
    Error::new(kind, "the connection was lost before the settlement was carried out")
}
