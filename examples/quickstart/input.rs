use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One message to send, as a line of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(rename = "type")]
    pub(crate) message_type: String,
    /// Anything, `null` included.
    #[serde(default, deserialize_with = "present")]
    pub(crate) payload: Option<Value>,
    /// Sent byte for byte, in place of a payload.
    pub(crate) raw: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) key: Option<String>,
    pub(crate) id: Option<String>,
    #[serde(default, deserialize_with = "delay")]
    pub(crate) delay: Option<Duration>,
}

impl Line {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        let line: Self = serde_json::from_slice(text)?;
        match (&line.payload, &line.raw) {
            (Some(_), Some(_)) => Err(Error::custom("there is a `payload` and a `raw`; a message has one of the two")),
            (None, None) => Err(Error::custom("there is neither a `payload` nor a `raw`")),
            _ => Ok(line),
        }
    }
}

/// What is there is `Some`, also when it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| {
        humantime::parse_duration(&text).map_err(|error| D::Error::custom(format!("delay `{text}`: {error}")))
    })
    .transpose()
}
