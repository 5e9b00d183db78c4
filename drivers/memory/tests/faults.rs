//! Faults and their rules; each operation but settling, and each way it can go wrong.

#![allow(clippy::expect_used)]

mod common;

use std::time::Duration;

use common::{Consumer, Events, Told, connected, message, send};
use messaging::driver::{MessagingDriver, SubscribeOptions};
use messaging::{Error, ErrorKind, Reason, Settlement};
use messaging_memory::{Fault, MemoryDriver};
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

async fn publish(driver: &MemoryDriver, queue: &str, id: &str) -> Option<ErrorKind> {
    kind(driver.publish(message(queue, id)).await)
}

async fn subscribe(driver: &MemoryDriver, queue: &str) -> Option<ErrorKind> {
    let events = std::sync::Arc::<Events>::default();
    kind(driver.subscribe(SubscribeOptions::new(queue, events)).await)
}

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

mod rules {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fault_happens_once_with_a_connection_error_unless_said_otherwise() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders"));
        let error = driver.publish(message("orders", "a")).await.expect_err("fails");
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert!(error.to_string().contains("publishing to `orders` failed by an injected fault"), "{error}");
        assert_eq!(publish(&driver, "orders", "a").await, None);
        assert_eq!(driver.published("orders").len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_can_skip_some_and_happen_some_times_or_always() {
        let driver = connected().await;
        let mut seen = Vec::new();
        driver.fail(Fault::any_publish().after(1).times(2));
        for id in ["a", "b", "c", "d"] {
            seen.push(publish(&driver, "orders", id).await.is_some());
        }
        assert_eq!(seen, [false, true, true, false]);
        driver.fail(Fault::any_publish().always());
        for _ in 0..5 {
            assert!(publish(&driver, "mails", "m").await.is_some());
        }
        driver.heal();
        assert_eq!(publish(&driver, "mails", "m").await, None);
        driver.fail(Fault::any_publish().times(0));
        assert_eq!(publish(&driver, "mails", "m").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn faults_are_met_in_the_order_they_were_given_and_only_on_their_queue() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").error(ErrorKind::Rejected));
        driver.fail(Fault::any_publish().error(ErrorKind::Unroutable));
        driver.fail(Fault::publish("orders").error(ErrorKind::TooLarge));
        assert_eq!(publish(&driver, "mails", "a").await, Some(ErrorKind::Unroutable));
        assert_eq!(publish(&driver, "orders", "a").await, Some(ErrorKind::Rejected));
        assert_eq!(publish(&driver, "mails", "a").await, None);
        assert_eq!(publish(&driver, "orders", "a").await, Some(ErrorKind::TooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn a_settlement_meets_only_the_fault_of_its_kind_and_queue() {
        let (driver, mut consumer, delivery) = in_flight().await;
        driver.fail(Fault::ack().on_queue("mails"));
        driver.fail(Fault::ack());
        driver.fail(Fault::retry().error(ErrorKind::Rejected));
        let retry = Settlement::retry(Duration::ZERO, 2);
        let release = Settlement::Release { delay: Duration::ZERO };
        delivery.settler.settle(release);
        consumer.start().await.settler.settle(retry);
        consumer.start().await.settler.settle(Settlement::Discard(Reason::Invalid));
        consumer.start().await.settler.settle(Settlement::Ack);
        let expected = [
            settled(release, Ok(())),
            settled(retry, Err(ErrorKind::Rejected)),
            settled(Settlement::Discard(Reason::Invalid), Err(ErrorKind::Connection)),
            settled(Settlement::Ack, Ok(())),
        ];
        assert_eq!(consumer.events.take(), expected);
        driver.fail(Fault::release());
        send(&driver, "orders", &["a"]);
        consumer.start().await.settler.settle(release);
        assert_eq!(consumer.events.take(), [settled(release, Err(ErrorKind::Connection))]);
    }
}

mod connecting {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_error_before_or_by_a_crash_leaves_it_unconnected() {
        for fault in [Fault::connect(), Fault::connect().crash()] {
            let driver = MemoryDriver::new();
            driver.fail(fault);
            assert_eq!(kind(driver.connect().await), Some(ErrorKind::Connection));
            assert_eq!(publish(&driver, "orders", "a").await, Some(ErrorKind::Closed));
            assert_eq!(kind(driver.connect().await), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_after_it_leaves_it_connected() {
        let driver = MemoryDriver::new();
        driver.fail(Fault::connect().error_after(ErrorKind::Config));
        assert_eq!(kind(driver.connect().await), Some(ErrorKind::Config));
        assert_eq!(publish(&driver, "orders", "a").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_take_its_time_or_hang() {
        let driver = MemoryDriver::new();
        driver.fail(Fault::connect().delay(SECOND));
        let begun = Instant::now();
        assert_eq!(kind(driver.connect().await), None);
        assert_eq!(begun.elapsed(), SECOND);
        driver.fail(Fault::connect().hang());
        assert!(timeout(SECOND, driver.connect()).await.is_err());
        // A close ends what hangs, and what takes its time.
        let driver = MemoryDriver::new();
        driver.fail(Fault::connect().hang());
        driver.fail(Fault::connect().delay(SECOND));
        let close = async {
            tokio::task::yield_now().await;
            driver.close().await
        };
        let (hung, late, closed) = tokio::join!(driver.connect(), driver.connect(), close);
        assert_eq!((kind(hung), kind(late), kind(closed)), (Some(ErrorKind::Closed), Some(ErrorKind::Closed), None));
    }
}

mod subscribing {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_fails_on_the_queue_that_was_named() {
        let driver = connected().await;
        for fault in [Fault::subscribe().error(ErrorKind::Config), Fault::subscribe().error_after(ErrorKind::Config)] {
            driver.fail(fault.on_queue("orders"));
            assert_eq!(subscribe(&driver, "mails").await, None);
            assert_eq!(subscribe(&driver, "orders").await, Some(ErrorKind::Config));
            assert_eq!(subscribe(&driver, "orders").await, None);
        }
        // Nothing is consumed by what failed: a message that nobody takes holds nothing up.
        send(&driver, "orders", &["a"]);
        driver.idle().await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_crash_take_its_time_or_hang() {
        let driver = connected().await;
        driver.fail(Fault::subscribe().crash());
        assert_eq!(subscribe(&driver, "orders").await, Some(ErrorKind::Connection));
        driver.fail(Fault::subscribe().delay(SECOND));
        let begun = Instant::now();
        assert_eq!(subscribe(&driver, "orders").await, None);
        assert_eq!(begun.elapsed(), SECOND);
        driver.fail(Fault::subscribe().hang());
        let release = async {
            tokio::time::sleep(SECOND).await;
            driver.release_hung();
        };
        assert_eq!(tokio::join!(subscribe(&driver, "orders"), release).0, None);
    }
}

mod publishing {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_error_before_it_stores_nothing() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").error(ErrorKind::Rejected));
        assert_eq!(publish(&driver, "orders", "a").await, Some(ErrorKind::Rejected));
        assert_eq!((driver.pending("orders"), driver.published("orders").len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_after_it_and_a_crash_are_a_lost_confirm() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").error_after(ErrorKind::Rejected));
        driver.fail(Fault::publish("orders").crash());
        assert_eq!(publish(&driver, "orders", "a").await, Some(ErrorKind::Rejected));
        assert_eq!(publish(&driver, "orders", "b").await, Some(ErrorKind::Unconfirmed));
        assert_eq!((driver.pending("orders"), driver.published("orders").len()), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_take_its_time_and_hold_up_no_other() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").delay(SECOND));
        let begun = Instant::now();
        let (slow, quick) = tokio::join!(publish(&driver, "orders", "a"), async {
            tokio::task::yield_now().await;
            assert_eq!(publish(&driver, "orders", "b").await, None);
            begun.elapsed()
        });
        assert_eq!((slow, quick, begun.elapsed()), (None, Duration::ZERO, SECOND));
        assert_eq!(driver.published("orders")[0].id, "b");
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_hang_until_it_is_let_go_or_the_driver_is_closed() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").hang().times(2));
        let hung = tokio::spawn({
            let driver = driver.clone();
            async move { publish(&driver, "orders", "a").await }
        });
        tokio::time::sleep(SECOND).await;
        assert!(!hung.is_finished() && driver.pending("orders") == 0);
        driver.release_hung();
        assert_eq!(hung.await.expect("ended"), None);
        assert_eq!(driver.pending("orders"), 1);
        let close = async {
            tokio::time::sleep(SECOND).await;
            driver.close().await
        };
        assert_eq!(tokio::join!(publish(&driver, "orders", "b"), close).0, Some(ErrorKind::Closed));
        assert_eq!(driver.pending("orders"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_dropped_while_it_hangs_stores_nothing_later() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").hang());
        assert!(timeout(SECOND, publish(&driver, "orders", "a")).await.is_err());
        driver.release_hung();
        assert_eq!(publish(&driver, "orders", "b").await, None);
        assert_eq!(driver.pending("orders"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_store_a_message_twice() {
        let driver = connected().await;
        driver.fail(Fault::publish("orders").duplicate());
        assert_eq!(publish(&driver, "orders", "a").await, None);
        let taken = Consumer::new(&driver, "orders").await.take(3);
        assert_eq!(common::ids(&taken), ["a", "a"]);
        assert_eq!(driver.published("orders").len(), 1);
    }
}
