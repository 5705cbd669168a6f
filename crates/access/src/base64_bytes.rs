//! Bytes as base64 in JSON, for serde's `with`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<B, S>(bytes: &B, to: S) -> Result<S::Ok, S::Error>
where
    B: AsRef<[u8]>,
    S: Serializer,
{
    to.serialize_str(&STANDARD.encode(bytes))
}

pub(crate) fn deserialize<'de, B, D>(from: D) -> Result<B, D::Error>
where
    B: TryFrom<Vec<u8>>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    let length = bytes.len();
    let wrong = |_| D::Error::custom(format!("{length} bytes are of the wrong length"));
    bytes.try_into().map_err(wrong)
}
