//! P5 by hand: no more lanes, deliveries and attempts than were asked for.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::time::Duration;

use messaging::Settlement;
use tokio::time::sleep;

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{attempt, id};
use crate::conformance::stage::Stage;

cases! { Bounded;
    there_are_as_many_lanes_as_asked,
    as_many_can_be_in_flight_as_there_are_lanes,
    a_lane_gives_no_more_than_it_is_asked_for,
    nothing_is_received_before_the_first_poll,
    what_was_never_started_is_not_charged [FreeRelease],
    a_release_is_not_charged [FreeRelease],
    a_run_that_was_cut_off_counts [CrashCounts],
    a_run_under_a_lost_connection_counts [CrashCounts, Cut],
    closing_ends_with_deliveries_in_flight,
}

async fn there_are_as_many_lanes_as_asked(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    for lanes in [1, 3, 16] {
        let queue = stage.queue(&format!("of-{lanes}")).await?;
        let hand = process.consume_with(&queue, |options| options.concurrency = lanes).await?;
        ensure_eq!(hand.lanes.len(), lanes, "the lanes of a consumer with that concurrency");
    }
    Ok(())
}

async fn as_many_can_be_in_flight_as_there_are_lanes(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| options.concurrency = 3).await?;
    process.publish_some(&queue, 3).await?;
    let running = hand.take(3, "three lanes have three messages in flight").await?;
    for delivery in running {
        hand.ack(delivery).await?;
    }
    Ok(())
}

async fn a_lane_gives_no_more_than_it_is_asked_for(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut left = process.publish_some(&queue, 20).await?;
    for max in [1, 3].into_iter().cycle() {
        let mut out = VecDeque::new();
        let lane = &mut *hand.lanes[0];
        let polled = poll_fn(|cx| lane.poll_next(cx, max, &mut out));
        let polled = stage.within("a lane that has messages gives some", polled).await?;
        ensure!(polled.is_ok(), "the lane has ended: {polled:?}");
        ensure!((1..=max).contains(&out.len()), "a lane was asked for 1 to {max} deliveries and gave {}", out.len());
        for delivery in out {
            left.retain(|left| *left != id(&delivery));
            delivery.settler.settle(Settlement::Ack);
        }
        if left.is_empty() {
            break;
        }
    }
    hand.flush().await
}

async fn nothing_is_received_before_the_first_poll(stage: Stage) -> Verdict {
    let (idle, process) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let unpolled = idle.consume_with(&queue, |options| options.concurrency = 4).await?;
    let published = process.publish_some(&queue, 10).await?;
    sleep(stage.timing().quiet).await;
    let mut hand = process.consume(&queue).await?;
    let what = "a subscription that was never polled takes nothing, so all comes to another process";
    let all = hand.take(published.len(), what).await?;
    for delivery in all {
        hand.ack(delivery).await?;
    }
    drop(unpolled);
    Ok(())
}

async fn what_was_never_started_is_not_charged(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    for round in 0..5 {
        let delivery = hand.next("a message that was not started comes back").await?;
        ensure_eq!(attempt(&delivery), 1, "the attempt of a message that was given back {round} times, unstarted");
        drop(delivery);
    }
    let delivery = hand.next("a message that was not started comes back").await?;
    hand.ack(delivery).await
}

async fn a_release_is_not_charged(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    for round in 0..5 {
        let delivery = hand.start("a message that was released comes back").await?;
        ensure_eq!(attempt(&delivery), 1, "the attempt of a message that was released {round} times");
        hand.settle(delivery, Settlement::Release { delay: Duration::ZERO }).await?;
    }
    let delivery = hand.start("a message that was released comes back").await?;
    hand.retry(delivery, stage.short_delay());
    let delivery = hand.start("the retry is delivered").await?;
    ensure_eq!(attempt(&delivery), 2, "the attempt after five releases and a retry");
    hand.settle(delivery, Settlement::Release { delay: Duration::ZERO }).await?;
    let delivery = hand.start("a message that was released comes back").await?;
    ensure_eq!(attempt(&delivery), 2, "the attempt of a retry that was released");
    hand.ack(delivery).await
}

async fn a_run_that_was_cut_off_counts(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    for expected in 1..=3 {
        let delivery = hand.start("a message whose run was cut off comes back").await?;
        ensure_eq!(attempt(&delivery), expected, "the attempt after {} runs that were cut off", expected - 1);
        drop(delivery);
    }
    let delivery = hand.start("a message whose run was cut off comes back").await?;
    hand.ack(delivery).await
}

async fn a_run_under_a_lost_connection_counts(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    let running = hand.start("the message is delivered").await?;
    process.cut().await?;
    drop(running);
    let again = hand.start("a message whose connection was lost comes back").await?;
    ensure_eq!(attempt(&again), 2, "the attempt after a run whose connection was lost");
    hand.ack(again).await
}

async fn closing_ends_with_deliveries_in_flight(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| options.concurrency = 3).await?;
    process.publish_some(&queue, 5).await?;
    let running = hand.take(3, "the messages are delivered").await?;
    process.close().await?;
    drop(running);
    Ok(())
}
