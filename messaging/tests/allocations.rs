//! How many allocations a delivery costs, counted.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // a counting allocator is unsafe by nature

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use messaging::OutboundMessage;
use messaging::app::Provider;
use messaging::prelude::*;
use messaging_memory::MemoryDriver;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Decodes without an allocation of its own, so that what is counted is ours.
#[derive(Deserialize, Validate)]
struct Order {
    total: f64,
}

#[consumer("shared")]
struct Shared;

#[handlers]
impl Shared {
    #[on_message("order.created")]
    async fn on_created(&self, order: Message<Order>) -> Result<(), Failure> {
        assert!(order.total > 0.0);
        Ok(())
    }

    #[on_message("order.cancelled")]
    async fn on_cancelled(&self, _order: Message<Order>) {}
}

struct Config {
    factor: f64,
}

struct Tenant {
    known: bool,
}

#[derive(Injectable)]
#[injectable(scope = "request")]
struct Pricing {
    config: Arc<Config>,
    tenant: Arc<Tenant>,
}

#[consumer("scoped", scope = "request")]
struct Scoped {
    pricing: Arc<Pricing>,
    config: Arc<Config>,
    message: Arc<InboundMessage>,
}

#[handlers]
impl Scoped {
    #[on_message("order.created")]
    async fn on_created(&self, order: Message<Order>) {
        assert!(self.pricing.config.factor * self.config.factor * order.total > 0.0);
        assert!(!self.pricing.tenant.known && self.message.headers.is_empty());
    }
}

const MESSAGES: u64 = 5_000;

/// The allocations of each delivery of a queue that is full when they are counted.
fn per_delivery(queue: &'static str) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let driver = MemoryDriver::new();
        let tenant = Provider::factory(|message: Arc<InboundMessage>| Tenant { known: !message.headers.is_empty() });
        let app = Application::builder()
            .value(Config { factor: 1.2 })
            .add(tenant.per_request())
            .provide::<Pricing>()
            .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Shared>().consumer::<Scoped>())
            .create()
            .await
            .unwrap();
        app.start().await.unwrap();
        let order = OutboundMessage::raw(queue, r#"{"total": 12.5}"#).message_type("order.created");
        // Once before, for what grows only once.
        for _ in 0..100 {
            driver.send(order.clone());
        }
        driver.idle().await;
        for _ in 0..MESSAGES {
            driver.send(order.clone());
        }
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        driver.idle().await;
        let counted = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(driver.settlements(queue).len() as u64, MESSAGES + 100);
        app.stop().await;
        counted as f64 / MESSAGES as f64
    })
}

// One test: the counter is the process's.
#[test]
fn a_delivery_costs_three_allocations_and_one_for_each_request_scoped_thing() {
    // The message, the right to settle it, the handler's future; a fraction for what grows now and then.
    let shared = per_delivery("shared");
    assert!((3.0..3.01).contains(&shared), "{shared}");
    // And the consumer with its two dependencies.
    let scoped = per_delivery("scoped");
    assert!((6.0..6.01).contains(&scoped), "{scoped}");
}
