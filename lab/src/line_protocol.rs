//! InfluxDB's line protocol, the text that most of the targets take.

use crate::data::{Column, Rows, Table, Values};
use std::fmt::Write;

/// How a database reads the text.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Nanoseconds of a unit of time: 1 for `precision=ns`, 1,000,000 for `ms`.
    pub unit_ns: i64,
    /// Whether whole numbers carry their `i`; without it they are floats.
    pub integer_suffix: bool,
}

/// `table,tag=value,… field=value,… time`, a line a row. Tag values must need no escaping; text
/// fields are quoted. A row without any value is left out.
#[must_use]
pub fn encode(table: &Table, rows: &Rows, style: Style) -> Vec<u8> {
    let mut out = String::with_capacity(rows.len() * (48 + 16 * table.fields.len()));
    for row in 0..rows.len() {
        if rows.columns.iter().all(|column| !column.is_present(row)) {
            continue;
        }
        out.push_str(&table.name);
        let values = &table.series[rows.series[row] as usize];
        for (tag, value) in table.tags.iter().zip(values) {
            if let Some(value) = value {
                out.push(',');
                out.push_str(&tag.name);
                out.push('=');
                out.push_str(value);
            }
        }
        let mut separator = ' ';
        for (field, column) in table.fields.iter().zip(&rows.columns) {
            if column.is_present(row) {
                out.push(separator);
                separator = ',';
                out.push_str(&field.name);
                out.push('=');
                push_value(&mut out, column, row, style);
            }
        }
        writeln!(out, " {}", rows.times[row].div_euclid(style.unit_ns))
            .expect("a string takes every text");
    }
    out.into_bytes()
}

fn push_value(out: &mut String, column: &Column, row: usize, style: Style) {
    let suffix = if style.integer_suffix { "i" } else { "" };
    let done = match &column.values {
        Values::Bool(values) => write!(out, "{}", values[row]),
        Values::I32(values) => write!(out, "{}{suffix}", values[row]),
        Values::I64(values) => write!(out, "{}{suffix}", values[row]),
        Values::F32(values) => write!(out, "{}", values[row]),
        Values::F64(values) => write!(out, "{}", values[row]),
        Values::Text(values) => {
            out.push('"');
            for character in values[row].chars() {
                if matches!(character, '"' | '\\') {
                    out.push('\\');
                }
                out.push(character);
            }
            out.push('"');
            Ok(())
        }
    };
    done.expect("a string takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Field, FieldKind, Tag, TagKind};
    use std::sync::Arc;

    #[test]
    fn absent_tags_and_values_are_left_out() {
        let table = Table {
            name: "t".to_owned(),
            tags: ["a", "b"]
                .map(|name| Tag {
                    name: name.to_owned(),
                    kind: TagKind::Text,
                })
                .to_vec(),
            key: 0,
            fields: [("i", FieldKind::I32), ("s", FieldKind::Text)]
                .map(|(name, kind)| Field {
                    name: name.to_owned(),
                    kind,
                })
                .to_vec(),
            series: Arc::new(vec![vec![Some("x".to_owned()), None]]),
        };
        let rows = Rows {
            table: 0,
            series: vec![0, 0, 0],
            times: vec![2_000_000, 3_000_000, 4_000_000],
            columns: vec![
                Column {
                    values: Values::I32(vec![5, 0, 0]),
                    present: Some(vec![true, false, false]),
                },
                Column {
                    values: Values::Text(vec!["q\"\\".to_owned(), "ok".to_owned(), String::new()]),
                    present: Some(vec![true, true, false]),
                },
            ],
        };
        let style = Style {
            unit_ns: 1_000_000,
            integer_suffix: true,
        };
        let text = String::from_utf8(encode(&table, &rows, style)).expect("text");
        assert_eq!(text, "t,a=x i=5i,s=\"q\\\"\\\\\" 2\nt,a=x s=\"ok\" 3\n");
    }
}
