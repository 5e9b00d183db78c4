use std::sync::Arc;

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use messaging::{Attempt, Envelope, Error, ErrorKind, HeaderValue, MessageId, Native, Text, WireNames};

/// The header that carries a message's key, which AMQP has no place for.
const KEY: &str = "x-message-key";
const PERSISTENT: u8 = 2;

/// What a message had that text cannot hold.
struct AmqpPart {
    properties: BasicProperties,
    headers: FieldTable,
}

/// A message as AMQP has it.
pub(crate) struct Encoded {
    pub(crate) properties: BasicProperties,
    pub(crate) body: Bytes,
}

/// The header with which the driver marks its own copies; it names the queue whose message was copied.
pub(crate) fn copy_mark(names: &WireNames) -> String {
    format!("{}copy-of", names.prefix())
}

/// A string of at most 255 bytes, which AMQP's names and properties are.
pub(crate) fn short(what: &str, text: &str) -> Result<ShortString, Error> {
    ShortString::try_new(text).map_err(|_| {
        let what = format!("{what} has {} bytes, where AMQP allows 255: use a shorter one", text.len());
        Error::new(ErrorKind::Config, what)
    })
}

/// Whether the broker keeps that header for itself; carried on a copy, it would send it astray.
fn is_the_brokers(name: &str) -> bool {
    let exact = ["x-death", "x-delivery-count", "x-acquired-count", "CC", "BCC"];
    let start = ["x-first-death-", "x-last-death-", "x-opt-"];
    exact.contains(&name) || start.iter().any(|start| name.starts_with(start))
}

/// The properties and the body that a message is published with.
pub(crate) fn encode(envelope: &Envelope) -> Result<Encoded, Error> {
    let native = envelope.native.as_ref().and_then(|native| native.get::<AmqpPart>());
    let mut properties = native.map_or_else(BasicProperties::default, |part| part.properties.clone());
    properties = properties.with_delivery_mode(PERSISTENT).with_message_id(short("the id", envelope.id.as_str())?);
    if let Some(message_type) = &envelope.message_type {
        properties = properties.with_type(short("the message type", message_type)?);
    }
    if let Some(content_type) = &envelope.content_type {
        properties = properties.with_content_type(short("the content type", content_type)?);
    }
    let mut headers = FieldTable::default();
    for (name, value) in envelope.headers.iter() {
        let as_it_was = native.and_then(|part| part.headers.inner().get(name)).filter(|known| flatten(known) == *value);
        let value = as_it_was.cloned().unwrap_or_else(|| typed(value));
        headers.insert(short("the name of a header", name)?, value);
    }
    if let Some(key) = &envelope.key {
        headers.insert(KEY.into(), AMQPValue::LongString(LongString::from(key.to_vec())));
    }
    Ok(Encoded { properties: properties.with_headers(headers), body: envelope.body.clone() })
}

/// What the broker handed over, and which attempt its headers make it.
pub(crate) fn decode(
    properties: BasicProperties,
    body: Vec<u8>,
    queue: &str,
    names: &WireNames,
) -> (Envelope, Attempt) {
    let text =
        |value: &Option<ShortString>| value.as_ref().map(|value| value.to_string()).filter(|text| !text.is_empty());
    let id = text(properties.message_id()).map_or_else(MessageId::random, MessageId::from);
    let mut envelope = Envelope::with(id, Bytes::from(body));
    envelope.message_type = text(properties.kind()).map(Text::from);
    envelope.content_type = text(properties.content_type()).map(Arc::from);
    let mut kept = FieldTable::default();
    for (name, value) in properties.headers().iter().flatten() {
        if name.as_str() == KEY {
            envelope.key = flatten(value).as_bytes().map(Bytes::copy_from_slice);
        } else if !is_the_brokers(name.as_str()) {
            envelope.headers.append(name.as_str(), flatten(value));
            kept.insert(name.clone(), value.clone());
        }
    }
    let mark = copy_mark(names);
    let is_our_copy = envelope.headers.text(&mark) == Some(queue);
    let attempt = if is_our_copy { names.read_attempt(&envelope.headers) } else { Attempt::FIRST };
    envelope.headers.remove(&mark);
    envelope.headers.remove(names.attempt());
    envelope.native = Some(Native::new(AmqpPart { properties: for_copies(&properties), headers: kept }));
    (envelope, attempt)
}

/// The properties that a copy keeps: not the broker's own, no user that it would check, no expiry that would fire again.
fn for_copies(properties: &BasicProperties) -> BasicProperties {
    let mut kept = BasicProperties::default();
    if let Some(encoding) = properties.content_encoding() {
        kept = kept.with_content_encoding(encoding.clone());
    }
    if let Some(priority) = properties.priority() {
        kept = kept.with_priority(*priority);
    }
    if let Some(id) = properties.correlation_id() {
        kept = kept.with_correlation_id(id.clone());
    }
    if let Some(reply_to) = properties.reply_to() {
        kept = kept.with_reply_to(reply_to.clone());
    }
    if let Some(timestamp) = properties.timestamp() {
        kept = kept.with_timestamp(*timestamp);
    }
    if let Some(app) = properties.app_id() {
        kept = kept.with_app_id(app.clone());
    }
    kept
}

/// How often the broker says that this very copy was handed out in vain.
///
/// `counts` is whether the queue counts at all. What a client wrote into these headers is told from what the broker did by
/// their relation: it never counts more failures than hand-outs, and nothing on a first delivery.
pub(crate) fn broker_count(properties: &BasicProperties, redelivered: bool, counts: bool) -> u32 {
    let number = |name: &str| properties.headers().as_ref().and_then(|table| table.inner().get(name)).and_then(integer);
    if !redelivered || !counts {
        return 0;
    }
    let count = match (number("x-delivery-count"), number("x-acquired-count")) {
        (Some(failures), Some(hand_outs)) if failures <= hand_outs => failures,
        (Some(failures), None) => failures,
        (Some(_) | None, _) => 0,
    };
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

fn integer(value: &AMQPValue) -> Option<i64> {
    match value {
        AMQPValue::ShortShortInt(number) => Some(i64::from(*number)),
        AMQPValue::ShortShortUInt(number) => Some(i64::from(*number)),
        AMQPValue::ShortInt(number) => Some(i64::from(*number)),
        AMQPValue::ShortUInt(number) => Some(i64::from(*number)),
        AMQPValue::LongInt(number) => Some(i64::from(*number)),
        AMQPValue::LongUInt(number) => Some(i64::from(*number)),
        AMQPValue::LongLongInt(number) => Some(*number),
        AMQPValue::Boolean(_)
        | AMQPValue::Float(_)
        | AMQPValue::Double(_)
        | AMQPValue::DecimalValue(_)
        | AMQPValue::ShortString(_)
        | AMQPValue::LongString(_)
        | AMQPValue::FieldArray(_)
        | AMQPValue::Timestamp(_)
        | AMQPValue::FieldTable(_)
        | AMQPValue::ByteArray(_)
        | AMQPValue::Void => None,
    }
}

fn typed(value: &HeaderValue) -> AMQPValue {
    match value {
        HeaderValue::Text(text) => AMQPValue::LongString(LongString::from(text.as_bytes().to_vec())),
        HeaderValue::Binary(bytes) => AMQPValue::LongString(LongString::from(bytes.to_vec())),
        HeaderValue::Null => AMQPValue::Void,
    }
}

/// A value as a header of the library has it; tables and lists become the text of them.
fn flatten(value: &AMQPValue) -> HeaderValue {
    match value {
        AMQPValue::LongString(text) => HeaderValue::from_bytes(text.as_bytes()),
        AMQPValue::ShortString(text) => HeaderValue::from(text.as_str()),
        AMQPValue::ByteArray(bytes) => HeaderValue::from_bytes(bytes.as_slice()),
        AMQPValue::Void => HeaderValue::Null,
        AMQPValue::Boolean(value) => HeaderValue::from(value.to_string()),
        AMQPValue::Float(number) => HeaderValue::from(number.to_string()),
        AMQPValue::Double(number) => HeaderValue::from(number.to_string()),
        AMQPValue::Timestamp(seconds) => HeaderValue::from(seconds.to_string()),
        AMQPValue::DecimalValue(_) | AMQPValue::FieldArray(_) | AMQPValue::FieldTable(_) => {
            HeaderValue::from(format!("{value:?}"))
        }
        AMQPValue::ShortShortInt(_)
        | AMQPValue::ShortShortUInt(_)
        | AMQPValue::ShortInt(_)
        | AMQPValue::ShortUInt(_)
        | AMQPValue::LongInt(_)
        | AMQPValue::LongUInt(_)
        | AMQPValue::LongLongInt(_) => HeaderValue::from(integer(value).unwrap_or_default().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(headers: &[(&str, AMQPValue)]) -> BasicProperties {
        let mut table = FieldTable::default();
        for (name, value) in headers {
            table.insert((*name).into(), value.clone());
        }
        BasicProperties::default().with_headers(table)
    }

    #[test]
    fn a_copy_keeps_types_and_loses_what_is_the_brokers() -> Result<(), Error> {
        let names = WireNames::default();
        let came = with(&[
            ("number", AMQPValue::LongInt(7)),
            ("yes", AMQPValue::Boolean(true)),
            ("x-death", AMQPValue::Void),
            ("CC", AMQPValue::Void),
            (names.attempt(), AMQPValue::LongString("4".into())),
        ]);
        let (mut envelope, attempt) = decode(came.with_reply_to("answers".into()), b"{}".to_vec(), "orders", &names);
        assert_eq!(attempt, Attempt::FIRST, "a stranger's attempt is not believed");
        assert_eq!(envelope.headers.text("number"), Some("7"));
        envelope.headers.insert("yes", "no");
        let copy = encode(&envelope)?;
        let headers = copy.properties.headers().clone().unwrap_or_default();
        assert_eq!(headers.inner().get("number"), Some(&AMQPValue::LongInt(7)));
        assert_eq!(headers.inner().get("yes"), Some(&AMQPValue::LongString("no".into())));
        assert_eq!(headers.inner().len(), 2);
        assert_eq!(copy.properties.reply_to().as_ref().map(ShortString::as_str), Some("answers"));
        Ok(())
    }

    #[test]
    fn the_attempt_of_our_own_copy_is_believed() {
        let names = WireNames::default();
        let mark = copy_mark(&names);
        let copy = with(&[
            (&mark, AMQPValue::LongString("orders".into())),
            (names.attempt(), AMQPValue::LongString("4".into())),
        ]);
        let (envelope, attempt) = decode(copy.clone(), Vec::new(), "orders", &names);
        assert_eq!((attempt.get(), envelope.headers.len()), (4, 0));
        assert_eq!(decode(copy, Vec::new(), "others", &names).1, Attempt::FIRST);
    }

    #[test]
    fn a_count_that_the_broker_cannot_have_written_counts_nothing() {
        let count = |failures, hand_outs: Option<i64>, redelivered| {
            let mut headers = vec![("x-delivery-count", AMQPValue::LongLongInt(failures))];
            headers.extend(hand_outs.map(|number| ("x-acquired-count", AMQPValue::LongLongInt(number))));
            broker_count(&with(&headers), redelivered, true)
        };
        assert_eq!(count(2, None, true), 2);
        assert_eq!(count(2, Some(3), true), 2);
        assert_eq!(count(5, Some(1), true), 0);
        assert_eq!(count(5, None, false), 0);
        assert_eq!(count(-5, None, true), 0);
    }

    #[test]
    fn long_names_are_errors() {
        let long = "n".repeat(300);
        let mut envelope = Envelope::new("{}");
        envelope.headers.insert(&*long, "1");
        assert_eq!(encode(&envelope).err().map(|error| error.kind()), Some(ErrorKind::Config));
        let mut envelope = Envelope::new("{}");
        envelope.message_type = Some(Text::from(long));
        assert_eq!(encode(&envelope).err().map(|error| error.kind()), Some(ErrorKind::Config));
    }
}
