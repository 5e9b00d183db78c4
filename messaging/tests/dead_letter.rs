//! The dead-letter copy: what it carries, and what happens when it cannot be made.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use messaging::prelude::*;
use messaging::{ErrorKind, Event, OutboundMessage, Reason, Settlement};
use messaging_memory::{Fault, MemoryDriver, capabilities};
use support::{Log, Rig, message};

const SECOND: Duration = Duration::from_secs(1);

#[consumer("orders", concurrency = 2)]
struct Orders {
    log: Arc<Log>,
}

#[handlers]
impl Orders {
    #[on_message("fails")]
    #[retry(attempts = 2, delay = 1s)]
    async fn fails(&self, body: Bytes) -> Result<(), Failure> {
        self.log.note(format!("fails {}", String::from_utf8_lossy(&body)));
        Err("no database".into())
    }

    #[on_message("final")]
    async fn ends(&self) -> Result<(), Failure> {
        self.log.note("final");
        Err(Failure::non_retryable("x".repeat(3_000)))
    }

    #[on_message("good")]
    async fn good(&self) {
        self.log.note("good");
    }

    #[on_error]
    async fn failed(&self) {
        self.log.note("on_error");
    }
}

#[tokio::test(start_paused = true)]
async fn the_copy_carries_the_message_and_why_it_died() {
    let rig = Rig::start::<Orders>().await;
    let sent = message("fails", "body").id("m-1").key("k").content_type("text/plain").header("tenant", "acme");
    rig.driver.send(sent);
    rig.driver.idle().await;
    let dead = &rig.driver.dead_letters("orders")[0];
    assert_eq!(dead.id, "m-1");
    assert_eq!(dead.message_type.as_deref(), Some("fails"));
    assert_eq!(dead.content_type.as_deref(), Some("text/plain"));
    assert_eq!(dead.key.as_deref(), Some(&b"k"[..]));
    assert_eq!(&dead.body[..], b"body");
    let headers: Vec<_> = dead.headers.iter().map(|(name, value)| (name, value.as_text().unwrap())).collect();
    let expected = [
        ("tenant", "acme"),
        ("x-znight-dead-letter-reason", "exhausted"),
        ("x-znight-original-queue", "orders"),
        ("x-znight-attempts", "2"),
        ("x-znight-error", "no database"),
    ];
    assert_eq!(headers, expected);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_is_sent_again_starts_anew_and_its_headers_are_replaced() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.send(message("fails", "body"));
    rig.driver.idle().await;
    let mut size = None;
    for _ in 0..5 {
        let dead = rig.driver.dead_letters("orders").pop().unwrap();
        assert_eq!(dead.headers.text("x-znight-attempts"), Some("2"));
        assert_eq!(*size.get_or_insert(dead.size()), dead.size());
        // A hostile redrive even brings an attempt header.
        let mut again = OutboundMessage::new("orders", dead);
        again.headers.insert("x-znight-attempt", "77");
        rig.driver.send(again);
        rig.driver.idle().await;
    }
    assert_eq!(rig.log.count("fails body"), 12);
    assert!(rig.driver.dead_letters("orders").iter().all(|dead| dead.headers.get("x-znight-attempt").is_none()));
}

#[tokio::test(start_paused = true)]
async fn the_error_text_is_one_line_of_at_most_a_kibibyte() {
    let rig = Rig::start::<Orders>().await;
    rig.send("final", "");
    rig.driver.idle().await;
    assert_eq!(rig.driver.dead_letters("orders")[0].headers.text("x-znight-error").unwrap().len(), 1_024);
}

#[tokio::test(start_paused = true)]
async fn a_failed_copy_is_tried_again_without_running_the_handler_again() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::publish("orders.dead-letter").error(ErrorKind::Rejected).times(3));
    rig.send("final", "");
    rig.send("good", "");
    rig.driver.idle().await;
    let releases = [1, 2, 4].map(|seconds| Settlement::Release { delay: seconds * SECOND });
    let settlements = rig.driver.settlements("orders");
    let of_final: Vec<_> = settlements.into_iter().filter(|settlement| *settlement != Settlement::Ack).collect();
    assert_eq!(of_final, [&releases[..], &[Settlement::DeadLetter(Reason::NonRetryable)]].concat());
    assert_eq!(rig.log.count("final"), 1);
    assert_eq!(rig.log.count("on_error"), 1);
    assert_eq!(rig.log.count("good"), 1);
    let dead = rig.driver.dead_letters("orders");
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].headers.text("x-znight-attempts"), Some("1"));
    assert_eq!(dead[0].headers.text("x-znight-error").map(str::len), Some(1_024));
}

#[tokio::test(start_paused = true)]
async fn a_copy_whose_confirmation_is_lost_is_made_twice_and_nothing_is_lost() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::publish("orders.dead-letter").error_after(ErrorKind::Unconfirmed));
    rig.send("final", "");
    rig.driver.idle().await;
    assert_eq!(rig.driver.dead_letters("orders").len(), 2);
    assert_eq!(rig.log.count("final"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_queue_that_hangs_does_not_stop_the_consumer() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::publish("orders.dead-letter").hang().always());
    for _ in 0..20 {
        rig.send("final", "");
    }
    tokio::time::sleep(30 * SECOND).await;
    for _ in 0..20 {
        rig.send("good", "");
    }
    // One probe of 10 s may hold each worker; beside it the good ones pass.
    tokio::time::sleep(11 * SECOND).await;
    assert_eq!(rig.log.count("good"), 20);
    assert_eq!(rig.log.count("final"), 20, "each ran once, however often it came back");
    assert_eq!(rig.driver.pending("orders"), 20);
    assert_eq!(rig.driver.dead_letters("orders").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_copy_is_an_event_and_shows_in_health() {
    let events = Arc::new(Log::default());
    let told = Arc::clone(&events);
    let rig = Rig::start_with::<Orders>(MemoryDriver::new(), move |options| {
        options.on_event(move |event| {
            if let Event::CopyFailed { dead_letter, reason, error, .. } = event {
                told.note(format!("{dead_letter} {reason} {error}"));
            }
        })
    })
    .await;
    rig.driver.fail(Fault::publish("orders.dead-letter").error(ErrorKind::Unroutable));
    rig.send("final", "");
    rig.driver.idle().await;
    assert_eq!(events.lines().len(), 1);
    assert!(events.lines()[0].starts_with("orders.dead-letter non-retryable"), "{:?}", events.lines());
    let health = rig.app.get::<MessageBroker>().await.unwrap().health();
    assert_eq!(health.queues[0].counts.copies_failed, 1);
    assert_eq!(health.queues[0].counts.dead_lettered, 1);
    assert!(health.queues[0].last_error.is_some());
}

fn small(limit: usize) -> MemoryDriver {
    MemoryDriver::emulating(messaging::Capabilities { max_message_size: Some(limit), ..capabilities::MEMORY })
}

#[tokio::test(start_paused = true)]
async fn a_foreign_message_that_leaves_no_room_gets_a_trimmed_copy() {
    // Sent by someone else, without the room that our own publishes keep.
    let plain = message("final", &"b".repeat(5_000)).id("m-1");
    let original = plain.size();
    for (room, error, reason) in [(2_000, true, true), (500, false, true), (0, false, false)] {
        let rig = Rig::start_with::<Orders>(small(original + room), |options| options).await;
        rig.driver.send(plain.clone());
        rig.driver.idle().await;
        assert_eq!(rig.driver.settlements("orders"), [Settlement::DeadLetter(Reason::NonRetryable)]);
        let dead = &rig.driver.dead_letters("orders")[0];
        assert_eq!(dead.headers.get("x-znight-error").is_some(), error, "room {room}");
        assert_eq!(dead.headers.get("x-znight-dead-letter-reason").is_some(), reason, "room {room}");
        assert_eq!(dead.body.len(), 5_000);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_published_can_always_be_dead_lettered_in_full() {
    let limit = 10_000;
    let rig = Rig::start_with::<Orders>(small(limit), |options| options).await;
    let broker = rig.app.get::<MessageBroker>().await.unwrap();
    let publish = |size: usize| {
        let broker = Arc::clone(&broker);
        async move { broker.publish_raw("orders", vec![b'b'; size]).message_type("final").id("m-1").await }
    };
    let overhead = OutboundMessage::raw("orders", "").message_type("final").id("m-1").size();
    let fits = limit - messaging::driver::COPY_RESERVE - overhead;
    publish(fits).await.unwrap();
    assert_eq!(publish(fits + 1).await.unwrap_err().kind(), ErrorKind::TooLarge);
    rig.driver.idle().await;
    let dead = &rig.driver.dead_letters("orders")[0];
    assert_eq!(dead.headers.text("x-znight-error").map(str::len), Some(1_024));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_back_beyond_the_policy_is_not_run_again() {
    let rig = Rig::start::<Orders>().await;
    // Each crash in the middle of a settlement counts as an attempt.
    rig.driver.fail(Fault::retry().crash());
    rig.driver.fail(Fault::ack().crash());
    rig.send("fails", "body");
    rig.driver.idle().await;
    assert_eq!(rig.log.count("fails body"), 2);
    assert_eq!(rig.log.count("on_error"), 2, "once for the last run, once when it came back");
    assert_eq!(rig.driver.pending("orders"), 0);
    let dead = rig.driver.dead_letters("orders");
    assert_eq!(dead.last().unwrap().headers.text("x-znight-attempts"), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_lost_over_and_over_ends_in_the_dead_letter_queue() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::retry().crash().always());
    rig.driver.send(message("fails", "body"));
    rig.driver.idle().await;
    assert_eq!(rig.log.count("fails body"), 2);
    assert_eq!(rig.driver.dead_letters("orders").len(), 1);
}
