//! `RowBinary`: the form of rows that costs ClickHouse least, column after column without names.
//!
//! Numbers are little-endian; the length of a text (LEB128) stands before it; before a nullable value
//! stands a byte that is 1 for null. The columns are those of [`super::create`].

use anyhow::{Context, Result};
use marigram_lab::data::{Rows, Table, TagKind, Values};
use marigram_lab_drivers::cells;

/// Which tags of `table` may be missing; the key never is.
pub(super) fn optional_tags(table: &Table) -> Vec<bool> {
    let is_optional = |tag| tag != table.key && cells::is_optional(table, tag);
    (0..table.tags.len()).map(is_optional).collect()
}

/// `rows` for an insert into `table`, whose [`optional_tags`] are `optional`.
pub(super) fn encode(table: &Table, optional: &[bool], rows: &Rows) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(rows.len() * (24 + 9 * table.fields.len()));
    for row in 0..rows.len() {
        let values = &table.series[rows.series[row] as usize];
        for ((tag, value), optional) in table.tags.iter().zip(values).zip(optional) {
            let value = match (value, optional) {
                (None, true) => {
                    out.push(1);
                    continue;
                }
                (Some(value), true) => {
                    out.push(0);
                    value
                }
                (value, false) => value.as_ref().with_context(|| format!("no {}", tag.name))?,
            };
            match tag.kind {
                TagKind::Text => put_text(&mut out, value),
                TagKind::Integer => out.extend(cells::tag_number(tag, value)?.to_le_bytes()),
            }
        }
        out.extend(rows.times[row].to_le_bytes());
        for column in &rows.columns {
            if !column.is_present(row) {
                out.push(1);
                continue;
            }
            out.push(0);
            match &column.values {
                Values::Bool(values) => out.push(u8::from(values[row])),
                Values::I32(values) => out.extend(values[row].to_le_bytes()),
                Values::I64(values) => out.extend(values[row].to_le_bytes()),
                Values::F32(values) => out.extend(values[row].to_le_bytes()),
                Values::F64(values) => out.extend(values[row].to_le_bytes()),
                Values::Text(values) => put_text(&mut out, &values[row]),
            }
        }
    }
    Ok(out)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_has_a_length_of_two_bytes() {
        let mut out = Vec::new();
        put_text(&mut out, &"x".repeat(300));
        assert_eq!(out[..3], [0xAC, 0x02, b'x']);
        assert_eq!(out.len(), 302);
    }
}
