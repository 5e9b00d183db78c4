//! What becomes of messages when an application consumes them by the driver.

pub(super) mod bounded;
pub(super) mod dead_letters;
pub(super) mod isolation;
pub(super) mod no_loss;
pub(super) mod proven_at_boot;
pub(super) mod same_answer;
pub(super) mod self_healing;
pub(super) mod shutdown;
pub(super) mod soak;
