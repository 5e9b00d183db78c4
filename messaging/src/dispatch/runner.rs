use std::sync::Arc;
use std::time::Duration;

use crate::app::{Plan, Slots};
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
    /// Of deliveries for which nothing is built.
    pub(crate) no_slots: Slots,
}

impl<C: Send + Sync + 'static> Runner<C> {
    fn context<'m>(
        &'m self,
        handler: &'m Handler<C>,
        message: &'m Arc<InboundMessage>,
        slots: &'m Slots,
    ) -> MessageContext<'m> {
        MessageContext { message, codecs: &self.codecs, plan: &handler.scope, slots }
    }

    /// Opens the scope, takes the parameters, runs the handler; on success the scope is gone again.
    ///
    /// A failure is looked at, filtered and rendered here, since that asks the user's error.
    pub(super) async fn run(
        &self,
        handler: &Handler<C>,
        message: &Arc<InboundMessage>,
        scope: &mut Option<Scope<C>>,
    ) -> Outcome {
        let outcome = match self.scopes.shared(&handler.scope) {
            Some(consumer) => (handler.entry.run)(consumer, self.context(handler, message, &self.no_slots)).await,
            None => match self.scopes.open(&handler.scope, message).await {
                Ok(opened) => {
                    let opened = scope.insert(opened);
                    (handler.entry.run)(&opened.consumer, self.context(handler, message, &opened.slots)).await
                }
                Err(failure) => Err(failure),
            },
        };
        match outcome {
            Ok(()) => {
                let closed = scope.take().map_or(Ok(()), Scope::close);
                closed.map_err(|panic| Failure::of(FailureKind::Panic, panic))
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
