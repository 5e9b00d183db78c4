//! One hand-over of a message from a driver to the dispatcher.

use std::fmt;
use std::sync::Arc;

use crate::message::InboundMessage;
use crate::settlement::Settlement;

/// A message, and the right to settle it once.
///
/// The two part at the door: the message goes through the handlers, the right to settle does not.
#[derive(Debug)]
pub struct Delivery {
    /// What was delivered.
    pub message: Arc<InboundMessage>,
    /// The right to settle it.
    pub settler: Box<dyn Settler>,
}

/// The right to settle one delivery; implemented by drivers.
///
/// A settler that is dropped unsettled gives the message back: the driver MUST deliver it again, or return it to the
/// broker. Where the message [has started](InboundMessage::has_started), the drop counts as an attempt, if the driver counts
/// at all; else a message that always breaks the process would come back for ever.
pub trait Settler: Send + fmt::Debug {
    /// Hands the settlement over; returns at once.
    ///
    /// The driver carries it out on its own side, so that a caller which is cancelled cannot settle twice, and tells what
    /// came of it through [`DriverEvents::settled`](crate::driver::DriverEvents::settled).
    fn settle(self: Box<Self>, settlement: Settlement);

    /// Whether settling would still reach the message; asked before a dead-letter copy is published.
    ///
    /// A driver whose lease or partition was taken away MUST say `false`.
    fn still_ours(&self) -> bool {
        true
    }

    /// What the broker knows this message by, across redeliveries; without it the message id serves.
    fn identity(&self) -> Option<String> {
        None
    }
}
