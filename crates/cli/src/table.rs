//! Rows as a table for people: aligned columns, numbers to the right, long texts cut.

use crate::terminal;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, DurationNanosecondType, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Widest column, characters; longer texts end in `…`.
const WIDTH_MAX: usize = 60;

/// How values look to people: times without needless digits.
pub fn format_options() -> FormatOptions<'static> {
    FormatOptions::default()
        .with_null("")
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
        .with_types_info(false)
}

/// A table of all rows of `batches`.
///
/// # Errors
/// If a value cannot be shown.
pub fn render(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<String, ArrowError> {
    let options = format_options();
    let columns = schema.fields().len();
    let mut cells: Vec<Vec<String>> = vec![Vec::new(); columns];
    for batch in batches {
        for (column, cells) in batch.columns().iter().zip(&mut cells) {
            if matches!(column.data_type(), DataType::Duration(_)) {
                cells.extend(durations(column)?);
                continue;
            }
            let format = ArrayFormatter::try_new(column.as_ref(), &options)?;
            for row in 0..column.len() {
                cells.push(cut(&format.value(row).try_to_string()?));
            }
        }
    }
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let right: Vec<bool> = schema
        .fields()
        .iter()
        .map(|field| is_right(field.data_type()))
        .collect();
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            cells[at]
                .iter()
                .map(|cell| width(cell))
                .max()
                .unwrap_or(0)
                .max(width(names[at]))
        })
        .collect();
    let rows = cells.first().map_or(0, Vec::len);
    let mut text = String::new();
    let line = |text: &mut String, cells: &[&str], right: &[bool]| {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[at].saturating_sub(width(cell)));
            let separator = if at == 0 { " " } else { " │ " };
            let (before, after) = if right[at] {
                (space.as_str(), "")
            } else {
                ("", space.as_str())
            };
            line.push_str(&[separator, before, cell, after].concat());
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(&mut text, &names, &vec![false; columns]);
    let rules: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    text.push_str(&rules.join("┼"));
    text.push('\n');
    for row in 0..rows {
        let row: Vec<&str> = cells.iter().map(|column| column[row].as_str()).collect();
        line(&mut text, &row, &right);
    }
    Ok(text)
}

/// Whether values stand at the right of their column.
fn is_right(data_type: &DataType) -> bool {
    data_type.is_numeric() || matches!(data_type, DataType::Duration(_))
}

/// Spans of time as clocks show them.
fn durations(column: &ArrayRef) -> Result<Vec<String>, ArrowError> {
    let ns = cast(column, &DataType::Duration(TimeUnit::Nanosecond))?;
    let ns = ns.as_primitive::<DurationNanosecondType>();
    Ok(ns
        .iter()
        .map(|ns| ns.map_or_else(String::new, terminal::clock))
        .collect())
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// One line of at most [`WIDTH_MAX`] characters.
fn cut(text: &str) -> String {
    let one_line = text.replace('\n', "↵");
    if width(&one_line) <= WIDTH_MAX {
        return one_line;
    }
    let start: String = one_line.chars().take(WIDTH_MAX - 1).collect();
    start + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampNanosecondArray};
    use std::sync::Arc;

    #[test]
    fn columns_are_aligned_and_nulls_empty() {
        let rows = RecordBatch::try_from_iter_with_nullable([
            (
                "time",
                Arc::new(TimestampNanosecondArray::from(vec![0, 1_500_000_000])) as ArrayRef,
                true,
            ),
            (
                "site",
                Arc::new(StringArray::from(vec![Some("north"), None])) as ArrayRef,
                true,
            ),
            (
                "level",
                Arc::new(Float64Array::from(vec![1.5, -20.25])) as ArrayRef,
                true,
            ),
        ])
        .unwrap();
        let table = render(&rows.schema(), &[rows]).unwrap();
        let expected = " time                    │ site  │ level\n\
                        ─────────────────────────┼───────┼────────\n \
                        1970-01-01 00:00:00     │ north │    1.5\n \
                        1970-01-01 00:00:01.500 │       │ -20.25\n";
        assert_eq!(table, expected);
    }

    #[test]
    fn long_texts_are_cut_to_one_line() {
        let text = cut(&"ab\n".repeat(100));
        assert_eq!(width(&text), WIDTH_MAX);
        assert!(text.starts_with("ab↵ab") && text.ends_with('…'));
    }
}
