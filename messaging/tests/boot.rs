//! What refuses the boot, how it reads, and what starting and stopping an application does.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging::app::{Container, Plugin, Provider, Registry};
use messaging::driver::MessagingDriver;
use messaging::prelude::*;
use messaging::{
    Attempt, Backoff, Capabilities, ErrorKind, Jitter, OutboundMessage, QueueState, RetryPlan, Settlement, Step,
    ViolationKind, driver_from_url,
};
use messaging_memory::capabilities::{KAFKA, KAFKA_WITHOUT_RETRY_TOPICS, MEMORY, RABBITMQ, SQS};
use messaging_memory::{Fault, MemoryDriver};
use support::Log;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Every step of a policy, or its refusal: `1s` waits in process, `native 1s` at the broker.
fn proven(policy: &RetryPolicy, capabilities: &Capabilities) -> String {
    match RetryPlan::prove(policy, capabilities) {
        Ok(plan) => {
            let step = |attempt| match plan.step(Attempt::new(attempt), Jitter::default()) {
                Some(Step::InProcess(delay)) => format!("{delay:?}"),
                Some(Step::Native(delay)) => format!("native {delay:?}"),
                None => "none".to_owned(),
            };
            (1..plan.attempts()).map(step).collect::<Vec<_>>().join(", ")
        }
        Err(violation) => {
            assert_eq!(violation.kind(), ViolationKind::Retry);
            assert!(!violation.fix().is_empty());
            violation.problem().to_owned()
        }
    }
}

fn beyond(attempt: u32, asked: &str, longest: &str) -> String {
    format!("the retry after attempt {attempt} wants a delay of {asked}, and the driver can delay at most {longest}")
}

/// In process throughout, or at the broker throughout.
fn steps(prefix: &str, delays: &[Duration]) -> String {
    delays.iter().map(|delay| format!("{prefix}{delay:?}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn each_policy_is_proven_delay_by_delay_against_each_driver() {
    let exponential = |attempts, first| RetryPolicy::new(attempts).delay(first);
    let fixed = |delay| RetryPolicy::new(2).backoff(Backoff::Fixed).delay(delay);
    let in_process = |delays: &[Duration]| steps("", delays);
    let native = |delays: &[Duration]| steps("native ", delays);
    let hours = |hours: &[u32]| hours.iter().map(|hours| HOUR * *hours).collect::<Vec<_>>();

    let half = Duration::from_millis(500);
    let growing: Vec<_> = (0..5).map(|doubled| HOUR * (1 << doubled)).collect();
    let capped = hours(&[1, 2, 4, 6, 6]);
    let seconds: Vec<_> = [1, 2, 4, 8].map(|seconds| SECOND * seconds).into();
    let saturated: Vec<_> =
        (0..59).map(|doubled| if doubled < 32 { SECOND * (1_u32 << doubled) } else { Duration::MAX }).collect();
    let (sqs, six_days, minute, levels) = ("11h 59min", "6d", "1min", "49d 17h 2min 47s 295ms");
    let smaller = "`max_delay` (5s) is smaller than `delay` (10s)".to_owned();
    let none = "`attempts` is 0, and the first delivery counts".to_owned();
    let table = [
        (
            RetryPolicy::default(),
            in_process(&seconds[..2]),
            in_process(&seconds[..2]),
            native(&seconds[..2]),
            native(&seconds[..2]),
            in_process(&seconds[..2]),
        ),
        (
            exponential(5, SECOND).max_delay(60 * SECOND),
            in_process(&seconds),
            format!("{}, {}", in_process(&seconds[..3]), native(&seconds[3..])),
            native(&seconds),
            native(&seconds),
            in_process(&seconds),
        ),
        (
            fixed(half),
            in_process(&[half]),
            in_process(&[half]),
            in_process(&[half]),
            native(&[half]),
            in_process(&[half]),
        ),
        (
            fixed(3 * half),
            in_process(&[3 * half]),
            in_process(&[3 * half]),
            native(&[3 * half]),
            native(&[3 * half]),
            in_process(&[3 * half]),
        ),
        (
            exponential(6, HOUR),
            in_process(&growing),
            native(&growing),
            beyond(5, "16h", sqs),
            native(&growing),
            beyond(1, "1h", minute),
        ),
        (
            exponential(6, HOUR).max_delay(6 * HOUR),
            in_process(&capped),
            native(&capped),
            native(&capped),
            native(&capped),
            beyond(1, "1h", minute),
        ),
        (
            fixed(12 * HOUR),
            in_process(&[12 * HOUR]),
            native(&[12 * HOUR]),
            beyond(1, "12h", sqs),
            native(&[12 * HOUR]),
            beyond(1, "12h", minute),
        ),
        (
            fixed(7 * DAY),
            in_process(&[7 * DAY]),
            native(&[7 * DAY]),
            beyond(1, "7d", sqs),
            beyond(1, "7d", six_days),
            beyond(1, "7d", minute),
        ),
        (
            fixed(60 * DAY),
            in_process(&[60 * DAY]),
            beyond(1, "60d", levels),
            beyond(1, "60d", sqs),
            beyond(1, "60d", six_days),
            beyond(1, "60d", minute),
        ),
        (
            exponential(60, SECOND),
            in_process(&saturated),
            // 2^22 s, the first beyond 2^32 − 1 ms.
            beyond(24, "97d 2h 10min 8s", levels),
            beyond(17, "18h 12min 16s", sqs),
            beyond(20, "6d 1h 38min 8s", six_days),
            beyond(7, "1min 4s", minute),
        ),
        (
            RetryPolicy::none().backoff(Backoff::Fixed).delay(36_500 * DAY),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ),
        (
            RetryPolicy::new(3).delay(10 * SECOND).max_delay(5 * SECOND),
            smaller.clone(),
            smaller.clone(),
            smaller.clone(),
            smaller.clone(),
            smaller,
        ),
        (RetryPolicy::new(0), none.clone(), none.clone(), none.clone(), none.clone(), none),
    ];
    for (policy, memory, rabbitmq, sqs, kafka, kafka_without) in table {
        let expected = [memory, rabbitmq, sqs, kafka, kafka_without];
        let drivers = [MEMORY, RABBITMQ, SQS, KAFKA, KAFKA_WITHOUT_RETRY_TOPICS];
        assert_eq!(drivers.map(|driver| proven(&policy, &driver)), expected, "{policy:?}");
    }
}

#[test]
fn jitter_is_proven_by_its_upper_bound_and_out_of_range_it_is_refused() {
    let policy = RetryPolicy::new(2).delay(50 * SECOND);
    assert_eq!(proven(&policy.jitter(0.2), &KAFKA_WITHOUT_RETRY_TOPICS), "50s");
    assert_eq!(
        proven(&policy.jitter(0.3), &KAFKA_WITHOUT_RETRY_TOPICS),
        "the retry after attempt 1 wants a delay of 1min 5s (jitter included), and the driver can delay at most 1min",
    );
    for jitter in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(proven(&policy.jitter(jitter), &MEMORY), format!("`jitter` is {jitter}"));
    }
}

#[test]
fn more_delays_than_a_queue_can_have_are_refused_as_a_mistake() {
    let many = RetryPolicy::new(200).delay(Duration::from_millis(1)).jitter(1.0).max_delay(DAY);
    assert_eq!(proven(&many, &KAFKA), "the policy has 83 different delays, and 64 are the most for one handler",);
    assert!(RetryPlan::prove(&many, &MEMORY).is_ok());
}

const BY_ORDER: &str = "order.*";
const BY_EVENT: &str = "*.created";
const NO_ATTEMPTS: u32 = 0;
const NO_TIME: Duration = Duration::ZERO;
const TEN_SECONDS: Duration = Duration::from_secs(10);

struct Gone;
struct Tenant;

#[derive(Injectable)]
struct Hen {
    _egg: Arc<Egg>,
}

#[derive(Injectable)]
struct Egg {
    _hen: Arc<Hen>,
}

#[consumer("orders")]
struct Orders {
    _gone: Arc<Gone>,
}

#[handlers]
impl Orders {
    #[on_message(BY_ORDER)]
    async fn on_order(&self) {}

    #[on_message(BY_EVENT)]
    async fn on_event(&self) {}

    #[on_message("order.paid")]
    #[retry(attempts = NO_ATTEMPTS)]
    async fn on_paid(&self) {}

    #[on_message("order.sent", timeout = NO_TIME)]
    #[retry(attempts = 3, delay = TEN_SECONDS, max_delay = 5s)]
    async fn on_sent(&self) {}
}

#[consumer("orders", dead_letter = "orders")]
struct OrderAudit {
    _tenant: Arc<Tenant>,
}

#[handlers]
impl OrderAudit {
    #[on_message("order.*", timeout = 12h)]
    #[retry(attempts = 6, delay = 1h)]
    async fn on_order(&self, _gone: Inject<Gone>) {}
}

fn everything_wrong() -> messaging::ApplicationBuilder {
    let options = MessagingOptions::new(MemoryDriver::emulating(SQS))
        .concurrency(0)
        .prefix("Acme_")
        .requeue_delay(Duration::ZERO)
        .copy_timeout(Duration::ZERO);
    Application::builder()
        .provide::<Hen>()
        .provide::<Egg>()
        .add(Provider::value(Tenant).per_request())
        .value(1_u8)
        .value(2_u8)
        .replace(Arc::new("nothing to replace".to_owned()))
        .plugin(MessagingPlugin::configure(options).consumer::<Orders>().consumer::<OrderAudit>())
}

/// Holds a text against a file; `UPDATE_SNAPSHOTS=1` writes it.
fn assert_snapshot(name: &str, text: &str) {
    let path = format!("{}/tests/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = format!("{text}\n");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{path} differs; UPDATE_SNAPSHOTS=1 writes it, then read it");
}

#[tokio::test]
async fn everything_that_refuses_the_boot_is_told_at_once_and_says_what_to_change() {
    let error = everything_wrong().create().await.unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    for violation in error.violations() {
        assert!(!violation.concerns().is_empty() && !violation.fix().is_empty(), "{violation}");
    }
    assert_snapshot("everything_wrong", &error.to_string());
}

#[consumer("one")]
struct One {
    log: Arc<Log>,
}

#[handlers]
impl One {
    #[on_message("slow")]
    #[retry(attempts = 2, delay = 12h)]
    async fn on_slow(&self) {}

    #[on_message]
    async fn on_any(&self) {
        self.log.note("one");
    }
}

#[consumer("two")]
struct Two;

#[handlers]
impl Two {
    #[on_message]
    async fn on_any(&self) {}
}

#[consumer("three")]
struct Three;

#[handlers]
impl Three {
    #[on_message]
    async fn on_any(&self) {}
}

fn problems(error: &BootError) -> Vec<String> {
    error.violations().iter().map(|violation| format!("{}: {}", violation.concerns(), violation.problem())).collect()
}

async fn refused(builder: messaging::ApplicationBuilder) -> Vec<String> {
    problems(&builder.create().await.unwrap_err())
}

async fn created(plugin: MessagingPlugin) -> Application {
    Application::builder().shared(Arc::new(Log::default())).plugin(plugin).create().await.unwrap()
}

async fn broker_of(app: &Application) -> Arc<MessageBroker> {
    app.get().await.unwrap()
}

#[tokio::test]
async fn a_consumer_that_is_named_twice_is_subscribed_once() {
    let plugin = MessagingPlugin::configure(MemoryDriver::new()).consumer::<Two>().consumer::<One>().consumer::<Two>();
    let app = created(plugin).await;
    let queues: Vec<_> = broker_of(&app).await.health().queues.iter().map(|queue| queue.queue.to_string()).collect();
    assert_eq!(queues, ["two", "one"]);
}

#[tokio::test]
async fn two_messaging_plugins_are_refused() {
    let plugin = || MessagingPlugin::configure(MemoryDriver::new());
    let builder = Application::builder().plugin(plugin().consumer::<Two>()).plugin(plugin().consumer::<Three>());
    assert_eq!(refused(builder).await, [": the plugin `messaging` is there twice"]);
}

struct Config {
    url: &'static str,
    workers: usize,
}

#[tokio::test(start_paused = true)]
async fn options_come_from_the_container_and_are_proven_all_the_same() {
    let config = |workers| Config { url: "memory:", workers };
    let plugin = || {
        MessagingPlugin::configure_with(|config: Arc<Config>| {
            MessagingOptions::new(MemoryDriver::emulating(SQS)).concurrency(config.workers)
        })
        .consumer::<One>()
    };
    let log = Arc::new(Log::default());
    let builder = |workers| Application::builder().shared(Arc::clone(&log)).value(config(workers)).plugin(plugin());
    let beyond = format!("One::on_slow (queue `one`, driver `memory`): {}", beyond(1, "12h", "11h 59min"));
    assert_eq!(refused(builder(1)).await, [&*beyond]);
    assert_eq!(
        refused(builder(0)).await,
        ["option `concurrency`: is 0, and nothing would be handled".to_owned(), beyond],
    );

    let driver = MemoryDriver::new();
    let handle = driver.clone();
    let plugin = MessagingPlugin::configure_with(move |config: Arc<Config>, log: Arc<Log>| {
        log.note(format!("{} workers for {}", config.workers, config.url));
        MessagingOptions::new(handle.clone()).concurrency(config.workers)
    });
    let plugin = plugin.consumer::<Crowd>().consumer::<Sleeper>();
    let app = Application::builder().shared(Arc::clone(&log)).value(config(3)).plugin(plugin).create().await.unwrap();
    app.start().await.unwrap();
    assert_eq!(log.lines(), ["3 workers for memory:"]);
    for queue in ["crowd", "beds"] {
        (0..5).for_each(|_| driver.send(OutboundMessage::raw(queue, "{}")));
    }
    sleep(Duration::from_millis(1)).await;
    // The consumer's own word counts, else the option's.
    let received = broker_of(&app).await.health().queues.iter().map(|queue| queue.counts.received).collect::<Vec<_>>();
    assert_eq!(received, [2, 3]);
}

#[consumer("crowd", concurrency = 2)]
struct Crowd;

#[handlers]
impl Crowd {
    #[on_message]
    async fn on_any(&self) {
        sleep(10 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn options_that_cannot_be_made_name_the_error() {
    let from_url = |url| {
        let plugin = MessagingPlugin::try_configure_with(|config: Arc<Config>| {
            driver_from_url(config.url).map(MessagingOptions::from)
        });
        Application::builder().value(Config { url, workers: 1 }).plugin(plugin.consumer::<Two>())
    };
    from_url("memory:").create().await.unwrap().start().await.unwrap();
    assert_eq!(
        refused(from_url("nats://ada:hunter2@host")).await,
        [
            "MessagingOptions: cannot be built: wrong configuration: no driver for `nats:` is linked into this program (linked: memory); name its crate in Cargo.toml and write `use <crate> as _;`"
        ],
    );
}

#[test]
fn a_url_chooses_the_driver_and_is_never_repeated() {
    for url in ["memory:", "memory://", "MEMORY:"] {
        assert_eq!(driver_from_url(url).unwrap().name(), "memory");
    }
    for (url, expected) in [
        ("amqp://ada:hunter2@host", "no driver for `amqp:` is linked into this program (linked: memory)"),
        ("memory://ada:hunter2@host", "the URL of the memory driver is `memory:`"),
        ("ada-hunter2", "a driver URL starts with a scheme"),
        ("hunter2@host:5672", "a driver URL starts with a scheme"),
        ("//ada:hunter2@host", "a driver URL starts with a scheme"),
        (":hunter2", "a driver URL starts with a scheme"),
        ("", "a driver URL starts with a scheme"),
    ] {
        let error = driver_from_url(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = format!("{error} {error:?}");
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

/// Notes what happens to it; can refuse to start.
struct Noting {
    log: Arc<Log>,
    name: &'static str,
    fails: bool,
}

#[async_trait]
impl Plugin for Noting {
    fn name(&self) -> &'static str {
        self.name
    }

    fn configure(&mut self, _registry: &mut Registry) {}

    async fn check(&mut self, _container: &Container) -> Result<(), BootError> {
        Ok(())
    }

    async fn start(&mut self) -> Result<(), BootError> {
        self.log.note(format!("start {}", self.name));
        let violation = messaging::Violation::new(ViolationKind::Options, "does not want to", "ask it nicely");
        if self.fails { Err(BootError::from(vec![violation])) } else { Ok(()) }
    }

    async fn stop(&mut self, _hurry: &CancellationToken) {
        self.log.note(format!("stop {}", self.name));
    }
}

#[tokio::test]
async fn create_connects_to_nothing() {
    let driver = MemoryDriver::new();
    driver.fail(Fault::connect().always());
    let app = created(MessagingPlugin::configure(driver.clone()).consumer::<Two>()).await;
    let publish = driver.publish(OutboundMessage::raw("two", "{}")).await;
    assert_eq!(publish.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(broker_of(&app).await.health().queues[0].state, QueueState::Starting);
}

#[tokio::test]
async fn a_failed_connect_names_the_driver_and_stops_what_was_started() {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    driver.fail(Fault::connect().error(ErrorKind::Connection));
    let noting = |name| Noting { log: Arc::clone(&log), name, fails: false };
    let app = Application::builder()
        .plugin(noting("first"))
        .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Two>())
        .plugin(noting("last"))
        .create()
        .await
        .unwrap();
    let error = app.start().await.unwrap_err();
    assert_eq!(
        problems(&error),
        ["driver `memory`: cannot connect: no connection: connecting to `memory:` failed by an injected fault"],
    );
    assert_eq!(error.violations()[0].kind(), ViolationKind::Broker);
    assert_eq!(error.violations()[0].fix(), "see that the broker can be reached, then start again");
    assert_eq!(log.lines(), ["start first", "stop last", "stop first"]);
    assert_eq!(driver.connect().await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn every_queue_that_cannot_be_subscribed_is_told_and_the_others_are_let_go() {
    let driver = MemoryDriver::new();
    driver.fail(Fault::subscribe().on_queue("one").error(ErrorKind::Config));
    driver.fail(Fault::subscribe().on_queue("three").error(ErrorKind::Connection));
    let plugin = MessagingPlugin::configure(driver.clone()).consumer::<One>().consumer::<Two>().consumer::<Three>();
    let app = created(plugin).await;
    driver.send(OutboundMessage::raw("two", "{}"));
    let error = app.start().await.unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "driver `memory`: One cannot consume `one`: wrong configuration: subscribing to `one` failed by an injected fault",
            "driver `memory`: Three cannot consume `three`: no connection: subscribing to `three` failed by an injected fault",
        ],
    );
    // Nothing was asked for before all were subscribed.
    assert_eq!((driver.settlements("two").len(), driver.pending("two")), (0, 1));
    let publish = driver.publish(OutboundMessage::raw("two", "{}")).await;
    assert_eq!(publish.unwrap_err().kind(), ErrorKind::Closed);
    let health = broker_of(&app).await.health();
    assert!(!health.ready);
    assert!(health.queues.iter().all(|queue| queue.state == QueueState::Stopped));
}

#[tokio::test]
async fn a_plugin_that_does_not_start_stops_the_ones_before_it_in_reverse() {
    let log = Arc::new(Log::default());
    let noting = |name, fails| Noting { log: Arc::clone(&log), name, fails };
    let driver = MemoryDriver::new();
    let app = Application::builder()
        .plugin(noting("first", false))
        .plugin(MessagingPlugin::configure(driver.clone()))
        .plugin(noting("second", true))
        .plugin(noting("third", false))
        .create()
        .await
        .unwrap();
    assert_eq!(problems(&app.start().await.unwrap_err()), [": does not want to"]);
    assert_eq!(log.lines(), ["start first", "start second", "stop third", "stop second", "stop first"]);
    assert_eq!(driver.connect().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(problems(&app.start().await.unwrap_err()), [": the application was stopped"]);
}

#[tokio::test(start_paused = true)]
async fn without_consuming_everything_is_checked_and_only_publishing_works() {
    let slow = MessagingOptions::new(MemoryDriver::emulating(SQS)).consume(false);
    let builder =
        Application::builder().value(Log::default()).plugin(MessagingPlugin::configure(slow).consumer::<One>());
    assert_eq!(refused(builder).await.len(), 1);

    let driver = MemoryDriver::new();
    driver.fail(Fault::subscribe().always());
    let options = MessagingOptions::new(driver.clone()).consume(false);
    let app = created(MessagingPlugin::configure(options).consumer::<One>()).await;
    app.start().await.unwrap();
    let broker = broker_of(&app).await;
    broker.publish("one", &1).await.unwrap();
    sleep(DAY).await;
    assert_eq!((driver.published("one").len(), driver.pending("one")), (1, 1));
    let health = broker.health();
    assert!(health.ready);
    assert_eq!(health.queues[0].state, QueueState::Starting);
    app.stop().await;
    assert!(!broker.health().ready);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_cut_off_by_stop() {
    for fault in [Fault::connect(), Fault::subscribe()] {
        let driver = MemoryDriver::new();
        driver.fail(fault.hang());
        let log = Arc::new(Log::default());
        let app = Application::builder()
            .plugin(Noting { log: Arc::clone(&log), name: "first", fails: false })
            .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Two>())
            .create()
            .await
            .unwrap();
        let started = Instant::now();
        let (start, ()) = tokio::join!(app.start(), async {
            sleep(SECOND).await;
            app.stop().await;
        });
        assert_eq!(problems(&start.unwrap_err()), [": the application was stopped"]);
        assert_eq!(started.elapsed(), SECOND);
        assert_eq!(log.lines(), ["start first", "stop first"]);
        assert_eq!(driver.connect().await.unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_dropped_is_cleaned_up_by_stop() {
    let driver = MemoryDriver::new();
    driver.fail(Fault::connect().hang());
    let app = created(MessagingPlugin::configure(driver.clone()).consumer::<Two>()).await;
    assert!(tokio::time::timeout(SECOND, app.start()).await.is_err());
    app.stop().await;
    assert_eq!(driver.connect().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(problems(&app.start().await.unwrap_err()), [": the application was stopped"]);
}

#[tokio::test(start_paused = true)]
async fn stop_works_twice_in_sequence_and_at_the_same_time() {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    let app = Application::builder()
        .plugin(Noting { log: Arc::clone(&log), name: "first", fails: false })
        .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Sleeper>())
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    app.start().await.unwrap();
    driver.send(OutboundMessage::raw("beds", "{}"));
    sleep(Duration::from_millis(1)).await;
    let stopping = Instant::now();
    let stop = async || {
        app.stop().await;
        stopping.elapsed()
    };
    let took = tokio::join!(stop(), stop(), stop());
    let rest = Duration::from_millis(9_999);
    assert_eq!(took, (rest, rest, rest));
    assert_eq!(stop().await, rest);
    assert_eq!(log.lines(), ["start first", "stop first"]);
    assert_eq!(driver.settlements("beds"), [Settlement::Ack]);
    assert_eq!(problems(&app.start().await.unwrap_err()), [": the application was stopped"]);
}

#[consumer("beds")]
struct Sleeper;

#[handlers]
impl Sleeper {
    #[on_message]
    async fn on_any(&self) {
        sleep(10 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_is_dropped_is_finished_by_the_next() {
    let driver = MemoryDriver::new();
    let app = created(MessagingPlugin::configure(driver.clone()).consumer::<Sleeper>()).await;
    app.start().await.unwrap();
    driver.send(OutboundMessage::raw("beds", "{}"));
    sleep(Duration::from_millis(1)).await;
    let stopping = Instant::now();
    assert!(tokio::time::timeout(SECOND, app.stop()).await.is_err());
    app.stop().await;
    assert_eq!(stopping.elapsed(), Duration::from_millis(9_999));
    assert_eq!(driver.settlements("beds"), [Settlement::Ack]);
    assert_eq!(driver.connect().await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn stop_before_start_closes_and_a_later_start_is_refused() {
    let driver = MemoryDriver::new();
    let app = created(MessagingPlugin::configure(driver.clone()).consumer::<Two>()).await;
    app.stop().await;
    app.stop().await;
    assert_eq!(driver.connect().await.unwrap_err().kind(), ErrorKind::Closed);
    let error = app.start().await.unwrap_err();
    assert_eq!(problems(&error), [": the application was stopped"]);
    assert_eq!(error.violations()[0].fix(), "create another application; one that was stopped does not start again");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_dropped_consumes_nothing_more_and_leaves_the_rest_to_the_next() {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    let create = async || {
        let builder = support::builder::<One>(MessagingOptions::new(driver.clone()), &log);
        builder.create().await.unwrap()
    };
    drop(create().await);
    let dropped = create().await;
    dropped.start().await.unwrap();
    let broker = broker_of(&dropped).await;
    drop(dropped);
    driver.send(OutboundMessage::raw("one", "{}"));
    sleep(DAY).await;
    assert!(log.lines().is_empty());
    assert_eq!(driver.pending("one"), 1);
    // What outlives it is harmless.
    assert_eq!(broker.health().queues.len(), 1);
    let next = create().await;
    next.start().await.unwrap();
    driver.idle().await;
    assert_eq!(log.lines(), ["one"]);
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_applications_of_one_process_share_nothing() {
    let drivers = [MemoryDriver::new(), MemoryDriver::new()];
    let logs = [Arc::new(Log::default()), Arc::new(Log::default())];
    let mut apps = Vec::new();
    for (driver, log) in drivers.iter().zip(&logs) {
        let app = support::builder::<One>(MessagingOptions::new(driver.clone()), log).create().await.unwrap();
        app.start().await.unwrap();
        apps.push(app);
    }
    apps[0].stop().await;
    for driver in &drivers {
        driver.send(OutboundMessage::raw("one", "{}"));
    }
    drivers[1].idle().await;
    assert_eq!((logs[0].lines().len(), logs[1].lines().len()), (0, 1));
    assert_eq!((drivers[0].pending("one"), drivers[1].pending("one")), (1, 0));
}
