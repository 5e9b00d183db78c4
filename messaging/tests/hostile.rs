//! User code, options and drivers that do their worst.
#![allow(clippy::unwrap_used)]

mod support;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use messaging::app::Provider;
use messaging::prelude::*;
use messaging::{ErrorKind, ViolationKind};
use messaging_memory::{Fault, MemoryDriver, capabilities};
use support::{Log, Rig, builder, message};
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// An error that is its own source, and whose drop panics.
#[derive(Debug)]
struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("endless")
    }
}

impl StdError for Endless {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self)
    }
}

#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

impl fmt::Display for Bomb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bomb")
    }
}

impl StdError for Bomb {}

#[consumer("orders", concurrency = 4)]
struct Orders {
    log: Arc<Log>,
}

#[handlers]
impl Orders {
    #[on_message("final")]
    async fn ends(&self, body: Bytes) -> Result<(), Failure> {
        self.log.note(format!("run {}", String::from_utf8_lossy(&body)));
        Err(Failure::non_retryable("no"))
    }

    #[on_message("endless")]
    #[retry(false)]
    async fn endless(&self) -> Result<(), Failure> {
        Err(Endless.into())
    }

    #[on_message("good")]
    async fn good(&self) {
        self.log.note("good");
    }

    #[on_message("hangs in on_error")]
    async fn hangs(&self) -> Result<(), Failure> {
        Err(Failure::non_retryable("hang"))
    }

    #[on_error]
    async fn failed(&self, failure: &Failure) {
        self.log.note("on_error");
        if failure.to_string() == "hang" {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_queue_that_is_away_never_makes_a_handler_run_again() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::publish("orders.dead-letter").error(ErrorKind::Rejected).always());
    for number in 0..1_100 {
        rig.send("final", &number.to_string());
    }
    tokio::time::sleep(600 * SECOND).await;
    rig.driver.heal();
    rig.driver.idle().await;
    let mut runs = rig.log.lines();
    runs.retain(|line| line.starts_with("run "));
    assert_eq!(runs.len(), 1_100);
    assert_eq!(rig.log.count("on_error"), 1_100);
    assert_eq!(rig.driver.dead_letters("orders").len(), 1_100);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_its_own_source_is_rendered_and_ends() {
    let rig = Rig::start::<Orders>().await;
    rig.send("endless", "");
    rig.driver.idle().await;
    assert!(
        rig.driver.dead_letters("orders")[0].headers.text("x-znight-error").unwrap().starts_with("endless: endless")
    );
}

#[tokio::test(start_paused = true)]
async fn on_error_is_cut_off_where_the_broker_would_take_the_message_back() {
    let rig = Rig::start_with::<Orders>(MemoryDriver::emulating(capabilities::RABBITMQ), |options| options).await;
    rig.send("hangs in on_error", "");
    rig.driver.idle().await;
    assert_eq!(rig.driver.dead_letters("orders").len(), 1);
}

#[consumer("bombs", scope = "request")]
struct Bombs {
    _first: Arc<BombA>,
    _second: Arc<BombB>,
}

struct BombA(#[allow(dead_code)] Bomb);
struct BombB(#[allow(dead_code)] Bomb);

#[handlers]
impl Bombs {
    #[on_message("fails")]
    #[retry(false)]
    async fn fails(&self) -> Result<(), Failure> {
        Err(Bomb.into())
    }

    #[on_message("succeeds")]
    #[retry(false)]
    async fn succeeds(&self) {}
}

#[tokio::test(start_paused = true)]
async fn whatever_panics_when_it_is_dropped_is_one_messages_failure() {
    let driver = MemoryDriver::new();
    let app = Application::builder()
        .add(Provider::factory(|_: Arc<InboundMessage>| BombA(Bomb)).per_request())
        .add(Provider::factory(|_: Arc<InboundMessage>| BombB(Bomb)).per_request())
        .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Bombs>())
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    for message_type in ["fails", "succeeds"] {
        driver.send(OutboundMessage::raw("bombs", "").message_type(message_type));
    }
    driver.idle().await;
    let dead = driver.dead_letters("bombs");
    let errors: Vec<_> = dead.iter().map(|dead| dead.headers.text("x-znight-error").unwrap()).collect();
    assert_eq!(errors, ["bomb", "panicked: dropped"]);
    app.stop().await;
}

#[derive(Debug)]
struct Never;

#[tokio::test(start_paused = true)]
async fn stop_does_not_wait_for_a_constructor_that_never_ends() {
    let app = Application::builder()
        .factory_async(|| async {
            std::future::pending::<()>().await;
            Never
        })
        .close_timeout(SECOND)
        .create()
        .await
        .unwrap();
    let app = Arc::new(app);
    let getting = tokio::spawn({
        let app = Arc::clone(&app);
        async move { app.get::<Never>().await.map(drop) }
    });
    tokio::time::sleep(SECOND).await;
    timeout(10 * SECOND, app.stop()).await.expect("bounded");
    getting.abort();
}

struct First(Arc<Log>);
#[derive(Debug)]
struct Second;

#[tokio::test(start_paused = true)]
async fn a_stop_that_is_cut_off_goes_on_with_the_next_call() {
    let log = Arc::new(Log::default());
    let app = Application::builder()
        .value(First(Arc::clone(&log)))
        .factory(|_: Arc<First>| Second)
        .on_close(|first: Arc<First>| async move { first.0.note("first closed") })
        .on_close(|_: Arc<Second>| async { tokio::time::sleep(2 * SECOND).await })
        .create()
        .await
        .unwrap();
    app.get::<Second>().await.unwrap();
    timeout(SECOND, app.stop()).await.unwrap_err();
    app.stop().await;
    assert_eq!(log.lines(), ["first closed"]);
    assert!(app.get::<Second>().await.unwrap_err().to_string().contains("was stopped"));
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_is_cut_off_goes_on_with_the_next_stop() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::ack().delay(3 * SECOND));
    rig.send("good", "");
    tokio::time::sleep(Duration::from_millis(1)).await;
    timeout(SECOND, rig.app.stop()).await.unwrap_err();
    rig.app.stop().await;
    assert_eq!(rig.driver.pending("orders"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_singleton_that_panics_when_it_goes_does_not_keep_the_others_open() {
    let log = Arc::new(Log::default());
    let app = Application::builder()
        .value(First(Arc::clone(&log)))
        .factory(|_: Arc<First>| Bomb)
        .on_close(|first: Arc<First>| async move { first.0.note("first closed") })
        .create()
        .await
        .unwrap();
    drop(app.get::<Bomb>().await.unwrap()); // not the last one that holds it
    app.stop().await;
    assert_eq!(log.lines(), ["first closed"]);
}

#[tokio::test(start_paused = true)]
async fn options_of_any_size_boot_and_stop() {
    let rig = Rig::start_with::<Orders>(MemoryDriver::new(), |options| {
        options
            .flush_timeout(Duration::MAX)
            .requeue_delay(Duration::MAX)
            .grace(Duration::MAX)
            .copy_timeout(Duration::MAX)
    })
    .await;
    rig.driver.fail(Fault::publish("orders.dead-letter").error(ErrorKind::Rejected));
    rig.send("final", "one");
    rig.send("good", "");
    tokio::time::sleep(SECOND).await;
    rig.app.stop().await;
    assert_eq!(rig.log.count("run one"), 1);
    assert_eq!(rig.log.count("good"), 1);

    let options = MessagingOptions::new(MemoryDriver::new()).concurrency(usize::MAX);
    let refused = builder::<WithDefaults>(options, &Arc::new(Log::default())).create().await.unwrap_err();
    assert_eq!(refused.violations()[0].kind(), ViolationKind::Options);
}

#[consumer("defaults")]
struct WithDefaults;

#[handlers]
impl WithDefaults {
    #[on_message]
    async fn all(&self) {}
}

#[tokio::test(start_paused = true)]
async fn a_start_that_was_cut_off_is_not_taken_for_a_start() {
    let driver = MemoryDriver::new();
    let app = builder::<WithDefaults>(MessagingOptions::new(driver.clone()), &Arc::default()).create().await.unwrap();
    driver.fail(Fault::subscribe().hang());
    timeout(SECOND, app.start()).await.unwrap_err();
    assert!(app.start().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_constructor_that_panics_is_a_boot_error_that_names_it() {
    #[derive(Debug, Injectable)]
    #[allow(dead_code)]
    struct Needs {
        never: Arc<Never>,
    }

    let app =
        Application::builder().factory(|| -> Never { panic!("no key") }).provide::<Needs>().create().await.unwrap();
    let refused = app.get::<Needs>().await.unwrap_err();
    assert_eq!(refused.to_string().lines().nth(1).unwrap().trim(), "1. Never: cannot be built: panicked: no key");
}

#[consumer("ping", dead_letter = "pong")]
struct Ping;

#[handlers]
impl Ping {
    #[on_message]
    async fn all(&self) {}
}

#[consumer("pong", dead_letter = "ping")]
struct Pong;

#[handlers]
impl Pong {
    #[on_message]
    async fn all(&self) {}
}

#[tokio::test]
async fn dead_letters_that_would_go_round_are_refused() {
    let plugin = MessagingPlugin::configure(MemoryDriver::new()).consumer::<Ping>().consumer::<Pong>();
    let refused = Application::builder().plugin(plugin).create().await.unwrap_err();
    assert_eq!(refused.violations().len(), 1, "{refused}");
    assert!(refused.to_string().contains("its dead letters go round: ping → pong → ping"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_closed_behind_our_back_shows_in_health() {
    use messaging::MessagingDriver;

    let rig = Rig::start::<Orders>().await;
    let broker = rig.app.get::<MessageBroker>().await.unwrap();
    rig.driver.close().await.unwrap();
    tokio::time::sleep(SECOND).await;
    let health = broker.health();
    assert!(!health.ready);
    assert_eq!(health.queues[0].state, messaging::QueueState::Ended);
}

#[tokio::test(start_paused = true)]
async fn workers_that_fail_together_fail_once() {
    let rig = Rig::start::<Orders>().await;
    rig.driver.fail(Fault::publish("orders.dead-letter").delay(SECOND).always());
    rig.driver.fail(Fault::publish("orders.dead-letter").error(ErrorKind::Rejected).times(4));
    rig.driver.heal();
    rig.driver.fail(Fault::publish("orders.dead-letter").hang().times(4));
    let sent = Instant::now();
    for number in 0..4 {
        rig.driver.send(message("final", &number.to_string()));
    }
    rig.driver.idle().await;
    // Ten seconds for the copies that hang, one until the next try: not thirty.
    assert!(sent.elapsed() < 15 * SECOND, "{:?}", sent.elapsed());
    assert_eq!(rig.driver.dead_letters("orders").len(), 4);
}
