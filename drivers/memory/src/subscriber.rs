use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use messaging::driver::{DriverEvents, Ended, Lane, SubscribeOptions, Subscription, SubscriptionControl};
use messaging::{Delivery, Error};
use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::desk::Polled;
use crate::queue::Queue;

/// One subscription: what its lanes and its settlers share.
pub(crate) struct Intake {
    pub(crate) queue: Arc<Queue>,
    pub(crate) connection: u64,
    pub(crate) events: Arc<dyn DriverEvents>,
    pub(crate) stopping: Arc<CancellationToken>,
    stopped: AtomicBool,
    lanes: AtomicUsize,
}

impl Intake {
    /// Whether receiving was stopped; true only for those who see it under the queue's lock.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// To be called under the queue's lock.
    pub(crate) fn note_stopped(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Where a consumer's dead letters go, and the header that tells whose they are.
#[derive(Clone, Debug)]
pub(crate) struct DeadLetters {
    pub(crate) queue: Option<Arc<str>>,
    pub(crate) origin: Arc<str>,
}

/// Opens a subscription of that queue.
pub(crate) fn open(queue: Arc<Queue>, connection: u64, options: &SubscribeOptions) -> Subscription {
    let intake = Arc::new(Intake {
        queue,
        connection,
        events: Arc::clone(&options.events),
        stopping: Arc::clone(&options.stopping),
        stopped: AtomicBool::new(false),
        lanes: AtomicUsize::new(options.concurrency),
    });
    let dead_letters =
        DeadLetters { queue: options.dead_letter.clone(), origin: Arc::from(options.names.original_queue()) };
    let numbers = intake.queue.open(&intake, dead_letters, options.concurrency);
    let lane = |number| {
        let intake = Arc::clone(&intake);
        Box::new(MemoryLane { intake, number, waits: false, timer: Box::pin(None) }) as Box<dyn Lane>
    };
    Subscription { lanes: numbers.map(lane).collect(), control: Arc::new(Control(intake)) }
}

/// A worker's intake; it waits with a waker at the queue and, where something is delayed, with a timer of its own.
struct MemoryLane {
    intake: Arc<Intake>,
    number: u64,
    /// Whether the queue may have a waker of this lane.
    waits: bool,
    timer: Pin<Box<Option<Sleep>>>,
}

impl MemoryLane {
    fn poll_timer(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.timer.as_mut();
        if timer.as_ref().get_ref().as_ref().is_none_or(|sleep| sleep.deadline() != due) {
            timer.set(Some(sleep_until(due)));
        }
        timer.as_pin_mut().map_or(Poll::Ready(()), |sleep| sleep.poll(cx))
    }

    fn disarm(&mut self) {
        if self.timer.is_some() {
            self.timer.as_mut().set(None);
        }
    }
}

impl Lane for MemoryLane {
    fn poll_next(&mut self, cx: &mut Context<'_>, max: usize, out: &mut VecDeque<Delivery>) -> Poll<Result<(), Ended>> {
        let budget = ready!(coop::poll_proceed(cx));
        loop {
            let polled = self.intake.queue.poll(&self.intake, self.number, &mut self.waits, cx.waker(), max, out);
            match polled {
                Polled::Nothing { next_due: Some(due) } => {
                    if self.poll_timer(due, cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Polled::Nothing { next_due: None } => {
                    self.disarm();
                    return Poll::Pending;
                }
                Polled::Took => {
                    self.disarm();
                    budget.made_progress();
                    return Poll::Ready(Ok(()));
                }
                Polled::Ended => {
                    self.disarm();
                    return Poll::Ready(Err(Ended::Stopped));
                }
            }
        }
    }
}

impl Drop for MemoryLane {
    fn drop(&mut self) {
        self.intake.queue.leave(self.number);
        // Without a lane nobody consumes, whether that was asked for or not.
        if self.intake.lanes.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.intake.queue.stop(&self.intake);
        }
    }
}

/// What the lanes of a subscription share, as the plugin sees it.
struct Control(Arc<Intake>);

#[async_trait]
impl SubscriptionControl for Control {
    fn stop_receiving(&self) {
        self.0.queue.stop(&self.0);
    }

    async fn flush(&self) -> Result<(), Error> {
        let Self(intake) = self;
        loop {
            let mut released = pin!(intake.queue.common.gate.changed());
            released.as_mut().enable();
            match intake.queue.held(intake) {
                None => return Ok(()),
                Some(None) => released.await,
                // Nobody else may be looking at the clock any more.
                Some(Some(due)) => drop(timeout_at(due, released).await),
            }
        }
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("queue", &self.queue.name).finish_non_exhaustive()
    }
}
