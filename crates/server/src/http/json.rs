//! Arrow values as JSON.
//!
//! Integers are exact, as JSON numbers of up to 64 bits. Floats that JSON has no number for become
//! the texts `"NaN"`, `"Infinity"` and `"-Infinity"`, so that they are not mistaken for null. Times
//! are RFC 3339 in UTC with nine decimals, bytes are hexadecimal text, lists are arrays and structs
//! are objects. Other types become text as Arrow prints them.
//!
//! A column is downcast once per batch, not once per value.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::temporal_conversions::timestamp_ns_to_datetime;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

/// Writes the value of a row.
type JsonValueWriter<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Appends the rows of a batch to `out` as JSON arrays separated by `,`, with one before the first
/// row unless `first`.
///
/// # Errors
/// If a column's type cannot be formatted.
pub(super) fn write_rows(
    batch: &RecordBatch,
    mut first: bool,
    out: &mut Vec<u8>,
) -> Result<(), ArrowError> {
    let arrays: Vec<_> = batch
        .columns()
        .iter()
        .map(prepare)
        .collect::<Result<_, _>>()?;
    let writers: Vec<_> = arrays
        .iter()
        .map(|array| nullable(array.as_ref()))
        .collect::<Result<_, _>>()?;
    for row in 0..batch.num_rows() {
        out.extend_from_slice(if std::mem::take(&mut first) {
            b"\n["
        } else {
            b",\n["
        });
        for (at, write) in writers.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write(row, out);
        }
        out.push(b']');
    }
    Ok(())
}

/// Converts timestamps of every unit to nanoseconds without a zone, and dictionary keys to 32 bits,
/// so that fewer types need a writer.
fn prepare(array: &Arc<dyn Array>) -> Result<Arc<dyn Array>, ArrowError> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Ok(array.clone()),
        DataType::Timestamp(..) => cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, None)),
        DataType::Dictionary(_, values) => {
            let keys = Box::new(DataType::Int32);
            cast(array, &DataType::Dictionary(keys, values.clone()))
        }
        DataType::Utf8View => cast(array, &DataType::LargeUtf8),
        DataType::BinaryView => cast(array, &DataType::LargeBinary),
        _ => Ok(array.clone()),
    }
}

fn nullable(array: &dyn Array) -> Result<JsonValueWriter<'_>, ArrowError> {
    let write = writer(array)?;
    let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(write);
    };
    Ok(Box::new(move |row, out| {
        if nulls.is_null(row) {
            out.extend_from_slice(b"null");
        } else {
            write(row, out);
        }
    }))
}

fn writer(array: &dyn Array) -> Result<JsonValueWriter<'_>, ArrowError> {
    macro_rules! numbers {
        ($kind:ty) => {{
            let values = array.as_primitive::<$kind>().values();
            Box::new(move |row, out: &mut Vec<u8>| print(out, values[row]))
        }};
    }
    macro_rules! floats {
        ($kind:ty) => {{
            let values = array.as_primitive::<$kind>().values();
            Box::new(move |row, out: &mut Vec<u8>| {
                write_float(out, values[row], values[row].into())
            })
        }};
    }
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(|row, out| print(out, values.value(row)))
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Float32 => floats!(Float32Type),
        DataType::Float64 => floats!(Float64Type),
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            Box::new(|row, out| write_text(out, values.value(row)))
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            Box::new(|row, out| write_text(out, values.value(row)))
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            Box::new(|row, out| write_hex(out, values.value(row)))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            Box::new(|row, out| write_hex(out, values.value(row)))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            let values = array.as_primitive::<TimestampNanosecondType>().values();
            Box::new(|row, out| match timestamp_ns_to_datetime(values[row]) {
                Some(time) => print(out, time.format("\"%Y-%m-%dT%H:%M:%S%.9fZ\"")),
                None => out.extend_from_slice(b"null"),
            })
        }
        DataType::Dictionary(..) => {
            let values = array.as_dictionary::<Int32Type>();
            let write = nullable(values.values().as_ref())?;
            let keys = values.keys().values();
            Box::new(move |row, out| write(keys[row] as usize, out))
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            // The closure prepares and owns the elements, row by row.
            Box::new(move |row, out| write_list(&lists.value(row), out))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            Box::new(move |row, out| write_list(&lists.value(row), out))
        }
        DataType::FixedSizeList(..) => {
            let lists = array.as_fixed_size_list();
            Box::new(move |row, out| write_list(&lists.value(row), out))
        }
        DataType::Struct(_) => {
            let structs = array.as_struct();
            Box::new(move |row, out| {
                out.push(b'{');
                for (at, (name, column)) in structs
                    .column_names()
                    .into_iter()
                    .zip(structs.columns())
                    .enumerate()
                {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_text(out, name);
                    out.push(b':');
                    write_value(&column.slice(row, 1), out);
                }
                out.push(b'}');
            })
        }
        _ => {
            let format = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            Box::new(move |row, out| write_text(out, &format.value(row).to_string()))
        }
    })
}

fn write_list(list: &Arc<dyn Array>, out: &mut Vec<u8>) {
    out.push(b'[');
    for row in 0..list.len() {
        if row > 0 {
            out.push(b',');
        }
        write_value(&list.slice(row, 1), out);
    }
    out.push(b']');
}

/// Writes the only value of an array of length one; null if its type cannot be formatted.
fn write_value(array: &Arc<dyn Array>, out: &mut Vec<u8>) {
    let begin = out.len();
    let written = prepare(array).and_then(|array| {
        nullable(array.as_ref())?(0, out);
        Ok(())
    });
    if written.is_err() {
        out.truncate(begin);
        out.extend_from_slice(b"null");
    }
}

fn print(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("writing to a Vec cannot fail");
}

/// Writes the shortest text that reads back as the same float of its width.
fn write_float(out: &mut Vec<u8>, shortest: impl std::fmt::Debug, value: f64) {
    if value.is_finite() {
        write!(out, "{shortest:?}").expect("writing to a Vec cannot fail");
    } else if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else {
        out.extend_from_slice(if value > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        });
    }
}

/// Writes a JSON text.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text)
        .expect("writing to a Vec cannot fail, and text is always valid JSON");
}

fn write_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut text = String::with_capacity(bytes.len() * 2 + 2);
    text.push('"');
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
    }
    text.push('"');
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayRef, BinaryArray, DictionaryArray, Float32Array, Float64Array, Int64Array, ListArray,
        NullArray, StringArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
    };

    fn rows(columns: Vec<ArrayRef>) -> String {
        let named = columns
            .into_iter()
            .enumerate()
            .map(|(at, array)| (format!("c{at}"), array));
        let batch = RecordBatch::try_from_iter_with_nullable(named.map(|(n, a)| (n, a, true)));
        let mut out = Vec::new();
        write_rows(&batch.unwrap(), true, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_exact() {
        let text = rows(vec![
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None])),
            Arc::new(UInt64Array::from(vec![u64::MAX, 0])),
            Arc::new(Float32Array::from(vec![0.1_f32, f32::NAN])),
            Arc::new(Float64Array::from(vec![1e300, f64::NEG_INFINITY])),
        ]);
        assert_eq!(
            text,
            "\n[-9223372036854775808,18446744073709551615,0.1,1e300],\
             \n[null,0,\"NaN\",\"-Infinity\"]"
        );
        let parsed: serde_json::Value = serde_json::from_str(&format!("[{text}]")).unwrap();
        assert_eq!(parsed[0][1], serde_json::json!(u64::MAX));
    }

    #[test]
    fn times_texts_bytes_and_dictionaries() {
        let tags: DictionaryArray<UInt32Type> = vec![Some("a\"\u{1}"), None].into_iter().collect();
        let text = rows(vec![
            Arc::new(TimestampNanosecondArray::from(vec![1, -1])),
            Arc::new(TimestampSecondArray::from(vec![0, 1]).with_timezone("Europe/Berlin")),
            Arc::new(tags),
            Arc::new(BinaryArray::from(vec![Some(&[0_u8, 255][..]), None])),
            Arc::new(StringArray::from(vec!["é", ""])),
            Arc::new(NullArray::new(2)),
        ]);
        assert_eq!(
            text,
            "\n[\"1970-01-01T00:00:00.000000001Z\",\"1970-01-01T00:00:00.000000000Z\",\
             \"a\\\"\\u0001\",\"00ff\",\"é\",null],\
             \n[\"1969-12-31T23:59:59.999999999Z\",\"1970-01-01T00:00:01.000000000Z\",\
             null,null,\"\",null]"
        );
    }

    #[test]
    fn lists_are_arrays() {
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
            Some(vec![Some(1), None]),
            None,
        ]);
        assert_eq!(rows(vec![Arc::new(list)]), "\n[[1,null]],\n[null]");
    }
}
