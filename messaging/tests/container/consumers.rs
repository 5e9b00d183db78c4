//! What consumers take from the container, and consumers that come from another.

use crate::*;

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
