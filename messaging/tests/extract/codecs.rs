//! Other formats than JSON.

use crate::*;

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
    let expected = misshapen("lines: invalid type: string \"three\", expected u64 at line 1 column 36");
    let wrong = message("message", r#"{"order_id": "o-1", "lines": "three"}"#);
    assert_eq!(unpacked(wrong.clone()).await, expected);
    let parameters = wrong.content_type("Application/JSON; charset=utf-8");
    assert_eq!(what_comes_of(parameters).await, expected);
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
