//! apalis: its memory storage does not serialize, so the handler decodes; one type, no dispatch.

use std::sync::{Arc, Mutex};

use ::apalis::prelude::*;
use tokio::sync::Notify;

use crate::run::{Run, Sample};
use crate::work::{decode, encode, gate, handle, sample};

async fn on_order(body: Vec<u8>) -> Result<(), BoxDynError> {
    gate().await;
    handle(&decode(&body));
    Ok(())
}

macro_rules! measure {
    ($run:expr, $builder:expr) => {{
        let run: Run = $run;
        let mut storage = MemoryStorage::<Vec<u8>>::new();
        let (filled, stop, order) = (Mutex::new(None), Arc::new(Notify::new()), sample());
        let publish_all = async || {
            for _ in 0..run.messages {
                storage.push(encode(&order)).await.unwrap();
            }
            *filled.lock().unwrap() = Some(storage);
        };
        let start = async || {
            let worker = $builder(filled.lock().unwrap().take().unwrap()).build(on_order);
            let stop = Arc::clone(&stop);
            tokio::spawn(worker.run_with_ctx(move |context| {
                let stop = Arc::clone(&stop);
                async move {
                    stop.notified().await;
                    context.stop()?;
                    Ok(())
                }
            }));
        };
        let sample = run.measure_then(publish_all, start).await;
        stop.notify_one();
        sample
    }};
}

/// Every message is a future in the worker's own task.
pub async fn limited(run: Run) -> Sample {
    measure!(run, |storage| WorkerBuilder::new("bench").backend(storage).concurrency(run.concurrency))
}

/// Every message is a task, as its README shows.
pub async fn spawned(run: Run) -> Sample {
    measure!(run, |storage| {
        WorkerBuilder::new("bench").backend(storage).concurrency(run.concurrency).parallelize(tokio::spawn)
    })
}
