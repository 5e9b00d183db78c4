//! P3 by hand: one queue, one publish, one process is none of another's business.

use std::time::Duration;

use messaging::{ErrorKind, OutboundMessage};
use tokio::time::timeout;

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{id, ids};
use crate::conformance::process::Process;
use crate::conformance::stage::Stage;

cases! { Isolation;
    stopping_one_subscription_leaves_another_alone,
    closing_one_process_leaves_another_alone,
    a_refused_publish_leaves_the_others_alone [Refusal],
    a_publish_that_was_dropped_leaves_the_next_alone,
    a_message_that_waits_for_its_retry_holds_up_no_other,
}

async fn stopping_one_subscription_leaves_another_alone(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let (orders, invoices) = (stage.queue("orders").await?, stage.queue("invoices").await?);
    let stopped = process.consume(&orders).await?;
    let mut hand = process.consume(&invoices).await?;
    stopped.control.stop_receiving();
    let published = process.publish_some(&invoices, 1).await?;
    let delivery = hand.next("a queue is consumed though another one was stopped").await?;
    ensure_eq!(id(&delivery), published[0], "what was delivered");
    hand.ack(delivery).await
}

async fn closing_one_process_leaves_another_alone(stage: Stage) -> Verdict {
    let (process, other) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = other.consume(&queue).await?;
    other.publish_some(&queue, 1).await?;
    let running = hand.start("the message is delivered").await?;
    process.close().await?;
    ensure!(running.settler.still_ours(), "another process was closed, and a message is not ours any more");
    hand.ack(running).await?;
    other.publish_some(&queue, 1).await?;
    hand.next("a queue is consumed though another process was closed").await.map(drop)
}

async fn a_refused_publish_leaves_the_others_alone(stage: Stage) -> Verdict {
    const OTHERS: usize = 49;
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let (bad, expected) = refused(&process, &queue);
    let mut publishes = tokio::task::JoinSet::new();
    for index in 0..=OTHERS {
        let message = if index == OTHERS / 2 { bad.clone() } else { process.message(&queue) };
        let driver = process.driver().clone();
        publishes.spawn(async move { driver.publish(message).await.map_err(|error| error.kind()) });
    }
    let results = stage.within("every publish of a burst ends", publishes.join_all()).await?;
    let refusals: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    ensure_eq!(refusals, [expected], "what was refused of a burst with one bad message");
    let others = hand.take(OTHERS, "the others of the burst are delivered").await?;
    ensure!(!ids(&others).contains(&bad.id.as_str().to_owned()), "a message that was refused is delivered");
    hand.nothing_more("a message that was refused is not delivered").await
}

/// A message that is refused for what it is, and the kind of the refusal.
fn refused(process: &Process, queue: &str) -> (OutboundMessage, ErrorKind) {
    let capabilities = process.stage.capabilities();
    match capabilities.max_message_size {
        Some(largest) => (OutboundMessage::raw(queue, vec![b'x'; largest + 1]), ErrorKind::TooLarge),
        None => {
            let delay = capabilities.max_publish_delay + Duration::from_secs(1);
            (process.message(queue).delay(delay), ErrorKind::Unsupported)
        }
    }
}

async fn a_publish_that_was_dropped_leaves_the_next_alone(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    for _ in 0..20 {
        // Polled once, and dropped.
        let _ = timeout(Duration::ZERO, process.driver().publish(process.message(&queue))).await;
    }
    let published = process.publish_some(&queue, 1).await?;
    loop {
        // The dropped ones were sent, or not.
        let delivery = hand.next("what is published after publishes that were dropped is delivered").await?;
        let found = id(&delivery) == published[0];
        hand.ack(delivery).await?;
        if found {
            return Ok(());
        }
    }
}

async fn a_message_that_waits_for_its_retry_holds_up_no_other(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let delay = Duration::from_secs(3).min(stage.capabilities().longest_delay());
    let mut hand = process.consume_with(&queue, |options| _ = options.native_delays.insert(delay)).await?;
    let waiting = process.publish_some(&queue, 1).await?;
    let delivery = hand.start("the message is delivered").await?;
    let begun = tokio::time::Instant::now();
    hand.retry(delivery, delay);
    let others = process.publish_some(&queue, 5).await?;
    for _ in &others {
        let delivery = hand.next("other messages are delivered while one waits").await?;
        ensure!(others.contains(&id(&delivery)), "a retry of {delay:?} came after {:?}", begun.elapsed());
        hand.ack(delivery).await?;
    }
    ensure!(begun.elapsed() < delay, "other messages took {:?}, as long as the retry of one", begun.elapsed());
    let retried = hand.next("the message that waited is delivered").await?;
    ensure_eq!(id(&retried), waiting[0], "what was delivered last");
    hand.ack(retried).await
}
