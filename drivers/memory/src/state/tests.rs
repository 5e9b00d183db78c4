//! The state of a queue against a model that is too simple to be wrong.

use std::time::Duration;

use messaging::{Envelope, InboundMessage, MessageId};
use proptest::prelude::*;

use super::*;
use crate::capabilities;

#[derive(Clone, Debug)]
enum Step {
    Send { delay: u64 },
    Take { holder: u64 },
    Start { which: usize },
    Ack { which: usize },
    Retry { which: usize, delay: u64 },
    Release { which: usize, delay: u64 },
    Drop { which: usize },
    Crash { holder: u64 },
    Advance { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let delay = || prop_oneof![2 => Just(0), 3 => 1..5u64];
    let which = || 0..8usize;
    prop_oneof![
        4 => delay().prop_map(|delay| Step::Send { delay }),
        6 => (0..2u64).prop_map(|holder| Step::Take { holder }),
        3 => which().prop_map(|which| Step::Start { which }),
        2 => which().prop_map(|which| Step::Ack { which }),
        2 => (which(), delay()).prop_map(|(which, delay)| Step::Retry { which, delay }),
        2 => (which(), delay()).prop_map(|(which, delay)| Step::Release { which, delay }),
        2 => which().prop_map(|which| Step::Drop { which }),
        1 => (0..2u64).prop_map(|holder| Step::Crash { holder }),
        2 => (1..4u64).prop_map(|seconds| Step::Advance { seconds }),
    ]
}

/// What the model knows of a message: one list, searched from end to end.
#[derive(Clone, Debug)]
struct Known {
    number: u64,
    attempt: u32,
    place: u64,
    doing: Doing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Ready,
    Delayed { due: u64, order: u64, keeps_place: bool },
    InFlight { holder: u64, started: bool },
}

/// A delivery that a test holds; `void` once its holder has crashed.
struct InHand {
    taken: Taken,
    holder: u64,
    void: bool,
}

struct Both {
    state: QueueState,
    model: Vec<Known>,
    in_hand: Vec<InHand>,
    base: Instant,
    now: u64,
    places: u64,
    orders: u64,
    sent: u64,
    ended: u64,
}

impl Both {
    fn new() -> Self {
        Self {
            state: QueueState::new(Counting::of(&capabilities::MEMORY)),
            model: Vec::new(),
            in_hand: Vec::new(),
            base: Instant::now(),
            now: 0,
            places: 0,
            orders: 0,
            sent: 0,
            ended: 0,
        }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.base + Duration::from_secs(seconds)
    }

    fn put(&mut self, mut known: Known, delay: u64, keeps_place: bool) {
        if delay > 0 {
            self.orders += 1;
            known.doing = Doing::Delayed { due: self.now + delay, order: self.orders, keeps_place };
        } else {
            known.doing = Doing::Ready;
            if !keeps_place {
                self.places += 1;
                known.place = self.places;
            }
        }
        self.model.push(known);
    }

    fn bring_due(&mut self) {
        self.state.bring_due(self.at(self.now));
        while let Some((index, keeps_place)) = self.first_due() {
            let known = self.model.remove(index);
            self.put(known, 0, keeps_place);
        }
    }

    fn first_due(&self) -> Option<(usize, bool)> {
        let delayed = self.model.iter().enumerate().filter_map(|(index, known)| match known.doing {
            Doing::Delayed { due, order, keeps_place } if due <= self.now => Some((due, order, index, keeps_place)),
            Doing::Ready | Doing::Delayed { .. } | Doing::InFlight { .. } => None,
        });
        delayed.min().map(|(.., index, keeps_place)| (index, keeps_place))
    }

    /// Takes what is in flight as that number and not taken back.
    fn in_flight(&mut self, number: u64) -> Known {
        let index = self.model.iter().position(|known| known.number == number && is_in_flight(known));
        self.model.remove(index.expect("the model has it in flight"))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { delay } => {
                self.sent += 1;
                let number = self.sent;
                let envelope = Envelope::with(MessageId::from(number.to_string()), "".into());
                let due = (delay > 0).then(|| self.at(self.now + delay));
                let _ = self.state.store(envelope, due);
                self.put(Known { number, attempt: 1, place: 0, doing: Doing::Ready }, delay, false);
            }
            Step::Take { holder } => self.take(holder),
            Step::Start { which } => self.start(which),
            Step::Ack { which } => self.settle(which, Settlement::Ack),
            Step::Retry { which, delay } => {
                let attempt = self.in_hand.get(which).map_or(1, |held| held.taken.message.attempt().get() + 1);
                self.settle(which, Settlement::retry(Duration::from_secs(delay), attempt));
            }
            Step::Release { which, delay } => {
                self.settle(which, Settlement::Release { delay: Duration::from_secs(delay) });
            }
            Step::Drop { which } => self.drop(which),
            Step::Crash { holder } => self.crash(holder),
            Step::Advance { seconds } => {
                self.now += seconds;
                self.bring_due();
            }
        }
        assert_eq!(self.state.pending(), self.model.len());
        assert_eq!(self.state.pending() as u64, self.sent - self.ended);
        assert_eq!(self.state.has_ready(), self.model.iter().any(|known| known.doing == Doing::Ready));
        let next_due = self.model.iter().filter_map(|known| match known.doing {
            Doing::Delayed { due, .. } => Some(self.at(due)),
            Doing::Ready | Doing::InFlight { .. } => None,
        });
        assert_eq!(self.state.next_due(), next_due.min());
    }

    fn take(&mut self, holder: u64) {
        let open = |envelope, attempt| InboundMessage::new("orders", envelope, attempt);
        let taken = self.state.take(holder, open);
        let first = self.model.iter_mut().filter(|known| known.doing == Doing::Ready).min_by_key(|known| known.place);
        let (Some(taken), Some(first)) = (&taken, first) else { return assert!(taken.is_none()) };
        assert_eq!((taken.number, taken.message.attempt().get()), (first.number, first.attempt));
        assert_eq!(taken.message.id.as_str(), first.number.to_string());
        first.doing = Doing::InFlight { holder, started: false };
        let taken = Taken { slot: taken.slot, number: taken.number, message: Arc::clone(&taken.message) };
        self.in_hand.push(InHand { taken, holder, void: false });
    }

    fn start(&mut self, which: usize) {
        let Some(InHand { taken, void, .. }) = self.in_hand.get(which) else { return };
        let (number, void) = (taken.number, *void);
        taken.message.start();
        if !void {
            let mut known = self.in_flight(number);
            if let Doing::InFlight { started, .. } = &mut known.doing {
                *started = true;
            }
            self.model.push(known);
        }
    }

    fn settle(&mut self, which: usize, settlement: Settlement) {
        if which >= self.in_hand.len() {
            return;
        }
        let InHand { taken, void, .. } = self.in_hand.swap_remove(which);
        assert_eq!(self.state.is_ours(taken.slot), !void);
        let now = self.at(self.now);
        let settled = self.state.settle(taken.slot, settlement, || now);
        assert_eq!(settled.is_some(), !void);
        if void {
            assert!(self.state.forget_void(taken.slot).is_some());
            return;
        }
        let mut known = self.in_flight(taken.number);
        match settlement {
            Settlement::Ack | Settlement::Discard(_) | Settlement::DeadLetter(_) => self.ended += 1,
            Settlement::Retry { step, attempt } => {
                known.attempt = attempt.get();
                self.put(known, step.delay().as_secs(), false);
            }
            Settlement::Release { delay } => self.put(known, delay.as_secs(), true),
        }
    }

    fn drop(&mut self, which: usize) {
        if which >= self.in_hand.len() {
            return;
        }
        let InHand { taken, void, .. } = self.in_hand.swap_remove(which);
        let given_back = self.state.give_back(taken.slot, Ending::Dropped);
        assert_eq!(given_back.is_some(), !void);
        if !void {
            let known = self.in_flight(taken.number);
            self.put_back(known);
        }
    }

    fn crash(&mut self, holder: u64) {
        let lost = self.state.crash(holder);
        for held in self.in_hand.iter_mut().filter(|held| held.holder == holder) {
            held.void = true;
        }
        let (crashed, kept) = std::mem::take(&mut self.model)
            .into_iter()
            .partition(|known| matches!(known.doing, Doing::InFlight { holder: by, .. } if by == holder));
        self.model = kept;
        let crashed: Vec<Known> = crashed;
        assert_eq!(lost.len(), crashed.len());
        crashed.into_iter().for_each(|known| self.put_back(known));
    }

    fn put_back(&mut self, mut known: Known) {
        if matches!(known.doing, Doing::InFlight { started: true, .. }) {
            known.attempt += 1;
        }
        self.put(known, 0, true);
    }
}

fn is_in_flight(known: &Known) -> bool {
    matches!(known.doing, Doing::InFlight { .. })
}

proptest! {
    #[test]
    fn no_message_is_lost_or_doubled_and_the_order_holds(steps in prop::collection::vec(step(), 0..120)) {
        let mut both = Both::new();
        for step in steps {
            both.step(step);
        }
        // In the end everything that was sent ends, each once.
        while !both.in_hand.is_empty() {
            both.step(Step::Drop { which: 0 });
        }
        both.step(Step::Advance { seconds: 100 });
        while both.state.has_ready() {
            both.step(Step::Take { holder: 0 });
            both.step(Step::Ack { which: 0 });
        }
        prop_assert_eq!(both.ended, both.sent);
        prop_assert_eq!(both.state.pending(), 0);
    }
}
