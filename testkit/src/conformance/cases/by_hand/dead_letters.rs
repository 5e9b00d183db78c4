//! P7 by hand: the room that is kept for a copy.

use messaging::driver::COPY_RESERVE;
use messaging::{ErrorKind, OutboundMessage};

use crate::conformance::breach::{Breach, Verdict, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::id;
use crate::conformance::stage::Stage;

cases! { DeadLetters;
    room_for_a_copy_is_kept_in_every_message [MessageSize],
    a_copy_may_use_the_room_that_is_kept_for_it [MessageSize],
}

/// How many bytes a driver may count for what is not the body.
const ELSE: usize = 256;

/// A message of little but its body, which has so many bytes.
fn sized(queue: &str, size: usize) -> OutboundMessage {
    OutboundMessage::raw(queue, vec![b'x'; size]).id("m-sized")
}

/// The largest body that may be published, as good as.
fn largest(stage: &Stage) -> Verdict<usize> {
    let largest = stage.capabilities().max_message_size.ok_or_else(|| Breach::new("no largest message"))?;
    Ok(largest.saturating_sub(COPY_RESERVE + ELSE))
}

async fn room_for_a_copy_is_kept_in_every_message(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let largest = largest(&stage)?;
    for size in [largest + ELSE + 1, largest + ELSE + COPY_RESERVE + 1] {
        let too_large = process.driver().publish(sized(&queue, size));
        let kind = stage.fails("a message that leaves no room for a copy's headers is refused", too_large).await?;
        ensure_eq!(kind, ErrorKind::TooLarge, "the error of a message of {size} bytes");
    }
    // Nothing is broken by it.
    process.publish(sized(&queue, largest)).await?;
    let delivery = hand.next("the largest message that is accepted is delivered").await?;
    ensure_eq!(delivery.message.body.len(), largest, "the bytes of the largest message, delivered");
    hand.ack(delivery).await?;
    hand.nothing_more("a message that was refused is not delivered").await
}

async fn a_copy_may_use_the_room_that_is_kept_for_it(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut letters = process.consume(&stage.dead_letter_queue(&queue).await?).await?;
    let largest = largest(&stage)?;
    process.publish(sized(&queue, largest)).await?;
    let delivery = hand.start("the largest message that is accepted is delivered").await?;
    let mut copy = OutboundMessage::copy_of(&delivery.message, stage.dead_letter_queue(&queue).await?);
    copy.headers.insert("x-znight-error", "x".repeat(COPY_RESERVE / 2));
    process.publish(copy).await?;
    hand.ack(delivery).await?;
    let letter = letters.next("the copy of the largest message is delivered").await?;
    ensure_eq!(id(&letter), "m-sized", "the id of the copy");
    letters.ack(letter).await
}
