use std::fmt;
use std::future::{Future, ready};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use validator::Validate;

use crate::app::{Key, Plan, Slots};
use crate::codec::{Codecs, DecodeError, MessageValidationError};
use crate::failure::{Failure, FailureKind};
use crate::headers::{HeaderValue, Headers};
use crate::message::{Attempt, InboundMessage};

/// What a handler's parameters are taken from: the message, and the scope of its delivery.
#[derive(Clone, Copy)]
pub struct MessageContext<'m> {
    pub(crate) message: &'m Arc<InboundMessage>,
    pub(crate) codecs: &'m Codecs,
    pub(crate) plan: &'m Plan,
    pub(crate) slots: &'m Slots,
}

impl<'m> MessageContext<'m> {
    /// The message.
    #[must_use]
    pub fn message(self) -> &'m Arc<InboundMessage> {
        self.message
    }

    /// Decodes the body by its content type, without validation.
    ///
    /// # Errors
    /// A final failure: `Undecodable`, or `Invalid` for the wrong shape.
    pub fn decode<T: DeserializeOwned>(self) -> Result<T, Failure> {
        self.codecs.decode(self.message.content_type.as_deref(), &self.message.body).map_err(|error| match error {
            DecodeError::Codec(error) => Failure::of(FailureKind::Undecodable, error),
            DecodeError::Shape(error) => Failure::of(FailureKind::Invalid, error),
        })
    }

    /// Something from the delivery's scope, declared with [`FromMessage::requires`].
    ///
    /// # Errors
    /// It was not declared.
    pub fn inject<T: ?Sized + Send + Sync + 'static>(self) -> Result<Arc<T>, Failure> {
        self.plan.read(self.slots).ok_or_else(|| {
            Failure::of(FailureKind::Scope, format!("{} was not declared with `FromMessage::requires`", Key::of::<T>()))
        })
    }

    /// The same; `None` for an empty body, and for what is null in its format.
    fn decode_optional<T: DeserializeOwned>(self) -> Result<Option<T>, Failure> {
        let absent = self.codecs.is_blank(self.message.content_type.as_deref(), &self.message.body);
        if absent { Ok(None) } else { self.decode() }
    }
}

impl fmt::Debug for MessageContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContext").field("message", &self.message).finish_non_exhaustive()
    }
}

/// A parameter of a handler.
///
/// Implement it for your own:
///
/// ```
/// use messaging::{Failure, FromMessage, MessageContext};
///
/// struct Tenant(String);
///
/// impl<'m> FromMessage<'m> for Tenant {
///     async fn from_message(context: MessageContext<'m>) -> Result<Self, Failure> {
///         let tenant = context.message().headers.text("tenant");
///         tenant.map(|tenant| Tenant(tenant.into())).ok_or_else(|| Failure::non_retryable("no tenant"))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a handler",
    label = "not something a message gives",
    note = "a handler takes `Message<T>`, `Unvalidated<T>`, `Option` of either, `&InboundMessage`, `Arc<InboundMessage>`, `Bytes`, `Headers`, `Attempt`, `CancellationToken`, `Inject<T>`, or `#[header(\"name\")]` before a parameter; `#[on_error]` also takes `&Failure`",
    note = "what every message shares, such as a `MessageBroker`, is a field of the consumer",
    note = "`Message<T>` asks for `T: Deserialize + validator::Validate`; derive `Validate` for it, or take `Unvalidated<T>`"
)]
pub trait FromMessage<'m>: Sized + Send {
    /// Takes it from the message.
    ///
    /// # Errors
    /// Why it cannot; retryable unless it says otherwise.
    fn from_message(context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// What it will take from the scope with [`MessageContext::inject`], for the check at boot.
    fn requires(_keys: &mut Vec<Key>) {}
}

/// The payload, decoded and validated; derefs to it.
///
/// It asks for [`Validate`]; [`Unvalidated`] is for types that have no rules. An undecodable, wrongly shaped or invalid
/// message is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<T>(pub T);

/// The payload, decoded and not validated; derefs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unvalidated<T>(pub T);

/// Something from the delivery's scope; derefs to it.
#[derive(Debug)]
pub struct Inject<T: ?Sized>(pub Arc<T>);

macro_rules! deref {
    ($name:ident) => {
        impl<T> $name<T> {
            /// Takes the payload out.
            #[must_use]
            pub fn into_inner(self) -> T {
                self.0
            }
        }

        impl<T> Deref for $name<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }
    };
}

deref!(Message);
deref!(Unvalidated);

impl<T: ?Sized> Deref for Inject<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

fn validated<T: Validate>(payload: T) -> Result<Message<T>, Failure> {
    match payload.validate() {
        Ok(()) => Ok(Message(payload)),
        Err(errors) => Err(Failure::of(FailureKind::Invalid, MessageValidationError::from(errors))),
    }
}

#[diagnostic::do_not_recommend]
impl<'m, T: DeserializeOwned + Validate + Send> FromMessage<'m> for Message<T> {
    fn from_message(context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send {
        ready(context.decode().and_then(validated))
    }
}

#[diagnostic::do_not_recommend]
impl<'m, T: DeserializeOwned + Send> FromMessage<'m> for Unvalidated<T> {
    fn from_message(context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send {
        ready(context.decode().map(Unvalidated))
    }
}

/// `None` for an empty body, or a null.
#[diagnostic::do_not_recommend]
impl<'m, T: DeserializeOwned + Validate + Send> FromMessage<'m> for Option<Message<T>> {
    fn from_message(context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send {
        ready(context.decode_optional().and_then(|payload| payload.map(validated).transpose()))
    }
}

/// `None` for an empty body, or a null.
#[diagnostic::do_not_recommend]
impl<'m, T: DeserializeOwned + Send> FromMessage<'m> for Option<Unvalidated<T>> {
    fn from_message(context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send {
        ready(context.decode_optional().map(|payload| payload.map(Unvalidated)))
    }
}

#[diagnostic::do_not_recommend]
impl<'m, T: ?Sized + Send + Sync + 'static> FromMessage<'m> for Inject<T> {
    fn from_message(context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send {
        ready(context.inject().map(Inject))
    }

    fn requires(keys: &mut Vec<Key>) {
        keys.push(Key::of::<T>());
    }
}

macro_rules! always {
    ($($type:ty: $context:ident => $value:expr;)*) => {$(
        impl<'m> FromMessage<'m> for $type {
            fn from_message($context: MessageContext<'m>) -> impl Future<Output = Result<Self, Failure>> + Send {
                ready(Ok($value))
            }
        }
    )*};
}

always! {
    &'m InboundMessage: context => &**context.message;
    Arc<InboundMessage>: context => Arc::clone(context.message);
    Bytes: context => context.message.body.clone();
    Headers: context => context.message.headers.clone();
    &'m Headers: context => &context.message.headers;
    Attempt: context => context.message.attempt();
    CancellationToken: context => context.message.signal();
}

/// The value of a header, for parameters with `#[header("name")]`.
///
/// `Option` of it where absence is fine; what is there and does not parse is a final failure all the same.
///
/// ```
/// use messaging::{Failure, FromHeader, HeaderValue};
///
/// #[derive(Debug, PartialEq)]
/// enum Region { Eu, Us }
///
/// impl<'m> FromHeader<'m> for Region {
///     fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
///         match <&str>::from_header(name, value)? {
///             "eu" => Ok(Region::Eu),
///             "us" => Ok(Region::Us),
///             other => Err(Failure::non_retryable(format!("no region `{other}`"))),
///         }
///     }
/// }
///
/// assert_eq!(Region::from_header("region", Some(&"eu".into())).unwrap(), Region::Eu);
/// assert_eq!(<Option<u32>>::from_header("size", None).unwrap(), None);
/// assert!(<Option<u32>>::from_header("size", Some(&"many".into())).is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a header",
    label = "not a header's value",
    note = "a header is text, a number, a boolean, `HeaderValue`, `Bytes`, or an `Option` of one; implement `FromHeader` for your own"
)]
pub trait FromHeader<'m>: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// A final failure: the header is not there, or is something else.
    fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure>;
}

fn invalid(text: String) -> Failure {
    Failure::of(FailureKind::Invalid, MessageValidationError::new(text))
}

fn present<'m>(name: &str, value: Option<&'m HeaderValue>) -> Result<&'m HeaderValue, Failure> {
    value.ok_or_else(|| invalid(format!("header `{name}` is missing")))
}

impl<'m> FromHeader<'m> for &'m HeaderValue {
    fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
        present(name, value)
    }
}

impl<'m> FromHeader<'m> for &'m str {
    fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
        present(name, value)?.as_text().ok_or_else(|| invalid(format!("header `{name}` is not text")))
    }
}

impl<'m> FromHeader<'m> for Bytes {
    fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
        let bytes = present(name, value)?.as_bytes();
        bytes.map(Self::copy_from_slice).ok_or_else(|| invalid(format!("header `{name}` has no value")))
    }
}

impl<'m, T: FromHeader<'m>> FromHeader<'m> for Option<T> {
    fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
        match value {
            None | Some(HeaderValue::Null) => Ok(None),
            Some(_) => T::from_header(name, value).map(Some),
        }
    }
}

macro_rules! parsed {
    ($($type:ty)*) => {$(
        impl<'m> FromHeader<'m> for $type {
            fn from_header(name: &str, value: Option<&'m HeaderValue>) -> Result<Self, Failure> {
                let text = <&str>::from_header(name, value)?;
                text.parse().map_err(|_| invalid(format!("header `{name}` is not a {}: `{text}`", stringify!($type))))
            }
        }
    )*};
}

parsed!(String bool char u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);
