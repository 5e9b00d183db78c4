//! What a start does, and undoes when it fails.

use crate::*;

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
    let broker = broker_of(&app).await;
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
    let health = broker.health();
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
    assert_eq!(health.queues.len(), 0);
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
