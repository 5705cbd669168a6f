//! The values that a client binds to a prepared statement of the second kind: tables with their names,
//! tags and columns.
//!
//! Invariant: nothing is copied, and a table is read when it is asked for. So a message takes no more
//! memory than its bytes.

use crate::bound_value::{BoundColumn, BoundNulls, BoundPlaces, i32_at, length_at, malformed};
use crate::error::{TaosError, TaosResult};
use crate::raw_block::COLUMNS_MAX;
use crate::wire_type::WireLayout;

/// Bytes before the names of tables.
const HEAD_BYTES: usize = 28;

/// Bytes of a column before its bytes of NULL.
const COLUMN_HEAD_BYTES: usize = 12;

/// What is bound. It is read table by table.
#[derive(Clone, Debug)]
pub struct Stmt2Bind<'a> {
    tables: usize,
    tag_count: usize,
    column_count: usize,
    /// The lengths of names, and the names; absent without names.
    names: Option<(&'a [u8], &'a [u8])>,
    tags: Option<(&'a [u8], &'a [u8])>,
    columns: Option<(&'a [u8], &'a [u8])>,
    table: usize,
}

/// What is bound for a table.
#[derive(Clone, Debug)]
pub struct BoundTable<'a> {
    /// Its name.
    pub name: Option<&'a str>,
    /// The tags, of one row each.
    pub tags: Vec<BoundColumn<'a>>,
    /// The columns.
    pub columns: Vec<BoundColumn<'a>>,
}

impl<'a> Stmt2Bind<'a> {
    /// Reads the head of what is bound.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(bytes: &'a [u8]) -> TaosResult<Self> {
        let cut = || malformed("bound values that are cut");
        let head = |place: usize| length_at(bytes, place * 4).ok_or_else(cut);
        if head(0)? != bytes.len() {
            return Err(malformed("bound values of another length than they say"));
        }
        let (tables, tag_count, column_count) = (head(1)?, head(2)?, head(3)?);
        if tag_count > COLUMNS_MAX || column_count > COLUMNS_MAX {
            return Err(malformed("too many bound columns"));
        }
        let part = |offset: usize, length_bytes: usize| {
            if offset == 0 {
                return Ok(None);
            }
            if offset < HEAD_BYTES {
                return Err(cut());
            }
            let lengths = tables.checked_mul(length_bytes).ok_or_else(cut)?;
            let rest = bytes.get(offset..).ok_or_else(cut)?;
            rest.split_at_checked(lengths).ok_or_else(cut).map(Some)
        };
        Ok(Self {
            tables,
            tag_count,
            column_count,
            names: part(head(4)?, 2)?,
            tags: part(head(5)?, 4)?,
            columns: part(head(6)?, 4)?,
            table: 0,
        })
    }

    /// The number of tables.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// The next table; `None` after the last one.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn next_table(&mut self) -> TaosResult<Option<BoundTable<'a>>> {
        if self.table >= self.tables {
            return Ok(None);
        }
        let cut = || malformed("bound values that are cut");
        let mut name = None;
        if let Some((lengths, names)) = &mut self.names {
            let (length, rest) = lengths.split_first_chunk().ok_or_else(cut)?;
            *lengths = rest;
            let length = usize::from(u16::from_le_bytes(*length));
            let (text, rest) = names.split_at_checked(length).ok_or_else(cut)?;
            *names = rest;
            let text = text.strip_suffix(&[0]).unwrap_or(text);
            let text = std::str::from_utf8(text);
            let text = text.map_err(|_| malformed("the name of a table that is not UTF-8"))?;
            name = (!text.is_empty()).then_some(text);
        }
        let tags = next_columns(&mut self.tags, self.tag_count)?;
        let columns = next_columns(&mut self.columns, self.column_count)?;
        self.table += 1;
        Ok(Some(BoundTable {
            name,
            tags,
            columns,
        }))
    }
}

/// Reads the columns of the next table.
fn next_columns<'a>(
    part: &mut Option<(&'a [u8], &'a [u8])>,
    count: usize,
) -> TaosResult<Vec<BoundColumn<'a>>> {
    let cut = || malformed("bound values that are cut");
    let Some((lengths, data)) = part else {
        return Ok(Vec::new());
    };
    let length = length_at(lengths, 0).ok_or_else(cut)?;
    *lengths = lengths.get(4..).ok_or_else(cut)?;
    let (mut own, rest) = data.split_at_checked(length).ok_or_else(cut)?;
    *data = rest;
    let mut columns = Vec::with_capacity(count.min(own.len() / COLUMN_HEAD_BYTES));
    for _ in 0..count {
        let length = length_at(own, 0).ok_or_else(cut)?;
        let (column, rest) = own.split_at_checked(length).ok_or_else(cut)?;
        own = rest;
        columns.push(read_column(column)?);
    }
    Ok(columns)
}

/// Reads a column: its length, type and number of rows, a byte for each NULL, whether there are lengths,
/// the lengths, and the values behind theirs.
fn read_column(bytes: &[u8]) -> TaosResult<BoundColumn<'_>> {
    let cut = || malformed("a bound column that is cut");
    let code = i32_at(bytes, 1).ok_or_else(cut)?;
    let rows = length_at(bytes, 8).ok_or_else(cut)?;
    let layout = u32::try_from(code).ok().and_then(WireLayout::of_code);
    let layout = layout.ok_or_else(|| TaosError::unsupported(&format!("values of type {code}")))?;
    let rest = bytes.get(COLUMN_HEAD_BYTES..).ok_or_else(cut)?;
    let (nulls, rest) = rest.split_at_checked(rows).ok_or_else(cut)?;
    let (has_lengths, mut rest) = rest.split_first().ok_or_else(cut)?;
    let mut lengths = None;
    if *has_lengths != 0 {
        let bytes = rows.checked_mul(4).ok_or_else(cut)?;
        let (read, after) = rest.split_at_checked(bytes).ok_or_else(cut)?;
        lengths = Some(read);
        rest = after;
    }
    let length = length_at(rest, 0).ok_or_else(cut)?;
    let data = rest.get(4..).and_then(|data| data.get(..length));
    let data = data.ok_or_else(cut)?;
    let places = match (layout.value_bytes(), lengths) {
        (Some(_), _) => BoundPlaces::Fixed,
        (None, Some(lengths)) => BoundPlaces::Lengths(lengths),
        (None, None) => return Err(malformed("a bound column of texts without lengths")),
    };
    let how = (BoundNulls::Bytes(nulls), places);
    Ok(BoundColumn::new((layout, false), rows, how, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound_value::BoundValue;
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn column(code: u8, nulls: &[u8], lengths: Option<&[u32]>, data: &[u8]) -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
        let mut out = [0; 4].to_vec();
        out.extend([code, 0, 0, 0]);
        out.extend(number(nulls.len()));
        out.extend(nulls);
        out.push(u8::from(lengths.is_some()));
        for length in lengths.unwrap_or_default() {
            out.extend(length.to_le_bytes());
        }
        out.extend(number(data.len()));
        out.extend(data);
        let length = number(out.len());
        out[..4].copy_from_slice(&length);
        out
    }

    /// Two tables with a tag and two columns.
    fn message() -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
        let tag = column(10, &[0], Some(&[2]), b"no");
        let ints = column(4, &[0, 1], None, &[5, 0, 0, 0, 0, 0, 0, 0]);
        let texts = column(8, &[1, 0], Some(&[0, 3]), b"abc");
        let columns = [ints, texts].concat();
        let names = [&[3, 0, 3, 0][..], b"d1\0d2\0"].concat();
        let tags_at = HEAD_BYTES + names.len();
        let tags = [&number(tag.len())[..], &number(tag.len()), &tag, &tag].concat();
        let columns_at = tags_at + tags.len();
        let length = number(columns.len());
        let columns = [&length[..], &length, &columns, &columns].concat();
        let total = columns_at + columns.len();
        let head = [total, 2, 1, 2, HEAD_BYTES, tags_at, columns_at].map(number);
        [head.concat(), names, tags, columns].concat()
    }

    #[test]
    fn tables_are_read_one_after_the_other() {
        let message = message();
        let mut bind = Stmt2Bind::parse(&message).unwrap();
        assert_eq!(bind.tables(), 2);
        let text = |text: &'static str| BoundValue::Text(Cow::Borrowed(text));
        for name in ["d1", "d2"] {
            let mut table = bind.next_table().unwrap().unwrap();
            assert_eq!(table.name, Some(name));
            assert_eq!(table.tags[0].next_value().unwrap(), text("no"));
            let [ints, texts] = &mut table.columns[..] else {
                panic!("two columns");
            };
            assert_eq!(ints.next_value().unwrap(), BoundValue::Integer(5));
            assert_eq!(ints.next_value().unwrap(), BoundValue::Null);
            assert_eq!(texts.next_value().unwrap(), BoundValue::Null);
            assert_eq!(texts.next_value().unwrap(), text("abc"));
        }
        assert!(bind.next_table().unwrap().is_none());
    }

    #[test]
    fn a_column_of_nothing_but_null_has_no_values() {
        let bytes = column(9, &[1, 1], None, &[]);
        let mut column = read_column(&bytes).unwrap();
        assert_eq!(column.next_value().unwrap(), BoundValue::Null);
        assert_eq!(column.next_value().unwrap(), BoundValue::Null);
    }

    proptest! {
        #[test]
        fn no_message_panics(place in 0_usize..200, byte in any::<u8>(), cut in 0_usize..200) {
            let mut message = message();
            if let Some(changed) = message.get_mut(place) {
                *changed = byte;
            }
            message.truncate(message.len().saturating_sub(cut).max(4));
            let length = u32::try_from(message.len()).unwrap().to_le_bytes();
            if place > 4 {
                message[..4].copy_from_slice(&length);
            }
            let Ok(mut bind) = Stmt2Bind::parse(&message) else {
                return Ok(());
            };
            while let Ok(Some(mut table)) = bind.next_table() {
                for column in table.tags.iter_mut().chain(&mut table.columns) {
                    while column.next_value().is_ok() {}
                }
            }
        }
    }
}
