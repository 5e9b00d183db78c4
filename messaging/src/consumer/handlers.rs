use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::extract::MessageContext;
use crate::app::Key;
use crate::failure::{Failure, Outcome};
use crate::retry::RetryPolicy;

/// A boxed future.
pub type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// The handlers of a consumer; `#[handlers]` writes them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handlers",
    label = "a consumer without handlers",
    note = "put `#[handlers]` on an impl block of `{Self}` with at least one `#[on_message]` method"
)]
pub trait Handlers: Sized + Send + Sync + 'static {
    /// The table of handlers.
    fn table() -> HandlerTable<Self>;
}

/// The handlers of a consumer, in the order they are written.
pub struct HandlerTable<C> {
    pub(crate) handlers: Vec<HandlerEntry<C>>,
    pub(crate) on_error: Option<OnErrorEntry<C>>,
}

impl<C> HandlerTable<C> {
    /// No handlers.
    #[must_use]
    pub const fn new() -> Self {
        Self { handlers: Vec::new(), on_error: None }
    }

    /// Adds a handler.
    #[must_use]
    pub fn handler(mut self, handler: HandlerEntry<C>) -> Self {
        self.handlers.push(handler);
        self
    }

    /// Sets the method that runs when a message will not be retried any more.
    #[must_use]
    pub fn on_error(mut self, requires: fn(&mut Vec<Key>), run: RunOnError<C>) -> Self {
        self.on_error = Some(OnErrorEntry { requires, run });
        self
    }
}

impl<C> fmt::Debug for HandlerTable<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerTable")
            .field("handlers", &self.handlers)
            .field("on_error", &self.on_error.is_some())
            .finish()
    }
}

impl<C> Default for HandlerTable<C> {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs a handler with what it takes from the message.
pub type Run<C> = for<'m> fn(&'m C, MessageContext<'m>) -> BoxFuture<'m, Outcome>;

/// Runs `#[on_error]`.
pub type RunOnError<C> = for<'m> fn(&'m C, &'m Failure, MessageContext<'m>) -> BoxFuture<'m, Result<OnError, Failure>>;

/// One handler.
pub struct HandlerEntry<C> {
    pub(crate) name: &'static str,
    pub(crate) pattern: Option<&'static str>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) filter: RetryFilter,
    pub(crate) timeout: Option<Duration>,
    pub(crate) requires: fn(&mut Vec<Key>),
    pub(crate) run: Run<C>,
}

impl<C> HandlerEntry<C> {
    /// A default handler: for messages without a more specific match.
    #[must_use]
    pub fn new(name: &'static str, requires: fn(&mut Vec<Key>), run: Run<C>) -> Self {
        Self { name, pattern: None, retry: None, filter: RetryFilter::default(), timeout: None, requires, run }
    }

    /// Handles that message type, or that pattern, in which `*` matches anything.
    #[must_use]
    pub fn pattern(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    /// Retries by this policy instead of the application's default.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Retries only some errors.
    #[must_use]
    pub fn filter(mut self, filter: RetryFilter) -> Self {
        self.filter = filter;
        self
    }

    /// How long a run may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl<C> fmt::Debug for HandlerEntry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerEntry")
            .field("name", &self.name)
            .field("pattern", &self.pattern)
            .field("retry", &self.retry)
            .field("filter", &self.filter)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

pub(crate) struct OnErrorEntry<C> {
    pub(crate) requires: fn(&mut Vec<Key>),
    pub(crate) run: RunOnError<C>,
}

/// Which errors of a handler are retried; `never` beats `on`, and a failure that names a delay passes `on`.
///
/// Panics, timeouts and failures to build the scope are retried whatever a filter says.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryFilter {
    /// Only errors for which it is true are retried.
    pub on: Option<fn(&Failure) -> bool>,
    /// Errors for which it is true are not.
    pub never: Option<fn(&Failure) -> bool>,
}

impl RetryFilter {
    pub(crate) fn allows(&self, failure: &Failure) -> bool {
        // Who names a delay wants a retry, whatever errors are named.
        let wanted = failure.requested_delay().is_some() || self.on.is_none_or(|on| on(failure));
        wanted && !self.never.is_some_and(|never| never(failure))
    }
}

/// What `#[on_error]` wants done with the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// A copy of it goes to the dead-letter queue.
    #[default]
    DeadLetter,
    /// It is dropped.
    Discard,
}

/// What a handler may return: `()`, or `Result<(), E>` of anything that becomes a [`Failure`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a handler returns",
    label = "not a handler's result",
    note = "return `()`, or `Result<(), E>` where `E` is `Failure`, a type that implements `Error`, `anyhow::Error`, `String`, or `Box<dyn Error + Send + Sync>`"
)]
pub trait HandlerResult {
    /// As the dispatcher sees it.
    fn into_outcome(self) -> Outcome;
}

impl HandlerResult for () {
    fn into_outcome(self) -> Outcome {
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<Failure>> HandlerResult for Result<(), E> {
    fn into_outcome(self) -> Outcome {
        self.map_err(Into::into)
    }
}

/// What `#[on_error]` may return: `()`, [`OnError`], or a `Result` of either.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what `#[on_error]` returns",
    label = "not a result of `#[on_error]`",
    note = "return `()`, `OnError`, or a `Result` of either"
)]
pub trait OnErrorResult {
    /// As the dispatcher sees it.
    ///
    /// # Errors
    /// The method failed; the message is dead-lettered.
    fn into_answer(self) -> Result<OnError, Failure>;
}

impl OnErrorResult for () {
    fn into_answer(self) -> Result<OnError, Failure> {
        Ok(OnError::DeadLetter)
    }
}

impl OnErrorResult for OnError {
    fn into_answer(self) -> Result<OnError, Failure> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: OnErrorResult, E: Into<Failure>> OnErrorResult for Result<T, E> {
    fn into_answer(self) -> Result<OnError, Failure> {
        self.map_err(Into::into)?.into_answer()
    }
}
