//! Order, attempts, delays: what comes, and what comes back.

#![allow(clippy::expect_used)]

mod common;

use std::time::Duration;

use common::{Consumer, Told, attempt, connected, ids, message, send};
use messaging::driver::MessagingDriver;
use messaging::{Reason, Settlement, Step};
use tokio::time::{Instant, advance};

const SECOND: Duration = Duration::from_secs(1);

fn release(delay: Duration) -> Settlement {
    Settlement::Release { delay }
}

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
    taken.into_iter().for_each(|delivery| delivery.settler.settle(Settlement::Ack));
    assert_eq!(driver.pending("orders"), 0);
    assert_eq!(driver.settlements("orders"), [Settlement::Ack; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_lane_takes_no_more_than_it_is_asked_for_and_keeps_the_rest_for_others() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b", "c"]);
    let mut one = Consumer::new(&driver, "orders").await;
    let mut other = Consumer::new(&driver, "orders").await;
    let first = one.take(2);
    let second = other.take(2);
    assert_eq!((ids(&first), ids(&second)), (vec!["a".into(), "b".into()], vec!["c".into()]));
}

#[tokio::test(start_paused = true)]
async fn what_travels_comes_unchanged() {
    let driver = connected().await;
    let sent =
        message("orders", "a").message_type("order.created").key("k").header("tenant", "acme").content_type("x/y");
    driver.publish(sent.clone()).await.expect("published");
    let delivery = Consumer::new(&driver, "orders").await.next().await;
    assert_eq!(delivery.message.queue(), "orders");
    assert_eq!(format!("{:?}", delivery.message.envelope()), format!("{:?}", sent.into_parts().1));
}

#[tokio::test(start_paused = true)]
async fn every_way_to_end_a_message_ends_it_and_is_told_once() {
    let driver = connected().await;
    let ends = [Settlement::Ack, Settlement::Discard(Reason::Invalid), Settlement::DeadLetter(Reason::Exhausted)];
    let mut consumer = Consumer::new(&driver, "orders").await;
    for settlement in ends {
        send(&driver, "orders", &["a"]);
        consumer.start().await.settler.settle(settlement);
        assert_eq!(consumer.events.take(), [Told::Settled("a".into(), settlement, Ok(()))]);
    }
    assert_eq!(driver.pending("orders"), 0);
    assert!(consumer.is_waiting());
}

#[tokio::test(start_paused = true)]
async fn a_settler_dropped_before_the_run_gives_the_message_back_unchanged_to_its_place() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b", "c"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let mut taken = consumer.take(3);
    // In any order.
    drop(taken.remove(1));
    drop(taken);
    let again = consumer.take(3);
    assert_eq!(ids(&again), ["a", "b", "c"]);
    assert!(again.iter().all(|delivery| attempt(delivery) == 1));
    assert!(consumer.events.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_settler_dropped_after_the_run_began_counts_as_an_attempt() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    for expected in 1..=3 {
        let delivery = consumer.start().await;
        assert_eq!((delivery.message.id.as_str(), attempt(&delivery)), ("a", expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_keeps_its_identity_over_redeliveries_and_shares_it_with_none() {
    let driver = connected().await;
    // Two messages with the same id are two messages.
    send(&driver, "orders", &["a", "a"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let identities = |taken: &[messaging::Delivery]| -> Vec<_> {
        taken.iter().map(|delivery| delivery.settler.identity().expect("an identity")).collect()
    };
    let taken = consumer.take(2);
    let before = identities(&taken);
    assert_ne!(before[0], before[1]);
    for delivery in taken {
        delivery.settler.settle(Settlement::retry(Duration::ZERO, 2));
    }
    assert_eq!(identities(&consumer.take(2)), before);
}

#[tokio::test(start_paused = true)]
async fn a_retry_comes_as_the_attempt_that_was_asked_for_when_its_delay_is_over() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    send(&driver, "orders", &["a"]);
    let days = |days: u64| Duration::from_secs(days * 86_400);
    let mut begun = Instant::now();
    for (delay, next) in [(days(30), 2), (Duration::from_millis(1), 3), (days(3_000), 4), (Duration::ZERO, 5)] {
        consumer.start().await.settler.settle(Settlement::retry(delay, next));
        let again = consumer.start().await;
        assert_eq!((begun.elapsed(), attempt(&again)), (delay, next));
        begun = Instant::now();
        again.settler.settle(Settlement::retry(Duration::ZERO, next));
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_the_clock_cannot_count_neither_panics_nor_comes_early() {
    let driver = connected().await;
    send(&driver, "orders", &["a"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    consumer.start().await.settler.settle(Settlement::retry(Duration::MAX, 2));
    assert!(tokio::time::timeout(Duration::from_secs(29 * 365 * 86_400), consumer.next()).await.is_err());
    assert_eq!(driver.pending("orders"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_falls_behind_what_was_published_before_it_is_due() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    consumer.start().await.settler.settle(Settlement::retry(SECOND, 2));
    advance(SECOND / 2).await;
    send(&driver, "orders", &["c"]);
    advance(SECOND).await;
    send(&driver, "orders", &["d"]);
    assert_eq!(ids(&consumer.take(10)), ["b", "c", "a", "d"]);
}

#[tokio::test(start_paused = true)]
async fn retries_come_in_the_order_they_are_due_and_ties_in_the_order_they_were_asked_for() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b", "c", "d"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    for (delivery, seconds) in consumer.take(4).into_iter().zip([3, 1, 2, 1]) {
        delivery.settler.settle(Settlement::retry(SECOND * seconds, 2));
    }
    advance(SECOND * 5).await;
    assert_eq!(ids(&consumer.take(4)), ["b", "d", "c", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_keeps_attempt_and_place() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    consumer.start().await.settler.settle(release(Duration::ZERO));
    let again = consumer.start().await;
    assert_eq!((again.message.id.as_str(), attempt(&again)), ("a", 1));
    again.settler.settle(release(SECOND));
    // It is not there until the delay is over; then it is the first again.
    assert_eq!(consumer.start().await.message.id, "b");
    advance(SECOND).await;
    let taken = consumer.take(2);
    assert_eq!((ids(&taken), attempt(&taken[0])), (vec!["a".into(), "b".into()], 1));
}

#[tokio::test(start_paused = true)]
async fn native_retries_wait_as_others_do() {
    let driver = connected().await;
    send(&driver, "orders", &["a"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let begun = Instant::now();
    let retry = Settlement::native_retry(SECOND, 2);
    assert!(matches!(retry, Settlement::Retry { step: Step::Native(_), .. }));
    consumer.start().await.settler.settle(retry);
    consumer.next().await;
    assert_eq!(begun.elapsed(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_message_is_delivered_when_its_delay_is_over() {
    let driver = connected().await;
    let mut consumer = Consumer::new(&driver, "orders").await;
    let begun = Instant::now();
    driver.publish(message("orders", "late").delay(SECOND * 60)).await.expect("published");
    driver.send(message("orders", "soon").delay(SECOND));
    assert_eq!(driver.pending("orders"), 2);
    assert!(consumer.is_waiting());
    let soon = consumer.next().await;
    assert_eq!((soon.message.id.as_str(), begun.elapsed()), ("soon", SECOND));
    let late = consumer.next().await;
    assert_eq!((late.message.id.as_str(), begun.elapsed()), ("late", SECOND * 60));
}

#[tokio::test(start_paused = true)]
async fn the_signal_of_a_message_fires_when_the_application_stops() {
    let driver = connected().await;
    send(&driver, "orders", &["a", "b"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let taken = consumer.take(2);
    let early = taken[0].message.signal();
    assert!(!early.is_cancelled());
    consumer.stopping.cancel();
    assert!(early.is_cancelled() && taken[1].message.signal().is_cancelled());
}
