//! What travels: messages on the way in and on the way out.

mod id;
mod inbound;
mod outbound;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::headers::Headers;
use crate::text::Text;

pub use id::MessageId;
pub use inbound::{Attempt, InboundMessage};
pub use outbound::OutboundMessage;

/// What a message is made of, the same on the way in and on the way out.
///
/// Drivers build one from what the broker handed over; [`InboundMessage`] and [`OutboundMessage`] deref to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Envelope {
    /// Identifies the message; a retry and a dead-letter copy keep it.
    pub id: MessageId,
    /// What the handlers are chosen by. Never empty: an empty type is no type.
    pub message_type: Option<Text>,
    /// The media type of the body; absent means JSON.
    pub content_type: Option<Arc<str>>,
    /// Kafka's partition key, the message group of an SQS FIFO queue; other drivers carry it along.
    pub key: Option<Bytes>,
    /// Everything else that the publisher said about the message.
    pub headers: Headers,
    /// The payload, encoded; a copy carries these very bytes.
    pub body: Bytes,
    /// What this driver's broker knows and strings cannot carry; only the driver that set it reads it.
    pub native: Option<Native>,
}

impl Envelope {
    /// Makes an envelope with a new id around an encoded body.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self::with(MessageId::random(), body.into())
    }

    /// Makes an envelope for a message that has an id already.
    #[must_use]
    pub fn with(id: MessageId, body: Bytes) -> Self {
        Self { id, message_type: None, content_type: None, key: None, headers: Headers::new(), body, native: None }
    }

    /// The bytes that this message occupies: body, key, type, content type, id and headers.
    ///
    /// Drivers whose broker counts in another way keep their own account.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.len()
            + self.key.as_ref().map_or(0, Bytes::len)
            + self.message_type.as_ref().map_or(0, |message_type| message_type.len())
            + self.content_type.as_ref().map_or(0, |content_type| content_type.len())
            + self.id.as_str().len()
            + self.headers.size()
    }
}

/// An opaque part of a message that only the driver which made it can read.
///
/// AMQP types and properties, Kafka's null and repeated headers, binary SQS attributes: what a string cannot hold is
/// kept here, so that a retry and a dead-letter copy lose nothing.
#[derive(Clone)]
pub struct Native(Arc<dyn Any + Send + Sync>);

impl Native {
    /// Wraps a driver's own value.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(part: T) -> Self {
        Self(Arc::new(part))
    }

    /// The value, where it is of that type.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Native")
    }
}
