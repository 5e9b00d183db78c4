//! Connections that break, stall and come back.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod support;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use messaging::driver::MessagingDriver;
use messaging::{ErrorKind, OutboundMessage, Settlement};
use messaging_rabbitmq::RabbitMqDriver;
use support::{Raw, Told, config, connected, next, relayed, run, trial, unique, until};

async fn a_lost_connection_takes_back_what_was_in_flight(url: String) {
    let (relay, through) = relayed(&url);
    let driver = connected(config(&through)).await;
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
    let (relay, through) = relayed(&url);
    let driver = connected(config(&through).publish_timeout(Duration::from_millis(700))).await;
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
    let (relay, through) = relayed(&url);
    relay.refuse();
    let at_once = RabbitMqDriver::new(config(&through)).connect().await.unwrap_err();
    assert_eq!(at_once.kind(), ErrorKind::Connection, "{}", at_once.chain());
    let driver = RabbitMqDriver::new(config(&through).wait_for_broker(Duration::from_secs(20)));
    let refused = relay.refused();
    let comes = async {
        until(|| relay.refused() > refused + 1).await;
        relay.pass();
    };
    let (connected, ()) = tokio::join!(driver.connect(), comes);
    connected.unwrap();
    driver.close().await.unwrap();
}

async fn nothing_confirmed_is_lost_over_six_cuts(url: String) {
    let (relay, through) = relayed(&url);
    let driver = Arc::new(connected(config(&through)).await);
    let (queue, told) = (unique("cuts"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    let confirmed = Arc::new(Mutex::new(HashSet::new()));
    let sum = &confirmed;
    let published = |count: usize| until(move || sum.lock().unwrap().len() >= count);
    let publishers: Vec<_> = (0..8)
        .map(|publisher| {
            let (driver, queue, confirmed) = (Arc::clone(&driver), queue.clone(), Arc::clone(&confirmed));
            tokio::spawn(async move {
                for number in 0..250 {
                    let id = format!("{publisher}-{number}");
                    let message = OutboundMessage::raw(&*queue, "{}").id(id.clone());
                    while driver.publish(message.clone()).await.is_err() {}
                    confirmed.lock().unwrap().insert(id);
                }
            })
        })
        .collect();
    let cuts = async {
        for cut in 1..=6 {
            published(cut * 300).await;
            relay.cut();
        }
    };
    let mut seen = HashSet::new();
    let handling = async {
        while seen.len() < 2_000 {
            let delivery = next(&mut subscription).await;
            seen.insert(delivery.message.id.to_string());
            delivery.settler.settle(Settlement::Ack);
        }
    };
    tokio::join!(cuts, handling);
    for publisher in publishers {
        publisher.await.unwrap();
    }
    assert!(confirmed.lock().unwrap().is_subset(&seen));
    subscription.control.stop_receiving();
    driver.close().await.unwrap();
    Raw::new(&url).await.delete(&queue).await;
}

async fn a_close_does_not_wait_for_a_connection_that_is_gone(url: String) {
    let (queue, told) = (unique("close"), Arc::new(Told::default()));
    let (relay, through) = relayed(&url);
    for round in 0..40 {
        let driver = connected(config(&through)).await;
        let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
        driver.publish(OutboundMessage::raw(&*queue, "{}")).await.unwrap();
        let settlement = if round % 2 == 0 { Settlement::Ack } else { Settlement::retry(Duration::ZERO, 2) };
        next(&mut subscription).await.settler.settle(settlement);
        let since = Instant::now();
        let closing = tokio::spawn(async move { driver.close().await });
        // Sometimes before the broker has answered, sometimes after.
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        relay.cut();
        closing.await.unwrap().unwrap();
        assert!(since.elapsed() < Duration::from_secs(2), "close {round} took {:?}", since.elapsed());
        until(|| told.settlements().len() == round + 1).await;
    }
    Raw::new(&url).await.delete(&queue).await;
}

fn main() {
    run(vec![
        trial(
            "a close does not wait for a connection that is gone",
            a_close_does_not_wait_for_a_connection_that_is_gone,
        ),
        trial("a lost connection takes back what was in flight", a_lost_connection_takes_back_what_was_in_flight),
        trial("a stalled publish is unconfirmed in time", a_stalled_publish_is_unconfirmed_in_time),
        trial(
            "a broker that is away at boot is waited for where asked",
            a_broker_that_is_away_at_boot_is_waited_for_where_asked,
        ),
        trial("nothing confirmed is lost over six cuts", nothing_confirmed_is_lost_over_six_cuts),
    ]);
}
