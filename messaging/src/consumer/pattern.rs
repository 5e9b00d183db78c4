use std::fmt;

/// A message type in which `*` matches any run of characters, dots and nothing included; case-sensitive.
///
/// ```
/// use messaging::Pattern;
///
/// let pattern = Pattern::new("order.*");
/// assert!(pattern.matches("order.created.v2"));
/// assert!(!pattern.matches("orderXcreated"));
/// assert!(pattern.includes(&Pattern::new("order.*.v2")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

/// Stands for any text that a `*` can match: a character that no message type has.
const ANY: char = '\u{10FFFF}';

impl Pattern {
    /// Reads a pattern; several stars in a row are one.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        let mut normal = String::with_capacity(pattern.len());
        for character in pattern.chars() {
            if !(character == '*' && normal.ends_with('*')) {
                normal.push(character);
            }
        }
        Self(normal)
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is an exact type, without a star.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether it matches a message type. Takes time in the product of both lengths at the very most.
    #[must_use]
    pub fn matches(&self, message_type: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), message_type.as_bytes());
        let (mut at, mut read) = (0, 0);
        // Where the last star is, and how much of the text it has taken so far.
        let mut star = None;
        while read < text.len() {
            if pattern.get(at) == Some(&b'*') {
                star = Some((at, read));
                at += 1;
            } else if pattern.get(at) == Some(&text[read]) {
                at += 1;
                read += 1;
            } else if let Some((position, taken)) = star {
                star = Some((position, taken + 1));
                at = position + 1;
                read = taken + 1;
            } else {
                return false;
            }
        }
        pattern[at..].iter().all(|byte| *byte == b'*')
    }

    /// Whether it matches everything that `other` matches.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        // Only a star of ours can take the stand-in, and one that takes it takes anything.
        self.matches(&other.0.replace('*', ANY.encode_utf8(&mut [0; 4])))
    }

    /// Whether some message type is matched by both.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        // reachable[j]: some text is matched by ours[..i] and theirs[..j].
        let mut reachable = vec![false; theirs.len() + 1];
        reachable[0] = true;
        for j in 0..theirs.len() {
            reachable[j + 1] = reachable[j] && theirs[j] == b'*';
        }
        for byte in ours {
            let mut next = vec![false; theirs.len() + 1];
            next[0] = reachable[0] && *byte == b'*';
            for j in 0..theirs.len() {
                // A star takes nothing, or whatever the other one has at this place.
                next[j + 1] = if *byte == b'*' || theirs[j] == b'*' {
                    reachable[j + 1] || next[j]
                } else {
                    reachable[j] && *byte == theirs[j]
                };
            }
            reachable = next;
        }
        reachable[theirs.len()]
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
