//! InfluxDB's line protocol, the text that most of the targets take.

use crate::data::{Column, Rows, Table, Values};
use std::fmt::Write;

/// `table,tag=value,… field=value,… time`, a line for each row, with times in units of `unit_ns`
/// nanoseconds (1 for `precision=ns`, 1,000,000 for `ms`). Tag values must need no escaping; text
/// fields are quoted. Rows without any value are left out.
#[must_use]
pub fn encode(table: &Table, rows: &Rows, unit_ns: i64) -> Vec<u8> {
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
                push_value(&mut out, column, row);
            }
        }
        writeln!(out, " {}", rows.times[row].div_euclid(unit_ns))
            .expect("a string takes every text");
    }
    out.into_bytes()
}

fn push_value(out: &mut String, column: &Column, row: usize) {
    let done = match &column.values {
        Values::Bool(values) => write!(out, "{}", values[row]),
        Values::I32(values) => write!(out, "{}i", values[row]),
        Values::I64(values) => write!(out, "{}i", values[row]),
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
    use crate::data::{FieldKind, TagKind};

    #[test]
    fn absent_tags_and_values_are_left_out() {
        let table = Table::new(
            "t",
            &[("a", TagKind::Text), ("b", TagKind::Text)],
            0,
            &[("i", FieldKind::I32), ("s", FieldKind::Text)],
            vec![vec![Some("x".to_owned()), None]],
        );
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
        let text = String::from_utf8(encode(&table, &rows, 1_000_000)).expect("text");
        assert_eq!(text, "t,a=x i=5i,s=\"q\\\"\\\\\" 2\nt,a=x s=\"ok\" 3\n");
    }
}
