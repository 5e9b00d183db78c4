use std::time::Duration;

use super::Backoff;

/// What a handler asks for when it fails; `#[retry(…)]` writes one.
///
/// It is only asked: boot proves it against the driver and makes a [`RetryPlan`](super::RetryPlan) of it, or refuses.
///
/// ```
/// use std::time::Duration;
/// use messaging::{Backoff, RetryPolicy};
///
/// let policy = RetryPolicy::new(5).delay(Duration::from_secs(1)).max_delay(Duration::from_secs(4));
/// let delays: Vec<_> = (1..5).map(|attempt| policy.delay_after(attempt).as_secs()).collect();
/// assert_eq!(delays, [1, 2, 4, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    attempts: u32,
    backoff: Backoff,
    delay: Duration,
    max_delay: Option<Duration>,
    jitter: f64,
}

impl RetryPolicy {
    /// That many attempts, the first delivery counted; exponential from 1 s without a cap, no jitter.
    #[must_use]
    pub const fn new(attempts: u32) -> Self {
        Self { attempts, backoff: Backoff::Exponential, delay: Duration::from_secs(1), max_delay: None, jitter: 0.0 }
    }

    /// A single attempt.
    #[must_use]
    pub const fn none() -> Self {
        Self::new(1)
    }

    /// How the delay grows.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The delay after the first failed attempt.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The longest delay, before jitter.
    #[must_use]
    pub const fn max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = Some(max_delay);
        self
    }

    /// By how much of itself a delay may be extended, from 0 to 1; it is never shortened.
    #[must_use]
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter;
        self
    }

    /// How many attempts, the first delivery counted.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The delay after the first failed attempt.
    #[must_use]
    pub const fn first_delay(&self) -> Duration {
        self.delay
    }

    /// The longest delay, where there is a cap.
    #[must_use]
    pub const fn longest_delay(&self) -> Option<Duration> {
        self.max_delay
    }

    /// By how much of itself a delay may be extended.
    #[must_use]
    pub const fn jitter_ratio(&self) -> f64 {
        self.jitter
    }

    /// The delay after failed attempt `attempt` (from 1), without jitter; saturates.
    #[must_use]
    pub fn delay_after(&self, attempt: u32) -> Duration {
        let delay = self.backoff.delay_after(attempt, self.delay);
        self.max_delay.map_or(delay, |cap| delay.min(cap))
    }
}

impl Default for RetryPolicy {
    /// 3 attempts, exponential from 1 s, capped at 30 s.
    fn default() -> Self {
        Self::new(3).max_delay(Duration::from_secs(30))
    }
}
