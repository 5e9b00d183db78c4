use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use messaging::driver::{DriverEvents, Ended, Fault as Trouble, Lane, SubscriptionControl};
use messaging::{Delivery, Error, ErrorKind, InboundMessage};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::driver::Shared;
use super::fault::Effect;
use super::settler::{EventsOf, FaultySettler, Ghost, Tap, Unsettled};

/// One subscription: what was handed out and is not settled yet.
pub(super) struct Intake {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Arc<str>,
    pub(super) events: Arc<dyn DriverEvents>,
    pub(super) tap: Arc<Tap>,
    pub(super) stopping: Arc<CancellationToken>,
    unsettled: Mutex<BTreeMap<u64, Arc<Unsettled>>>,
    next: AtomicU64,
    fewer: Notify,
}

impl Intake {
    pub(super) fn new(
        shared: Arc<Shared>,
        queue: Arc<str>,
        events: Arc<dyn DriverEvents>,
        tap: Arc<Tap>,
        stopping: Arc<CancellationToken>,
    ) -> Self {
        let (unsettled, next, fewer) = Default::default();
        Self { shared, queue, events, tap, stopping, unsettled, next, fewer }
    }

    fn wrap(self: &Arc<Self>, Delivery { message, settler }: Delivery) -> Delivery {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let unsettled = Arc::new(Unsettled::new(Arc::clone(&message), settler));
        self.lock().insert(number, Arc::clone(&unsettled));
        let settler = Box::new(FaultySettler { intake: Arc::clone(self), number, unsettled, settled: false });
        Delivery { message, settler }
    }

    /// A second delivery of the same message.
    fn double(&self, delivery: &Delivery) -> Delivery {
        let of = &delivery.message;
        let message = InboundMessage::new(of.shared_queue(), of.envelope().clone(), of.attempt());
        let message = Arc::new(message.parent(Arc::clone(&self.stopping)));
        let settler = Ghost { events: EventsOf(Arc::clone(&self.events)), message: Arc::clone(&message) };
        Delivery { message, settler: Box::new(settler) }
    }

    pub(super) fn forget(&self, number: u64) {
        self.lock().remove(&number);
        self.fewer.notify_waiters();
    }

    /// Takes back everything that is not settled; what was held up is told as failed.
    pub(super) fn lose(&self, kind: ErrorKind) {
        let lost = std::mem::take(&mut *self.lock());
        for unsettled in lost.into_values() {
            if let Some(settlement) = unsettled.lose() {
                let error = Error::new(kind, "the connection was lost before the settlement was carried out");
                self.events.settled(&unsettled.message, &settlement, Err(error));
            }
        }
        self.fewer.notify_waiters();
    }

    /// Lets go of every settlement that is held up.
    pub(super) fn carry_on(&self) {
        let held: Vec<_> = self.held();
        for (number, unsettled) in held {
            unsettled.carry_on();
            self.forget(number);
        }
    }

    pub(super) fn tell_of_loss(&self) {
        let error = Error::new(ErrorKind::Connection, "the connection was lost by an injected fault");
        self.events.fault(Trouble { error, consuming_stopped: true });
    }

    fn held(&self) -> Vec<(u64, Arc<Unsettled>)> {
        let held = |(number, unsettled): (&u64, &Arc<Unsettled>)| {
            unsettled.is_held().then(|| (*number, Arc::clone(unsettled)))
        };
        self.lock().iter().filter_map(held).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Unsettled>>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn injected(kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, format!("{what} failed by an injected fault"))
}

/// A lane whose deliveries can be lost and doubled.
pub(super) struct FaultyLane {
    pub(super) intake: Arc<Intake>,
    pub(super) inner: Box<dyn Lane>,
    pub(super) doubles: VecDeque<Delivery>,
    pub(super) fresh: VecDeque<Delivery>,
}

impl Lane for FaultyLane {
    fn poll_next(&mut self, cx: &mut Context<'_>, max: usize, out: &mut VecDeque<Delivery>) -> Poll<Result<(), Ended>> {
        if let Some(double) = self.doubles.pop_front() {
            out.push_back(double);
            return Poll::Ready(Ok(()));
        }
        match self.inner.poll_next(cx, max, &mut self.fresh) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(ended)) => {
                self.doubles.clear();
                return Poll::Ready(Err(ended));
            }
            Poll::Ready(Ok(())) => (),
        }
        let before = out.len();
        while let Some(delivery) = self.fresh.pop_front() {
            let effect = self.intake.shared.faults.of_delivery(&self.intake.queue);
            match effect {
                Some(Effect::Error(_)) => drop(delivery),
                Some(Effect::Crash) => {
                    out.push_back(self.intake.wrap(delivery));
                    self.intake.shared.lose_connection();
                }
                Some(Effect::Duplicate) => {
                    self.doubles.push_back(self.intake.double(&delivery));
                    out.push_back(self.intake.wrap(delivery));
                }
                Some(Effect::ErrorAfter(_) | Effect::Delay(_) | Effect::Hang) | None => {
                    out.push_back(self.intake.wrap(delivery));
                }
            }
        }
        if out.len() > before {
            return Poll::Ready(Ok(()));
        }
        // All of them were given back: look again, and let others have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What the lanes of a subscription share.
pub(super) struct FaultyControl {
    pub(super) intake: Arc<Intake>,
    pub(super) inner: Arc<dyn SubscriptionControl>,
}

#[async_trait]
impl SubscriptionControl for FaultyControl {
    fn stop_receiving(&self) {
        self.inner.stop_receiving();
    }

    async fn flush(&self) -> Result<(), Error> {
        loop {
            let mut fewer = pin!(self.intake.fewer.notified());
            fewer.as_mut().enable();
            if self.intake.held().is_empty() {
                break;
            }
            fewer.await;
        }
        self.inner.flush().await
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake")
            .field("queue", &self.queue)
            .field("unsettled", &self.lock().len())
            .finish_non_exhaustive()
    }
}
