//! What can be made to go wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::{Error, ErrorKind, Settlement};

use crate::lock;

/// Something that goes wrong, for [`MemoryDriver::fail`](crate::MemoryDriver::fail): an operation, an effect, and how often.
///
/// Without an effect the operation fails with [`ErrorKind::Connection`] before it does anything; without a number it
/// fails once.
///
/// ```
/// use messaging::driver::MessagingDriver;
/// use messaging::{ErrorKind, OutboundMessage};
/// use messaging_memory::{Fault, MemoryDriver};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), messaging::Error> {
/// let driver = MemoryDriver::new();
/// driver.connect().await?;
/// driver.fail(Fault::publish("orders").error_after(ErrorKind::Unconfirmed));
///
/// let lost_confirm = driver.publish(OutboundMessage::raw("orders", "{}")).await;
/// assert_eq!(lost_confirm.unwrap_err().kind(), ErrorKind::Unconfirmed);
/// assert_eq!(driver.pending("orders"), 1); // it is stored all the same
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault does nothing until it is given to `MemoryDriver::fail`"]
pub struct Fault {
    operation: Operation,
    queue: Option<Arc<str>>,
    effect: Effect,
    skip: u32,
    times: Option<u32>,
}

/// What is done with the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Connect,
    Subscribe,
    Publish,
    Ack,
    Retry,
    Release,
}

/// What goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
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

    /// A settlement that ends a message: ack, discard or dead-letter.
    pub fn ack() -> Self {
        Self::new(Operation::Ack)
    }

    /// A settlement that asks for a retry.
    pub fn retry() -> Self {
        Self::new(Operation::Retry)
    }

    /// A settlement that gives a message back.
    pub fn release() -> Self {
        Self::new(Operation::Release)
    }

    /// Only on that queue.
    pub fn on_queue(mut self, queue: impl Into<Arc<str>>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// It fails before it does anything; the message of a settlement comes back, its attempt unchanged.
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

    /// It hangs until [`MemoryDriver::release_hung`](crate::MemoryDriver::release_hung), then it is done; `close` ends it
    /// with an error.
    pub fn hang(self) -> Self {
        self.effect(Effect::Hang)
    }

    /// The connection is lost while it is under way.
    ///
    /// A settlement is not carried out: its message is delivered again, and the run counts as an attempt. A publish is
    /// stored and fails as `Unconfirmed`. `connect` and `subscribe` fail as `Connection`.
    pub fn crash(self) -> Self {
        self.effect(Effect::Crash)
    }

    /// It is done, and a copy too many is stored: a published message comes twice, a settled one once more.
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

    fn hits(&mut self, operation: Operation, queue: Option<&str>) -> bool {
        if self.operation != operation || self.queue.as_deref().is_some_and(|only| Some(only) != queue) {
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

impl Operation {
    pub(crate) fn of(settlement: &Settlement) -> Self {
        match settlement {
            Settlement::Ack | Settlement::Discard(_) | Settlement::DeadLetter(_) => Self::Ack,
            Settlement::Retry { .. } => Self::Retry,
            Settlement::Release { .. } => Self::Release,
        }
    }
}

/// The faults that were asked for, in that order.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Nearly always there are none, and then no lock is taken.
    any: AtomicBool,
    rules: Mutex<Vec<Fault>>,
}

impl Faults {
    pub(crate) fn add(&self, fault: Fault) {
        let mut rules = lock(&self.rules);
        rules.push(fault);
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        let mut rules = lock(&self.rules);
        rules.clear();
        self.any.store(false, Ordering::Release);
    }

    /// What goes wrong with this one, by the first fault that it meets.
    #[inline]
    pub(crate) fn meet(&self, operation: Operation, queue: Option<&str>) -> Option<Effect> {
        if self.any.load(Ordering::Acquire) { self.look(operation, queue) } else { None }
    }

    #[cold]
    fn look(&self, operation: Operation, queue: Option<&str>) -> Option<Effect> {
        let mut rules = lock(&self.rules);
        let effect = rules.iter_mut().find_map(|rule| rule.hits(operation, queue).then_some(rule.effect));
        rules.retain(|rule| rule.times != Some(0));
        self.any.store(!rules.is_empty(), Ordering::Release);
        effect
    }
}

/// The error of a fault.
pub(crate) fn injected(kind: ErrorKind, what: &str, queue: &str) -> Error {
    Error::new(kind, format!("{what} `{queue}` failed by an injected fault"))
}
