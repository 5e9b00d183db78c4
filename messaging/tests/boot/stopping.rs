//! Stopping twice, early, half, or not at all.

use crate::*;

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
