//! P7 under an application: whatever was accepted gets to the dead-letter queue.

use messaging::driver::COPY_RESERVE;
use messaging::{Failure, HeaderValue, Reason, Settlement};

use crate::conformance::breach::{Breach, Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::id;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { DeadLetters;
    the_largest_message_that_is_accepted_can_be_dead_lettered [MessageSize],
    a_long_error_is_cut_and_its_message_dead_lettered,
    many_headers_keep_no_message_from_the_dead_letter_queue,
}

async fn the_largest_message_that_is_accepted_can_be_dead_lettered(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("x".repeat(1_024))) });
    let app = process.app().consume(&script).start().await?;
    let largest = stage.capabilities().max_message_size.ok_or_else(|| Breach::new("no largest message"))?;
    let mut message = outside.message(&queue);
    message.body = vec![b'x'; largest - COPY_RESERVE - 256].into();
    let published = outside.publish(message).await?;
    let end = app.ended(published.as_str()).await?;
    ensure_eq!(end, Settlement::DeadLetter(Reason::NonRetryable), "how the largest message ended");
    let letter = outside.consume(&dead).await?.next("the largest message is in the dead-letter queue").await?;
    ensure_eq!(letter.message.body.len(), largest - COPY_RESERVE - 256, "the bytes of its dead letter");
    let error = letter.message.headers.text("x-znight-error").map(str::len);
    ensure_eq!(error, Some(1_024), "the bytes of the error on the dead letter of the largest message");
    app.stop().await
}

async fn a_long_error_is_cut_and_its_message_dead_lettered(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |_| async {
        Err(Failure::non_retryable(format!("line one\r\nline two\u{7} {}", "grün ".repeat(2_000))))
    });
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    app.ended(&published[0]).await?;
    let letter = outside.consume(&dead).await?.next("the message is in the dead-letter queue").await?;
    let error = letter.message.headers.text("x-znight-error").unwrap_or_default();
    ensure!(error.starts_with("line one"), "the error on a dead letter begins with `{:.20}`", error);
    ensure!(error.len() <= 1_024, "the error on a dead letter has {} bytes", error.len());
    ensure!(!error.contains(char::is_control), "the error on a dead letter has control characters: {error:?}");
    app.stop().await
}

async fn many_headers_keep_no_message_from_the_dead_letter_queue(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("nothing to bill")) });
    let app = process.app().consume(&script).start().await?;
    let names: Vec<_> =
        (0..12.min(stage.capabilities().max_headers.unwrap_or(12))).map(|number| format!("header-{number}")).collect();
    let message =
        names.iter().fold(outside.message(&queue), |message, name| message.header(name, format!("of {name}")));
    let published = outside.publish(message.header("bytes", HeaderValue::from_bytes(&[0xff, 0xfe]))).await?;
    app.ended(published.as_str()).await?;
    let letter = outside.consume(&dead).await?.next("a message with many headers is in the dead-letter queue").await?;
    ensure_eq!(id(&letter), published.as_str(), "the dead letter");
    for name in &names {
        ensure_eq!(
            letter.message.headers.text(name),
            Some(&*format!("of {name}")),
            "the header `{name}` of a dead letter"
        );
    }
    let bytes = letter.message.headers.get("bytes").and_then(HeaderValue::as_bytes);
    ensure_eq!(bytes, Some(&[0xff, 0xfe][..]), "the header of a dead letter that is not text");
    app.stop().await
}
