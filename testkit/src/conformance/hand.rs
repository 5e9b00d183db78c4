use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use messaging::driver::{DriverEvents, Ended, Fault, Lane, Subscription, SubscriptionControl};
use messaging::{Attempt, Delivery, Error, ErrorKind, InboundMessage, Settlement};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::breach::{Breach, Verdict};
use super::stage::Stage;
use super::watched::Watched;

/// What a driver told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tale {
    Settled { id: String, attempt: Attempt, settlement: Settlement, result: Result<(), ErrorKind> },
    Fault { kind: ErrorKind, consuming_stopped: bool },
    Healed,
}

/// Everything that a driver told one subscription.
#[derive(Debug, Default)]
pub(crate) struct Told(pub(crate) Watched<Tale>);

impl DriverEvents for Told {
    fn settled(&self, message: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>) {
        self.0.note(Tale::Settled {
            id: message.id.as_str().to_owned(),
            attempt: message.attempt(),
            settlement: *settlement,
            result: result.map_err(|error| error.kind()),
        });
    }

    fn fault(&self, fault: Fault) {
        self.0.note(Tale::Fault { kind: fault.error.kind(), consuming_stopped: fault.consuming_stopped });
    }

    fn healed(&self) {
        self.0.note(Tale::Healed);
    }
}

/// A subscription that a case consumes by hand, as the engine would.
pub(crate) struct Hand {
    stage: Stage,
    queue: String,
    pub(crate) lanes: Vec<Box<dyn Lane>>,
    pub(crate) control: Arc<dyn SubscriptionControl>,
    pub(crate) told: Arc<Told>,
    pub(crate) stopping: Arc<CancellationToken>,
    taken: VecDeque<Delivery>,
}

impl Hand {
    pub(super) fn new(
        stage: Stage,
        queue: &str,
        subscription: Subscription,
        told: Arc<Told>,
        stopping: Arc<CancellationToken>,
    ) -> Self {
        let Subscription { lanes, control } = subscription;
        Self { stage, queue: queue.to_owned(), lanes, control, told, stopping, taken: VecDeque::new() }
    }

    /// Polls every lane once.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Delivery, Ended>> {
        if let Some(delivery) = self.taken.pop_front() {
            return Poll::Ready(Ok(delivery));
        }
        for lane in &mut self.lanes {
            match lane.poll_next(cx, 1, &mut self.taken) {
                Poll::Ready(Err(ended)) => return Poll::Ready(Err(ended)),
                Poll::Ready(Ok(())) | Poll::Pending => (),
            }
        }
        self.taken.pop_front().map_or(Poll::Pending, |delivery| Poll::Ready(Ok(delivery)))
    }

    /// Waits for the next delivery of any lane.
    #[track_caller]
    pub(crate) fn next(&mut self, what: &str) -> impl Future<Output = Verdict<Delivery>> {
        let (what, caller) = (format!("{what} (from `{}`)", self.queue), Location::caller());
        async move {
            let stage = self.stage.clone();
            match stage.within(&what, poll_fn(|cx| self.poll(cx))).await {
                Ok(Ok(delivery)) => Ok(delivery),
                Ok(Err(ended)) => Err(Breach::at(format!("{what}: the lane has ended: {ended:?}"), caller)),
                Err(_) => {
                    let within = stage.timing().arrival;
                    let told = self.told.0.all();
                    Err(Breach::at(format!("{what}: not within {within:?}; the driver told {told:?}"), caller))
                }
            }
        }
    }

    /// Waits for the next delivery and starts it, as a worker does.
    #[track_caller]
    pub(crate) fn start(&mut self, what: &str) -> impl Future<Output = Verdict<Delivery>> {
        let next = self.next(what);
        async move { next.await.inspect(|delivery| delivery.message.start()) }
    }

    /// Waits for so many deliveries.
    #[track_caller]
    pub(crate) fn take(&mut self, count: usize, what: &str) -> impl Future<Output = Verdict<Vec<Delivery>>> {
        let (what, caller) = (what.to_owned(), Location::caller());
        async move {
            let mut deliveries = Vec::new();
            while deliveries.len() < count {
                let so_far = format!("{what}, {} of {count}", deliveries.len() + 1);
                match self.next(&so_far).await {
                    Ok(delivery) => deliveries.push(delivery),
                    Err(breach) => return Err(Breach::at(breach.to_string(), caller)),
                }
            }
            Ok(deliveries)
        }
    }

    /// Looks for a while whether something is delivered that must not be.
    #[track_caller]
    pub(crate) fn nothing_more(&mut self, what: &str) -> impl Future<Output = Verdict> {
        let (what, caller) = (what.to_owned(), Location::caller());
        async move {
            let quiet = self.stage.timing().quiet;
            match timeout(quiet, poll_fn(|cx| self.poll(cx))).await {
                Err(_) | Ok(Err(Ended::Stopped)) => Ok(()),
                Ok(Err(ended)) => Err(Breach::at(format!("{what}: the lane has ended: {ended:?}"), caller)),
                Ok(Ok(Delivery { message, .. })) => {
                    let (id, attempt) = (&message.id, message.attempt());
                    Err(Breach::at(
                        format!("{what}: yet `{}` delivered `{id}` as attempt {attempt}", self.queue),
                        caller,
                    ))
                }
            }
        }
    }

    /// Settles a delivery, and waits until the driver has told that the broker took it.
    #[track_caller]
    pub(crate) fn settle(&self, delivery: Delivery, settlement: Settlement) -> impl Future<Output = Verdict> + use<'_> {
        let caller = Location::caller();
        async move {
            let (id, what) = (id(&delivery), settlement.name());
            match self.outcome(delivery, settlement).await? {
                Ok(()) => Ok(()),
                Err(kind) => Err(Breach::at(format!("the {what} of `{id}` was told to have failed: {kind:?}"), caller)),
            }
        }
    }

    /// Settles a delivery, and waits until the driver has told what came of it.
    pub(crate) async fn outcome(&self, delivery: Delivery, settlement: Settlement) -> Verdict<Result<(), ErrorKind>> {
        let Delivery { message, settler } = delivery;
        let before = outcomes_of(&self.told.0.all(), &message, settlement).len();
        settler.settle(settlement);
        let what = format!("the {} of `{}` is told", settlement.name(), message.id);
        let enough = |told: &[Tale]| outcomes_of(told, &message, settlement).len() > before;
        let told = self.told.0.until(&self.stage, what, enough).await?;
        outcomes_of(&told, &message, settlement).pop().ok_or_else(|| Breach::new("it was told, and then it was not"))
    }

    pub(crate) async fn ack(&self, delivery: Delivery) -> Verdict {
        self.settle(delivery, Settlement::Ack).await
    }

    /// Asks for the retry that boot would have proven. It is told when it reaches the broker, for a driver that waits in
    /// process when the wait is over; so nothing is waited for here.
    pub(crate) fn retry(&self, delivery: Delivery, delay: std::time::Duration) {
        let attempt = delivery.message.attempt().next();
        delivery.settler.settle(Settlement::Retry { step: self.stage.step(delay), attempt });
    }

    pub(crate) async fn flush(&self) -> Verdict {
        self.stage.succeeds("the settlements are flushed", self.control.flush()).await
    }
}

/// What was told of that settlement of that attempt of that message.
fn outcomes_of(told: &[Tale], message: &InboundMessage, of: Settlement) -> Vec<Result<(), ErrorKind>> {
    let outcome = |tale: &Tale| match tale {
        Tale::Settled { id, attempt, settlement, result } => {
            let same = message.id == *id.as_str() && message.attempt() == *attempt && of == *settlement;
            same.then_some(*result)
        }
        Tale::Fault { .. } | Tale::Healed => None,
    };
    told.iter().filter_map(outcome).collect()
}

/// What a delivery is known by.
pub(crate) fn id(delivery: &Delivery) -> String {
    delivery.message.id.as_str().to_owned()
}

pub(crate) fn ids(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(id).collect()
}

pub(crate) fn attempt(delivery: &Delivery) -> u32 {
    delivery.message.attempt().get()
}

/// Waits for the next delivery of a lane.
pub(crate) async fn next_of(lane: &mut dyn Lane) -> Result<Delivery, Ended> {
    let mut out = VecDeque::new();
    loop {
        poll_fn(|cx| lane.poll_next(cx, 1, &mut out)).await?;
        if let Some(delivery) = out.pop_front() {
            return Ok(delivery);
        }
    }
}
