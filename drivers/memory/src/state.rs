use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use messaging::driver::DelayHeap;
use messaging::{Attempt, Envelope, InboundMessage, Settlement, Step};
use tokio::time::Instant;

use crate::counting::{Counting, Ending};
use crate::slots::Slots;

#[cfg(test)]
mod tests;

/// Which messages of one queue are ready, in flight and delayed: pure, it reads no clock and wakes nobody.
///
/// Every message has a number for life and a place in the order. What is given back takes its old place; a retry falls
/// behind. Nothing leaves but by a terminal settlement.
#[derive(Debug)]
pub(crate) struct QueueState {
    counting: Counting,
    ready: VecDeque<Stored>,
    delayed: DelayHeap<Delayed>,
    in_flight: Slots<InFlight>,
    voided: usize,
    next_number: u64,
    next_place: u64,
}

/// A message at rest.
#[derive(Clone, Debug)]
struct Stored {
    number: u64,
    place: u64,
    attempt: Attempt,
    envelope: Envelope,
}

#[derive(Debug)]
struct Delayed {
    stored: Stored,
    due: Instant,
    /// Whether it takes its old place when it is due, or falls behind.
    keeps_place: bool,
}

#[derive(Debug)]
struct InFlight {
    message: Arc<InboundMessage>,
    number: u64,
    place: u64,
    /// Who took it.
    holder: u64,
    /// It was taken back: its settler has no right any more.
    void: bool,
}

/// A message that was just taken.
pub(crate) struct Taken {
    pub(crate) slot: usize,
    pub(crate) number: u64,
    pub(crate) message: Arc<InboundMessage>,
}

/// What those who wait for messages have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Change {
    /// Nothing new for them.
    Nothing,
    /// A message is ready.
    Ready,
    /// A message is due earlier than all others.
    DueEarlier,
}

impl QueueState {
    pub(crate) fn new(counting: Counting) -> Self {
        Self {
            counting,
            ready: VecDeque::new(),
            delayed: DelayHeap::default(),
            in_flight: Slots::default(),
            voided: 0,
            next_number: 1,
            next_place: 0,
        }
    }

    /// Stores a new message, ready at once or at `due`.
    pub(crate) fn store(&mut self, envelope: Envelope, due: Option<Instant>) -> Change {
        let stored = Stored { number: self.next_number, place: 0, attempt: Attempt::FIRST, envelope };
        self.next_number += 1;
        self.put(stored, due, false)
    }

    /// Makes ready what is due.
    pub(crate) fn bring_due(&mut self, now: Instant) {
        while let Some(Delayed { stored, keeps_place, .. }) = self.delayed.pop_due(now) {
            if keeps_place { self.put_back(stored) } else { self.put_last(stored) }
        }
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.delayed.next_due()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the first ready message.
    pub(crate) fn take(
        &mut self,
        holder: u64,
        open: impl FnOnce(Envelope, Attempt) -> InboundMessage,
    ) -> Option<Taken> {
        let Stored { number, place, attempt, envelope } = self.ready.pop_front()?;
        let message = Arc::new(open(envelope, attempt));
        let kept = Arc::clone(&message);
        let slot = self.in_flight.insert(InFlight { message: kept, number, place, holder, void: false });
        Some(Taken { slot, number, message })
    }

    /// Whether the message is still with whoever took it.
    pub(crate) fn is_ours(&self, slot: usize) -> bool {
        self.in_flight.get(slot).is_some_and(|taken| !taken.void)
    }

    /// Carries out a settlement.
    ///
    /// `None` where the message was taken back before. `now` is asked for the time only where something is to wait.
    pub(crate) fn settle(
        &mut self,
        slot: usize,
        settlement: Settlement,
        now: impl FnOnce() -> Instant,
    ) -> Option<(Arc<InboundMessage>, Change)> {
        if !self.is_ours(slot) {
            return None;
        }
        let InFlight { message, number, place, .. } = self.in_flight.remove(slot)?;
        let (delay, attempt, keeps_place) = match settlement {
            Settlement::Ack | Settlement::Discard(_) | Settlement::DeadLetter(_) => {
                return Some((message, Change::Nothing));
            }
            Settlement::Retry { step: Step::InProcess(delay), attempt } => (delay, attempt, false),
            Settlement::Retry { step: Step::Native(delay), attempt } => (self.counting.native(delay), attempt, false),
            Settlement::Release { delay } => (delay, self.counting.released(message.attempt()), true),
        };
        let stored = Stored { number, place, attempt, envelope: message.envelope().clone() };
        let due = (!delay.is_zero()).then(|| DelayHeap::<Delayed>::due(now(), delay));
        let change = self.put(stored, due, keeps_place);
        Some((message, change))
    }

    /// Stores the message once more, as it was delivered: what a broker does that lost a settlement after all.
    pub(crate) fn duplicate(&mut self, slot: usize) {
        if let Some(taken) = self.in_flight.get(slot) {
            let stored = taken.restored(&self.counting, Ending::Refused);
            self.put_back(stored);
        }
    }

    /// Puts a message back that was not settled, and gives the delivery that it was.
    ///
    /// `None` where there is nothing to put back: the message was taken back before.
    pub(crate) fn give_back(&mut self, slot: usize, ending: Ending) -> Option<Arc<InboundMessage>> {
        let taken = self.forget(slot).filter(|taken| !taken.void)?;
        let stored = taken.restored(&self.counting, ending);
        self.put_back(stored);
        Some(taken.message)
    }

    /// Takes the message of a settler that has no right any more out of the books.
    pub(crate) fn forget_void(&mut self, slot: usize) -> Option<Arc<InboundMessage>> {
        self.forget(slot).map(|taken| taken.message)
    }

    /// Takes back everything that `holder` has in flight, as if it had crashed, and tells what that was.
    pub(crate) fn crash(&mut self, holder: u64) -> Vec<Arc<InboundMessage>> {
        let mut lost = Vec::new();
        let mut stored = Vec::new();
        for taken in self.in_flight.iter_mut().filter(|taken| taken.holder == holder && !taken.void) {
            taken.void = true;
            lost.push(Arc::clone(&taken.message));
            stored.push(taken.restored(&self.counting, Ending::Crashed));
        }
        self.voided += lost.len();
        stored.into_iter().for_each(|stored| self.put_back(stored));
        lost
    }

    /// How many messages there are: ready, delayed and in flight.
    pub(crate) fn pending(&self) -> usize {
        self.ready.len() + self.delayed.len() + self.in_flight.len() - self.voided
    }

    /// What one of the messages is doing, in words.
    pub(crate) fn describe(&self, now: Instant) -> Option<String> {
        if let Some(taken) = self.in_flight.iter().find(|taken| !taken.void) {
            let what = if taken.message.has_started() { "running" } else { "taken and not started" };
            return Some(format!("{} is {what}, as attempt {}", Named(&taken.message), taken.message.attempt()));
        }
        if let Some(stored) = self.ready.front() {
            return Some(format!(
                "{} is ready as attempt {}, and nobody takes it",
                Named(&stored.envelope),
                stored.attempt
            ));
        }
        let first = self.delayed.iter().min_by_key(|delayed| delayed.due)?;
        let left = first.due.saturating_duration_since(now);
        Some(format!("{} waits {left:?} longer for attempt {}", Named(&first.stored.envelope), first.stored.attempt))
    }

    fn put(&mut self, stored: Stored, due: Option<Instant>, keeps_place: bool) -> Change {
        if let Some(due) = due {
            let first = self.delayed.push(due, Delayed { stored, due, keeps_place });
            return if first { Change::DueEarlier } else { Change::Nothing };
        }
        if keeps_place {
            self.put_back(stored)
        } else {
            self.put_last(stored)
        }
        Change::Ready
    }

    fn put_last(&mut self, stored: Stored) {
        let place = self.next_place;
        self.next_place += 1;
        self.ready.push_back(Stored { place, ..stored });
    }

    fn put_back(&mut self, stored: Stored) {
        let before = self.ready.partition_point(|ready| ready.place < stored.place);
        self.ready.insert(before, stored);
    }

    fn forget(&mut self, slot: usize) -> Option<InFlight> {
        let taken = self.in_flight.remove(slot)?;
        self.voided -= usize::from(taken.void);
        Some(taken)
    }
}

impl InFlight {
    fn restored(&self, counting: &Counting, ending: Ending) -> Stored {
        let attempt = counting.ended(ending, self.message.has_started(), self.message.attempt());
        Stored { number: self.number, place: self.place, attempt, envelope: self.message.envelope().clone() }
    }
}

/// A message as text.
struct Named<'e>(&'e Envelope);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message `{}`", self.0.id)?;
        match &self.0.message_type {
            Some(message_type) => write!(f, " of type `{message_type}`"),
            None => f.write_str(" without a type"),
        }
    }
}
