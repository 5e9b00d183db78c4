//! How a payload becomes bytes, and bytes become a payload.

mod codecs;
mod decode_error;
mod json;

use std::fmt;

use bytes::Bytes;

use crate::error::{BoxError, Error};

pub use decode_error::{CodecError, MessageValidationError};
pub use json::Json;

pub(crate) use codecs::Codecs;
pub(crate) use decode_error::DecodeError;

/// Encodes and decodes payloads of one content type.
///
/// JSON is built in. Another format needs a serde crate whose deserializer is public, as that of `rmp-serde` for MessagePack.
pub trait Codec: fmt::Debug + Send + Sync + 'static {
    /// The content type it answers to, such as `application/msgpack`.
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
