use std::time::Duration;

use messaging::{Attempt, Capabilities};

/// What counts as an attempt, and what a broker's delay is rounded up to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    crash: bool,
    release: bool,
    granularity: Duration,
}

/// How a delivery ended that was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The broker did not take its settlement.
    Refused,
    /// Its settler was dropped.
    Dropped,
    /// The connection was lost under it.
    Crashed,
}

impl Counting {
    pub(crate) fn of(capabilities: &Capabilities) -> Self {
        Self {
            crash: capabilities.crash_counts,
            release: capabilities.release_counts,
            granularity: capabilities.native_delay_granularity,
        }
    }

    /// The attempt after a release.
    pub(crate) fn released(&self, attempt: Attempt) -> Attempt {
        if self.release { attempt.next() } else { attempt }
    }

    /// The attempt after a delivery that was not settled; one that never started is never charged.
    pub(crate) fn ended(&self, ending: Ending, started: bool, attempt: Attempt) -> Attempt {
        let counts = match ending {
            Ending::Refused => false,
            Ending::Dropped => self.crash || self.release,
            Ending::Crashed => self.crash,
        };
        if counts && started { attempt.next() } else { attempt }
    }

    /// A delay as the broker waits for it.
    pub(crate) fn native(&self, delay: Duration) -> Duration {
        let step = self.granularity.as_nanos();
        if step == 0 {
            return delay;
        }
        let nanos = delay.as_nanos().div_ceil(step).saturating_mul(step);
        u64::try_from(nanos).map_or(delay, Duration::from_nanos)
    }
}
