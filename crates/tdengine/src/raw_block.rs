//! Blocks of rows, column by column, as TDengine 3 sends them and takes them for prepared statements.
//!
//! A block begins with its version, its length, the numbers of rows and columns, a flag and the id of a
//! group. The types of the columns follow, then the lengths of their data, then the columns: a bit for
//! each NULL and the values, or an offset for each value and the values behind their lengths.

use crate::bound_value::{BoundColumn, BoundNulls, BoundPlaces, length_at, malformed};
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::types::TaosType;
use crate::wire_type::{WireLayout, type_code};

/// The version of the layout.
const VERSION: i32 = 1;

/// The flag of a block that has columns.
const HAS_COLUMNS: u32 = 1 << 31;

/// Bytes before the types of columns.
const HEAD_BYTES: usize = 28;

/// Bytes of the type of a column, and of the length of its data.
const TYPE_BYTES: usize = 5;
const LENGTH_BYTES: usize = 4;

/// Most columns of a block.
pub(crate) const COLUMNS_MAX: usize = 4096;

/// Writes the values of one column of a block.
#[derive(Clone, Debug)]
pub struct RawColumn {
    kind: TaosType,
    layout: WireLayout,
    /// A bit for each NULL, or an offset for each value.
    head: Vec<u8>,
    data: Vec<u8>,
    row: usize,
    /// Longest value, bytes.
    longest: u16,
}

impl RawColumn {
    /// A column of a type, for so many rows.
    #[must_use]
    pub fn new(kind: TaosType, rows: usize) -> Self {
        let layout = WireLayout::of_type(kind);
        let (head, data) = match layout.value_bytes() {
            Some(bytes) => (vec![0; rows.div_ceil(8)], Vec::with_capacity(rows * bytes)),
            None => (Vec::with_capacity(rows * 4), Vec::new()),
        };
        Self {
            kind,
            layout,
            head,
            data,
            row: 0,
            longest: 0,
        }
    }

    /// Writes NULL.
    pub fn null(&mut self) {
        match self.layout.value_bytes() {
            Some(bytes) => {
                if let Some(byte) = self.head.get_mut(self.row / 8) {
                    *byte |= 0x80 >> (self.row % 8);
                }
                self.data.resize(self.data.len() + bytes, 0);
            }
            None => self.head.extend_from_slice(&(-1_i32).to_le_bytes()),
        }
        self.row += 1;
    }

    /// Writes a truth value, an integer or ticks.
    pub fn integer(&mut self, value: i128) {
        let bytes = self.layout.value_bytes().unwrap_or(0);
        let all = value.to_le_bytes();
        self.data.extend(all.iter().take(bytes));
        self.row += 1;
    }

    /// Writes a float.
    pub fn float(&mut self, value: f64) {
        if self.layout == WireLayout::Float {
            self.data.extend_from_slice(&(value as f32).to_le_bytes());
        } else {
            self.data.extend_from_slice(&value.to_le_bytes());
        }
        self.row += 1;
    }

    /// Writes a text.
    ///
    /// # Errors
    /// If it is longer than a block allows.
    pub fn text(&mut self, text: &str) -> TaosResult<()> {
        if self.layout != WireLayout::WideText {
            return self.bytes(text.as_bytes());
        }
        self.begin(text.chars().count() * 4)?;
        for char in text.chars() {
            self.data.extend_from_slice(&u32::from(char).to_le_bytes());
        }
        Ok(())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// If there are more than a block allows.
    pub fn bytes(&mut self, bytes: &[u8]) -> TaosResult<()> {
        self.begin(bytes.len())?;
        self.data.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the offset and the length of a value.
    fn begin(&mut self, bytes: usize) -> TaosResult<()> {
        let length = u16::try_from(bytes).map_err(|_| too_large())?;
        let offset = i32::try_from(self.data.len()).map_err(|_| too_large())?;
        self.head.extend_from_slice(&offset.to_le_bytes());
        self.data.extend_from_slice(&length.to_le_bytes());
        self.longest = self.longest.max(length);
        self.row += 1;
        Ok(())
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.data.len()
    }

    /// Whether it takes none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of the type in the head of a block: with the two bytes of a length.
    fn type_length(&self) -> u32 {
        let length = match self.kind {
            TaosType::NChar(chars) => chars.saturating_mul(4).saturating_add(2),
            kind if self.layout.value_bytes().is_none() => kind.length().saturating_add(2),
            kind => kind.length().max(1),
        };
        length.max(u32::from(self.longest))
    }
}

fn too_large() -> TaosError {
    let message = "Value too long for column/tag: a value is too long for a block of rows";
    TaosError::with_message(TaosCode::ValueTooLong, message)
}

/// The block of columns that have so many rows each.
///
/// # Errors
/// If it is larger than a block can be.
pub fn raw_block(columns: &[RawColumn], rows: usize) -> TaosResult<Vec<u8>> {
    let heads = columns.len() * (TYPE_BYTES + LENGTH_BYTES);
    let bodies: usize = columns.iter().map(RawColumn::len).sum();
    let number = |number: usize| {
        let number = i32::try_from(number).map_err(|_| too_large())?;
        TaosResult::Ok(number.to_le_bytes())
    };
    let total = HEAD_BYTES + heads + bodies;
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&number(total)?);
    out.extend_from_slice(&number(rows)?);
    out.extend_from_slice(&number(columns.len())?);
    out.extend_from_slice(&HAS_COLUMNS.to_le_bytes());
    out.extend_from_slice(&0_u64.to_le_bytes());
    for column in columns {
        out.push(type_code(column.kind));
        out.extend_from_slice(&column.type_length().to_le_bytes());
    }
    for column in columns {
        out.extend_from_slice(&number(column.data.len())?);
    }
    for column in columns {
        out.extend_from_slice(&column.head);
        out.extend_from_slice(&column.data);
    }
    Ok(out)
}

/// Reads the columns of a block.
///
/// # Errors
/// If it is none, or has columns of a type that is not supported.
pub fn read_raw_block(bytes: &[u8]) -> TaosResult<Vec<BoundColumn<'_>>> {
    let cut = || malformed("a block of rows that is cut");
    let rows = length_at(bytes, 8).ok_or_else(cut)?;
    let count = length_at(bytes, 12).ok_or_else(cut)?;
    if count > COLUMNS_MAX {
        return Err(malformed("a block of too many columns"));
    }
    let types = bytes.get(HEAD_BYTES..).ok_or_else(cut)?;
    let (types, rest) = types.split_at_checked(count * TYPE_BYTES).ok_or_else(cut)?;
    let (lengths, mut rest) = rest
        .split_at_checked(count * LENGTH_BYTES)
        .ok_or_else(cut)?;
    let mut columns = Vec::with_capacity(count);
    for (place, kind) in types.chunks_exact(TYPE_BYTES).enumerate() {
        let code = kind.first().copied().unwrap_or(0);
        let layout = WireLayout::of_code(code.into())
            .ok_or_else(|| TaosError::unsupported(&format!("columns of type {code}")))?;
        let length = length_at(lengths, place * LENGTH_BYTES).ok_or_else(cut)?;
        let head_bytes = match layout.value_bytes() {
            Some(_) => rows.div_ceil(8),
            None => rows.checked_mul(4).ok_or_else(cut)?,
        };
        let (head, data) = rest.split_at_checked(head_bytes).ok_or_else(cut)?;
        let (data, after) = data.split_at_checked(length).ok_or_else(cut)?;
        rest = after;
        let how = match layout.value_bytes() {
            Some(_) => (BoundNulls::Bits(head), BoundPlaces::Fixed),
            None => (BoundNulls::Offsets, BoundPlaces::Offsets(head)),
        };
        columns.push(BoundColumn::new((layout, true), rows, how, data));
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound_value::BoundValue;
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn text(text: &str) -> BoundValue<'_> {
        BoundValue::Text(Cow::Borrowed(text))
    }

    #[test]
    fn a_block_has_the_bytes_that_clients_know() {
        let mut int = RawColumn::new(TaosType::Int, 2);
        int.integer(-2);
        int.null();
        let mut wide = RawColumn::new(TaosType::NChar(3), 2);
        wide.text("ü").unwrap();
        wide.null();
        let block = raw_block(&[int, wide], 2).unwrap();
        let expected: Vec<u8> = [
            // Version, length, rows, columns, flag, group.
            &[
                1, 0, 0, 0, 69, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x80,
            ][..],
            &[0; 8],
            // Types and lengths.
            &[4, 4, 0, 0, 0, 10, 14, 0, 0, 0],
            &[8, 0, 0, 0, 6, 0, 0, 0],
            // Bits of NULL, values.
            &[0x40, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0],
            // Offsets, then a length and a character.
            &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
            &[4, 0, 0xfc, 0, 0, 0],
        ]
        .concat();
        assert_eq!(block, expected);
    }

    #[test]
    fn a_block_is_read_back() {
        let mut columns = vec![
            RawColumn::new(TaosType::Timestamp, 3),
            RawColumn::new(TaosType::Float, 3),
            RawColumn::new(TaosType::Double, 3),
            RawColumn::new(TaosType::UBigInt, 3),
            RawColumn::new(TaosType::VarChar(9), 3),
            RawColumn::new(TaosType::NChar(9), 3),
            RawColumn::new(TaosType::VarBinary(9), 3),
        ];
        for column in &mut columns {
            column.null();
        }
        for _ in 0..2 {
            columns[0].integer(-7);
            columns[1].float(0.1);
            columns[2].float(0.1);
            columns[3].integer(u64::MAX.into());
            columns[4].text("ab").unwrap();
            columns[5].text("日本").unwrap();
            columns[6].bytes(&[1, 2]).unwrap();
        }
        let block = raw_block(&columns, 3).unwrap();
        let mut read = read_raw_block(&block).unwrap();
        let expected = [
            BoundValue::Integer(-7),
            BoundValue::Float(0.1),
            BoundValue::Float(0.1),
            BoundValue::Integer(u64::MAX.into()),
            text("ab"),
            text("日本"),
            BoundValue::Bytes(Cow::Borrowed(&[1, 2])),
        ];
        for (column, expected) in read.iter_mut().zip(expected) {
            assert_eq!(column.next_value().unwrap(), BoundValue::Null);
            assert_eq!(column.next_value().unwrap(), expected);
            assert_eq!(column.next_value().unwrap(), expected);
            assert!(column.next_value().is_err());
        }
        let mut long = RawColumn::new(TaosType::VarChar(9), 1);
        assert!(long.text(&"x".repeat(70_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_all(&bytes);
        }

        #[test]
        fn no_changed_block_panics(place in 0_usize..120, byte in any::<u8>()) {
            let mut column = RawColumn::new(TaosType::VarChar(9), 9);
            let mut other = RawColumn::new(TaosType::Int, 9);
            for _ in 0..9 {
                column.text("ab").unwrap();
                other.integer(5);
            }
            let mut block = raw_block(&[column, other], 9).unwrap();
            if let Some(changed) = block.get_mut(place) {
                *changed = byte;
            }
            read_all(&block);
        }
    }

    fn read_all(bytes: &[u8]) {
        let Ok(mut columns) = read_raw_block(bytes) else {
            return;
        };
        for column in &mut columns {
            for _ in 0..column.rows().min(1000) {
                if column.next_value().is_err() {
                    break;
                }
            }
        }
    }
}
