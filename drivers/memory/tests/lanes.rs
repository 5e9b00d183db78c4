//! Wakes, competing lanes, and tokio's cooperative budget.

#![allow(clippy::expect_used)]

mod common;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Consumer, connected, message, next, send, take, wait};
use messaging::Settlement;
use messaging::driver::MessagingDriver;

const SECOND: Duration = Duration::from_secs(1);

async fn consumer(driver: &messaging_memory::MemoryDriver, lanes: usize) -> Consumer {
    Consumer::with(driver, "orders", |options| options.concurrency = lanes).await
}

#[tokio::test(start_paused = true)]
async fn there_are_as_many_lanes_as_workers() {
    let driver = connected().await;
    for lanes in [1, 3, 100] {
        assert_eq!(consumer(&driver, lanes).await.lanes.len(), lanes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_wakes_exactly_one_waiting_lane_and_each_has_its_turn() {
    let driver = connected().await;
    let mut consumer = consumer(&driver, 3).await;
    let flags: Vec<_> = consumer.lanes.iter_mut().map(|lane| wait(&mut **lane)).collect();
    for _ in 0..2 {
        for index in 0..3 {
            send(&driver, "orders", &["a"]);
            let woken: Vec<_> = flags.iter().map(|flag| flag.was_woken()).collect();
            assert_eq!(woken, (0..3).map(|lane| lane == index).collect::<Vec<_>>());
            take(&mut *consumer.lanes[index]).settler.settle(Settlement::Ack);
            let again = wait(&mut *consumer.lanes[index]);
            assert!(!again.was_woken());
        }
        // The lanes wait with new wakers now.
        consumer.lanes.iter_mut().zip(&flags).for_each(|(lane, flag)| {
            let waker = std::task::Waker::from(Arc::clone(flag));
            let mut out = VecDeque::new();
            assert!(lane.poll_next(&mut std::task::Context::from_waker(&waker), 1, &mut out).is_pending());
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_dropped_after_it_was_woken_passes_the_wake_on() {
    let driver = connected().await;
    let mut consumer = consumer(&driver, 2).await;
    let flags: Vec<_> = consumer.lanes.iter_mut().map(|lane| wait(&mut **lane)).collect();
    send(&driver, "orders", &["a"]);
    assert!(flags[0].was_woken() && !flags[1].was_woken());
    consumer.lanes.remove(0);
    assert!(flags[1].was_woken());
    assert_eq!(take(&mut *consumer.lanes[0]).message.id, "a");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_settler_wakes_a_waiting_lane() {
    let driver = connected().await;
    send(&driver, "orders", &["a"]);
    let mut consumer = consumer(&driver, 2).await;
    let delivery = take(&mut *consumer.lanes[0]);
    let flag = wait(&mut *consumer.lanes[1]);
    drop(delivery);
    assert!(flag.was_woken());
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_leaves_messages_behind_wakes_another_one() {
    let driver = connected().await;
    let mut consumer = consumer(&driver, 3).await;
    let flags: Vec<_> = consumer.lanes.iter_mut().map(|lane| wait(&mut **lane)).collect();
    send(&driver, "orders", &["a", "b"]);
    assert!(flags[0].was_woken() && flags[1].was_woken() && !flags[2].was_woken());
    // The first may be busy with something else, for as long as it likes.
    let delivery = take(&mut *consumer.lanes[1]);
    assert_eq!(delivery.message.id, "a");
    assert!(flags[2].was_woken());
    assert_eq!(take(&mut *consumer.lanes[2]).message.id, "b");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_lane_is_woken_when_something_is_due_earlier_than_what_it_waits_for() {
    let driver = connected().await;
    let mut consumer = consumer(&driver, 1).await;
    driver.send(message("orders", "late").delay(SECOND * 3_600));
    let worker = tokio::spawn(async move {
        let begun = tokio::time::Instant::now();
        (consumer.next().await.message.id.to_string(), begun.elapsed())
    });
    tokio::task::yield_now().await;
    driver.send(message("orders", "soon").delay(SECOND));
    assert_eq!(worker.await.expect("took one"), ("soon".to_owned(), SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_while_it_waits_loses_nothing() {
    let driver = connected().await;
    let mut consumer = consumer(&driver, 1).await;
    for _ in 0..3 {
        assert!(tokio::time::timeout(SECOND, consumer.next()).await.is_err());
    }
    send(&driver, "orders", &["a"]);
    assert_eq!(consumer.next().await.message.id, "a");
}

#[tokio::test]
async fn a_lane_that_always_has_something_lets_others_run() {
    let driver = connected().await;
    for number in 0..10_000 {
        driver.send(message("orders", &number.to_string()));
    }
    let mut consumer = consumer(&driver, 1).await;
    let taken = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&taken);
    let worker = tokio::spawn(async move {
        for _ in 0..10_000 {
            consumer.next().await.settler.settle(Settlement::Ack);
            *counter.lock().expect("not poisoned") += 1;
        }
    });
    tokio::task::yield_now().await;
    let seen = *taken.lock().expect("not poisoned");
    assert!((1..10_000).contains(&seen), "another task ran after {seen} messages");
    worker.await.expect("took all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn competing_lanes_end_every_message_exactly_once() {
    const MESSAGES: usize = 20_000;
    let driver = connected().await;
    let ended = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let mut workers = Vec::new();
    for _ in 0..2 {
        for mut lane in consumer(&driver, 10).await.lanes {
            let ended = Arc::clone(&ended);
            workers.push(tokio::spawn(async move {
                let mut out = VecDeque::new();
                while next(&mut *lane, 1, &mut out).await.is_ok() {
                    while let Some(delivery) = out.pop_front() {
                        delivery.message.start();
                        let id = delivery.message.id.to_string();
                        let attempt = delivery.message.attempt();
                        // Each message is given back, released and retried before it ends.
                        match attempt.get() {
                            1 => drop(delivery),
                            2 => delivery.settler.settle(Settlement::retry(Duration::ZERO, 3)),
                            3 => delivery.settler.settle(Settlement::retry(Duration::from_millis(1), 4)),
                            _ => {
                                *ended.lock().expect("not poisoned").entry(id).or_default() += 1;
                                delivery.settler.settle(Settlement::Ack);
                            }
                        }
                    }
                }
            }));
        }
    }
    let publishers: Vec<_> = (0..4)
        .map(|publisher| {
            let driver = driver.clone();
            tokio::spawn(async move {
                for number in 0..MESSAGES / 4 {
                    let id = format!("{publisher}-{number}");
                    driver.publish(message("orders", &id)).await.expect("published");
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.expect("published all");
    }
    tokio::time::timeout(SECOND * 60, driver.idle()).await.expect("nothing is stuck");
    assert_eq!(driver.pending("orders"), 0);
    let ended = std::mem::take(&mut *ended.lock().expect("not poisoned"));
    assert_eq!(ended.len(), MESSAGES);
    assert!(ended.values().all(|times| *times == 1));
    driver.close().await.expect("closed");
    for worker in workers {
        worker.await.expect("ended in order");
    }
}
