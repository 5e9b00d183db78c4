//! What tests can look at, and that it is bounded.

#![allow(clippy::expect_used)]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use common::{Consumer, connected, message, send};
use messaging::driver::MessagingDriver;
use messaging::{Attempt, InboundMessage, OutboundMessage, Reason, Settlement};
use messaging_memory::MemoryDriver;
use tokio::time::Instant;

fn panic_of<T>(read: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(read)).err().expect("panics");
    panic.downcast_ref::<String>().cloned().expect("text")
}

async fn end_all(driver: &MemoryDriver, queue: &'static str) {
    let mut consumer = Consumer::new(driver, queue).await;
    consumer.take(usize::MAX).into_iter().for_each(|delivery| delivery.settler.settle(Settlement::Ack));
}

fn bodies(messages: &[OutboundMessage]) -> Vec<&[u8]> {
    messages.iter().map(|message| &message.body[..]).collect()
}

#[tokio::test(start_paused = true)]
async fn the_timeline_tells_what_was_settled_how_and_when() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    let begun = Instant::now();
    consumer.start_and_retry(&driver, "a", Duration::from_secs(5)).await;
    consumer.start().await.settler.settle(Settlement::DeadLetter(Reason::Exhausted));
    let [first, second] = &driver.timeline("orders")[..] else { panic!("two entries") };
    assert_eq!((first.id.as_str(), first.attempt, first.at), ("a", Attempt::FIRST, begun));
    assert_eq!(first.settlement, Settlement::retry(Duration::from_secs(5), 2));
    assert_eq!((second.attempt, second.at - begun), (Attempt::new(2), Duration::from_secs(5)));
    assert_eq!(second.error, None);
}

#[tokio::test(start_paused = true)]
async fn published_tells_what_the_application_published_and_not_what_others_sent() {
    let driver = connected().await;
    driver.publish(message("orders", "a").header("tenant", "acme")).await.expect("published");
    send(&driver, "orders", &["b"]);
    driver.publish(message("mails", "c")).await.expect("published");
    let published = driver.published("orders");
    assert_eq!(bodies(&published), [b"a"]);
    assert_eq!(published[0].headers.text("tenant"), Some("acme"));
    assert_eq!(driver.pending("orders"), 2);
    // It stays after the message has ended.
    end_all(&driver, "orders").await;
    assert_eq!(driver.published("orders").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_used_is_empty() {
    let driver = connected().await;
    assert!(driver.settlements("none").is_empty() && driver.timeline("none").is_empty());
    assert!(driver.published("none").is_empty() && driver.dead_letters("none").is_empty());
    assert_eq!(driver.pending("none"), 0);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_the_copies_in_the_dead_letter_queue_of_the_consumer() {
    let driver = connected().await;
    let _default =
        Consumer::with(&driver, "orders", |options| options.dead_letter = Some("orders.dead-letter".into())).await;
    let _named = Consumer::with(&driver, "mails", |options| options.dead_letter = Some("dead".into())).await;
    let _shared = Consumer::with(&driver, "bills", |options| options.dead_letter = Some("dead".into())).await;
    let _none = Consumer::new(&driver, "logs").await;
    let copy = |from: &str, id: &str, to: &str| {
        let inbound = InboundMessage::new(from, message(from, id).into_parts().1, Attempt::FIRST);
        OutboundMessage::copy_of(&inbound, to)
    };
    let marked = |from: &str, id: &str, to: &str| copy(from, id, to).header("x-znight-original-queue", from);
    for copy in [
        marked("orders", "o", "orders.dead-letter"),
        marked("mails", "m", "dead"),
        marked("bills", "b", "dead"),
        copy("mails", "trimmed", "dead"),
    ] {
        driver.publish(copy).await.expect("published");
    }
    // Not a copy: somebody published it there.
    driver.publish(message("orders.dead-letter", "x")).await.expect("published");
    let ids = |queue: &str| -> Vec<String> {
        driver.dead_letters(queue).iter().map(|letter| letter.id.to_string()).collect()
    };
    assert_eq!(ids("orders"), ["o"]);
    assert_eq!(ids("mails"), ["m", "trimmed"]);
    assert_eq!(ids("bills"), ["b", "trimmed"]);
    assert!(ids("logs").is_empty());
    assert_eq!(driver.published("orders.dead-letter").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn reading_more_than_was_recorded_panics_and_says_how_to_record_more() {
    let driver = MemoryDriver::new().recording(3);
    driver.connect().await.expect("connects");
    for id in ["a", "b", "c"] {
        driver.publish(message("orders", id)).await.expect("published");
    }
    end_all(&driver, "orders").await;
    assert_eq!((driver.settlements("orders").len(), driver.published("orders").len()), (3, 3));
    driver.publish(message("orders", "d")).await.expect("published");
    end_all(&driver, "orders").await;
    let expected = "the settlements of queue `orders` are 4, and only the first 3 are kept: keep more with \
                    `MemoryDriver::recording(n)`, before the driver is used\n  read at ";
    for text in [panic_of(|| driver.settlements("orders")), panic_of(|| driver.timeline("orders"))] {
        assert!(text.starts_with(expected) && text.contains("recording.rs"), "{text}");
    }
    let text = panic_of(|| driver.published("orders"));
    assert!(text.starts_with("the publishes of queue `orders` are 4, and only the first 3 are kept"), "{text}");
    // Another queue has its own record.
    assert!(driver.settlements("mails").is_empty());
    assert_eq!(driver.pending("orders"), 0);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_are_recorded_unless_said_otherwise() {
    let driver = connected().await;
    for number in 0..10_000 {
        driver.send(message("orders", &number.to_string()));
    }
    end_all(&driver, "orders").await;
    assert_eq!(driver.settlements("orders").len(), 10_000);
    send(&driver, "orders", &["one more"]);
    end_all(&driver, "orders").await;
    assert!(panic_of(|| driver.settlements("orders")).contains("are 10001"));
}

#[tokio::test(start_paused = true)]
async fn recording_can_be_turned_off() {
    let driver = MemoryDriver::new().recording(0);
    driver.connect().await.expect("connects");
    assert!(driver.settlements("orders").is_empty());
    send(&driver, "orders", &["a"]);
    end_all(&driver, "orders").await;
    assert!(panic_of(|| driver.settlements("orders")).contains("are 1, and only the first 0 are kept"));
}

#[tokio::test(start_paused = true)]
async fn what_is_recorded_holds_no_message_in_memory_after_it_has_ended() {
    let driver = connected().await;
    send(&driver, "orders", &["a"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let delivery = consumer.next().await;
    let message = Arc::downgrade(&delivery.message);
    delivery.settler.settle(Settlement::Ack);
    drop(delivery.message);
    assert!(message.upgrade().is_none());
}
