use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::decode_error::DecodeError;
use super::{Codec, Read};
use crate::error::{BoxError, Error, ErrorKind};

/// The built-in codec, for `application/json` and for messages without a content type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Json {
    /// The content type it answers to.
    pub const CONTENT_TYPE: &'static str = "application/json";

    pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
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
        serde_json::to_vec(payload)
            // Without spare room, which `Bytes` would keep an account of in an allocation of its own.
            .map(|text| Bytes::from(text.into_boxed_slice()))
            .map_err(|error| Error::new(ErrorKind::Codec, "cannot write the payload as JSON").source(error))
    }

    fn decode(&self, body: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut reader))?;
        Ok(reader.end()?)
    }
}
