use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::{Envelope, InboundMessage, MessageId};
use crate::error::{Error, ErrorKind};
use crate::headers::HeaderValue;
use crate::text::Text;

/// A message on its way to a queue; derefs to its [`Envelope`].
///
/// Services publish through [`MessageBroker`](crate::MessageBroker), which makes one; tests and tools may build it.
///
/// ```
/// use messaging::OutboundMessage;
///
/// let message = OutboundMessage::json("orders", &serde_json::json!({"order_id": "o-1"}))?.message_type("order.created");
/// assert_eq!(message.queue(), "orders");
/// assert_eq!(&message.body[..], br#"{"order_id":"o-1"}"#);
/// # Ok::<(), messaging::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OutboundMessage {
    queue: Arc<str>,
    envelope: Envelope,
    delay: Duration,
    deduplication_id: Option<Arc<str>>,
    copy: bool,
}

impl OutboundMessage {
    /// Sends `envelope` to `queue` at once.
    #[must_use]
    pub fn new(queue: impl Into<Arc<str>>, envelope: Envelope) -> Self {
        Self { queue: queue.into(), envelope, delay: Duration::ZERO, deduplication_id: None, copy: false }
    }

    /// A message whose body is `payload` as JSON.
    ///
    /// # Errors
    /// `Codec`, when the payload cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(queue: impl Into<Arc<str>>, payload: &T) -> Result<Self, Error> {
        let body = serde_json::to_vec(payload)
            .map_err(|error| Error::new(ErrorKind::Codec, "cannot write the payload as JSON").source(error))?;
        Ok(Self::raw(queue, body).content_type("application/json"))
    }

    /// A message whose body is `body`, byte for byte.
    #[must_use]
    pub fn raw(queue: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        Self::new(queue, Envelope::new(body))
    }

    /// A copy of a message that came in: id, type, key, headers, bytes and the driver's native part are kept.
    ///
    /// What a driver keeps free for the library's headers at a publish is there for this copy to use.
    #[must_use]
    pub fn copy_of(message: &InboundMessage, queue: impl Into<Arc<str>>) -> Self {
        Self { copy: true, ..Self::new(queue, message.envelope().clone()) }
    }

    /// What the handlers are chosen by; empty is no type.
    #[must_use]
    pub fn message_type(mut self, message_type: impl Into<Text>) -> Self {
        self.envelope.message_type = Some(message_type.into()).filter(|text: &Text| !text.is_empty());
        self
    }

    /// The media type of the body.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<Arc<str>>) -> Self {
        self.envelope.content_type = Some(content_type.into());
        self
    }

    /// Sets one header; a header of that name is replaced.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<HeaderValue>) -> Self {
        self.envelope.headers.insert(name, value);
        self
    }

    /// The key: Kafka's partition key, the message group of an SQS FIFO queue.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.envelope.key = Some(Bytes::copy_from_slice(key.as_ref()));
        self
    }

    /// The id, in place of a new one.
    #[must_use]
    pub fn id(mut self, id: impl Into<MessageId>) -> Self {
        self.envelope.id = id.into();
        self
    }

    /// How long the broker keeps the message back; zero, the default, is not at all.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// What a broker that deduplicates goes by, in place of the message id.
    #[must_use]
    pub fn deduplication_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.deduplication_id = Some(id.into());
        self
    }

    /// Where it goes.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// How long the broker keeps it back.
    #[must_use]
    pub fn delay_by(&self) -> Duration {
        self.delay
    }

    /// What a broker that deduplicates goes by: what was set, else the message id.
    #[must_use]
    pub fn deduplicate_by(&self) -> &str {
        self.deduplication_id.as_deref().unwrap_or(self.envelope.id.as_str())
    }

    /// Whether it is a copy of a message that came in.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.copy
    }

    /// Takes the parts out: where it goes, and what travels.
    #[must_use]
    pub fn into_parts(self) -> (Arc<str>, Envelope) {
        (self.queue, self.envelope)
    }
}

impl Deref for OutboundMessage {
    type Target = Envelope;

    fn deref(&self) -> &Envelope {
        &self.envelope
    }
}

impl DerefMut for OutboundMessage {
    fn deref_mut(&mut self) -> &mut Envelope {
        &mut self.envelope
    }
}
