//! `idle()`: when everything has come to its end, and no sooner.

#![allow(clippy::expect_used)]

mod common;

use std::time::Duration;

use common::{Consumer, connected, message, send};
use messaging::driver::MessagingDriver;
use messaging::{Reason, Settlement};
use messaging_memory::MemoryDriver;
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// Whether it is idle right now.
async fn is_idle(driver: &MemoryDriver) -> bool {
    timeout(Duration::ZERO, driver.idle()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn it_is_idle_when_every_message_has_ended() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    assert!(is_idle(&driver).await);
    send(&driver, "orders", &["a", "b"]);
    assert!(!is_idle(&driver).await, "ready");
    let taken = consumer.take(2);
    assert!(!is_idle(&driver).await, "in flight");
    for (delivery, settlement) in taken.into_iter().zip([Settlement::Ack, Settlement::retry(SECOND, 2)]) {
        delivery.settler.settle(settlement);
    }
    assert!(!is_idle(&driver).await, "delayed");
    let begun = Instant::now();
    let waiting = tokio::spawn({
        let idle = driver.idle();
        async move {
            idle.await;
            begun.elapsed()
        }
    });
    consumer.next().await.settler.settle(Settlement::Discard(Reason::Invalid));
    assert_eq!(waiting.await.expect("idle"), SECOND);
}

#[tokio::test]
async fn it_needs_no_clock_where_nothing_is_to_be_waited_for() {
    MemoryDriver::new().idle().await;
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_queue_without_a_consumer_do_not_count_until_it_has_one() {
    let driver = connected().await;
    send(&driver, "orders", &["a"]);
    assert!(is_idle(&driver).await);
    let mut consumer = Consumer::new(&driver, "orders").await;
    assert!(!is_idle(&driver).await);
    consumer.next().await.settler.settle(Settlement::Ack);
    assert!(is_idle(&driver).await);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_stopped_does_not_hold_it_up() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    send(&driver, "orders", &["a", "b"]);
    let running = consumer.next().await;
    consumer.control.stop_receiving();
    assert!(is_idle(&driver).await);
    drop(running);
    assert_eq!(driver.pending("orders"), 2);

    // Nor one whose lanes are gone without a stop, or whose driver was closed.
    let mut consumer = Consumer::new(&driver, "orders").await;
    assert!(!is_idle(&driver).await);
    consumer.lanes.clear();
    assert!(is_idle(&driver).await);
    let _consumer = Consumer::new(&driver, "orders").await;
    driver.close().await.expect("closes");
    assert!(is_idle(&driver).await);
}

#[tokio::test(start_paused = true)]
async fn it_waits_while_one_of_two_consumers_of_a_queue_is_left() {
    let driver = connected().await;
    let one = Consumer::new(&driver, "orders").await;
    let mut other = Consumer::new(&driver, "orders").await;
    send(&driver, "orders", &["a"]);
    one.control.stop_receiving();
    assert!(!is_idle(&driver).await);
    other.next().await.settler.settle(Settlement::Ack);
    assert!(is_idle(&driver).await);
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_publishes_to_another_queue_is_waited_for() {
    let driver = connected().await;
    let mut orders = Consumer::new(&driver, "orders").await;
    let mut mails = Consumer::new(&driver, "mails").await;
    let handlers = tokio::spawn({
        let driver = driver.clone();
        async move {
            let order = orders.next().await;
            driver.publish(message("mails", "m").delay(SECOND)).await.expect("published");
            order.settler.settle(Settlement::Ack);
            mails.next().await.settler.settle(Settlement::Ack);
        }
    });
    send(&driver, "orders", &["a"]);
    driver.idle().await;
    assert_eq!(driver.settlements("mails"), [Settlement::Ack]);
    handlers.await.expect("done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_never_resolves_between_a_publish_and_the_settlement_that_follows() {
    let driver = connected().await;
    let queues = ["a", "b", "c", "d"];
    for (index, queue) in queues.into_iter().enumerate() {
        let mut consumer = Consumer::new(&driver, queue).await;
        let driver = driver.clone();
        tokio::spawn(async move {
            loop {
                // Each message goes once through all queues.
                let delivery = consumer.next().await;
                if let Some(next) = queues.get(index + 1) {
                    driver.publish(message(next, "m")).await.expect("published");
                }
                delivery.settler.settle(Settlement::Ack);
            }
        });
    }
    for round in 1..=500 {
        send(&driver, "a", &["m"]);
        driver.idle().await;
        assert_eq!(driver.settlements("d").len(), round);
    }
}

async fn panic_of(driver: &MemoryDriver) -> String {
    let panic = tokio::spawn(driver.idle()).await.expect_err("idle gives up").into_panic();
    panic.downcast_ref::<String>().cloned().expect("text")
}

#[tokio::test(start_paused = true)]
async fn after_400_days_it_panics_and_names_what_is_left() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    driver.send(message("orders", "a").message_type("order.created"));
    let begun = Instant::now();
    let text = panic_of(&driver).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(400 * 86_400));
    assert!(
        text.starts_with(
            "not idle after 400 days; queue `orders`: message `a` of type `order.created` is ready as attempt 1, and nobody takes it\n  awaited at "
        ) && text.contains("idle.rs"),
        "{text}"
    );
    let running = consumer.start().await;
    let text = panic_of(&driver).await;
    assert!(text.contains("message `a` of type `order.created` is running, as attempt 1"), "{text}");
    running.settler.settle(Settlement::retry(Duration::from_secs(500 * 86_400), 2));
    let text = panic_of(&driver).await;
    assert!(text.contains("waits 8640000s longer for attempt 2"), "{text}");
}
