//! P6 under an application: what cannot be honoured is refused before anything connects.

use std::time::Duration;

use messaging::{ErrorKind, RetryPolicy};

use crate::conformance::breach::{Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { ProvenAtBoot;
    a_retry_beyond_the_longest_is_refused_and_nothing_connects [LongestDelay],
    the_longest_retry_is_accepted,
    everything_wrong_is_said_at_once,
}

async fn a_retry_beyond_the_longest_is_refused_and_nothing_connects(stage: Stage) -> Verdict {
    let process = stage.process();
    let queue = stage.queue("orders").await?;
    let beyond = stage.capabilities().longest_delay() + Duration::from_secs(1);
    let script = Script::fine(&queue).retry(RetryPolicy::new(2).delay(beyond));
    let Err(refused) = process.app().consume(&script).create().await? else {
        ensure!(false, "a retry of {beyond:?} was accepted, which is beyond the longest delay");
        return Ok(());
    };
    let report = refused.to_string();
    for part in ["Scripted", &queue, process.driver().name()] {
        ensure!(report.contains(part), "the refusal does not name `{part}`: {report}");
    }
    let publish = process.driver().publish(process.message(&queue));
    let kind = stage.fails("a publish before anything connects is refused", publish).await?;
    ensure_eq!(kind, ErrorKind::Closed, "the error of a publish after a refused boot: nothing has connected");
    Ok(())
}

async fn the_longest_retry_is_accepted(stage: Stage) -> Verdict {
    let queue = stage.queue("orders").await?;
    let year = Duration::from_secs(365 * 86_400);
    let can = *stage.capabilities();
    let longest = [can.max_in_process_delay, can.max_native_delay, can.longest_delay()];
    for delay in longest.map(|delay| delay.min(year)) {
        let script = Script::fine(&queue).retry(RetryPolicy::new(2).delay(delay));
        let created = stage.process().app().consume(&script).create().await?;
        ensure!(
            created.is_ok(),
            "a retry of {delay:?} is within the capabilities, and was refused: {:?}",
            created.err()
        );
    }
    Ok(())
}

async fn everything_wrong_is_said_at_once(stage: Stage) -> Verdict {
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue).retry(RetryPolicy::new(0));
    let app = stage.process().app().options(|options| options.requeue_delay(Duration::ZERO));
    let Err(refused) = app.consume(&script).consume(&script).create().await? else {
        ensure!(false, "two consumers of one queue, without attempts and without a requeue delay, were accepted");
        return Ok(());
    };
    let report = refused.to_string();
    for part in ["requeue_delay", "attempts", "is consumed by Scripted", &queue] {
        ensure!(report.contains(part), "the refusal does not say `{part}`: {report}");
    }
    Ok(())
}
