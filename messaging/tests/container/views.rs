//! Traits and other views, and what replaces them.

use crate::*;

#[tokio::test]
async fn a_bind_provides_its_source_as_well_and_both_are_one_instance() {
    let log = log();
    let app = Application::builder()
        .shared(Arc::clone(&log))
        .factory(pool)
        .bind(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>)
        .create()
        .await
        .unwrap();
    let bound = app.get::<dyn Repo>().await.unwrap();
    let source = app.get::<PgRepo>().await.unwrap();
    assert_eq!(bound.name(), "pg");
    assert!(std::ptr::addr_eq(Arc::as_ptr(&bound), Arc::as_ptr(&source)));
    assert_eq!(log.count("built PgRepo"), 1);
}

#[tokio::test]
async fn a_bind_leaves_a_source_alone_that_is_provided_before_or_after() {
    let log = log();
    let provided = || {
        Provider::factory(|log: Arc<Log>| {
            log.note("built by the factory");
            PgRepo
        })
    };
    let bind = |repo: Arc<PgRepo>| repo as Arc<dyn Repo>;
    let builder = || Application::builder().shared(Arc::clone(&log)).factory(pool);
    for app in [builder().add(provided()).bind(bind), builder().bind(bind).add(provided())] {
        let app = app.create().await.unwrap();
        assert_eq!(app.get::<dyn Repo>().await.unwrap().name(), "pg");
    }
    assert_eq!(log.lines(), ["built by the factory", "built by the factory"]);
}

#[tokio::test]
async fn a_view_of_a_view_reaches_the_instance() {
    let app = Application::builder()
        .view(|named: Arc<dyn Named>| Arc::new(named) as Arc<dyn Deep>)
        .view(|greeting: Arc<Greeting>| greeting as Arc<dyn Named>)
        .value(Greeting("hello".into()))
        .create()
        .await
        .unwrap();
    assert_eq!(app.get::<dyn Deep>().await.unwrap().deep(), "deep hello");
}

#[tokio::test]
async fn a_replacement_counts_wherever_it_stands_and_spares_what_only_the_replaced_one_needed() {
    let bind = |repo: Arc<PgRepo>| repo as Arc<dyn Repo>;
    let fake = || Arc::new(Fake) as Arc<dyn Repo>;
    let log = log();
    let builder = || Application::builder().shared(Arc::clone(&log)).factory(pool);
    let needs = || Needs::default().of::<dyn Repo>();
    for app in [
        builder().replace::<dyn Repo>(fake()).bind(bind).plugin(needs()),
        builder().plugin(needs()).bind(bind).replace::<dyn Repo>(fake()),
    ] {
        let app = app.create().await.unwrap();
        assert_eq!(app.get::<dyn Repo>().await.unwrap().name(), "fake");
    }
    assert!(log.lines().is_empty(), "{:?}", log.lines());

    for app in [
        builder().replace(Arc::new(PgRepo)).bind(bind).plugin(needs()),
        builder().plugin(needs()).bind(bind).replace(Arc::new(PgRepo)),
        builder().plugin(needs()).provide::<PgRepo>().bind(bind).replace(Arc::new(PgRepo)),
    ] {
        let app = app.create().await.unwrap();
        assert_eq!(app.get::<dyn Repo>().await.unwrap().name(), "pg");
    }
    assert!(log.lines().is_empty(), "{:?}", log.lines());
}

#[tokio::test]
async fn what_only_a_replaced_one_needs_may_be_missing_in_a_test() {
    let app = Application::builder()
        .bind(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>)
        .replace::<dyn Repo>(Arc::new(Fake))
        .create()
        .await
        .unwrap();
    assert_eq!(app.get::<dyn Repo>().await.unwrap().name(), "fake");
}
