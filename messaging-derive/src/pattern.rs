//! Which of two message types or patterns is the more specific, as `messaging::Pattern` sees it.

/// Stands for any text that a `*` can match: a character that no message type has.
const ANY: char = '\u{10FFFF}';

/// A message type in which `*` matches any run of characters; several stars in a row are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(pattern: &str) -> Self {
        let mut normal = String::with_capacity(pattern.len());
        for character in pattern.chars() {
            if !(character == '*' && normal.ends_with('*')) {
                normal.push(character);
            }
        }
        Self(normal)
    }

    fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether some type is matched by both, and neither is the more specific.
    pub(crate) fn is_ambiguous_with(&self, other: &Self) -> bool {
        !self.is_exact()
            && !other.is_exact()
            && self.intersects(other)
            && !self.includes(other)
            && !other.includes(self)
    }

    fn includes(&self, other: &Self) -> bool {
        // Only a star of ours can take the stand-in, and one that takes it takes anything.
        self.matches(&other.0.replace('*', ANY.encode_utf8(&mut [0; 4])))
    }

    fn matches(&self, message_type: &str) -> bool {
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

    fn intersects(&self, other: &Self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_patterns_are_ambiguous_where_they_intersect_and_neither_includes_the_other() {
        let table = [
            ("a*", "*b", true),
            ("x.*.y", "x.a*", true),
            ("*a*", "*b*", true),
            ("a*b*c", "a*c*c", true),
            ("order.*.v2", "order.created.*", true),
            ("a*", "b*", false),
            ("a.*", "a.b.*", false),
            ("*", "a*", false),
            ("*a*", "a*", false),
            ("a*", "a**", false),
            ("a*", "abc", false),
            ("abc", "abd", false),
            ("*a", "*b", false),
            ("é*", "*é", true),
        ];
        for (left, right, ambiguous) in table {
            let (left, right) = (Pattern::new(left), Pattern::new(right));
            assert_eq!(left.is_ambiguous_with(&right), ambiguous, "{left:?} {right:?}");
            assert_eq!(right.is_ambiguous_with(&left), ambiguous, "{right:?} {left:?}");
        }
    }

    #[test]
    fn several_stars_in_a_row_are_one() {
        assert_eq!(Pattern::new("a**b***"), Pattern::new("a*b*"));
    }
}
