//! A batch in the binary form of COPY.
//!
//! Source: PostgreSQL's documentation of COPY, "Binary Format".

use super::cell::POSTGRES_EPOCH_US;
use crate::cells::tag_number;
use anyhow::Result;
use marigram_lab::data::{Column, Rows, Table, TagKind, Values};

/// Signature, flags, length of the header's extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end, where a row would have its number of columns.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// Length of a null.
const NULL: [u8; 4] = (-1i32).to_be_bytes();

/// The statement that receives such batches.
pub(super) fn statement(table: &Table) -> String {
    let tags = table.tags.iter().map(|tag| tag.name.as_str());
    let fields = table.fields.iter().map(|field| field.name.as_str());
    let columns: Vec<&str> = ["time"].into_iter().chain(tags).chain(fields).collect();
    let columns = columns.join(", ");
    format!("COPY {} ({columns}) FROM STDIN BINARY", table.name)
}

/// `rows` with the columns of [`statement`]; times are rounded down to microseconds. Fails if an
/// integer tag is not an integer.
pub(super) fn encode(table: &Table, rows: &Rows) -> Result<Vec<u8>> {
    let columns = 1 + table.tags.len() + table.fields.len();
    let mut out = Vec::with_capacity(HEADER.len() + rows.len() * (16 + columns * 13));
    out.extend_from_slice(HEADER);
    for row in 0..rows.len() {
        out.extend_from_slice(&(columns as i16).to_be_bytes());
        let us = rows.times[row].div_euclid(1_000) - POSTGRES_EPOCH_US;
        push(&mut out, &us.to_be_bytes());
        let values = &table.series[rows.series[row] as usize];
        for (tag, value) in table.tags.iter().zip(values) {
            match (value, tag.kind) {
                (None, _) => out.extend_from_slice(&NULL),
                (Some(text), TagKind::Text) => push(&mut out, text.as_bytes()),
                (Some(text), TagKind::Integer) => {
                    push(&mut out, &tag_number(tag, text)?.to_be_bytes());
                }
            }
        }
        for column in &rows.columns {
            push_value(&mut out, column, row);
        }
    }
    out.extend_from_slice(&TRAILER);
    Ok(out)
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn push_value(out: &mut Vec<u8>, column: &Column, row: usize) {
    if !column.is_present(row) {
        out.extend_from_slice(&NULL);
        return;
    }
    match &column.values {
        Values::Bool(values) => push(out, &[u8::from(values[row])]),
        Values::I32(values) => push(out, &values[row].to_be_bytes()),
        Values::I64(values) => push(out, &values[row].to_be_bytes()),
        Values::F32(values) => push(out, &values[row].to_be_bytes()),
        Values::F64(values) => push(out, &values[row].to_be_bytes()),
        Values::Text(values) => push(out, values[row].as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::data::FieldKind;

    fn table(tag: &str) -> Table {
        let series = vec![vec![Some(tag.to_owned())], vec![None]];
        let id = ("id", TagKind::Integer);
        Table::new("t", &[id], 0, &[("on", FieldKind::Bool)], series)
    }

    fn rows() -> Rows {
        Rows {
            table: 0,
            series: vec![0, 1],
            times: vec![946_684_800_000_001_999; 2],
            columns: vec![Column {
                values: Values::Bool(vec![true, false]),
                present: Some(vec![true, false]),
            }],
        }
    }

    #[test]
    fn rows_have_lengths_and_nulls() {
        assert_eq!(
            statement(&table("3")),
            "COPY t (time, id, on) FROM STDIN BINARY"
        );
        let bytes = encode(&table("3"), &rows()).expect("an integer tag");
        let time = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1];
        let first = [&[0, 3][..], &time, &[0, 0, 0, 8], &3i64.to_be_bytes()].concat();
        let second = [&[0, 3][..], &time, &NULL, &NULL].concat();
        let expected = [HEADER, &first, &[0, 0, 0, 1, 1], &second, &TRAILER].concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn an_integer_tag_that_is_none_is_an_error() {
        assert!(encode(&table("three"), &rows()).is_err());
    }
}
