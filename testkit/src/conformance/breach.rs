use std::fmt;
use std::panic::Location;

/// What a case came to.
pub(crate) type Verdict<T = ()> = Result<T, Breach>;

/// A promise that was not kept: what was seen, and which line of the suite saw it.
#[derive(Debug)]
pub(crate) struct Breach {
    what: String,
    seen_at: &'static Location<'static>,
}

impl Breach {
    #[track_caller]
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::at(what, Location::caller())
    }

    pub(crate) fn at(what: impl Into<String>, seen_at: &'static Location<'static>) -> Self {
        Self { what: what.into(), seen_at }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  seen at {}", self.what, self.seen_at)
    }
}

/// Ends the case unless the condition holds; the text says what was promised and what came instead.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::conformance::breach::Breach::new(format!($($text)+)));
        }
    };
}

/// Ends the case unless both are equal.
macro_rules! ensure_eq {
    ($actual:expr, $expected:expr, $($text:tt)+) => {
        match (&$actual, &$expected) {
            (actual, expected) if *actual == *expected => (),
            (actual, expected) => {
                let what = format!($($text)+);
                let what = format!("{what}: expected {expected:?}, got {actual:?}");
                return Err($crate::conformance::breach::Breach::new(what));
            }
        }
    };
}

pub(crate) use {ensure, ensure_eq};
