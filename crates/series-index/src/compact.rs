//! The compact encoding of tag sets, in the arena and in the log.
//!
//! For each tag, ascending by ordinal, the encoding has a number `ordinal << 2 | code` (code 0
//! text, 1 integer, 2 false, 3 true) and then the value. A text is a number `length << 1` and its
//! bytes, or `place << 1 | 1` if the text is stored at that place of its tag's inverted index; an
//! integer is its zigzag number. Numbers are LEB128. Bytes written by this module are read without
//! checks; bytes from a file are checked first ([`canonical`]).

use marigram_model::{TagKey, TagValueRef, tag_key_entries};

const TEXT: u64 = 0;
const INTEGER: u64 = 1;
const FALSE: u64 = 2;
const TRUE: u64 = 3;

/// A tag's value as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredTagValue<'a> {
    /// UTF-8.
    Text(&'a [u8]),
    /// The text of this posting.
    Shared(u32),
    I64(i64),
    Bool(bool),
}

impl StoredTagValue<'_> {
    /// Whether it equals this value; always false for a shared one.
    pub(crate) fn equals(&self, value: TagValueRef<'_>) -> bool {
        match (self, value) {
            (Self::Text(own), TagValueRef::String(text)) => *own == text.as_bytes(),
            (Self::I64(own), TagValueRef::I64(number)) => *own == number,
            (Self::Bool(own), TagValueRef::Bool(truth)) => *own == truth,
            _ => false,
        }
    }
}

/// Appends a number.
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front; `None` if there is none.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends the head of a tag: its ordinal and the kind of its value.
pub(crate) fn put_head(ordinal: u16, value: TagValueRef<'_>, out: &mut Vec<u8>) {
    let code = match value {
        TagValueRef::String(_) => TEXT,
        TagValueRef::I64(_) => INTEGER,
        TagValueRef::Bool(false) => FALSE,
        TagValueRef::Bool(true) => TRUE,
    };
    put_number(u64::from(ordinal) << 2 | code, out);
}

/// Appends a tag; a text with a `place` becomes a reference to it if that is shorter.
pub(crate) fn put_tag(ordinal: u16, value: TagValueRef<'_>, place: Option<u32>, out: &mut Vec<u8>) {
    put_head(ordinal, value, out);
    match (value, place) {
        (TagValueRef::String(text), Some(place)) if text.len() > 4 => {
            put_number(u64::from(place) << 1 | 1, out);
        }
        (TagValueRef::String(text), _) => {
            put_number((text.len() as u64) << 1, out);
            out.extend_from_slice(text.as_bytes());
        }
        (TagValueRef::I64(number), _) => put_number((number << 1 ^ number >> 63) as u64, out),
        (TagValueRef::Bool(_), _) => {}
    }
}

/// Appends the tags of a canonical key.
pub(crate) fn put_key(key: &[u8], out: &mut Vec<u8>) {
    for (ordinal, value) in tag_key_entries(key).map_while(Result::ok) {
        put_tag(ordinal, value, None, out);
    }
}

/// Takes a tag off the front; `None` at the end, and if the bytes are not a tag.
pub(crate) fn take_tag<'a>(bytes: &mut &'a [u8]) -> Option<(u16, StoredTagValue<'a>)> {
    let head = take_number(bytes)?;
    let ordinal = u16::try_from(head >> 2).ok()?;
    let value = match head & 3 {
        TEXT => {
            let number = take_number(bytes)?;
            if number & 1 == 1 {
                StoredTagValue::Shared(u32::try_from(number >> 1).ok()?)
            } else {
                let (text, rest) = bytes.split_at_checked(usize::try_from(number >> 1).ok()?)?;
                *bytes = rest;
                StoredTagValue::Text(text)
            }
        }
        INTEGER => {
            let number = take_number(bytes)?;
            StoredTagValue::I64((number >> 1) as i64 ^ -((number & 1) as i64))
        }
        code => StoredTagValue::Bool(code == TRUE),
    };
    Some((ordinal, value))
}

/// The tags in bytes that this module wrote.
pub(crate) fn tags(mut bytes: &[u8]) -> impl Iterator<Item = (u16, StoredTagValue<'_>)> {
    std::iter::from_fn(move || take_tag(&mut bytes))
}

/// The value of one tag in bytes that this module wrote.
pub(crate) fn find(bytes: &[u8], ordinal: u16) -> Option<StoredTagValue<'_>> {
    tags(bytes)
        .take_while(|(at, _)| *at <= ordinal)
        .find_map(|(at, value)| (at == ordinal).then_some(value))
}

/// Appends a tag in canonical form; a shared text is `text`.
pub(crate) fn put_canonical(ordinal: u16, value: TagValueRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&ordinal.to_le_bytes());
    out.push(value.tag_type() as u8);
    match value {
        TagValueRef::String(text) => {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        TagValueRef::I64(number) => out.extend_from_slice(&number.to_le_bytes()),
        TagValueRef::Bool(truth) => out.push(u8::from(truth)),
    }
}

/// Appends the canonical form of a key from a file to `key`; `false` if the bytes are not a key. A
/// file contains no references.
pub(crate) fn canonical(mut bytes: &[u8], key: &mut TagKey) -> bool {
    let mut last = None;
    while !bytes.is_empty() {
        let Some((ordinal, value)) = take_tag(&mut bytes) else {
            return false;
        };
        if last >= Some(ordinal) {
            return false;
        }
        last = Some(ordinal);
        let value = match value {
            StoredTagValue::Text(text) => match str::from_utf8(text) {
                Ok(text) => TagValueRef::String(text),
                Err(_) => return false,
            },
            StoredTagValue::Shared(_) => return false,
            StoredTagValue::I64(number) => TagValueRef::I64(number),
            StoredTagValue::Bool(truth) => TagValueRef::Bool(truth),
        };
        key.push(ordinal, value);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64) {
            let mut bytes = Vec::new();
            put_number(number, &mut bytes);
            let mut rest = &bytes[..];
            prop_assert_eq!(take_number(&mut rest), Some(number));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn integers_and_texts_come_back(number: i64, text: String, truth: bool) {
            let mut key = TagKey::default();
            key.push(0, TagValueRef::I64(number));
            key.push(7, TagValueRef::String(&text));
            key.push(300, TagValueRef::Bool(truth));
            let mut bytes = Vec::new();
            put_key(key.as_bytes(), &mut bytes);
            let mut back = TagKey::default();
            prop_assert!(canonical(&bytes, &mut back));
            prop_assert_eq!(&back, &key);
            prop_assert!(find(&bytes, 7).is_some_and(|value| value.equals(TagValueRef::String(&text))));
            prop_assert_eq!(find(&bytes, 8), None);
        }

        #[test]
        fn any_bytes_are_a_key_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut key = TagKey::default();
            if canonical(&bytes, &mut key) {
                prop_assert!(TagKey::from_bytes(key.as_bytes()).is_ok());
            }
        }
    }

    #[test]
    fn a_shared_text_is_a_reference_in_memory_and_none_in_a_file() {
        let mut bytes = Vec::new();
        put_tag(2, TagValueRef::String("amsterdam"), Some(9), &mut bytes);
        assert_eq!(
            tags(&bytes).collect::<Vec<_>>(),
            [(2, StoredTagValue::Shared(9))]
        );
        assert!(!canonical(&bytes, &mut TagKey::default()));
    }
}
