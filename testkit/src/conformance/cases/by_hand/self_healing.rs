//! P4 by hand: what broke for a moment works again.

use std::time::Duration;

use messaging::Settlement;
use tokio::time::sleep;

use crate::conformance::breach::{Breach, Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{Tale, id, next_of};
use crate::conformance::stage::Stage;
use crate::conformance::watched::Watched;

cases! { SelfHealing;
    a_waiting_lane_is_woken_by_a_message,
    lanes_in_tasks_of_their_own_are_all_served,
    a_publish_is_confirmed_again_after_a_lost_connection [Cut],
    a_queue_is_consumed_again_after_a_lost_connection [Cut],
    what_was_confirmed_outlives_the_broker_s_process [Process],
}

async fn a_waiting_lane_is_woken_by_a_message(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    for _ in 0..3 {
        let (driver, message) = (process.driver().clone(), process.message(&queue));
        let expected = message.id.clone();
        // In a task of its own, so that nothing but the driver wakes this one.
        let publish = tokio::spawn(async move {
            sleep(Duration::from_millis(20)).await;
            driver.publish(message).await
        });
        let delivery = hand.next("a lane that waits is woken by a message").await?;
        ensure_eq!(id(&delivery), expected.as_str(), "what was delivered");
        hand.ack(delivery).await?;
        stage.within("the publish ends", publish).await?.ok();
    }
    Ok(())
}

async fn lanes_in_tasks_of_their_own_are_all_served(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| options.concurrency = 3).await?;
    let handled = std::sync::Arc::<Watched<String>>::default();
    for mut lane in std::mem::take(&mut hand.lanes) {
        let handled = handled.clone();
        tokio::spawn(async move {
            while let Ok(delivery) = next_of(&mut *lane).await {
                delivery.message.start();
                let id = id(&delivery);
                delivery.settler.settle(Settlement::Ack);
                handled.note(id);
            }
        });
    }
    let mut published = Vec::new();
    for number in 0..30 {
        let message = process.message(&queue).key(format!("k-{number}"));
        published.push(process.publish(message).await?.as_str().to_owned());
    }
    let all = |handled: &[String]| published.iter().all(|id| handled.contains(id));
    handled.until(&stage, "three lanes take 30 messages", all).await?;
    hand.control.stop_receiving();
    hand.flush().await
}

async fn a_publish_is_confirmed_again_after_a_lost_connection(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    process.cut().await?;
    let published = process.published_at_last(&queue).await?;
    loop {
        let delivery = hand.next("what is confirmed after a lost connection is delivered").await?;
        let found = id(&delivery) == published;
        delivery.settler.settle(Settlement::Ack);
        if found {
            return Ok(());
        }
    }
}

async fn a_queue_is_consumed_again_after_a_lost_connection(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let outside = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    for _ in 0..3 {
        process.cut().await?;
        let published = outside.publish_some(&queue, 1).await?;
        loop {
            let delivery = hand.next("a message is delivered after a lost connection").await?;
            let found = id(&delivery) == published[0];
            // An ack that a cut follows at once may not have arrived, and its message comes again.
            delivery.settler.settle(Settlement::Ack);
            if found {
                break;
            }
        }
    }
    // A queue of which it is told that it is not consumed is told to be consumed again.
    hand.told.0.until(&stage, "it is told that the queue is consumed again", |told| !is_stopped(told)).await.map(drop)
}

async fn what_was_confirmed_outlives_the_broker_s_process(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut expected = process.publish_some(&queue, 3).await?;
    let in_flight = hand.start("the first is delivered").await?;
    let Some(broker) = stage.broker().process() else { return Err(Breach::new("no process to end")) };
    let failed = |error| Breach::new(format!("the broker's process does not do as it is told: {error}"));
    stage.within("the broker's process ends", broker.kill()).await?.map_err(failed)?;
    stage.within("the broker's process starts", broker.start()).await?.map_err(failed)?;
    drop(in_flight);
    expected.push(process.published_at_last(&queue).await?);
    while !expected.is_empty() {
        let delivery = hand.next("what was confirmed is delivered after the broker was killed").await?;
        expected.retain(|expected| *expected != id(&delivery));
        delivery.settler.settle(Settlement::Ack);
    }
    let told = hand.told.0.all();
    ensure!(!is_stopped(&told), "messages are delivered, and the last that was told is that they are not: {told:?}");
    Ok(())
}

/// Whether the last that was told is that the queue is not consumed.
fn is_stopped(told: &[Tale]) -> bool {
    let consumed = |tale: &Tale| match tale {
        Tale::Fault { consuming_stopped: true, .. } => Some(false),
        Tale::Healed => Some(true),
        Tale::Fault { .. } | Tale::Settled { .. } => None,
    };
    told.iter().rev().find_map(consumed) == Some(false)
}
