//! The names of the library's own headers.

use std::sync::Arc;

use crate::headers::Headers;
use crate::message::Attempt;

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
