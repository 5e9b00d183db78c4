use crate::failure::Outcome;
use crate::message::Attempt;
use crate::retry::{Jitter, RetryPlan};
use crate::settlement::{Reason, Step};

/// What is to become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Ack,
    Retry(Step),
    Fail(Reason),
}

/// Decides; pure: no clock, no driver, no chance but what it is given.
///
/// Without a plan there was no handler, and its outcome is final in itself.
pub(super) fn decide(outcome: &Outcome, attempt: Attempt, plan: Option<&RetryPlan>, jitter: Jitter) -> Decision {
    let Err(failure) = outcome else { return Decision::Ack };
    if let Some(reason) = failure.reason() {
        return Decision::Fail(reason);
    }
    let step = plan.and_then(|plan| match failure.requested_delay() {
        Some(delay) => plan.requested(attempt, delay).map(|(step, _)| step),
        None => plan.step(attempt, jitter),
    });
    step.map_or(Decision::Fail(Reason::Exhausted), Decision::Retry)
}
