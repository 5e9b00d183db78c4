use std::fmt;

use serde::de::IgnoredAny;
use validator::{ValidationError, ValidationErrors, ValidationErrorsKind};

use super::Codec;
use crate::error::BoxError;

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
    /// No codec answers to the content type.
    pub(super) fn unknown_content_type(content_type: &str) -> Self {
        Self::Codec(CodecError(Decoding::UnknownContentType(content_type.to_owned())))
    }

    /// Well-formed bytes have the wrong shape; others are undecodable. One rule for every codec.
    pub(super) fn new(body: &[u8], codec: &dyn Codec, source: BoxError) -> Self {
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
