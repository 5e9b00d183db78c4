//! `run` and the operator's signals. One test: signals reach the whole process.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

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
    async fn stubborn(&self, signal: CancellationToken) {
        self.log.note("started");
        signal.cancelled().await;
        self.log.note("signalled");
        std::future::pending::<()>().await;
    }
}

fn terminate() {
    let sent = Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
    assert!(sent.success());
}

async fn until(log: &Log, line: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while log.count(line) == 0 {
        assert!(Instant::now() < deadline, "`{line}` did not happen");
        tokio::task::yield_now().await;
    }
}

/// Runs an application with one message under way, signals it, and tells how long it took to end.
async fn run_until_signalled(message_type: &str, second_signal: bool) -> (Duration, Arc<Log>, MemoryDriver) {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    let options = MessagingOptions::new(driver.clone()).grace(Duration::from_secs(30));
    let app = builder::<Orders>(options, &log).create().await.unwrap();
    driver.send(message(message_type, ""));
    let run = tokio::spawn(async move { app.run().await });
    until(&log, "started").await;
    let signalled = Instant::now();
    terminate();
    if second_signal {
        // It counts once the first was seen.
        until(&log, "signalled").await;
        terminate();
    }
    tokio::time::timeout(Duration::from_secs(20), run).await.expect("it did not stop").unwrap().unwrap();
    (signalled.elapsed(), log, driver)
}

#[tokio::test]
async fn a_signal_stops_in_order_and_a_second_one_waits_for_nobody() {
    let (took, log, driver) = run_until_signalled("polite", false).await;
    assert_eq!(log.lines(), ["started", "gave up"]);
    assert_eq!(driver.pending("orders"), 0);
    assert!(took < Duration::from_secs(5), "{took:?}");

    let (took, log, driver) = run_until_signalled("stubborn", true).await;
    assert_eq!(log.lines(), ["started", "signalled"]);
    assert_eq!(driver.pending("orders"), 1, "cut off, and given back");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
