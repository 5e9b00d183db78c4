use std::cmp::Reverse;

use super::pattern::Pattern;
use crate::violation::{Violation, ViolationKind};

/// Finds the handler of a message type: the exact one, else the most specific pattern, else the default.
#[derive(Debug)]
pub(crate) struct Router {
    /// Sorted by length, then by text: most types are told apart by their length.
    exact: Vec<(Box<str>, usize)>,
    /// The most specific first.
    patterns: Vec<(Pattern, usize)>,
    default: Option<usize>,
}

impl Router {
    /// Sorts handlers by what they match; refuses two that could match the same type with equal right.
    pub(crate) fn new<'h>(handlers: impl Iterator<Item = (&'h str, Option<&'h str>)>) -> Result<Self, Vec<Violation>> {
        let mut router = Self { exact: Vec::new(), patterns: Vec::new(), default: None };
        let mut violations = Vec::new();
        let mut names = Vec::new();
        for (index, (name, pattern)) in handlers.enumerate() {
            names.push(name);
            if let Some(other) = router.add(index, pattern.filter(|pattern| !pattern.is_empty()), &mut violations) {
                let what =
                    pattern.map_or("are both the default handler".into(), |pattern| format!("both handle `{pattern}`"));
                violations.push(Violation::new(
                    ViolationKind::Handlers,
                    format!("`{}` and `{name}` {what}", names[other]),
                    "keep one of the two, or give one a type of its own",
                ));
            }
        }
        router.refuse_ambiguous(&names, &mut violations);
        // Of two that can match the same type one includes the other: it has fewer letters, or as many and more stars.
        router.patterns.sort_by_cached_key(|(pattern, _)| {
            let stars = pattern.as_str().matches('*').count();
            (Reverse(pattern.as_str().len() - stars), stars, pattern.as_str().to_owned())
        });
        if violations.is_empty() { Ok(router) } else { Err(violations) }
    }

    /// Adds a handler; the index of one that stands in its place already.
    fn add(&mut self, index: usize, pattern: Option<&str>, violations: &mut Vec<Violation>) -> Option<usize> {
        let Some(text) = pattern else {
            let other = self.default;
            self.default = other.or(Some(index));
            return other;
        };
        let pattern = Pattern::new(text);
        if text.contains('\u{10FFFF}') {
            violations.push(Violation::new(
                ViolationKind::Handlers,
                format!("`{text}` has a character that no type has"),
                "remove it",
            ));
        }
        if pattern.is_exact() {
            match self.find_exact(text) {
                Ok(position) => Some(self.exact[position].1),
                Err(position) => {
                    self.exact.insert(position, (text.into(), index));
                    None
                }
            }
        } else if let Some((_, other)) = self.patterns.iter().find(|(known, _)| *known == pattern) {
            Some(*other)
        } else {
            self.patterns.push((pattern, index));
            None
        }
    }

    fn refuse_ambiguous(&self, names: &[&str], violations: &mut Vec<Violation>) {
        for (position, (left, one)) in self.patterns.iter().enumerate() {
            for (right, other) in &self.patterns[position + 1..] {
                if left.intersects(right) && !left.includes(right) && !right.includes(left) {
                    violations.push(Violation::new(
                        ViolationKind::Handlers,
                        format!(
                            "some types match both `{left}` of `{}` and `{right}` of `{}`, and neither is the more specific",
                            names[*one], names[*other]
                        ),
                        "narrow one of the two patterns, or handle the types they share in one handler",
                    ));
                }
            }
        }
    }

    fn find_exact(&self, text: &str) -> Result<usize, usize> {
        self.exact.binary_search_by(|(known, _)| known.len().cmp(&text.len()).then_with(|| (**known).cmp(text)))
    }

    /// The handler for a message of that type.
    pub(crate) fn route(&self, message_type: Option<&str>) -> Option<usize> {
        let Some(message_type) = message_type else { return self.default };
        if let Ok(position) = self.find_exact(message_type) {
            return Some(self.exact[position].1);
        }
        let pattern = self.patterns.iter().find(|(pattern, _)| pattern.matches(message_type));
        pattern.map(|(_, index)| *index).or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(patterns: &[Option<&'static str>]) -> Result<Router, Vec<Violation>> {
        Router::new(patterns.iter().map(|pattern| ("handler", *pattern)))
    }

    #[test]
    fn exact_beats_pattern_beats_default_in_any_order() {
        let declared = [None, Some("*"), Some("order.*"), Some("order.*.v2"), Some("order.created")];
        for rotation in 0..declared.len() {
            let mut order = declared;
            order.rotate_left(rotation);
            let router = router(&order).expect("no conflict");
            let chosen = |message_type| router.route(message_type).map(|index| order[index]);
            assert_eq!(chosen(Some("order.created")), Some(Some("order.created")));
            assert_eq!(chosen(Some("order.created.v2")), Some(Some("order.*.v2")));
            assert_eq!(chosen(Some("order.cancelled")), Some(Some("order.*")));
            assert_eq!(chosen(Some("orderXcreated")), Some(Some("*")));
            assert_eq!(chosen(None), Some(None));
        }
    }

    #[test]
    fn the_narrower_pattern_is_chosen_where_the_wider_is_longer() {
        let declared = [Some("*a*"), Some("a*")];
        let router = router(&declared).expect("one includes the other");
        assert_eq!(router.route(Some("ab")).map(|index| declared[index]), Some(Some("a*")));
        assert_eq!(router.route(Some("ba")).map(|index| declared[index]), Some(Some("*a*")));
    }

    #[test]
    fn equal_right_is_refused() {
        for pair in [
            [Some("a"), Some("a")],
            [None, None],
            [Some("a*"), Some("a**")],
            [Some("a*"), Some("*b")],
            [Some("x.*.y"), Some("x.a*")],
        ] {
            assert!(router(&pair).is_err(), "{pair:?}");
        }
        for pair in [[Some("a*"), Some("b*")], [Some("a.*"), Some("a.b.*")], [Some("a*"), Some("a")]] {
            assert!(router(&pair).is_ok(), "{pair:?}");
        }
    }

    #[test]
    fn a_type_made_of_stars_is_matched_without_delay() {
        let router = router(&[Some("*a*b*c*d*e*f*g*"), None]).expect("no conflict");
        assert_eq!(router.route(Some(&"*a".repeat(5_000))), Some(1));
    }
}
