#![doc = include_str!("../README.md")]

// The macros name this crate `::messaging`, also when it uses them itself.
extern crate self as messaging;

pub mod app;
mod boot;
mod broker;
mod capabilities;
mod codec;
mod consumer;
mod delivery;
mod dispatch;
pub mod driver;
mod duration;
mod error;
mod failure;
mod guard;
pub mod guides;
mod headers;
mod message;
mod options;
mod plugin;
mod retry;
mod scope;
mod settlement;
mod text;
mod violation;
mod wire_names;

pub use app::{Application, ApplicationBuilder, BootError, Container, Injectable, Lifetime, Plugin};
pub use broker::{MessageBroker, Publish};
pub use capabilities::{Capabilities, DeliveryCount, Order};
pub use codec::{Codec, CodecError, Json, MessageValidationError, Read};
pub use consumer::*;
pub use delivery::{Delivery, Settler};
pub use dispatch::{Counts, Event, HandlerError, HandlerService, Health, Incoming, QueueHealth, QueueState};
pub use driver::{MessagingDriver, driver_from_url};
pub use error::{BoxError, Error, ErrorKind};
pub use failure::{Failure, FailureKind, NonRetryable, Outcome};
pub use headers::{HeaderValue, Headers};
pub use message::{Attempt, Envelope, InboundMessage, MessageId, Native, OutboundMessage};
pub use messaging_derive::{Injectable, consumer, handlers, on_error, on_message, retry};
pub use options::MessagingOptions;
pub use plugin::MessagingPlugin;
pub use retry::{Backoff, Jitter, RetryPlan, RetryPolicy};
pub use settlement::{Reason, Settlement, Step};
pub use text::Text;
pub use violation::{Violation, ViolationKind};
pub use wire_names::{DEFAULT_PREFIX, WireNames};

/// What a service that consumes or publishes imports.
pub mod prelude {
    pub use bytes::Bytes;
    pub use serde::{Deserialize, Serialize};
    pub use tokio_util::sync::CancellationToken;
    pub use validator::Validate;

    pub use crate::{
        Application, ApplicationBuilder, Attempt, BootError, Failure, Headers, InboundMessage, Inject, Injectable,
        Message, MessageBroker, MessageId, MessagingOptions, MessagingPlugin, NonRetryable, OnError, OutboundMessage,
        Reason, RetryPolicy, Settlement, Unvalidated,
    };
    pub use messaging_derive::{consumer, handlers, on_error, on_message, retry};
}

/// For generated code; no promise is made about it.
#[doc(hidden)]
pub mod __private {
    pub use linkme;

    pub use crate::app::{Dependency, Injectable, Key, Lifetime, Resolver};
    pub use crate::boot::{CONSUMERS, Registration, registration};
    pub use crate::*;
}
