use std::fmt;

use uuid::Uuid;

use crate::text::Text;

/// Identifies a message, on every copy of it; consumers deduplicate by it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Text);

impl MessageId {
    /// Takes an id that exists already.
    #[must_use]
    pub fn new(id: impl Into<Text>) -> Self {
        Self(id.into())
    }

    /// Makes a new id: a version 7 UUID, which sorts by the time it was made at.
    #[must_use]
    pub fn random() -> Self {
        let mut text = Uuid::encode_buffer();
        Self(Text::from(&*Uuid::now_v7().hyphenated().encode_lower(&mut text)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for MessageId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for MessageId {
    fn from(id: String) -> Self {
        Self::new(id)
    }
}

impl PartialEq<str> for MessageId {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for MessageId {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}
