//! The memory driver with one thing wrong, around its contract.
#![allow(unreachable_pub)]

mod lane;
mod settler;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use messaging::driver::{DriverEvents, Lane, SubscribeOptions, Subscription, SubscriptionControl};
use messaging::{Capabilities, Error, Headers, MessageId, MessagingDriver, OutboundMessage};
use messaging_memory::MemoryDriver;
use messaging_testkit::conformance::{Client, TestBroker, Timing};
use tokio_util::sync::CancellationToken;

use lane::{Control, MutantLane};
use settler::Tap;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    Nothing,
    AcksOnReceipt,
    AcksReleases,
    AcksRetries,
    BlocksItsThread,
    ChangesItsCapabilities,
    ChargesReleases,
    ChargesRetriesTwice,
    CloseHangs,
    ClosesAndSaysItIsOurs,
    ConfirmsCopiesWithoutStoring,
    DropsEverySeventh,
    FlushesNothing,
    ForgetsCrashes,
    ForgetsItsWaker,
    ForgetsTheAttempt,
    GivesMoreThanAsked,
    HandsOutAfterStop,
    IgnoresPublishDelays,
    IgnoresRetryDelays,
    KeepsDroppedSettlers,
    LosesHeaders,
    NeverHealsOnceCut,
    NeverTells,
    OneLaneFewer,
    OneRefusalRefusesAll,
    OneStopStopsAll,
    PanicsInPublish,
    PublishesAfterClose,
    PublishesTwice,
    ReadsBytesAsText,
    ReceivesUnasked,
    SilentlyHealed,
    StopsWithoutASignal,
    StopsWithoutAWord,
    SwapsNeighbours,
    TakesWhatIsTooLarge,
    TellsFailuresAsDone,
    TellsTwice,
    WaitsOutRetriesAtAStop,
}

/// The memory driver, mutated.
#[derive(Debug)]
pub struct Mutant {
    inner: MemoryDriver,
    mutation: Mutation,
    connected: AtomicBool,
    published: AtomicUsize,
    cut: Arc<AtomicBool>,
    controls: Arc<Mutex<Vec<Stoppable>>>,
}

/// A subscription that was opened.
pub struct Stoppable(Arc<dyn SubscriptionControl>);

impl std::fmt::Debug for Stoppable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stoppable")
    }
}

/// The queues that all clients of one mutated broker share.
pub struct Broker {
    pub queues: MemoryDriver,
    pub mutation: Mutation,
    pub timing: Timing,
}

impl TestBroker for Broker {
    fn client(&self) -> Client {
        let (driver, cut) = (self.queues.another_process(), Arc::<AtomicBool>::default());
        let mutant = Mutant {
            inner: driver.clone(),
            mutation: self.mutation,
            connected: AtomicBool::new(false),
            published: AtomicUsize::new(0),
            cut: Arc::clone(&cut),
            controls: Arc::default(),
        };
        Client::new(mutant).cut_by(move || {
            cut.store(true, Ordering::SeqCst);
            driver.disconnect();
            std::future::ready(())
        })
    }

    fn timing(&self) -> Timing {
        self.timing
    }
}

#[async_trait]
impl MessagingDriver for Mutant {
    fn name(&self) -> &'static str {
        "mutant"
    }

    fn capabilities(&self) -> Capabilities {
        let can = self.inner.capabilities();
        match self.mutation {
            Mutation::ChangesItsCapabilities if self.connected.load(Ordering::SeqCst) => {
                Capabilities { max_publish_delay: Duration::from_secs(60), ..can }
            }
            Mutation::TakesWhatIsTooLarge | Mutation::OneRefusalRefusesAll => {
                Capabilities { max_message_size: Some(10_000), ..can }
            }
            _ => can,
        }
    }

    async fn connect(&self) -> Result<(), Error> {
        self.inner.connect().await?;
        self.connected.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn subscribe(&self, mut options: SubscribeOptions) -> Result<Subscription, Error> {
        let tap = Arc::new(Tap::new(Arc::clone(&options.events), self.mutation));
        options.events = Arc::clone(&tap) as Arc<dyn DriverEvents>;
        if self.mutation == Mutation::StopsWithoutASignal {
            options.stopping = Arc::new(CancellationToken::new());
        }
        let Subscription { mut lanes, control } = self.inner.subscribe(options).await?;
        if self.mutation == Mutation::OneLaneFewer && lanes.len() > 1 {
            lanes.pop();
        }
        let stoppable = Stoppable(Arc::clone(&control));
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).push(stoppable);
        let all = Arc::clone(&self.controls);
        let stopped = Arc::<AtomicBool>::default();
        let lane = |inner| {
            let stopped = Arc::clone(&stopped);
            let (tap, cut) = (Arc::clone(&tap), Arc::clone(&self.cut));
            Box::new(MutantLane::new(self.mutation, inner, tap, cut, stopped)) as Box<dyn Lane>
        };
        let lanes = lanes.into_iter().map(lane).collect();
        let control = Control { mutation: self.mutation, inner: control, all, tap, stopped: Arc::clone(&stopped) };
        Ok(Subscription { lanes, control: Arc::new(control) })
    }

    async fn publish(&self, mut message: OutboundMessage) -> Result<MessageId, Error> {
        let id = message.id.clone();
        let number = self.published.fetch_add(1, Ordering::SeqCst) + 1;
        match self.mutation {
            Mutation::BlocksItsThread => loop {
                std::thread::park();
            },
            Mutation::PanicsInPublish => std::panic::resume_unwind(Box::new("the driver is broken")),
            Mutation::ConfirmsCopiesWithoutStoring if message.is_copy() => return Ok(id),
            Mutation::DropsEverySeventh if number.is_multiple_of(7) => return Ok(id),
            Mutation::LosesHeaders => message.headers = Headers::new(),
            Mutation::ReadsBytesAsText => message.body = String::from_utf8_lossy(&message.body).into_owned().into(),
            Mutation::IgnoresPublishDelays => message = message.delay(Duration::ZERO),
            Mutation::PublishesTwice => _ = self.inner.publish(message.clone()).await?,
            Mutation::OneRefusalRefusesAll => {
                let refuse = || Err(Error::new(messaging::ErrorKind::TooLarge, "one of these is too large"));
                if message.size() > 10_000 {
                    self.cut.store(true, Ordering::SeqCst);
                    return refuse();
                }
                // Those that are sent beside it wait for the same answer.
                tokio::task::yield_now().await;
                if self.cut.load(Ordering::SeqCst) {
                    return refuse();
                }
            }
            _ => (),
        }
        match self.inner.publish(message).await {
            Err(_) if self.mutation == Mutation::PublishesAfterClose => Ok(id),
            published => published,
        }
    }

    async fn close(&self) -> Result<(), Error> {
        if self.mutation == Mutation::CloseHangs {
            std::future::pending::<()>().await;
        }
        self.inner.close().await
    }

    fn dead_letter_name(&self, queue: &str) -> String {
        self.inner.dead_letter_name(queue)
    }
}
