use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::decode_error::DecodeError;
use super::{Codec, Json};

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
        let essence = essence(content_type);
        self.other(essence).or_else(|| is_json(essence).then_some(&Json as &dyn Codec))
    }

    /// A codec that was added; one for JSON takes the place of the built-in one.
    fn other(&self, essence: &str) -> Option<&dyn Codec> {
        let known = |codec: &&dyn Codec| codec.content_type().eq_ignore_ascii_case(essence);
        self.others.iter().map(|codec| &**codec).find(known)
    }

    /// Whether a body holds nothing at all; white space is nothing to JSON, and a value to a binary format.
    pub(crate) fn is_blank(&self, content_type: Option<&str>, body: &[u8]) -> bool {
        let codec = || self.find(content_type.unwrap_or(Json::CONTENT_TYPE));
        body.is_empty()
            || body.trim_ascii().is_empty() && codec().is_some_and(|codec| codec.content_type() == Json::CONTENT_TYPE)
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
        let codec = match self.other(essence(content_type)) {
            Some(codec) => codec,
            None if is_json(essence(content_type)) => return Json::read(body),
            None => return Err(DecodeError::unknown_content_type(content_type)),
        };
        let mut payload = None;
        codec
            .decode(body, &mut |reader| erased_serde::deserialize(reader).map(|read| payload = Some(read)))
            .map_err(|error| DecodeError::new(body, codec, error))?;
        payload.ok_or_else(|| DecodeError::new(body, codec, "the codec read nothing".into()))
    }
}

/// The content type without its parameters.
fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn is_json(essence: &str) -> bool {
    essence.eq_ignore_ascii_case(Json::CONTENT_TYPE) || essence.ends_with("+json")
}
