//! The broker itself stops, dies and raises an alarm; needs `RABBITMQ_SCRIPT`, the full path of `scripts/brokers/rabbitmq.sh`
//! and the version, which takes `kill`, `stop`, `start` and `ctl`.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use messaging::driver::MessagingDriver;
use messaging::{ErrorKind, OutboundMessage, Settlement};
use support::{Raw, Script, Told, config, connected, next, trial, unique, until};

async fn script(arguments: &str) {
    Script::given().expect("RABBITMQ_SCRIPT").run(arguments).await.unwrap();
}

/// How many are confirmed at least, before, in and after the outage.
const MESSAGES: usize = 10_000;

async fn nothing_confirmed_is_lost_over(url: String, end: &'static str) {
    let driver = Arc::new(connected(config(&url)).await);
    let (queue, told) = (unique("outage"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    driver.publish(OutboundMessage::raw(&*queue, "{}").id("first")).await.unwrap();
    // A broker that is killed forgets a queue, and what was confirmed in it, until its own tables are on the disk: seconds
    // after the declaration, or now.
    script("ctl eval 'catch mnesia:sync_log(), [dets:sync(T) || T <- dets:all()].'").await;
    let (confirmed, over) = (Arc::new(Mutex::new(HashSet::new())), Arc::new(AtomicBool::new(false)));
    let sum = &confirmed;
    let enough = |count: usize| until(move || sum.lock().unwrap().len() >= count);
    let publishers: Vec<_> = (0..20)
        .map(|publisher| {
            let (driver, queue) = (Arc::clone(&driver), queue.clone());
            let (confirmed, over) = (Arc::clone(&confirmed), Arc::clone(&over));
            tokio::spawn(async move {
                for number in 0.. {
                    let id = format!("{publisher}-{number}");
                    let message = OutboundMessage::raw(&*queue, "{}").id(id.clone());
                    while driver.publish(message.clone()).await.is_err() {}
                    let mut confirmed = confirmed.lock().unwrap();
                    confirmed.insert(id);
                    if over.load(Ordering::SeqCst) && confirmed.len() >= MESSAGES {
                        return;
                    }
                }
            })
        })
        .collect();
    let outage = async {
        enough(500).await;
        script(end).await;
        script("start").await;
        let before = confirmed.lock().unwrap().len();
        enough(before + 500).await;
        over.store(true, Ordering::SeqCst);
        for publisher in publishers {
            publisher.await.unwrap();
        }
        driver.publish(OutboundMessage::raw(&*queue, "{}").id("last")).await.unwrap();
    };
    let mut seen = HashSet::new();
    let handling = async {
        // What was given back may come after the last one.
        while !(seen.contains("last") && confirmed.lock().unwrap().is_subset(&seen)) {
            let delivery = next(&mut subscription).await;
            seen.insert(delivery.message.id.to_string());
            delivery.settler.settle(Settlement::Ack);
        }
    };
    tokio::join!(outage, handling);
    subscription.control.stop_receiving();
    driver.close().await.unwrap();
    Raw::new(&url).await.delete(&queue).await;
}

async fn a_restart_loses_nothing(url: String) {
    nothing_confirmed_is_lost_over(url, "stop").await;
}

async fn a_crash_loses_nothing(url: String) {
    nothing_confirmed_is_lost_over(url, "kill").await;
}

async fn an_alarm_holds_publishes_and_nothing_else(url: String) {
    let driver = connected(config(&url).publish_timeout(Duration::from_secs(2))).await;
    let (queue, told) = (unique("alarm"), Arc::new(Told::default()));
    let mut subscription = driver.subscribe(told.options(&queue)).await.unwrap();
    driver.publish(OutboundMessage::raw(&*queue, "1")).await.unwrap();
    script("ctl set_vm_memory_high_watermark 0.0001").await;
    let first = driver.publish(OutboundMessage::raw(&*queue, "2")).await;
    let second = driver.publish(OutboundMessage::raw(&*queue, "3")).await;
    // What was held is not settled, and what is settled is not held.
    next(&mut subscription).await.settler.settle(Settlement::Ack);
    subscription.control.flush().await.unwrap();
    script("ctl set_vm_memory_high_watermark 0.6").await;
    assert!(matches!(first.unwrap_err().kind(), ErrorKind::Unconfirmed | ErrorKind::Connection));
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Connection);
    driver.publish(OutboundMessage::raw(&*queue, "4")).await.unwrap();
    subscription.control.stop_receiving();
    driver.close().await.unwrap();
    Raw::new(&url).await.delete(&queue).await;
}

fn main() {
    let ignored = std::env::var("RABBITMQ_SCRIPT").is_err();
    let with_script = |trial: Trial| if ignored { trial.with_ignored_flag(true) } else { trial };
    let trials = [
        trial("a restart loses nothing (needs RABBITMQ_SCRIPT)", a_restart_loses_nothing),
        trial("a crash loses nothing (needs RABBITMQ_SCRIPT)", a_crash_loses_nothing),
        trial(
            "an alarm holds publishes and nothing else (needs RABBITMQ_SCRIPT)",
            an_alarm_holds_publishes_and_nothing_else,
        ),
    ];
    // One after the other: they share the broker that they stop.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.into_iter().map(with_script).collect()).exit();
}
