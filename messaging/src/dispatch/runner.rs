use std::sync::Arc;
use std::time::Duration;

use crate::app::Plan;
use crate::codec::Codecs;
use crate::consumer::{HandlerEntry, MessageContext, OnErrorEntry};
use crate::failure::{FailureKind, Outcome};
use crate::message::InboundMessage;
use crate::retry::RetryPlan;
use crate::scope::{Scope, Scopes};

/// A handler with what was proven and compiled for it at boot.
pub(crate) struct Handler<C> {
    pub(crate) entry: HandlerEntry<C>,
    pub(crate) plan: RetryPlan,
    pub(crate) scope: Plan,
    /// How long a run may take.
    pub(crate) limit: Option<Duration>,
}

/// `#[on_error]` with what was compiled for it at boot; opens a scope of its own where there is none.
pub(crate) struct OnErrorHandler<C> {
    pub(crate) entry: OnErrorEntry<C>,
    pub(crate) scope: Plan,
}

/// Runs a consumer's handlers; what the tower stack, where there is one, is built around.
pub(crate) struct Runner<C> {
    pub(crate) scopes: Scopes<C>,
    pub(crate) handlers: Vec<Handler<C>>,
    pub(crate) on_error: Option<OnErrorHandler<C>>,
    pub(crate) codecs: Codecs,
}

impl<C: Send + Sync + 'static> Runner<C> {
    /// Opens the scope, takes the parameters, runs the handler; on success the scope is gone again.
    pub(super) async fn run(
        &self,
        handler: &Handler<C>,
        message: &Arc<InboundMessage>,
        scope: &mut Option<Scope<C>>,
    ) -> Outcome {
        let mut outcome = self.run_in_scope(handler, message, scope).await;
        match &mut outcome {
            Ok(()) => *scope = None,
            Err(failure) => {
                let by_filter = failure.kind() == FailureKind::Error && !handler.entry.filter.allows(failure);
                if failure.is_final() || by_filter {
                    failure.forbid_retry();
                }
            }
        }
        outcome
    }

    async fn run_in_scope(
        &self,
        handler: &Handler<C>,
        message: &Arc<InboundMessage>,
        scope: &mut Option<Scope<C>>,
    ) -> Outcome {
        let scope = scope.insert(self.scopes.open(&handler.scope, message).await?);
        let context = MessageContext { message, codecs: &self.codecs, plan: &handler.scope, slots: &scope.slots };
        (handler.entry.run)(&scope.consumer, context).await
    }
}
