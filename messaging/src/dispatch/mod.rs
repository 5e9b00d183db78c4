//! The way of a message: `route → admit → process → decide → carry_out`, then the driver settles.
//!
//! One straight line. The message goes through the rooms; the right to settle waits in [`Engine::deliver`] and meets the
//! settlement at the end.

mod carry_out;
mod copy_gate;
mod dead_letter;
mod decide;
mod events;
mod health;
mod layers;
mod process;
mod runner;
mod verdicts;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::consumer::Router;
use crate::delivery::{Delivery, Settler};
use crate::driver::MessagingDriver;
use crate::duration::human;
use crate::failure::{Failure, FailureKind};
use crate::guard::guarded;
use crate::message::InboundMessage;
use crate::retry::{Jitter, RetryPlan};
use crate::scope::Scope;
use crate::settlement::Settlement;
use crate::wire_names::WireNames;

use copy_gate::CopyGate;
use decide::{Decision, decide};
use process::Processed;
use verdicts::{Terminal, Verdicts};

pub use events::Event;
pub use health::{Counts, Health, QueueHealth, QueueState};
pub use layers::{HandlerError, HandlerService, Incoming};

pub(crate) use events::{Events, Listener};
pub(crate) use layers::{ErasedLayer, Layered, erase};
pub(crate) use runner::{Handler, OnErrorHandler, Runner};
pub(crate) use worker::work;

/// Dispatches the deliveries of one queue to one consumer.
pub(crate) struct Engine<C> {
    pub(crate) runner: Arc<Runner<C>>,
    pub(crate) router: Router,
    pub(crate) layered: Option<Layered>,
    pub(crate) driver: Arc<dyn MessagingDriver>,
    pub(crate) names: WireNames,
    pub(crate) dead_letter: Option<Arc<str>>,
    pub(crate) copy_timeout: Duration,
    pub(crate) events: Arc<Events>,
    pub(crate) stopping: Arc<AtomicBool>,
    /// Cancelled when the application stops.
    pub(crate) token: Arc<CancellationToken>,
    /// The longest that user code may run before the broker takes the message back.
    max_run: Option<Duration>,
    gate: CopyGate,
    verdicts: Verdicts,
}

/// What an engine is made of, beside the consumer.
pub(crate) struct EngineParts {
    pub(crate) driver: Arc<dyn MessagingDriver>,
    pub(crate) names: WireNames,
    pub(crate) dead_letter: Option<Arc<str>>,
    pub(crate) copy_timeout: Duration,
    pub(crate) requeue_delay: Duration,
    pub(crate) events: Arc<Events>,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) token: Arc<CancellationToken>,
}

impl<C: Send + Sync + 'static> Engine<C> {
    pub(crate) fn new(runner: Arc<Runner<C>>, router: Router, layered: Option<Layered>, parts: EngineParts) -> Self {
        let EngineParts { driver, names, dead_letter, copy_timeout, requeue_delay, events, stopping, token } = parts;
        Self {
            runner,
            router,
            layered,
            names,
            dead_letter,
            copy_timeout,
            events,
            stopping,
            token,
            max_run: driver.capabilities().max_run,
            driver,
            gate: CopyGate::new(requeue_delay),
            verdicts: Verdicts::default(),
        }
    }

    /// Takes one delivery from the door to its settlement.
    ///
    /// Where it ends without one (the application stops, or the message is no longer ours) the settler's drop gives the
    /// message back.
    pub(crate) async fn deliver(&self, delivery: Delivery) {
        let Delivery { message, mut settler } = delivery;
        if let Some(terminal) = self.verdicts.recall(&message, &*settler) {
            // Boxed, like what follows a failure: it must not make every delivery's future larger.
            if let Some(settlement) = Box::pin(self.end(&message, terminal, &mut *settler)).await {
                settler.settle(settlement);
            }
            return;
        }
        let handler = self.router.route(message.message_type());
        let mut scope = None;
        let outcome = match handler.map(|index| (index, &self.runner.handlers[index])) {
            None => Err(no_handler(&message)),
            Some((_, handler)) if !handler.plan.admits(message.attempt()) => Err(exhausted(&message, &handler.plan)),
            Some((index, _)) => match self.process(index, &message, &mut scope).await {
                Processed::Ran(outcome) => outcome,
                Processed::Unstarted => return,
            },
        };
        let settlement = match outcome {
            Ok(()) => Some(Settlement::Ack),
            Err(failure) => {
                let handler = handler.map(|index| &self.runner.handlers[index]);
                Box::pin(self.settle_failure(handler, &message, failure, scope, &mut *settler)).await
            }
        };
        if let Some(settlement) = settlement {
            settler.settle(settlement);
        }
    }

    /// Decides what becomes of a message whose run failed, and carries it out.
    async fn settle_failure(
        &self,
        handler: Option<&Handler<C>>,
        message: &Arc<InboundMessage>,
        failure: Failure,
        mut scope: Option<Scope<C>>,
        settler: &mut dyn Settler,
    ) -> Option<Settlement> {
        // A panic or a timeout has not been rendered yet; the text is our own then.
        failure.render_once(message);
        let plan = handler.map(|handler| &handler.plan);
        warn_if_clamped(&failure, plan, message);
        let settlement = match decide(&failure, message.attempt(), plan, Jitter::of(fastrand::u8(..))) {
            Decision::Retry(step) => Some(Settlement::Retry { step, attempt: message.attempt().next() }),
            Decision::Fail(reason) => {
                message.start();
                let given_up = plan.is_some_and(|plan| has_given_up(plan, message));
                let discard = !given_up && self.on_error(message, &failure, scope.as_mut()).await;
                self.end(message, Terminal { reason, attempts: runs(message, &failure), discard }, settler).await
            }
        };
        // User code can panic there too; each alone, since two panics at once would end the process.
        let dropped = [guarded(move || drop(failure)), scope.map_or(Ok(()), Scope::close)];
        for panic in dropped.into_iter().filter_map(Result::err) {
            tracing::error!(queue = message.queue(), %panic, "dropping what a failed run left behind panicked");
        }
        settlement
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

fn warn_if_clamped(failure: &Failure, plan: Option<&RetryPlan>, message: &InboundMessage) {
    let Some(ceiling) = plan.map(RetryPlan::ceiling) else { return };
    if let Some(delay) = failure.requested_delay().filter(|delay| *delay > ceiling) {
        tracing::warn!(
            queue = message.queue(), id = %message.id, error = message.failure(),
            "asked to be retried after {}, which is clamped to the driver's longest delay, {}",
            human(delay), human(ceiling)
        );
    }
}

/// Whether even `#[on_error]` has had its run and the message came back: it may be what kills the process.
fn has_given_up(plan: &RetryPlan, message: &InboundMessage) -> bool {
    message.attempt().get() > plan.attempts().saturating_add(1)
}

/// How often the message was run: not in this delivery, where it was only found to be exhausted.
fn runs(message: &InboundMessage, failure: &Failure) -> u32 {
    message.attempt().get() - u32::from(failure.kind() == FailureKind::Exhausted)
}

fn no_handler(message: &InboundMessage) -> Failure {
    let text = match message.message_type() {
        Some(message_type) => format!("no handler for message type `{message_type}`"),
        None => "no handler for messages without a type".into(),
    };
    Failure::of(FailureKind::NoHandler, text)
}

fn exhausted(message: &InboundMessage, plan: &RetryPlan) -> Failure {
    let text = format!(
        "came back as attempt {} of {}: earlier runs ended without a settlement, so it is not run again",
        message.attempt(),
        plan.attempts()
    );
    Failure::of(FailureKind::Exhausted, text)
}
