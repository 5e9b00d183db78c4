//! How a payload becomes bytes, and bytes become a payload.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeOwned, IgnoredAny};
use validator::{ValidationError, ValidationErrors, ValidationErrorsKind};

use crate::error::{BoxError, Error, ErrorKind};

/// Encodes and decodes payloads of one content type.
///
/// JSON is built in; CBOR, MessagePack and others are a few lines over their serde crates.
pub trait Codec: fmt::Debug + Send + Sync + 'static {
    /// The content type it answers to, such as `application/cbor`.
    fn content_type(&self) -> &str;

    /// Encodes a payload.
    ///
    /// # Errors
    /// `Codec`, when the payload cannot be written in this format.
    fn encode(&self, payload: &dyn erased_serde::Serialize) -> Result<Bytes, Error>;

    /// Lets `read` deserialize from the body, and checks that nothing follows what was read.
    ///
    /// # Errors
    /// What `read` or the format found wrong.
    fn decode(&self, body: &[u8], read: &mut Read<'_>) -> Result<(), BoxError>;
}

/// Reads a payload from a format's deserializer; given to [`Codec::decode`].
pub type Read<'r> = dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error> + 'r;

/// The built-in codec, for `application/json` and for messages without a content type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Json {
    /// The content type it answers to.
    pub const CONTENT_TYPE: &'static str = "application/json";

    fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
        serde_json::from_slice(body).map_err(|error| {
            // Read once more, slowly: now to say where it went wrong.
            let mut reader = serde_json::Deserializer::from_slice(body);
            match serde_path_to_error::deserialize::<_, T>(&mut reader) {
                Err(located) if located.path().iter().next().is_some() => {
                    DecodeError::new(body, &Self, Box::new(located))
                }
                _ => DecodeError::new(body, &Self, Box::new(error)),
            }
        })
    }
}

impl Codec for Json {
    fn content_type(&self) -> &str {
        Self::CONTENT_TYPE
    }

    fn encode(&self, payload: &dyn erased_serde::Serialize) -> Result<Bytes, Error> {
        serde_json::to_vec(payload).map(Bytes::from).map_err(|error| cannot_encode(self, error))
    }

    fn decode(&self, body: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut reader))?;
        Ok(reader.end()?)
    }
}

/// The error of a codec that could not encode.
pub(crate) fn cannot_encode(codec: &dyn Codec, error: impl Into<BoxError>) -> Error {
    Error::new(ErrorKind::Codec, format!("cannot write the payload as {}", codec.content_type())).source(error)
}

/// The body is not what its content type says.
#[derive(Debug)]
pub struct CodecError(Decoding);

/// The body decodes, but to the wrong shape, or breaks a validation rule.
#[derive(Debug)]
pub struct MessageValidationError(Decoding);

#[derive(Debug)]
enum Decoding {
    Failed { content_type: String, source: BoxError },
    UnknownContentType(String),
    Broken(Box<ValidationErrors>),
    Other(String),
}

impl MessageValidationError {
    /// Something about the message breaks a rule.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Decoding::Other(text.into()))
    }

    /// The rules that were broken, where it was not the shape.
    #[must_use]
    pub fn errors(&self) -> Option<&ValidationErrors> {
        match &self.0 {
            Decoding::Broken(errors) => Some(errors),
            Decoding::Failed { .. } | Decoding::UnknownContentType(_) | Decoding::Other(_) => None,
        }
    }
}

impl From<ValidationErrors> for MessageValidationError {
    fn from(errors: ValidationErrors) -> Self {
        Self(Decoding::Broken(Box::new(errors)))
    }
}

/// What went wrong when a body was decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    Codec(CodecError),
    Shape(MessageValidationError),
}

impl DecodeError {
    /// Well-formed bytes have the wrong shape; others are undecodable. One rule for every codec.
    fn new(body: &[u8], codec: &dyn Codec, source: BoxError) -> Self {
        let content_type = codec.content_type().to_owned();
        let failed = Decoding::Failed { content_type, source };
        let well_formed =
            codec.decode(body, &mut |reader| erased_serde::deserialize::<IgnoredAny>(reader).map(drop)).is_ok();
        if well_formed { Self::Shape(MessageValidationError(failed)) } else { Self::Codec(CodecError(failed)) }
    }
}

impl fmt::Display for Decoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { content_type, .. } => write!(f, "cannot read the body as {content_type}"),
            Self::UnknownContentType(content_type) => {
                write!(f, "no codec for content type `{content_type}`; add one with `MessagingOptions::codec`")
            }
            Self::Broken(errors) => write!(f, "invalid message: {}", broken_rules(errors).join(", ")),
            Self::Other(text) => write!(f, "invalid message: {text}"),
        }
    }
}

impl Decoding {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { source, .. } => Some(&**source),
            Self::UnknownContentType(_) | Self::Broken(_) | Self::Other(_) => None,
        }
    }
}

/// Each broken rule with its field, as `order_id: length (min = 1)`; the offending values stay out of it.
fn broken_rules(errors: &ValidationErrors) -> Vec<String> {
    let mut rules = Vec::new();
    collect_rules("", errors, &mut rules);
    rules.sort();
    rules
}

fn collect_rules(path: &str, errors: &ValidationErrors, rules: &mut Vec<String>) {
    for (field, kind) in errors.errors() {
        // Rules of the struct as a whole have no field of their own.
        let path = match (path, field.as_ref()) {
            ("", field) => field.to_owned(),
            (path, "__all__") => path.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        match kind {
            ValidationErrorsKind::Struct(inner) => collect_rules(&path, inner, rules),
            ValidationErrorsKind::List(items) => {
                items.iter().for_each(|(index, inner)| collect_rules(&format!("{path}[{index}]"), inner, rules));
            }
            ValidationErrorsKind::Field(broken) => rules.extend(broken.iter().map(|rule| match &rule.message {
                Some(message) => format!("{path}: {message}"),
                None => format!("{path}: {}{}", rule.code, arguments(rule)),
            })),
        }
    }
}

fn arguments(rule: &ValidationError) -> String {
    let mut arguments: Vec<_> = rule.params.iter().filter(|(name, _)| *name != "value").collect();
    arguments.sort_by(|left, right| left.0.cmp(right.0));
    let arguments: Vec<_> = arguments.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if arguments.is_empty() { String::new() } else { format!(" ({})", arguments.join(", ")) }
}

macro_rules! error {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::error::Error for $name {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                self.0.source()
            }
        }
    };
}

error!(CodecError);
error!(MessageValidationError);

/// The codecs of an application, chosen by content type.
#[derive(Clone, Debug)]
pub(crate) struct Codecs {
    others: Vec<Arc<dyn Codec>>,
    publish: Arc<dyn Codec>,
    publish_type: Arc<str>,
}

impl Default for Codecs {
    fn default() -> Self {
        Self { others: Vec::new(), publish: Arc::new(Json), publish_type: Arc::from(Json::CONTENT_TYPE) }
    }
}

impl Codecs {
    pub(crate) fn add(&mut self, codec: Arc<dyn Codec>) {
        self.others.retain(|known| known.content_type() != codec.content_type());
        self.others.push(codec);
    }

    pub(crate) fn publish_with(&mut self, codec: Arc<dyn Codec>) {
        self.add(Arc::clone(&codec));
        self.publish_type = Arc::from(codec.content_type());
        self.publish = codec;
    }

    /// The codec that a publish uses when it names no content type.
    pub(crate) fn for_publish(&self) -> &dyn Codec {
        &*self.publish
    }

    /// Its content type, shared.
    pub(crate) fn default_content_type(&self) -> Arc<str> {
        Arc::clone(&self.publish_type)
    }

    pub(crate) fn find(&self, content_type: &str) -> Option<&dyn Codec> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let named = |known: &str| known.eq_ignore_ascii_case(essence);
        self.others
            .iter()
            .map(|codec| &**codec)
            .find(|codec| named(codec.content_type()))
            .or_else(|| (named(Json::CONTENT_TYPE) || essence.ends_with("+json")).then_some(&Json as &dyn Codec))
    }

    pub(crate) fn decode<T: DeserializeOwned>(
        &self,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<T, DecodeError> {
        if self.others.is_empty() && content_type.is_none_or(|content_type| content_type == Json::CONTENT_TYPE) {
            return Json::read(body);
        }
        let content_type = content_type.unwrap_or(Json::CONTENT_TYPE);
        let Some(codec) = self.find(content_type) else {
            return Err(DecodeError::Codec(CodecError(Decoding::UnknownContentType(content_type.to_owned()))));
        };
        let mut payload = None;
        codec
            .decode(body, &mut |reader| erased_serde::deserialize(reader).map(|read| payload = Some(read)))
            .map_err(|error| DecodeError::new(body, codec, error))?;
        payload.ok_or_else(|| DecodeError::new(body, codec, "the codec read nothing".into()))
    }
}
