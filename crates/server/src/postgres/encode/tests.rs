//! Compares values with what PostgreSQL 16 prints and sends for them.

use super::*;
use arrow::array::{
    BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    DurationMillisecondArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, ListArray, StringArray, StringViewArray, StructArray,
    Time64NanosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Field, IntervalMonthDayNano, UInt16Type};
use proptest::prelude::*;
use std::sync::Arc;

fn texts(array: impl Array + 'static) -> Vec<String> {
    let array: ArrayRef = Arc::new(array);
    let encoder = ValueEncoder::new(&array, false).unwrap();
    let text = |row| {
        let mut out = BytesMut::new();
        if encoder.is_null(row) {
            return "NULL".to_owned();
        }
        encoder.write(row, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    };
    (0..array.len()).map(text).collect()
}

fn binary(array: impl Array + 'static) -> Vec<u8> {
    let array: ArrayRef = Arc::new(array);
    let mut out = BytesMut::new();
    ValueEncoder::new(&array, true).unwrap().write(0, &mut out);
    out.to_vec()
}

#[test]
fn rows_have_the_texts_of_their_values() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), Some(2)])),
        Arc::new(StringArray::from(vec![Some("a b"), None])),
        Arc::new(BooleanArray::from(vec![true, false])),
    ];
    let fields = columns.into_iter().enumerate().map(|(at, column)| {
        let field = Field::new(format!("c{at}"), column.data_type().clone(), true);
        (Arc::new(field), column)
    });
    let rows = StructArray::from(fields.collect::<Vec<_>>());
    assert_eq!(texts(rows), ["(1,\"a b\",t)", "(2,,f)"]);
}

#[test]
fn numbers() {
    assert_eq!(
        texts(Int64Array::from(vec![Some(i64::MIN), None])),
        ["-9223372036854775808", "NULL"]
    );
    assert_eq!(
        texts(UInt64Array::from(vec![u64::MAX])),
        ["18446744073709551615"]
    );
    let floats = vec![
        0.1,
        1.0,
        1e300,
        1e-7,
        1.5e-10,
        -0.0,
        f64::NAN,
        f64::NEG_INFINITY,
    ];
    assert_eq!(
        texts(Float64Array::from(floats)),
        [
            "0.1",
            "1",
            "1e+300",
            "1e-07",
            "1.5e-10",
            "-0",
            "NaN",
            "-Infinity"
        ]
    );
    assert_eq!(texts(Float32Array::from(vec![0.1])), ["0.1"]);
    let decimals = Decimal128Array::from(vec![-1_234_567, 5])
        .with_precision_and_scale(20, 3)
        .unwrap();
    assert_eq!(texts(decimals), ["-1234.567", "0.005"]);
    assert_eq!(binary(UInt32Array::from(vec![7])), 7_i64.to_be_bytes());
    let decimal = Decimal128Array::from(vec![12_345_678])
        .with_precision_and_scale(20, 3)
        .unwrap();
    assert_eq!(
        binary(decimal),
        b"\0\x03\0\x01\0\0\0\x03\0\x01\x09\x29\x1a\x7c"
    );
}

#[test]
fn times() {
    let nanoseconds = vec![1_704_067_200_500_000_999, -1, 0];
    assert_eq!(
        texts(TimestampNanosecondArray::from(nanoseconds.clone())),
        [
            "2024-01-01 00:00:00.5",
            "1969-12-31 23:59:59.999999",
            "1970-01-01 00:00:00"
        ]
    );
    let zoned = TimestampSecondArray::from(vec![0]);
    assert_eq!(
        texts(zoned.clone().with_timezone("+00:00")),
        ["1970-01-01 00:00:00+00"]
    );
    assert_eq!(
        texts(zoned.with_timezone("Asia/Kolkata")),
        ["1970-01-01 05:30:00+05:30"]
    );
    assert_eq!(
        binary(TimestampNanosecondArray::from(vec![
            946_684_800_000_001_000
        ])),
        [0, 0, 0, 0, 0, 0, 0, 1]
    );
    assert_eq!(texts(Date32Array::from(vec![19_723])), ["2024-01-01"]);
    assert_eq!(binary(Date32Array::from(vec![10_958])), [0, 0, 0, 1]);
    assert_eq!(
        texts(Time64NanosecondArray::from(vec![3_661_500_000_000])),
        ["01:01:01.5"]
    );
}

#[test]
fn intervals() {
    let interval = |months, days, ns| IntervalMonthDayNano::new(months, days, ns);
    let values = vec![
        Some(interval(14, 3, 4_000_000_000)),
        Some(interval(0, 0, 0)),
        Some(interval(0, 1, -1_500_000_000)),
        Some(interval(0, -1, 7_200_000_000_000)),
        Some(interval(-1, 3, 0)),
        None,
    ];
    assert_eq!(
        texts(IntervalMonthDayNanoArray::from(values)),
        [
            "1 year 2 mons 3 days 00:00:04",
            "00:00:00",
            "1 day -00:00:01.5",
            "-1 days +02:00:00",
            "-1 mons +3 days",
            "NULL"
        ]
    );
    assert_eq!(
        texts(DurationMillisecondArray::from(vec![90_061_000])),
        ["1 day 01:01:01"]
    );
}

#[test]
fn texts_bytes_and_dictionaries() {
    let tags: DictionaryArray<UInt16Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
    assert_eq!(texts(tags), ["a", "NULL", "b"]);
    assert_eq!(
        texts(StringViewArray::from(vec![
            "a long text that is not inline"
        ])),
        ["a long text that is not inline"]
    );
    assert_eq!(
        texts(BinaryArray::from(vec![&[0_u8, 255][..]])),
        ["\\x00ff"]
    );
    assert_eq!(binary(BinaryArray::from(vec![&[0_u8, 255][..]])), [0, 255]);
    assert_eq!(texts(StringArray::from(vec![""])), [""]);
}

#[test]
fn lists() {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    assert_eq!(texts(list.clone()), ["{1,NULL}", "NULL", "{}"]);
    let mut expected = Vec::new();
    for number in [1, 1, 20, 2, 1, 8] {
        expected.extend_from_slice(&i32::to_be_bytes(number));
    }
    expected.extend_from_slice(&1_i64.to_be_bytes());
    expected.extend_from_slice(&(-1_i32).to_be_bytes());
    assert_eq!(binary(list), expected);
    let words = StringArray::from(vec!["plain", "a b", "", "null", "q\"\\"]);
    let field = Arc::new(Field::new("item", DataType::Utf8, true));
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([5]);
    let list = ListArray::new(field, offsets, Arc::new(words), None);
    assert_eq!(texts(list), ["{plain,\"a b\",\"\",\"null\",\"q\\\"\\\\\"}"]);
}

/// Checks that messages contain each value as it is encoded alone, preceded by its length.
fn check_rows(array: impl Array + 'static) {
    let array: ArrayRef = Arc::new(array);
    let numbers: Int32Array = (0..array.len() as i32).collect();
    let numbers: ArrayRef = Arc::new(numbers);
    for is_binary in [false, true] {
        let values = ValueEncoder::new(&array, is_binary).unwrap();
        let arrays = [(&numbers, true), (&array, is_binary), (&array, is_binary)];
        let mut written = BytesMut::from(&b"before"[..]);
        let writer = RowWriter::new(arrays, array.len()).unwrap();
        writer.write(b'D', b"first", &mut written);
        let mut expected = BytesMut::from(&b"before"[..]);
        for row in 0..array.len() {
            let mut body = BytesMut::from(&b"first"[..if row == 0 { 5 } else { 0 }]);
            body.put_u16(3);
            body.put_i32(4);
            body.put_i32(row as i32);
            for _ in 0..2 {
                if values.is_null(row) {
                    body.put_i32(-1);
                    continue;
                }
                let mut value = BytesMut::new();
                values.write(row, &mut value);
                body.put_i32(value.len() as i32);
                body.put_slice(&value);
            }
            expected.put_u8(b'D');
            expected.put_i32(4 + body.len() as i32);
            expected.put_slice(&body);
        }
        assert_eq!(written, expected, "{array:?}");
    }
}

#[test]
fn rows_without_columns_and_columns_without_rows() {
    let mut out = BytesMut::new();
    RowWriter::new([], 2).unwrap().write(b'D', b"", &mut out);
    assert_eq!(out[..], *b"D\0\0\0\x06\0\0D\0\0\0\x06\0\0");
    let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    let mut out = BytesMut::new();
    let writer = RowWriter::new([(&none, true)], 0).unwrap();
    writer.write(b'D', b"first", &mut out);
    assert!(out.is_empty());
}

#[test]
fn rows_have_values_with_their_lengths() {
    check_rows(Int16Array::from(vec![Some(i16::MIN), None, Some(7)]));
    check_rows(Int32Array::from(vec![Some(-1), None, Some(i32::MAX)]));
    check_rows(Int64Array::from(vec![Some(i64::MIN), None, Some(0)]));
    check_rows(UInt64Array::from(vec![Some(u64::MAX), None]));
    check_rows(Float32Array::from(vec![Some(0.1), None, Some(f32::NAN)]));
    check_rows(Float64Array::from(vec![Some(0.1), None, Some(-1e300)]));
    check_rows(Date32Array::from(vec![Some(i32::MIN), None, Some(19_723)]));
    check_rows(TimestampNanosecondArray::from(vec![
        Some(i64::MIN),
        None,
        Some(1),
    ]));
    check_rows(TimestampSecondArray::from(vec![Some(i64::MAX), None]));
    check_rows(TimestampSecondArray::from(vec![0]).with_timezone("+02:00"));
    check_rows(StringArray::from(vec![Some("a"), None, Some("")]));
    check_rows(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let tags: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("bc"), Some("a")]
        .into_iter()
        .collect();
    check_rows(tags.slice(1, 3));
    check_rows(tags);
    let words = StringArray::from(vec![Some("of many words"), None, Some("few")]);
    let keys = Int32Array::from(vec![2, 1]);
    check_rows(DictionaryArray::new(keys, Arc::new(words)));
}

proptest! {
    #[test]
    fn floats_are_the_shortest_that_read_back(bits in any::<u64>(), exponent in -5_i32..17) {
        let wide = f64::from_bits(bits);
        let near = (bits >> 11) as f64 / 2_f64.powi(53) * 10_f64.powi(exponent);
        let is_plain = |size: f64| size == 0.0 || (1e-4..1e15).contains(&size);
        for wide in [wide, near, near.round()] {
            let text = texts(Float64Array::from(vec![wide])).remove(0);
            let back: f64 = text.parse().unwrap();
            prop_assert!(back == wide || (back.is_nan() && wide.is_nan()));
            // If two texts are equally short and equally close, libraries choose differently.
            if is_plain(wide.abs()) {
                prop_assert_eq!(text.len(), wide.to_string().len());
            }
            let narrow = wide as f32;
            let text = texts(Float32Array::from(vec![narrow])).remove(0);
            let back: f32 = text.parse().unwrap();
            prop_assert!(back == narrow || (back.is_nan() && narrow.is_nan()));
            if is_plain(f64::from(narrow.abs())) {
                prop_assert_eq!(text.len(), narrow.to_string().len());
            }
        }
    }

    #[test]
    fn times_are_those_of_the_calendar(us in any::<i64>(), near in -70_000_000_000_000_000_i64..300_000_000_000_000_000) {
        for us in [us, near, near / 1_000_000 * 1_000_000] {
            let text = texts(TimestampMicrosecondArray::from(vec![us])).remove(0);
            let Some(time) = chrono::DateTime::from_timestamp_micros(us) else {
                prop_assert!(text.ends_with("infinity"));
                continue;
            };
            let expected = time.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
            let expected = match expected.split_once('.') {
                Some((whole, decimals)) => {
                    let decimals = decimals.trim_end_matches('0');
                    let dot = if decimals.is_empty() { "" } else { "." };
                    format!("{whole}{dot}{decimals}")
                }
                None => expected,
            };
            prop_assert_eq!(text, expected);
        }
    }
}
