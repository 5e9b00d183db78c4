//! How the suite behaves: a broker that is not there, and one that can be ended.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use messaging::driver::{Ended, Lane, SubscribeOptions, Subscription};
use messaging::{BoxError, Capabilities, Delivery, Error, ErrorKind, MessageId, MessagingDriver, OutboundMessage};
use messaging_memory::MemoryDriver;
use messaging_testkit::conformance::{BrokerProcess, Client, Outcome, Suite, TestBroker, Timing};

struct Absent;

impl TestBroker for Absent {
    fn client(&self) -> Client {
        panic!("there is no broker to be a client of")
    }

    fn missing(&self) -> Option<String> {
        Some("BROKER_URL is not set".into())
    }
}

#[test]
fn without_a_broker_every_case_is_ignored_with_the_reason() {
    let report = Suite::new("absent", Absent).check();
    let mut cases = 0;
    for (name, outcome) in report.outcomes() {
        assert_eq!(*outcome, Outcome::Ignored("BROKER_URL is not set".into()), "{name}");
        cases += 1;
    }
    assert!(cases > 90, "{cases} cases");
    assert_eq!(report.to_string(), format!("0 passed, 0 failed, {cases} ignored"));
}

#[test]
fn what_the_capabilities_do_not_promise_is_ignored_with_the_reason() {
    let report = Suite::new("memory", Mortal::default()).only("a_publish_delay_beyond_the_longest").check();
    let outcomes: Vec<_> = report.outcomes().collect();
    let reason = Outcome::Ignored("the driver delays a publish as long as asked".into());
    assert_eq!(outcomes, [("memory::p8_same_answer::a_publish_delay_beyond_the_longest_is_unsupported", &reason)]);
}

#[test]
fn a_broker_s_process_is_ended_and_started() {
    for case in ["what_was_confirmed_outlives_the_broker_s_process", "consumes_again_after_the_broker_was_killed"] {
        let broker = Mortal::default();
        let killed = Arc::clone(&broker.life.killed);
        let report = Suite::new("mortal", broker).only(case).check();
        assert_eq!(report.to_string(), "1 passed, 0 failed, 0 ignored");
        assert!(killed.load(Ordering::SeqCst), "{case} ended no process");
    }
}

/// A broker of which only so many clients can be had.
struct Scarce {
    clients: AtomicUsize,
    /// What becomes of those who ask for more.
    beyond: fn() -> Client,
}

impl TestBroker for Scarce {
    fn client(&self) -> Client {
        let left = self.clients.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map_or_else(|_| (self.beyond)(), |_| Client::new(MemoryDriver::new()))
    }

    fn timing(&self) -> Timing {
        Timing::paused().limit(Duration::from_millis(300))
    }
}

fn hang() -> Client {
    loop {
        std::thread::park();
    }
}

fn refuse() -> Client {
    panic!("no more clients")
}

#[test]
fn a_client_that_cannot_be_had_fails_the_case() {
    for (beyond, expected) in [(hang as fn() -> Client, "it did not end within 300ms"), (refuse, "no more clients")] {
        let broker = Scarce { clients: AtomicUsize::new(1), beyond };
        let report = Suite::new("scarce", broker).only("a_confirmed_publish_is_delivered").check();
        let told: Vec<_> = report.failures().map(|(_, what)| what.to_owned()).collect();
        assert!(told.len() == 1 && told[0].contains("P1") && told[0].contains(expected), "{told:?}");
    }
}

#[test]
#[should_panic(expected = "the driver `scarce` cannot be asked what it can do: it did not end within 300ms")]
fn a_driver_that_does_not_say_what_it_can_do_is_named() {
    let _ = Suite::new("scarce", Scarce { clients: AtomicUsize::new(0), beyond: hang }).check();
}

/// A memory broker whose process ends; what it stores outlives it.
#[derive(Default)]
struct Mortal {
    queues: MemoryDriver,
    clients: Mutex<Vec<MemoryDriver>>,
    life: Life,
}

#[derive(Clone, Debug, Default)]
struct Life {
    dead: Arc<AtomicBool>,
    killed: Arc<AtomicBool>,
    waiting: Arc<Mutex<Vec<Waker>>>,
}

impl Life {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TestBroker for Mortal {
    fn client(&self) -> Client {
        let inner = self.queues.another_process();
        self.clients.lock().unwrap().push(inner.clone());
        Client::new(Connected { inner, life: self.life.clone() })
    }

    fn process(&self) -> Option<&dyn BrokerProcess> {
        Some(self)
    }

    fn timing(&self) -> Timing {
        Timing::paused()
    }
}

#[async_trait]
impl BrokerProcess for Mortal {
    async fn kill(&self) -> Result<(), BoxError> {
        self.life.killed.store(true, Ordering::SeqCst);
        self.life.dead.store(true, Ordering::SeqCst);
        self.clients.lock().unwrap().iter().for_each(MemoryDriver::disconnect);
        Ok(())
    }

    async fn start(&self) -> Result<(), BoxError> {
        self.life.dead.store(false, Ordering::SeqCst);
        self.life.waiting().drain(..).for_each(Waker::wake);
        Ok(())
    }
}

/// A connection to a process that can end.
#[derive(Debug)]
struct Connected {
    inner: MemoryDriver,
    life: Life,
}

#[async_trait]
impl MessagingDriver for Connected {
    fn name(&self) -> &'static str {
        "mortal"
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn connect(&self) -> Result<(), Error> {
        self.inner.connect().await
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<Subscription, Error> {
        let Subscription { lanes, control } = self.inner.subscribe(options).await?;
        let lane = |inner| Box::new(MortalLane { inner, life: self.life.clone() }) as Box<dyn Lane>;
        Ok(Subscription { lanes: lanes.into_iter().map(lane).collect(), control })
    }

    async fn publish(&self, message: OutboundMessage) -> Result<MessageId, Error> {
        if self.life.dead.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Connection, "the broker's process has ended"));
        }
        self.inner.publish(message).await
    }

    async fn close(&self) -> Result<(), Error> {
        self.inner.close().await
    }

    fn dead_letter_name(&self, queue: &str) -> String {
        self.inner.dead_letter_name(queue)
    }
}

struct MortalLane {
    inner: Box<dyn Lane>,
    life: Life,
}

impl Lane for MortalLane {
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        out: &mut std::collections::VecDeque<Delivery>,
    ) -> Poll<Result<(), Ended>> {
        if self.life.dead.load(Ordering::SeqCst) {
            self.life.waiting().push(cx.waker().clone());
            return Poll::Pending;
        }
        self.inner.poll_next(cx, max, out)
    }
}
