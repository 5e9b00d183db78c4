//! The room with user code: scope, decoding and handler, behind a wall and a clock.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::layers::Stack;
use crate::consumer::{MessageContext, OnError};
use crate::delivery::Settler;
use crate::duration::human;
use crate::failure::{Failure, FailureKind, Outcome};
use crate::guard::guard;
use crate::message::InboundMessage;
use crate::scope::Scope;

/// What came of trying to run a handler.
pub(super) enum Processed {
    Ran(Outcome),
    /// The application stopped before the handler could start.
    Unstarted,
}

impl<C: Send + Sync + 'static> Engine<C> {
    /// Runs the handler behind the wall, within its time.
    pub(super) async fn process(
        &self,
        index: usize,
        message: &Arc<InboundMessage>,
        settler: &mut dyn Settler,
        scope: &mut Option<Scope<C>>,
    ) -> Processed {
        let handler = &self.runner.handlers[index];
        let outcome = match &self.layered {
            None => {
                settler.started();
                let run = self.runner.run(handler, message, scope);
                guard(async { note(message, within(handler.limit, run).await) }).await
            }
            Some(layered) => {
                let stack = Stack::new(index, message);
                let left = stack.left_scope();
                let run = async {
                    let call = layered.ready(stack, settler, &self.stopping).await?;
                    Some(note(message, within(handler.limit, call).await))
                };
                let ran = guard(run).await;
                *scope = left.take();
                match ran {
                    Ok(None) => return Processed::Unstarted,
                    Ok(Some(outcome)) => Ok(outcome),
                    Err(panic) => Err(panic),
                }
            }
        };
        let outcome = outcome.unwrap_or_else(|panic| Err(Failure::of(FailureKind::Panic, panic)));
        Processed::Ran(outcome)
    }

    /// Runs `#[on_error]` behind the wall; whether the message is to be discarded.
    pub(super) async fn on_error(
        &self,
        message: &Arc<InboundMessage>,
        failure: Option<&Failure>,
        scope: Option<&mut Scope<C>>,
    ) -> bool {
        let (Some(on_error), Some(failure)) = (&self.runner.on_error, failure) else { return false };
        let runner = &self.runner;
        let run = async {
            let mut fresh;
            let scope = match scope {
                Some(scope) => {
                    scope.extend(&on_error.scope, message).await?;
                    scope
                }
                None => {
                    fresh = runner.scopes.open(&on_error.scope, message).await?;
                    &mut fresh
                }
            };
            let context =
                MessageContext { message, codecs: &runner.codecs, plan: &on_error.scope, slots: &scope.slots };
            (on_error.entry.run)(&scope.consumer, failure, context).await
        };
        // What it failed with is rendered behind the wall as well.
        match guard(async { run.await.map_err(|failure: Failure| failure.render()) }).await {
            Ok(Ok(answer)) => answer == OnError::Discard,
            Ok(Err(error)) => {
                tracing::error!(queue = message.queue(), id = %message.id, error, "`#[on_error]` failed, the message is dead-lettered");
                false
            }
            Err(panic) => {
                tracing::error!(queue = message.queue(), id = %message.id, %panic, "`#[on_error]` panicked, the message is dead-lettered");
                false
            }
        }
    }
}

/// Runs within the time there is.
async fn within(limit: Option<Duration>, run: impl Future<Output = Outcome>) -> Outcome {
    let Some(limit) = limit else { return run.await };
    match tokio::time::timeout(limit, run).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::of(FailureKind::Timeout, format!("the handler took longer than {}", human(limit)))),
    }
}

/// Notes what went wrong; called behind the wall, since it asks the user's error.
fn note(message: &InboundMessage, outcome: Outcome) -> Outcome {
    if let Err(failure) = &outcome {
        message.note_failure_with(|| failure.render());
    }
    outcome
}
