//! What becomes of a delivery, as a plain value.

use std::fmt;
use std::time::Duration;

use crate::message::Attempt;

/// Why a message will not be retried any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Every attempt that the policy allows has failed.
    Exhausted,
    /// The handler said that trying again is no use.
    NonRetryable,
    /// The body is not what its content type says.
    Undecodable,
    /// The body decodes to the wrong shape, or breaks a validation rule.
    Invalid,
    /// No handler matches the message's type, and there is no default handler.
    NoHandler,
}

impl Reason {
    /// The word that the dead letter's header carries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::NonRetryable => "non-retryable",
            Self::Undecodable => "undecodable",
            Self::Invalid => "invalid",
            Self::NoHandler => "no-handler",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a retry is waited for, as proven at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The driver holds the message back, then hands it to the broker again.
    InProcess(Duration),
    /// The broker holds the message back.
    Native(Duration),
}

impl Step {
    /// How long the retry waits.
    #[must_use]
    pub fn delay(self) -> Duration {
        match self {
            Self::InProcess(delay) | Self::Native(delay) => delay,
        }
    }
}

/// What a driver is told to do with a delivery, once.
///
/// ```
/// use std::time::Duration;
/// use messaging::{Attempt, Settlement, Step};
///
/// let settlement = Settlement::retry(Duration::from_secs(1), 2);
/// assert_eq!(settlement, Settlement::Retry { step: Step::InProcess(Duration::from_secs(1)), attempt: Attempt::new(2) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It is done; the broker may forget it.
    Ack,
    /// It failed for good and is dropped on purpose; the broker may forget it.
    Discard(Reason),
    /// Deliver it again, as that attempt, when the step's delay is over.
    Retry {
        /// How the wait is carried out.
        step: Step,
        /// Which attempt the next delivery is.
        attempt: Attempt,
    },
    /// Give it back as it came: not handled, no attempt used where the broker allows that.
    Release {
        /// How long the broker should hold it back, where it can.
        delay: Duration,
    },
    /// Its dead-letter copy is confirmed; the broker may forget it.
    DeadLetter(Reason),
}

impl Settlement {
    /// A retry that the driver waits for in process.
    #[must_use]
    pub fn retry(delay: Duration, attempt: u32) -> Self {
        Self::Retry { step: Step::InProcess(delay), attempt: Attempt::new(attempt) }
    }

    /// A retry that the broker waits for.
    #[must_use]
    pub fn native_retry(delay: Duration, attempt: u32) -> Self {
        Self::Retry { step: Step::Native(delay), attempt: Attempt::new(attempt) }
    }

    /// The word for logs and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Discard(_) => "discard",
            Self::Retry { .. } => "retry",
            Self::Release { .. } => "release",
            Self::DeadLetter(_) => "dead-letter",
        }
    }
}
