//! The publisher that services inject.

use std::fmt;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::app::{Dependency, Key, Resolver};
use crate::codec::Codecs;
use crate::consumer::BoxFuture;
use crate::dispatch::{Events, Health, QueueState};
use crate::driver::MessagingDriver;
use crate::duration::human;
use crate::error::{BoxError, Error, ErrorKind};
use crate::headers::HeaderValue;
use crate::message::{Envelope, MessageId, OutboundMessage};
use crate::wire_names::WireNames;

/// Publishes messages; inject it as a field, cloning it is cheap.
///
/// ```
/// use messaging::prelude::*;
/// use messaging_memory::MemoryDriver;
///
/// #[derive(serde::Serialize)]
/// struct OrderCreated { order_id: String }
///
/// #[derive(Injectable)]
/// struct Checkout { broker: MessageBroker }
///
/// impl Checkout {
///     async fn complete(&self, order_id: &str) -> Result<MessageId, messaging::Error> {
///         let event = OrderCreated { order_id: order_id.into() };
///         self.broker.publish("orders", &event).message_type("order.created").key(order_id).await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let driver = MemoryDriver::new();
/// let app = Application::builder()
///     .plugin(MessagingPlugin::configure(driver.clone()))
///     .provide::<Checkout>()
///     .create().await?;
/// app.start().await?;
/// app.get::<Checkout>().await?.complete("o-1").await?;
/// assert_eq!(driver.published("orders")[0].message_type.as_deref(), Some("order.created"));
/// # app.stop().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MessageBroker(Arc<Core>);

struct Core {
    link: OnceLock<Link>,
    connected: AtomicBool,
}

/// What the broker publishes through, known once the options are.
pub(crate) struct Link {
    pub(crate) driver: Arc<dyn MessagingDriver>,
    pub(crate) codecs: Codecs,
    pub(crate) names: WireNames,
    /// Of the queues that are consumed.
    pub(crate) events: Vec<Arc<Events>>,
}

impl MessageBroker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Core { link: OnceLock::new(), connected: AtomicBool::new(false) }))
    }

    pub(crate) fn link(&self, link: Link) {
        // A plugin is checked once; a second link cannot be.
        let _ = self.0.link.set(link);
    }

    pub(crate) fn connected(&self, connected: bool) {
        self.0.connected.store(connected, Ordering::Relaxed);
    }

    /// Publishes a payload, encoded by the content type: JSON unless an option or [`Publish::content_type`] says otherwise.
    ///
    /// Nothing happens until it is awaited. It resolves when the broker has confirmed.
    ///
    /// # Errors
    /// `Config` for an empty queue name or a header that the library keeps for itself, `Codec`, `Unsupported` for a delay
    /// beyond the driver, `Closed` before the application has started and after it has stopped, and whatever the broker
    /// says: `Rejected` and `Unroutable` are surely not stored, `Unconfirmed` may be.
    ///
    /// # Cancel safety
    /// A publish whose future is dropped may have been sent, or not.
    pub fn publish<'p, T: Serialize>(&'p self, queue: &str, payload: &'p T) -> Publish<'p> {
        self.publish_part(queue, Payload::Encode(payload))
    }

    /// Publishes a body as it is, byte for byte.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_raw(&self, queue: &str, body: impl Into<Bytes>) -> Publish<'_> {
        self.publish_part(queue, Payload::Raw(body.into()))
    }

    fn publish_part<'p>(&'p self, queue: &str, payload: Payload<'p>) -> Publish<'p> {
        Publish { broker: self, payload, message: OutboundMessage::new(queue, Envelope::new(Bytes::new())) }
    }

    /// How the application's queues are, and what came of their messages.
    #[must_use]
    pub fn health(&self) -> Health {
        let queues: Vec<_> = self
            .0
            .link
            .get()
            .map(|link| link.events.iter().map(|events| events.health()).collect())
            .unwrap_or_default();
        let consumed = queues.iter().all(|queue: &crate::QueueHealth| queue.state == QueueState::Consuming);
        Health { ready: self.0.connected.load(Ordering::Relaxed) && consumed, queues }
    }
}

impl Dependency for MessageBroker {
    fn key() -> Key {
        Key::of::<Self>()
    }

    fn resolve(resolver: &mut Resolver<'_>) -> Result<Self, BoxError> {
        resolver.next::<Self>().map(|broker| (*broker).clone())
    }
}

impl fmt::Debug for MessageBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageBroker").field("driver", &self.0.link.get().map(|link| &link.driver)).finish()
    }
}

enum Payload<'p> {
    Encode(&'p dyn erased_serde::Serialize),
    Raw(Bytes),
}

/// A publish that waits to be awaited.
#[must_use = "a publish does nothing until it is awaited"]
pub struct Publish<'p> {
    broker: &'p MessageBroker,
    payload: Payload<'p>,
    message: OutboundMessage,
}

impl Publish<'_> {
    /// What handlers are chosen by; empty is no type.
    pub fn message_type(mut self, message_type: &str) -> Self {
        self.message = self.message.message_type(message_type);
        self
    }

    /// The media type of the body; it chooses the codec.
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.message = self.message.content_type(content_type);
        self
    }

    /// Sets one header; a header of that name is replaced.
    pub fn header(mut self, name: &str, value: impl Into<HeaderValue>) -> Self {
        self.message = self.message.header(name, value);
        self
    }

    /// Sets several headers.
    pub fn headers<N: AsRef<str>, V: Into<HeaderValue>>(self, headers: impl IntoIterator<Item = (N, V)>) -> Self {
        headers.into_iter().fold(self, |publish, (name, value)| publish.header(name.as_ref(), value))
    }

    /// The key: Kafka's partition key, the message group of an SQS FIFO queue.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.message = self.message.key(key);
        self
    }

    /// The id, in place of a new one: what a caller that tries again sends, so that consumers can tell.
    pub fn id(mut self, id: impl Into<MessageId>) -> Self {
        self.message = self.message.id(id);
        self
    }

    /// How long the broker keeps the message back.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.message = self.message.delay(delay);
        self
    }
}

impl<'p> Publish<'p> {
    /// Checks and encodes; everything that can be told before the broker is asked.
    fn outbound(self) -> Result<(&'p Link, OutboundMessage), Error> {
        let Self { broker, payload, mut message } = self;
        let context = || format!("cannot publish to `{}`", message.queue());
        let Some(link) = broker.0.link.get() else {
            return Err(Error::new(ErrorKind::Closed, format!("{}: the application has not started", context())));
        };
        if !broker.0.connected.load(Ordering::Relaxed) {
            return Err(Error::new(
                ErrorKind::Closed,
                format!("{}: the application has not started, or has stopped", context()),
            ));
        }
        if message.id.as_str().is_empty() {
            return Err(Error::new(ErrorKind::Config, format!("{}: an empty id identifies nothing", context())));
        }
        if message.queue().is_empty() {
            return Err(Error::new(ErrorKind::Config, "cannot publish to a queue without a name"));
        }
        if let Some((name, _)) = message.headers.iter().find(|(name, _)| link.names.reserves(name)) {
            let prefix = link.names.prefix();
            return Err(Error::new(
                ErrorKind::Config,
                format!("{}: header `{name}` starts with `{prefix}`, which the library keeps for itself", context()),
            ));
        }
        let longest = link.driver.capabilities().max_publish_delay;
        if message.delay_by() > longest {
            let asked = human(message.delay_by());
            let allowed = if longest.is_zero() {
                "cannot delay a publish".into()
            } else {
                format!("can delay a publish by at most {}", human(longest))
            };
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{} with a delay of {asked}: driver `{}` {allowed}", context(), link.driver.name()),
            ));
        }
        match payload {
            Payload::Raw(body) => message.body = body,
            Payload::Encode(payload) => {
                let codec = match message.content_type.as_deref() {
                    Some(content_type) => link.codecs.find(content_type).ok_or_else(|| {
                        Error::new(ErrorKind::Codec, format!("{}: no codec for content type `{content_type}`; add one with `MessagingOptions::codec`", context()))
                    })?,
                    None => link.codecs.for_publish(),
                };
                message.body = codec.encode(payload)?;
                message.content_type.get_or_insert_with(|| link.codecs.default_content_type());
            }
        }
        Ok((link, message))
    }
}

impl<'p> IntoFuture for Publish<'p> {
    type Output = Result<MessageId, Error>;
    type IntoFuture = BoxFuture<'p, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        match self.outbound() {
            Ok((link, message)) => link.driver.publish(message),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl fmt::Debug for Publish<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Publish").field(&self.message).finish()
    }
}
