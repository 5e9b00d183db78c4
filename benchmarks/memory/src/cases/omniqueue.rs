//! omniqueue: a queue without a consumer loop, which the user writes; one type, no dispatch.

use std::sync::Arc;

use ::omniqueue::backends::InMemoryBackend;
use ::omniqueue::{Delivery, QueueConsumer};
use tokio::sync::Semaphore;

use crate::run::{Run, Sample};
use crate::work::{OrderCreated, gate, handle, sample};

async fn on_delivery(delivery: Delivery) {
    gate().await;
    let order: OrderCreated = delivery.payload_serde_json().unwrap().unwrap();
    handle(&order);
    let _ = delivery.ack().await;
}

async fn consume<C: QueueConsumer + 'static>(mut consumer: C, concurrency: usize) {
    if concurrency == 1 {
        while let Ok(delivery) = consumer.receive().await {
            on_delivery(delivery).await;
        }
        return;
    }
    let permits = Arc::new(Semaphore::new(concurrency));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let Ok(delivery) = consumer.receive().await else { return };
        tokio::spawn(async move {
            on_delivery(delivery).await;
            drop(permit);
        });
    }
}

macro_rules! measure {
    ($run:expr, $builder:expr) => {{
        let (producer, consumer) = $builder.build_pair().await.unwrap();
        let consuming = tokio::spawn(consume(consumer, $run.concurrency));
        let (producer, order) = (&producer, &sample());
        let sample = $run.measure(|| async move { producer.send_serde_json(order).await.unwrap() }).await;
        consuming.abort();
        sample
    }};
}

pub async fn typed(run: Run) -> Sample {
    measure!(run, InMemoryBackend::builder())
}

/// Through trait objects, as a program uses it that may change its backend.
pub async fn dynamic(run: Run) -> Sample {
    measure!(run, InMemoryBackend::builder().make_dynamic())
}
