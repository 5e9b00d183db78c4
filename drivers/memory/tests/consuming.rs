//! Order, settling, and what comes back.

mod common;

use std::time::Duration;

use common::{Consumer, Told, attempt, connected, ids, message, send};
use messaging::driver::MessagingDriver;
use messaging::{Reason, Settlement};

#[tokio::test(start_paused = true)]
async fn messages_come_in_the_order_they_were_published() {
    let driver = connected().await;
    for id in ["a", "b", "c"] {
        driver.publish(message("orders", id)).await.expect("published");
    }
    let mut consumer = Consumer::new(&driver, "orders").await;
    let taken = consumer.take(10);
    assert_eq!(ids(&taken), ["a", "b", "c"]);
    assert_eq!(driver.pending("orders"), 3);
    for delivery in taken {
        delivery.settler.settle(Settlement::Ack);
    }
    assert_eq!(driver.pending("orders"), 0);
    assert_eq!(driver.settlements("orders"), [Settlement::Ack; 3]);
    driver.idle().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_lane_is_woken_by_a_message() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    let worker = tokio::spawn(async move { consumer.next().await });
    tokio::task::yield_now().await;
    send(&driver, "orders", &["a"]);
    let delivery = worker.await.expect("the worker took it");
    assert_eq!(delivery.message.id, "a");
}

#[tokio::test(start_paused = true)]
async fn a_retry_comes_as_the_attempt_that_was_asked_for_when_its_delay_is_over() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    send(&driver, "orders", &["a"]);
    let begun = tokio::time::Instant::now();
    let delay = Duration::from_secs(30 * 86_400);
    consumer.start().await.settler.settle(Settlement::retry(delay, 2));
    let again = consumer.start().await;
    assert_eq!(begun.elapsed(), delay);
    assert_eq!(attempt(&again), 2);
    again.settler.settle(Settlement::DeadLetter(Reason::Exhausted));
    assert_eq!(driver.settlements("orders"), [Settlement::retry(delay, 2), Settlement::DeadLetter(Reason::Exhausted)]);
    let told = |settlement| Told::Settled("a".into(), settlement, Ok(()));
    assert_eq!(consumer.events.take(), driver.settlements("orders").into_iter().map(told).collect::<Vec<_>>());
}
