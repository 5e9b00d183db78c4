//! One instance for each delivery, or for each scope opened by hand.

use crate::*;

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

#[tokio::test(start_paused = true)]
async fn what_lives_for_one_delivery_can_be_replaced_by_a_value() {
    let (log, driver) = (log(), MemoryDriver::new());
    let app = scoped_builder()
        .add(Tenant::provider())
        .shared(Arc::clone(&log))
        .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Traced>())
        .replace(Arc::new(Trace { number: 9 }))
        .create()
        .await
        .unwrap();
    app.start().await.unwrap();
    driver.send(message("a", ""));
    driver.idle().await;
    assert_eq!(log.lines(), ["handler [9, 9, 9, 9, 9]", "on_error [9, 9]"]);
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
