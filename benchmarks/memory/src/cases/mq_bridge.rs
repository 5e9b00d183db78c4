//! mq-bridge: a route from memory to nowhere, with a handler for each type.

use std::sync::atomic::{AtomicUsize, Ordering};

use ::mq_bridge::endpoints::memory::MemoryPublisher;
use ::mq_bridge::models::{Endpoint, EndpointType};
use ::mq_bridge::traits::MessagePublisher;
use ::mq_bridge::{CanonicalMessage, Route};

use crate::run::{Run, Sample};
use crate::work::{OTHER_TYPE, OrderCreated, TYPE, encode, gate, handle, sample};

/// A topic outlives its route, so every run has one of its own.
static RUNS: AtomicUsize = AtomicUsize::new(0);

async fn on_order(order: OrderCreated) {
    gate().await;
    handle(&order);
}

async fn measure(run: Run, batch: Option<usize>) -> Sample {
    let topic = format!("orders-{}", RUNS.fetch_add(1, Ordering::Relaxed));
    let room = run.messages + 16;
    let publisher = MemoryPublisher::new_local(&topic, room);
    let mut route = Route::new(Endpoint::new_memory(&topic, room), Endpoint::new(EndpointType::Null))
        .add_handler(TYPE, on_order)
        .add_handler(OTHER_TYPE, on_order)
        .with_concurrency(run.concurrency);
    if let Some(size) = batch {
        route = route.with_batch_size(size);
    }
    let running = route.run(&topic).await.unwrap();
    let (publisher, order) = (&publisher, &sample());
    let publish = || async move {
        publisher.send(CanonicalMessage::from_vec(encode(order)).with_type_key(TYPE)).await.unwrap();
    };
    let sample = run.measure(publish).await;
    running.stop().await;
    sample
}

/// Its defaults: up to 512 messages are settled together.
pub async fn batched(run: Run) -> Sample {
    measure(run, None).await
}

/// Each message is settled by itself, as the others do it.
pub async fn one_by_one(run: Run) -> Sample {
    measure(run, Some(1)).await
}
