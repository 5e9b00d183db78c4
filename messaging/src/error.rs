//! What a driver or a publish reports.

use std::error::Error as StdError;
use std::fmt;

/// Any error, boxed.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What kind of thing went wrong; callers choose what to do by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option or an argument is wrong; trying again changes nothing.
    Config,
    /// There is no usable connection; nothing was sent.
    Connection,
    /// The broker refused it; it is surely not stored.
    Rejected,
    /// It was sent, and no answer came: it may be stored, or not.
    Unconfirmed,
    /// No queue of that name took it; it is not stored.
    Unroutable,
    /// It is larger than the broker or queue allows.
    TooLarge,
    /// This driver cannot do what was asked.
    Unsupported,
    /// The payload could not be encoded.
    Codec,
    /// The driver is not connected yet, or closed.
    Closed,
}

impl ErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::Config => "wrong configuration",
            Self::Connection => "no connection",
            Self::Rejected => "rejected by the broker",
            Self::Unconfirmed => "not confirmed by the broker, may have been accepted",
            Self::Unroutable => "unroutable",
            Self::TooLarge => "too large",
            Self::Unsupported => "not supported by this driver",
            Self::Codec => "cannot be encoded",
            Self::Closed => "closed",
        }
    }
}

/// What `publish`, `connect` and a settlement report: a kind, what was tried, and the cause.
///
/// ```
/// use messaging::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Connection, "cannot publish to `orders`");
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "no connection: cannot publish to `orders`");
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    context: String,
    source: Option<BoxError>,
}

impl Error {
    /// An error of that kind; the context says what was tried, and what to change where that is known.
    #[must_use]
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether trying again, unchanged, can succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ErrorKind::Connection | ErrorKind::Rejected | ErrorKind::Unconfirmed | ErrorKind::Unroutable => true,
            ErrorKind::Config | ErrorKind::TooLarge | ErrorKind::Unsupported | ErrorKind::Codec | ErrorKind::Closed => {
                false
            }
        }
    }

    /// The error with all its causes on one line, for logs.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.text(), self.context)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// An error and its sources on one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    // An error may be its own source: there is an end to it all the same.
    for _ in 0..64 {
        let Some(source) = next else { break };
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
