//! What a driver does, seen through its lanes and settlers.

pub(super) mod at_least_once;
pub(super) mod bounded;
pub(super) mod dead_letters;
pub(super) mod isolation;
pub(super) mod no_loss;
pub(super) mod order_and_delay;
pub(super) mod proven_at_boot;
pub(super) mod same_message;
pub(super) mod self_healing;
pub(super) mod shutdown;
