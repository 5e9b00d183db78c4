//! The headers of a message.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

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
