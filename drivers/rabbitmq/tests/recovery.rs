//! Connections that break, stall and come back.

#![allow(clippy::expect_used, clippy::unwrap_used)]

#[path = "support/relay.rs"]
#[allow(unreachable_pub, clippy::expect_used)]
mod relay;
mod support;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use messaging::driver::MessagingDriver;
use messaging::{ErrorKind, OutboundMessage, Settlement};
use messaging_rabbitmq::RabbitMqDriver;
use relay::Relay;
use support::{Raw, Told, config, connected, next, run, trial, unique, until};

async fn a_lost_connection_takes_back_what_was_in_flight(url: String) {
    let relay = Relay::new(&url).await;
    let driver = connected(config(&relay.url)).await;
    let (queue, told) = (unique("cut"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    driver.publish(OutboundMessage::raw(&*queue, "1")).await.unwrap();
    let held = next(&mut subscription).await;
    let signal = held.message.signal();
    relay.cut();
    signal.cancelled().await;
    assert!(!held.settler.still_ours());
    held.settler.settle(Settlement::Ack);
    let again = next(&mut subscription).await;
    assert_eq!(again.message.attempt().get(), 2, "the lost delivery is charged");
    again.settler.settle(Settlement::Ack);
    driver.publish(OutboundMessage::raw(&*queue, "2")).await.unwrap();
    next(&mut subscription).await.settler.settle(Settlement::Ack);
    until(|| told.settlements().len() == 3).await;
    assert_eq!(told.settlements().iter().map(|(_, done)| *done).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!((told.faults.lock().unwrap().len(), *told.healed.lock().unwrap()), (1, 1));
    subscription.control.stop_receiving();
    driver.close().await.unwrap();
    let raw = Raw::new(&url).await;
    assert_eq!(raw.count(&queue).await, 0);
    raw.delete(&queue).await;
}

async fn a_stalled_publish_is_unconfirmed_in_time(url: String) {
    let relay = Relay::new(&url).await;
    let driver = connected(config(&relay.url).publish_timeout(Duration::from_millis(700))).await;
    let (queue, told) = (unique("stall"), Arc::new(Told::default()));
    let subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    // Often enough for every channel to be open.
    for _ in 0..8 {
        driver.publish(OutboundMessage::raw(&*queue, "1")).await.unwrap();
    }
    relay.stall();
    let since = Instant::now();
    let error = driver.publish(OutboundMessage::raw(&*queue, "2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unconfirmed, "{}", error.chain());
    assert!(since.elapsed() < Duration::from_secs(2));
    relay.refuse();
    let error = driver.publish(OutboundMessage::raw(&*queue, "3")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Connection | ErrorKind::Unconfirmed), "{}", error.chain());
    relay.pass();
    let until = Instant::now() + Duration::from_secs(15);
    while driver.publish(OutboundMessage::raw(&*queue, "4")).await.is_err() {
        assert!(Instant::now() < until, "publishes again");
    }
    drop(subscription);
    let since = Instant::now();
    relay.stall();
    driver.close().await.unwrap();
    assert!(since.elapsed() < Duration::from_secs(10), "a close is bounded");
    Raw::new(&url).await.delete(&queue).await;
}

async fn a_broker_that_is_away_at_boot_is_waited_for_where_asked(url: String) {
    let relay = Relay::new(&url).await;
    relay.refuse();
    let at_once = RabbitMqDriver::new(config(&relay.url)).connect().await.unwrap_err();
    assert_eq!(at_once.kind(), ErrorKind::Connection, "{}", at_once.chain());
    let driver = RabbitMqDriver::new(config(&relay.url).wait_for_broker(Duration::from_secs(20)));
    let comes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        relay.pass();
    };
    let (connected, ()) = tokio::join!(driver.connect(), comes);
    connected.unwrap();
    driver.close().await.unwrap();
}

async fn nothing_confirmed_is_lost_over_ten_cuts(url: String) {
    let relay = Relay::new(&url).await;
    let driver = Arc::new(connected(config(&relay.url)).await);
    let (queue, told) = (unique("cuts"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    let confirmed = Arc::new(Mutex::new(HashSet::new()));
    let publishers: Vec<_> = (0..8)
        .map(|publisher| {
            let (driver, queue, confirmed) = (Arc::clone(&driver), queue.clone(), Arc::clone(&confirmed));
            tokio::spawn(async move {
                for number in 0..250 {
                    let id = format!("{publisher}-{number}");
                    let message = OutboundMessage::raw(&*queue, "{}").id(id.clone());
                    while driver.publish(message.clone()).await.is_err() {}
                    confirmed.lock().unwrap().insert(id);
                    tokio::time::sleep(Duration::from_millis(8)).await;
                }
            })
        })
        .collect();
    let cuts = tokio::spawn(async move {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            relay.cut();
        }
        relay
    });
    let mut seen = HashSet::new();
    while seen.len() < 2_000 {
        let delivery = next(&mut subscription).await;
        seen.insert(delivery.message.id.to_string());
        delivery.settler.settle(Settlement::Ack);
    }
    for publisher in publishers {
        publisher.await.unwrap();
    }
    let _relay = cuts.await.unwrap();
    assert!(confirmed.lock().unwrap().is_subset(&seen));
    subscription.control.stop_receiving();
    driver.close().await.unwrap();
    Raw::new(&url).await.delete(&queue).await;
}

fn main() {
    run(vec![
        trial("a lost connection takes back what was in flight", a_lost_connection_takes_back_what_was_in_flight),
        trial("a stalled publish is unconfirmed in time", a_stalled_publish_is_unconfirmed_in_time),
        trial(
            "a broker that is away at boot is waited for where asked",
            a_broker_that_is_away_at_boot_is_waited_for_where_asked,
        ),
        trial("nothing confirmed is lost over ten cuts", nothing_confirmed_is_lost_over_ten_cuts),
    ]);
}
