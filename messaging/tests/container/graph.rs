//! What is refused before anything is built.

use crate::*;

#[tokio::test]
async fn to_replace_what_nothing_provides_is_refused() {
    let replaced = Application::builder().provide::<Leaf>().replace::<dyn Repo>(Arc::new(Fake));
    assert_eq!(refused(replaced).await, ["dyn Repo: is replaced, and nothing provides it"]);
    // The concrete type is not the trait.
    let replaced = Application::builder().shared::<dyn Repo>(Arc::new(Fake)).replace(Arc::new(Fake));
    assert_eq!(refused(replaced).await, ["Fake: is replaced, and nothing provides it"]);
}

#[tokio::test]
async fn what_is_provided_twice_is_refused_however_it_is_provided() {
    let twice = [
        Application::builder().value(Pool).value(Pool),
        Application::builder().value(Pool).factory(|| Pool),
        Application::builder().factory_async(|| async { Pool }).add(Provider::value(Pool).per_request()),
        Application::builder().external::<Pool>().value(Pool),
    ];
    for builder in twice {
        assert_eq!(refused(builder).await, ["Pool: is provided twice"]);
    }
    let twice = Application::builder()
        .value(Pool)
        .shared(log())
        .shared::<dyn Repo>(Arc::new(Fake))
        .bind(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>);
    assert_eq!(refused(twice).await, ["dyn Repo: is provided twice"]);
}

#[derive(Injectable)]
struct NeedsGone {
    _gone: Arc<Gone>,
}

#[derive(Injectable)]
struct NeedsGoneToo {
    _gone: Arc<Gone>,
    _repo: Arc<dyn Repo>,
}

#[derive(Injectable)]
struct Hen {
    _egg: Arc<Egg>,
}

#[derive(Injectable)]
struct Egg {
    _hen: Arc<Hen>,
}

#[derive(Injectable)]
struct Narcissus {
    _own: Arc<Narcissus>,
}

#[derive(Injectable)]
struct Farm {
    _named: Arc<dyn Named>,
}

impl Named for Farm {
    fn text(&self) -> String {
        "farm".into()
    }
}

#[derive(Injectable)]
struct Cache {
    _tenant: Arc<Tenant>,
}

#[derive(Injectable)]
struct CacheOfView {
    _tenant: Arc<dyn Tenanted>,
}

#[consumer("wrong")]
struct CaptiveConsumer {
    _tenant: Arc<Tenant>,
}

#[handlers]
impl CaptiveConsumer {
    #[on_message]
    async fn on_any(&self, _gone: Inject<Gone>) {}

    #[on_error]
    async fn on_failure(&self, _gone: Inject<Gone>) {}
}

#[tokio::test]
async fn everything_that_is_wrong_with_the_graph_is_told_at_once() {
    let builder = Application::builder()
        .plugin(MessagingPlugin::configure(MemoryDriver::new()).consumer::<CaptiveConsumer>())
        .value(Pool)
        .value(Pool)
        .provide::<NeedsGone>()
        .provide::<NeedsGoneToo>()
        .provide::<Hen>()
        .provide::<Egg>()
        .provide::<Narcissus>()
        .bind(|farm: Arc<Farm>| farm as Arc<dyn Named>)
        .add(Tenant::provider())
        .view(|tenant: Arc<Tenant>| tenant as Arc<dyn Tenanted>)
        .provide::<Cache>()
        .provide::<CacheOfView>()
        .on_close(|_: Arc<Tenant>| async {})
        .replace::<dyn Deep>(Arc::new(Arc::new(Greeting("hello".into())) as Arc<dyn Named>));
    let error = builder.create().await.unwrap_err();
    assert_eq!(
        problems(&error),
        [
            "Pool: is provided twice",
            "dyn Deep: is replaced, and nothing provides it",
            "Gone: is needed by NeedsGone, NeedsGoneToo, CaptiveConsumer::on_any, CaptiveConsumer::#[on_error], and nothing provides it",
            "dyn Repo: is needed by NeedsGoneToo, and nothing provides it",
            "Egg: needs itself: Egg → Hen → Egg",
            "Narcissus: needs itself: Narcissus → Narcissus",
            "Farm: needs itself: Farm → dyn Named → Farm",
            "Cache: lives as long as the application and needs Tenant, which lives for one delivery",
            "CacheOfView: lives as long as the application and needs dyn Tenanted, which lives for one delivery",
            "CaptiveConsumer: lives as long as the application and needs Tenant, which lives for one delivery",
            "the close hook of Tenant: lives as long as the application and needs Tenant, which lives for one delivery",
        ],
    );
    let hint = error.violations().iter().find(|violation| violation.concerns() == "CaptiveConsumer").unwrap();
    assert!(hint.fix().contains(r#"for a consumer `scope = "request"`"#), "{}", hint.fix());
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[tokio::test]
async fn a_consumer_from_a_function_cannot_take_inject_from_this_container() {
    let plugin = MessagingPlugin::configure(MemoryDriver::new())
        .consumer_from(|_| async { Err::<Arc<CaptiveConsumer>, _>("never asked") });
    let expected =
        "CaptiveConsumer: comes from a function, and its handlers take `Inject` of Gone, Gone from this container";
    assert_eq!(refused(Application::builder().plugin(plugin)).await, [expected]);
}
