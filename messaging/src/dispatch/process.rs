//! The room with user code: scope, decoding and handler, behind a wall and a clock.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::layers::Stack;
use crate::consumer::{MessageContext, OnError};
use crate::duration::human;
use crate::failure::{Failure, FailureKind, Outcome};
use crate::guard::{guard, guard_pinned};
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
        scope: &mut Option<Scope<C>>,
    ) -> Processed {
        let handler = &self.runner.handlers[index];
        let ran = match (&self.layered, handler.limit) {
            (None, None) => {
                message.start();
                let mut run = pin!(Some(self.runner.run(handler, message, scope)));
                guard_pinned(run.as_mut()).await
            }
            // Boxed: what few handlers have must not make every delivery's future larger.
            (None, Some(limit)) => {
                message.start();
                Box::pin(guard(within(limit, self.runner.run(handler, message, scope)))).await
            }
            (Some(layered), limit) => {
                let stack = Stack::new(index, message);
                let left = stack.left_scope();
                let run = async {
                    let call = layered.ready(stack, &self.stopping).await?;
                    let outcome = match limit {
                        None => call.await,
                        Some(limit) => within(limit, call).await,
                    };
                    // A layer's own error is rendered behind the wall as well.
                    Some(outcome.inspect_err(|failure| _ = failure.render_once(message)))
                };
                let ran = Box::pin(guard(run)).await;
                *scope = left.take();
                match ran {
                    Ok(None) => return Processed::Unstarted,
                    Ok(Some(outcome)) => Ok(outcome),
                    Err(panic) => Err(panic),
                }
            }
        };
        Processed::Ran(ran.unwrap_or_else(|panic| Err(Failure::of(FailureKind::Panic, panic))))
    }

    /// Runs `#[on_error]` behind the wall; whether the message is to be discarded.
    pub(super) async fn on_error(
        &self,
        message: &Arc<InboundMessage>,
        failure: &Failure,
        scope: Option<&mut Scope<C>>,
    ) -> bool {
        let Some(on_error) = &self.runner.on_error else { return false };
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
        let run = async {
            let answer = match self.max_run {
                None => run.await,
                Some(limit) => tokio::time::timeout(limit, run).await.unwrap_or_else(|_| Err(too_long(limit))),
            };
            answer.map_err(|failure: Failure| failure.render())
        };
        match guard(run).await {
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

/// Runs within that time.
async fn within(limit: Duration, run: impl Future<Output = Outcome>) -> Outcome {
    match tokio::time::timeout(limit, run).await {
        Ok(outcome) => outcome,
        Err(_) => Err(too_long(limit)),
    }
}

fn too_long(limit: Duration) -> Failure {
    Failure::of(FailureKind::Timeout, format!("the handler took longer than {}", human(limit)))
}
