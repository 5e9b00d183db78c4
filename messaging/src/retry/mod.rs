//! How a failed message is tried again: what is asked, how delays grow, and what was proven.

mod backoff;
mod plan;
mod policy;

pub use backoff::Backoff;
pub use plan::{Jitter, RetryPlan};
pub use policy::RetryPolicy;
