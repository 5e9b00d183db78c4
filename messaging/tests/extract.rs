//! What a handler takes from a message, and what becomes of one that cannot give it.
#![allow(clippy::unwrap_used, clippy::too_many_arguments)]

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

#[tokio::test(start_paused = true)]
async fn a_payload_is_decoded_and_only_message_validates_it() {
    let order = r#"{"order_id": "o-1", "lines": 3}"#;
    assert_eq!(what_comes_of(message("message", order)).await, Came::handled(["o-1 3"]));
    assert_eq!(what_comes_of(message("unvalidated", order)).await, Came::handled(["o-1 3"]));
    let invalid = r#"{"order_id": "", "lines": 3}"#;
    assert_eq!(
        what_comes_of(message("message", invalid)).await,
        Came::dead(Reason::Invalid, "invalid message: order_id: length (min = 1)"),
    );
    assert_eq!(what_comes_of(message("unvalidated", invalid)).await, Came::handled([" 3"]));
}

#[tokio::test(start_paused = true)]
async fn an_optional_payload_is_none_when_it_is_empty_or_null_and_checked_when_it_is_there() {
    for nothing in ["", " \n", "null", " null\n"] {
        assert_eq!(what_comes_of(message("optional", nothing)).await, Came::handled(["nothing"]), "{nothing:?}");
        assert_eq!(what_comes_of(message("optional.number", nothing)).await, Came::handled(["None"]), "{nothing:?}");
    }
    let order = r#"{"order_id": "o-1", "lines": 3}"#;
    assert_eq!(what_comes_of(message("optional", order)).await, Came::handled(["o-1"]));
    assert_eq!(what_comes_of(message("optional.number", "-7")).await, Came::handled(["Some(-7)"]));
    for (present, expected) in [
        (r#"{"order_id": "", "lines": 3}"#, Came::dead(Reason::Invalid, "invalid message: order_id: length (min = 1)")),
        ("[]", misshapen("invalid length 0, expected struct Order with 2 elements at line 1 column 2")),
        ("nul", undecodable("EOF while parsing a value at line 1 column 3")),
        ("nullnull", undecodable("trailing characters at line 1 column 5")),
    ] {
        assert_eq!(what_comes_of(message("optional", present)).await, expected, "{present}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_whole_message_is_there_for_who_asks() {
    let whole = OutboundMessage::raw("orders", "body")
        .message_type("whole")
        .content_type("text/plain")
        .key("customer")
        .id("o-1")
        .header("tenant", "acme");
    let expected = [
        r#"orders o-1 Some("customer") b"body" Headers([("tenant", "acme")])"#,
        r#"Some("whole") Some("text/plain") #1 false"#,
    ];
    assert_eq!(what_comes_of(whole).await, Came::handled(expected));
}

fn with_headers() -> OutboundMessage {
    message("headers", "")
        .header("text", "acme")
        .header("number", "18446744073709551615")
        .header("negative", "-128")
        .header("ratio", "0.5")
        .header("flag", "true")
        .header("letter", "é")
        .header("bytes", HeaderValue::from_bytes(b"\xff\x00"))
        .header("region", "eu")
}

#[tokio::test(start_paused = true)]
async fn headers_are_read_as_what_the_parameter_is() {
    let expected = r#"acme acme 18446744073709551615 -128 0.5 true é b"\xff\0" b"\xff\0" Eu"#;
    assert_eq!(what_comes_of(with_headers()).await, Came::handled([expected]));
    for (name, value, error) in [
        ("number", "-1", "invalid message: header `number` is not a u64: `-1`"),
        ("number", "1.0", "invalid message: header `number` is not a u64: `1.0`"),
        ("number", "", "invalid message: header `number` is not a u64: ``"),
        ("negative", "128", "invalid message: header `negative` is not a i8: `128`"),
        ("ratio", "half", "invalid message: header `ratio` is not a f64: `half`"),
        ("flag", "yes", "invalid message: header `flag` is not a bool: `yes`"),
        ("letter", "ab", "invalid message: header `letter` is not a char: `ab`"),
    ] {
        let came = what_comes_of(with_headers().header(name, value)).await;
        assert_eq!(came, Came::dead(Reason::Invalid, error));
    }
    let came = what_comes_of(with_headers().header("region", "mars")).await;
    assert_eq!(came, Came::dead(Reason::NonRetryable, "no region `mars`"));
}

#[tokio::test(start_paused = true)]
async fn a_header_that_is_missing_is_final_unless_it_is_optional() {
    for name in ["text", "number", "flag", "bytes", "region"] {
        let mut without = with_headers();
        without.headers.remove(name);
        let error = format!("invalid message: header `{name}` is missing");
        assert_eq!(what_comes_of(without).await, Came::dead(Reason::Invalid, &error));
    }
    let none = message("optional.headers", "");
    assert_eq!(what_comes_of(none.clone()).await, Came::handled(["None None None"]));
    let null = none.clone().header("number", HeaderValue::Null).header("text", HeaderValue::Null);
    assert_eq!(what_comes_of(null).await, Came::handled(["None None None"]));
    let all = none.clone().header("number", "7").header("text", "").header("region", "eu");
    assert_eq!(what_comes_of(all).await, Came::handled([r#"Some(7) Some("") Some(Eu)"#]));
    // What is there must be right.
    let wrong = none.header("number", "many");
    let error = "invalid message: header `number` is not a u32: `many`";
    assert_eq!(what_comes_of(wrong).await, Came::dead(Reason::Invalid, error));
}

#[tokio::test(start_paused = true)]
async fn a_header_that_is_not_text_is_told_apart_from_a_missing_one() {
    let binary = HeaderValue::from_bytes(b"\xff\x00\xfe");
    let not_text = |name| Came::dead(Reason::Invalid, &format!("invalid message: header `{name}` is not text"));
    assert_eq!(what_comes_of(message("text", "").header("text", binary.clone())).await, not_text("text"));
    assert_eq!(what_comes_of(message("number", "").header("number", binary.clone())).await, not_text("number"));
    let optional = message("optional.headers", "").header("text", binary.clone());
    assert_eq!(what_comes_of(optional).await, not_text("text"));
    assert_eq!(what_comes_of(message("text", "").header("text", HeaderValue::Null)).await, not_text("text"));
    assert_eq!(what_comes_of(message("bytes", "").header("bytes", binary)).await, Came::handled([r#"b"\xff\0\xfe""#]),);
    assert_eq!(what_comes_of(message("bytes", "").header("bytes", "text")).await, Came::handled([r#"b"text""#]));
    assert_eq!(
        what_comes_of(message("bytes", "").header("bytes", HeaderValue::Null)).await,
        Came::dead(Reason::Invalid, "invalid message: header `bytes` has no value"),
    );
    let mut twice = message("text", "");
    twice.headers.append("text", "first");
    twice.headers.append("text", "last");
    assert_eq!(what_comes_of(twice).await, Came::handled(["last"]));
}

#[tokio::test(start_paused = true)]
async fn an_extractor_of_ones_own_waits_injects_fails_for_good_or_for_now() {
    assert_eq!(what_comes_of(message("tenant", "").header("tenant", "acme")).await, Came::handled(["ACME"]));
    assert_eq!(what_comes_of(message("tenant", "")).await, Came::dead(Reason::NonRetryable, "no tenant"));
    assert_eq!(
        what_comes_of(message("careless", "")).await,
        Came::dead(Reason::Exhausted, "Log was not declared with `FromMessage::requires`"),
    );
    let rig = Rig::start::<Extracting>().await;
    rig.driver.send(message("tenant", "").header("tenant", "later"));
    rig.driver.idle().await;
    assert_eq!(rig.driver.settlements("orders")[0], Settlement::retry(Duration::from_secs(7), 2));
}

#[tokio::test(start_paused = true)]
async fn json_surprises_have_one_verdict_each() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let too_deep = format!("{}: recursion limit exceeded at line 1 column 128", "[0]".repeat(127));
    let order = |lines: &str| format!(r#"{{"order_id": "o-1", "lines": {lines}}}"#);
    let cases = [
        ("message", r#"{"order_id": "o-1", "new": [1], "lines": 3}"#.to_owned(), Came::handled(["o-1 3"])),
        ("message", order("9007199254740993"), Came::handled(["o-1 9007199254740993"])),
        ("message", order("18446744073709551615"), Came::handled(["o-1 18446744073709551615"])),
        (
            "message",
            order("18446744073709551616"),
            misshapen("lines: invalid type: floating point `1.8446744073709552e+19`, expected u64 at line 1 column 49"),
        ),
        (
            "message",
            order("1.0"),
            misshapen("lines: invalid type: floating point `1.0`, expected u64 at line 1 column 32"),
        ),
        ("message", order("-1"), misshapen("lines: invalid value: integer `-1`, expected u64 at line 1 column 31")),
        ("message", order("1e999"), misshapen("lines: number out of range at line 1 column 34")),
        ("message", order("NaN"), undecodable("lines: expected value at line 1 column 30")),
        ("message", order("01"), undecodable("lines: invalid number at line 1 column 31")),
        ("message", r#"{"order_id": "o-1"}"#.into(), misshapen("missing field `lines` at line 1 column 19")),
        (
            "message",
            r#"{"order_id": "o-1", "lines": 1, "lines": 2}"#.into(),
            misshapen("duplicate field `lines` at line 1 column 39"),
        ),
        ("message", format!("\u{feff}{}", order("1")), undecodable("expected value at line 1 column 1")),
        ("message", format!("{} x", order("1")), undecodable("trailing characters at line 1 column 33")),
        ("message", format!("{}{}", order("1"), order("1")), undecodable("trailing characters at line 1 column 32")),
        ("message", format!("{}\n \t\r", order("1")), Came::handled(["o-1 1"])),
        ("message", "null".into(), misshapen("invalid type: null, expected struct Order at line 1 column 4")),
        ("message", deep(200), misshapen("[0]: invalid type: sequence, expected a string at line 1 column 1")),
        (
            "nested",
            r#"{"order": {"order_id": "o-1", "lines": [3]}}"#.into(),
            misshapen("order.lines: invalid type: sequence, expected u64 at line 1 column 39"),
        ),
        (
            "message",
            r#"{"order_id": "\ud800", "lines": 1}"#.into(),
            misshapen("order_id: unexpected end of hex escape at line 1 column 21"),
        ),
        // serde reads a struct from a sequence as well.
        ("message", r#"["o-1", 3]"#.into(), Came::handled(["o-1 3"])),
        ("value", deep(127), Came::handled([deep(127)])),
        ("value", deep(200), misshapen(&too_deep)),
        ("value", deep(200_000), misshapen(&too_deep)),
        ("value", "[".repeat(200_000), undecodable(&too_deep)),
        ("value", "null".into(), Came::handled(["null"])),
    ];
    for (message_type, body, expected) in cases {
        let came = what_comes_of(message(message_type, &body)).await;
        assert_eq!(came, expected, "{message_type} {}", &body[..body.len().min(80)]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_runs_where_no_payload_is_asked_for_and_is_undecodable_elsewhere() {
    for body in [&b""[..], b"\x00\xff", b"\x07"] {
        let raw = |message_type| OutboundMessage::raw("orders", body.to_vec()).message_type(message_type);
        assert_eq!(what_comes_of(raw("no payload")).await, Came::handled(["ran"]));
        assert_eq!(what_comes_of(raw("message")).await.to, Settlement::DeadLetter(Reason::Undecodable));
    }
    let empty = what_comes_of(message("value", "")).await;
    assert_eq!(empty, undecodable("EOF while parsing a value at line 1 column 0"));
}

#[tokio::test(start_paused = true)]
async fn ten_megabytes_pass() {
    let body = format!("\"{}\"", "x".repeat(10 << 20));
    assert_eq!(what_comes_of(message("size", &body)).await, Came::handled(["10485760"]));
}

/// A binary format, over its serde crate.
#[derive(Debug)]
struct MessagePack;

impl Codec for MessagePack {
    fn content_type(&self) -> &str {
        "application/msgpack"
    }

    fn encode(&self, payload: &dyn erased_serde::Serialize) -> Result<Bytes, Error> {
        rmp_serde::to_vec_named(payload)
            .map(Bytes::from)
            .map_err(|error| Error::new(ErrorKind::Codec, "cannot write the payload as MessagePack").source(error))
    }

    fn decode(&self, body: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
        let mut reader = rmp_serde::Deserializer::new(body);
        read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut reader))?;
        if reader.get_ref().is_empty() { Ok(()) } else { Err("trailing bytes".into()) }
    }
}

fn packed<T: Serialize>(message_type: &str, payload: &T) -> OutboundMessage {
    OutboundMessage::raw("orders", rmp_serde::to_vec_named(payload).unwrap())
        .message_type(message_type)
        .content_type("application/msgpack")
}

async fn unpacked(message: OutboundMessage) -> Came {
    what_comes_of_with(message, |options| options.codec(MessagePack)).await
}

#[tokio::test(start_paused = true)]
async fn another_codec_is_chosen_by_content_type_and_keeps_every_rule() {
    let order = |id: &str| Order { order_id: id.into(), lines: u64::MAX };
    assert_eq!(unpacked(packed("message", &order("o-1"))).await, Came::handled(["o-1 18446744073709551615"]));
    let parameters = packed("message", &order("o-1")).content_type("Application/MsgPack; v=1");
    assert_eq!(unpacked(parameters).await, Came::handled(["o-1 18446744073709551615"]));
    assert_eq!(
        unpacked(packed("message", &order(""))).await,
        Came::dead(Reason::Invalid, "invalid message: order_id: length (min = 1)"),
    );
    let dead =
        |reason, error: &str| Came::dead(reason, &format!("cannot read the body as application/msgpack: {error}"));
    assert_eq!(
        unpacked(packed("message", &"text")).await,
        dead(Reason::Invalid, "invalid type: string \"text\", expected struct Order"),
    );
    let mut trailing = packed("message", &order("o-1"));
    trailing.body = [&trailing.body[..], b"\xc0"].concat().into();
    assert_eq!(unpacked(trailing).await, dead(Reason::Undecodable, "trailing bytes"));
    let mut cut = packed("message", &order("o-1"));
    cut.body.truncate(5);
    assert_eq!(unpacked(cut).await.to, Settlement::DeadLetter(Reason::Undecodable));
    // JSON is read beside it.
    let json = message("message", r#"{"order_id": "o-1", "lines": 3}"#);
    for content_type in ["application/json", "application/json; charset=utf-8", "application/vnd.acme+json"] {
        assert_eq!(unpacked(json.clone().content_type(content_type)).await, Came::handled(["o-1 3"]));
    }
    assert_eq!(unpacked(json).await, Came::handled(["o-1 3"]));
}

#[tokio::test(start_paused = true)]
async fn an_optional_payload_is_absent_by_the_rules_of_its_own_format() {
    // 10 and 32 are a line feed and a space to JSON, and numbers to MessagePack.
    for number in [10_i64, 32, 7, -1] {
        let came = unpacked(packed("optional.number", &number)).await;
        assert_eq!(came, Came::handled([format!("Some({number})")]));
    }
    assert_eq!(unpacked(packed("optional.number", &None::<i64>)).await, Came::handled(["None"]));
    assert_eq!(unpacked(packed("optional", &None::<Order>)).await, Came::handled(["nothing"]));
    let mut empty = packed("optional", &());
    empty.body = Bytes::new();
    assert_eq!(unpacked(empty).await, Came::handled(["nothing"]));
}

#[tokio::test(start_paused = true)]
async fn a_content_type_without_a_codec_is_undecodable_and_named() {
    let expected = "no codec for content type `application/cbor`; add one with `MessagingOptions::codec`";
    for message_type in ["message", "optional", "value"] {
        let cbor = message(message_type, "{}").content_type("application/cbor");
        assert_eq!(what_comes_of(cbor).await, Came::dead(Reason::Undecodable, expected), "{message_type}");
    }
    // Who reads no payload needs no codec.
    let cbor = message("no payload", "\u{7}").content_type("application/cbor");
    assert_eq!(what_comes_of(cbor).await, Came::handled(["ran"]));
}

#[tokio::test(start_paused = true)]
async fn a_publish_is_encoded_by_its_content_type_or_by_the_codec_of_publishes() {
    let order = Order { order_id: "o-1".into(), lines: 3 };
    let driver = MemoryDriver::new();
    let rig = Rig::start_with::<Extracting>(driver.clone(), |options| options.codec(MessagePack)).await;
    let broker = rig.app.get::<MessageBroker>().await.unwrap();
    broker.publish("orders", &order).message_type("message").await.unwrap();
    broker.publish("orders", &order).message_type("message").content_type("application/msgpack").await.unwrap();
    let refused = broker.publish("orders", &order).content_type("application/cbor").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Codec);
    assert_eq!(
        refused.to_string(),
        "cannot be encoded: cannot publish to `orders`: no codec for content type `application/cbor`; add one with `MessagingOptions::codec`",
    );
    driver.idle().await;
    assert_eq!(rig.log.lines(), ["o-1 3", "o-1 3"]);
    let published = driver.published("orders");
    assert_eq!(published[0].content_type.as_deref(), Some("application/json"));
    assert_eq!(&published[0].body[..], br#"{"order_id":"o-1","lines":3}"#);
    assert_eq!(&published[1].body[..], rmp_serde::to_vec_named(&order).unwrap());

    let driver = MemoryDriver::new();
    let rig = Rig::start_with::<Extracting>(driver.clone(), |options| options.publish_codec(MessagePack)).await;
    let broker = rig.app.get::<MessageBroker>().await.unwrap();
    broker.publish("orders", &order).message_type("message").await.unwrap();
    broker.publish("orders", &order).message_type("message").content_type("application/json").await.unwrap();
    driver.idle().await;
    assert_eq!(rig.log.lines(), ["o-1 3", "o-1 3"]);
    let published = driver.published("orders");
    assert_eq!(published[0].content_type.as_deref(), Some("application/msgpack"));
    assert_eq!(&published[0].body[..], rmp_serde::to_vec_named(&order).unwrap());
    assert_eq!(&published[1].body[..], br#"{"order_id":"o-1","lines":3}"#);
}

#[consumer("orders")]
struct Routed {
    log: Arc<Log>,
}

#[handlers]
impl Routed {
    #[on_message]
    async fn any(&self) {
        self.log.note("default");
    }

    #[on_message("*")]
    async fn star(&self) {
        self.log.note("*");
    }

    #[on_message("order.*")]
    async fn order(&self) {
        self.log.note("order.*");
    }

    #[on_message("order.*.v2")]
    async fn second(&self) {
        self.log.note("order.*.v2");
    }

    #[on_message("order.created")]
    async fn created(&self) {
        self.log.note("order.created");
    }

    #[on_message("a*b*c*d*e")]
    async fn letters(&self) {
        self.log.note("a*b*c*d*e");
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_is_the_exact_one_then_the_narrowest_pattern_then_the_default() {
    let rig = Rig::start::<Routed>().await;
    let expected = [
        ("order.created", "order.created"),
        ("order.created.v2", "order.*.v2"),
        ("order..v2", "order.*.v2"),
        ("order.v2", "order.*"),
        ("order.", "order.*"),
        ("order.*", "order.*"),
        ("order", "*"),
        ("orderXcreated", "*"),
        ("ORDER.CREATED", "*"),
        ("abcde", "a*b*c*d*e"),
        ("a🦀b🦀c🦀d🦀e", "a*b*c*d*e"),
        ("abcd", "*"),
        ("", "default"),
    ];
    for (message_type, _) in expected {
        rig.send(message_type, "");
    }
    rig.driver.send(OutboundMessage::raw("orders", ""));
    let stars = "*".repeat(10 << 10);
    let almost = format!("a{}", "bcd".repeat(10 << 10));
    rig.send(&stars, "");
    rig.send(&almost, "");
    rig.driver.idle().await;
    let expected: Vec<_> = expected.iter().map(|(_, chosen)| *chosen).chain(["default", "*", "*"]).collect();
    assert_eq!(rig.log.lines(), expected);
}
