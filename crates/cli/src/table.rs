//! Prints rows for people: as a table with aligned columns and right-aligned numbers, or one value
//! per line.
//!
//! Invariant: cut texts are counted, so that the caller can report them.

use crate::terminal;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, DurationNanosecondType, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::fmt::Write;

/// How values are formatted for people: times without needless digits.
pub(crate) fn format_options() -> FormatOptions<'static> {
    FormatOptions::default()
        .with_null("")
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
        .with_types_info(false)
}

/// Rendered rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RenderedTable {
    /// The lines.
    pub text: String,
    /// Values that were cut.
    pub cut: usize,
    /// Characters of the widest line.
    pub width: usize,
}

/// Renders all rows of `batches` as a table. Values of more than `width_max` characters are cut and
/// put on one line.
///
/// # Errors
/// If a value cannot be shown.
pub(crate) fn render(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    width_max: Option<usize>,
) -> Result<RenderedTable, ArrowError> {
    let mut cut = 0;
    let mut cells: Vec<Vec<TableCell>> = Vec::new();
    for column in texts(schema, batches)? {
        let column = column.into_iter();
        cells.push(
            column
                .map(|text| TableCell::new(text, width_max, &mut cut))
                .collect(),
        );
    }
    let names: Vec<TableCell> = names(schema)
        .map(|name| TableCell::new(name, None, &mut 0))
        .collect();
    let right: Vec<bool> = schema
        .fields()
        .iter()
        .map(|field| is_right(field.data_type()))
        .collect();
    let widths: Vec<usize> = cells
        .iter()
        .zip(&names)
        .map(|(column, name)| {
            column
                .iter()
                .map(|cell| cell.width)
                .fold(name.width, usize::max)
        })
        .collect();
    let mut text = String::new();
    put_row(
        &mut text,
        &names.iter().collect::<Vec<_>>(),
        &widths,
        &vec![false; names.len()],
    );
    let rules: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    text.push_str(&rules.join("┼"));
    text.push('\n');
    let rows = cells.first().map_or(0, Vec::len);
    for row in 0..rows {
        let row: Vec<&TableCell> = cells.iter().map(|column| &column[row]).collect();
        put_row(&mut text, &row, &widths, &right);
    }
    let width = widths.iter().map(|width| width + 3).sum::<usize>();
    Ok(RenderedTable {
        text,
        cut,
        width: width.saturating_sub(1),
    })
}

/// Renders all rows of `batches` with one value per line; cuts nothing. Row numbers start at
/// `first`.
///
/// # Errors
/// If a value cannot be shown.
pub(crate) fn render_expanded(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    first: usize,
) -> Result<RenderedTable, ArrowError> {
    let columns = texts(schema, batches)?;
    let names: Vec<String> = names(schema).collect();
    let name_width = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let rows = columns.first().map_or(0, Vec::len);
    let mut rendered = RenderedTable::default();
    for row in 0..rows {
        let head = format!("─[ row {} ]", terminal::count((first + row) as u64));
        let rule = "─".repeat((name_width + 12).saturating_sub(width(&head)));
        // Writing to a String cannot fail.
        let _ = writeln!(rendered.text, "{head}{rule}");
        for (name, values) in names.iter().zip(&columns) {
            let space = " ".repeat(name_width - width(name));
            let mut label = format!(" {name}{space} │");
            for line in clean(&values[row]).split('\n') {
                let line = format!("{label} {line}");
                rendered.width = rendered.width.max(width(&line));
                let _ = writeln!(rendered.text, "{}", line.trim_end());
                label = format!(" {} │", " ".repeat(name_width));
            }
        }
    }
    Ok(rendered)
}

fn names(schema: &SchemaRef) -> impl Iterator<Item = String> + '_ {
    schema.fields().iter().map(|field| clean(field.name()))
}

/// A value of the table, in lines.
struct TableCell {
    lines: Vec<String>,
    width: usize,
}

impl TableCell {
    fn new(text: String, width_max: Option<usize>, cut: &mut usize) -> Self {
        let mut text = clean(&text);
        if let Some(width_max) = width_max {
            text = text.replace('\n', "↵");
            if width(&text) > width_max {
                text = text.chars().take(width_max.saturating_sub(1)).collect();
                text.push('…');
                *cut += 1;
            }
        }
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        // A value that continues on the next line must not look like another row.
        if let Some((_, before)) = lines.split_last_mut() {
            for line in before {
                line.push('↵');
            }
        }
        let width = lines.iter().map(|line| width(line)).max().unwrap_or(0);
        Self { lines, width }
    }
}

/// Appends one row; values of several lines continue below.
fn put_row(text: &mut String, cells: &[&TableCell], widths: &[usize], right: &[bool]) {
    let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0);
    for at in 0..height.max(1) {
        let mut line = String::new();
        for (place, cell) in cells.iter().enumerate() {
            let value = cell.lines.get(at).map_or("", String::as_str);
            let space = " ".repeat(widths[place].saturating_sub(width(value)));
            let separator = if place == 0 { " " } else { " │ " };
            let (before, after) = if right[place] {
                (space.as_str(), "")
            } else {
                ("", space.as_str())
            };
            line.push_str(&[separator, before, value, after].concat());
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// The texts of each column.
fn texts(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<Vec<String>>, ArrowError> {
    let options = format_options();
    let mut texts: Vec<Vec<String>> = vec![Vec::new(); schema.fields().len()];
    for batch in batches {
        for (column, texts) in batch.columns().iter().zip(&mut texts) {
            if matches!(column.data_type(), DataType::Duration(_)) {
                texts.extend(durations(column)?);
                continue;
            }
            let format = ArrayFormatter::try_new(column.as_ref(), &options)?;
            for row in 0..column.len() {
                texts.push(format.value(row).try_to_string()?);
            }
        }
    }
    Ok(texts)
}

/// Whether a column is right-aligned.
fn is_right(data_type: &DataType) -> bool {
    data_type.is_numeric() || matches!(data_type, DataType::Duration(_))
}

/// Durations in clock notation.
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

/// Escapes what terminals interpret as commands: a value must not move the cursor.
fn clean(text: &str) -> String {
    let is_bad = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_bad) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => clean.push_str("\\t"),
            '\r' => clean.push_str("\\r"),
            bad if is_bad(bad) => {
                let _ = write!(clean, "\\x{:02x}", bad as u32);
            }
            good => clean.push(good),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampNanosecondArray};
    use std::sync::Arc;

    fn rows() -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([
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
        .unwrap()
    }

    fn text(value: &str) -> RecordBatch {
        let values = Arc::new(StringArray::from(vec![value, "x"])) as ArrayRef;
        let other = Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef;
        RecordBatch::try_from_iter([("text", values), ("o", other)]).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_nulls_empty() {
        let rows = rows();
        let table = render(&rows.schema(), &[rows], Some(60)).unwrap();
        let expected = " time                    │ site  │ level\n\
                        ─────────────────────────┼───────┼────────\n \
                        1970-01-01 00:00:00     │ north │    1.5\n \
                        1970-01-01 00:00:01.500 │       │ -20.25\n";
        assert_eq!((table.text.as_str(), table.cut), (expected, 0));
        assert_eq!(table.width, 42);
    }

    #[test]
    fn long_texts_are_cut_to_one_line_and_counted() {
        let rows = text(&"ab\n".repeat(100));
        let table = render(&rows.schema(), &[rows], Some(60)).unwrap();
        let line = table.text.lines().nth(2).unwrap();
        assert!(
            line.starts_with(" ab↵ab") && line.ends_with("… │ a"),
            "{line}"
        );
        assert_eq!(table.cut, 1);
    }

    #[test]
    fn without_a_width_texts_stand_whole() {
        let rows = text("ab\ncd");
        let table = render(&rows.schema(), &[rows], None).unwrap();
        let expected = " text │ o\n──────┼───\n ab↵  │ a\n cd   │\n x    │ b\n";
        assert_eq!((table.text.as_str(), table.cut), (expected, 0));
    }

    #[test]
    fn expanded_rows_have_a_line_for_each_value() {
        let rows = text("ab\ncd\u{1b}[2J");
        let table = render_expanded(&rows.schema(), &[rows], 7).unwrap();
        let expected = "─[ row 7 ]──────\n text │ ab\n      │ cd\\x1b[2J\n o    │ a\n\
                        ─[ row 8 ]──────\n text │ x\n o    │ b\n";
        assert_eq!(table.text, expected);
    }
}
