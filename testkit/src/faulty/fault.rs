use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging::{ErrorKind, Settlement};

/// Something that goes wrong, for [`FaultyDriver::fail`](super::FaultyDriver::fail): an operation, an effect, and how often.
///
/// Without an effect the operation fails with [`ErrorKind::Connection`] before it does anything, and a delivery is given
/// back unseen; without a number that happens once. Where an effect means nothing for an operation, the operation is done
/// as ever.
///
/// | | connect, subscribe | publish | settlement | delivery |
/// |---|---|---|---|---|
/// | `error` | fails | is not sent | is told as failed, the message is released | is given back |
/// | `error_after` | is done, fails | is stored, fails | is done, told as failed | |
/// | `delay` | later | later | later | |
/// | `hang` | until let go | until let go | until let go | |
/// | `crash` | fails | is stored, fails, and the connection is lost | the connection is lost first | the connection is lost |
/// | `duplicate` | | is stored twice | | is handed out twice |
#[derive(Clone, Debug)]
#[must_use = "a fault does nothing until it is given to `FaultyDriver::fail`"]
pub struct Fault {
    operation: Operation,
    queue: Option<Arc<str>>,
    effect: Effect,
    skip: u32,
    times: Option<u32>,
}

/// What is done with the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Connect,
    Subscribe,
    Publish,
    Settle(Option<Kind>),
    Deliver,
}

/// What kind of settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Terminal,
    Retry,
    Release,
}

/// What goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Error(ErrorKind),
    ErrorAfter(ErrorKind),
    Delay(Duration),
    Hang,
    Crash,
    Duplicate,
}

impl Fault {
    fn new(operation: Operation) -> Self {
        Self { operation, queue: None, effect: Effect::Error(ErrorKind::Connection), skip: 0, times: Some(1) }
    }

    /// `connect`.
    pub fn connect() -> Self {
        Self::new(Operation::Connect)
    }

    /// `subscribe`, of any queue unless one is named.
    pub fn subscribe() -> Self {
        Self::new(Operation::Subscribe)
    }

    /// `publish` to that queue; a dead-letter copy is a publish to the dead-letter queue.
    pub fn publish(queue: impl Into<Arc<str>>) -> Self {
        Self::any_publish().on_queue(queue)
    }

    /// `publish` to any queue.
    pub fn any_publish() -> Self {
        Self::new(Operation::Publish)
    }

    /// A settlement, whatever it is.
    pub fn settlement() -> Self {
        Self::new(Operation::Settle(None))
    }

    /// A settlement that ends a message: ack, discard or dead-letter.
    pub fn ack() -> Self {
        Self::new(Operation::Settle(Some(Kind::Terminal)))
    }

    /// A settlement that asks for a retry.
    pub fn retry() -> Self {
        Self::new(Operation::Settle(Some(Kind::Retry)))
    }

    /// A settlement that gives a message back.
    pub fn release() -> Self {
        Self::new(Operation::Settle(Some(Kind::Release)))
    }

    /// A delivery, on its way to the application.
    pub fn delivery() -> Self {
        Self::new(Operation::Deliver)
    }

    /// Only on that queue.
    pub fn on_queue(mut self, queue: impl Into<Arc<str>>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// It fails before it does anything.
    pub fn error(self, kind: ErrorKind) -> Self {
        self.effect(Effect::Error(kind))
    }

    /// It is done, then it fails: the answer was lost.
    pub fn error_after(self, kind: ErrorKind) -> Self {
        self.effect(Effect::ErrorAfter(kind))
    }

    /// It is done that much later.
    pub fn delay(self, delay: Duration) -> Self {
        self.effect(Effect::Delay(delay))
    }

    /// It hangs until [`FaultyDriver::release_hung`](super::FaultyDriver::release_hung), then it is done; `close` ends it
    /// with an error.
    pub fn hang(self) -> Self {
        self.effect(Effect::Hang)
    }

    /// The connection is lost while it is under way.
    pub fn crash(self) -> Self {
        self.effect(Effect::Crash)
    }

    /// It is done twice.
    pub fn duplicate(self) -> Self {
        self.effect(Effect::Duplicate)
    }

    /// That many times, in place of once.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Every time.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Not the first `skipped` times.
    pub fn after(mut self, skipped: u32) -> Self {
        self.skip = skipped;
        self
    }

    fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    fn hits(&mut self, doing: Operation, queue: Option<&str>) -> bool {
        let any_settlement = matches!((self.operation, doing), (Operation::Settle(None), Operation::Settle(_)));
        let elsewhere = self.queue.as_deref().is_some_and(|only| Some(only) != queue);
        if elsewhere || !(self.operation == doing || any_settlement) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        match &mut self.times {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// The faults that were asked for, in that order.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    pub(super) fn add(&self, fault: Fault) {
        self.lock().push(fault);
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn of_connect(&self) -> Option<Effect> {
        self.meet(Operation::Connect, None)
    }

    pub(super) fn of_subscribe(&self, queue: &str) -> Option<Effect> {
        self.meet(Operation::Subscribe, Some(queue))
    }

    pub(super) fn of_publish(&self, queue: &str) -> Option<Effect> {
        self.meet(Operation::Publish, Some(queue))
    }

    pub(super) fn of_delivery(&self, queue: &str) -> Option<Effect> {
        self.meet(Operation::Deliver, Some(queue))
    }

    pub(super) fn of_settlement(&self, settlement: &Settlement, queue: &str) -> Option<Effect> {
        let kind = match settlement {
            Settlement::Ack | Settlement::Discard(_) | Settlement::DeadLetter(_) => Kind::Terminal,
            Settlement::Retry { .. } => Kind::Retry,
            Settlement::Release { .. } => Kind::Release,
        };
        self.meet(Operation::Settle(Some(kind)), Some(queue))
    }

    /// What goes wrong with this one, by the first fault that it meets.
    fn meet(&self, doing: Operation, queue: Option<&str>) -> Option<Effect> {
        let mut faults = self.lock();
        let effect = faults.iter_mut().find_map(|fault| fault.hits(doing, queue).then_some(fault.effect));
        faults.retain(|fault| fault.times != Some(0));
        effect
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
