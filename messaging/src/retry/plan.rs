use std::collections::BTreeSet;
use std::time::Duration;

use super::RetryPolicy;
use crate::capabilities::Capabilities;
use crate::duration::human;
use crate::message::Attempt;
use crate::settlement::Step;
use crate::violation::{Violation, ViolationKind};

/// Which of the four values that a jittered delay can take is meant.
///
/// Four and not a continuum: a broker that needs a queue for each delay must be able to declare them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter(u8);

impl Jitter {
    /// All four, from none to the whole.
    pub const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// One of the four, chosen by any number.
    #[must_use]
    pub fn of(number: u8) -> Self {
        Self(number % 4)
    }
}

/// A policy that a driver can honour, delay by delay.
///
/// ```
/// use std::time::Duration;
/// use messaging::{Attempt, Jitter, RetryPlan, RetryPolicy, Step};
/// use messaging_memory::capabilities;
///
/// let policy = RetryPolicy::new(6).delay(Duration::from_secs(3600));
/// let refused = RetryPlan::prove(&policy, &capabilities::SQS).unwrap_err();
/// assert_eq!(refused.problem(), "the retry after attempt 5 wants a delay of 16h, and the driver can delay at most 11h 59min");
///
/// let plan = RetryPlan::prove(&policy, &capabilities::RABBITMQ)?;
/// assert_eq!(plan.step(Attempt::FIRST, Jitter::default()), Some(Step::Native(Duration::from_secs(3600))));
/// # Ok::<(), messaging::Violation>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPlan {
    policy: RetryPolicy,
    max_in_process: Duration,
    ceiling: Duration,
}

/// No queue needs more different delays than this; a plan with more is a mistake.
const MOST_NATIVE_DELAYS: usize = 64;

/// The delay of an exponential backoff has saturated, or met its cap, long before this attempt.
const LAST_DISTINCT_ATTEMPT: u32 = 128;

impl RetryPlan {
    /// Proves the policy against what the driver can do.
    ///
    /// # Errors
    /// The first thing that is wrong in the policy, or the first attempt whose delay the driver cannot honour; the
    /// violation names no subject yet.
    pub fn prove(policy: &RetryPolicy, capabilities: &Capabilities) -> Result<Self, Violation> {
        let refuse = |problem: String, fix: &str| Err(Violation::new(ViolationKind::Retry, problem, fix));
        let jitter = policy.jitter_ratio();
        if policy.attempts() == 0 {
            return refuse(
                "`attempts` is 0, and the first delivery counts".into(),
                "set `attempts` to 1 or more; 1 is a single attempt without a retry",
            );
        }
        if let Some(cap) = policy.longest_delay().filter(|cap| *cap < policy.first_delay()) {
            return refuse(
                format!("`max_delay` ({}) is smaller than `delay` ({})", human(cap), human(policy.first_delay())),
                "raise `max_delay`, or lower `delay`",
            );
        }
        if !(0.0..=1.0).contains(&jitter) {
            return refuse(
                format!("`jitter` is {jitter}"),
                "set `jitter` to a number from 0 to 1, the part of a delay that may be added to it",
            );
        }
        let plan = Self {
            policy: *policy,
            max_in_process: capabilities.max_in_process_delay,
            ceiling: capabilities.longest_delay(),
        };
        for attempt in plan.distinct_attempts() {
            let delay = plan.delay(attempt, Jitter(3));
            if delay > plan.ceiling {
                let with_jitter = if jitter > 0.0 { " (jitter included)" } else { "" };
                return refuse(
                    format!(
                        "the retry after attempt {attempt} wants a delay of {}{with_jitter}, and the driver can delay at most {}",
                        human(delay),
                        human(plan.ceiling)
                    ),
                    "lower `max_delay`, `delay` or `attempts`, or choose a driver that can",
                );
            }
        }
        let native = plan.native_delays().len();
        if native > MOST_NATIVE_DELAYS {
            return refuse(
                format!(
                    "the policy has {native} different delays, and {MOST_NATIVE_DELAYS} are the most for one handler"
                ),
                "cap the growth with `max_delay`, or leave `jitter` out",
            );
        }
        Ok(plan)
    }

    /// How many attempts there are, the first delivery counted.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.policy.attempts()
    }

    /// Whether this attempt may run at all.
    #[must_use]
    pub fn admits(&self, attempt: Attempt) -> bool {
        attempt.get() <= self.attempts()
    }

    /// How the retry after that failed attempt is waited for; none after the last.
    #[must_use]
    pub fn step(&self, failed: Attempt, jitter: Jitter) -> Option<Step> {
        (failed.get() < self.attempts()).then(|| self.route(self.delay(failed.get(), jitter)))
    }

    /// How a delay that a handler asked for is waited for, and whether it had to be clamped.
    #[must_use]
    pub fn requested(&self, failed: Attempt, delay: Duration) -> Option<(Step, bool)> {
        (failed.get() < self.attempts()).then(|| (self.route(delay.min(self.ceiling)), delay > self.ceiling))
    }

    /// Every delay that the broker must be able to hold for this plan.
    #[must_use]
    pub fn native_delays(&self) -> BTreeSet<Duration> {
        let jitters = if self.policy.jitter_ratio() > 0.0 { &Jitter::ALL[..] } else { &Jitter::ALL[..1] };
        self.distinct_attempts()
            .flat_map(|attempt| jitters.iter().map(move |jitter| self.delay(attempt, *jitter)))
            .filter(|delay| matches!(self.route(*delay), Step::Native(_)))
            .collect()
    }

    /// The sum of all delays of the plan, jitter included: what a message's life must exceed. Saturates.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let retries = self.attempts() - 1;
        let grown = self.distinct_attempts().map(|attempt| self.delay(attempt, Jitter(3)));
        let sum = grown.fold(Duration::ZERO, Duration::saturating_add);
        let rest = retries.saturating_sub(LAST_DISTINCT_ATTEMPT);
        sum.saturating_add(self.delay(LAST_DISTINCT_ATTEMPT, Jitter(3)).saturating_mul(rest))
    }

    /// The longest delay that the driver can do; what a handler asks for is clamped to it.
    #[must_use]
    pub fn ceiling(&self) -> Duration {
        self.ceiling
    }

    /// Whether delays are extended by chance.
    #[must_use]
    pub fn has_jitter(&self) -> bool {
        self.policy.jitter_ratio() > 0.0
    }

    fn delay(&self, failed: u32, jitter: Jitter) -> Duration {
        let delay = self.policy.delay_after(failed);
        if jitter.0 == 0 || self.policy.jitter_ratio() == 0.0 {
            return delay;
        }
        let part = self.policy.jitter_ratio() * f64::from(jitter.0) / 3.0;
        // Whole milliseconds, so that the set of delays is the same on every machine.
        let extra = Duration::try_from_secs_f64(delay.as_secs_f64() * part).unwrap_or(Duration::MAX);
        delay.saturating_add(Duration::from_millis(u64::try_from(extra.as_millis()).unwrap_or(u64::MAX)))
    }

    fn route(&self, delay: Duration) -> Step {
        if delay <= self.max_in_process { Step::InProcess(delay) } else { Step::Native(delay) }
    }

    /// The failed attempts that a retry can follow, up to where delays no longer change.
    fn distinct_attempts(&self) -> std::ops::Range<u32> {
        1..self.attempts().min(LAST_DISTINCT_ATTEMPT + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::{DeliveryCount, Order};

    const ONLY_IN_PROCESS: Capabilities = Capabilities {
        native_delay: false,
        max_native_delay: Duration::ZERO,
        native_delay_granularity: Duration::ZERO,
        max_in_process_delay: Duration::MAX,
        delivery_count: DeliveryCount::Failures,
        release_counts: false,
        crash_counts: true,
        max_run: None,
        max_publish_delay: Duration::MAX,
        order: Order::Queue,
        keys: false,
        max_message_size: None,
        max_headers: None,
    };

    #[test]
    fn four_billion_attempts_are_proven_in_no_time_and_waited_for_without_overflow() {
        let policy = RetryPolicy::new(u32::MAX).max_delay(Duration::from_secs(3));
        let plan = RetryPlan::prove(&policy, &ONLY_IN_PROCESS).expect("capped");
        assert_eq!(plan.step(Attempt::new(u32::MAX - 1), Jitter(0)), Some(Step::InProcess(Duration::from_secs(3))));
        assert_eq!(plan.step(Attempt::new(u32::MAX), Jitter(0)), None);
        assert_eq!(plan.longest_wait(), Duration::from_secs(1 + 2 + 3 * (u64::from(u32::MAX) - 3)));
    }

    #[test]
    fn jitter_extends_a_delay_and_never_shortens_it() {
        let plan = RetryPlan::prove(&RetryPolicy::new(2).jitter(0.2), &ONLY_IN_PROCESS).expect("fine");
        let delays = Jitter::ALL.map(|jitter| plan.step(Attempt::FIRST, jitter).expect("a retry").delay().as_millis());
        assert_eq!(delays, [1_000, 1_066, 1_133, 1_200]);
    }
}
