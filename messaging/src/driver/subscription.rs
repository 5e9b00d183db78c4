use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;

use crate::delivery::Delivery;
use crate::error::Error;

/// The deliveries of one queue.
pub struct Subscription {
    /// One for each worker: exactly [`SubscribeOptions::concurrency`](super::SubscribeOptions::concurrency).
    pub lanes: Vec<Box<dyn Lane>>,
    /// What all lanes share.
    pub control: Arc<dyn SubscriptionControl>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("lanes", &self.lanes.len()).finish_non_exhaustive()
    }
}

/// A worker's intake.
///
/// # Contract
/// - While the driver heals a fault, or its window of unsettled deliveries is full, a lane is pending; `Fatal` is for what
///   cannot heal.
/// - After [`SubscriptionControl::stop_receiving`] a lane yields nothing more: it ends with `Stopped`.
/// - A lane MUST be cancel-safe: polling it again after the future around it was dropped loses nothing.
/// - A lane that always has something SHOULD spend tokio's cooperative budget.
pub trait Lane: Send {
    /// Appends between 1 and `max` deliveries to `out`, or waits.
    ///
    /// # Errors
    /// Why there will be no more.
    fn poll_next(&mut self, cx: &mut Context<'_>, max: usize, out: &mut VecDeque<Delivery>) -> Poll<Result<(), Ended>>;
}

/// Why a lane yields nothing more.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// Receiving was stopped.
    Stopped,
    /// Something that the driver cannot heal.
    Fatal(Error),
}

/// What all lanes of a subscription share.
#[async_trait]
pub trait SubscriptionControl: Send + Sync {
    /// Ends the intake: gives back what is unstarted or waiting for a retry, and ends the lanes.
    ///
    /// MUST be idempotent and MUST return at once.
    fn stop_receiving(&self);

    /// Waits until every settlement that was handed over has reached the broker.
    ///
    /// # Errors
    /// What could not be settled; it will be delivered again.
    async fn flush(&self) -> Result<(), Error>;
}
