//! Connecting, stopping and closing.

#![allow(clippy::expect_used)]

mod common;

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use common::{Consumer, Told, attempt, connected, message, send, wait};
use messaging::driver::{Ended, MessagingDriver};
use messaging::{ErrorKind, Settlement, driver_from_url};
use messaging_memory::{MemoryDriver, capabilities};

const SECOND: Duration = Duration::from_secs(1);

fn kind<T>(result: Result<T, messaging::Error>) -> ErrorKind {
    result.err().expect("refused").kind()
}

fn options(queue: &str) -> messaging::driver::SubscribeOptions {
    messaging::driver::SubscribeOptions::new(queue, std::sync::Arc::<common::Events>::default())
}

#[test]
fn it_says_what_it_is() {
    let driver = MemoryDriver::new();
    assert_eq!(driver.name(), "memory");
    assert_eq!(driver.capabilities(), capabilities::MEMORY);
    assert_eq!(driver.dead_letter_name("orders"), "orders.dead-letter");
    driver.send(message("orders", "a"));
    assert!(format!("{driver:?}").contains("orders"));
}

#[tokio::test(start_paused = true)]
async fn before_it_is_connected_it_publishes_and_consumes_nothing() {
    let driver = MemoryDriver::new();
    assert_eq!(kind(driver.publish(message("orders", "a")).await), ErrorKind::Closed);
    assert_eq!(kind(driver.subscribe(options("orders")).await), ErrorKind::Closed);
    assert_eq!(driver.pending("orders"), 0);
    // What a foreign producer sends is there when it connects.
    send(&driver, "orders", &["b"]);
    driver.connect().await.expect("connects");
    driver.connect().await.expect("connects again");
    assert_eq!(Consumer::new(&driver, "orders").await.next().await.message.id, "b");
}

#[tokio::test(start_paused = true)]
async fn a_closed_driver_stays_closed() {
    let driver = connected().await;
    driver.close().await.expect("closes");
    driver.close().await.expect("closes again");
    assert_eq!(kind(driver.connect().await), ErrorKind::Closed);
    assert_eq!(kind(driver.publish(message("orders", "a")).await), ErrorKind::Closed);
    assert_eq!(kind(driver.subscribe(options("orders")).await), ErrorKind::Closed);
    let never_connected = MemoryDriver::new();
    never_connected.close().await.expect("closes");
    assert_eq!(kind(never_connected.connect().await), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn stop_receiving_ends_waiting_lanes_and_keeps_what_is_ready_or_delayed() {
    let driver = connected().await;
    let mut consumer = Consumer::with(&driver, "orders", |options| options.concurrency = 2).await;
    send(&driver, "orders", &["a"]);
    let running = consumer.start().await;
    consumer.start_and_retry(&driver, "b", SECOND).await;
    let flag = wait(&mut *consumer.lanes[1]);
    consumer.control.stop_receiving();
    consumer.control.stop_receiving();
    assert!(flag.was_woken());
    send(&driver, "orders", &["c"]);
    for lane in &mut consumer.lanes {
        let mut out = VecDeque::new();
        for _ in 0..2 {
            assert!(matches!(common::next(&mut **lane, 1, &mut out).await, Err(Ended::Stopped)));
        }
        assert!(out.is_empty());
    }
    // The running one can still be settled, and the others wait for the next consumer, the delayed one until it is due.
    assert!(running.settler.still_ours());
    running.settler.settle(Settlement::Ack);
    assert_eq!(driver.pending("orders"), 2);
    let mut next = Consumer::new(&driver, "orders").await;
    let ready = next.next().await;
    assert_eq!(ready.message.id, "c");
    let begun = tokio::time::Instant::now();
    let retried = next.next().await;
    assert_eq!((retried.message.id.as_str(), attempt(&retried), begun.elapsed()), ("b", 2, SECOND));
}

#[tokio::test(start_paused = true)]
async fn stopping_one_subscription_leaves_another_one_of_the_queue_alone() {
    let driver = connected().await;
    let one = Consumer::new(&driver, "orders").await;
    let mut other = Consumer::new(&driver, "orders").await;
    let flag = wait(&mut *other.lanes[0]);
    one.control.stop_receiving();
    assert!(flag.was_woken() && other.is_waiting());
    send(&driver, "orders", &["a"]);
    assert_eq!(other.next().await.message.id, "a");
}

#[tokio::test(start_paused = true)]
async fn close_ends_the_lanes_and_takes_back_what_is_in_flight() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let running = consumer.start().await;
    let waiting = consumer.next().await;
    let signal = running.message.signal();
    driver.close().await.expect("closes");
    assert!(matches!(consumer.poll(1, &mut VecDeque::new()), Poll::Ready(Err(Ended::Stopped))));
    assert!(signal.is_cancelled() && !running.settler.still_ours());
    running.settler.settle(Settlement::Ack);
    assert_eq!(consumer.events.take(), [Told::Settled("a".into(), Settlement::Ack, Err(ErrorKind::Connection))]);
    drop(waiting);
    // The next process finds them, the running one charged.
    let next = driver.another_process();
    next.connect().await.expect("connects");
    let taken = Consumer::new(&next, "orders").await.take(3);
    assert_eq!(taken.iter().map(attempt).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(common::ids(&taken), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn closing_one_process_leaves_another_one_alone() {
    let driver = connected().await;
    let other = driver.another_process();
    other.connect().await.expect("connects");
    send(&driver, "orders", &["a", "b"]);
    let mut consumer = Consumer::new(&other, "orders").await;
    let running = consumer.start().await;
    driver.close().await.expect("closes");
    assert!(running.settler.still_ours());
    assert_eq!(consumer.next().await.message.id, "b");
    other.publish(message("orders", "c")).await.expect("published");
}

#[test]
fn the_url_is_memory_with_nothing_behind_it() {
    for url in ["memory:", "memory://", "MEMORY:"] {
        assert_eq!(driver_from_url(url).expect("a driver").name(), "memory");
    }
    for url in ["memory:x", "memory://host", "memory:///", "memory:?recording=5"] {
        let error = driver_from_url(url).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("`memory:`"), "{error}");
    }
}
