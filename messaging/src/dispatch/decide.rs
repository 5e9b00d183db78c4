use crate::failure::Failure;
use crate::message::Attempt;
use crate::retry::{Jitter, RetryPlan};
use crate::settlement::{Reason, Step};

/// What is to become of a message whose run failed; one that succeeded is acked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Retry(Step),
    Fail(Reason),
}

/// Decides; pure: no clock, no driver, no chance but what it is given.
///
/// Without a plan there was no handler, and the failure is final in itself.
pub(super) fn decide(failure: &Failure, attempt: Attempt, plan: Option<&RetryPlan>, jitter: Jitter) -> Decision {
    if let Some(reason) = failure.reason() {
        return Decision::Fail(reason);
    }
    let step = plan.and_then(|plan| match failure.requested_delay() {
        Some(delay) => plan.requested(attempt, delay).map(|(step, _)| step),
        None => plan.step(attempt, jitter),
    });
    step.map_or(Decision::Fail(Reason::Exhausted), Decision::Retry)
}
