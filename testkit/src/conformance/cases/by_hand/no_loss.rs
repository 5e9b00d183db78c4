//! P1 by hand: what is not settled for good is still with the broker.

use std::collections::BTreeSet;
use std::time::Duration;

use messaging::Settlement;

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{attempt, id, ids};
use crate::conformance::stage::Stage;

cases! { NoLoss;
    a_confirmed_publish_is_delivered,
    a_dropped_settler_gives_the_message_back,
    what_a_closed_driver_had_in_flight_comes_to_another,
    a_released_message_comes_back,
    a_retried_message_comes_back_as_the_next_attempt,
    every_publish_of_a_burst_that_is_confirmed_is_delivered,
}

async fn a_confirmed_publish_is_delivered(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let published = process.publish(process.message(&queue)).await?;
    let delivery = hand.next("what was confirmed is delivered").await?;
    ensure_eq!(id(&delivery), published.as_str(), "the id that publish gave and the one that is delivered");
    ensure_eq!(attempt(&delivery), 1, "the first delivery's attempt");
    hand.ack(delivery).await
}

async fn every_publish_of_a_burst_that_is_confirmed_is_delivered(stage: Stage) -> Verdict {
    const BURST: usize = 200;
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut publishes = tokio::task::JoinSet::new();
    for _ in 0..BURST {
        let (driver, message) = (process.driver().clone(), process.message(&queue));
        publishes.spawn(async move { driver.publish(message).await });
    }
    let confirmed = stage.within("every publish of a burst ends", publishes.join_all()).await?;
    let confirmed: BTreeSet<_> =
        confirmed.into_iter().filter_map(Result::ok).map(|id| id.as_str().to_owned()).collect();
    ensure_eq!(confirmed.len(), BURST, "publishes that were confirmed, with no fault around");
    let mut delivered = BTreeSet::new();
    for _ in 0..BURST {
        let delivery = hand.next("every message of the burst is delivered").await?;
        delivered.insert(id(&delivery));
        delivery.settler.settle(Settlement::Ack);
    }
    ensure_eq!(delivered, confirmed, "what was delivered of a burst");
    hand.flush().await
}

async fn a_dropped_settler_gives_the_message_back(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let ids = process.publish_some(&queue, 1).await?;
    drop(hand.next("the message is delivered").await?);
    let unstarted = hand.next("a settler that was dropped before the run gives the message back").await?;
    ensure_eq!(id(&unstarted), ids[0], "what came back");
    unstarted.message.start();
    drop(unstarted);
    let started = hand.next("a settler that was dropped during the run gives the message back").await?;
    ensure_eq!(id(&started), ids[0], "what came back");
    hand.ack(started).await
}

async fn what_a_closed_driver_had_in_flight_comes_to_another(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut published = process.publish_some(&queue, 3).await?;
    let running = hand.start("the first is delivered").await?;
    let waiting = hand.next("the second is delivered").await?;
    process.close().await?;
    drop((running, waiting, hand));
    let mut hand = next.consume(&queue).await?;
    let mut delivered = ids(&hand.take(3, "what a closed driver left comes to another process").await?);
    delivered.sort();
    published.sort();
    ensure_eq!(delivered, published, "what came to the next process");
    Ok(())
}

async fn a_released_message_comes_back(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let published = process.publish_some(&queue, 1).await?;
    for delay in [Duration::ZERO, stage.short_delay()] {
        let delivery = hand.next("a message that was released is delivered").await?;
        hand.settle(delivery, Settlement::Release { delay }).await?;
    }
    let delivery = hand.next("a message that was released with a delay comes back").await?;
    ensure_eq!(id(&delivery), published[0], "what came back");
    hand.ack(delivery).await
}

async fn a_retried_message_comes_back_as_the_next_attempt(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    for expected in 1..=3 {
        let delivery = hand.start("a message that is retried is delivered again").await?;
        ensure_eq!(attempt(&delivery), expected, "the attempt after {} retries", expected - 1);
        hand.retry(delivery, stage.short_delay());
    }
    let delivery = hand.start("the last attempt is delivered").await?;
    ensure!(attempt(&delivery) == 4, "three retries make attempt 4, not {}", attempt(&delivery));
    hand.ack(delivery).await
}
