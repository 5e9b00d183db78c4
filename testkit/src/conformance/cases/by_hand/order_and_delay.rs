//! P8 by hand: when a message arrives, and before which other.

use std::time::Duration;

use messaging::{Attempt, ErrorKind, Settlement, Step};
use tokio::time::Instant;

use crate::conformance::breach::{Breach, Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::{attempt, id, ids};
use crate::conformance::stage::Stage;

const SECOND: Duration = Duration::from_secs(1);

cases! { SameAnswer;
    messages_come_in_the_order_they_were_published [Order],
    a_retry_waits_in_process_as_long_as_asked [InProcessDelay],
    a_retry_waits_at_the_broker_as_long_as_asked [NativeDelay],
    a_long_retry_does_not_hold_up_a_short_one,
    a_delayed_publish_waits_and_holds_up_no_other [PublishDelay],
    a_publish_delay_beyond_the_longest_is_unsupported [LongestPublishDelay],
}

async fn messages_come_in_the_order_they_were_published(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut published = Vec::new();
    for _ in 0..50 {
        // With one key, for a broker that keeps the order of a key.
        let message = process.message(&queue).key("one");
        published.push(process.publish(message).await?.as_str().to_owned());
    }
    let mut delivered = Vec::new();
    for _ in &published {
        let delivery = hand.start("the messages are delivered").await?;
        delivered.push(id(&delivery));
        hand.ack(delivery).await?;
    }
    ensure_eq!(delivered, published, "the order of delivery");
    Ok(())
}

async fn a_retry_waits_in_process_as_long_as_asked(stage: Stage) -> Verdict {
    let delay = (SECOND / 2).min(stage.capabilities().max_in_process_delay);
    a_retry_waits(&stage, Step::InProcess(delay)).await
}

async fn a_retry_waits_at_the_broker_as_long_as_asked(stage: Stage) -> Verdict {
    let delay = (SECOND / 2).max(stage.capabilities().native_delay_granularity);
    a_retry_waits(&stage, Step::Native(delay.min(stage.capabilities().max_native_delay))).await
}

async fn a_retry_waits(stage: &Stage, step: Step) -> Verdict {
    let delay = step.delay();
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume_with(&queue, |options| _ = options.native_delays.insert(delay)).await?;
    process.publish_some(&queue, 1).await?;
    let delivery = hand.start("the message is delivered").await?;
    let begun = Instant::now();
    delivery.settler.settle(Settlement::Retry { step, attempt: Attempt::new(2) });
    let retried = hand.start("the retry is delivered").await?;
    stage.check_delay("a retry", (begun, begun), delay)?;
    ensure_eq!(attempt(&retried), 2, "the attempt of a retry");
    hand.ack(retried).await
}

async fn a_long_retry_does_not_hold_up_a_short_one(stage: Stage) -> Verdict {
    let longest = stage.capabilities().longest_delay();
    let (long, short) = ((SECOND * 4).min(longest), (SECOND / 2).min(longest));
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let set = |options: &mut messaging::driver::SubscribeOptions| options.native_delays.extend([long, short]);
    let mut hand = process.consume_with(&queue, set).await?;
    process.publish_some(&queue, 2).await?;
    let mut both = hand.take(2, "the messages are delivered").await?;
    both.iter().for_each(|delivery| delivery.message.start());
    let expected: Vec<_> = ids(&both).into_iter().rev().collect();
    let begun = Instant::now();
    for delay in [short, long] {
        if let Some(delivery) = both.pop() {
            // The first that was delivered waits longest, and it is asked for last.
            hand.retry(delivery, delay);
        }
    }
    let first = hand.start("the short retry is delivered").await?;
    stage.check_delay("a retry behind a longer one", (begun, begun), short)?;
    let second = hand.start("the long retry is delivered").await?;
    stage.check_delay("a retry before a shorter one", (begun, begun), long)?;
    ensure_eq!(vec![id(&first), id(&second)], expected, "the order of two retries");
    Ok(())
}

async fn a_delayed_publish_waits_and_holds_up_no_other(stage: Stage) -> Verdict {
    let longest = stage.capabilities().max_publish_delay;
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let mut asked = Vec::new();
    for delay in [SECOND * 4, SECOND * 2, Duration::ZERO] {
        let (delay, before) = (delay.min(longest), Instant::now());
        let published = process.publish(process.message(&queue).delay(delay)).await?;
        asked.push((published.as_str().to_owned(), delay, (before, Instant::now())));
    }
    while !asked.is_empty() {
        let delivery = hand.next("a delayed message is delivered").await?;
        let Some(index) = asked.iter().position(|(asked, ..)| *asked == id(&delivery)) else {
            return Err(Breach::new(format!("`{}` was delivered twice", id(&delivery))));
        };
        let (_, delay, between) = asked.swap_remove(index);
        stage.check_delay("a publish, beside others that are delayed for longer or shorter", between, delay)?;
        hand.ack(delivery).await?;
    }
    Ok(())
}

async fn a_publish_delay_beyond_the_longest_is_unsupported(stage: Stage) -> Verdict {
    let process = stage.connected().await?;
    let queue = stage.queue("orders").await?;
    let mut hand = process.consume(&queue).await?;
    let longest = stage.capabilities().max_publish_delay;
    let publish = process.driver().publish(process.message(&queue).delay(longest + SECOND));
    let kind = stage.fails("a publish that is delayed for longer than the driver can is refused", publish).await?;
    ensure_eq!(kind, ErrorKind::Unsupported, "the error of a delay beyond the longest");
    let published = process.publish_some(&queue, 1).await?;
    let delivery = hand.next("what is published after that is delivered").await?;
    ensure!(id(&delivery) == published[0], "a publish that was refused was delivered");
    hand.ack(delivery).await
}
