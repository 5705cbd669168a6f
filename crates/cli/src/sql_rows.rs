//! Writes rows that line protocol cannot hold (bytes, NaN, infinities, line breaks in tags) as
//! statements for a server.
//!
//! Invariant: each value has its column's type, so that the server converts nothing.

use marigram_model::always_quoted as quoted;
use marigram_model::{FieldValue, TagValueRef, WriteBatch};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most rows of a statement.
const ROWS_MAX: usize = 500;

/// Statements that store `rows` of `batch`, each with the rows that it stores. A statement names
/// only the columns that its rows carry, so the other columns keep their values.
pub(crate) fn inserts(batch: &WriteBatch, time: &str, rows: &[usize]) -> Vec<(String, Vec<usize>)> {
    let mut alike: BTreeMap<Vec<String>, Vec<(usize, String)>> = BTreeMap::new();
    for row in rows {
        let (columns, values) = row_of(batch, time, *row);
        alike.entry(columns).or_default().push((*row, values));
    }
    let mut statements = Vec::new();
    for (columns, rows) in alike {
        for part in rows.chunks(ROWS_MAX) {
            let values: Vec<&str> = part.iter().map(|(_, values)| values.as_str()).collect();
            let statement = format!(
                "INSERT INTO {} ({}) VALUES {}",
                quoted(&batch.table),
                columns.join(", "),
                values.join(", ")
            );
            statements.push((statement, part.iter().map(|(row, _)| *row).collect()));
        }
    }
    statements
}

/// The columns that a row carries, and their values in parentheses.
fn row_of(batch: &WriteBatch, time: &str, row: usize) -> (Vec<String>, String) {
    let mut columns = vec![quoted(time)];
    let mut values = format!(
        "(arrow_cast({}, 'Timestamp(Nanosecond, None)')",
        batch.times[row]
    );
    let slot = batch.slots[row] as usize;
    for tag in &batch.tags {
        let Some(value) = tag.value(slot) else {
            continue;
        };
        columns.push(quoted(&tag.name));
        // Writing to a String cannot fail.
        let _ = match value {
            TagValueRef::String(value) => write!(values, ", {}", text(value)),
            TagValueRef::I64(value) => write!(values, ", {}", cast(&value.to_string(), "Int64")),
            TagValueRef::Bool(value) => write!(values, ", {value}"),
        };
    }
    for field in &batch.fields {
        if let Some(value) = FieldValue::from_array(&field.values, row) {
            columns.push(quoted(&field.name));
            values.push_str(", ");
            values.push_str(&literal(&value));
        }
    }
    values.push(')');
    (columns, values)
}

fn literal(value: &FieldValue) -> String {
    match value {
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::I32(value) => cast(&value.to_string(), "Int32"),
        FieldValue::I64(value) => cast(&value.to_string(), "Int64"),
        FieldValue::U64(value) => cast(&value.to_string(), "UInt64"),
        FieldValue::F32(value) => cast(&value.to_string(), "Float32"),
        FieldValue::F64(value) => cast(&value.to_string(), "Float64"),
        FieldValue::String(value) => text(value),
        FieldValue::Timestamp(value) => {
            format!("arrow_cast({value}, 'Timestamp(Nanosecond, None)')")
        }
        FieldValue::Bytes(value) => {
            let mut literal = String::from("X'");
            for byte in value {
                let _ = write!(literal, "{byte:02x}");
            }
            literal.push('\'');
            literal
        }
    }
}

/// A text as an SQL literal.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A text cast to a type; this notation covers every number of the type.
fn cast(value: &str, kind: &str) -> String {
    format!("arrow_cast('{value}', '{kind}')")
}
