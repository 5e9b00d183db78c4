use std::sync::Arc;
use std::time::Duration;

use crate::app::Plan;
use crate::codec::Codecs;
use crate::consumer::{HandlerEntry, MessageContext, OnErrorEntry};
use crate::failure::{Failure, FailureKind, Outcome};
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
    ///
    /// A failure is looked at, filtered and rendered here, since that asks the user's error.
    pub(super) async fn run(
        &self,
        handler: &Handler<C>,
        message: &Arc<InboundMessage>,
        scope: &mut Option<Scope<C>>,
    ) -> Outcome {
        let opened = match self.scopes.shared(&handler.scope) {
            Some(opened) => Ok(opened),
            None => self.scopes.open(&handler.scope, message).await,
        };
        let outcome = match opened {
            Ok(opened) => {
                let scope = scope.insert(opened);
                let context =
                    MessageContext { message, codecs: &self.codecs, plan: &handler.scope, slots: &scope.slots };
                (handler.entry.run)(&scope.consumer, context).await
            }
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok(()) => {
                *scope = None;
                Ok(())
            }
            Err(failure) => Err(handler.judge(failure, message)),
        }
    }
}

impl<C> Handler<C> {
    /// Makes a failure final where it says so itself, or the handler's filter does.
    #[cold]
    fn judge(&self, mut failure: Failure, message: &InboundMessage) -> Failure {
        let by_filter = failure.kind() == FailureKind::Error && !self.entry.filter.allows(&failure);
        if failure.is_final() || by_filter {
            failure.forbid_retry();
        }
        failure.render_once(message);
        failure
    }
}
