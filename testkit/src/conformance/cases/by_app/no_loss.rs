//! P1 under an application: acked after success, or after a confirmed copy, or not at all.

use std::time::Duration;

use messaging::{ErrorKind, Failure, OnError, Reason, Settlement};
use tokio::time::sleep;

use crate::Fault;
use crate::conformance::app::Happened;
use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::hand::id;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { NoLoss;
    a_message_whose_run_never_ended_is_still_with_the_broker,
    a_dead_letter_is_acked_only_after_its_copy_is_confirmed,
    a_process_that_ends_before_a_copy_is_confirmed_loses_nothing,
    a_copy_that_is_refused_is_tried_again_without_another_run,
    a_copy_whose_confirmation_was_lost_comes_twice_at_most,
    an_ack_that_failed_brings_the_message_back,
    a_retry_that_failed_brings_the_message_back,
    on_error_can_discard_and_nothing_else_does,
    without_a_dead_letter_queue_a_final_failure_is_discarded_and_told,
}

const LONG: Duration = Duration::from_secs(3_600);

async fn a_message_whose_run_never_ended_is_still_with_the_broker(stage: Stage) -> Verdict {
    let (process, next) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| std::future::pending());
    let app = process.app().consume(&script).start().await?;
    let published = next.publish_some(&queue, 1).await?;
    script.journal.runs.until(&stage, "the handler begins", |runs| runs.len() == 1).await?;
    // Not the application stops: its connection is gone, as when the process ends.
    process.close().await?;
    let delivery = next.consume(&queue).await?.next("a message whose run never ended comes to another process").await?;
    ensure_eq!(id(&delivery), published[0], "what came to another process");
    drop(app);
    Ok(())
}

async fn a_dead_letter_is_acked_only_after_its_copy_is_confirmed(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    faulty.fail(Fault::publish(&*dead).hang());
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("nothing to bill")) });
    let app = process.app().options(|options| options.copy_timeout(LONG)).consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    script.journal.runs.until(&stage, "the handler fails", |runs| runs.len() == 1).await?;
    sleep(stage.timing().quiet).await;
    ensure_eq!(app.events.all(), [], "what is told while a copy is not confirmed");
    faulty.release_hung();
    ensure_eq!(app.ended(&published[0]).await?, Settlement::DeadLetter(Reason::NonRetryable), "how the message ended");
    let letter = outside.consume(&dead).await?.next("the copy is in the dead-letter queue").await?;
    ensure_eq!(id(&letter), published[0], "the dead letter");
    app.stop().await
}

async fn a_process_that_ends_before_a_copy_is_confirmed_loses_nothing(stage: Stage) -> Verdict {
    let ((process, faulty), next) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    faulty.fail(Fault::publish(&*dead).hang());
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("nothing to bill")) });
    let app = process.app().options(|options| options.copy_timeout(LONG)).consume(&script).start().await?;
    let published = next.publish_some(&queue, 1).await?;
    script.journal.runs.until(&stage, "the handler fails", |runs| runs.len() == 1).await?;
    process.close().await?;
    let what = "a message whose copy was not confirmed comes to another process";
    let delivery = next.consume(&queue).await?.next(what).await?;
    ensure_eq!(id(&delivery), published[0], "what came to another process");
    drop(app);
    Ok(())
}

async fn a_copy_that_is_refused_is_tried_again_without_another_run(stage: Stage) -> Verdict {
    const REFUSALS: u32 = 2;
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    faulty.fail(Fault::publish(&*dead).error(ErrorKind::Rejected).times(REFUSALS));
    let script = Script::new(&queue, |_| async { Err("the database is down".into()) })
        .retry(stage.attempts(2))
        .on_error(|_| async { Ok(OnError::DeadLetter) });
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    ensure_eq!(app.ended(&published[0]).await?, Settlement::DeadLetter(Reason::Exhausted), "how the message ended");
    ensure_eq!(script.journal.attempts_of(&published[0]), [1, 2], "the runs of a message whose copy was refused");
    ensure_eq!(script.journal.given_up.len(), 1, "how often `#[on_error]` was asked");
    let failed = app.events.all().into_iter().filter(|event| matches!(event, Happened::CopyFailed { .. })).count();
    ensure_eq!(failed, REFUSALS as usize, "the failed copies that were told");
    let mut letters = outside.consume(&dead).await?;
    let letter = letters.next("the copy is in the dead-letter queue at last").await?;
    ensure_eq!(letter.message.headers.text("x-znight-attempts"), Some("2"), "the attempts that the dead letter names");
    letters.ack(letter).await?;
    letters.nothing_more("a refused copy is not in the dead-letter queue as well").await?;
    app.stop().await
}

async fn a_copy_whose_confirmation_was_lost_comes_twice_at_most(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    faulty.fail(Fault::publish(&*dead).error_after(ErrorKind::Unconfirmed));
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("nothing to bill")) });
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    app.ended(&published[0]).await?;
    ensure_eq!(script.journal.runs.len(), 1, "the runs of a message whose copy was not confirmed");
    let mut letters = outside.consume(&dead).await?;
    for letter in letters.take(2, "a copy that was stored, and the one that was tried again").await? {
        ensure_eq!(id(&letter), published[0], "the id of both copies");
        letters.ack(letter).await?;
    }
    letters.nothing_more("there is no third copy").await?;
    app.stop().await
}

async fn an_ack_that_failed_brings_the_message_back(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    faulty.fail(Fault::ack().error(ErrorKind::Connection));
    // Where a release counts, the second run is a second attempt.
    let script = Script::fine(&queue).retry(stage.attempts(3));
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    ensure_eq!(app.ended(&published[0]).await?, Settlement::Ack, "how the message ended");
    ensure_eq!(script.journal.handled.len(), 2, "how often a message whose first ack failed was handled");
    let failed = Happened::SettlementFailed { id: published[0].clone() };
    ensure_eq!(app.events.all().first(), Some(&failed), "the first that was told");
    ensure_eq!(app.counts().await?.settlements_failed, 1, "the failed settlements that health counts");
    app.stop().await
}

async fn a_retry_that_failed_brings_the_message_back(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    faulty.fail(Fault::retry().error(ErrorKind::Connection));
    let script = Script::new(&queue, |message| async move {
        if message.attempt().get() < 3 { Err("not yet".into()) } else { Ok(()) }
    });
    let script = script.retry(stage.attempts(5));
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    ensure_eq!(app.ended(&published[0]).await?, Settlement::Ack, "how the message ended");
    app.stop().await
}

async fn on_error_can_discard_and_nothing_else_does(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("nothing to bill")) });
    let script = script.on_error(|message| async move {
        Ok(if message.message_type() == Some("unwanted") { OnError::Discard } else { OnError::DeadLetter })
    });
    let app = process.app().consume(&script).start().await?;
    let unwanted = outside.publish(outside.message(&queue).message_type("unwanted")).await?;
    let wanted = outside.publish_some(&queue, 1).await?;
    let (discard, copy) = (Settlement::Discard(Reason::NonRetryable), Settlement::DeadLetter(Reason::NonRetryable));
    ensure_eq!(app.ended(unwanted.as_str()).await?, discard, "how the message ended that `#[on_error]` discards");
    ensure_eq!(app.ended(&wanted[0]).await?, copy, "how the message ended that it does not");
    let mut letters = outside.consume(&dead).await?;
    let letter = letters.next("the copy is in the dead-letter queue").await?;
    ensure_eq!(id(&letter), wanted[0], "the dead letter");
    letters.ack(letter).await?;
    letters.nothing_more("what was discarded is not in the dead-letter queue").await?;
    ensure_eq!(app.counts().await?.discarded, 1, "the discarded messages that health counts");
    app.stop().await
}

async fn without_a_dead_letter_queue_a_final_failure_is_discarded_and_told(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| async { Err("the database is down".into()) });
    let script = script.retry(stage.attempts(2)).no_dead_letter();
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    ensure_eq!(app.ended(&published[0]).await?, Settlement::Discard(Reason::Exhausted), "how the message ended");
    app.stop().await?;
    ensure!(app.counts().await?.discarded == 1, "health does not count the message that was discarded");
    outside.consume(&queue).await?.nothing_more("what was discarded is gone").await
}
