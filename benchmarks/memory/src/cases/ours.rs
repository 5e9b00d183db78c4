//! The library, as users have it: every default, two types on one queue, published through `MessageBroker`.

use std::hint::black_box;
use std::sync::Arc;

use messaging::ApplicationBuilder;
use messaging::prelude::*;
use messaging_memory::MemoryDriver;

use crate::run::{Run, Sample};
use crate::work::{OTHER_TYPE, OrderCreated, TYPE, gate, handle, sample};

#[derive(Deserialize, Validate)]
pub struct OrderCancelled {
    #[expect(dead_code, reason = "decoded, where one is ever sent")]
    order_id: String,
}

#[consumer("orders")]
pub struct Singleton;

#[handlers]
impl Singleton {
    #[on_message("order.created")]
    async fn on_created(&self, order: Message<OrderCreated>) -> Result<(), Failure> {
        gate().await;
        handle(&order);
        Ok(())
    }

    #[on_message("order.cancelled")]
    async fn on_cancelled(&self, _order: Message<OrderCancelled>) -> Result<(), Failure> {
        unreachable!("no {OTHER_TYPE} is sent")
    }
}

pub struct Config {
    factor: f64,
}

/// One for each delivery, of something that is shared.
#[derive(Injectable)]
#[injectable(scope = "request")]
pub struct Pricing {
    config: Arc<Config>,
}

impl Pricing {
    fn touch(&self, order: &OrderCreated) {
        black_box(self.config.factor * order.total);
    }
}

/// One for each delivery, of the message.
#[derive(Injectable)]
#[injectable(scope = "request")]
pub struct Audit {
    message: Arc<InboundMessage>,
}

/// One for each delivery, with three dependencies: two that are built with it, and the message.
#[consumer("orders", scope = "request")]
pub struct Scoped {
    pricing: Arc<Pricing>,
    audit: Arc<Audit>,
    message: Arc<InboundMessage>,
}

#[handlers]
impl Scoped {
    #[on_message("order.created")]
    async fn on_created(&self, order: Message<OrderCreated>) -> Result<(), Failure> {
        gate().await;
        self.pricing.touch(&order);
        black_box((self.audit.message.attempt(), &self.message.id));
        handle(&order);
        Ok(())
    }

    #[on_message("order.cancelled")]
    async fn on_cancelled(&self, _order: Message<OrderCancelled>) -> Result<(), Failure> {
        unreachable!("no {OTHER_TYPE} is sent")
    }
}

pub async fn singleton(run: Run) -> Sample {
    measure(run, Application::builder(), |plugin| plugin.consumer::<Singleton>()).await
}

pub async fn scoped(run: Run) -> Sample {
    let builder = Application::builder().value(Config { factor: 1.2 }).provide::<Pricing>().provide::<Audit>();
    measure(run, builder, |plugin| plugin.consumer::<Scoped>()).await
}

async fn measure(
    run: Run,
    builder: ApplicationBuilder,
    consume: impl FnOnce(MessagingPlugin) -> MessagingPlugin,
) -> Sample {
    let options = MessagingOptions::new(MemoryDriver::new()).concurrency(run.concurrency);
    let app = builder.plugin(consume(MessagingPlugin::configure(options))).create().await.unwrap();
    app.start().await.unwrap();
    let broker = app.get::<MessageBroker>().await.unwrap();
    let (broker, order) = (&*broker, &sample());
    let sample =
        run.measure(|| async move { drop(broker.publish("orders", order).message_type(TYPE).await.unwrap()) }).await;
    app.stop().await;
    sample
}
