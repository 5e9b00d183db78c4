//! Consumers, plugins, options and drivers by URL.

use crate::*;

#[tokio::test]
async fn a_consumer_that_is_named_twice_is_subscribed_once() {
    let plugin = MessagingPlugin::configure(MemoryDriver::new()).consumer::<Two>().consumer::<One>().consumer::<Two>();
    let app = created(plugin).await;
    let queues: Vec<_> = broker_of(&app).await.health().queues.iter().map(|queue| queue.queue.to_string()).collect();
    assert_eq!(queues, ["two", "one"]);
}

#[tokio::test]
async fn a_consumer_that_is_named_and_comes_from_a_function_is_refused() {
    let given = |_| async { Ok::<_, BoxError>(Arc::new(Two)) };
    let plugin = || MessagingPlugin::configure(MemoryDriver::new());
    let expected = ["Two: is given twice, and once at least by a function: which of the two counts?"];
    for plugin in [
        plugin().consumer::<Two>().consumer_from(given),
        plugin().consumer_from(given).consumer::<Two>(),
        plugin().consumer_from(given).consumer_from(given),
    ] {
        assert_eq!(refused(Application::builder().plugin(plugin)).await, expected);
    }
}

const WORKERS: usize = 0;

#[consumer("idlers", concurrency = WORKERS)]
struct Idlers;

#[handlers]
impl Idlers {
    #[on_message]
    async fn on_any(&self) {}
}

#[tokio::test]
async fn a_constant_concurrency_of_zero_is_refused() {
    let plugin = MessagingPlugin::configure(MemoryDriver::new()).consumer::<Idlers>();
    let expected = ["Idlers (queue `idlers`): its concurrency is 0, and nothing would be handled"];
    assert_eq!(refused(Application::builder().plugin(plugin)).await, expected);
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
    let beyond = format!("One::on_slow (queue `one`, driver `memory, emulating`): {}", beyond(1, "12h", "11h 59min"));
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

macro_rules! failing {
    ($($name:ident: $($option:ident = $value:expr)?;)*) => {$(
        #[consumer("failing", $($option = $value)?)]
        struct $name;

        #[handlers]
        impl $name {
            #[on_message]
            #[retry(false)]
            async fn on_any(&self) -> Result<(), &'static str> {
                Err("no")
            }
        }
    )*};
}

failing! {
    Silent: ;
    Named: dead_letter = "own.dead";
    Without: dead_letter = false;
}

/// Where a consumer's dead letters go, with these options.
async fn dead_letters_of<C: messaging::Consumer>(
    options: impl Fn(MessagingOptions) -> MessagingOptions,
) -> Option<&'static str> {
    let driver = MemoryDriver::new();
    let plugin = MessagingPlugin::configure(options(MessagingOptions::new(driver.clone()))).consumer::<C>();
    let app = created(plugin).await;
    app.start().await.unwrap();
    driver.send(OutboundMessage::raw("failing", "{}"));
    driver.idle().await;
    let found =
        ["own.dead", "failing.failed", "failing.dead-letter"].into_iter().find(|name| driver.pending(name) == 1);
    let discarded = driver.settlements("failing") == [Settlement::Discard(Reason::Exhausted)];
    assert_eq!(discarded, found.is_none());
    found
}

#[tokio::test(start_paused = true)]
async fn dead_letters_go_where_the_consumer_says_then_the_options_then_the_driver() {
    let silent = |options: MessagingOptions| options;
    let named = |options: MessagingOptions| options.dead_letter(|queue| format!("{queue}.failed"));
    let without = |options: MessagingOptions| options.no_dead_letter();
    assert_eq!(dead_letters_of::<Silent>(silent).await, Some("failing.dead-letter"));
    assert_eq!(dead_letters_of::<Silent>(named).await, Some("failing.failed"));
    assert_eq!(dead_letters_of::<Silent>(without).await, None);
    for options in [silent, named, without] {
        assert_eq!(dead_letters_of::<Named>(options).await, Some("own.dead"));
        assert_eq!(dead_letters_of::<Without>(options).await, None);
    }
}
