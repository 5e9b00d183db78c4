//! `run` and the operator's signals. One test: signals reach the whole process.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging::prelude::*;
use messaging_memory::MemoryDriver;
use support::{Log, builder, message};

#[consumer("orders")]
struct Orders {
    log: Arc<Log>,
}

#[handlers]
impl Orders {
    #[on_message("polite")]
    async fn polite(&self, signal: CancellationToken) {
        self.log.note("started");
        signal.cancelled().await;
        self.log.note("gave up");
    }

    #[on_message("stubborn")]
    async fn stubborn(&self) {
        self.log.note("started");
        std::future::pending::<()>().await;
    }
}

/// Runs an application with one message under way, sends it that many signals, and tells how long it took to end.
async fn run_until_signalled(message_type: &str, signals: usize) -> (Duration, Arc<Log>, MemoryDriver) {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    let options = MessagingOptions::new(driver.clone()).grace(Duration::from_secs(30));
    let app = builder::<Orders>(options, &log).create().await.unwrap();
    driver.send(message(message_type, ""));
    let run = tokio::spawn(async move { app.run().await });
    let deadline = Instant::now() + Duration::from_secs(10);
    while log.lines().is_empty() {
        assert!(Instant::now() < deadline, "the handler did not start");
        tokio::task::yield_now().await;
    }
    let signalled = Instant::now();
    for _ in 0..signals {
        let sent = Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
        assert!(sent.success());
        // A second signal counts when the first was seen: the intake has ended then.
        tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await.unwrap_err();
    }
    tokio::time::timeout(Duration::from_secs(20), run).await.expect("it did not stop").unwrap().unwrap();
    (signalled.elapsed(), log, driver)
}

#[tokio::test]
async fn a_signal_stops_in_order_and_a_second_one_waits_for_nobody() {
    let (took, log, driver) = run_until_signalled("polite", 1).await;
    assert_eq!(log.lines(), ["started", "gave up"]);
    assert_eq!(driver.pending("orders"), 0);
    assert!(took < Duration::from_secs(5), "{took:?}");

    let (took, log, driver) = run_until_signalled("stubborn", 2).await;
    assert_eq!(log.lines(), ["started"]);
    assert_eq!(driver.pending("orders"), 1, "cut off, and given back");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
