//! P1 and P2 under an application, with many messages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use messaging::{ErrorKind, Failure, InboundMessage, Outcome, Settlement};
use tokio::time::sleep;

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::hand::id;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;
use crate::{Fault, FaultyDriver};

pub(in crate::conformance::cases) mod no_loss {
    use super::*;
    use crate::conformance::case::cases;

    cases! { NoLoss;
        under_seeded_failures_every_message_is_handled_or_dead_lettered,
    }
}

pub(in crate::conformance::cases) mod at_least_once {
    use super::*;
    use crate::conformance::case::cases;

    cases! { AtLeastOnce;
        without_faults_every_message_is_handled_exactly_once,
        a_lost_connection_repeats_only_what_was_running,
    }
}

async fn under_seeded_failures_every_message_is_handled_or_dead_lettered(stage: Stage) -> Verdict {
    const MESSAGES: usize = 500;
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |message| async move { seeded(&message) });
    let script = script.concurrency(4).retry(stage.attempts(3));
    let app = process.app().consume(&script).start().await?;
    trouble(&faulty, &dead);
    let published = outside.publish_some(&queue, MESSAGES).await?;
    for handled in [50, 150, 250] {
        let what = format!("{handled} messages are handled under seeded failures");
        script.journal.handled.until(&stage, what, |all| all.len() >= handled).await?;
        faulty.lose_connection();
    }
    let mut letters = outside.consume(&dead).await?;
    let mut missing: BTreeSet<_> = published.into_iter().collect();
    loop {
        let handled = script.journal.handled.all();
        missing.retain(|id| !handled.contains(id));
        if missing.is_empty() {
            break;
        }
        let what =
            format!("the {} messages that are neither handled nor dead-lettered end: {missing:?}", missing.len());
        tokio::select! {
            letter = letters.next(&what) => {
                let letter = letter?;
                missing.remove(&id(&letter));
                letter.settler.settle(Settlement::Ack);
            }
            more = script.journal.handled.until(&stage, &what, |all| all.len() > handled.len()) => drop(more?),
        }
    }
    // What is told as failed comes again; once nothing does, nothing is left.
    let mut told = 0;
    while app.events.len() > told {
        told = app.events.len();
        sleep(stage.timing().quiet * 3).await;
    }
    app.stop().await?;
    outside.consume(&queue).await?.nothing_more("nothing is left in the queue").await
}

/// What goes wrong with the driver, here and there.
fn trouble(faulty: &FaultyDriver, dead: &str) {
    for number in 0..10 {
        faulty.fail(Fault::ack().error(ErrorKind::Connection).after(17 * number));
        faulty.fail(Fault::delivery().after(13 * number));
    }
    for number in 0..5 {
        faulty.fail(Fault::retry().error(ErrorKind::Connection).after(11 * number));
        faulty.fail(Fault::ack().error_after(ErrorKind::Unconfirmed).after(29 * number));
        faulty.fail(Fault::delivery().duplicate().after(31 * number));
        faulty.fail(Fault::settlement().delay(Duration::from_millis(20)).after(37 * number));
    }
    faulty.fail(Fault::publish(dead).error(ErrorKind::Rejected).after(3));
    faulty.fail(Fault::publish(dead).error_after(ErrorKind::Unconfirmed).after(5));
}

/// Fails as the message's number and the attempt say.
fn seeded(message: &Arc<InboundMessage>) -> Outcome {
    let number: u32 = message.id.as_str().rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    match (number.wrapping_mul(2_654_435_761) >> 16).wrapping_add(message.attempt().get() * 7) % 20 {
        0..=2 => Err("the database is down".into()),
        3 => std::panic::resume_unwind(Box::new("index out of bounds")),
        4 => Err(Failure::non_retryable("nothing to bill")),
        5 => Err(Failure::retry_after(Duration::from_millis(50))),
        _ => Ok(()),
    }
}

async fn without_faults_every_message_is_handled_exactly_once(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue).concurrency(4);
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 100).await?;
    app.all_ended(&published).await?;
    sleep(stage.timing().quiet).await;
    let mut handled = script.journal.handled.all();
    handled.sort();
    ensure_eq!(handled, published, "what was handled, with no fault around");
    app.stop().await?;
    outside.consume(&queue).await?.nothing_more("what was handled is gone").await
}

async fn a_lost_connection_repeats_only_what_was_running(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let passed = Arc::clone(&gate);
    let script = Script::new(&queue, move |_| {
        let gate = Arc::clone(&passed);
        async move { gate.acquire().await.map(drop).map_err(Into::into) }
    });
    let script = script.concurrency(2).retry(stage.attempts(3));
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 10).await?;
    script.journal.runs.until(&stage, "two handlers run", |runs| runs.len() == 2).await?;
    faulty.lose_connection();
    gate.add_permits(100);
    app.all_ended(&published).await?;
    app.stop().await?;
    let (handled, counts) = (script.journal.handled.all(), app.counts().await?);
    ensure!(
        handled.len() <= published.len() + 2,
        "two messages ran when the connection was lost, and of 10 messages {} runs were made",
        handled.len()
    );
    ensure_eq!(counts.settlements_failed, 2, "the settlements that came too late and are told as failed");
    Ok(())
}
