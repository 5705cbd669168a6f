//! Tag sets: the identity of a series.
//!
//! A tag set has one canonical form in bytes, the *tag key*. It contains, for each tag that is not
//! null, in the order of the table's tags: the tag's ordinal (u16 little-endian), its type's number
//! (u8) and its value. A text is a length (u32 little-endian) and UTF-8, an integer is 8 bytes
//! little-endian, a truth value is one byte. A null tag does not appear, so the key of a series
//! stays the same when its table gains a tag.

use crate::types::TagType;
use std::fmt;

/// One tag's value, owned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagValue {
    /// Text.
    String(String),
    /// Integer.
    I64(i64),
    /// Truth value.
    Bool(bool),
}

/// One tag's value, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagValueRef<'a> {
    /// Text.
    String(&'a str),
    /// Integer.
    I64(i64),
    /// Truth value.
    Bool(bool),
}

impl TagValue {
    /// The value, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> TagValueRef<'_> {
        match self {
            Self::String(text) => TagValueRef::String(text),
            Self::I64(number) => TagValueRef::I64(*number),
            Self::Bool(truth) => TagValueRef::Bool(*truth),
        }
    }
}

impl TagValueRef<'_> {
    /// The value's type.
    #[must_use]
    pub fn tag_type(self) -> TagType {
        match self {
            Self::String(_) => TagType::String,
            Self::I64(_) => TagType::I64,
            Self::Bool(_) => TagType::Bool,
        }
    }

    /// A copy of the value.
    #[must_use]
    pub fn to_value(self) -> TagValue {
        match self {
            Self::String(text) => TagValue::String(text.to_owned()),
            Self::I64(number) => TagValue::I64(number),
            Self::Bool(truth) => TagValue::Bool(truth),
        }
    }
}

impl fmt::Display for TagValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => f.write_str(text),
            Self::I64(number) => number.fmt(f),
            Self::Bool(truth) => truth.fmt(f),
        }
    }
}

/// A tag set in its canonical form (see the module documentation). The empty key is the series
/// without tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagKey(Vec<u8>);

impl TagKey {
    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes all tags, but keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a tag. Tags must be appended in ascending order of `ordinal`, each once.
    ///
    /// # Panics
    /// If a text has 4 GiB or more.
    pub fn push(&mut self, ordinal: u16, value: TagValueRef<'_>) {
        self.0.extend_from_slice(&ordinal.to_le_bytes());
        self.0.push(value.tag_type() as u8);
        match value {
            TagValueRef::String(text) => {
                let len = u32::try_from(text.len()).expect("tag values are far below 4 GiB");
                self.0.extend_from_slice(&len.to_le_bytes());
                self.0.extend_from_slice(text.as_bytes());
            }
            TagValueRef::I64(number) => self.0.extend_from_slice(&number.to_le_bytes()),
            TagValueRef::Bool(truth) => self.0.push(u8::from(truth)),
        }
    }

    /// Checks a key from an untrusted source.
    ///
    /// # Errors
    /// If the bytes are not a canonical key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TagKeyError> {
        let mut last = None;
        for entry in tag_key_entries(bytes) {
            let (ordinal, _) = entry?;
            if last.is_some_and(|last| last >= ordinal) {
                return Err(TagKeyError("tags are not in ascending order"));
            }
            last = Some(ordinal);
        }
        Ok(Self(bytes.to_vec()))
    }
}

/// Why bytes are not a valid tag key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged tag key: {0}")]
pub struct TagKeyError(&'static str);

/// The tags in a key as (ordinal, value), in ascending order of ordinal. Ends after an error.
pub fn tag_key_entries(
    key: &[u8],
) -> impl Iterator<Item = Result<(u16, TagValueRef<'_>), TagKeyError>> {
    let mut rest = key;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let entry = split_entry(rest);
        rest = entry.as_ref().map_or(&[], |(_, rest)| rest);
        Some(entry.map(|(entry, _)| entry))
    })
}

type SplitTags<'a> = ((u16, TagValueRef<'a>), &'a [u8]);

fn split_entry(bytes: &[u8]) -> Result<SplitTags<'_>, TagKeyError> {
    const SHORT: TagKeyError = TagKeyError("it ends early");
    let (ordinal, rest) = bytes.split_first_chunk::<2>().ok_or(SHORT)?;
    let ordinal = u16::from_le_bytes(*ordinal);
    let (kind, rest) = rest.split_first().ok_or(SHORT)?;
    let kind = TagType::from_number(*kind).ok_or(TagKeyError("no tag type has this number"))?;
    let (value, rest) = match kind {
        TagType::String => {
            let (len, rest) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
            let len = u32::from_le_bytes(*len) as usize;
            let (text, rest) = rest.split_at_checked(len).ok_or(SHORT)?;
            let text = str::from_utf8(text).map_err(|_| TagKeyError("text is not UTF-8"))?;
            (TagValueRef::String(text), rest)
        }
        TagType::I64 => {
            let (number, rest) = rest.split_first_chunk::<8>().ok_or(SHORT)?;
            (TagValueRef::I64(i64::from_le_bytes(*number)), rest)
        }
        TagType::Bool => match rest.split_first().ok_or(SHORT)? {
            (0, rest) => (TagValueRef::Bool(false), rest),
            (1, rest) => (TagValueRef::Bool(true), rest),
            _ => return Err(TagKeyError("a truth value is neither 0 nor 1")),
        },
    };
    Ok(((ordinal, value), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_its_tags() {
        let mut key = TagKey::default();
        key.push(0, TagValueRef::String("pump-7"));
        key.push(2, TagValueRef::I64(i64::MIN));
        key.push(9, TagValueRef::Bool(true));
        let entries: Result<Vec<_>, _> = tag_key_entries(key.as_bytes()).collect();
        let expected = vec![
            (0, TagValueRef::String("pump-7")),
            (2, TagValueRef::I64(i64::MIN)),
            (9, TagValueRef::Bool(true)),
        ];
        assert_eq!(entries, Ok(expected));
        assert_eq!(TagKey::from_bytes(key.as_bytes()), Ok(key));
    }

    #[test]
    fn damaged_keys_are_errors() {
        let mut key = TagKey::default();
        key.push(3, TagValueRef::String("a"));
        let good = key.as_bytes().to_vec();
        for len in 1..good.len() {
            assert!(TagKey::from_bytes(&good[..len]).is_err(), "cut at {len}");
        }
        let twice = [good.clone(), good].concat();
        assert!(TagKey::from_bytes(&twice).is_err());
        assert!(TagKey::from_bytes(&[0, 0, 77, 0]).is_err());
        assert!(TagKey::from_bytes(&[0, 0, 3, 2]).is_err());
        assert!(TagKey::from_bytes(&[0, 0, 1, 1, 0, 0, 0, 0xff]).is_err());
    }
}
