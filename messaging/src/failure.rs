//! What a handler's run came to when it did not succeed.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt::{self, Write};
use std::time::Duration;

use crate::duration::human;
use crate::error::BoxError;
use crate::message::InboundMessage;
use crate::settlement::Reason;

/// The longest error text that is kept, in bytes.
const LONGEST_TEXT: usize = 1_024;

/// What came of running a handler.
pub type Outcome = Result<(), Failure>;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The handler returned an error, and trying again may help.
    Error,
    /// The handler said that trying again is no use.
    NonRetryable,
    /// The handler panicked.
    Panic,
    /// The handler took longer than it may.
    Timeout,
    /// The consumer, or something that it needs, could not be built for this delivery.
    Scope,
    /// The body is not what its content type says.
    Undecodable,
    /// The body has the wrong shape, or breaks a validation rule.
    Invalid,
    /// No handler matches the message's type.
    NoHandler,
    /// The message came back more often than the policy allows, and was not run again.
    Exhausted,
}

/// Why a message was not handled; retryable unless it says otherwise.
///
/// Anything that becomes a boxed error becomes a failure through `?`: std errors, `anyhow::Error`, `&'static str`, `String`.
/// Like anyhow's error it is no `std::error::Error` itself, which is what makes that conversion possible.
///
/// ```
/// use std::time::Duration;
/// use messaging::Failure;
///
/// fn bill(total: f64) -> Result<(), Failure> {
///     if total < 0.0 {
///         return Err(Failure::non_retryable("negative total"));
///     }
///     "1x".parse::<u32>()?; // any error is a retryable failure
///     Ok(())
/// }
///
/// assert!(!bill(-1.0).unwrap_err().is_retryable());
/// assert!(bill(1.0).unwrap_err().is::<std::num::ParseIntError>());
/// assert_eq!(Failure::retry_after(Duration::from_secs(5)).to_string(), "asked to be retried after 5s");
/// ```
pub struct Failure {
    cause: Cause,
    kind: FailureKind,
    after: Option<Duration>,
}

enum Cause {
    Boxed(BoxError),
    // Kept whole: a boxed anyhow error no longer tells which error is inside it.
    Anyhow(anyhow::Error),
}

/// Says, from deep inside a service, that trying again is no use.
///
/// It is found anywhere in the chain of an error's sources, so that a handler need not know.
///
/// ```
/// use messaging::{Failure, NonRetryable};
///
/// let error = std::io::Error::other(NonRetryable::new("account closed"));
/// assert!(Failure::from(error).is_final());
/// ```
#[derive(Debug)]
pub struct NonRetryable(BoxError);

impl NonRetryable {
    /// Marks an error as one that no retry mends.
    #[must_use]
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for NonRetryable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for NonRetryable {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl Failure {
    /// A failure that no retry mends: the message goes to `#[on_error]` and the dead-letter queue at once.
    #[must_use]
    pub fn non_retryable(error: impl Into<BoxError> + 'static) -> Self {
        Self { kind: FailureKind::NonRetryable, ..Self::from(error) }
    }

    /// A failure that wants the next attempt after that delay, whatever the policy's backoff says.
    ///
    /// The delay is clamped to the longest that the driver can do, with a warning. It uses up an attempt like any other.
    #[must_use]
    pub fn retry_after(delay: Duration) -> Self {
        Self::from(format!("asked to be retried after {}", human(delay))).after(delay)
    }

    /// Wants the next attempt after that delay.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = Some(delay);
        self
    }

    /// A failure of that kind; for the engine.
    pub(crate) fn of(kind: FailureKind, error: impl Into<BoxError>) -> Self {
        Self { cause: Cause::Boxed(error.into()), kind, after: None }
    }

    /// The same error, as a failure of that kind that asks for that delay.
    pub(crate) fn like(self, kind: FailureKind, after: Option<Duration>) -> Self {
        Self { kind, after, ..self }
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether it would be retried if attempts are left; [`is_final`](Self::is_final) also looks for a [`NonRetryable`].
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.reason().is_none()
    }

    /// Whether trying again is no use: it says so itself, or a [`NonRetryable`] is among its sources.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !self.is_retryable() || self.is::<NonRetryable>()
    }

    /// Why there is no retry, where that is so whatever the policy says.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self.kind {
            FailureKind::Error | FailureKind::Panic | FailureKind::Timeout | FailureKind::Scope => None,
            FailureKind::NonRetryable => Some(Reason::NonRetryable),
            FailureKind::Undecodable => Some(Reason::Undecodable),
            FailureKind::Invalid => Some(Reason::Invalid),
            FailureKind::NoHandler => Some(Reason::NoHandler),
            FailureKind::Exhausted => Some(Reason::Exhausted),
        }
    }

    /// The delay that the handler asked for, where it did.
    #[must_use]
    pub fn requested_delay(&self) -> Option<Duration> {
        self.after
    }

    /// Whether the error, or one of its sources, is of that type.
    ///
    /// What hides its type hides it here as well: an `Arc<E>`, an eyre report.
    #[must_use]
    pub fn is<E: StdError + Send + Sync + 'static>(&self) -> bool {
        self.find::<E>().is_some()
    }

    /// The error, or the first of its sources, that is of that type.
    #[must_use]
    pub fn find<E: StdError + Send + Sync + 'static>(&self) -> Option<&E> {
        match &self.cause {
            Cause::Boxed(error) => all_errors(&**error).find_map(|error| error.downcast_ref()),
            // A context is found by anyhow alone, what is below it by walking.
            Cause::Anyhow(error) => error
                .downcast_ref()
                .or_else(|| error.chain().find_map(|error| all_errors(error).find_map(|error| error.downcast_ref()))),
        }
    }

    /// Turns a retryable failure into a final one.
    pub(crate) fn forbid_retry(&mut self) {
        if self.is_retryable() {
            self.kind = FailureKind::NonRetryable;
        }
    }

    /// Notes the rendered error with the message, where nothing is noted yet; user code: to be called behind the wall.
    pub(crate) fn render_once<'m>(&self, message: &'m InboundMessage) -> &'m str {
        message.note_failure_with(|| self.render())
    }

    /// The error with its sources as one line without control characters, of at most 1,024 bytes.
    pub(crate) fn render(&self) -> String {
        let mut line = Line(String::new());
        // A full line stops the writer: whatever else the error had to say is cut off.
        let _ = match &self.cause {
            Cause::Boxed(error) => sources(&**error).enumerate().try_for_each(|(depth, error)| {
                if depth > 0 {
                    line.write_str(": ")?;
                }
                write!(line, "{error}")
            }),
            Cause::Anyhow(error) => write!(line, "{error:#}"),
        };
        line.0
    }
}

/// How many sources of an error are looked at: one may be its own source.
const DEEPEST: usize = 64;

fn sources<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn StdError + 'static)| (*error).source()).take(DEEPEST)
}

/// The errors to look for a type in: the sources, and what an `io::Error` carries, which is not among its sources.
fn all_errors<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn StdError + 'static)| {
        let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        carried.map(|carried| carried as &(dyn StdError + 'static)).or_else(|| (*error).source())
    })
    .take(DEEPEST)
}

/// One line of bounded length.
struct Line(String);

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let character = if character.is_control() { ' ' } else { character };
            if self.0.len() + character.len_utf8() > LONGEST_TEXT {
                return Err(fmt::Error);
            }
            self.0.push(character);
        }
        Ok(())
    }
}

impl<E: Into<BoxError> + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut error = Some(error);
        // Only `anyhow::Error` itself is such an option: it is taken out whole, before the boxing hides its type.
        let anyhow = (&mut error as &mut dyn Any).downcast_mut::<Option<anyhow::Error>>().and_then(Option::take);
        let cause = match (anyhow, error) {
            (Some(error), _) => Cause::Anyhow(error),
            (None, Some(error)) => Cause::Boxed(error.into()),
            (None, None) => Cause::Boxed("no error was given".into()),
        };
        Self { cause, kind: FailureKind::Error, after: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Boxed(error) => error.fmt(f),
            Cause::Anyhow(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure").field("kind", &self.kind).field("error", &self.render()).finish_non_exhaustive()
    }
}
