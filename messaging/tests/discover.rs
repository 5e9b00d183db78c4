//! `.discover()` takes every consumer of the program, so these tests have a program of their own.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use messaging::prelude::*;
use messaging::{MessagingOptions, OutboundMessage};
use messaging_memory::MemoryDriver;
use support::Log;

macro_rules! consumers {
    ($($name:ident: $queue:literal;)*) => {$(
        #[consumer($queue)]
        struct $name {
            log: Arc<Log>,
        }

        #[handlers]
        impl $name {
            #[on_message]
            async fn on_any(&self) {
                self.log.note(stringify!($name));
            }
        }
    )*};
}

consumers! {
    Payments: "payments";
    Audit: "audit";
    Orders: "orders";
}

mod inner {
    use super::*;

    consumers! {
        Billing: "billing";
    }
}

#[consumer("generic")]
struct Generic<T: Send + Sync + 'static> {
    #[inject(default)]
    _of: std::marker::PhantomData<T>,
}

#[handlers]
impl<T: Send + Sync + 'static> Generic<T> {
    #[on_message]
    async fn on_any(&self) {}
}

async fn start(driver: &MemoryDriver, log: &Arc<Log>, plugin: MessagingPlugin) -> Vec<String> {
    let app = Application::builder().shared(Arc::clone(log)).plugin(plugin).create().await.unwrap();
    app.start().await.unwrap();
    for queue in ["orders", "payments", "audit", "billing"] {
        driver.send(OutboundMessage::raw(queue, "{}"));
    }
    driver.idle().await;
    let health = app.get::<MessageBroker>().await.unwrap().health();
    app.stop().await;
    health.queues.iter().map(|queue| format!("{} by {}", queue.queue, queue.consumer)).collect()
}

#[tokio::test(start_paused = true)]
async fn every_consumer_is_discovered_once_in_the_order_of_names() {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    let plugin = MessagingPlugin::configure(MessagingOptions::new(driver.clone())).discover();
    let consumers = start(&driver, &log, plugin).await;
    assert_eq!(consumers, ["audit by Audit", "orders by Orders", "payments by Payments", "billing by Billing"]);
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["Audit", "Billing", "Orders", "Payments"]);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_named_and_discovered_is_subscribed_once() {
    let (driver, log) = (MemoryDriver::new(), Arc::new(Log::default()));
    let plugin = MessagingPlugin::configure(driver.clone())
        .consumer::<Payments>()
        .discover()
        .consumer::<Generic<u8>>()
        .discover();
    let consumers = start(&driver, &log, plugin).await;
    assert_eq!(
        consumers,
        ["payments by Payments", "generic by Generic<u8>", "audit by Audit", "orders by Orders", "billing by Billing"],
    );
    assert_eq!(log.count("Payments"), 1);
}
