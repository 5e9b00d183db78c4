//! The contract between the plugin and a broker.
//!
//! A driver receives, waits, settles and publishes; it decides nothing. [`MessagingDriver`] is what it implements,
//! [`Subscription`] is what it hands out, and [`DelayHeap`] is what it waits with.

mod delays;
mod events;
mod options;
mod registry;
mod subscription;

use std::fmt;

use async_trait::async_trait;

use crate::capabilities::Capabilities;
use crate::error::Error;
use crate::message::{MessageId, OutboundMessage};

pub use delays::DelayHeap;
pub use events::{DriverEvents, Fault};
pub use options::{DriverOptions, SubscribeOptions};
pub use registry::{DriverFactory, driver_from_url};
pub use subscription::{Ended, Lane, Subscription, SubscriptionControl};

/// The bytes that a driver keeps free of a publisher's message, so that a copy of it has room for the library's headers.
pub const COPY_RESERVE: usize = 2 * 1024;

/// A message broker, as the plugin sees it.
///
/// # Contract
/// - [`capabilities`](Self::capabilities) MUST be constant, and true from before `connect` on: boot proves every retry
///   policy against it.
/// - [`publish`](Self::publish) MUST resolve only when the broker has confirmed, MUST be bounded in time, and MUST tell
///   `Rejected` (surely not stored) from `Unconfirmed` (may be stored). Dropping its future MUST NOT corrupt another
///   publish.
/// - [`subscribe`](Self::subscribe) declares and checks, and MUST receive nothing before the first
///   [`Lane::poll_next`].
/// - A fault of one queue or publish MUST NOT stop another one.
/// - [`close`](Self::close) MUST be idempotent and bounded, and MUST be safe at any time, also before or during
///   `connect`; afterwards every `publish` fails with `Closed` at once.
#[async_trait]
pub trait MessagingDriver: fmt::Debug + Send + Sync + 'static {
    /// The driver's name, for logs and messages.
    fn name(&self) -> &'static str;

    /// What it can do, as configured.
    fn capabilities(&self) -> Capabilities;

    /// Connects to the broker.
    ///
    /// # Errors
    /// `Config` for what must be changed, `Connection` for what may pass.
    async fn connect(&self) -> Result<(), Error>;

    /// Declares and checks what the consumer of a queue needs, and opens its lanes.
    ///
    /// # Errors
    /// What keeps this queue from being consumed as asked; it names what to change.
    async fn subscribe(&self, options: SubscribeOptions) -> Result<Subscription, Error>;

    /// Publishes a message and waits for the broker's confirmation.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    async fn publish(&self, message: OutboundMessage) -> Result<MessageId, Error>;

    /// Releases what is held, and closes the connections.
    ///
    /// # Errors
    /// What could not be closed in order; it is closed all the same.
    async fn close(&self) -> Result<(), Error>;

    /// The dead-letter queue of a queue, where the consumer names none.
    fn dead_letter_name(&self, queue: &str) -> String;
}
