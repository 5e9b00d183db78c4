use lapin::ErrorKind as AmqpKind;
use messaging::{Error, ErrorKind};

/// The reply code of an AMQP error: 403 for refused access, 404 for what is not there, 406 for what is different.
pub(crate) fn code(error: &lapin::Error) -> Option<u16> {
    if let AmqpKind::ProtocolError(error) = error.kind() { Some(error.get_id()) } else { None }
}

/// The broker's own words.
pub(crate) fn text(error: &lapin::Error) -> String {
    if let AmqpKind::ProtocolError(error) = error.kind() { error.get_message().to_string() } else { error.to_string() }
}

/// What an operation on the connection or a channel failed with.
pub(crate) fn failed(what: impl Into<String>, error: lapin::Error) -> Error {
    let kind = match code(&error) {
        // Refused access, what does not exist, is locked, or is different; a command or vhost that is not allowed.
        Some(402..=499 | 530 | 540) => ErrorKind::Config,
        _ => ErrorKind::Connection,
    };
    Error::new(kind, what).source(error)
}

pub(crate) fn connection(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Connection, what)
}

pub(crate) fn closed(what: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("{what}: the RabbitMQ driver is not connected, or closed"))
}

/// A settlement whose channel is gone.
pub(crate) fn lost() -> Error {
    connection("the channel was lost before the settlement was carried out; the broker delivers the message again")
}
