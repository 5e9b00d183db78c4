//! Placeholder.

// The macros name this crate `::messaging`, also when it uses them itself.
extern crate self as messaging;

pub mod app;
mod capabilities;
mod codec;
mod consumer;
mod delivery;
pub mod driver;
mod duration;
mod error;
mod failure;
mod guard;
mod headers;
mod message;
mod retry;
mod settlement;
mod violation;

pub use app::{Application, ApplicationBuilder, BootError, Container, Injectable, Lifetime, Plugin};
pub use capabilities::{Capabilities, DeliveryCount, Order};
pub use codec::{Codec, CodecError, Json, MessageValidationError, Read};
pub use consumer::*;
pub use delivery::{Delivery, Settler};
pub use driver::{MessagingDriver, driver_from_url};
pub use error::{BoxError, Error, ErrorKind};
pub use failure::{Failure, FailureKind, NonRetryable, Outcome};
pub use headers::{DEFAULT_PREFIX, HeaderValue, Headers, WireNames};
pub use message::{Attempt, Envelope, InboundMessage, MessageId, Native, OutboundMessage};
pub use retry::{Backoff, Jitter, RetryPlan, RetryPolicy};
pub use settlement::{Reason, Settlement, Step};
pub use violation::{Violation, ViolationKind};
