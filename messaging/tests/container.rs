//! The container: lifetimes, views, constructors that fail, scopes, and what closes.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use messaging::app::{Container, Dependency, Key, Plugin, Provider, Registry, Requirement, Resolver};
use messaging::prelude::*;
use messaging::{BoxError, Lifetime, Reason, Settlement};
use messaging_memory::MemoryDriver;
use support::{Log, message};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// A plugin that needs singletons, so that boot builds them.
#[derive(Default)]
struct Needs(Vec<Key>);

impl Needs {
    fn of<T: ?Sized + 'static>(mut self) -> Self {
        self.0.push(Key::of::<T>());
        self
    }
}

#[async_trait]
impl Plugin for Needs {
    fn name(&self) -> &'static str {
        "needs"
    }

    fn configure(&mut self, registry: &mut Registry) {
        for key in self.0.drain(..) {
            registry.require(Requirement { who: "the test".into(), key, lifetime: Lifetime::Singleton });
        }
    }

    async fn check(&mut self, _container: &Container) -> Result<(), BootError> {
        Ok(())
    }

    async fn start(&mut self) -> Result<(), BootError> {
        Ok(())
    }

    async fn stop(&mut self, _hurry: &CancellationToken) {}
}

trait Repo: Send + Sync {
    fn name(&self) -> &'static str;
}

struct Fake;

impl Repo for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
}

/// Notes that it is built; an `Injectable` written by hand.
struct PgRepo;

impl Injectable for PgRepo {
    fn dependencies() -> Vec<Key> {
        vec![<Arc<Log> as Dependency>::key(), <Arc<Pool> as Dependency>::key()]
    }

    fn construct(resolver: &mut Resolver<'_>) -> Result<Self, BoxError> {
        let log = resolver.next::<Log>()?;
        let _pool = resolver.next::<Pool>()?;
        log.note("built PgRepo");
        Ok(Self)
    }
}

impl Repo for PgRepo {
    fn name(&self) -> &'static str {
        "pg"
    }
}

struct Pool;

fn pool(log: Arc<Log>) -> Pool {
    log.note("built Pool");
    Pool
}

fn log() -> Arc<Log> {
    Arc::default()
}

#[derive(Injectable)]
struct Leaf {
    #[inject(default)]
    number: u8,
}

#[derive(Injectable)]
struct Branch {
    leaf: Arc<Leaf>,
}

#[derive(Injectable)]
struct Tree {
    branch: Arc<Branch>,
    leaf: Arc<Leaf>,
}

#[tokio::test]
async fn a_singleton_is_one_instance_for_everyone_at_every_depth() {
    let app = Application::builder().provide::<Tree>().provide::<Branch>().provide::<Leaf>().create().await.unwrap();
    let tree = app.get::<Tree>().await.unwrap();
    assert!(Arc::ptr_eq(&tree, &app.get::<Tree>().await.unwrap()));
    assert!(Arc::ptr_eq(&tree.leaf, &tree.branch.leaf));
    assert!(Arc::ptr_eq(&tree.leaf, &app.get::<Leaf>().await.unwrap()));
    assert!(Arc::ptr_eq(&tree.branch, &app.scope().get::<Branch>().await.unwrap()));
    assert_eq!(tree.leaf.number, 0);
}

#[tokio::test]
async fn nothing_is_built_before_it_is_needed_and_then_once() {
    let log = log();
    let app = Application::builder().shared(Arc::clone(&log)).factory(pool).provide::<PgRepo>().create().await.unwrap();
    assert!(log.lines().is_empty());
    let (left, right) = tokio::join!(app.get::<PgRepo>(), app.get::<PgRepo>());
    assert!(Arc::ptr_eq(&left.unwrap(), &right.unwrap()));
    assert_eq!(log.lines(), ["built Pool", "built PgRepo"]);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_factory_gives_its_singleton() {
    struct Now(u8);
    struct Checked(u8);
    struct Later(u8);
    struct LaterChecked(u8);
    let app = Application::builder()
        .value(1_u8)
        .factory(|one: Arc<u8>| Now(*one))
        .try_factory(|now: Arc<Now>| Ok::<_, String>(Checked(now.0 + 1)))
        .factory_async(|checked: Arc<Checked>| async move {
            sleep(SECOND).await;
            Later(checked.0 + 1)
        })
        .try_factory_async(|later: Arc<Later>, one: Arc<u8>| async move {
            sleep(SECOND).await;
            Ok::<_, String>(LaterChecked(later.0 + *one))
        })
        .create()
        .await
        .unwrap();
    let started = Instant::now();
    assert_eq!(app.get::<LaterChecked>().await.unwrap().0, 4);
    assert_eq!(started.elapsed(), 2 * SECOND);
    app.get::<Later>().await.unwrap();
    assert_eq!(started.elapsed(), 2 * SECOND);
}

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

trait Named: Send + Sync {
    fn text(&self) -> String;
}

struct Greeting(String);

impl Named for Greeting {
    fn text(&self) -> String {
        self.0.clone()
    }
}

trait Deep: Send + Sync {
    fn deep(&self) -> String;
}

impl Deep for Arc<dyn Named> {
    fn deep(&self) -> String {
        format!("deep {}", self.text())
    }
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

/// `subject: problem` of each violation.
fn problems(error: &BootError) -> Vec<String> {
    error.violations().iter().map(|violation| format!("{}: {}", violation.concerns(), violation.problem())).collect()
}

async fn refused(builder: messaging::ApplicationBuilder) -> Vec<String> {
    problems(&builder.create().await.unwrap_err())
}

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

struct Gone;
struct Tenant(String);

impl Tenant {
    fn of(message: &InboundMessage) -> Self {
        Self(message.headers.text("tenant").unwrap_or("none").to_owned())
    }

    fn provider() -> Provider {
        Provider::factory(|message: Arc<InboundMessage>| Self::of(&message)).per_request()
    }
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

trait Tenanted: Send + Sync {
    fn tenant(&self) -> String;
}

impl Tenanted for Tenant {
    fn tenant(&self) -> String {
        self.0.clone()
    }
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

struct Good;
struct FailsNow;
struct FailsLater;
struct Behind;

#[tokio::test(start_paused = true)]
async fn failing_constructors_are_all_told_by_name_and_what_was_built_is_closed() {
    let log = log();
    let builder = Application::builder()
        .shared(Arc::clone(&log))
        .factory(|log: Arc<Log>| {
            log.note("built Good");
            Good
        })
        .try_factory(|| Err::<FailsNow, _>(std::io::Error::other("no such file")))
        .try_factory_async(|| async {
            sleep(SECOND).await;
            Err::<FailsLater, _>("no answer")
        })
        .factory(|_: Arc<FailsNow>, _: Arc<FailsLater>| Behind)
        .on_close({
            let log = Arc::clone(&log);
            move |_: Arc<Good>| {
                log.note("closed Good");
                async {}
            }
        })
        .plugin(Needs::default().of::<Good>().of::<Behind>());
    assert_eq!(
        refused(builder).await,
        ["FailsNow: cannot be built: no such file", "FailsLater: cannot be built: no answer"],
    );
    assert_eq!(log.lines(), ["built Good", "closed Good"]);
}

#[tokio::test]
async fn a_constructor_that_fails_later_on_is_named_and_asked_again() {
    let tries = AtomicUsize::new(0);
    let app = Application::builder()
        .try_factory(move || match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not yet"),
            _ => Ok(Good),
        })
        .create()
        .await
        .unwrap();
    assert_eq!(problems(&app.get::<Good>().await.err().unwrap()), ["Good: cannot be built: not yet"]);
    assert!(app.get::<Good>().await.is_ok());
}

fn note_on_close<T: Send + Sync + 'static>(
    log: &Arc<Log>,
    text: &'static str,
) -> impl Fn(Arc<T>) -> std::future::Ready<()> + Send + Sync + 'static {
    let log = Arc::clone(log);
    move |_| {
        log.note(text);
        std::future::ready(())
    }
}

#[tokio::test(start_paused = true)]
async fn close_hooks_run_once_the_last_built_first_and_only_for_what_was_built() {
    struct Unused;
    let log = log();
    let app = Application::builder()
        .provide::<Tree>()
        .provide::<Leaf>()
        .provide::<Branch>()
        .value(Unused)
        .on_close(note_on_close::<Leaf>(&log, "Leaf"))
        .on_close(note_on_close::<Tree>(&log, "Tree"))
        .on_close(note_on_close::<Unused>(&log, "Unused"))
        .on_close(note_on_close::<Branch>(&log, "Branch"))
        .create()
        .await
        .unwrap();
    app.get::<Tree>().await.unwrap();
    tokio::join!(app.stop(), app.stop());
    app.stop().await;
    assert_eq!(log.lines(), ["Tree", "Branch", "Leaf"]);
}

#[tokio::test(start_paused = true)]
async fn a_close_hook_that_panics_or_hangs_stops_nothing() {
    let log = log();
    let app = Application::builder()
        .provide::<Tree>()
        .provide::<Leaf>()
        .provide::<Branch>()
        .value(Pool)
        .on_close(note_on_close::<Leaf>(&log, "Leaf"))
        .on_close(|_: Arc<Branch>| std::future::pending::<()>())
        .on_close(|_: Arc<Tree>| async { panic!("in its future") })
        .on_close(|_: Arc<Pool>| -> std::future::Ready<()> { panic!("before its future") })
        .close_timeout(3 * SECOND)
        .plugin(Needs::default().of::<Tree>().of::<Pool>())
        .create()
        .await
        .unwrap();
    let stopping = Instant::now();
    app.stop().await;
    assert_eq!(stopping.elapsed(), 3 * SECOND);
    assert_eq!(log.lines(), ["Leaf"]);
}

#[tokio::test]
async fn a_close_hook_of_a_view_closes_what_is_behind_it() {
    let log = log();
    let names = Arc::clone(&log);
    let app = Application::builder()
        .shared(Arc::clone(&log))
        .factory(pool)
        .bind(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>)
        .on_close(move |repo: Arc<dyn Repo>| {
            names.note(format!("closed {}", repo.name()));
            std::future::ready(())
        })
        .create()
        .await
        .unwrap();
    app.get::<dyn Repo>().await.unwrap();
    app.stop().await;
    assert_eq!(log.lines(), ["built Pool", "built PgRepo", "closed pg"]);
}

/// One for each scope; numbered in the order they are built.
struct Trace {
    number: usize,
}

impl Trace {
    fn provider() -> Provider {
        let built = AtomicUsize::new(0);
        Provider::factory(move || Self { number: built.fetch_add(1, Ordering::Relaxed) }).per_request()
    }
}

#[derive(Injectable)]
#[injectable(scope = "request")]
struct Unit {
    trace: Arc<Trace>,
    tenant: Arc<dyn Tenanted>,
}

#[derive(Injectable)]
#[injectable(scope = "request")]
struct Service {
    unit: Arc<Unit>,
    trace: Arc<Trace>,
}

fn scoped_builder() -> messaging::ApplicationBuilder {
    Application::builder()
        .add(Trace::provider())
        .provide::<Unit>()
        .provide::<Service>()
        .view(|tenant: Arc<Tenant>| tenant as Arc<dyn Tenanted>)
}

#[tokio::test]
async fn a_scope_by_hand_has_what_it_is_given_and_one_of_each() {
    let app = scoped_builder().external::<Tenant>().create().await.unwrap();
    let mut scopes = [app.scope(), app.scope()];
    for (scope, tenant) in scopes.iter_mut().zip(["acme", "umbrella"]) {
        scope.give(Arc::new(Tenant(tenant.into())));
        let service = scope.get::<Service>().await.unwrap();
        assert_eq!(service.unit.tenant.tenant(), tenant);
        assert!(Arc::ptr_eq(&service.trace, &service.unit.trace));
        assert!(Arc::ptr_eq(&service.trace, &scope.get::<Trace>().await.unwrap()));
        assert_eq!(scope.get::<dyn Tenanted>().await.unwrap().tenant(), tenant);
    }
    let [mut one, mut other] = scopes;
    assert_ne!(one.get::<Trace>().await.unwrap().number, other.get::<Trace>().await.unwrap().number);
}

#[tokio::test]
async fn what_a_scope_cannot_give_is_an_error_that_names_it() {
    let app = scoped_builder().external::<Tenant>().create().await.unwrap();
    let error = app.scope().get::<Service>().await.err().unwrap();
    assert_eq!(problems(&error), ["Tenant: cannot be built: whoever opened the scope gave none"]);
    let error = app.scope().get::<Gone>().await.err().unwrap();
    assert_eq!(problems(&error), ["Gone: nothing provides it"]);
    let error = app.get::<Service>().await.err().unwrap();
    assert_eq!(problems(&error), ["Service: lives in a scope and is asked for outside of one"]);
    let error = app.get::<Gone>().await.err().unwrap();
    assert_eq!(problems(&error), ["Gone: nothing provides it"]);
}

#[tokio::test]
async fn a_failing_constructor_of_a_scope_fails_that_scope_and_names_the_type() {
    let app = Application::builder()
        .external::<Tenant>()
        .add(
            Provider::try_factory_async(|tenant: Arc<Tenant>| async move {
                tokio::task::yield_now().await;
                if tenant.0.is_empty() { Err("no tenant") } else { Ok(Unit2(tenant)) }
            })
            .per_request(),
        )
        .create()
        .await
        .unwrap();
    struct Unit2(Arc<Tenant>);
    let mut scope = app.scope();
    scope.give(Arc::new(Tenant(String::new())));
    assert_eq!(problems(&scope.get::<Unit2>().await.err().unwrap()), ["Unit2: cannot be built: no tenant"]);
    let mut scope = app.scope();
    scope.give(Arc::new(Tenant("acme".into())));
    assert_eq!(scope.get::<Unit2>().await.unwrap().0.0, "acme");
}

#[consumer("orders", scope = "request")]
struct Traced {
    log: Arc<Log>,
    trace: Arc<Trace>,
    service: Arc<Service>,
}

#[handlers]
impl Traced {
    #[on_message]
    #[retry(attempts = 1)]
    async fn on_any(&self, trace: Inject<Trace>, unit: Inject<Unit>) -> Result<(), &'static str> {
        let Service { unit: of_service, trace: in_service } = &*self.service;
        let traces = [&self.trace, in_service, &of_service.trace, &unit.trace, &trace.0];
        let ids = traces.map(|trace| trace.number);
        self.log.note(format!("handler {ids:?}"));
        Err("no")
    }

    #[on_error]
    async fn on_failure(&self, trace: Inject<Trace>) {
        self.log.note(format!("on_error {:?}", [self.trace.number, trace.number]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_scoped_thing_is_one_for_each_delivery_and_shared_within_it() {
    let (log, driver) = (log(), MemoryDriver::new());
    let app = scoped_builder()
        .add(Tenant::provider())
        .shared(Arc::clone(&log))
        .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Traced>())
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    driver.send(message("a", ""));
    driver.send(message("b", ""));
    driver.idle().await;
    let expected = ["handler [0, 0, 0, 0, 0]", "on_error [0, 0]", "handler [1, 1, 1, 1, 1]", "on_error [1, 1]"];
    assert_eq!(log.lines(), expected);
}

#[consumer("orders")]
struct Shared {
    log: Arc<Log>,
}

#[handlers]
impl Shared {
    #[on_message("all")]
    #[retry(attempts = 1)]
    async fn on_all(
        &self,
        singleton: Inject<Greeting>,
        named: Inject<dyn Named>,
        tenanted: Inject<dyn Tenanted>,
        trace: Inject<Trace>,
        message: Inject<InboundMessage>,
    ) -> Result<(), &'static str> {
        let tenant = tenanted.tenant();
        self.log.note(format!("{} {} {tenant} {} {}", singleton.0.0, named.text(), trace.number, message.queue()));
        Err("no")
    }

    #[on_error]
    async fn on_failure(&self, named: Inject<dyn Named>, tenanted: Inject<dyn Tenanted>, trace: Inject<Trace>) {
        self.log.note(format!("on_error {} {} {}", named.text(), tenanted.tenant(), trace.number));
    }
}

#[tokio::test(start_paused = true)]
async fn a_shared_consumer_takes_singletons_request_things_and_trait_objects_from_the_scope() {
    let (log, driver) = (log(), MemoryDriver::new());
    let app = support::builder::<Shared>(MessagingOptions::new(driver.clone()), &log)
        .value(Greeting("hello".into()))
        .view(|greeting: Arc<Greeting>| greeting as Arc<dyn Named>)
        .add(Tenant::provider())
        .view(|tenant: Arc<Tenant>| tenant as Arc<dyn Tenanted>)
        .add(Trace::provider())
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    driver.send(message("all", "").header("tenant", "acme"));
    driver.send(message("all", "").header("tenant", "umbrella"));
    // Not routed, so `#[on_error]` has a scope of its own.
    driver.send(message("other", "").header("tenant", "initech"));
    driver.idle().await;
    let expected = [
        "hello hello acme 0 orders",
        "on_error hello acme 0",
        "hello hello umbrella 1 orders",
        "on_error hello umbrella 1",
        "on_error hello initech 2",
    ];
    assert_eq!(log.lines(), expected);
}

#[derive(Injectable)]
struct Outbox {
    broker: MessageBroker,
}

#[derive(Injectable)]
#[injectable(scope = "request")]
struct ReplyTo {
    broker: MessageBroker,
    request: Arc<InboundMessage>,
}

#[consumer("orders")]
struct Forwarder {
    broker: MessageBroker,
    outbox: Arc<Outbox>,
}

#[handlers]
impl Forwarder {
    #[on_message]
    async fn on_any(&self, reply: Inject<ReplyTo>, broker: Inject<MessageBroker>) -> Result<(), messaging::Error> {
        self.broker.publish("out", &"consumer").await?;
        self.outbox.broker.publish("out", &"singleton").await?;
        reply.broker.publish("out", &format!("reply to {}", reply.request.id)).await?;
        broker.publish("out", &"injected").await?;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_message_broker_is_injected_everywhere() {
    let driver = MemoryDriver::new();
    let app = Application::builder()
        .provide::<Outbox>()
        .provide::<ReplyTo>()
        .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Forwarder>())
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    driver.send(message("any", "").id("o-1"));
    driver.idle().await;
    assert_eq!(driver.settlements("orders"), [Settlement::Ack]);
    let bodies: Vec<_> =
        driver.published("out").iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect();
    assert_eq!(bodies, [r#""consumer""#, r#""singleton""#, r#""reply to o-1""#, r#""injected""#]);
}

struct Session(String);

#[consumer("orders", scope = "request", concurrency = 4)]
struct Tenants {
    log: Arc<Log>,
    tenant: Arc<Tenant>,
    session: Arc<Session>,
    barrier: Arc<tokio::sync::Barrier>,
}

#[handlers]
impl Tenants {
    #[on_message]
    async fn on_any(&self, #[header("tenant")] tenant: String, injected: Inject<Tenant>) {
        self.log.note("in");
        // Four are in here at once before one goes on.
        self.barrier.wait().await;
        self.log.note(format!("{tenant}: {} {} {}", self.tenant.0, self.session.0, injected.0.0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_scoped_thing_sees_its_own_message_while_others_run() {
    let (log, driver) = (log(), MemoryDriver::new());
    // The session takes the longer the earlier its message is, so that scopes are built across each other.
    let session = Provider::factory_async(|tenant: Arc<Tenant>, message: Arc<InboundMessage>| async move {
        sleep(Duration::from_millis(10 - message.body.len() as u64)).await;
        Session(tenant.0.clone())
    });
    let app = support::builder::<Tenants>(MessagingOptions::new(driver.clone()), &log)
        .add(Tenant::provider())
        .add(session.per_request())
        .value(tokio::sync::Barrier::new(4))
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    for number in 0..8 {
        driver.send(message("any", &"x".repeat(number)).header("tenant", format!("t{number}")));
    }
    driver.idle().await;
    let lines = log.lines();
    assert_eq!(lines[..4], ["in"; 4]);
    let mut seen: Vec<_> = lines.into_iter().filter(|line| line != "in").collect();
    seen.sort();
    let expected: Vec<_> = (0..8).map(|number| format!("t{number}: t{number} t{number} t{number}")).collect();
    assert_eq!(seen, expected);
}

#[consumer("orders", scope = "request")]
struct NeedsExternal {
    _tenant: Arc<Tenant>,
}

#[handlers]
impl NeedsExternal {
    #[on_message]
    async fn on_any(&self) {}
}

#[tokio::test]
async fn a_delivery_gives_its_message_alone_so_another_external_is_refused() {
    let builder = Application::builder()
        .external::<Tenant>()
        .plugin(MessagingPlugin::configure(MemoryDriver::new()).consumer::<NeedsExternal>());
    let expected = "NeedsExternal::on_any: needs Tenant, which whoever opens a scope must give, and a delivery gives its message alone";
    assert_eq!(refused(builder).await, [expected]);
}

#[consumer("orders")]
struct Handmade {
    log: Arc<Log>,
    tenant: Arc<Tenant>,
}

#[handlers]
impl Handmade {
    #[on_message]
    #[retry(attempts = 2, delay = 1s)]
    async fn on_any(&self) {
        self.log.note(format!("handled for {}", self.tenant.0));
    }

    #[on_error]
    async fn on_failure(&self) {
        self.log.note("on_error");
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_from_a_function_sees_the_message_and_its_failure_is_retried() {
    let (log, driver) = (log(), MemoryDriver::new());
    let give = {
        let log = Arc::clone(&log);
        move |message: Arc<InboundMessage>| {
            let log = Arc::clone(&log);
            async move {
                tokio::task::yield_now().await;
                match (message.headers.text("tenant"), message.attempt().get()) {
                    (None, _) => Err("no tenant"),
                    (Some("slow"), 1) => Err("not yet"),
                    _ => Ok(Arc::new(Handmade { log, tenant: Arc::new(Tenant::of(&message)) })),
                }
            }
        }
    };
    // Nothing of what `Handmade` needs is in this container.
    let app = Application::builder()
        .plugin(MessagingPlugin::configure(driver.clone()).consumer_from(give))
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    driver.send(message("any", "").header("tenant", "acme"));
    driver.send(message("any", "").header("tenant", "slow"));
    driver.send(message("any", ""));
    driver.idle().await;
    assert_eq!(log.lines(), ["handled for acme", "handled for slow"]);
    let retry = Settlement::retry(SECOND, 2);
    let exhausted = Settlement::DeadLetter(Reason::Exhausted);
    assert_eq!(driver.settlements("orders"), [Settlement::Ack, retry, retry, Settlement::Ack, exhausted]);
    assert_eq!(driver.dead_letters("orders")[0].headers.text("x-znight-error"), Some("no tenant"));
}

#[tokio::test]
async fn a_consumer_from_a_function_cannot_take_inject_from_this_container() {
    let plugin = MessagingPlugin::configure(MemoryDriver::new())
        .consumer_from(|_| async { Err::<Arc<CaptiveConsumer>, _>("never asked") });
    let expected =
        "CaptiveConsumer: comes from a function, and its handlers take `Inject` of Gone, Gone from this container";
    assert_eq!(refused(Application::builder().plugin(plugin)).await, [expected]);
}
