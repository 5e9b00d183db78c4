//! P3 under an application: what one message does to its handler is none of another's business.

use std::panic::resume_unwind;
use std::time::Duration;

use messaging::{Failure, MessageContext, OnError, Reason, Settlement};
use serde::Deserialize;
use tokio::time::Instant;

use crate::Fault;
use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::id;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { Isolation;
    a_panic_costs_one_message,
    a_panic_in_on_error_dead_letters_all_the_same,
    a_queue_that_always_fails_stops_no_other,
    a_retry_that_waits_holds_no_worker,
    a_dead_letter_queue_that_hangs_stops_no_other_message,
    an_undecodable_message_stops_no_other,
    a_message_without_a_handler_stops_no_other,
}

async fn a_panic_costs_one_message(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    // Raised without the hook, which would print it.
    let script = Script::new(&queue, |message| async move {
        match message.message_type() {
            Some("text") => resume_unwind(Box::new("index out of bounds".to_owned())),
            Some("number") => resume_unwind(Box::new(5)),
            _ => Ok(()),
        }
    });
    let script = script.retry(stage.attempts(2));
    let app = process.app().consume(&script).start().await?;
    for (kind, text) in [("text", "index out of bounds"), ("number", "unknown panic")] {
        let bad = outside.publish(outside.message(&queue).message_type(kind)).await?;
        let good = outside.publish_some(&queue, 1).await?;
        ensure_eq!(app.ended(&good[0]).await?, Settlement::Ack, "how the message behind one that panics ended");
        let end = app.ended(bad.as_str()).await?;
        ensure_eq!(end, Settlement::DeadLetter(Reason::Exhausted), "how a message whose handler panics ended");
        ensure_eq!(script.journal.attempts_of(bad.as_str()), [1, 2], "the runs of a message whose handler panics");
        let mut letters = outside.consume(&dead).await?;
        let letter = letters.next("the dead letter of a message whose handler panics").await?;
        let error = letter.message.headers.text("x-znight-error").unwrap_or_default().to_owned();
        ensure!(error.contains(text), "the dead letter of a panic says `{error}`, and not `{text}`");
        letters.ack(letter).await?;
        letters.control.stop_receiving();
    }
    app.stop().await
}

async fn a_panic_in_on_error_dead_letters_all_the_same(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |message| async move {
        if message.message_type() == Some("bad") { Err(Failure::non_retryable("nothing to bill")) } else { Ok(()) }
    });
    let script = script.on_error(|_| async { resume_unwind(Box::new("on_error fails too")) });
    let app = process.app().consume(&script).start().await?;
    let bad = outside.publish(outside.message(&queue).message_type("bad")).await?;
    let good = outside.publish_some(&queue, 1).await?;
    let end = app.ended(bad.as_str()).await?;
    ensure_eq!(end, Settlement::DeadLetter(Reason::NonRetryable), "how the message ended whose `#[on_error]` panics");
    ensure_eq!(app.ended(&good[0]).await?, Settlement::Ack, "how the message behind it ended");
    app.stop().await
}

async fn a_queue_that_always_fails_stops_no_other(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let (bad, good) = (stage.queue("bad").await?, stage.queue("good").await?);
    faulty.fail(Fault::publish(stage.dead_letter_queue(&bad).await?).always());
    let failing = Script::new(&bad, |_| async { Err("the database is down".into()) }).retry(stage.attempts(2));
    let fine = Script::fine(&good);
    let app = process.app().consume(&failing).consume(&fine).start().await?;
    outside.publish_some(&bad, 5).await?;
    failing.journal.runs.until(&stage, "the failing queue is consumed", |runs| !runs.is_empty()).await?;
    let published = outside.publish_some(&good, 20).await?;
    app.all_ended(&published).await?;
    ensure_eq!(fine.journal.handled.len(), 20, "messages handled beside a queue that always fails");
    app.stop().await
}

async fn a_retry_that_waits_holds_no_worker(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let delay = Duration::from_secs(4).min(stage.capabilities().longest_delay());
    let script = Script::new(&queue, |message| async move {
        let fails = message.message_type() == Some("bad") && message.attempt().get() == 1;
        if fails { Err("not yet".into()) } else { Ok(()) }
    });
    let script = script.concurrency(2).retry(stage.attempts(2).delay(delay));
    let app = process.app().consume(&script).start().await?;
    let begun = Instant::now();
    let mut bad = Vec::new();
    for _ in 0..2 {
        bad.push(outside.publish(outside.message(&queue).message_type("bad")).await?.as_str().to_owned());
    }
    let good = outside.publish_some(&queue, 20).await?;
    app.all_ended(&good).await?;
    let took = begun.elapsed();
    ensure!(took < delay, "20 messages took {took:?} with two workers, while two others waited {delay:?} for a retry");
    app.all_ended(&bad).await?;
    ensure!(begun.elapsed() >= delay, "retries of {delay:?} were run after {:?}", begun.elapsed());
    app.stop().await
}

async fn a_dead_letter_queue_that_hangs_stops_no_other_message(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    faulty.fail(Fault::publish(stage.dead_letter_queue(&queue).await?).hang().always());
    let script = Script::new(&queue, |message| async move {
        if message.message_type() == Some("bad") { Err(Failure::non_retryable("nothing to bill")) } else { Ok(()) }
    });
    let script = script.concurrency(2).retry(stage.attempts(3));
    let app =
        process.app().options(|options| options.copy_timeout(Duration::from_secs(1))).consume(&script).start().await?;
    let mut bad = Vec::new();
    for _ in 0..5 {
        bad.push(outside.publish(outside.message(&queue).message_type("bad")).await?.as_str().to_owned());
    }
    script.journal.runs.until(&stage, "the failing messages are run", |runs| runs.len() == bad.len()).await?;
    let good = outside.publish_some(&queue, 20).await?;
    app.all_ended(&good).await?;
    // Once it answers again, the others end as well.
    faulty.heal();
    faulty.release_hung();
    app.all_ended(&bad).await?;
    ensure_eq!(script.journal.runs.len(), bad.len() + good.len(), "runs: one of each message");
    app.stop().await
}

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "order_id")]
    _order_id: String,
}

fn order(context: MessageContext<'_>) -> Result<(), Failure> {
    context.decode::<Order>().map(drop)
}

async fn an_undecodable_message_stops_no_other(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script =
        Script::fine(&queue).decoding(order).retry(stage.attempts(3)).on_error(|_| async { Ok(OnError::DeadLetter) });
    let app = process.app().consume(&script).start().await?;
    let bodies: [&[u8]; 4] = [b"not json {{", b"\xff\xfe", br#"{"order_id":"#, b""];
    let mut bad = Vec::new();
    for body in bodies {
        let mut message = outside.message(&queue);
        message.body = bytes::Bytes::from_static(body);
        bad.push(outside.publish(message).await?.as_str().to_owned());
    }
    let mut good = outside.message(&queue);
    good.body = bytes::Bytes::from_static(br#"{"order_id":"o-1","more":true}"#);
    let good = outside.publish(good).await?;
    ensure_eq!(app.ended(good.as_str()).await?, Settlement::Ack, "how the message behind four bad ones ended");
    app.all_ended(&bad).await?;
    ensure_eq!(script.journal.runs.len(), 1, "runs: of the good message alone");
    let mut given_up = script.journal.given_up.all();
    given_up.sort();
    ensure_eq!(given_up, bad, "the messages that `#[on_error]` was asked about, once each");
    let mut letters = outside.consume(&dead).await?;
    for letter in letters.take(bodies.len(), "the undecodable messages are in the dead-letter queue").await? {
        let index = bad.iter().position(|bad| *bad == id(&letter)).unwrap_or_default();
        ensure_eq!(letter.message.body, bodies[index], "the bytes of a dead letter");
        letters.ack(letter).await?;
    }
    app.stop().await
}

async fn a_message_without_a_handler_stops_no_other(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue).only("order.created").on_error(|_| async { Ok(OnError::DeadLetter) });
    let app = process.app().consume(&script).start().await?;
    let mut unknown = Vec::new();
    for message_type in ["order.deleted", "", "ORDER.CREATED", "orderXcreated"] {
        let message = outside.message(&queue).message_type(message_type);
        unknown.push(outside.publish(message).await?.as_str().to_owned());
    }
    let known = outside.publish(outside.message(&queue).message_type("order.created")).await?;
    ensure_eq!(app.ended(known.as_str()).await?, Settlement::Ack, "how the message behind four unknown ones ended");
    for id in &unknown {
        ensure_eq!(
            app.ended(id).await?,
            Settlement::DeadLetter(Reason::NoHandler),
            "how a message ended that no handler takes"
        );
    }
    ensure_eq!(script.journal.runs.len(), 1, "runs: of the known type alone");
    ensure_eq!(script.journal.given_up.len(), unknown.len(), "the messages that `#[on_error]` was asked about");
    app.stop().await
}
