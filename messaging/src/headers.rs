//! The headers of a message, and the names of the library's own.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::message::Attempt;

/// What a header holds: text, bytes that are not text, or nothing.
///
/// Brokers know more types (AMQP has a dozen). A number or a boolean arrives as the text of it; the type itself travels
/// in the message's native part, so that a copy keeps it.
#[derive(Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// Text.
    Text(Arc<str>),
    /// Bytes that are not UTF-8.
    Binary(Bytes),
    /// The header is there, and has no value.
    Null,
}

impl HeaderValue {
    /// The text, where it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Binary(_) | Self::Null => None,
        }
    }

    /// The bytes; a null has none.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Binary(bytes) => Some(bytes),
            Self::Null => None,
        }
    }

    /// Text where the bytes are UTF-8, else binary.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(Arc::from(text)),
            Err(_) => Self::Binary(Bytes::copy_from_slice(bytes)),
        }
    }
}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => fmt::Debug::fmt(text, f),
            Self::Binary(bytes) => fmt::Debug::fmt(bytes, f),
            Self::Null => f.write_str("null"),
        }
    }
}

impl<T: Into<Arc<str>>> From<T> for HeaderValue {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// The headers of a message, in the order they were given.
///
/// Names are compared to the letter, as AMQP and Kafka compare them. A name may occur more than once (Kafka allows it):
/// [`get`](Self::get) gives the last, as Kafka's own client does, and [`get_all`](Self::get_all) all of them.
///
/// ```
/// use messaging::Headers;
///
/// let mut headers = Headers::new();
/// headers.insert("tenant", "acme");
/// assert_eq!(headers.text("tenant"), Some("acme"));
/// assert_eq!(headers.text("Tenant"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Arc<str>, HeaderValue)>);

impl Headers {
    /// No headers; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The last value under that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&HeaderValue> {
        self.0.iter().rev().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Every value under that name, in order.
    pub fn get_all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h HeaderValue> {
        self.0.iter().filter(move |(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// The last value under that name, where it is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(HeaderValue::as_text)
    }

    /// Sets a header; whatever stood under that name goes.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, value: impl Into<HeaderValue>) {
        let name = name.into();
        self.remove(&name);
        self.0.push((name, value.into()));
    }

    /// Adds a header beside those that stand under that name already.
    pub fn append(&mut self, name: impl Into<Arc<str>>, value: impl Into<HeaderValue>) {
        self.0.push((name.into(), value.into()));
    }

    /// Removes every header of that name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| **known != *name);
    }

    /// Every header, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HeaderValue)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of all names and values.
    #[must_use]
    pub fn size(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.as_bytes().map_or(0, <[u8]>::len)).sum()
    }
}

impl<N: Into<Arc<str>>, V: Into<HeaderValue>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        Self(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// The prefix of every header and helper queue of the library, unless an option says otherwise.
pub const DEFAULT_PREFIX: &str = "znight";

/// The names of the library's own headers, all under one prefix.
///
/// ```
/// use messaging::WireNames;
///
/// assert_eq!(WireNames::default().attempt(), "x-znight-attempt");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireNames {
    prefix: Arc<str>,
    attempt: Arc<str>,
    reason: Arc<str>,
    error: Arc<str>,
    original_queue: Arc<str>,
    attempts: Arc<str>,
}

impl WireNames {
    /// The names under `x-<prefix>-`.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let name = |what: &str| Arc::from(format!("x-{prefix}-{what}"));
        Self {
            prefix: Arc::from(format!("x-{prefix}-")),
            attempt: name("attempt"),
            reason: name("dead-letter-reason"),
            error: name("error"),
            original_queue: name("original-queue"),
            attempts: name("attempts"),
        }
    }

    /// What every name starts with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// On a retry copy: which attempt it is.
    #[must_use]
    pub fn attempt(&self) -> &str {
        &self.attempt
    }

    /// On a dead letter: why it is one.
    #[must_use]
    pub fn dead_letter_reason(&self) -> &str {
        &self.reason
    }

    /// On a dead letter: the error, as text of at most 1,024 bytes.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.error
    }

    /// On a dead letter: the queue it was consumed from.
    #[must_use]
    pub fn original_queue(&self) -> &str {
        &self.original_queue
    }

    /// On a dead letter: how many attempts it had.
    #[must_use]
    pub fn attempts(&self) -> &str {
        &self.attempts
    }

    /// Whether the library keeps that name for itself.
    #[must_use]
    pub fn reserves(&self, header: &str) -> bool {
        header.get(..self.prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(&self.prefix))
    }

    /// The attempt that a copy's header names; for drivers, on their own copies only.
    ///
    /// Whatever is not a number from 1 to `u32::MAX` counts as the first attempt, with a warning.
    #[must_use]
    pub fn read_attempt(&self, headers: &Headers) -> Attempt {
        let Some(value) = headers.get(&self.attempt) else { return Attempt::FIRST };
        match value.as_text().and_then(|text| text.parse::<u32>().ok()).filter(|number| *number > 0) {
            Some(number) => Attempt::new(number),
            None => {
                tracing::warn!(header = %self.attempt, ?value, "not an attempt number, counts as the first attempt");
                Attempt::FIRST
            }
        }
    }
}

impl Default for WireNames {
    fn default() -> Self {
        Self::new(DEFAULT_PREFIX)
    }
}
