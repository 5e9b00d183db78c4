//! What becomes of a message, by what its handler does.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use messaging::prelude::*;
use messaging::{FailureKind, Reason, Settlement};
use messaging_memory::MemoryDriver;
use support::{Log, Rig, message};

#[derive(Deserialize, Validate)]
struct Order {
    #[validate(length(min = 1))]
    order_id: String,
    #[validate(range(min = 0.0))]
    total: f64,
}

#[derive(Debug)]
struct Declined;
#[derive(Debug)]
struct Offline;

impl std::fmt::Display for Declined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("declined")
    }
}
impl std::error::Error for Declined {}
impl std::fmt::Display for Offline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("offline")
    }
}
impl std::error::Error for Offline {}

#[consumer("orders")]
struct Orders {
    log: Arc<Log>,
}

#[handlers]
impl Orders {
    #[on_message("created")]
    #[retry(attempts = 3, delay = 1s)]
    async fn created(&self, order: Message<Order>, attempt: Attempt) -> Result<(), Failure> {
        self.log.note(format!("{} #{attempt}", order.order_id));
        match order.order_id.as_str() {
            "fails" => Err("no database".into()),
            "fails-once" if attempt == Attempt::FIRST => Err("no database".into()),
            "final" => Err(Failure::non_retryable("never")),
            "final-inside" => Err(std::io::Error::other(NonRetryable::new("account closed")).into()),
            "later" => Err(Failure::retry_after(Duration::from_secs(90))),
            "panics" => panic!("boom"),
            "panics-with-a-number" => std::panic::panic_any(5),
            "index" => {
                let empty: Vec<u8> = Vec::new();
                let index = order.total as usize;
                let _ = empty[index];
                Ok(())
            }
            _ => Ok(()),
        }
    }

    #[on_message("filtered")]
    #[retry(attempts = 2, delay = 1s, on(Offline), never(Declined))]
    async fn filtered(&self, body: Bytes) -> anyhow::Result<()> {
        self.log.note("filtered");
        match &body[..] {
            b"offline" => Err(anyhow::Error::new(Offline).context("calling the bank")),
            b"declined" => Err(anyhow::Error::new(Declined).context("calling the bank")),
            b"context" => Err(anyhow::anyhow!("plain").context(Offline)),
            b"panic" => panic!("filters do not matter here"),
            other => anyhow::bail!("{}", String::from_utf8_lossy(other)),
        }
    }

    #[on_message("slow", timeout = 5s)]
    #[retry(attempts = 2, delay = 1s)]
    async fn slow(&self) {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }

    #[on_message("anything")]
    fn anything(&self, body: Bytes) -> Result<(), &'static str> {
        self.log.note(format!("anything {} bytes", body.len()));
        Ok(())
    }

    #[on_error]
    fn failed(&self, failure: &Failure, message: &InboundMessage) -> Result<OnError, String> {
        self.log.note(format!("on_error {:?} {failure}", failure.kind()));
        match message.headers.text("on_error") {
            Some("discard") => Ok(OnError::Discard),
            Some("fail") => Err("on_error failed".into()),
            Some("panic") => panic!("on_error panicked"),
            _ => Ok(OnError::DeadLetter),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

async fn settled(message_type: &str, body: &str) -> (Vec<Settlement>, Rig) {
    let rig = Rig::start::<Orders>().await;
    rig.send(message_type, body);
    rig.driver.idle().await;
    (rig.driver.settlements("orders"), rig)
}

fn order(id: &str) -> String {
    format!(r#"{{"order_id": "{id}", "total": 3}}"#)
}

#[tokio::test(start_paused = true)]
async fn success_is_acked() {
    let (settlements, rig) = settled("created", &order("o-1")).await;
    assert_eq!(settlements, [Settlement::Ack]);
    assert_eq!(rig.log.lines(), ["o-1 #1"]);
    assert_eq!(rig.driver.pending("orders"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_by_the_policy_and_then_dead_lettered() {
    let (settlements, rig) = settled("created", &order("fails")).await;
    let expected =
        [Settlement::retry(SECOND, 2), Settlement::retry(2 * SECOND, 3), Settlement::DeadLetter(Reason::Exhausted)];
    assert_eq!(settlements, expected);
    assert_eq!(rig.log.lines(), ["fails #1", "fails #2", "fails #3", "on_error Error no database"]);
    let timeline = rig.driver.timeline("orders");
    assert_eq!(timeline[2].at - timeline[0].at, 3 * SECOND);
    assert_eq!(timeline[0].error.as_deref(), Some("no database"));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_succeeds_is_acked() {
    let (settlements, _) = settled("created", &order("fails-once")).await;
    assert_eq!(settlements, [Settlement::retry(SECOND, 2), Settlement::Ack]);
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_is_not_retried_wherever_it_is_said() {
    for id in ["final", "final-inside"] {
        let (settlements, _) = settled("created", &order(id)).await;
        assert_eq!(settlements, [Settlement::DeadLetter(Reason::NonRetryable)], "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_replaces_the_backoff_and_uses_up_attempts() {
    let (settlements, _) = settled("created", &order("later")).await;
    let later = Duration::from_secs(90);
    let expected =
        [Settlement::retry(later, 2), Settlement::retry(later, 3), Settlement::DeadLetter(Reason::Exhausted)];
    assert_eq!(settlements, expected);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_clamped_to_what_the_driver_can_delay() {
    let driver = MemoryDriver::emulating(messaging_memory::capabilities::KAFKA_WITHOUT_RETRY_TOPICS);
    let rig = Rig::start_with::<Orders>(driver, |options| options).await;
    rig.send("created", &order("later"));
    rig.driver.idle().await;
    assert_eq!(rig.driver.settlements("orders")[0], Settlement::retry(Duration::from_secs(60), 2));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_retryable_failure_of_one_message() {
    for (id, text) in [
        ("panics", "panicked: boom"),
        ("panics-with-a-number", "panicked: unknown panic"),
        ("index", "panicked: index out of bounds: the len is 0 but the index is 3"),
    ] {
        let rig = Rig::start::<Orders>().await;
        rig.send("created", &order(id));
        rig.send("created", &order("good"));
        rig.driver.idle().await;
        assert_eq!(rig.log.count(&format!("{id} #3")), 1);
        assert_eq!(rig.log.count("good #1"), 1);
        let dead = rig.driver.dead_letters("orders");
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].headers.text("x-znight-error"), Some(text));
        assert_eq!(dead[0].headers.text("x-znight-attempts"), Some("3"));
    }
}

#[tokio::test(start_paused = true)]
async fn filters_look_through_anyhow_and_its_context() {
    let retried = [Settlement::retry(SECOND, 2), Settlement::DeadLetter(Reason::Exhausted)];
    let at_once = [Settlement::DeadLetter(Reason::NonRetryable)];
    for (body, expected) in [
        ("offline", &retried[..]),
        ("context", &retried[..]),
        ("panic", &retried[..]),
        ("declined", &at_once[..]),
        ("something else", &at_once[..]),
    ] {
        let (settlements, rig) = settled("filtered", body).await;
        assert_eq!(settlements, expected, "{body}");
        if body == "offline" {
            let dead = rig.driver.dead_letters("orders");
            assert_eq!(dead[0].headers.text("x-znight-error"), Some("calling the bank: offline"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_beyond_its_timeout_is_cut_off_and_retried() {
    let (settlements, rig) = settled("slow", "").await;
    assert_eq!(settlements, [Settlement::retry(SECOND, 2), Settlement::DeadLetter(Reason::Exhausted)]);
    assert_eq!(rig.log.lines(), ["on_error Timeout the handler took longer than 5s"]);
    assert_eq!(rig.driver.timeline("orders")[1].at - rig.driver.timeline("orders")[0].at, 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_body_is_dead_lettered_byte_for_byte_without_a_run() {
    let rig = Rig::start::<Orders>().await;
    let bodies: [&[u8]; 3] = [b"not json {{", b"\xff\xfe", b"{\"a\":"];
    for body in bodies {
        rig.driver.send(messaging::OutboundMessage::raw("orders", body).message_type("created"));
    }
    rig.send("created", &order("good"));
    rig.driver.idle().await;
    let expected = [
        Settlement::DeadLetter(Reason::Undecodable),
        Settlement::DeadLetter(Reason::Undecodable),
        Settlement::DeadLetter(Reason::Undecodable),
        Settlement::Ack,
    ];
    assert_eq!(rig.driver.settlements("orders"), expected);
    assert_eq!(rig.log.lines().iter().filter(|line| line.starts_with("on_error Undecodable")).count(), 3);
    for (dead, body) in rig.driver.dead_letters("orders").iter().zip(bodies) {
        assert_eq!(&dead.body[..], body);
        assert_eq!(dead.headers.text("x-znight-dead-letter-reason"), Some("undecodable"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_shape_and_a_broken_rule_are_invalid_and_say_where() {
    for (body, error) in [
        (
            r#"{"order_id": "o-1", "total": "much"}"#,
            "cannot read the body as application/json: total: invalid type: string \"much\", expected f64 at line 1 column 35",
        ),
        (r#"{"order_id": "", "total": 1}"#, "invalid message: order_id: length (min = 1)"),
    ] {
        let (settlements, rig) = settled("created", body).await;
        assert_eq!(settlements, [Settlement::DeadLetter(Reason::Invalid)], "{body}");
        let dead = rig.driver.dead_letters("orders");
        assert_eq!(dead[0].headers.text("x-znight-error"), Some(error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_no_handler_takes_is_dead_lettered_and_the_next_is_handled() {
    let rig = Rig::start::<Orders>().await;
    rig.send("deleted", "{}");
    rig.driver.send(messaging::OutboundMessage::raw("orders", "{}"));
    rig.send("", "{}");
    rig.send("created", &order("good"));
    rig.driver.idle().await;
    let none = Settlement::DeadLetter(Reason::NoHandler);
    assert_eq!(rig.driver.settlements("orders"), [none, none, none, Settlement::Ack]);
    assert_eq!(rig.log.lines()[0], "on_error NoHandler no handler for message type `deleted`");
    assert_eq!(rig.log.lines()[1], "on_error NoHandler no handler for messages without a type");
}

#[tokio::test(start_paused = true)]
async fn a_handler_without_a_payload_runs_whatever_the_body_is() {
    let (settlements, rig) = settled("anything", "not json").await;
    assert_eq!(settlements, [Settlement::Ack]);
    assert_eq!(rig.log.lines(), ["anything 8 bytes"]);
}

#[tokio::test(start_paused = true)]
async fn on_error_decides_and_when_it_breaks_the_message_is_dead_lettered() {
    let dead = Settlement::DeadLetter(Reason::NonRetryable);
    for (answer, expected) in
        [("discard", Settlement::Discard(Reason::NonRetryable)), ("fail", dead), ("panic", dead), ("", dead)]
    {
        let rig = Rig::start::<Orders>().await;
        rig.driver.send(message("created", &order("final")).header("on_error", answer));
        rig.driver.idle().await;
        assert_eq!(rig.driver.settlements("orders"), [expected], "{answer}");
        assert_eq!(rig.log.count("on_error NonRetryable never"), 1);
    }
}

#[consumer("orders", dead_letter = false)]
struct WithoutDeadLetter;

#[handlers]
impl WithoutDeadLetter {
    #[on_message]
    #[retry(false)]
    async fn all(&self) -> Result<(), Failure> {
        Err("no".into())
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_dead_letter_queue_it_is_discarded() {
    let rig = Rig::start::<WithoutDeadLetter>().await;
    rig.send("any", "");
    rig.driver.idle().await;
    assert_eq!(rig.driver.settlements("orders"), [Settlement::Discard(Reason::Exhausted)]);
    assert!(rig.driver.published("orders.dead-letter").is_empty());
}

#[consumer("orders", scope = "request")]
struct Scoped {
    tenant: Arc<Tenant>,
    log: Arc<Log>,
}

struct Tenant(String);

#[handlers]
impl Scoped {
    #[on_message]
    #[retry(attempts = 2, delay = 1s)]
    async fn all(&self) {
        self.log.note(format!("tenant {}", self.tenant.0));
    }

    #[on_error]
    async fn failed(&self, failure: &Failure) {
        self.log.note(format!("on_error {failure}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_provider_that_fails_or_panics_fails_one_delivery() {
    let log = Arc::new(Log::default());
    let driver = MemoryDriver::new();
    let tenant =
        messaging::app::Provider::try_factory(|message: Arc<InboundMessage>| match message.headers.text("tenant") {
            Some("panic") => panic!("no such tenant"),
            Some(tenant) => Ok(Tenant(tenant.to_owned())),
            None => Err("no tenant"),
        });
    let app = support::builder::<Scoped>(MessagingOptions::new(driver.clone()), &log)
        .add(tenant.per_request())
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    driver.send(message("any", "").header("tenant", "acme"));
    driver.send(message("any", ""));
    driver.send(message("any", "").header("tenant", "panic"));
    driver.idle().await;
    // `#[on_error]` needs a scope too, and gets none: it is skipped.
    assert_eq!(log.lines(), ["tenant acme"]);
    let exhausted = Settlement::DeadLetter(Reason::Exhausted);
    let retry = Settlement::retry(SECOND, 2);
    assert_eq!(driver.settlements("orders"), [Settlement::Ack, retry, retry, exhausted, exhausted]);
    let errors: Vec<_> = driver
        .dead_letters("orders")
        .iter()
        .map(|dead| dead.headers.text("x-znight-error").unwrap().to_owned())
        .collect();
    assert_eq!(errors, ["cannot build Tenant: no tenant", "panicked: no such tenant"]);
}

#[test]
fn failures_keep_their_kind() {
    assert_eq!(Failure::from("text").kind(), FailureKind::Error);
    assert_eq!(Failure::non_retryable("text").kind(), FailureKind::NonRetryable);
    let long = Failure::from("é\n".repeat(4_000));
    assert!(format!("{long:?}").len() < 1_200);
}

#[consumer("orders")]
struct Waiting;

#[handlers]
impl Waiting {
    #[on_message]
    #[retry(attempts = 2, on(Offline), never(Declined))]
    async fn all(&self, body: Bytes) -> Result<(), Failure> {
        let failure = if body == "never" { Failure::from(Declined) } else { Failure::from("busy") };
        Err(failure.after(5 * SECOND))
    }
}

#[tokio::test(start_paused = true)]
async fn who_names_a_delay_is_retried_whatever_errors_the_filter_names() {
    for (body, expected) in [
        ("busy", &[Settlement::retry(5 * SECOND, 2), Settlement::DeadLetter(Reason::Exhausted)][..]),
        ("never", &[Settlement::DeadLetter(Reason::NonRetryable)][..]),
    ] {
        let rig = Rig::start::<Waiting>().await;
        rig.send("any", body);
        rig.driver.idle().await;
        assert_eq!(rig.driver.settlements("orders"), expected, "{body}");
    }
}
