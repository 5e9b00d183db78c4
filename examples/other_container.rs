//! Another container than the library's own: consumers whose fields come from a `dill` catalog.
//!
//! ```text
//! cargo run --example other_container
//! ```
//!
//! `consumer_from` takes a function from a message to a consumer. Here it opens a catalog for each message, chained to the
//! one of the application, puts in whose message it is, and lets `dill` build the consumer. Whatever is built in that
//! catalog, however deep, can ask for the tenant. Handlers cannot take `Inject<T>` then: that asks the library's container.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use dill::Catalog;
use messaging::prelude::*;
use messaging::{BoxError, OutboundMessage};
use messaging_memory::MemoryDriver;

/// Whose message it is; there is one in the catalog of each message.
struct Tenant(String);

/// Lives as long as the application.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, u64>>);

impl Ledger {
    fn add(&self, tenant: &str, cents: u64) -> u64 {
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total = totals.entry(tenant.to_owned()).or_default();
        *total += cents;
        *total
    }

    fn totals(&self) -> String {
        let totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        totals.iter().map(|(tenant, cents)| format!("{tenant} {cents}")).collect::<Vec<_>>().join(", ")
    }
}

/// The account of one tenant; knows of no message.
#[dill::component]
struct Account {
    tenant: Arc<Tenant>,
    ledger: Arc<Ledger>,
}

impl Account {
    fn charge(&self, cents: u64) {
        let total = self.ledger.add(&self.tenant.0, cents);
        println!("charged {} {cents}, {total} in all", self.tenant.0);
    }
}

#[derive(Deserialize, Validate)]
struct Order {
    #[validate(range(min = 1))]
    cents: u64,
}

#[consumer("orders")]
#[dill::component]
struct OrderConsumer {
    account: Arc<Account>,
}

#[handlers]
impl OrderConsumer {
    #[on_message("order.placed")]
    async fn on_placed(&self, order: Message<Order>) {
        self.account.charge(order.cents);
    }
}

/// Builds the consumer of one message.
fn consumer(catalog: &Catalog, message: &InboundMessage) -> Result<Arc<OrderConsumer>, BoxError> {
    let Some(tenant) = message.headers.text("tenant") else {
        return Err(NonRetryable::new("the message names no tenant").into());
    };
    let scope = catalog.builder_chained().add_value(Tenant(tenant.to_owned())).build();
    Ok(scope.get_one::<OrderConsumer>()?)
}

/// What the application provides, checked before anything starts: only the tenant is missing.
fn catalog() -> Result<Catalog, dill::ValidationError> {
    use dill::ValidationErrorExt;
    let mut builder = Catalog::builder();
    builder.add_value(Ledger::default()).add::<Account>().add::<OrderConsumer>();
    builder.validate().ignore::<Tenant>()?;
    Ok(builder.build())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let driver = MemoryDriver::new();
    let catalog = catalog()?;
    let ledger = catalog.get_one::<Ledger>()?;
    let give = move |message: Arc<InboundMessage>| ready(consumer(&catalog, &message));
    let app =
        Application::builder().plugin(MessagingPlugin::configure(driver.clone()).consumer_from(give)).create().await?;
    app.start().await?;

    for (tenant, cents) in [(Some("acme"), 500), (Some("globex"), 250), (None, 9_999), (Some("acme"), 120)] {
        let body = serde_json::json!({ "cents": cents });
        let mut order = OutboundMessage::json("orders", &body)?.message_type("order.placed");
        if let Some(tenant) = tenant {
            order = order.header("tenant", tenant);
        }
        driver.send(order);
    }
    driver.idle().await;
    for dead in driver.dead_letters("orders") {
        println!("dead-lettered: {}", dead.headers.text("x-znight-error").unwrap_or_default());
    }
    app.stop().await;
    println!("other_container: {}, dead-lettered {}", ledger.totals(), driver.dead_letters("orders").len());
    Ok(())
}
