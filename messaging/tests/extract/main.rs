//! What a handler takes from a message, and what becomes of one that cannot give it.
#![allow(clippy::unwrap_used, clippy::too_many_arguments)]

mod codecs;
mod parameters;
mod payloads;
mod routing;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use messaging::prelude::*;
use messaging::{
    BoxError, Codec, Error, ErrorKind, FromHeader, FromMessage, HeaderValue, MessageContext, OutboundMessage, Read,
    Reason, Settlement,
};
use messaging_memory::MemoryDriver;
use serde_json::Value;
use support::{Log, Rig, message};

#[derive(Debug, Deserialize, Serialize, Validate)]
struct Order {
    #[validate(length(min = 1))]
    order_id: String,
    lines: u64,
}

#[derive(Deserialize)]
struct Nested {
    order: Order,
}

/// An extractor of the user's own, which also takes something from the scope.
struct Tenant {
    name: String,
    log: Arc<Log>,
}

impl<'m> FromMessage<'m> for Tenant {
    async fn from_message(context: MessageContext<'m>) -> Result<Self, Failure> {
        tokio::task::yield_now().await;
        match context.message().headers.text("tenant") {
            Some("later") => Err(Failure::retry_after(Duration::from_secs(7))),
            Some(tenant) => Ok(Self { name: tenant.to_uppercase(), log: context.inject()? }),
            None => Err(Failure::non_retryable("no tenant")),
        }
    }

    fn requires(keys: &mut Vec<messaging::app::Key>) {
        <Inject<Log> as FromMessage<'m>>::requires(keys);
    }
}

/// One that forgot to say what it takes.
struct Careless;

impl<'m> FromMessage<'m> for Careless {
    async fn from_message(context: MessageContext<'m>) -> Result<Self, Failure> {
        context.inject::<Log>().map(|_| Self)
    }
}

#[derive(Debug)]
enum Region {
    Eu,
}

impl<'m> FromHeader<'m> for Region {
    fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
        match <&str>::from_header(name, value)? {
            "eu" => Ok(Self::Eu),
            other => Err(Failure::non_retryable(format!("no region `{other}`"))),
        }
    }
}

#[consumer("orders")]
struct Extracting {
    log: Arc<Log>,
}

#[handlers]
impl Extracting {
    #[on_message("message")]
    async fn message(&self, order: Message<Order>) {
        let Order { order_id, lines } = order.into_inner();
        self.log.note(format!("{order_id} {lines}"));
    }

    #[on_message("unvalidated")]
    async fn unvalidated(&self, order: Unvalidated<Order>) {
        self.log.note(format!("{} {}", order.order_id, order.lines));
    }

    #[on_message("value")]
    async fn value(&self, value: Unvalidated<Value>) {
        self.log.note(value.to_string());
    }

    #[on_message("nested")]
    async fn nested(&self, nested: Unvalidated<Nested>) {
        self.log.note(nested.order.order_id.clone());
    }

    #[on_message("optional")]
    async fn optional(&self, order: Option<Message<Order>>) {
        self.log.note(order.map_or("nothing".into(), |order| order.order_id.clone()));
    }

    #[on_message("optional.number")]
    async fn optional_number(&self, number: Option<Unvalidated<i64>>) {
        self.log.note(format!("{:?}", number.map(Unvalidated::into_inner)));
    }

    #[on_message("whole")]
    async fn whole(
        &self,
        borrowed: &InboundMessage,
        shared: Arc<InboundMessage>,
        body: Bytes,
        headers: Headers,
        borrowed_headers: &Headers,
        attempt: Attempt,
        signal: CancellationToken,
        log: Inject<Log>,
    ) {
        assert!(std::ptr::eq(borrowed, &*shared));
        assert_eq!(&headers, borrowed_headers);
        assert!(Arc::ptr_eq(&log.0, &self.log));
        let key = borrowed.key.as_deref().map(String::from_utf8_lossy);
        log.note(format!("{} {} {key:?} {body:?} {headers:?}", shared.queue(), shared.id));
        log.note(format!("{:?} {:?} #{attempt} {}", shared.message_type(), shared.content_type, signal.is_cancelled()));
    }

    #[on_message("headers")]
    async fn headers(
        &self,
        #[header("text")] text: &str,
        #[header("text")] owned: String,
        #[header("number")] number: u64,
        #[header("negative")] negative: i8,
        #[header("ratio")] ratio: f64,
        #[header("flag")] flag: bool,
        #[header("letter")] letter: char,
        #[header("bytes")] bytes: Bytes,
        #[header("bytes")] value: &HeaderValue,
        #[header("region")] region: Region,
    ) {
        self.log
            .note(format!("{text} {owned} {number} {negative} {ratio} {flag} {letter} {bytes:?} {value:?} {region:?}"));
    }

    #[on_message("optional.headers")]
    async fn optional_headers(
        &self,
        #[header("number")] number: Option<u32>,
        #[header("text")] text: Option<&str>,
        #[header("region")] region: Option<Region>,
    ) {
        self.log.note(format!("{number:?} {text:?} {region:?}"));
    }

    #[on_message("number")]
    async fn number(&self, #[header("number")] number: u32) {
        self.log.note(number.to_string());
    }

    #[on_message("text")]
    async fn text(&self, #[header("text")] text: String) {
        self.log.note(text);
    }

    #[on_message("bytes")]
    async fn bytes(&self, #[header("bytes")] bytes: Bytes) {
        self.log.note(format!("{bytes:?}"));
    }

    #[on_message("tenant")]
    async fn tenant(&self, tenant: Tenant) {
        tenant.log.note(tenant.name);
    }

    #[on_message("careless")]
    #[retry(false)]
    async fn careless(&self, _careless: Careless) {}

    #[on_message("no payload")]
    async fn no_payload(&self) {
        self.log.note("ran");
    }

    #[on_message("size")]
    async fn size(&self, text: Unvalidated<String>) {
        self.log.note(text.len().to_string());
    }
}

/// What became of a message: its settlement, what the handler noted, and the dead letter's error.
#[derive(Debug, PartialEq)]
struct Came {
    to: Settlement,
    noted: Vec<String>,
    error: Option<String>,
}

impl Came {
    fn handled<T: Into<String>>(noted: impl IntoIterator<Item = T>) -> Self {
        Self { to: Settlement::Ack, noted: noted.into_iter().map(Into::into).collect(), error: None }
    }

    fn dead(reason: Reason, error: &str) -> Self {
        Self { to: Settlement::DeadLetter(reason), noted: Vec::new(), error: Some(error.to_owned()) }
    }
}

async fn what_comes_of(message: OutboundMessage) -> Came {
    what_comes_of_with(message, |options| options).await
}

async fn what_comes_of_with(
    message: OutboundMessage,
    options: impl FnOnce(MessagingOptions) -> MessagingOptions,
) -> Came {
    let body = message.body.clone();
    let rig = Rig::start_with::<Extracting>(MemoryDriver::new(), options).await;
    rig.driver.send(message);
    rig.driver.idle().await;
    let settlements = rig.driver.settlements("orders");
    assert_eq!(settlements.len(), 1, "no retry helps: {settlements:?}");
    let dead = rig.driver.dead_letters("orders");
    // Whatever is dead-lettered is dead-lettered byte for byte.
    assert!(dead.iter().all(|dead| dead.body == body));
    let error = dead.first().and_then(|dead| dead.headers.text("x-znight-error")).map(str::to_owned);
    Came { to: settlements[0], noted: rig.log.lines(), error }
}

const NOT_JSON: &str = "cannot read the body as application/json: ";

fn undecodable(error: &str) -> Came {
    Came::dead(Reason::Undecodable, &format!("{NOT_JSON}{error}"))
}

fn misshapen(error: &str) -> Came {
    Came::dead(Reason::Invalid, &format!("{NOT_JSON}{error}"))
}
