//! P5 under an application: attempts and concurrency are those that were asked for.

use std::time::Duration;

use messaging::{Failure, Reason, Settlement};
use tokio::time::sleep;

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { Bounded;
    attempts_are_exactly_those_of_the_policy,
    a_single_attempt_is_never_retried,
    a_failure_that_no_retry_mends_is_run_once,
    as_many_run_at_once_as_the_concurrency_says_and_no_more,
    a_message_that_always_breaks_its_run_ends [CrashCounts],
}

async fn attempts_are_exactly_those_of_the_policy(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| async { Err("the database is down".into()) }).retry(stage.attempts(4));
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 3).await?;
    for id in &published {
        ensure_eq!(
            app.ended(id).await?,
            Settlement::DeadLetter(Reason::Exhausted),
            "how a message ended that always fails"
        );
        ensure_eq!(script.journal.attempts_of(id), [1, 2, 3, 4], "the attempts of a policy of four");
    }
    ensure_eq!(app.counts().await?.retried, 9, "the retries that health counts");
    app.stop().await
}

async fn a_single_attempt_is_never_retried(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| async { Err("the database is down".into()) });
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    app.ended(&published[0]).await?;
    sleep(stage.timing().quiet).await;
    ensure_eq!(script.journal.attempts_of(&published[0]), [1], "the attempts of a policy of one");
    app.stop().await
}

async fn a_failure_that_no_retry_mends_is_run_once(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| async { Err(Failure::non_retryable("nothing to bill")) });
    let script = script.retry(stage.attempts(5));
    let app = process.app().consume(&script).start().await?;
    let published = outside.publish_some(&queue, 1).await?;
    let end = app.ended(&published[0]).await?;
    ensure_eq!(end, Settlement::DeadLetter(Reason::NonRetryable), "how a message ended that no retry mends");
    ensure_eq!(script.journal.attempts_of(&published[0]), [1], "its attempts");
    app.stop().await
}

async fn as_many_run_at_once_as_the_concurrency_says_and_no_more(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::new(&queue, |_| async {
        sleep(Duration::from_millis(200)).await;
        Ok(())
    });
    let script = script.concurrency(3);
    let app = process.app().consume(&script).start().await?;
    let mut published = Vec::new();
    for number in 0..12 {
        let message = outside.message(&queue).key(format!("k-{number}"));
        published.push(outside.publish(message).await?.as_str().to_owned());
    }
    app.all_ended(&published).await?;
    ensure_eq!(script.journal.most_at_once(), 3, "the most handlers that ran at once, with a concurrency of three");
    app.stop().await
}

async fn a_message_that_always_breaks_its_run_ends(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let breaks = faulty.clone();
    let script = Script::new(&queue, move |message| {
        let faulty = breaks.clone();
        async move {
            if message.message_type() == Some("poison") {
                faulty.lose_connection();
            }
            Ok(())
        }
    });
    let script = script.retry(stage.attempts(3));
    let app = process.app().consume(&script).start().await?;
    let poison = outside.publish(outside.message(&queue).message_type("poison")).await?;
    let end = app.ended(poison.as_str()).await?;
    ensure_eq!(end, Settlement::DeadLetter(Reason::Exhausted), "how a message ended that always breaks its run");
    let runs = script.journal.attempts_of(poison.as_str());
    // One last chance is granted, since what broke may have been a neighbour.
    ensure!((3..=4).contains(&runs.len()), "a policy of three attempts, and the runs {runs:?}");
    app.stop().await
}
