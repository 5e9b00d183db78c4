//! Settlements that go wrong, and lost connections.

#![allow(clippy::expect_used)]

mod common;

use std::time::Duration;

use common::{Consumer, Told, attempt, connected, send, wait};
use messaging::driver::MessagingDriver;
use messaging::{ErrorKind, Settlement};
use messaging_memory::{Fault, MemoryDriver};
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn settled(settlement: Settlement, result: Result<(), ErrorKind>) -> Told {
    Told::Settled("a".into(), settlement, result)
}

/// A driver with one message in flight.
async fn in_flight() -> (MemoryDriver, Consumer, messaging::Delivery) {
    let driver = connected().await;
    send(&driver, "orders", &["a"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    let delivery = consumer.start().await;
    (driver, consumer, delivery)
}

mod settling {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_error_before_an_ack_brings_the_message_back_with_its_attempt() {
        let (driver, mut consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().error(ErrorKind::Unconfirmed));
        delivery.settler.settle(Settlement::Ack);
        assert_eq!(consumer.events.take(), [settled(Settlement::Ack, Err(ErrorKind::Unconfirmed))]);
        assert!(driver.settlements("orders").is_empty());
        assert_eq!(attempt(&consumer.next().await), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_after_an_ack_or_a_retry_is_told_and_the_settlement_stands() {
        let (driver, mut consumer, delivery) = in_flight().await;
        let retry = Settlement::retry(SECOND, 2);
        driver.fail(Fault::retry().error_after(ErrorKind::Connection));
        driver.fail(Fault::ack().error_after(ErrorKind::Unconfirmed));
        delivery.settler.settle(retry);
        let again = consumer.next().await;
        assert_eq!(attempt(&again), 2);
        again.settler.settle(Settlement::Ack);
        let told = [settled(retry, Err(ErrorKind::Connection)), settled(Settlement::Ack, Err(ErrorKind::Unconfirmed))];
        assert_eq!(consumer.events.take(), told);
        assert_eq!(driver.settlements("orders"), [retry, Settlement::Ack]);
        assert_eq!(driver.pending("orders"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_brings_a_started_message_back_as_the_next_attempt() {
        for (fault, settlement) in
            [(Fault::ack(), Settlement::Ack), (Fault::retry(), Settlement::retry(Duration::ZERO, 7))]
        {
            let (driver, mut consumer, delivery) = in_flight().await;
            driver.fail(fault.crash());
            delivery.settler.settle(settlement);
            assert_eq!(consumer.events.take(), [settled(settlement, Err(ErrorKind::Connection))]);
            assert_eq!(attempt(&consumer.next().await), 2);
            assert!(driver.settlements("orders").is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_duplicate_is_delivered_once_more() {
        let (driver, mut consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().duplicate());
        delivery.settler.settle(Settlement::Ack);
        let again = consumer.next().await;
        assert_eq!((again.message.id.as_str(), attempt(&again)), ("a", 1));
        again.settler.settle(Settlement::Ack);
        assert!(consumer.is_waiting());
        assert_eq!(driver.settlements("orders"), [Settlement::Ack; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_takes_its_time_is_in_flight_until_then() {
        let (driver, mut consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().delay(SECOND));
        let begun = Instant::now();
        delivery.settler.settle(Settlement::Ack);
        assert_eq!(driver.pending("orders"), 1);
        assert!(consumer.events.take().is_empty());
        // A waiting lane keeps the time.
        let events = consumer.events.clone();
        let lane = tokio::spawn(async move { consumer.next().await });
        driver.idle().await;
        assert_eq!(begun.elapsed(), SECOND);
        assert_eq!(events.take(), [settled(Settlement::Ack, Ok(()))]);
        assert!(!lane.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_is_in_flight_until_it_is_let_go() {
        let (driver, mut consumer, delivery) = in_flight().await;
        driver.fail(Fault::retry().hang());
        let retry = Settlement::retry(Duration::ZERO, 2);
        delivery.settler.settle(retry);
        let flag = wait(&mut *consumer.lanes[0]);
        tokio::time::sleep(SECOND).await;
        assert!(!flag.was_woken() && driver.pending("orders") == 1);
        driver.release_hung();
        assert!(flag.was_woken());
        assert_eq!(consumer.events.take(), [settled(retry, Ok(()))]);
        assert_eq!(attempt(&consumer.next().await), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_held_up_holds_up_no_other() {
        let driver = connected().await;
        send(&driver, "orders", &["hangs", "late", "soon", "at once"]);
        let mut consumer = Consumer::new(&driver, "orders").await;
        driver.fail(Fault::ack().hang());
        driver.fail(Fault::ack().delay(SECOND * 2));
        driver.fail(Fault::ack().delay(SECOND));
        consumer.take(4).into_iter().for_each(|delivery| delivery.settler.settle(Settlement::Ack));
        assert_eq!(driver.pending("orders"), 3);
        let lane = tokio::spawn(async move { consumer.next().await });
        let mut left = Vec::new();
        tokio::time::sleep(SECOND / 2).await;
        for _ in 0..4 {
            tokio::time::sleep(SECOND).await;
            left.push(driver.pending("orders"));
        }
        assert_eq!(left, [2, 1, 1, 1]);
        let order: Vec<_> = driver.timeline("orders").into_iter().map(|entry| entry.id.to_string()).collect();
        assert_eq!(order, ["at once", "soon", "late"]);
        driver.release_hung();
        driver.idle().await;
        assert!(!lane.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn flush_waits_for_what_takes_its_time_or_hangs_also_without_lanes() {
        let (driver, consumer, delivery) = in_flight().await;
        assert!(consumer.control.flush().await.is_ok());
        driver.fail(Fault::ack().delay(SECOND));
        let begun = Instant::now();
        delivery.settler.settle(Settlement::Ack);
        consumer.control.stop_receiving();
        let Consumer { lanes, control, events, .. } = consumer;
        drop(lanes);
        control.flush().await.expect("flushed");
        assert_eq!(begun.elapsed(), SECOND);
        assert_eq!(events.take(), [settled(Settlement::Ack, Ok(()))]);

        let (driver, consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().hang());
        delivery.settler.settle(Settlement::Ack);
        assert!(timeout(SECOND, consumer.control.flush()).await.is_err());
        let release = async { driver.release_hung() };
        assert!(tokio::join!(consumer.control.flush(), release).0.is_ok());
        assert_eq!(driver.pending("orders"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn close_ends_what_hangs_and_the_message_is_there_for_the_next_process() {
        let (driver, consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().hang());
        delivery.settler.settle(Settlement::Ack);
        let close = async { driver.close().await.is_ok() };
        assert!(tokio::join!(consumer.control.flush(), close).1);
        assert_eq!(consumer.events.take(), [settled(Settlement::Ack, Err(ErrorKind::Closed))]);
        let next = driver.another_process();
        next.connect().await.expect("connects");
        assert_eq!(attempt(&Consumer::new(&next, "orders").await.next().await), 2);
    }
}

mod disconnecting {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_takes_back_what_is_in_flight_and_consumes_again_at_once() {
        let (driver, mut consumer, running) = in_flight().await;
        send(&driver, "orders", &["b"]);
        let unstarted = consumer.next().await;
        let signal = running.message.signal();
        driver.disconnect();
        assert_eq!(consumer.events.take(), [Told::Fault(ErrorKind::Connection, true), Told::Healed]);
        assert!(signal.is_cancelled() && !running.settler.still_ours() && !unstarted.settler.still_ours());
        assert_eq!(driver.pending("orders"), 2);
        // The next delivery runs beside the old one; only a run that had started is charged.
        let again = consumer.take(3);
        assert_eq!(common::ids(&again), ["a", "b"]);
        assert_eq!(again.iter().map(attempt).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(again[0].settler.identity(), running.settler.identity());
        running.settler.settle(Settlement::Ack);
        drop(unstarted);
        assert_eq!(consumer.events.take(), [settled(Settlement::Ack, Err(ErrorKind::Connection))]);
        assert_eq!(driver.pending("orders"), 2);
        again.into_iter().for_each(|delivery| delivery.settler.settle(Settlement::Ack));
        driver.idle().await;
        assert_eq!((driver.pending("orders"), driver.settlements("orders").len()), (0, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn it_wakes_waiting_lanes_and_touches_no_other_process() {
        let driver = connected().await;
        send(&driver, "orders", &["a", "b"]);
        let other = driver.another_process();
        other.connect().await.expect("connects");
        let mut mine = Consumer::new(&driver, "orders").await;
        let mut others = Consumer::new(&other, "orders").await;
        let (lost, kept) = (mine.start().await, others.start().await);
        let flag = wait(&mut *others.lanes[0]);
        driver.disconnect();
        assert!(flag.was_woken() && kept.settler.still_ours() && !lost.settler.still_ours());
        assert!(others.events.take().is_empty());
        assert_eq!(others.next().await.message.id, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_settlement_that_hangs_is_lost_with_the_connection() {
        let (driver, mut consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().hang());
        delivery.settler.settle(Settlement::Ack);
        driver.disconnect();
        let told = consumer.events.take();
        assert!(told.contains(&settled(Settlement::Ack, Err(ErrorKind::Connection))), "{told:?}");
        assert!(consumer.control.flush().await.is_ok());
        driver.release_hung();
        assert_eq!(attempt(&consumer.next().await), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_delayed_or_ready_stays_as_it_is() {
        let driver = connected().await;
        let mut consumer = Consumer::new(&driver, "orders").await;
        consumer.start_and_retry(&driver, "a", SECOND).await;
        send(&driver, "orders", &["b"]);
        driver.disconnect();
        let ready = consumer.next().await;
        let begun = Instant::now();
        let retried = consumer.next().await;
        assert_eq!((ready.message.id.as_str(), retried.message.id.as_str()), ("b", "a"));
        assert_eq!((attempt(&ready), attempt(&retried), begun.elapsed()), (1, 2, SECOND));
    }
}
