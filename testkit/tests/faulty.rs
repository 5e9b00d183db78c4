//! What a faulty driver does when it is asked to fail.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::prelude::*;
use messaging::{Counts, ErrorKind, MessagingDriver, OutboundMessage, Settlement};
use messaging_memory::MemoryDriver;
use messaging_testkit::{Fault, FaultyDriver, TestApp};
use tokio::time::Instant;

#[derive(Default)]
struct Runs(Mutex<Vec<u32>>);

#[consumer("orders")]
struct Orders {
    runs: Arc<Runs>,
}

#[handlers]
impl Orders {
    #[on_message]
    #[retry(attempts = 3, delay = 1s)]
    async fn run(&self, attempt: Attempt) -> Result<(), Failure> {
        self.runs.0.lock().unwrap().push(attempt.get());
        if attempt.get() < 2 { Err("not yet".into()) } else { Ok(()) }
    }
}

struct Rig {
    memory: MemoryDriver,
    faulty: FaultyDriver,
    runs: Arc<Runs>,
    app: TestApp,
}

impl Rig {
    async fn start(faults: impl IntoIterator<Item = Fault>) -> Self {
        let memory = MemoryDriver::new();
        let faulty = FaultyDriver::new(memory.clone());
        faults.into_iter().for_each(|fault| faulty.fail(fault));
        let runs = Arc::<Runs>::default();
        let plugin = MessagingPlugin::configure(faulty.clone()).consumer::<Orders>();
        let app = TestApp::start(Application::builder().shared(Arc::clone(&runs)).plugin(plugin)).await;
        memory.send(OutboundMessage::raw("orders", "{}"));
        Self { memory, faulty, runs, app }
    }

    fn runs(&self) -> Vec<u32> {
        self.runs.0.lock().unwrap().clone()
    }

    async fn counts(&self) -> Counts {
        self.app.get::<MessageBroker>().await.unwrap().health().queues[0].counts
    }
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_fails_releases_the_message_and_is_told_as_failed() {
    let rig = Rig::start([Fault::retry().error(ErrorKind::Connection)]).await;
    rig.memory.idle().await;
    assert_eq!(rig.runs(), [1, 1, 2]);
    assert_eq!(rig.counts().await.settlements_failed, 1);
    rig.app.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_settlement_whose_answer_is_lost_is_done() {
    let rig = Rig::start([Fault::ack().error_after(ErrorKind::Unconfirmed)]).await;
    rig.memory.idle().await;
    assert_eq!(rig.runs(), [1, 2]);
    let counts = rig.counts().await;
    assert_eq!((counts.settlements_failed, counts.acked), (1, 0));
    rig.app.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_settlement_can_be_late_and_a_stop_waits_for_it() {
    let rig = Rig::start([Fault::ack().delay(Duration::from_secs(3))]).await;
    let begun = Instant::now();
    while rig.runs() != [1, 2] {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(rig.memory.pending("orders"), 1);
    rig.app.stop().await;
    assert!(begun.elapsed() >= Duration::from_secs(4), "the retry took 1 s, the ack 3: {:?}", begun.elapsed());
    assert_eq!(rig.memory.settlements("orders").last(), Some(&Settlement::Ack));
    assert_eq!(rig.memory.pending("orders"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_hangs_goes_on_when_it_is_let_go_and_ends_at_a_close() {
    let rig = Rig::start([Fault::settlement().hang()]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((rig.runs(), rig.memory.pending("orders")), (vec![1], 1));
    rig.faulty.release_hung();
    rig.memory.idle().await;
    assert_eq!(rig.runs(), [1, 2]);
    rig.faulty.fail(Fault::ack().hang());
    rig.memory.send(OutboundMessage::raw("orders", "{}"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    rig.app.stop().await;
    assert_eq!(rig.memory.pending("orders"), 1, "what hangs at a close is given back");
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_takes_back_what_runs_and_is_told() {
    let rig = Rig::start([Fault::retry().crash()]).await;
    rig.memory.idle().await;
    // The run under which the connection was lost counts.
    assert_eq!(rig.runs(), [1, 2]);
    let counts = rig.counts().await;
    assert_eq!((counts.settlements_failed, counts.faults, counts.retried), (1, 1, 0));
    rig.app.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_can_be_given_back_unseen_or_come_twice() {
    let rig = Rig::start([Fault::delivery(), Fault::delivery().duplicate()]).await;
    rig.memory.idle().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Given back, then twice; of the two, only the real one is retried.
    assert_eq!(rig.runs(), [1, 1, 2]);
    rig.app.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_publish_fails_before_or_after_it_is_stored_or_is_stored_twice() {
    let memory = MemoryDriver::new();
    let faulty = FaultyDriver::new(memory.clone());
    faulty.connect().await.unwrap();
    let publish = async || faulty.publish(OutboundMessage::raw("orders", "{}")).await.map_err(|error| error.kind());
    faulty.fail(Fault::publish("invoices").always());
    faulty.fail(Fault::publish("orders").after(1).error(ErrorKind::Rejected));
    faulty.fail(Fault::any_publish().after(1).error_after(ErrorKind::Unconfirmed));
    faulty.fail(Fault::any_publish().after(1).duplicate());
    faulty.fail(Fault::any_publish().after(1).crash());
    let mut stored = Vec::new();
    for _ in 0..6 {
        let result = publish().await.err();
        stored.push((result, memory.pending("orders")));
    }
    let (rejected, unconfirmed) = (Some(ErrorKind::Rejected), Some(ErrorKind::Unconfirmed));
    assert_eq!(stored, [(None, 1), (rejected, 1), (unconfirmed, 2), (None, 4), (unconfirmed, 5), (None, 6)]);
}

#[tokio::test(start_paused = true)]
async fn connecting_and_subscribing_fail_as_asked() {
    let faulty = FaultyDriver::new(MemoryDriver::new());
    faulty.fail(Fault::connect().times(2));
    for _ in 0..2 {
        assert_eq!(faulty.connect().await.unwrap_err().kind(), ErrorKind::Connection);
    }
    faulty.fail(Fault::connect().delay(Duration::from_secs(5)));
    let begun = Instant::now();
    faulty.connect().await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    faulty.fail(Fault::subscribe().on_queue("orders").error(ErrorKind::Config));
    let plugin = MessagingPlugin::configure(faulty).consumer::<Orders>();
    let app = Application::builder().shared(Arc::<Runs>::default()).plugin(plugin);
    let refused = TestApp::try_start(app).await.unwrap_err().to_string();
    assert!(refused.contains("cannot consume `orders`"), "{refused}");
}
