//! P8 under an application: the same input and the same handler, the same outcome.

use std::time::Duration;

use messaging::{Delivery, Failure, Headers, MessageContext, OutboundMessage, Reason, Settlement};
use serde::Deserialize;
use tokio::time::Instant;

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::id;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { SameAnswer;
    a_dead_letter_says_the_same_on_every_driver,
    each_reason_has_its_word,
    a_dead_letter_that_is_sent_back_starts_anew,
    json_is_read_the_same_way,
    a_handler_can_ask_for_its_delay,
    one_worker_keeps_the_order [Order],
}

/// The library's own headers, by name.
fn own(headers: &Headers) -> Vec<(String, String)> {
    let mut own: Vec<_> = headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-znight-"))
        .map(|(name, value)| (name.to_owned(), value.as_text().unwrap_or_default().to_owned()))
        .collect();
    own.sort();
    own
}

fn expected(reason: &str, error: &str, queue: &str, attempts: &str) -> Vec<(String, String)> {
    let headers = [
        ("x-znight-attempts", attempts),
        ("x-znight-dead-letter-reason", reason),
        ("x-znight-error", error),
        ("x-znight-original-queue", queue),
    ];
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

async fn a_dead_letter_says_the_same_on_every_driver(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |_| async { Err("the database is down".into()) }).retry(stage.attempts(3));
    let app = process.app().consume(&script).start().await?;
    let sent = OutboundMessage::raw(&*queue, br#"{"order_id": "o-1"}"#.as_slice())
        .id("o-1")
        .message_type("order.created")
        .content_type("application/json")
        .key("customer-7")
        .header("tenant", "acme");
    outside.publish(sent.clone()).await?;
    app.ended("o-1").await?;
    let letter = outside.consume(&dead).await?.next("the message is in the dead-letter queue").await?;
    let Delivery { message, .. } = &letter;
    let said = expected("exhausted", "the database is down", &queue, "3");
    ensure_eq!(own(&message.headers), said, "the library's headers of a dead letter");
    ensure_eq!(message.id, sent.id, "the id of a dead letter");
    ensure_eq!(message.message_type, sent.message_type, "the type of a dead letter");
    ensure_eq!(message.content_type, sent.content_type, "the content type of a dead letter");
    ensure_eq!(message.key, sent.key, "the key of a dead letter");
    ensure_eq!(message.body, sent.body, "the bytes of a dead letter");
    ensure_eq!(message.headers.text("tenant"), Some("acme"), "the header of a dead letter");
    ensure_eq!(message.attempt().get(), 1, "the attempt of a dead letter, read from its queue");
    app.stop().await
}

#[derive(Deserialize)]
struct Order {
    order_id: u64,
}

fn order(context: MessageContext<'_>) -> Result<(), Failure> {
    let order: Order = context.decode()?;
    // What was rounded on the way is not the number that was sent.
    let exact = order.order_id != 9_007_199_254_740_992;
    if exact { Ok(()) } else { Err(Failure::non_retryable("rounded")) }
}

async fn each_reason_has_its_word(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |message| async move {
        match message.headers.text("want") {
            Some("retries") => Err("the database is down".into()),
            _ => Err(Failure::non_retryable("nothing to bill")),
        }
    });
    let script = script.only("order.*").decoding(order).retry(stage.attempts(2));
    let app = process.app().consume(&script).start().await?;
    let good = r#"{"order_id":1}"#;
    let table = [
        ("order.created", good, "retries", Reason::Exhausted, "2"),
        ("order.created", good, "", Reason::NonRetryable, "1"),
        ("order.created", "not json {{", "", Reason::Undecodable, "1"),
        ("order.created", r#"{"order_id":"text"}"#, "", Reason::Invalid, "1"),
        ("invoice.created", good, "", Reason::NoHandler, "1"),
    ];
    for (message_type, body, want, reason, attempts) in table {
        let mut message = outside.message(&queue).message_type(message_type).header("want", want);
        message.body = body.into();
        let published = outside.publish(message).await?;
        ensure_eq!(app.ended(published.as_str()).await?, Settlement::DeadLetter(reason), "how a message ended");
        let mut letters = outside.consume(&dead).await?;
        let letter = letters.next("the message is in the dead-letter queue").await?;
        let headers = &letter.message.headers;
        ensure_eq!(id(&letter), published.as_str(), "the dead letter");
        ensure_eq!(headers.text("x-znight-dead-letter-reason"), Some(reason.as_str()), "the reason on a dead letter");
        ensure_eq!(headers.text("x-znight-attempts"), Some(attempts), "the attempts on a dead letter ({reason})");
        letters.ack(letter).await?;
        letters.control.stop_receiving();
    }
    app.stop().await
}

async fn a_dead_letter_that_is_sent_back_starts_anew(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script =
        Script::new(&queue, |message| async move { Err(format!("failure of run {}", message.attempt()).into()) });
    let script = script.retry(stage.attempts(2));
    let app = process.app().consume(&script).start().await?;
    outside.publish(outside.message(&queue).id("o-1")).await?;
    let mut letters = outside.consume(&dead).await?;
    for round in 1..=3 {
        let letter = letters.next("the message is in the dead-letter queue").await?;
        let said = expected("exhausted", "failure of run 2", &queue, "2");
        ensure_eq!(own(&letter.message.headers), said, "the library's headers of a dead letter, the {round}. time");
        let runs = script.journal.attempts_of("o-1");
        ensure_eq!(runs, [1, 2].repeat(round), "the attempts of a message that was sent back {} times", round - 1);
        outside.publish(OutboundMessage::copy_of(&letter.message, &*queue)).await?;
        letters.ack(letter).await?;
    }
    app.stop().await
}

async fn json_is_read_the_same_way(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue).decoding(order);
    let app = process.app().consume(&script).start().await?;
    let deep = format!(r#"{{"order_id":1,"more":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let (ack, undecodable, invalid) =
        (Settlement::Ack, Settlement::DeadLetter(Reason::Undecodable), Settlement::DeadLetter(Reason::Invalid));
    let table = [
        (r#"{"order_id":9007199254740993,"unknown":true}"#, Some(ack)),
        (r#"{"order_id":18446744073709551615}"#, Some(ack)),
        (r#"{"order_id":18446744073709551616}"#, Some(invalid)),
        (r#"{"order_id":1.0}"#, Some(invalid)),
        (r#"{"order_id":1,"order_id":2}"#, Some(invalid)),
        (r#"{"order_id":1} x"#, Some(undecodable)),
        ("\u{feff}{\"order_id\":1}", Some(undecodable)),
        ("null", Some(invalid)),
        // Told apart or not, it ends.
        (&deep, None),
    ];
    for (body, expected) in table {
        let mut message = outside.message(&queue);
        message.body = body.to_owned().into();
        let published = outside.publish(message).await?;
        let end = app.ended(published.as_str()).await?;
        ensure!(expected.is_none_or(|expected| end == expected), "`{body:.60}` ended as {end:?}, not as {expected:?}");
    }
    app.stop().await
}

async fn a_handler_can_ask_for_its_delay(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let delay = Duration::from_secs(2).min(stage.capabilities().longest_delay());
    let script = Script::new(&queue, move |message| async move {
        if message.attempt().get() == 1 { Err(Failure::retry_after(delay)) } else { Ok(()) }
    });
    let script = script.retry(stage.attempts(2));
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    script.journal.runs.until(&stage, "the first run", |runs| !runs.is_empty()).await?;
    let begun = Instant::now();
    ensure_eq!(app.ended(&published[0]).await?, Settlement::Ack, "how the message ended");
    stage.check_delay("a retry that the handler asked for", (begun, begun), delay)?;
    ensure_eq!(script.journal.attempts_of(&published[0]), [1, 2], "the attempts of a message that asked for a delay");
    app.stop().await
}

async fn one_worker_keeps_the_order(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue);
    let app = process.app().consume(&script).start().await?;
    let mut published = Vec::new();
    for _ in 0..50 {
        let message = outside.message(&queue).key("one");
        published.push(outside.publish(message).await?.as_str().to_owned());
    }
    app.all_ended(&published).await?;
    ensure_eq!(script.journal.handled.all(), published, "the order in which one worker handles");
    app.stop().await
}
