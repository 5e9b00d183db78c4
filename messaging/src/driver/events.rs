use std::sync::Arc;

use crate::error::Error;
use crate::message::InboundMessage;
use crate::settlement::Settlement;

/// What a driver tells the plugin beside its deliveries.
///
/// Given to it in [`SubscribeOptions`](super::SubscribeOptions). Every method returns at once and may be called from
/// anywhere.
pub trait DriverEvents: Send + Sync {
    /// A settlement has reached the broker, or failed to.
    ///
    /// A driver MUST tell it once for each settlement that was handed over. `Err` means that the message may be delivered
    /// again.
    fn settled(&self, message: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>);

    /// Something broke that the driver is healing, or that someone should know of.
    fn fault(&self, fault: Fault);

    /// The consumer consumes again.
    fn healed(&self);
}

/// Something broke.
#[derive(Debug)]
pub struct Fault {
    /// What broke.
    pub error: Error,
    /// Whether the queue is not consumed until [`DriverEvents::healed`] is told.
    pub consuming_stopped: bool,
}
