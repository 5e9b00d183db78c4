//! P8 by hand: a message arrives as it was sent.

use bytes::Bytes;
use messaging::{ErrorKind, HeaderValue, InboundMessage, OutboundMessage};

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::stage::Stage;

cases! { SameAnswer;
    everything_that_is_said_of_a_message_arrives,
    what_was_not_said_is_not_there,
    bytes_arrive_as_they_were,
    header_values_arrive_as_they_were,
    a_retry_keeps_the_message_as_it_was,
    a_copy_keeps_the_message_as_it_was,
}

fn rich(queue: &str) -> OutboundMessage {
    OutboundMessage::raw(queue, br#"{"order_id":"o-1","total":12.50}"#.as_slice())
        .id("id-of-the-publisher")
        .message_type("order.created")
        .content_type("application/json; charset=utf-8")
        .key("customer-7")
        .header("tenant", "acme")
        .header("Trace-Id", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
}

/// Whether a message is what was sent; headers that the broker added, as `x-…`, are its own.
fn check(what: &str, arrived: &InboundMessage, sent: &OutboundMessage) -> Verdict {
    ensure_eq!(arrived.id, sent.id, "{what}: the id");
    ensure_eq!(arrived.message_type, sent.message_type, "{what}: the type");
    ensure_eq!(arrived.content_type, sent.content_type, "{what}: the content type");
    ensure_eq!(arrived.key, sent.key, "{what}: the key");
    ensure_eq!(arrived.body, sent.body, "{what}: the body");
    for (name, value) in sent.headers.iter() {
        ensure_eq!(arrived.headers.get(name), Some(value), "{what}: the header `{name}`");
    }
    let more = arrived.headers.iter().find(|(name, _)| !name.starts_with("x-") && sent.headers.get(name).is_none());
    ensure!(more.is_none(), "{what}: a header that was not sent: {more:?}");
    Ok(())
}

async fn everything_that_is_said_of_a_message_arrives(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let sent = rich(&queue);
    process.publish(sent.clone()).await?;
    let delivery = hand.next("the message is delivered").await?;
    ensure_eq!(delivery.message.queue(), queue, "the queue that a message says it came from");
    check("a message", &delivery.message, &sent)?;
    hand.ack(delivery).await
}

async fn what_was_not_said_is_not_there(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    for sent in [OutboundMessage::raw(&*queue, "bare"), OutboundMessage::raw(&*queue, "bare").message_type("")] {
        process.publish(sent.clone()).await?;
        let delivery = hand.next("the message is delivered").await?;
        check("a message without type, content type, key and headers", &delivery.message, &sent)?;
        hand.ack(delivery).await?;
    }
    Ok(())
}

async fn bytes_arrive_as_they_were(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let bodies = [
        ("an empty body", Vec::new()),
        ("a zero and a byte that is no text", vec![0x00, 0xff]),
        ("half a character", vec![b'a', 0xe2, 0x82]),
        ("a control character", b"ring \x07 the bell".to_vec()),
        ("text beyond the basic plane", "grün 🦀 \u{fffe}".as_bytes().to_vec()),
        ("every byte", (0..=255).collect()),
        ("what looks encoded", b"eyJhIjoxfQ==".to_vec()),
        ("100 KiB", b"0123456789abcdef".repeat(6_400)),
    ];
    for (what, body) in bodies {
        let sent = OutboundMessage::raw(&*queue, body);
        // A broker that cannot carry it is asked to say so before it is sent.
        match stage.within("the publish ends", process.driver().publish(sent.clone())).await? {
            Ok(_) => (),
            Err(error) if error.kind() == ErrorKind::Unsupported => continue,
            Err(error) => ensure!(false, "{what} was refused: {}", error.chain()),
        }
        let delivery = hand.next("the message is delivered").await?;
        ensure!(delivery.message.body == sent.body, "{what} arrived as {:?}", shown(&delivery.message.body));
        hand.ack(delivery).await?;
    }
    Ok(())
}

fn shown(body: &Bytes) -> Bytes {
    body.slice(..body.len().min(40))
}

async fn header_values_arrive_as_they_were(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let values = [
        ("plain", HeaderValue::from("acme")),
        ("empty", HeaderValue::from("")),
        ("number", HeaderValue::from("9007199254740993")),
        ("spaces", HeaderValue::from("  two  spaces ")),
        ("lines", HeaderValue::from("one\r\ntwo\tthree")),
        ("beyond-ascii", HeaderValue::from("grün 🦀")),
        ("looks-like-json", HeaderValue::from(r#"{"a":"\u0001"}"#)),
        ("long", HeaderValue::from("x".repeat(1_000))),
        ("bytes", HeaderValue::from_bytes(&[0xff, 0x00, 0xfe])),
        ("no-bytes", HeaderValue::Binary(Bytes::new())),
    ];
    let sent = values
        .iter()
        .fold(OutboundMessage::raw(&*queue, "{}"), |message, (name, value)| message.header(name, value.clone()));
    process.publish(sent).await?;
    let delivery = hand.next("the message is delivered").await?;
    for (name, value) in &values {
        // Bytes that are text may arrive as text.
        let arrived = delivery.message.headers.get(name).and_then(HeaderValue::as_bytes);
        ensure_eq!(arrived, value.as_bytes(), "the header `{name}`");
    }
    let other_case = delivery.message.headers.get("Plain");
    ensure!(other_case.is_none(), "`Plain` is not the header `plain`, yet it has a value: {other_case:?}");
    hand.ack(delivery).await
}

async fn a_retry_keeps_the_message_as_it_was(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let sent = rich(&queue).header("bytes", HeaderValue::from_bytes(&[0xff, 0x00, 0xfe]));
    process.publish(sent.clone()).await?;
    let mut sizes = Vec::new();
    for round in 0..4 {
        let delivery = hand.start("the retry is delivered").await?;
        check(&format!("a message after {round} retries"), &delivery.message, &sent)?;
        sizes.push(delivery.message.headers.size());
        hand.retry(delivery, stage.short_delay());
    }
    let delivery = hand.start("the retry is delivered").await?;
    let grown = delivery.message.headers.size().saturating_sub(sizes[1]);
    ensure!(grown < 16, "each retry adds to the headers: {sizes:?} bytes");
    hand.ack(delivery).await
}

async fn a_copy_keeps_the_message_as_it_was(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let target = stage.dead_letter_queue(&queue).await?;
    let mut hand = process.consume(&queue).await?;
    let mut copies = process.consume(&target).await?;
    let sent = rich(&queue).header("bytes", HeaderValue::from_bytes(&[0xff, 0x00, 0xfe]));
    process.publish(sent.clone()).await?;
    let delivery = hand.start("the message is delivered").await?;
    process.publish(OutboundMessage::copy_of(&delivery.message, &*target)).await?;
    hand.ack(delivery).await?;
    let copy = copies.next("the copy is delivered").await?;
    check("a copy", &copy.message, &sent)?;
    ensure_eq!(copy.message.attempt().get(), 1, "the attempt of a copy in another queue");
    copies.ack(copy).await
}
