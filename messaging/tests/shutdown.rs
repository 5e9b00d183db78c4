//! Stopping drops nothing and takes bounded time.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use messaging::prelude::*;
use messaging::{QueueState, Settlement};
use messaging_memory::MemoryDriver;
use support::{Log, Rig};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

#[consumer("orders")]
struct Orders {
    log: Arc<Log>,
}

#[handlers]
impl Orders {
    #[on_message("second")]
    async fn second(&self, signal: CancellationToken) {
        self.log.note("started");
        tokio::time::sleep(SECOND).await;
        self.log.note(if signal.is_cancelled() { "ended, signalled" } else { "ended" });
    }

    #[on_message("until stopped")]
    async fn until_stopped(&self, message: &InboundMessage) {
        message.signal().cancelled().await;
        self.log.note("gave up");
    }

    #[on_message("for ever")]
    #[retry(attempts = 2)]
    async fn for_ever(&self) {
        self.log.note("started");
        std::future::pending::<()>().await;
    }

    #[on_message("fails")]
    #[retry(attempts = 3, delay = 10s)]
    async fn fails(&self, attempt: Attempt) -> Result<(), Failure> {
        self.log.note(format!("fails #{attempt}"));
        Err("no".into())
    }
}

/// Lets spawned tasks run until they wait.
async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn running_handlers_end_and_nothing_new_starts() {
    let rig = Rig::start::<Orders>().await;
    for _ in 0..5 {
        rig.send("second", "");
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopping = Instant::now();
    rig.app.stop().await;
    assert_eq!(stopping.elapsed(), Duration::from_millis(800));
    assert_eq!(rig.log.lines(), ["started", "ended, signalled"]);
    assert_eq!(rig.driver.settlements("orders"), [Settlement::Ack]);
    assert_eq!(rig.driver.pending("orders"), 4);
}

#[tokio::test(start_paused = true)]
async fn the_signal_lets_a_handler_give_up_at_once() {
    let rig = Rig::start::<Orders>().await;
    rig.send("until stopped", "");
    settle_down().await;
    let stopping = Instant::now();
    rig.app.stop().await;
    assert!(stopping.elapsed() < Duration::from_millis(10));
    assert_eq!(rig.log.lines(), ["gave up"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_beyond_the_grace_is_cut_off_and_its_message_given_back() {
    let rig = Rig::start_with::<Orders>(MemoryDriver::new(), |options| options.grace(3 * SECOND)).await;
    rig.send("for ever", "");
    rig.send("second", "");
    settle_down().await;
    let stopping = Instant::now();
    rig.app.stop().await;
    assert_eq!(stopping.elapsed(), 3 * SECOND);
    assert_eq!(rig.log.lines(), ["started"]);
    assert_eq!(rig.driver.pending("orders"), 2);
    assert!(rig.driver.settlements("orders").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_retry_does_not_hold_up_the_stop_and_is_not_lost() {
    let rig = Rig::start::<Orders>().await;
    rig.send("fails", "");
    tokio::time::sleep(SECOND).await;
    let stopping = Instant::now();
    rig.app.stop().await;
    assert!(stopping.elapsed() < Duration::from_millis(10));
    assert_eq!(rig.log.lines(), ["fails #1"]);
    assert_eq!(rig.driver.pending("orders"), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_while_a_dead_letter_copy_hangs_is_bounded() {
    let rig = Rig::start_with::<Orders>(MemoryDriver::new(), |options| {
        options.grace(2 * SECOND).retry(messaging::RetryPolicy::none())
    })
    .await;
    rig.driver.fail(messaging_memory::Fault::any_publish().hang().always());
    rig.send("no such type", "");
    settle_down().await;
    let stopping = Instant::now();
    rig.app.stop().await;
    assert!(stopping.elapsed() <= 3 * SECOND, "{:?}", stopping.elapsed());
    assert_eq!(rig.driver.pending("orders"), 1);
}

#[tokio::test(start_paused = true)]
async fn health_follows_the_life_of_the_application() {
    let rig = Rig::start::<Orders>().await;
    let broker = rig.app.get::<MessageBroker>().await.unwrap();
    assert!(broker.health().ready);
    rig.send("second", "");
    rig.driver.idle().await;
    assert_eq!(broker.health().queues[0].counts.acked, 1);
    rig.app.stop().await;
    assert!(!broker.health().ready);
    assert_eq!(broker.health().queues[0].state, QueueState::Stopped);
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_does_not_hang_the_stop() {
    #[consumer("blocking")]
    struct Blocking;

    #[handlers]
    impl Blocking {
        #[on_message]
        async fn block(&self) {
            // Blocks the runtime's worker on purpose: no await, no way to cut it off.
            let (_keep, never) = std::sync::mpsc::channel::<()>();
            let _ = never.recv_timeout(Duration::from_secs(30));
        }
    }

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let took = std::thread::spawn(move || {
        let took = runtime.block_on(async {
            let driver = MemoryDriver::new();
            let options = MessagingOptions::new(driver.clone()).grace(Duration::from_millis(50));
            let app = support::builder::<Blocking>(options, &Arc::new(Log::default())).create().await.unwrap();
            app.start().await.unwrap();
            driver.send(messaging::OutboundMessage::raw("blocking", ""));
            while driver.pending("blocking") == 0
                || app.get::<MessageBroker>().await.unwrap().health().queues[0].counts.received == 0
            {
                tokio::task::yield_now().await;
            }
            let stopping = std::time::Instant::now();
            app.stop().await;
            stopping.elapsed()
        });
        runtime.shutdown_background();
        took
    })
    .join()
    .unwrap();
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_dropped_lets_go_of_its_messages() {
    let rig = Rig::start::<Orders>().await;
    rig.send("for ever", "");
    rig.send("second", "");
    settle_down().await;
    let Rig { driver, app, log } = rig;
    drop(app);
    settle_down().await;
    assert_eq!(driver.pending("orders"), 2);
    assert_eq!(log.lines(), ["started"]);
}
