//! Values that a client binds to a prepared statement, and how they are written as literals of SQL.

use crate::error::{TaosCode, TaosError, TaosResult};
use crate::wire_type::WireLayout;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundValue<'a> {
    /// NULL
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer, or the ticks of a time.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
}

impl BoundValue<'_> {
    /// The same value, independent of the message that it came with.
    #[must_use]
    pub fn into_owned(self) -> BoundValue<'static> {
        match self {
            Self::Null => BoundValue::Null,
            Self::Bool(value) => BoundValue::Bool(value),
            Self::Integer(value) => BoundValue::Integer(value),
            Self::Float(value) => BoundValue::Float(value),
            Self::Text(text) => BoundValue::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => BoundValue::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }

    /// Writes the value as a literal.
    ///
    /// # Errors
    /// If it is a float that has no literal.
    pub fn push_literal(&self, out: &mut String) -> TaosResult<()> {
        match self {
            Self::Null => out.push_str("NULL"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Integer(value) => {
                let _ = write!(out, "{value}");
            }
            Self::Float(value) if !value.is_finite() => {
                let message = "Value out of range: NaN and infinite floats cannot be stored";
                return Err(TaosError::with_message(TaosCode::ValueOutOfRange, message));
            }
            Self::Float(value) => {
                let _ = write!(out, "{value:?}");
            }
            Self::Text(text) => push_text_literal(text, out),
            Self::Bytes(bytes) => {
                out.push_str("'\\x");
                for byte in bytes.iter() {
                    let _ = write!(out, "{byte:02x}");
                }
                out.push('\'');
            }
        }
        Ok(())
    }
}

/// Writes a text as a literal.
pub fn push_text_literal(text: &str, out: &mut String) {
    out.push('\'');
    for char in text.chars() {
        if matches!(char, '\'' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out.push('\'');
}

/// Writes a name in backquotes.
pub fn push_quoted_name(name: &str, out: &mut String) {
    out.push('`');
    for char in name.chars() {
        if char == '`' {
            out.push('`');
        }
        out.push(char);
    }
    out.push('`');
}

/// The error of bytes that are not what they should be.
pub(crate) fn malformed(what: &str) -> TaosError {
    TaosError::about(TaosCode::InvalidParameter, what)
}

/// Which values are NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BoundNulls<'a> {
    /// A bit each, the highest one first.
    Bits(&'a [u8]),
    /// A byte each.
    Bytes(&'a [u8]),
    /// Those without an offset.
    Offsets,
}

/// Where values begin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BoundPlaces<'a> {
    /// One after the other, all of the same length.
    Fixed,
    /// At these offsets, each behind its length of 16 bits.
    Offsets(&'a [u8]),
    /// One after the other, with these lengths.
    Lengths(&'a [u8]),
}

/// The values of a column, as they came. They are read one after the other.
#[derive(Clone, Copy, Debug)]
pub struct BoundColumn<'a> {
    pub(crate) layout: WireLayout,
    pub(crate) rows: usize,
    pub(crate) nulls: BoundNulls<'a>,
    pub(crate) places: BoundPlaces<'a>,
    pub(crate) data: &'a [u8],
    /// Whether wide text consists of 32-bit characters.
    pub(crate) is_wide: bool,
    row: usize,
    /// Where the next value begins, if values stand one after the other.
    at: usize,
}

impl<'a> BoundColumn<'a> {
    pub(crate) fn new(
        (layout, is_wide): (WireLayout, bool),
        rows: usize,
        (nulls, places): (BoundNulls<'a>, BoundPlaces<'a>),
        data: &'a [u8],
    ) -> Self {
        Self {
            layout,
            rows,
            nulls,
            places,
            data,
            is_wide,
            row: 0,
            at: 0,
        }
    }

    /// The number of values.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Reads the next value.
    ///
    /// # Errors
    /// If there is none, or the bytes are none.
    pub fn next_value(&mut self) -> TaosResult<BoundValue<'a>> {
        let row = self.row;
        if row >= self.rows {
            return Err(malformed("columns of different lengths"));
        }
        self.row += 1;
        let is_null = match self.nulls {
            BoundNulls::Bits(bits) => {
                let byte = bits.get(row / 8).copied().unwrap_or(0);
                byte & (0x80 >> (row % 8)) != 0
            }
            BoundNulls::Bytes(bytes) => bytes.get(row).is_some_and(|byte| *byte != 0),
            BoundNulls::Offsets => false,
        };
        let short = || malformed("a column that is too short");
        let bytes = match self.places {
            BoundPlaces::Fixed => {
                let size = self.layout.value_bytes().unwrap_or(0);
                // Columns of nothing but NULL may have no values.
                let value = self.data.get(self.at..self.at + size);
                self.at += size;
                if is_null {
                    return Ok(BoundValue::Null);
                }
                value.ok_or_else(short)?
            }
            BoundPlaces::Offsets(offsets) => {
                let offset = i32_at(offsets, row).ok_or_else(short)?;
                let Ok(offset) = usize::try_from(offset) else {
                    return Ok(BoundValue::Null);
                };
                let rest = self.data.get(offset..).ok_or_else(short)?;
                let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
                let length = usize::from(u16::from_le_bytes(*length));
                rest.get(..length).ok_or_else(short)?
            }
            BoundPlaces::Lengths(lengths) => {
                let length = i32_at(lengths, row).ok_or_else(short)?;
                let length = usize::try_from(length).map_err(|_| short())?;
                let rest = self.data.get(self.at..).ok_or_else(short)?;
                let value = rest.get(..length).ok_or_else(short)?;
                self.at += length;
                if is_null {
                    return Ok(BoundValue::Null);
                }
                value
            }
        };
        self.value(bytes)
    }

    fn value(&self, bytes: &'a [u8]) -> TaosResult<BoundValue<'a>> {
        let short = || malformed("a column that is too short");
        Ok(match self.layout {
            WireLayout::Bool => BoundValue::Bool(bytes.first().is_some_and(|byte| *byte != 0)),
            WireLayout::Integer { is_signed, .. } => BoundValue::Integer(integer(bytes, is_signed)),
            WireLayout::Ticks => BoundValue::Integer(integer(bytes, true)),
            WireLayout::Float => {
                let bytes = bytes.try_into().map_err(|_| short())?;
                let value = f32::from_le_bytes(bytes);
                // The shortest text that says it stands for the float, not the digits of its double.
                BoundValue::Float(value.to_string().parse().unwrap_or(f64::from(value)))
            }
            WireLayout::Double => {
                let bytes = bytes.try_into().map_err(|_| short())?;
                BoundValue::Float(f64::from_le_bytes(bytes))
            }
            WireLayout::WideText if self.is_wide => BoundValue::Text(Cow::Owned(wide(bytes)?)),
            WireLayout::Text | WireLayout::WideText => {
                let text = std::str::from_utf8(bytes);
                let text = text.map_err(|_| malformed("a text that is not UTF-8"))?;
                BoundValue::Text(Cow::Borrowed(text))
            }
            WireLayout::Bytes => BoundValue::Bytes(Cow::Borrowed(bytes)),
        })
    }
}

/// A little-endian integer of at most eight bytes.
fn integer(bytes: &[u8], is_signed: bool) -> i128 {
    let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut all = [if is_negative { 0xff } else { 0 }; 16];
    for (byte, given) in all.iter_mut().zip(bytes.iter().take(8)) {
        *byte = *given;
    }
    i128::from_le_bytes(all)
}

/// A text of 32-bit characters.
fn wide(bytes: &[u8]) -> TaosResult<String> {
    let (chars, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(malformed("a text of characters that are cut"));
    }
    let chars = chars.iter().map(|char| {
        let char = char::from_u32(u32::from_le_bytes(*char));
        char.ok_or_else(|| malformed("a text with something that is no character"))
    });
    chars.collect()
}

/// One of several 32-bit integers.
pub(crate) fn i32_at(bytes: &[u8], place: usize) -> Option<i32> {
    let from = place.checked_mul(4)?;
    let four = bytes.get(from..from.checked_add(4)?)?;
    Some(i32::from_le_bytes(four.try_into().ok()?))
}

/// The 32-bit length or count at a place; never negative.
pub(crate) fn length_at(bytes: &[u8], from: usize) -> Option<usize> {
    let four = bytes.get(from..from.checked_add(4)?)?;
    usize::try_from(i32::from_le_bytes(four.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_statement;
    use proptest::prelude::*;

    fn literal(value: &BoundValue<'_>) -> String {
        let mut out = String::new();
        value.push_literal(&mut out).unwrap();
        out
    }

    #[test]
    fn literals_are_those_of_sql() {
        let bytes = BoundValue::Bytes(Cow::Borrowed(&[10, 255]));
        assert_eq!(literal(&bytes), "'\\x0aff'");
        assert_eq!(literal(&BoundValue::Integer(-5)), "-5");
        assert_eq!(literal(&BoundValue::Float(1e300)), "1e300");
        assert_eq!(literal(&BoundValue::Null), "NULL");
        let mut out = String::new();
        assert!(BoundValue::Float(f64::NAN).push_literal(&mut out).is_err());
        push_quoted_name("a`b", &mut out);
        assert_eq!(out, "`a``b`");
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_quotes(text in "\\PC{0,20}|['\\\\`x\\n%_]{0,8}") {
            let literal = literal(&BoundValue::Text(Cow::Borrowed(&text)));
            let token = crate::lexer::next_token(&literal, 0).unwrap();
            prop_assert_eq!(token.end, literal.len());
            let sql = format!("INSERT INTO t VALUES (1, {literal})");
            prop_assert!(parse_statement(&sql).is_ok(), "{}", sql);
            let read = crate::lexer::unquoted(&literal);
            prop_assert_eq!(read.as_ref(), text.as_str());
        }
    }
}
