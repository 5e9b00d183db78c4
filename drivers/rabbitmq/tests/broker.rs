//! The driver by its contract, against a real broker.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lapin::BasicProperties;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use messaging::driver::MessagingDriver;
use messaging::{ErrorKind, OutboundMessage, Settlement};
use messaging_rabbitmq::{QueueType, RabbitMqConfig, RabbitMqDriver};
use support::{Raw, Told, config, connected, next, run, trial, unique, until};

async fn capabilities_are_those_of_the_table(url: String) {
    let quorum = RabbitMqDriver::new(config(&url)).capabilities();
    assert_eq!(quorum, messaging_memory::capabilities::RABBITMQ);
    let classic = RabbitMqDriver::new(config(&url).queue_type(QueueType::Classic)).capabilities();
    assert_eq!(classic, messaging_memory::capabilities::RABBITMQ_CLASSIC);
}

async fn publish_verdicts_are_exact_in_a_crowd(url: String) {
    let driver = Arc::new(connected(config(&url)).await);
    let (queue, told) = (unique("verdicts"), Arc::new(Told::default()));
    let subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    let publishes = (0..2_000).map(|number| {
        let (driver, queue) = (Arc::clone(&driver), queue.clone());
        tokio::spawn(async move {
            let lost = number % 3 == 0;
            let target = if lost { format!("{queue}.nowhere") } else { queue };
            (lost, driver.publish(OutboundMessage::raw(target, "{}")).await)
        })
    });
    for publish in publishes.collect::<Vec<_>>() {
        match publish.await.unwrap() {
            (true, Err(error)) => assert_eq!(error.kind(), ErrorKind::Unroutable),
            (false, Ok(_)) => (),
            (lost, verdict) => panic!("unroutable {lost}: {verdict:?}"),
        }
    }
    let raw = Raw::new(&url).await;
    assert_eq!(raw.count(&queue).await, 1_333);
    drop(subscription);
    driver.close().await.unwrap();
    assert_eq!(driver.publish(OutboundMessage::raw(&*queue, "{}")).await.unwrap_err().kind(), ErrorKind::Closed);
    raw.delete(&queue).await;
}

async fn long_names_and_large_bodies_are_errors(url: String) {
    let driver = connected(config(&url)).await;
    let long = "n".repeat(300);
    let kind = |message| async { driver.publish(message).await.unwrap_err().kind() };
    assert_eq!(kind(OutboundMessage::raw(&*long, "{}")).await, ErrorKind::Config);
    assert_eq!(kind(OutboundMessage::raw("q", "{}").message_type(&*long)).await, ErrorKind::Config);
    assert_eq!(kind(OutboundMessage::raw("q", "{}").header(&long, "1")).await, ErrorKind::Config);
    assert_eq!(kind(OutboundMessage::raw("q", vec![0; 16 << 20])).await, ErrorKind::TooLarge);
    assert_eq!(driver.subscribe(Arc::new(Told::default()).options(&long)).await.unwrap_err().kind(), ErrorKind::Config);
    driver.close().await.unwrap();
}

async fn what_cannot_connect_says_why(url: String) {
    let kind = |config: RabbitMqConfig| async { RabbitMqDriver::new(config).connect().await.unwrap_err() };
    let wrong = kind(config(&url).credentials("guest", "s3cret")).await;
    assert_eq!(wrong.kind(), ErrorKind::Config, "{}", wrong.chain());
    assert!(!wrong.chain().contains("s3cret"));
    let wrong = kind(config(&url).vhost("nowhere")).await;
    assert_eq!(wrong.kind(), ErrorKind::Config, "{}", wrong.chain());
    let wrong = kind(config("amqp://127.0.0.1:1")).await;
    assert_eq!(wrong.kind(), ErrorKind::Connection, "{}", wrong.chain());
}

async fn a_retry_in_process_holds_up_nobody_and_counts(url: String) {
    let driver = connected(config(&url)).await;
    let (queue, told) = (unique("retry"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    driver.publish(OutboundMessage::raw(&*queue, "first")).await.unwrap();
    let first = next(&mut subscription).await;
    let since = Instant::now();
    first.settler.settle(Settlement::retry(Duration::from_millis(500), 2));
    driver.publish(OutboundMessage::raw(&*queue, "second")).await.unwrap();
    let second = next(&mut subscription).await;
    assert_eq!(&second.message.body[..], b"second");
    second.settler.settle(Settlement::Ack);
    let again = next(&mut subscription).await;
    assert!(since.elapsed() >= Duration::from_millis(500));
    assert_eq!((&again.message.body[..], again.message.attempt().get()), (&b"first"[..], 2));
    again.message.start();
    drop(again);
    let third = next(&mut subscription).await;
    assert_eq!(third.message.attempt().get(), 3, "a run that was dropped counts");
    third.settler.settle(Settlement::Ack);
    subscription.control.stop_receiving();
    subscription.control.flush().await.unwrap();
    assert!(told.settlements().iter().all(|(_, done)| *done) && told.settlements().len() == 3);
    driver.close().await.unwrap();
    let raw = Raw::new(&url).await;
    assert_eq!(raw.count(&queue).await, 0);
    raw.delete(&queue).await;
}

async fn a_native_retry_keeps_types_and_counts(url: String) {
    let driver = connected(config(&url)).await;
    let (queue, told) = (unique("native"), Arc::new(Told::default()));
    let mut options = told.options(&queue);
    let delay = Duration::from_millis(700);
    options.native_delays = BTreeSet::from([delay]);
    let mut subscription = driver.subscribe(options).await.unwrap();
    let raw = Raw::new(&url).await;
    let mut headers = FieldTable::default();
    headers.insert("number".into(), AMQPValue::LongInt(7));
    raw.send(&queue, b"{}", BasicProperties::default().with_headers(headers).with_message_id("m-1".into())).await;
    for attempt in 1..=3 {
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.message.attempt().get(), attempt);
        assert_eq!(delivery.message.headers.text("number"), Some("7"));
        assert_eq!(delivery.message.headers.len(), 1);
        if attempt < 3 {
            delivery.settler.settle(Settlement::native_retry(delay, attempt + 1));
            continue;
        }
        driver.publish(OutboundMessage::copy_of(&delivery.message, format!("{queue}.retry.700"))).await.unwrap();
        let copy = raw.wait(&format!("{queue}.retry.700")).await;
        let kept = copy.properties.headers().clone().unwrap();
        assert_eq!(kept.inner().get("number"), Some(&AMQPValue::LongInt(7)));
        assert_eq!(copy.properties.message_id().as_ref().map(|id| id.as_str()), Some("m-1"));
        delivery.settler.settle(Settlement::Ack);
    }
    until(|| told.settlements().len() == 3).await;
    driver.close().await.unwrap();
    raw.delete(&queue).await;
    raw.delete(&format!("{queue}.retry.700")).await;
}

async fn a_stop_gives_back_what_was_not_started(url: String) {
    let driver = connected(config(&url)).await;
    let (queue, told) = (unique("stop"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    for number in 0..20 {
        driver.publish(OutboundMessage::raw(&*queue, number.to_string())).await.unwrap();
    }
    let waits = next(&mut subscription).await;
    waits.settler.settle(Settlement::retry(Duration::from_secs(5), 2));
    let runs = next(&mut subscription).await;
    subscription.control.stop_receiving();
    runs.settler.settle(Settlement::Ack);
    subscription.control.flush().await.unwrap();
    driver.close().await.unwrap();
    let raw = Raw::new(&url).await;
    assert_eq!(raw.count(&queue).await, 19);
    raw.delete(&queue).await;
}

async fn a_deleted_queue_is_declared_and_consumed_again(url: String) {
    let driver = connected(config(&url)).await;
    let (queue, told) = (unique("deleted"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    driver.publish(OutboundMessage::raw(&*queue, "1")).await.unwrap();
    next(&mut subscription).await.settler.settle(Settlement::Ack);
    let raw = Raw::new(&url).await;
    raw.delete(&queue).await;
    driver.publish(OutboundMessage::raw(&*queue, "2")).await.unwrap();
    let second = next(&mut subscription).await;
    assert_eq!(&second.message.body[..], b"2");
    second.settler.settle(Settlement::Ack);
    until(|| *told.healed.lock().unwrap() == 1).await;
    assert_eq!(told.faults.lock().unwrap().len(), 1);
    driver.close().await.unwrap();
    raw.delete(&queue).await;
}

async fn an_existing_queue_is_used_as_it_is(url: String) {
    let raw = Raw::new(&url).await;
    let (limited, classic) = (unique("limited"), unique("classic"));
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(2));
    raw.channel.queue_declare(limited.as_str().into(), QueueDeclareOptions::durable(), arguments).await.unwrap();
    let durable = QueueDeclareOptions::durable();
    raw.channel.queue_declare(classic.as_str().into(), durable, FieldTable::default()).await.unwrap();
    let told = Arc::new(Told::default());
    let driver = connected(config(&url)).await;
    let refused = driver.subscribe(told.options(&classic)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
    let as_classic = connected(config(&url).queue_type(QueueType::Classic)).await;
    for (driver, queue) in [(&driver, &limited), (&as_classic, &classic)] {
        let mut subscription = driver.subscribe(told.options(queue)).await.unwrap();
        driver.publish(OutboundMessage::raw(&**queue, "{}")).await.unwrap();
        for attempt in 1..=6 {
            let delivery = next(&mut subscription).await;
            assert_eq!(delivery.message.attempt().get(), attempt, "{queue}");
            delivery.settler.settle(Settlement::retry(Duration::from_millis(20), attempt + 1));
        }
        let last = next(&mut subscription).await;
        last.settler.settle(Settlement::Ack);
        subscription.control.stop_receiving();
        subscription.control.flush().await.unwrap();
        driver.close().await.unwrap();
        assert_eq!(raw.count(queue).await, 0);
        raw.delete(queue).await;
    }
}

async fn a_delayed_publish_arrives_when_it_is_due(url: String) {
    let driver = connected(config(&url).delay_levels("test.delays")).await;
    let (queue, told) = (unique("delayed"), Arc::new(Told::default()));
    let nowhere = driver.publish(OutboundMessage::raw(&*queue, "").delay(Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Unroutable, "{}", nowhere.chain());
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    for millis in [1, 2_500, 300] {
        let message = OutboundMessage::raw(&*queue, millis.to_string()).delay(Duration::from_millis(millis));
        driver.publish(message).await.unwrap();
    }
    let since = Instant::now();
    for millis in [1, 300, 2_500] {
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.message.body, millis.to_string());
        assert!(since.elapsed() < Duration::from_millis(millis + 600), "{millis} after {:?}", since.elapsed());
        if millis == 2_500 {
            assert!(since.elapsed() >= Duration::from_millis(2_400));
            // One that the policy does not know goes the same way.
            delivery.settler.settle(Settlement::native_retry(Duration::from_millis(40), 2));
        } else {
            delivery.settler.settle(Settlement::Ack);
        }
    }
    let again = next(&mut subscription).await;
    assert_eq!(again.message.attempt().get(), 2);
    again.settler.settle(Settlement::Ack);
    subscription.control.stop_receiving();
    subscription.control.flush().await.unwrap();
    driver.close().await.unwrap();
    Raw::new(&url).await.delete(&queue).await;
}

fn main() {
    run(vec![
        trial("a delayed publish arrives when it is due", a_delayed_publish_arrives_when_it_is_due),
        trial("capabilities are those of the table", capabilities_are_those_of_the_table),
        trial("publish verdicts are exact in a crowd", publish_verdicts_are_exact_in_a_crowd),
        trial("long names and large bodies are errors", long_names_and_large_bodies_are_errors),
        trial("what cannot connect says why", what_cannot_connect_says_why),
        trial("a retry in process holds up nobody, and counts", a_retry_in_process_holds_up_nobody_and_counts),
        trial("a native retry keeps types, and counts", a_native_retry_keeps_types_and_counts),
        trial("a stop gives back what was not started", a_stop_gives_back_what_was_not_started),
        trial("a deleted queue is declared and consumed again", a_deleted_queue_is_declared_and_consumed_again),
        trial("an existing queue is used as it is", an_existing_queue_is_used_as_it_is),
    ]);
}
