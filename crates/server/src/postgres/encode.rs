//! Encodes Arrow values as PostgreSQL sends them, in text and in binary.
//!
//! A column is downcast once per batch and becomes a [`ValueEncoder`], which writes the value of a
//! row. PostgreSQL's times have microseconds. Nanoseconds are rounded down, in text and in binary,
//! because clients refuse a text with more digits.

mod marked;
mod rows;
mod text;

pub(super) use marked::encodable;
pub(super) use rows::RowWriter;

use crate::postgres::numeric;
use crate::postgres::types::pg_type;
use crate::postgres::zones;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, DurationNanosecondType, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::{BufMut, BytesMut};
use chrono::NaiveDate;
use marigram_model::DAY_NS;
use marigram_pgtext::row_text;
use text::{print, write_bytes, write_clock, write_float, write_integer, write_time};

/// Microseconds from the Unix epoch to PostgreSQL's, 2000-01-01.
const EPOCH_US: i64 = 946_684_800_000_000;
/// Days from the Unix epoch to PostgreSQL's.
const EPOCH_DAYS: i32 = 10_957;

/// The error for lists of lists.
const NESTED: &str = "arrays of arrays are not sent over this protocol; unnest them, or select their \
                      elements";

type WriteOneValue = Box<dyn Fn(usize, &mut BytesMut) + Send + Sync>;

/// Writes values of a column.
pub(super) struct ValueEncoder {
    nulls: Option<NullBuffer>,
    write: WriteOneValue,
}

impl ValueEncoder {
    /// An encoder for `array`, in binary or in text.
    ///
    /// # Errors
    /// If Arrow cannot convert the values to a PostgreSQL type.
    pub(super) fn new(array: &ArrayRef, binary: bool) -> Result<Self, ArrowError> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(Self {
            nulls,
            write: writer(array, binary)?,
        })
    }

    /// Whether the value of `row` is null.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value of `row`, which must not be null.
    pub(super) fn write(&self, row: usize, out: &mut BytesMut) {
        (self.write)(row, out);
    }

    /// Appends the value of `row`, preceded by its length; -1 for null.
    fn write_sized(&self, row: usize, out: &mut BytesMut) {
        if self.is_null(row) {
            out.put_i32(-1);
            return;
        }
        let at = out.len();
        out.put_u32(0);
        self.write(row, out);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// The type that values of `own` are written as, where it is another.
fn written_type(own: &DataType) -> Option<DataType> {
    Some(match own {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::FixedSizeBinary(_) | DataType::BinaryView => DataType::Binary,
        DataType::Utf8View => DataType::Utf8,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Duration(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond) => {
            DataType::Duration(TimeUnit::Nanosecond)
        }
        DataType::Dictionary(key, values) if **key != DataType::Int32 => {
            DataType::Dictionary(Box::new(DataType::Int32), values.clone())
        }
        DataType::LargeList(inner) | DataType::FixedSizeList(inner, _)
            if !inner.data_type().is_nested() =>
        {
            DataType::List(inner.clone())
        }
        _ => return None,
    })
}

fn writer(array: &ArrayRef, binary: bool) -> Result<WriteOneValue, ArrowError> {
    if let Some(written) = written_type(array.data_type()) {
        return writer(&cast(array, &written)?, binary);
    }
    Ok(match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let write = writer(dictionary.values(), binary)?;
            let keys = dictionary.keys().values().clone();
            Box::new(move |row, out| write(keys[row] as usize, out))
        }
        DataType::Boolean => {
            let values = array.as_boolean().clone();
            let words = if binary { [0, 1] } else { [b'f', b't'] };
            Box::new(move |row, out| out.put_u8(words[usize::from(values.value(row))]))
        }
        DataType::Int16 => numbers::<Int16Type>(array, binary, BufMut::put_i16, write_integer),
        DataType::Int32 => numbers::<Int32Type>(array, binary, BufMut::put_i32, write_integer),
        DataType::Int64 => numbers::<Int64Type>(array, binary, BufMut::put_i64, write_integer),
        DataType::UInt64 => {
            let put = |out: &mut BytesMut, value: u64| numeric::encode(&value.to_string(), out);
            numbers::<UInt64Type>(array, binary, put, write_integer)
        }
        DataType::Float32 => numbers::<Float32Type>(array, binary, BufMut::put_f32, write_float),
        DataType::Float64 => numbers::<Float64Type>(array, binary, BufMut::put_f64, write_float),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let texts = cast(array, &DataType::Utf8)?.as_string::<i32>().clone();
            if binary {
                Box::new(move |row, out| numeric::encode(texts.value(row), out))
            } else {
                Box::new(move |row, out| out.put_slice(texts.value(row).as_bytes()))
            }
        }
        DataType::Utf8 => {
            let values = array.as_string::<i32>().clone();
            Box::new(move |row, out| out.put_slice(values.value(row).as_bytes()))
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>().clone();
            Box::new(move |row, out| out.put_slice(values.value(row).as_bytes()))
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>().clone();
            Box::new(move |row, out| write_bytes(values.value(row), binary, out))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>().clone();
            Box::new(move |row, out| write_bytes(values.value(row), binary, out))
        }
        DataType::Timestamp(unit, zone) => timestamps(array, *unit, zone.as_deref(), binary)?,
        DataType::Date32
        | DataType::Time64(TimeUnit::Microsecond)
        | DataType::Interval(IntervalUnit::MonthDayNano) => calendar(array, binary),
        DataType::Duration(TimeUnit::Nanosecond) => {
            let values = array
                .as_primitive::<DurationNanosecondType>()
                .values()
                .clone();
            // As in PostgreSQL, a difference of times has days and a time.
            Box::new(move |row, out| {
                let days = (values[row] / DAY_NS) as i32;
                write_interval(0, days, values[row] % DAY_NS / 1000, binary, out);
            })
        }
        DataType::List(inner) if !inner.data_type().is_nested() => {
            let lists = array.as_list::<i32>().clone();
            let values = ValueEncoder::new(lists.values(), binary)?;
            let oid = pg_type(inner.data_type()).oid();
            Box::new(move |row, out| {
                let offsets = lists.value_offsets();
                let rows = offsets[row] as usize..offsets[row + 1] as usize;
                write_array(&values, rows, oid, binary, out);
            })
        }
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _)
            if matches!(
                inner.data_type(),
                DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
            ) =>
        {
            return Err(ArrowError::NotYetImplemented(NESTED.to_owned()));
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            let values = columns.map(|column| ValueEncoder::new(column, false));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            Box::new(move |row, out| write_row(&values, row, out))
        }
        _ => {
            let format = ArrayFormatter::try_new(array.as_ref(), &FormatOptions::default())?;
            let texts: Vec<String> = (0..array.len())
                .map(|row| format.value(row).to_string())
                .collect();
            Box::new(move |row, out| out.put_slice(texts[row].as_bytes()))
        }
    })
}

/// A row of values, as PostgreSQL's text of a `record`.
fn write_row(values: &[ValueEncoder], row: usize, out: &mut BytesMut) {
    let texts = values.iter().map(|value| {
        let mut text = BytesMut::new();
        let is_null = value.is_null(row);
        if !is_null {
            value.write(row, &mut text);
        }
        (!is_null).then(|| String::from_utf8_lossy(&text).into_owned())
    });
    let texts: Vec<Option<String>> = texts.collect();
    out.put_slice(row_text(texts.iter().map(Option::as_deref)).as_bytes());
}

/// Dates, times of day, and intervals.
fn calendar(array: &ArrayRef, binary: bool) -> WriteOneValue {
    match array.data_type() {
        DataType::Date32 => {
            let values = array.as_primitive::<Date32Type>().values().clone();
            if binary {
                Box::new(move |row, out| out.put_i32(values[row].saturating_sub(EPOCH_DAYS)))
            } else {
                Box::new(
                    move |row, out| match NaiveDate::from_epoch_days(values[row]) {
                        Some(date) => print(out, date.format("%Y-%m-%d")),
                        None => out.put_slice(b"infinity"),
                    },
                )
            }
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let values = array
                .as_primitive::<Time64MicrosecondType>()
                .values()
                .clone();
            if binary {
                Box::new(move |row, out| out.put_i64(values[row]))
            } else {
                Box::new(move |row, out| write_clock(values[row], out))
            }
        }
        _ => {
            let values = array
                .as_primitive::<IntervalMonthDayNanoType>()
                .values()
                .clone();
            Box::new(move |row, out| {
                let value = values[row];
                write_interval(
                    value.months,
                    value.days,
                    value.nanoseconds / 1000,
                    binary,
                    out,
                );
            })
        }
    }
}

fn numbers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    binary: bool,
    put: fn(&mut BytesMut, T::Native),
    print: fn(&mut BytesMut, T::Native),
) -> WriteOneValue {
    let values = array.as_primitive::<T>().values().clone();
    if binary {
        Box::new(move |row, out| put(out, values[row]))
    } else {
        Box::new(move |row, out| print(out, values[row]))
    }
}

/// The values of an array of timestamps, and the function that converts them to microseconds.
fn microseconds(array: &ArrayRef, unit: TimeUnit) -> (ScalarBuffer<i64>, fn(i64) -> i64) {
    match unit {
        TimeUnit::Second => (
            array.as_primitive::<TimestampSecondType>().values().clone(),
            |value| value.saturating_mul(1_000_000),
        ),
        TimeUnit::Millisecond => (
            array
                .as_primitive::<TimestampMillisecondType>()
                .values()
                .clone(),
            |value| value.saturating_mul(1000),
        ),
        TimeUnit::Microsecond => (
            array
                .as_primitive::<TimestampMicrosecondType>()
                .values()
                .clone(),
            |value| value,
        ),
        TimeUnit::Nanosecond => (
            array
                .as_primitive::<TimestampNanosecondType>()
                .values()
                .clone(),
            |value| value.div_euclid(1000),
        ),
    }
}

fn timestamps(
    array: &ArrayRef,
    unit: TimeUnit,
    zone: Option<&str>,
    binary: bool,
) -> Result<WriteOneValue, ArrowError> {
    let (values, to_us) = microseconds(array, unit);
    if binary {
        return Ok(Box::new(move |row, out| {
            out.put_i64(to_us(values[row]).saturating_sub(EPOCH_US));
        }));
    }
    let Some(zone) = zone else {
        return Ok(Box::new(move |row, out| {
            write_time(to_us(values[row]), out);
        }));
    };
    // The UTC offset at each time, s; neighbouring times mostly share it.
    let mut clock = zones::clock(zone)?;
    let offset = |value: &i64| {
        let ns = to_us(*value).saturating_mul(1000);
        (clock.offset_ns(ns) / 1_000_000_000) as i32
    };
    let offsets: Vec<i32> = values.iter().map(offset).collect();
    Ok(Box::new(move |row, out| {
        let offset = offsets[row];
        let us = to_us(values[row]);
        write_time(us.saturating_add(i64::from(offset) * 1_000_000), out);
        write_offset(offset, out);
    }))
}

/// A UTC offset: `+02`, `-03:30`, `+00:53:28`.
fn write_offset(seconds: i32, out: &mut BytesMut) {
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    print(out, format_args!("{sign}{:02}", all / 3600));
    if !all.is_multiple_of(3600) {
        print(out, format_args!(":{:02}", all / 60 % 60));
    }
    if !all.is_multiple_of(60) {
        print(out, format_args!(":{:02}", all % 60));
    }
}

fn write_interval(months: i32, days: i32, us: i64, binary: bool, out: &mut BytesMut) {
    if binary {
        out.put_i64(us);
        out.put_i32(days);
        out.put_i32(months);
        return;
    }
    let begin = out.len();
    // After a negative part, PostgreSQL writes the sign of the next one, too.
    let mut after_negative = false;
    for (count, one, many) in [
        (months / 12, "year", "years"),
        (months % 12, "mon", "mons"),
        (days, "day", "days"),
    ] {
        if count != 0 {
            let space = if out.len() > begin { " " } else { "" };
            let word = if count == 1 { one } else { many };
            let sign = if after_negative && count > 0 { "+" } else { "" };
            after_negative = count < 0;
            print(out, format_args!("{space}{sign}{count} {word}"));
        }
    }
    if us != 0 || out.len() == begin {
        if out.len() > begin {
            out.put_u8(b' ');
        }
        if us < 0 {
            out.put_u8(b'-');
        } else if after_negative {
            out.put_u8(b'+');
        }
        write_clock(us.saturating_abs(), out);
    }
}

/// Appends a one-dimensional array.
fn write_array(
    values: &ValueEncoder,
    rows: std::ops::Range<usize>,
    oid: u32,
    binary: bool,
    out: &mut BytesMut,
) {
    if binary {
        let has_null = rows.clone().any(|row| values.is_null(row));
        out.put_i32(i32::from(!rows.is_empty()));
        out.put_i32(i32::from(has_null));
        out.put_u32(oid);
        if !rows.is_empty() {
            out.put_i32(rows.len() as i32);
            out.put_i32(1);
        }
        for row in rows {
            values.write_sized(row, out);
        }
        return;
    }
    out.put_u8(b'{');
    let mut text = BytesMut::new();
    for (at, row) in rows.enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        if values.is_null(row) {
            out.put_slice(b"NULL");
            continue;
        }
        text.clear();
        values.write(row, &mut text);
        let plain = |byte: &u8| !b"{},\"\\ \t\r\n\x0b\x0c".contains(byte);
        if !text.is_empty() && text.iter().all(plain) && !text.eq_ignore_ascii_case(b"null") {
            out.put_slice(&text);
            continue;
        }
        out.put_u8(b'"');
        for byte in &text {
            if matches!(byte, b'"' | b'\\') {
                out.put_u8(b'\\');
            }
            out.put_u8(*byte);
        }
        out.put_u8(b'"');
    }
    out.put_u8(b'}');
}

#[cfg(test)]
mod tests;
