//! RustStream: its memory broker, its macro, its JSON codec.

use ::ruststream::OutgoingMessage;
use ::ruststream::codec::{Codec, JsonCodec};
use ::ruststream::memory::prelude::*;
use serde::Deserialize;

use crate::run::{Run, Sample};
use crate::work::{OrderCreated, TYPE, gate, handle, sample};

#[subscriber("orders")]
async fn on_order(order: &OrderCreated) -> HandlerOutcome {
    gate().await;
    handle(order);
    HandlerOutcome::ack()
}

#[subscriber("orders", workers(10))]
async fn on_order_ten(order: &OrderCreated) -> HandlerOutcome {
    gate().await;
    handle(order);
    HandlerOutcome::ack()
}

#[derive(Debug, Deserialize, MessageInfo)]
pub struct OrderCancelled {
    #[expect(dead_code, reason = "decoded, where one is ever sent")]
    order_id: String,
}

/// Two types on one subscription, told apart by a header: what our `type` does.
#[derive(InMessages)]
#[in_messages(header = "type")]
pub enum OrderEvent {
    #[in_messages(value = "order.created")]
    Created(OrderCreated),
    #[in_messages(value = "order.cancelled")]
    Cancelled(OrderCancelled),
}

#[subscriber("orders")]
async fn on_event(event: &OrderEvent) -> HandlerOutcome {
    gate().await;
    match event {
        OrderEvent::Created(order) => handle(order),
        OrderEvent::Cancelled(_) => unreachable!(),
    }
    HandlerOutcome::ack()
}

#[subscriber("orders", workers(10))]
async fn on_event_ten(event: &OrderEvent) -> HandlerOutcome {
    gate().await;
    match event {
        OrderEvent::Created(order) => handle(order),
        OrderEvent::Cancelled(_) => unreachable!(),
    }
    HandlerOutcome::ack()
}

/// Starts an application on a memory broker, and measures publishes to it.
macro_rules! measure {
    ($run:expr, $typed:literal, $app:expr, $one:ident, $ten:ident) => {{
        let run: Run = $run;
        let broker = MemoryBroker::new();
        let app = $app.with_broker(broker.clone(), |broker| {
            if run.concurrency == 1 {
                broker.include($one);
            } else {
                broker.include($ten);
            }
        });
        let running = app.start().await.unwrap();
        let (publisher, order) = (&broker.publisher(), &sample());
        let publish = || async move {
            // The buffer that its own codec wrote is handed over: the cheapest path that it has.
            let mut message = OutgoingMessage::produced("orders", JsonCodec.encode(order).unwrap());
            if $typed {
                let mut headers = HeaderMap::new();
                headers.insert(Str::from_static("type"), TYPE.to_owned());
                message = message.with_headers(headers);
            }
            publisher.publish(message, None).await.unwrap();
        };
        let sample = run.measure(publish).await;
        running.shutdown().await.unwrap();
        sample
    }};
}

fn info() -> AppInfo {
    AppInfo::new("bench", "0.0.0")
}

pub async fn one_type(run: Run) -> Sample {
    measure!(run, false, RustStream::new(info()), on_order, on_order_ten)
}

pub async fn by_type(run: Run) -> Sample {
    measure!(run, true, RustStream::new(info()), on_event, on_event_ten)
}

/// With froodi's scope for each delivery, in which one service is built of a shared one.
pub mod scoped {
    use froodi::ruststream::ContainerLayer;
    use froodi::{Container, DefaultScope, Inject, instance, registry};

    use super::*;

    #[derive(Clone)]
    pub struct Config {
        factor: f64,
    }

    pub struct Pricing {
        factor: f64,
    }

    impl Pricing {
        fn touch(&self, order: &OrderCreated) {
            std::hint::black_box(self.factor * order.total);
        }
    }

    #[subscriber("orders")]
    async fn priced(order: &OrderCreated, Inject(pricing): Inject<Pricing>) -> HandlerOutcome {
        gate().await;
        pricing.touch(order);
        handle(order);
        HandlerOutcome::ack()
    }

    #[subscriber("orders", workers(10))]
    async fn priced_ten(order: &OrderCreated, Inject(pricing): Inject<Pricing>) -> HandlerOutcome {
        gate().await;
        pricing.touch(order);
        handle(order);
        HandlerOutcome::ack()
    }

    pub async fn run(run: Run) -> Sample {
        let container = Container::new(registry! {
            provide(DefaultScope::App, instance(Config { factor: 1.2 })),
            scope(DefaultScope::Request) [
                provide(|Inject(config): Inject<Config>| Ok(Pricing { factor: config.factor })),
            ],
        });
        measure!(run, false, RustStream::new(info()).layer(ContainerLayer::new(container)), priced, priced_ten)
    }
}
