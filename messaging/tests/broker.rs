//! Publishing: what arrives, what is refused and why, and what health says.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use messaging::driver::COPY_RESERVE;
use messaging::prelude::*;
use messaging::{Error, ErrorKind, HeaderValue, QueueState};
use messaging_memory::capabilities::{KAFKA, SQS};
use messaging_memory::{Fault, MemoryDriver};
use support::{Log, Rig};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Deserialize, Serialize)]
struct Order {
    id: u64,
}

#[consumer("orders")]
struct Orders {
    log: Arc<Log>,
    broker: MessageBroker,
}

#[handlers]
impl Orders {
    #[on_message("created")]
    async fn created(&self, order: Unvalidated<Order>, message: &InboundMessage) {
        let key = message.key.as_deref().map(String::from_utf8_lossy);
        let (id, kind, content) = (&message.id, message.message_type(), &message.content_type);
        self.log.note(format!("{} {id} {kind:?} {content:?} {key:?} {:?}", order.id, message.headers));
    }

    #[on_message("bytes")]
    async fn bytes(&self, message: &InboundMessage) {
        self.log.note(format!("{:?} {:?} {:?}", message.body, message.content_type, message.message_type()));
    }

    #[on_message("fails")]
    #[retry(attempts = 2, delay = 1s)]
    async fn fails(&self) -> Result<(), &'static str> {
        Err("no")
    }

    #[on_message("discarded")]
    #[retry(false)]
    async fn discarded(&self) -> Result<(), &'static str> {
        Err("no")
    }

    #[on_message("waits")]
    async fn waits(&self, signal: CancellationToken) {
        signal.cancelled().await;
        self.log.note(format!("{:?}", self.broker.publish("late", &1).await.is_ok()));
    }

    #[on_message]
    async fn any(&self, message: &InboundMessage) {
        self.log.note(message.id.as_str());
    }

    #[on_error]
    async fn failed(&self, message: &InboundMessage) -> OnError {
        if message.message_type() == Some("discarded") { OnError::Discard } else { OnError::DeadLetter }
    }
}

async fn rig() -> (Rig, Arc<MessageBroker>) {
    rig_with(MemoryDriver::new(), |options| options).await
}

async fn rig_with(
    driver: MemoryDriver,
    options: impl FnOnce(MessagingOptions) -> MessagingOptions,
) -> (Rig, Arc<MessageBroker>) {
    let rig = Rig::start_with::<Orders>(driver, options).await;
    let broker = rig.app.get::<MessageBroker>().await.unwrap();
    (rig, broker)
}

fn kind_and_text(error: &Error) -> (ErrorKind, String) {
    (error.kind(), error.chain())
}

#[tokio::test(start_paused = true)]
async fn what_is_published_arrives_with_all_that_was_said_about_it() {
    let (rig, broker) = rig().await;
    let id = broker
        .publish("orders", &Order { id: 7 })
        .message_type("created")
        .header("tenant", "acme")
        .headers([("a", "1"), ("tenant", "umbrella")])
        .header("bytes", HeaderValue::from_bytes(b"\xff"))
        .key("customer")
        .id("o-1")
        .await
        .unwrap();
    assert_eq!(id, "o-1");
    rig.driver.idle().await;
    let headers = r#"Headers([("a", "1"), ("tenant", "umbrella"), ("bytes", b"\xff")])"#;
    let expected = format!(r#"7 o-1 Some("created") Some("application/json") Some("customer") {headers}"#);
    assert_eq!(rig.log.lines(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn every_publish_has_an_id_of_its_own_which_is_the_one_that_arrives() {
    let (rig, broker) = rig().await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(broker.publish("orders", &0).await.unwrap().to_string());
    }
    rig.driver.idle().await;
    assert_eq!(rig.log.lines(), ids);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn bytes_are_published_as_they_are_and_an_empty_type_is_none() {
    let (rig, broker) = rig().await;
    broker.publish_raw("orders", &b"\x00\xff"[..]).message_type("bytes").content_type("image/png").await.unwrap();
    broker.publish_raw("orders", "").message_type("bytes").await.unwrap();
    broker.publish_raw("orders", "{}").message_type("").id("untyped").await.unwrap();
    rig.driver.idle().await;
    let expected = [r#"b"\0\xff" Some("image/png") Some("bytes")"#, r#"b"" None Some("bytes")"#, "untyped"];
    assert_eq!(rig.log.lines(), expected);
    assert_eq!(rig.driver.published("orders")[2].message_type, None);
}

#[tokio::test(start_paused = true)]
async fn names_of_any_length_and_a_value_of_nothing_are_carried() {
    let (rig, broker) = rig().await;
    let long = "n".repeat(300);
    broker.publish_raw("orders", "").message_type(&long).id(long.clone()).header(&long, "").await.unwrap();
    rig.driver.idle().await;
    assert_eq!(rig.log.lines(), [&*long]);
    assert_eq!(rig.driver.published("orders")[0].headers.text(&long), Some(""));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_before_it_is_awaited() {
    let (rig, broker) = rig().await;
    drop(broker.publish("orders", &0));
    let publish = broker.publish("orders", &1);
    sleep(DAY).await;
    assert!(rig.driver.published("orders").is_empty());
    publish.await.unwrap();
    assert_eq!(rig.driver.published("orders").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_publish_is_confirmed_at_once_and_delivered_on_the_dot() {
    for delay in [Duration::from_millis(1), 90 * SECOND, 30 * DAY] {
        let (rig, broker) = rig().await;
        let started = Instant::now();
        broker.publish("orders", &0).delay(delay).id("delayed").await.unwrap();
        broker.publish("orders", &0).id("at once").await.unwrap();
        assert_eq!(started.elapsed(), Duration::ZERO);
        rig.driver.idle().await;
        assert_eq!(rig.log.lines(), ["at once", "delayed"]);
        assert_eq!(rig.driver.timeline("orders")[1].at - started, delay);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_driver_is_refused_before_it_is_asked() {
    for (capabilities, longest, allowed) in
        [(SQS, 900 * SECOND, "can delay a publish by at most 15min"), (KAFKA, Duration::ZERO, "cannot delay a publish")]
    {
        let (rig, broker) = rig_with(MemoryDriver::emulating(capabilities), |options| options).await;
        broker.publish("orders", &0).delay(longest).await.unwrap();
        let asked = longest + Duration::from_millis(1);
        let error = broker.publish("orders", &0).delay(asked).await.unwrap_err();
        let (kind, text) = kind_and_text(&error);
        assert_eq!(kind, ErrorKind::Unsupported);
        assert!(!error.is_transient());
        assert!(
            text.starts_with("not supported by this driver: cannot publish to `orders` with a delay of "),
            "{text}"
        );
        assert!(text.ends_with(&format!(": driver `memory, emulating` {allowed}")), "{text}");
        assert_eq!(rig.driver.published("orders").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_that_the_library_keeps_for_itself_is_refused_in_any_case() {
    let (rig, broker) = rig().await;
    for name in ["x-znight-attempt", "X-ZNIGHT-Attempt", "x-Znight-", "x-znight-my-own"] {
        let error = broker.publish("orders", &0).header(name, "5").await.unwrap_err();
        let expected = format!(
            "wrong configuration: cannot publish to `orders`: header `{name}` starts with `x-znight-`, which the library keeps for itself"
        );
        assert_eq!(kind_and_text(&error), (ErrorKind::Config, expected));
    }
    for name in ["x-znight", "x-znighté", "z-x-znight-attempt", "x-acme-attempt", ""] {
        broker.publish("orders", &0).header(name, "5").await.unwrap();
    }
    assert_eq!(rig.driver.published("orders").len(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_prefix_of_the_librarys_headers_is_an_option() {
    let (rig, broker) = rig_with(MemoryDriver::new(), |options| options.prefix("acme")).await;
    let publish = || broker.publish("orders", &0).message_type("fails");
    assert_eq!(publish().header("x-acme-attempt", "1").await.unwrap_err().kind(), ErrorKind::Config);
    publish().header("x-znight-attempt", "9").await.unwrap();
    rig.driver.idle().await;
    let dead = rig.driver.dead_letters("orders");
    let headers: Vec<_> = dead[0].headers.iter().map(|(name, value)| (name, value.as_text().unwrap())).collect();
    let expected = [
        ("x-znight-attempt", "9"),
        ("x-acme-dead-letter-reason", "exhausted"),
        ("x-acme-original-queue", "orders"),
        ("x-acme-attempts", "2"),
        ("x-acme-error", "no"),
    ];
    assert_eq!(headers, expected);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_published_is_told_before_the_broker_is_asked() {
    let (rig, broker) = rig().await;
    rig.driver.fail(Fault::any_publish().error(ErrorKind::Connection).always());
    let error = broker.publish("", &0).await.unwrap_err();
    let text = "wrong configuration: cannot publish to a queue without a name".to_owned();
    assert_eq!(kind_and_text(&error), (ErrorKind::Config, text));
    let unwritable = BTreeMap::from([([1_u8], 1)]);
    let error = broker.publish("orders", &unwritable).await.unwrap_err();
    let text = "cannot be encoded: cannot write the payload as JSON: key must be a string".to_owned();
    assert_eq!(kind_and_text(&error), (ErrorKind::Codec, text));
    assert!(!error.is_transient());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_leaves_no_room_for_a_copys_headers_is_too_large() {
    let size = 10_000;
    let capabilities =
        messaging::Capabilities { max_message_size: Some(size), ..messaging_memory::capabilities::MEMORY };
    let (rig, broker) = rig_with(MemoryDriver::emulating(capabilities), |options| options).await;
    let room = size - COPY_RESERVE - "id".len();
    broker.publish_raw("orders", vec![0; room]).id("id").await.unwrap();
    let error = broker.publish_raw("orders", vec![0; room + 1]).id("id").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(!error.is_transient());
    assert_eq!(rig.driver.published("orders").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn surely_not_stored_is_told_apart_from_maybe_stored() {
    let (rig, broker) = rig().await;
    let publish = |id: &str| broker.publish("elsewhere", &0).id(id);
    let elsewhere = |fault: fn(Fault) -> Fault| rig.driver.fail(fault(Fault::publish("elsewhere")));
    elsewhere(|fault| fault.error(ErrorKind::Rejected));
    elsewhere(|fault| fault.error_after(ErrorKind::Unconfirmed));
    elsewhere(|fault| fault.error(ErrorKind::Unroutable));
    elsewhere(|fault| fault.error(ErrorKind::Config));
    let mut errors = Vec::new();
    for id in ["rejected", "unconfirmed", "unroutable", "config"] {
        let error = publish(id).await.unwrap_err();
        errors.push((error.kind(), error.is_transient()));
    }
    let expected = [
        (ErrorKind::Rejected, true),
        (ErrorKind::Unconfirmed, true),
        (ErrorKind::Unroutable, true),
        (ErrorKind::Config, false),
    ];
    assert_eq!(errors, expected);
    assert_eq!(publish("fine").await.unwrap(), "fine");
    let stored: Vec<_> = rig.driver.published("elsewhere").iter().map(|message| message.id.to_string()).collect();
    assert_eq!(stored, ["unconfirmed", "fine"]);
}

#[tokio::test(start_paused = true)]
async fn a_publish_that_hangs_holds_up_no_other_and_may_be_given_up() {
    let (rig, broker) = rig().await;
    rig.driver.fail(Fault::publish("stuck").hang().always());
    assert!(tokio::time::timeout(SECOND, broker.publish("stuck", &0)).await.is_err());
    let (stuck, fine) =
        tokio::join!(tokio::time::timeout(SECOND, broker.publish("stuck", &0)), broker.publish("orders", &0));
    assert!(stuck.is_err());
    assert!(fine.is_ok());
    rig.driver.release_hung();
    rig.driver.heal();
    broker.publish("stuck", &1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn publishing_too_early_or_too_late_is_closed_at_once() {
    let driver = MemoryDriver::new();
    let log = Arc::new(Log::default());
    let closing = Arc::clone(&log);
    struct Resource(MessageBroker);
    let app = support::builder::<Orders>(MessagingOptions::new(driver.clone()), &log)
        .factory(Resource)
        .on_close(move |resource: Arc<Resource>| {
            let log = Arc::clone(&closing);
            async move { log.note(format!("{:?}", resource.0.publish("late", &1).await.unwrap_err().kind())) }
        })
        .create()
        .await
        .unwrap();
    let broker = app.get::<MessageBroker>().await.unwrap();
    app.get::<Resource>().await.unwrap();
    let early = broker.publish("orders", &0).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::Closed);
    app.start().await.unwrap();
    broker.publish("orders", &0).message_type("waits").await.unwrap();
    sleep(Duration::from_millis(1)).await;
    let started = Instant::now();
    app.stop().await;
    // A handler that is still awaited may publish; what closes after the plugins may not.
    assert_eq!(log.lines(), ["true", "Closed"]);
    let late = broker.publish("orders", &0).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Closed);
    assert!(!late.is_transient());
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(driver.published("late").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn health_counts_what_became_of_messages() {
    let (rig, broker) = rig().await;
    let publish = async |message_type: &str| {
        broker.publish_raw("orders", "{}").message_type(message_type).await.unwrap();
        rig.driver.idle().await;
    };
    publish("any").await;
    publish("any").await;
    publish("fails").await;
    publish("discarded").await;
    rig.driver.fail(Fault::publish("orders.dead-letter").error(ErrorKind::Rejected));
    publish("fails").await;
    rig.driver.fail(Fault::ack().error(ErrorKind::Connection));
    publish("any").await;
    rig.driver.disconnect();
    let health = broker.health();
    assert!(health.ready);
    let [queue] = &health.queues[..] else { panic!("{health:?}") };
    assert_eq!((&*queue.queue, &*queue.consumer, queue.state), ("orders", "Orders", QueueState::Consuming));
    assert_eq!(queue.last_error.as_deref(), Some("no connection: the connection to the memory broker was lost"));
    let counts = queue.counts;
    // `any` thrice and once more, `fails` twice twice and once more for the copy, `discarded` once.
    assert_eq!(counts.received, 4 + 5 + 1);
    assert_eq!((counts.acked, counts.retried, counts.released), (3, 2, 1));
    assert_eq!((counts.dead_lettered, counts.discarded), (2, 1));
    assert_eq!((counts.settlements_failed, counts.copies_failed, counts.faults), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn health_is_ready_from_start_to_stop() {
    let driver = MemoryDriver::new();
    let log = Arc::new(Log::default());
    let app = support::builder::<Orders>(MessagingOptions::new(driver.clone()), &log).create().await.unwrap();
    let broker = app.get::<MessageBroker>().await.unwrap();
    let state = || (broker.health().ready, broker.health().queues[0].state);
    assert_eq!(state(), (false, QueueState::Starting));
    app.start().await.unwrap();
    assert_eq!(state(), (true, QueueState::Consuming));
    app.stop().await;
    assert_eq!(state(), (false, QueueState::Stopped));
}
