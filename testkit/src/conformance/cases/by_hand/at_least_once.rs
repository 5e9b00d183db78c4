//! P2 by hand: what is done stays done, and what is told of a settlement is true.

use std::collections::BTreeSet;
use std::time::Duration;

use messaging::{Reason, Settlement};
use tokio::time::{sleep, timeout};

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{Hand, Tale, id, ids};
use crate::conformance::stage::Stage;

cases! { AtLeastOnce;
    an_acked_message_is_gone,
    whatever_ends_a_message_ends_it,
    two_processes_share_a_queue_and_each_message_comes_to_one,
    each_settlement_is_told_exactly_once,
    a_settlement_after_a_close_is_told_as_failed,
    a_lost_connection_brings_back_only_what_was_in_flight [Cut],
    what_is_told_of_a_settlement_after_a_lost_connection_is_true [Cut],
    the_id_of_a_message_that_is_sent_again_travels,
}

async fn an_acked_message_is_gone(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 3).await?;
    for delivery in hand.take(3, "the messages are delivered").await? {
        hand.ack(delivery).await?;
    }
    process.close().await?;
    next.consume(&queue).await?.nothing_more("what was acked does not come to another process").await
}

async fn whatever_ends_a_message_ends_it(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    for settlement in [Settlement::Discard(Reason::NoHandler), Settlement::DeadLetter(Reason::Exhausted)] {
        process.publish_some(&queue, 1).await?;
        let delivery = hand.start("the message is delivered").await?;
        hand.settle(delivery, settlement).await?;
    }
    hand.nothing_more("what was discarded or dead-lettered does not come back").await
}

async fn two_processes_share_a_queue_and_each_message_comes_to_one(stage: Stage) -> Verdict {
    let (one, other) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let (mut hand, mut other_hand) = (one.consume(&queue).await?, other.consume(&queue).await?);
    let published = one.publish_some(&queue, 20).await?;
    let mut delivered = Vec::new();
    while delivered.len() < published.len() {
        let what = "every message comes to one of two processes";
        let (delivery, from) = tokio::select! {
            delivery = hand.next(what) => (delivery?, &hand),
            delivery = other_hand.next(what) => (delivery?, &other_hand),
        };
        delivered.push(id(&delivery));
        from.ack(delivery).await?;
    }
    delivered.sort();
    ensure_eq!(delivered, published, "what two processes got of a queue, together");
    hand.nothing_more("nothing comes to a second process as well").await?;
    other_hand.nothing_more("nothing comes to a second process as well").await
}

async fn each_settlement_is_told_exactly_once(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let delay = stage.short_delay();
    let retry = Settlement::Retry { step: stage.step(delay), attempt: messaging::Attempt::new(2) };
    let settlements = [
        Settlement::Release { delay: Duration::ZERO },
        retry,
        Settlement::Ack,
        Settlement::Discard(Reason::NonRetryable),
        Settlement::DeadLetter(Reason::Exhausted),
    ];
    for settlement in settlements {
        process.publish_some(&queue, 1).await?;
        let delivery = hand.start("the message is delivered").await?;
        hand.settle(delivery, settlement).await?;
        if matches!(settlement, Settlement::Release { .. } | Settlement::Retry { .. }) {
            // It is dropped once: that is no settlement, and is not told.
            drop(hand.next("the message comes back").await?);
            let again = hand.next("the message comes back once more").await?;
            hand.ack(again).await?;
        }
    }
    hand.flush().await?;
    sleep(stage.timing().quiet).await;
    let told = hand.told.0.all();
    let times = |of: Settlement| {
        told.iter().filter(|tale| matches!(tale, Tale::Settled { settlement, .. } if *settlement == of)).count()
    };
    for settlement in settlements {
        let expected = if settlement == Settlement::Ack { 3 } else { 1 };
        ensure_eq!(times(settlement), expected, "how often {settlement:?} was told");
    }
    ensure!(told.len() == 7, "seven settlements were handed over, and the driver told {told:?}");
    Ok(())
}

async fn a_settlement_after_a_close_is_told_as_failed(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let published = process.publish_some(&queue, 1).await?;
    let delivery = hand.start("the message is delivered").await?;
    process.close().await?;
    ensure!(!delivery.settler.still_ours(), "a message is still ours after its driver was closed");
    delivery.settler.settle(Settlement::Ack);
    let told = hand.told.0.until(&stage, "a settlement after a close is told", |told| told.iter().any(is_settlement));
    let verdict = told.await?.into_iter().find(is_settlement);
    ensure!(
        matches!(verdict, Some(Tale::Settled { result: Err(_), .. })),
        "the driver is closed, and an ack is told as done: {verdict:?}"
    );
    let again = next.consume(&queue).await?.next("what was not settled comes to another process").await?;
    ensure_eq!(id(&again), published[0], "what came to the next process");
    Ok(())
}

async fn a_lost_connection_brings_back_only_what_was_in_flight(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let published = process.publish_some(&queue, 5).await?;
    let mut taken = hand.take(4, "the messages are delivered").await?;
    let in_flight = taken.split_off(2);
    let done = ids(&taken);
    for delivery in taken {
        hand.ack(delivery).await?;
    }
    // Not every broker confirms an ack: it is given the time to arrive.
    sleep(stage.timing().quiet).await;
    process.cut().await?;
    drop(in_flight);
    let back = take_all(&stage, &mut hand).await?;
    let expected: BTreeSet<_> = published.into_iter().filter(|id| !done.contains(id)).collect();
    let delivered: BTreeSet<_> = back.into_iter().map(|(id, _)| id).collect();
    ensure_eq!(delivered, expected, "what comes after a lost connection: neither less, nor what was acked");
    Ok(())
}

async fn what_is_told_of_a_settlement_after_a_lost_connection_is_true(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let published = process.publish_some(&queue, 2).await?;
    let late = hand.start("the message is delivered").await?;
    let late_id = id(&late);
    process.cut().await?;
    // By now the driver knows of it.
    sleep(stage.timing().quiet).await;
    let done = hand.outcome(late, Settlement::Ack).await?.is_ok();
    let back = take_all(&stage, &mut hand).await?;
    let comes_back = back.iter().any(|(id, _)| *id == late_id);
    ensure!(done != comes_back, "a late ack was told as done: {done}, and its message came back: {comes_back}");
    for other in published.iter().filter(|id| **id != late_id) {
        // What was taken before the driver knew of the loss is taken again.
        let acks = back.iter().filter(|(id, acked)| id == other && *acked).count();
        ensure_eq!(acks, 1, "how often another message was delivered and acked after the late ack");
    }
    Ok(())
}

async fn the_id_of_a_message_that_is_sent_again_travels(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let message = process.message(&queue);
    let first = process.publish(message.clone()).await?;
    let second = process.publish(message.clone()).await?;
    ensure!(first == message.id && second == message.id, "publish gave {first} and {second}, not {}", message.id);
    // A broker that deduplicates delivers one of them.
    for (delivered, _) in take_all(&stage, &mut hand).await? {
        ensure_eq!(delivered, message.id.as_str(), "the id of a message that was sent twice");
    }
    Ok(())
}

/// Acks all that comes until nothing does, at least one; what each is, and whether its ack was told as done.
async fn take_all(stage: &Stage, hand: &mut Hand) -> Verdict<Vec<(String, bool)>> {
    let mut delivered = Vec::new();
    let mut next = hand.next("a message is delivered").await?;
    loop {
        let id = id(&next);
        delivered.push((id, hand.outcome(next, Settlement::Ack).await?.is_ok()));
        match timeout(stage.timing().quiet, hand.next("another message is delivered")).await {
            Ok(another) => next = another?,
            Err(_) => return Ok(delivered),
        }
    }
}

fn is_settlement(tale: &Tale) -> bool {
    matches!(tale, Tale::Settled { .. })
}
