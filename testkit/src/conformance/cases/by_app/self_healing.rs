//! P4 under an application: it consumes again without a restart, and says what was.

use messaging::{QueueState, Settlement};

use crate::conformance::app::Happened;
use crate::conformance::breach::{Breach, Verdict, ensure, ensure_eq};
use crate::conformance::case::cases;
use crate::conformance::script::Script;
use crate::conformance::stage::Stage;

cases! { SelfHealing;
    an_application_consumes_again_after_deliveries_were_lost,
    an_application_consumes_again_after_a_lost_connection [Cut],
    an_application_consumes_again_after_the_broker_was_killed [Process],
}

async fn an_application_consumes_again_after_deliveries_were_lost(stage: Stage) -> Verdict {
    let ((process, faulty), outside) = (stage.faulty(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue).concurrency(2);
    let app = process.app().consume(&script).start().await?;
    for _ in 0..3 {
        faulty.lose_connection();
        let published = outside.publish_some(&queue, 5).await?;
        app.all_ended(&published).await?;
    }
    let faults = app.events.all().iter().filter(|event| **event == Happened::Fault).count();
    ensure_eq!(faults, 3, "the faults that the application told");
    ensure_eq!(app.health().await?.state, QueueState::Consuming, "how the queue is when the faults have healed");
    app.stop().await
}

async fn an_application_consumes_again_after_a_lost_connection(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let dead = stage.dead_letter_queue(&queue).await?;
    let script = Script::new(&queue, |message| async move {
        if message.message_type() == Some("bad") { Err("not this one".into()) } else { Ok(()) }
    });
    let script = script.concurrency(2).retry(stage.attempts(2));
    let app = process.app().consume(&script).start().await?;
    for _ in 0..3 {
        process.cut().await?;
        let bad = outside.publish(outside.message(&queue).message_type("bad")).await?;
        let published = outside.publish_some(&queue, 5).await?;
        app.all_ended(&published).await?;
        // Also what publishes, retries and settles.
        let end = app.ended(bad.as_str()).await?;
        ensure!(matches!(end, Settlement::DeadLetter(_)), "a message that always fails ended as {end:?}");
    }
    outside.consume(&dead).await?.take(3, "the dead letters of messages that always fail").await?;
    ensure_eq!(app.health().await?.state, QueueState::Consuming, "how the queue is when the connection is there again");
    app.stop().await
}

async fn an_application_consumes_again_after_the_broker_was_killed(stage: Stage) -> Verdict {
    let (process, outside) = (stage.process(), stage.connected().await?);
    let queue = stage.queue("orders").await?;
    let script = Script::fine(&queue).concurrency(2);
    let app = process.app().consume(&script).start().await?;
    let before = outside.publish_some(&queue, 5).await?;
    app.all_ended(&before).await?;
    let Some(broker) = stage.broker().process() else { return Err(Breach::new("no process to end")) };
    let failed = |error| Breach::new(format!("the broker's process does not do as it is told: {error}"));
    stage.within("the broker's process ends", broker.kill()).await?.map_err(failed)?;
    let refused =
        stage.fails("a publish fails while there is no broker", outside.driver().publish(outside.message(&queue)));
    refused.await?;
    stage.within("the broker's process starts", broker.start()).await?.map_err(failed)?;
    outside.published_at_last(&queue).await?;
    let published = outside.publish_some(&queue, 5).await?;
    app.all_ended(&published).await?;
    ensure_eq!(app.health().await?.state, QueueState::Consuming, "how the queue is when the broker is there again");
    app.stop().await
}
