//! Rows as CSV that reads back without loss: a NULL is an empty cell, an empty text is `""`, a text
//! is quoted wherever it could be mistaken for something else, floats have all their digits, and
//! bytes are `\x` and hexadecimal digits.

use anyhow::Result;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Schema, TimeUnit, TimestampNanosecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use jiff::tz::TimeZone;
use std::fmt::Write;

/// Appends the column names.
pub(crate) fn put_header(schema: &Schema, out: &mut String) {
    for (at, field) in schema.fields().iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        put_text(field.name(), out);
    }
    out.push('\n');
}

/// Appends the rows of a batch; times are in `zone` with their offset, or else in UTC.
pub(crate) fn put_rows(
    batch: &RecordBatch,
    zone: Option<&TimeZone>,
    out: &mut String,
) -> Result<()> {
    let columns = batch
        .columns()
        .iter()
        .map(plain)
        .collect::<Result<Vec<_>>>()?;
    let formats = FormatOptions::default();
    let others = columns
        .iter()
        .map(|column| Ok(ArrayFormatter::try_new(column, &formats)?))
        .collect::<Result<Vec<_>>>()?;
    for row in 0..batch.num_rows() {
        for (at, (column, other)) in columns.iter().zip(&others).enumerate() {
            if at > 0 {
                out.push(',');
            }
            if column.is_valid(row) {
                put_value(column, row, (other, zone), out)?;
            }
        }
        out.push('\n');
    }
    Ok(())
}

/// Converts texts of any type to UTF-8 arrays, and bytes and times to one type each.
fn plain(column: &ArrayRef) -> Result<ArrayRef> {
    let kind = match column.data_type() {
        DataType::Dictionary(_, values) if values.is_string() => DataType::Utf8,
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => {
            DataType::Timestamp(TimeUnit::Nanosecond, None)
        }
        _ => return Ok(column.clone()),
    };
    Ok(cast(column, &kind)?)
}

fn put_value(
    column: &ArrayRef,
    row: usize,
    (other, zone): (&ArrayFormatter<'_>, Option<&TimeZone>),
    out: &mut String,
) -> Result<()> {
    match column.data_type() {
        DataType::Utf8 => put_text(column.as_string::<i32>().value(row), out),
        DataType::Float64 => write!(out, "{:?}", column.as_primitive::<Float64Type>().value(row))?,
        DataType::Float32 => write!(out, "{:?}", column.as_primitive::<Float32Type>().value(row))?,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            let ns = column.as_primitive::<TimestampNanosecondType>().value(row);
            put_time(ns, zone, out)?;
        }
        DataType::Binary => {
            out.push_str("\\x");
            for byte in column.as_binary::<i32>().value(row) {
                write!(out, "{byte:02x}")?;
            }
        }
        _ => put_text(&other.value(row).to_string(), out),
    }
    Ok(())
}

/// Appends a time in `zone` with its offset, or in UTC.
fn put_time(ns: i64, zone: Option<&TimeZone>, out: &mut String) -> Result<()> {
    let time = chrono::DateTime::from_timestamp_nanos(ns);
    let offset_s = match zone {
        Some(zone) => {
            let moment = jiff::Timestamp::from_nanosecond(i128::from(ns))?;
            zone.to_offset(moment).seconds()
        }
        None => 0,
    };
    // Before clocks had time zones, offsets had seconds, which ISO 8601 does not know.
    let offset = (offset_s != 0 && offset_s % 60 == 0)
        .then(|| chrono::FixedOffset::east_opt(offset_s))
        .flatten();
    match offset {
        Some(offset) => {
            let local = time.with_timezone(&offset);
            write!(out, "{}", local.format("%Y-%m-%dT%H:%M:%S%.f%:z"))?;
        }
        None => write!(out, "{}", time.format("%Y-%m-%dT%H:%M:%S%.fZ"))?,
    }
    Ok(())
}

/// Appends a text, quoted where it could otherwise be mistaken for something else.
fn put_text(text: &str, out: &mut String) {
    let special = |char: char| matches!(char, ',' | '"' | '\n' | '\r');
    let at_edge = |char: Option<char>| char.is_none_or(char::is_whitespace);
    let quoted = at_edge(text.chars().next())
        || at_edge(text.chars().next_back())
        || text.starts_with(['#', '\u{feff}', '\\'])
        || text.contains(special);
    if !quoted {
        out.push_str(text);
        return;
    }
    out.push('"');
    for char in text.chars() {
        if char == '"' {
            out.push('"');
        }
        out.push(char);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BinaryArray, DictionaryArray, Float64Array, StringArray};
    use arrow::datatypes::{Field, Int32Type};
    use std::sync::Arc;

    #[test]
    fn what_could_be_misread_is_quoted() {
        let texts = StringArray::from(vec![
            None,
            Some(""),
            Some(" s "),
            Some("NA"),
            Some("a\"b,c"),
        ]);
        let numbers = Float64Array::from(vec![
            Some(f64::NAN),
            Some(-0.0),
            Some(1e300),
            Some(0.1),
            None,
        ]);
        let bytes = BinaryArray::from_opt_vec(vec![Some(b"\x00\xff"), Some(b""), None, None, None]);
        let tags: DictionaryArray<Int32Type> = vec![Some("a"), None, None, None, None]
            .into_iter()
            .collect();
        let fields = [
            ("t", texts.data_type()),
            ("n", numbers.data_type()),
            ("b", bytes.data_type()),
            ("d", tags.data_type()),
        ];
        let fields = fields.map(|(name, kind)| Field::new(name, kind.clone(), true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(texts),
            Arc::new(numbers),
            Arc::new(bytes),
            Arc::new(tags),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        let mut out = String::new();
        put_header(&schema, &mut out);
        put_rows(&batch, None, &mut out).unwrap();
        let expected = "t,n,b,d\n,NaN,\\x00ff,a\n\"\",-0.0,\\x,\n\" s \",1e300,,\nNA,0.1,,\n\
                        \"a\"\"b,c\",,,\n";
        assert_eq!(out, expected);
    }
}
