use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use arrayvec::ArrayString;

/// The longest text that is kept in place: a UUID has 36 bytes.
const INLINE: usize = 40;

/// Short, unchanging text: an id or a message type. Up to 40 bytes need no allocation; it derefs to `str`.
///
/// A message is made by one task and dropped by another, long after: each allocation that it carries costs twice.
///
/// ```
/// use messaging::Text;
///
/// let text = Text::from("order.created");
/// assert_eq!(text, "order.created");
/// assert!(text.starts_with("order."));
/// ```
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Inline(ArrayString<INLINE>),
    Shared(Arc<str>),
}

impl Text {
    /// The text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Inline(text) => text,
            Repr::Shared(text) => text,
        }
    }
}

impl From<&str> for Text {
    #[inline]
    fn from(text: &str) -> Self {
        Self(ArrayString::from(text).map_or_else(|_| Repr::Shared(Arc::from(text)), Repr::Inline))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self(ArrayString::from(&text).map_or_else(|_| Repr::Shared(Arc::clone(&text)), Repr::Inline))
    }
}

impl Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_length_reads_and_compares_as_it_was_given() {
        for length in [0, 1, INLINE, INLINE + 1, 1_000] {
            let given = "ä".repeat(length / 2) + &"x".repeat(length % 2);
            let texts = [Text::from(&*given), Text::from(given.clone()), Text::from(Arc::<str>::from(&*given))];
            for text in texts {
                assert_eq!(text, *given);
                assert_eq!(text, text.clone());
            }
        }
        let mut texts = [Text::from("b".repeat(100)), Text::from("a")];
        texts.sort();
        assert_eq!(texts[0], "a");
    }
}
