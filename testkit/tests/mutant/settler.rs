use std::collections::HashMap;
use std::fmt;
use std::mem::{forget, take};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging::driver::{DriverEvents, Fault};
use messaging::{Error, InboundMessage, Settlement, Settler, Step};

use super::Mutation;

#[derive(Debug)]
pub(super) struct MutantSettler {
    mutation: Mutation,
    /// What the inner driver knows it by.
    message: Arc<InboundMessage>,
    /// What was handed out.
    seen: Arc<InboundMessage>,
    right: Option<Box<dyn Settler>>,
    tap: Arc<Tap>,
}

impl MutantSettler {
    pub(super) fn new(
        mutation: Mutation,
        message: Arc<InboundMessage>,
        seen: Arc<InboundMessage>,
        right: Box<dyn Settler>,
        tap: Arc<Tap>,
    ) -> Self {
        let mut right = Some(right);
        if mutation == Mutation::AcksOnReceipt
            && let Some(right) = right.take()
        {
            tap.swap(&message, None);
            right.settle(Settlement::Ack);
        }
        Self { mutation, message, seen, right, tap }
    }

    /// Settles in its own way, and has it told as it was asked.
    fn settle_as(&mut self, asked: Settlement, done: Settlement) {
        if let Some(right) = self.right.take() {
            self.tap.swap(&self.message, Some((Arc::clone(&self.seen), asked)));
            right.settle(done);
        }
    }
}

impl Settler for MutantSettler {
    fn settle(mut self: Box<Self>, asked: Settlement) {
        if self.seen.has_started() {
            self.message.start();
        }
        self.tap.note(asked);
        let done = match (self.mutation, asked) {
            (Mutation::AcksOnReceipt, _) => {
                self.tap.outer.settled(&self.seen, &asked, Ok(()));
                return;
            }
            (Mutation::AcksReleases, Settlement::Release { .. })
            | (Mutation::AcksRetries, Settlement::Retry { .. }) => Settlement::Ack,
            (Mutation::ChargesReleases, Settlement::Release { delay }) => {
                Settlement::Retry { step: Step::InProcess(delay), attempt: self.message.attempt().next() }
            }
            (Mutation::ChargesRetriesTwice, Settlement::Retry { step, attempt }) => {
                Settlement::Retry { step, attempt: attempt.next() }
            }
            (Mutation::IgnoresRetryDelays, Settlement::Retry { attempt, .. }) => {
                Settlement::Retry { step: Step::InProcess(Duration::ZERO), attempt }
            }
            (Mutation::FlushesNothing, _) => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    self.settle_as(asked, asked);
                });
                return;
            }
            _ => asked,
        };
        self.settle_as(asked, done);
    }

    fn still_ours(&self) -> bool {
        self.mutation == Mutation::ClosesAndSaysItIsOurs || self.right.as_ref().is_some_and(|right| right.still_ours())
    }

    fn identity(&self) -> Option<String> {
        self.right.as_ref().and_then(|right| right.identity())
    }
}

impl Drop for MutantSettler {
    fn drop(&mut self) {
        let Some(right) = self.right.take() else { return };
        if self.seen.has_started() {
            self.message.start();
        }
        match self.mutation {
            Mutation::KeepsDroppedSettlers => forget(right),
            Mutation::ForgetsCrashes => {
                self.tap.swap(&self.message, None);
                right.settle(Settlement::Release { delay: Duration::ZERO });
            }
            _ => drop(right),
        }
    }
}

/// What was asked, and of which message, where anything is to be told.
type Asked = Option<(Arc<InboundMessage>, Settlement)>;

/// Tells what the suite is to be told.
pub(super) struct Tap {
    outer: Arc<dyn DriverEvents>,
    mutation: Mutation,
    /// By the inner message.
    swapped: Mutex<HashMap<usize, Asked>>,
    last_retry: Mutex<Option<Settlement>>,
}

impl Tap {
    pub(super) fn new(outer: Arc<dyn DriverEvents>, mutation: Mutation) -> Self {
        Self { outer, mutation, swapped: Mutex::default(), last_retry: Mutex::default() }
    }

    pub(super) fn last_retry(&self) -> Option<Settlement> {
        take(&mut *lock(&self.last_retry))
    }

    fn note(&self, settlement: Settlement) {
        if matches!(settlement, Settlement::Retry { .. }) {
            *lock(&self.last_retry) = Some(settlement);
        }
    }

    fn swap(&self, message: &Arc<InboundMessage>, told: Asked) {
        lock(&self.swapped).insert(Arc::as_ptr(message) as usize, told);
    }
}

impl DriverEvents for Tap {
    fn settled(&self, message: &Arc<InboundMessage>, _: &Settlement, result: Result<(), Error>) {
        let swapped = lock(&self.swapped).remove(&(Arc::as_ptr(message) as usize));
        let Some((message, settlement)) = swapped.flatten() else { return };
        match self.mutation {
            Mutation::NeverTells => (),
            Mutation::TellsFailuresAsDone => self.outer.settled(&message, &settlement, Ok(())),
            Mutation::TellsTwice => {
                self.outer.settled(&message, &settlement, result);
                self.outer.settled(&message, &settlement, Ok(()));
            }
            _ => self.outer.settled(&message, &settlement, result),
        }
    }

    fn fault(&self, fault: Fault) {
        self.outer.fault(fault);
    }

    fn healed(&self) {
        if self.mutation != Mutation::SilentlyHealed {
            self.outer.healed();
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
