//! The limit: a tokio channel and serde_json, without types, scopes, walls, settlements.

use futures::StreamExt;
use tokio::sync::mpsc::unbounded_channel;

use crate::run::{Run, Sample};
use crate::work::{decode, encode, gate, handle, sample};

pub async fn mpsc(run: Run) -> Sample {
    let (sender, mut receiver) = unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        if run.concurrency == 1 {
            while let Some(body) = receiver.recv().await {
                gate().await;
                handle(&decode(&body));
            }
        } else {
            let bodies = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
            let one = |body: Vec<u8>| async move {
                gate().await;
                handle(&decode(&body));
            };
            bodies.for_each_concurrent(run.concurrency, one).await;
        }
    });
    let order = sample();
    let publish = || {
        sender.send(encode(&order)).unwrap();
        std::future::ready(())
    };
    run.measure(publish).await
}
