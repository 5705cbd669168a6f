//! Converts the values that a client binds to `$1…$n` to one-row Arrow arrays.

mod arrays;

use crate::postgres::copy::rows::{parse_bool, parse_bytes};
use crate::postgres::error::PgError;
use crate::postgres::messages::BindMessage;
use crate::postgres::numeric;
use crate::postgres::types::{PgType, element, is_binary, pg_type, type_oid};
use crate::postgres::uuid;
use crate::postgres::zones;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, StringArray,
    Time64MicrosecondArray, TimestampNanosecondArray, new_null_array,
};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNano, TimeUnit};
use std::sync::Arc;

/// Microseconds and days from the Unix epoch to PostgreSQL's, 2000-01-01.
const EPOCH_US: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i32 = 10_957;
/// OID of `timestamptz[]`.
const TIMESTAMPTZ_ARRAY: u32 = 1185;
/// OID of `oid[]`.
const OID_ARRAY: u32 = 1028;

/// Converts the values of a bind. The statement's parameters have the OIDs `oids` for the client
/// and the types `types` for the database. Time texts without a zone are in `zone` if the parameter
/// is a `timestamptz`.
///
/// # Errors
/// The parameter whose value does not have its type, or a wrong number of them.
pub(super) fn arrays(
    bind: &BindMessage,
    oids: &[u32],
    types: &[DataType],
    zone: &str,
) -> Result<Vec<ArrayRef>, PgError> {
    if bind.values.len() != types.len() {
        let message = format!(
            "{} parameters are bound, but the statement has {}",
            bind.values.len(),
            types.len()
        );
        return Err(PgError::new("08P01", message));
    }
    let values = bind.values.iter().zip(types).enumerate();
    values
        .map(|(at, (value, kind))| {
            let Some(bytes) = value else {
                return Ok(new_null_array(kind, 1));
            };
            let oid = oids.get(at).copied().unwrap_or(0);
            let is_binary = is_binary(&bind.formats, at);
            let array = match element(kind) {
                Some(inner) => array(bytes, is_binary, inner.data_type(), zone),
                None => scalar(bytes, is_binary, oid, kind, zone),
            };
            let array = array.and_then(|array| convert(&array, kind));
            array.map_err(|message| {
                PgError::new("22P02", format!("parameter ${}: {message}", at + 1))
            })
        })
        .collect()
}

/// A value that is not an array.
fn scalar(
    bytes: &[u8],
    is_binary: bool,
    oid: u32,
    kind: &DataType,
    zone: &str,
) -> Result<ArrayRef, String> {
    if is_binary && PgType::element_of(oid).is_some() {
        return Err("an array was sent where a single value is expected".to_owned());
    }
    if is_binary {
        binary(bytes, oid, kind, zone)
    } else if oid == PgType::Uuid.oid() {
        let text = utf8(bytes)?;
        // PostgreSQL's words.
        let wrong = || format!("invalid input syntax for type uuid: \"{text}\"");
        let number = uuid::number(text).ok_or_else(wrong)?;
        Ok(Arc::new(StringArray::from(vec![uuid::text(number)])))
    } else {
        text(bytes, kind, zone)
    }
}

/// A list with elements of type `kind`.
fn array(bytes: &[u8], is_binary: bool, kind: &DataType, zone: &str) -> Result<ArrayRef, String> {
    if is_binary {
        arrays::from_binary(bytes, kind, |bytes, oid| {
            convert(&binary(bytes, oid, kind, zone)?, kind)
        })
    } else {
        arrays::from_text(utf8(bytes)?, kind, |bytes| {
            convert(&text(bytes, kind, zone)?, kind)
        })
    }
}

/// Converts an argument of `EXECUTE`, a single value, to a parameter of type `kind`; a text is
/// parsed as a value of that type.
///
/// # Errors
/// If the value does not have that type.
pub(super) fn argument(value: &ArrayRef, kind: &DataType, zone: &str) -> Result<ArrayRef, String> {
    let is_text = matches!(value.data_type(), DataType::Utf8) && *kind != DataType::Utf8;
    match value.as_string_opt::<i32>().filter(|_| is_text) {
        Some(texts) if texts.len() == 1 && !texts.is_null(0) => {
            let bytes = texts.value(0).as_bytes();
            let read = match element(kind) {
                Some(inner) => array(bytes, false, inner.data_type(), zone)?,
                None => text(bytes, kind, zone)?,
            };
            convert(&read, kind)
        }
        _ => convert(value, kind),
    }
}

/// Converts the array to `kind` if every value can be represented.
fn convert(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef, String> {
    if array.data_type() == kind || *kind == DataType::Null {
        return Ok(array.clone());
    }
    if kind.is_integer() && array.data_type().is_floating() {
        let numbers = cast(array, &DataType::Float64).map_err(|error| error.to_string())?;
        let mut numbers = numbers.as_primitive::<Float64Type>().iter().flatten();
        // A cast would cut the fraction off.
        if let Some(number) = numbers.find(|number| number.fract() != 0.0) {
            return Err(no(&number.to_string(), "an integer"));
        }
    }
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, kind, &options).map_err(|error| error.to_string())
}

/// Parses the text of a parameter of type `kind`.
fn text(bytes: &[u8], kind: &DataType, session_zone: &str) -> Result<ArrayRef, String> {
    let kind = match kind {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    if matches!(
        kind,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    ) {
        return Ok(Arc::new(BinaryArray::from(vec![
            parse_bytes(bytes)?.as_slice(),
        ])));
    }
    let text = utf8(bytes)?;
    Ok(match kind {
        DataType::Boolean => Arc::new(BooleanArray::from(vec![parse_bool(text.trim())?])),
        DataType::Timestamp(_, zone) => {
            let ns = match text.trim() {
                // Here, an integer does not mean ns: SQL has no bare number as a time.
                number if number.parse::<i64>().is_ok() => {
                    return Err(format!("\"{number}\" is not a time"));
                }
                time if zone.is_some() => zones::read(time, session_zone)?,
                time => zones::read(time, "UTC")?,
            };
            let times = TimestampNanosecondArray::from(vec![ns]);
            Arc::new(times.with_timezone_opt(zone.clone()))
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            let number = text.trim().parse::<i64>();
            Arc::new(Int64Array::from(vec![
                number.map_err(|_| no(text, "an integer"))?,
            ]))
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let number = text.trim().parse::<f64>();
            Arc::new(Float64Array::from(vec![
                number.map_err(|_| no(text, "a number"))?,
            ]))
        }
        DataType::Interval(_) => Arc::new(StringArray::from(vec![interval_in_words(text)])),
        _ => Arc::new(StringArray::from(vec![text])),
    })
}

/// The text of an interval as Arrow reads it. PostgreSQL also takes `h:m:s`, and commas between the parts:
/// Python writes a `timedelta` as `-1 day, 23:59:59`.
fn interval_in_words(text: &str) -> String {
    let in_words = |part: &str| {
        let fields: Vec<&str> = part.split(':').collect();
        let (hours, minutes, seconds) = match fields.as_slice() {
            [hours, minutes] => (hours, minutes, &"0"),
            [hours, minutes, seconds] => (hours, minutes, seconds),
            _ => return part.to_owned(),
        };
        let sign = if hours.starts_with('-') { "-" } else { "" };
        format!("{hours} hours {sign}{minutes} mins {sign}{seconds} secs")
    };
    let plain = text.replace(',', " ");
    let parts: Vec<String> = plain.split_whitespace().map(in_words).collect();
    parts.join(" ")
}

/// Decodes bytes of the type `oid`; if the client did not name it, of PostgreSQL's type for `kind`.
/// A `timestamp` that becomes a `timestamptz` is a local time of the session.
fn binary(bytes: &[u8], oid: u32, kind: &DataType, zone: &str) -> Result<ArrayRef, String> {
    let named = PgType::from_oid(oid).unwrap_or_else(|| pg_type(kind));
    Ok(match named {
        PgType::Bool => Arc::new(BooleanArray::from(vec![fixed::<1>(bytes)?[0] != 0])),
        PgType::Int2 => Arc::new(Int16Array::from(vec![i16::from_be_bytes(fixed(bytes)?)])),
        PgType::Int4 => Arc::new(Int32Array::from(vec![i32::from_be_bytes(fixed(bytes)?)])),
        PgType::Oid => {
            let number = u32::from_be_bytes(fixed(bytes)?);
            Arc::new(Int64Array::from(vec![i64::from(number)]))
        }
        PgType::Int8 => Arc::new(Int64Array::from(vec![i64::from_be_bytes(fixed(bytes)?)])),
        PgType::Float4 => Arc::new(Float32Array::from(vec![f32::from_be_bytes(fixed(bytes)?)])),
        PgType::Float8 => Arc::new(Float64Array::from(vec![f64::from_be_bytes(fixed(bytes)?)])),
        PgType::Numeric => {
            let text = numeric::decode(bytes).ok_or("the bytes are not a numeric")?;
            Arc::new(StringArray::from(vec![text]))
        }
        PgType::Bytea => Arc::new(BinaryArray::from(vec![bytes])),
        PgType::Date => {
            let days = i32::from_be_bytes(fixed(bytes)?).checked_add(EPOCH_DAYS);
            Arc::new(Date32Array::from(vec![
                days.ok_or("the date is out of range")?,
            ]))
        }
        PgType::Time => Arc::new(Time64MicrosecondArray::from(vec![i64::from_be_bytes(
            fixed(bytes)?,
        )])),
        PgType::Timestamp | PgType::Timestamptz => {
            let us = i64::from_be_bytes(fixed(bytes)?).checked_add(EPOCH_US);
            let ns = us.and_then(|us| us.checked_mul(1000));
            let mut ns = ns.ok_or("the time is outside the years 1677 to 2262")?;
            let is_local = oid == PgType::Timestamp.oid();
            if is_local && zone != "UTC" && matches!(kind, DataType::Timestamp(_, Some(_))) {
                let local = chrono::DateTime::from_timestamp_nanos(ns).naive_utc();
                ns = zones::read(&local.to_string(), zone)?;
            }
            let times = TimestampNanosecondArray::from(vec![ns]);
            // A cast between zones would keep the clock time instead of the instant.
            let zone = match kind {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            Arc::new(times.with_timezone_opt(zone))
        }
        PgType::Interval => {
            let bytes = fixed::<16>(bytes)?;
            let us = i64::from_be_bytes(fixed(&bytes[..8])?);
            let days = i32::from_be_bytes(fixed(&bytes[8..12])?);
            let months = i32::from_be_bytes(fixed(&bytes[12..])?);
            let ns = us.checked_mul(1000).ok_or("the interval is too long")?;
            let interval = IntervalMonthDayNano::new(months, days, ns);
            Arc::new(IntervalMonthDayNanoArray::from(vec![interval]))
        }
        PgType::Uuid => {
            let number = u128::from_be_bytes(fixed(bytes)?);
            Arc::new(StringArray::from(vec![uuid::text(number)]))
        }
        PgType::Jsonb => Arc::new(StringArray::from(vec![utf8(
            bytes.get(1..).unwrap_or(&[]),
        )?])),
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Unknown
        | PgType::Json
        | PgType::Char => Arc::new(StringArray::from(vec![utf8(bytes)?])),
        other => {
            return Err(format!(
                "values of type {other:?} are not taken in binary; send text"
            ));
        }
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned())
}

fn no(text: &str, kind: &str) -> String {
    format!("\"{text}\" is not {kind}")
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    bytes
        .try_into()
        .map_err(|_| format!("{} bytes were sent where {N} are expected", bytes.len()))
}

/// The type of a parameter as clients see it: the one that they named, or the database's. `pg_type` is that
/// of a text that is none for PostgreSQL.
pub(super) fn oid(given: Option<u32>, kind: &DataType, pg_type: Option<&str>) -> u32 {
    match given {
        Some(oid) if oid != 0 => oid,
        _ if pg_type == Some("uuid") => PgType::Uuid.oid(),
        _ if pg_type == Some("json") => PgType::Json.oid(),
        _ if pg_type == Some("jsonb") => PgType::Jsonb.oid(),
        _ => match kind {
            // Clients send instants; with a named zone, they need not guess.
            DataType::Timestamp(TimeUnit::Nanosecond, _) => PgType::Timestamptz.oid(),
            // The same for a list of them.
            DataType::List(inner) if matches!(inner.data_type(), DataType::Timestamp(..)) => {
                TIMESTAMPTZ_ARRAY
            }
            // No column has this type, but OIDs do.
            DataType::UInt32 => PgType::Oid.oid(),
            DataType::List(inner) if *inner.data_type() == DataType::UInt32 => OID_ARRAY,
            other => type_oid(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{
        Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimestampNanosecondType, UInt64Type,
    };
    use bytes::Bytes;

    fn one(value: &[u8], binary: bool, oid: u32, kind: DataType) -> Result<ArrayRef, PgError> {
        let bind = BindMessage {
            portal: String::new(),
            statement: String::new(),
            formats: vec![i16::from(binary)],
            values: vec![Some(Bytes::copy_from_slice(value))],
            results: vec![],
        };
        arrays(&bind, &[oid], &[kind], "UTC").map(|mut arrays| arrays.remove(0))
    }

    #[test]
    fn integers_widen_and_texts_are_read() {
        let error = one(&4.7_f64.to_be_bytes(), true, 701, DataType::Int64).unwrap_err();
        assert!(
            format!("{error:?}").contains("\\\"4.7\\\" is not an integer"),
            "{error:?}"
        );
        let array = one(&4_f64.to_be_bytes(), true, 701, DataType::Int64).unwrap();
        assert_eq!(array.as_primitive::<Int64Type>().value(0), 4);
        let array = one(&5_i16.to_be_bytes(), true, 21, DataType::Int64).unwrap();
        assert_eq!(array.as_primitive::<Int64Type>().value(0), 5);
        let array = one(b"18446744073709551615", false, 0, DataType::UInt64).unwrap();
        assert_eq!(array.as_primitive::<UInt64Type>().value(0), u64::MAX);
        let error = one(b"x", false, 0, DataType::Int64).unwrap_err();
        assert_eq!(error.message, "parameter $1: \"x\" is not an integer");
    }

    #[test]
    fn times_keep_their_instant() {
        let kind = DataType::Timestamp(TimeUnit::Nanosecond, None);
        for oid in [1114, 1184, 0] {
            let array = one(&1_i64.to_be_bytes(), true, oid, kind.clone()).unwrap();
            let time = array.as_primitive::<TimestampNanosecondType>().value(0);
            assert_eq!(time, EPOCH_US * 1000 + 1000);
        }
        let array = one(b"2000-01-01 02:00:00+02", false, 1184, kind).unwrap();
        assert_eq!(
            array.as_primitive::<TimestampNanosecondType>().value(0),
            EPOCH_US * 1000
        );
    }

    #[test]
    fn a_local_time_becomes_a_moment_in_the_session_zone() {
        let kind = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        let bind = |value: &[u8], format| BindMessage {
            portal: String::new(),
            statement: String::new(),
            formats: vec![format],
            values: vec![Some(Bytes::copy_from_slice(value))],
            results: vec![],
        };
        let (binary, text) = (0_i64.to_be_bytes(), b"2000-01-01 00:00:00");
        for (value, format) in [(&binary[..], 1), (&text[..], 0)] {
            for (oid, hours) in [(1114, -1), (1184, if format == 1 { 0 } else { -1 })] {
                let bound = bind(value, format);
                let read =
                    arrays(&bound, &[oid], std::slice::from_ref(&kind), "Europe/Berlin").unwrap();
                let read = read[0].as_primitive::<TimestampNanosecondType>().value(0);
                assert_eq!(
                    read,
                    EPOCH_US * 1000 + hours * 3_600_000_000_000,
                    "{oid}, {format}"
                );
            }
        }
    }

    #[test]
    fn intervals_are_read_as_postgresql_and_python_write_them() {
        let kind = DataType::Interval(IntervalUnit::MonthDayNano);
        for (text, months, days, ns) in [
            ("0:00:03", 0, 0, 3_000_000_000_i64),
            ("-1 day, 23:59:59.5", 0, -1, 86_399_500_000_000),
            ("2 days", 0, 2, 0),
            ("1 mon 2 days 01:30", 1, 2, 5_400_000_000_000),
            ("-00:00:01.5", 0, 0, -1_500_000_000),
        ] {
            let array = one(text.as_bytes(), false, 1186, kind.clone()).unwrap();
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(0);
            let expected = IntervalMonthDayNano::new(months, days, ns);
            assert_eq!(value, expected, "{text}");
        }
        assert!(one(b"soon", false, 1186, kind).is_err());
    }

    #[test]
    fn dictionaries_take_text() {
        let kind = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
        let array = one(b"d_1", false, 25, kind.clone()).unwrap();
        assert_eq!(array.data_type(), &kind);
        assert!(one(&[0xff], true, 25, kind).is_err());
    }

    #[test]
    fn arrays_are_read_in_text_and_in_binary() {
        let kind = DataType::new_list(DataType::Int64, true);
        let array = one(b"{1, NULL ,\"3\"}", false, 1016, kind.clone()).unwrap();
        let values = array.as_list::<i32>().value(0);
        let values: Vec<_> = values.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(values, [Some(1), None, Some(3)]);
        // An array of int4, as a client sends it.
        let words = [1, 1, 23, 2, 1, 4, 7, -1_i32];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let array = one(&bytes, true, 1007, kind.clone()).unwrap();
        let values = array.as_list::<i32>().value(0);
        let values: Vec<_> = values.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(values, [Some(7), None]);
        for empty in ["{}", " { } "] {
            let array = one(empty.as_bytes(), false, 0, kind.clone()).unwrap();
            assert_eq!(array.as_list::<i32>().value(0).len(), 0);
        }
        let error = one(b"{{1},{2}}", false, 0, kind.clone()).unwrap_err();
        assert!(
            error.message.contains("more than one dimension"),
            "{error:?}"
        );
        for wrong in [
            "",
            "1,2",
            "{1,2",
            "{1,,2}",
            "{1}x",
            "{x}",
            "{\"1}",
            "[0:1]={1,2}",
        ] {
            assert!(
                one(wrong.as_bytes(), false, 0, kind.clone()).is_err(),
                "{wrong}"
            );
        }
        // Cut short at every length, or with trailing bytes.
        for length in 0..bytes.len() {
            assert!(
                one(&bytes[..length], true, 1007, kind.clone()).is_err(),
                "{length}"
            );
        }
        let more = [&bytes[..], &[0]].concat();
        assert!(one(&more, true, 1007, kind.clone()).is_err());
        let huge: Vec<u8> = [1, 0, 23, i32::MAX, 1]
            .into_iter()
            .flat_map(i32::to_be_bytes)
            .collect();
        assert!(one(&huge, true, 1007, kind).is_err());
        // An array where a single value is expected.
        assert!(one(&bytes, true, 1007, DataType::Utf8).is_err());
    }

    #[test]
    fn texts_in_arrays_are_unquoted() {
        let kind = DataType::new_list(DataType::Utf8, true);
        let array = one(br#"{a b ,"c,\"d\\",null,"NULL",\x}"#, false, 1009, kind).unwrap();
        let values = array.as_list::<i32>().value(0);
        let values: Vec<_> = values.as_string::<i32>().iter().collect();
        assert_eq!(
            values,
            [Some("a b"), Some("c,\"d\\"), None, Some("NULL"), Some("x")]
        );
    }

    #[test]
    fn the_wrong_number_is_an_error() {
        let bind = BindMessage {
            portal: String::new(),
            statement: String::new(),
            formats: vec![],
            values: vec![],
            results: vec![],
        };
        assert!(arrays(&bind, &[], &[DataType::Int64], "UTC").is_err());
        assert!(arrays(&bind, &[], &[], "UTC").unwrap().is_empty());
    }
}
