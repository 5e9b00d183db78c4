use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging::driver::{DriverEvents, Fault as Trouble};
use messaging::{Error, ErrorKind, InboundMessage, Settlement, Settler};
use tokio::time::sleep;

use super::fault::Effect;
use super::intake::{Intake, injected};

/// A delivery that is not settled yet: the real right to settle it, until that is used or lost.
#[derive(Debug)]
pub(super) struct Unsettled {
    pub(super) message: Arc<InboundMessage>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    right: Option<Box<dyn Settler>>,
    /// Handed over, and held up by a fault.
    held: Option<Settlement>,
}

impl Unsettled {
    pub(super) fn new(message: Arc<InboundMessage>, right: Box<dyn Settler>) -> Self {
        Self { message, state: Mutex::new(State { right: Some(right), held: None }) }
    }

    pub(super) fn is_held(&self) -> bool {
        self.lock().held.is_some()
    }

    /// Takes the right away: the message goes back to the broker. What was handed over and held up is left to be told.
    pub(super) fn lose(&self) -> Option<Settlement> {
        let (right, held) = {
            let mut state = self.lock();
            (state.right.take(), state.held.take())
        };
        if right.is_some() {
            self.message.cancel();
        }
        held
    }

    /// Lets go of what was held up.
    pub(super) fn carry_on(&self) {
        let (right, held) = {
            let mut state = self.lock();
            if state.held.is_none() {
                return;
            }
            (state.right.take(), state.held.take())
        };
        if let (Some(right), Some(settlement)) = (right, held) {
            right.settle(settlement);
        }
    }

    fn take(&self) -> Option<Box<dyn Settler>> {
        self.lock().right.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to settle a delivery, as the application sees it.
#[derive(Debug)]
pub(super) struct FaultySettler {
    pub(super) intake: Arc<Intake>,
    pub(super) number: u64,
    pub(super) unsettled: Arc<Unsettled>,
    /// Whether it was settled, so that its drop gives nothing back.
    pub(super) settled: bool,
}

impl Settler for FaultySettler {
    fn settle(mut self: Box<Self>, settlement: Settlement) {
        self.settled = true;
        let (intake, unsettled) = (&self.intake, &self.unsettled);
        let message = &unsettled.message;
        let effect = intake.shared.faults.of_settlement(&settlement, &intake.queue);
        if effect == Some(Effect::Crash) {
            intake.shared.lose_connection();
        }
        match effect {
            Some(Effect::Delay(delay)) if self.hold(settlement) => {
                let (intake, number, unsettled) = (Arc::clone(intake), self.number, Arc::clone(unsettled));
                tokio::spawn(async move {
                    sleep(delay).await;
                    unsettled.carry_on();
                    intake.forget(number);
                });
                return;
            }
            Some(Effect::Hang) if self.hold(settlement) => return,
            _ => (),
        }
        let Some(right) = unsettled.take() else {
            let error =
                Error::new(ErrorKind::Connection, "the connection was lost before the settlement was carried out");
            intake.events.settled(message, &settlement, Err(error));
            return;
        };
        match effect {
            Some(Effect::Error(kind)) => {
                intake.tap.expect(message, settlement, kind);
                right.settle(Settlement::Release { delay: std::time::Duration::ZERO });
            }
            Some(Effect::ErrorAfter(kind)) => {
                intake.tap.expect(message, settlement, kind);
                right.settle(settlement);
            }
            Some(Effect::Delay(_) | Effect::Hang | Effect::Crash | Effect::Duplicate) | None => {
                right.settle(settlement)
            }
        }
        intake.forget(self.number);
    }

    fn still_ours(&self) -> bool {
        self.unsettled.lock().right.as_ref().is_some_and(|right| right.still_ours())
    }

    fn identity(&self) -> Option<String> {
        self.unsettled.lock().right.as_ref().and_then(|right| right.identity())
    }
}

impl FaultySettler {
    /// Holds a settlement up; not where the right is lost.
    fn hold(&self, settlement: Settlement) -> bool {
        let mut state = self.unsettled.lock();
        if state.right.is_some() {
            state.held = Some(settlement);
        }
        state.right.is_some()
    }
}

impl Drop for FaultySettler {
    fn drop(&mut self) {
        if !self.settled {
            drop(self.unsettled.take());
            self.intake.forget(self.number);
        }
    }
}

/// The right to settle the second of two deliveries of one message: it reaches nothing.
#[derive(Debug)]
pub(super) struct Ghost {
    pub(super) events: EventsOf,
    pub(super) message: Arc<InboundMessage>,
}

impl Settler for Ghost {
    fn settle(self: Box<Self>, settlement: Settlement) {
        self.events.0.settled(&self.message, &settlement, Ok(()));
    }
}

/// Where a subscription's application wants to be told.
#[derive(Clone)]
pub(super) struct EventsOf(pub(super) Arc<dyn DriverEvents>);

impl fmt::Debug for EventsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

/// Stands between the driver and the application, and tells what an injected fault wants told.
pub(super) struct Tap {
    outer: Arc<dyn DriverEvents>,
    expected: Mutex<Vec<Expected>>,
}

struct Expected {
    message: Arc<InboundMessage>,
    settlement: Settlement,
    kind: ErrorKind,
}

impl Tap {
    pub(super) fn new(outer: Arc<dyn DriverEvents>) -> Self {
        Self { outer, expected: Mutex::default() }
    }

    /// The next settlement of that delivery is told as that one, failed.
    fn expect(&self, message: &Arc<InboundMessage>, settlement: Settlement, kind: ErrorKind) {
        let expected = Expected { message: Arc::clone(message), settlement, kind };
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).push(expected);
    }

    fn met(&self, message: &Arc<InboundMessage>) -> Option<Expected> {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let index = expected.iter().position(|expected| Arc::ptr_eq(&expected.message, message))?;
        Some(expected.swap_remove(index))
    }
}

impl DriverEvents for Tap {
    fn settled(&self, message: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>) {
        match self.met(message) {
            None => self.outer.settled(message, settlement, result),
            Some(Expected { settlement, kind, .. }) => {
                let result = result.and_then(|()| Err(injected(kind, settlement.name())));
                self.outer.settled(message, &settlement, result);
            }
        }
    }

    fn fault(&self, fault: Trouble) {
        self.outer.fault(fault);
    }

    fn healed(&self) {
        self.outer.healed();
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}
