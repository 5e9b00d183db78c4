//! Behaving as another driver would.

#![allow(clippy::expect_used)]

mod common;

use std::time::Duration;

use common::{Consumer, attempt, message, send};
use messaging::driver::{COPY_RESERVE, MessagingDriver};
use messaging::{
    Attempt, Capabilities, ErrorKind, InboundMessage, OutboundMessage, RetryPlan, RetryPolicy, Settlement,
};
use messaging_memory::{MemoryDriver, capabilities};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

async fn emulating(capabilities: Capabilities) -> MemoryDriver {
    let driver = MemoryDriver::emulating(capabilities);
    driver.connect().await.expect("connects");
    assert_eq!(driver.capabilities(), capabilities);
    driver
}

async fn refusal(driver: &MemoryDriver, message: OutboundMessage) -> Option<ErrorKind> {
    driver.publish(message).await.err().map(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_longest_is_unsupported() {
    let kafka = emulating(capabilities::KAFKA).await;
    assert_eq!(refusal(&kafka, message("orders", "a").delay(SECOND)).await, Some(ErrorKind::Unsupported));
    assert_eq!(refusal(&kafka, message("orders", "a")).await, None);
    let sqs = emulating(capabilities::SQS).await;
    assert_eq!(refusal(&sqs, message("orders", "a").delay(SECOND * 900)).await, None);
    assert_eq!(refusal(&sqs, message("orders", "a").delay(SECOND * 901)).await, Some(ErrorKind::Unsupported));
}

#[tokio::test(start_paused = true)]
async fn room_for_our_headers_is_kept_in_every_message_but_a_copy() {
    let largest = 10_000;
    let driver = emulating(Capabilities { max_message_size: Some(largest), ..capabilities::MEMORY }).await;
    let sized = |size: usize| OutboundMessage::raw("orders", vec![b'x'; size - 1]).id("i");
    assert_eq!(sized(500).size(), 500);
    assert_eq!(refusal(&driver, sized(largest - COPY_RESERVE)).await, None);
    let error = driver.publish(sized(largest - COPY_RESERVE + 1)).await.expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("publishing 7953 bytes to `orders`, where 7952 are the most"), "{error}");
    let copy = |size| {
        let inbound = InboundMessage::new("orders", sized(size).into_parts().1, Attempt::FIRST);
        OutboundMessage::copy_of(&inbound, "dead")
    };
    assert_eq!(refusal(&driver, copy(largest)).await, None);
    assert_eq!(refusal(&driver, copy(largest + 1)).await, Some(ErrorKind::TooLarge));
    // A foreign producer is bound by nothing of ours.
    driver.send(sized(largest * 2));
    assert_eq!(driver.pending("orders"), 2);
}

#[tokio::test(start_paused = true)]
async fn more_headers_than_there_may_be_are_too_large() {
    let driver = emulating(Capabilities { max_headers: Some(2), ..capabilities::MEMORY }).await;
    let two = message("orders", "a").header("one", "1").header("two", "2");
    assert_eq!(refusal(&driver, two.clone()).await, None);
    assert_eq!(refusal(&driver, two.header("three", "3")).await, Some(ErrorKind::TooLarge));
}

/// The attempts of a message that is released, dropped before its run, dropped in it, and lost in it.
async fn attempts(capabilities: Capabilities) -> [u32; 4] {
    let driver = emulating(capabilities).await;
    send(&driver, "orders", &["a"]);
    let mut consumer = Consumer::new(&driver, "orders").await;
    consumer.start().await.settler.settle(Settlement::Release { delay: Duration::ZERO });
    let released = consumer.next().await;
    let after_release = attempt(&released);
    drop(released);
    let unstarted = consumer.start().await;
    let after_unstarted = attempt(&unstarted);
    drop(unstarted);
    let dropped = consumer.start().await;
    let after_drop = attempt(&dropped);
    driver.disconnect();
    [after_release, after_unstarted, after_drop, attempt(&consumer.next().await)]
}

#[tokio::test(start_paused = true)]
async fn releases_and_crashes_count_where_the_broker_counts_them() {
    assert_eq!(attempts(capabilities::MEMORY).await, [1, 1, 2, 3]);
    assert_eq!(attempts(capabilities::RABBITMQ).await, [2, 2, 3, 4]);
    assert_eq!(attempts(capabilities::RABBITMQ_CLASSIC).await, [1, 1, 1, 1]);
    assert_eq!(attempts(capabilities::SQS).await, [2, 2, 3, 4]);
    assert_eq!(attempts(capabilities::KAFKA).await, [1, 1, 1, 1]);
    assert_eq!(attempts(capabilities::KAFKA_WITHOUT_RETRY_TOPICS).await, [1, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_native_delay_is_rounded_up_to_what_the_broker_can_do() {
    for (capabilities, settlement, expected) in [
        (capabilities::SQS, Settlement::native_retry(SECOND * 3 / 2, 2), SECOND * 2),
        (capabilities::SQS, Settlement::native_retry(SECOND * 2, 2), SECOND * 2),
        (capabilities::SQS, Settlement::retry(SECOND / 2, 2), SECOND / 2),
        (capabilities::RABBITMQ, Settlement::native_retry(Duration::from_micros(1_500), 2), Duration::from_millis(2)),
        (capabilities::MEMORY, Settlement::native_retry(SECOND * 3 / 2, 2), SECOND * 3 / 2),
    ] {
        let driver = emulating(capabilities).await;
        send(&driver, "orders", &["a"]);
        let mut consumer = Consumer::new(&driver, "orders").await;
        let begun = Instant::now();
        consumer.start().await.settler.settle(settlement);
        consumer.next().await;
        assert_eq!(begun.elapsed(), expected, "{settlement:?}");
    }
}

#[test]
fn the_capabilities_prove_what_each_driver_can_honour() {
    use capabilities::{KAFKA, KAFKA_WITHOUT_RETRY_TOPICS, MEMORY, RABBITMQ, SQS};
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    let fixed = |delay| RetryPolicy::new(2).backoff(messaging::Backoff::Fixed).delay(delay);
    let policies = [
        (RetryPolicy::default(), [true, true, true, true, true]),
        (RetryPolicy::new(6).delay(hours(1)), [true, true, false, true, false]),
        (RetryPolicy::new(6).delay(hours(1)).max_delay(hours(6)), [true, true, true, true, false]),
        (fixed(hours(12)), [true, true, false, true, false]),
        (fixed(hours(24 * 7)), [true, true, false, false, false]),
        (fixed(hours(24 * 60)), [true, false, false, false, false]),
        (RetryPolicy::new(60), [true, false, false, false, false]),
        (RetryPolicy::none().delay(hours(24 * 36_500)), [true; 5]),
    ];
    for (policy, expected) in policies {
        let proven = [MEMORY, RABBITMQ, SQS, KAFKA, KAFKA_WITHOUT_RETRY_TOPICS]
            .map(|capabilities| RetryPlan::prove(&policy, &capabilities).is_ok());
        assert_eq!(proven, expected, "{policy:?}");
    }
}
