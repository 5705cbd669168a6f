//! One-dimensional arrays that a client binds, in the formats of PostgreSQL's `array_in` and
//! `array_recv`.
//!
//! Invariant: memory grows with the bytes that were sent: elements are converted to Arrow arrays in
//! parts.

use arrow::array::{ArrayRef, ListArray, new_empty_array, new_null_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field};
use std::sync::Arc;

/// Elements that are read one by one before they become one array.
const PART_ELEMENTS: usize = 1024;
/// The error for nested arrays: no column and no function takes them.
const NESTED: &str = "arrays of more than one dimension are not taken";

/// Elements to be collected into a list.
struct ArrayElements<'a> {
    kind: &'a DataType,
    part: Vec<ArrayRef>,
    parts: Vec<ArrayRef>,
}

impl<'a> ArrayElements<'a> {
    fn new(kind: &'a DataType) -> Self {
        let (part, parts) = (Vec::new(), Vec::new());
        Self { kind, part, parts }
    }

    fn push(&mut self, element: Option<ArrayRef>) -> Result<(), String> {
        let null = || new_null_array(self.kind, 1);
        self.part.push(element.unwrap_or_else(null));
        if self.part.len() == PART_ELEMENTS {
            self.end_part()?;
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), String> {
        self.parts.push(joined(&self.part)?);
        self.part.clear();
        Ok(())
    }

    /// Returns the list as an array of one row.
    fn finish(mut self) -> Result<ArrayRef, String> {
        if !self.part.is_empty() {
            self.end_part()?;
        }
        let values = if self.parts.is_empty() {
            new_empty_array(self.kind)
        } else {
            joined(&self.parts)?
        };
        let field = Arc::new(Field::new_list_field(self.kind.clone(), true));
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(field, offsets, values, None);
        Ok(Arc::new(list.map_err(|error| error.to_string())?))
    }
}

fn joined(arrays: &[ArrayRef]) -> Result<ArrayRef, String> {
    let arrays: Vec<_> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&arrays).map_err(|error| error.to_string())
}

/// Parses `{1,NULL,"a b"}`, with elements of type `kind`; `read` converts each to an array of one
/// row.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn from_text(
    text: &str,
    kind: &DataType,
    read: impl Fn(&[u8]) -> Result<ArrayRef, String>,
) -> Result<ArrayRef, String> {
    let malformed = || format!("\"{text}\" is not an array; write {{1,2,NULL}}");
    let mut rest = text.trim().strip_prefix('{').ok_or_else(malformed)?;
    let mut elements = ArrayElements::new(kind);
    rest = rest.trim_start();
    if let Some(end) = rest.strip_prefix('}') {
        return if end.is_empty() {
            elements.finish()
        } else {
            Err(malformed())
        };
    }
    loop {
        rest = rest.trim_start();
        if rest.starts_with('{') {
            return Err(NESTED.to_owned());
        }
        let (element, is_quoted, after) = element(rest).ok_or_else(malformed)?;
        let is_null = !is_quoted && element.eq_ignore_ascii_case("null");
        if element.is_empty() && !is_quoted {
            return Err(malformed());
        }
        elements.push(if is_null {
            None
        } else {
            Some(read(element.as_bytes())?)
        })?;
        rest = after.trim_start();
        if let Some(next) = rest.strip_prefix(',') {
            rest = next;
        } else if rest == "}" {
            return elements.finish();
        } else {
            return Err(malformed());
        }
    }
}

/// The next element, whether it was quoted, and the text after it.
fn element(text: &str) -> Option<(String, bool, &str)> {
    let is_quoted = text.starts_with('"');
    let mut element = String::new();
    // Trailing blanks do not belong to an element, unless a backslash escapes them.
    let mut length = 0;
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                element.push(characters.next()?.1);
                length = element.len();
            }
            '"' if is_quoted => return Some((element, true, &text[at + 1..])),
            '"' | '{' if !is_quoted => return None,
            ',' | '}' if !is_quoted => {
                element.truncate(length);
                return Some((element, false, &text[at..]));
            }
            other => {
                element.push(other);
                if !other.is_ascii_whitespace() {
                    length = element.len();
                }
            }
        }
    }
    None
}

/// Decodes a binary array with elements of type `kind`; `read` converts the bytes of an element,
/// with the OID of its type, to an array of one row.
///
/// # Errors
/// What is wrong with the bytes.
pub(super) fn from_binary(
    bytes: &[u8],
    kind: &DataType,
    read: impl Fn(&[u8], u32) -> Result<ArrayRef, String>,
) -> Result<ArrayRef, String> {
    let mut rest = bytes;
    let dimensions = word(&mut rest)?;
    let _has_nulls = word(&mut rest)?;
    let oid = word(&mut rest)? as u32;
    let mut elements = ArrayElements::new(kind);
    let count = match dimensions {
        0 => 0,
        1 => {
            let count = word(&mut rest)?;
            let _first = word(&mut rest)?;
            count
        }
        _ => return Err(NESTED.to_owned()),
    };
    for _ in 0..count {
        let element = match usize::try_from(word(&mut rest)?) {
            Ok(length) => {
                let (element, after) = rest.split_at_checked(length).ok_or_else(cut_short)?;
                rest = after;
                Some(read(element, oid)?)
            }
            Err(_) => None,
        };
        elements.push(element)?;
    }
    if !rest.is_empty() {
        return Err("bytes follow the last element of the array".to_owned());
    }
    elements.finish()
}

fn cut_short() -> String {
    "the array ends before its last element".to_owned()
}

fn word(bytes: &mut &[u8]) -> Result<i32, String> {
    let (word, rest) = bytes.split_first_chunk().ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(i32::from_be_bytes(*word))
}
