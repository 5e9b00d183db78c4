//! The one file where dispatch meets a container.
//!
//! The engine asks for one thing: the consumer for a message. Our container gives it by a plan made at boot; any other
//! container gives it by a function.

use std::fmt;
use std::sync::Arc;

use crate::app::{Plan, Slots};
use crate::consumer::BoxFuture;
use crate::error::BoxError;
use crate::failure::{Failure, FailureKind};
use crate::guard::{Panic, guarded};
use crate::message::InboundMessage;

/// Gives the consumer for a message.
pub(crate) type ConsumerFn<C> =
    Arc<dyn Fn(Arc<InboundMessage>) -> BoxFuture<'static, Result<Arc<C>, BoxError>> + Send + Sync>;

/// The slot of the message in every scope.
pub(crate) const MESSAGE_SLOT: usize = 0;

/// Where consumers come from.
pub(crate) enum Scopes<C> {
    /// One for all messages.
    Shared(Arc<C>),
    /// One for each, built by the plan of the handler.
    Scoped,
    /// From another container.
    Foreign(ConsumerFn<C>),
}

/// What lives as long as one delivery.
pub(crate) struct Scope<C> {
    pub(crate) consumer: Arc<C>,
    pub(crate) slots: Slots,
}

impl<C: Send + Sync + 'static> Scopes<C> {
    /// The consumer, where nothing has to be built for a delivery and so no scope has to be opened.
    pub(crate) fn shared(&self, plan: &Plan) -> Option<&C> {
        match self {
            Self::Shared(consumer) if !plan.has_slots() => Some(consumer),
            Self::Shared(_) | Self::Scoped | Self::Foreign(_) => None,
        }
    }

    /// Opens the scope of a delivery: what the plan names is built, the consumer among it.
    pub(crate) async fn open(&self, plan: &Plan, message: &Arc<InboundMessage>) -> Result<Scope<C>, Failure> {
        let mut slots = Slots::default();
        if plan.has_slots() {
            slots.put(MESSAGE_SLOT, Arc::clone(message) as _);
            plan.fill(&mut slots).await.map_err(failed)?;
        }
        let consumer = match self {
            Self::Shared(consumer) => Arc::clone(consumer),
            Self::Scoped => plan.read(&slots).ok_or_else(|| failed("the consumer is not among what was built"))?,
            Self::Foreign(give) => give(Arc::clone(message)).await.map_err(failed)?,
        };
        Ok(Scope { consumer, slots })
    }
}

impl<C> Scope<C> {
    /// Drops what was built, the consumer first, each behind the wall: user code can panic there, and two panics at once
    /// would end the process. The first panic is told.
    pub(crate) fn close(self) -> Result<(), Panic> {
        let Self { consumer, slots } = self;
        let closed = guarded(move || drop(consumer));
        slots.into_instances().fold(closed, |closed, instance| closed.and(guarded(move || drop(instance))))
    }

    /// Builds what another plan names and is not there yet.
    pub(crate) async fn extend(&mut self, plan: &Plan, message: &Arc<InboundMessage>) -> Result<(), Failure> {
        if plan.has_slots() {
            self.slots.put(MESSAGE_SLOT, Arc::clone(message) as _);
            plan.fill(&mut self.slots).await.map_err(failed)?;
        }
        Ok(())
    }
}

fn failed(error: impl Into<BoxError>) -> Failure {
    Failure::of(FailureKind::Scope, error)
}

impl<C> fmt::Debug for Scopes<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::Scoped => "Scoped",
            Self::Foreign(_) => "Foreign",
        })
    }
}
