//! P9 under an application: what runs ends, the rest is left to others.

use std::sync::Arc;
use std::time::Duration;

use messaging::{ErrorKind, MessageBroker, Settlement};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::conformance::breach::{Breach, Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{attempt, id, ids};
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { Shutdown;
    a_stop_lets_what_runs_finish_and_leaves_the_rest,
    a_stop_does_not_wait_for_a_retry [LastingAttempt],
    a_handler_that_outlives_the_grace_is_cut_off_and_its_message_given_back,
    a_stop_while_settlements_are_slow_loses_none,
    stopping_twice_at_once_or_before_the_start_is_fine,
    an_application_that_is_dropped_gives_its_messages_back,
    after_a_stop_a_publish_is_closed,
}

async fn a_stop_lets_what_runs_finish_and_leaves_the_rest(stage: Stage) -> Verdict {
    let (process, next) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |message| async move {
        message.signal().cancelled().await;
        sleep(Duration::from_millis(200)).await;
        Ok(())
    });
    let app = process.app().consume(&script).start().await?;
    let published = next.publish_some(&queue, 5).await?;
    let runs = script.journal.runs.until(&stage, "the first handler begins", |runs| !runs.is_empty()).await?;
    app.stop().await?;
    ensure_eq!(script.journal.runs.len(), 1, "the handlers that ran though the application was stopping");
    ensure_eq!(script.journal.handled.all(), [runs[0].id.clone()], "the messages that were handled");
    ensure_eq!(app.counts().await?.acked, 1, "the acks that had reached the broker when the stop returned");
    let mut hand = next.consume(&queue).await?;
    let waiting = hand.take(4, "what was not started comes to another process").await?;
    let mut left = ids(&waiting);
    left.sort();
    let expected: Vec<_> = published.into_iter().filter(|id| *id != runs[0].id).collect();
    ensure_eq!(left, expected, "what was left to another process");
    hand.nothing_more("what was handled does not come again").await
}

async fn a_stop_does_not_wait_for_a_retry(stage: Stage) -> Verdict {
    let (process, next) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let delay = Duration::from_secs(5).min(stage.capabilities().longest_delay());
    let script = Script::new(&queue, |_| async { Err("the database is down".into()) });
    let script = script.retry(stage.attempts(3).delay(delay));
    let app = process.app().consume(&script).start().await?;
    let published = next.publish_some(&queue, 1).await?;
    script.journal.runs.until(&stage, "the handler fails", |runs| !runs.is_empty()).await?;
    let begun = Instant::now();
    sleep(Duration::from_millis(100)).await;
    app.stop().await?;
    let took = begun.elapsed();
    ensure!(took < delay, "a stop took {took:?}: it waited for a retry of {delay:?}");
    let mut hand = next.consume_with(&queue, |options| _ = options.native_delays.insert(delay)).await?;
    let delivery = hand.next("what waited for a retry comes to another process").await?;
    ensure_eq!(id(&delivery), published[0], "what came to another process");
    // Where a release counts, the stop may have charged one.
    let expected = if stage.capabilities().release_counts { 2..=3 } else { 2..=2 };
    ensure!(expected.contains(&attempt(&delivery)), "a retry that a stop gave back is attempt {}", attempt(&delivery));
    hand.ack(delivery).await
}

async fn a_handler_that_outlives_the_grace_is_cut_off_and_its_message_given_back(stage: Stage) -> Verdict {
    let grace = Duration::from_millis(300);
    let (process, next) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| std::future::pending());
    let app = process.app().options(|options| options.grace(grace)).consume(&script).start().await?.graced(grace);
    let published = next.publish_some(&queue, 1).await?;
    script.journal.runs.until(&stage, "the handler begins", |runs| !runs.is_empty()).await?;
    app.stop().await?;
    let delivery = next.consume(&queue).await?.next("the message of a handler that was cut off comes back").await?;
    ensure_eq!(id(&delivery), published[0], "what came back");
    Ok(())
}

async fn a_stop_while_settlements_are_slow_loses_none(stage: Stage) -> Verdict {
    let ((process, faulty), next) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    faulty.fail(crate::Fault::ack().delay(Duration::from_millis(300)).always());
    let script = Script::fine(&queue).concurrency(2);
    let app = process.app().consume(&script).start().await?;
    next.publish_some(&queue, 4).await?;
    let handled = script.journal.handled.until(&stage, "the handlers end", |handled| handled.len() >= 2).await?;
    app.stop().await?;
    let handled = script.journal.handled.all().len().max(handled.len());
    ensure_eq!(
        app.counts().await?.acked as usize,
        handled,
        "the acks that had reached the broker when the stop returned"
    );
    let mut hand = next.consume(&queue).await?;
    hand.take(4 - handled, "what was not handled comes to another process").await.map(drop)?;
    Ok(())
}

async fn stopping_twice_at_once_or_before_the_start_is_fine(stage: Stage) -> Verdict {
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue);
    let refused = |error| Breach::new(format!("the application is refused: {error}"));
    let (never_started, _) = stage.process().app().consume(&script).create().await?.map_err(refused)?;
    stage.within("an application stops that was never started", never_started.stop()).await?;
    stage.within("it stops again", never_started.stop()).await?;
    ensure!(never_started.start().await.is_err(), "an application that was stopped starts");
    let (starting, _) = stage.process().app().consume(&script).create().await?.map_err(refused)?;
    let both = async { tokio::join!(starting.start(), starting.stop()) };
    stage.within("an application stops while it starts", both).await?.0.ok();
    let app = stage.process().app().consume(&script).start().await?;
    let both = async { tokio::join!(app.application().stop(), app.application().stop()) };
    stage.within("two calls of stop return", both).await?;
    app.stop().await
}

async fn an_application_that_is_dropped_gives_its_messages_back(stage: Stage) -> Verdict {
    let (process, next) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| std::future::pending());
    let app = process.app().consume(&script).start().await?;
    let published = next.publish_some(&queue, 3).await?;
    script.journal.runs.until(&stage, "the handler begins", |runs| !runs.is_empty()).await?;
    drop(app);
    let mut hand = next.consume(&queue).await?;
    let mut left =
        ids(&hand.take(3, "the messages of an application that was dropped come to another process").await?);
    left.sort();
    ensure_eq!(left, published, "what came to another process");
    Ok(())
}

async fn after_a_stop_a_publish_is_closed(stage: Stage) -> Verdict {
    let process = stage.process();
    let queue = stage.queue("orders").await?;
    let done = Arc::new(Notify::new());
    let told = Arc::clone(&done);
    let script = Script::new(&queue, move |_| {
        let done = Arc::clone(&told);
        async move {
            done.notify_one();
            Ok(())
        }
    });
    let app = process.app().consume(&script).start().await?;
    let broker = app.application().get::<MessageBroker>().await;
    let broker = broker.map_err(|error| Breach::new(format!("no broker to publish by: {error}")))?;
    let published =
        stage.succeeds("a publish of an application is confirmed", async { broker.publish_raw(&queue, "{}").await });
    let published = published.await?;
    stage.within("what an application publishes is handled", done.notified()).await?;
    ensure_eq!(app.ended(published.as_str()).await?, Settlement::Ack, "how it ended");
    app.stop().await?;
    let late = stage.fails("a publish after a stop is refused", async { broker.publish_raw(&queue, "{}").await });
    ensure_eq!(late.await?, ErrorKind::Closed, "the error of a publish after a stop");
    Ok(())
}
