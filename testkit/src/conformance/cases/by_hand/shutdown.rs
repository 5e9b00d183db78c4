//! P9 by hand: stopping, flushing and closing.

use std::future::poll_fn;
use std::time::Duration;

use messaging::driver::{Ended, Lane, SubscribeOptions};
use messaging::{ErrorKind, Settlement};
use tokio::time::{Instant, sleep, timeout};

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{Tale, Told, attempt, id, ids, next_of};
use crate::conformance::stage::Stage;

cases! { Shutdown;
    after_stop_receiving_a_lane_gives_nothing_and_ends,
    stop_receiving_ends_a_lane_that_waits,
    what_runs_can_be_settled_after_stop_receiving,
    what_waits_for_a_retry_is_left_to_another_process [LastingAttempt],
    flush_waits_for_every_settlement,
    polling_can_be_given_up_at_any_time,
    a_stop_fires_the_signal_of_what_runs,
    a_close_fires_the_signal_of_what_runs,
    close_may_be_called_twice_at_once_and_first,
    a_closed_driver_refuses_at_once,
    a_driver_that_is_not_connected_refuses,
}

async fn after_stop_receiving_a_lane_gives_nothing_and_ends(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| options.concurrency = 2).await?;
    let mut published = process.publish_some(&queue, 3).await?;
    let taken = hand.next("the first is delivered").await?;
    published.retain(|published| *published != id(&taken));
    hand.ack(taken).await?;
    hand.control.stop_receiving();
    hand.control.stop_receiving();
    published.extend(process.publish_some(&queue, 1).await?);
    for lane in &mut hand.lanes {
        ensure_stopped(&stage, &mut **lane).await?;
        ensure_stopped(&stage, &mut **lane).await?;
    }
    hand.flush().await?;
    process.close().await?;
    let mut delivered =
        ids(&next.consume(&queue).await?.take(3, "what was not taken comes to another process").await?);
    delivered.sort();
    ensure_eq!(delivered, published, "what was left to another process");
    Ok(())
}

async fn ensure_stopped(stage: &Stage, lane: &mut dyn Lane) -> Verdict {
    match stage.within("a lane ends after stop_receiving", next_of(lane)).await? {
        Err(Ended::Stopped) => Ok(()),
        Err(other) => {
            ensure!(false, "a lane ends as stopped after stop_receiving, not as {other:?}");
            Ok(())
        }
        Ok(delivery) => {
            ensure!(false, "a lane delivered `{}` after stop_receiving had returned", id(&delivery));
            Ok(())
        }
    }
}

async fn stop_receiving_ends_a_lane_that_waits(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| options.concurrency = 2).await?;
    let mut waiting = Vec::new();
    for mut lane in std::mem::take(&mut hand.lanes) {
        waiting.push(tokio::spawn(async move { next_of(&mut *lane).await.map(|delivery| id(&delivery)) }));
    }
    sleep(Duration::from_millis(50)).await;
    hand.control.stop_receiving();
    for lane in waiting {
        let ended = stage.within("a lane that waits ends after stop_receiving", lane).await?;
        ensure!(matches!(ended, Ok(Err(Ended::Stopped))), "a lane that waits ends as stopped, not as {ended:?}");
    }
    Ok(())
}

async fn what_runs_can_be_settled_after_stop_receiving(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    let running = hand.start("the message is delivered").await?;
    hand.control.stop_receiving();
    ensure!(running.settler.still_ours(), "receiving was stopped, and what runs is not ours any more");
    hand.ack(running).await?;
    hand.flush().await?;
    process.close().await?;
    next.consume(&queue).await?.nothing_more("what was acked after stop_receiving does not come back").await
}

async fn what_waits_for_a_retry_is_left_to_another_process(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let delay = (Duration::from_secs(2)).min(stage.capabilities().longest_delay());
    let set = |options: &mut SubscribeOptions| _ = options.native_delays.insert(delay);
    let mut hand = process.consume_with(&queue, set).await?;
    let published = process.publish_some(&queue, 1).await?;
    let delivery = hand.start("the message is delivered").await?;
    let begun = Instant::now();
    hand.retry(delivery, delay);
    hand.control.stop_receiving();
    hand.flush().await?;
    process.close().await?;
    let stopped = begun.elapsed();
    ensure!(stopped < delay, "stopping took {stopped:?}: it waited for a retry of {delay:?}");
    let mut hand = next.consume_with(&queue, set).await?;
    let delivery = hand.next("what waited for a retry comes to another process").await?;
    ensure_eq!(id(&delivery), published[0], "what came to another process");
    ensure_eq!(attempt(&delivery), 2, "the attempt of a retry that another process runs");
    hand.ack(delivery).await
}

async fn flush_waits_for_every_settlement(stage: Stage) -> Verdict {
    let (process, next) = (stage.connected().await?, stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| options.concurrency = 4).await?;
    process.publish_some(&queue, 20).await?;
    let taken = hand.take(4, "the messages are delivered").await?;
    let mut settled = taken.len();
    taken.into_iter().for_each(|delivery| delivery.settler.settle(Settlement::Ack));
    while settled < 20 {
        hand.next("the messages are delivered").await?.settler.settle(Settlement::Ack);
        settled += 1;
    }
    hand.control.stop_receiving();
    hand.flush().await?;
    let told = hand.told.0.all();
    let done = told.iter().filter(|tale| matches!(tale, Tale::Settled { result: Ok(()), .. })).count();
    ensure_eq!(done, 20, "settlements that were told as done when flush had returned");
    process.close().await?;
    next.consume(&queue).await?.nothing_more("what was flushed does not come back").await
}

async fn polling_can_be_given_up_at_any_time(stage: Stage) -> Verdict {
    const MESSAGES: usize = 20;
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut published = process.publish_some(&queue, MESSAGES).await?;
    let deadline = Instant::now() + stage.timing().arrival;
    let mut delivered = Vec::new();
    while delivered.len() < MESSAGES {
        ensure!(
            Instant::now() < deadline,
            "polled again and again and given up each time, a lane gave {} of {MESSAGES} messages within {:?}",
            delivered.len(),
            stage.timing().arrival
        );
        let mut out = Default::default();
        let lane = &mut *hand.lanes[0];
        // What it gives is in `out`, whether the future was dropped or not.
        let _ = timeout(Duration::from_millis(1), poll_fn(|cx| lane.poll_next(cx, 1, &mut out))).await;
        for delivery in out {
            delivered.push(id(&delivery));
            delivery.settler.settle(Settlement::Ack);
        }
    }
    delivered.sort();
    published.sort();
    ensure_eq!(delivered, published, "what was delivered to who gives up polling");
    hand.flush().await
}

async fn a_stop_fires_the_signal_of_what_runs(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    let running = hand.start("the message is delivered").await?;
    let signal = running.message.signal();
    ensure!(!signal.is_cancelled(), "the signal of a message has fired before anything happened");
    hand.control.stop_receiving();
    hand.stopping.cancel();
    ensure!(signal.is_cancelled(), "`SubscribeOptions::stopping` is cancelled, and a message's signal has not fired");
    hand.ack(running).await
}

async fn a_close_fires_the_signal_of_what_runs(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.publish_some(&queue, 1).await?;
    let running = hand.start("the message is delivered").await?;
    let signal = running.message.signal();
    process.close().await?;
    stage.within("a close fires the signal of what runs", signal.cancelled()).await
}

async fn close_may_be_called_twice_at_once_and_first(stage: Stage) -> Verdict {
    let never_connected = stage.process();
    never_connected.close().await?;
    never_connected.close().await?;
    let connecting = stage.process();
    let both = async { tokio::join!(connecting.driver().connect(), connecting.driver().close()) };
    let (_, closed) = stage.within("a driver that connects can be closed", both).await?;
    ensure!(closed.is_ok(), "closing a driver that connects failed: {closed:?}");
    let kind = stage.fails("a publish after that", connecting.driver().publish(connecting.message("orders"))).await?;
    ensure_eq!(kind, ErrorKind::Closed, "the error of a publish through a driver that was closed while it connected");
    let connected = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = connected.consume(&queue).await?;
    connected.publish_some(&queue, 1).await?;
    let running = hand.start("the message is delivered").await?;
    let both = async { tokio::join!(connected.driver().close(), connected.driver().close()) };
    let (one, other) = stage.within("two calls of close return", both).await?;
    ensure!(one.is_ok() && other.is_ok(), "two calls of close failed: {one:?}, {other:?}");
    drop(running);
    connected.close().await
}

async fn a_closed_driver_refuses_at_once(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    process.close().await?;
    for lane in &mut hand.lanes {
        ensure_stopped(&stage, &mut **lane).await?;
    }
    let begun = Instant::now();
    let publish = process.driver().publish(process.message(&queue));
    let kind = stage.fails("a publish after a close is refused", publish).await?;
    ensure_eq!(kind, ErrorKind::Closed, "the error of a publish after a close");
    let options = SubscribeOptions::new(&*queue, std::sync::Arc::<Told>::default());
    let kind = stage.fails("a subscription after a close is refused", process.driver().subscribe(options)).await?;
    ensure_eq!(kind, ErrorKind::Closed, "the error of a subscription after a close");
    ensure!(begun.elapsed() < Duration::from_secs(1), "a closed driver took {:?} to refuse", begun.elapsed());
    Ok(())
}

async fn a_driver_that_is_not_connected_refuses(stage: Stage) -> Verdict {
    let process = stage.process();
    let queue = stage.queue("orders").await?;
    let publish = process.driver().publish(process.message(&queue));
    let kind = stage.fails("a publish before the driver is connected is refused", publish).await?;
    ensure_eq!(kind, ErrorKind::Closed, "the error of a publish before the driver is connected");
    Ok(())
}
