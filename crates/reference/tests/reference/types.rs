//! Values of every type come back as they were written.

use crate::support::{all, batch, column, parts, store, table, write};
use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, StringArray,
    StringViewArray, Time64NanosecondArray, TimestampNanosecondArray,
};
use arrow::datatypes::IntervalMonthDayNano;
use marigram_reference::{OnConflict, ReferenceError, ReferenceType};
use proptest::prelude::*;
use std::sync::Arc;

/// Writes values of a type and reads them back.
fn round_trip(kind: ReferenceType, values: &ArrayRef) -> Result<ArrayRef, ReferenceError> {
    let store = store();
    let transaction = write(&store);
    let table = transaction
        .create_table(&table("t", vec![column("a", kind)], Vec::new()))
        .unwrap();
    transaction.insert(&table, &batch(vec![values.clone()]), &OnConflict::Refuse)?;
    let rows = all(&transaction, &table);
    transaction.commit().unwrap();
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
    let read = store.read().unwrap();
    assert_eq!(all(&read, &table), rows);
    assert_eq!(*rows.column(0).data_type(), kind.data_type());
    Ok(rows.column(0).clone())
}

fn assert_round_trip(kind: ReferenceType, values: impl Array + 'static) {
    let values: ArrayRef = Arc::new(values);
    assert_eq!(&round_trip(kind, &values).unwrap(), &values, "{kind}");
}

#[test]
fn numbers_and_times_come_back_with_their_extremes() {
    use ReferenceType as T;
    assert_round_trip(
        T::Bool,
        BooleanArray::from(vec![Some(true), Some(false), None]),
    );
    assert_round_trip(
        T::Int2,
        Int16Array::from(vec![Some(i16::MIN), Some(i16::MAX), None]),
    );
    assert_round_trip(
        T::Int4,
        Int32Array::from(vec![Some(i32::MIN), Some(i32::MAX), None]),
    );
    let extremes = vec![Some(i64::MIN), Some(i64::MAX), Some(0), Some(-1), None];
    assert_round_trip(T::Int8, Int64Array::from(extremes.clone()));
    assert_round_trip(
        T::Time,
        Time64NanosecondArray::from(vec![Some(86_399_999_999_999), None]),
    );
    assert_round_trip(
        T::Timestamp,
        TimestampNanosecondArray::from(extremes.clone()),
    );
    let utc = TimestampNanosecondArray::from(extremes).with_timezone("UTC");
    assert_round_trip(T::TimestampTz, utc);
    assert_round_trip(
        T::Date,
        Date32Array::from(vec![Some(i32::MIN), Some(i32::MAX), None]),
    );
}

#[test]
fn floats_come_back_bit_by_bit() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        f64::MIN,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e15,
        9_007_199_254_740_993.0,
        0.1,
    ];
    let array: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
    let back = round_trip(ReferenceType::Float8, &array).unwrap();
    let back = back.as_any().downcast_ref::<Float64Array>().unwrap();
    for (value, read) in values.iter().zip(back.values()) {
        assert_eq!(value.to_bits(), read.to_bits(), "{value}");
    }
    let values = [
        0.0,
        -0.0,
        f32::MIN,
        f32::MAX,
        1e-45,
        f32::NAN,
        f32::INFINITY,
        0.1,
    ];
    let array: ArrayRef = Arc::new(Float32Array::from(values.to_vec()));
    let back = round_trip(ReferenceType::Float4, &array).unwrap();
    let back = back.as_any().downcast_ref::<Float32Array>().unwrap();
    for (value, read) in values.iter().zip(back.values()) {
        assert_eq!(value.to_bits(), read.to_bits(), "{value}");
    }
}

#[test]
fn decimals_have_up_to_38_digits() {
    let most = 10_i128.pow(38) - 1;
    for (precision, scale, values) in [
        (38, 0, vec![most, -most, 0, 1, -1]),
        (38, 38, vec![most, -most, 0]),
        (18, 2, vec![10_i128.pow(18) - 1, 1 - 10_i128.pow(18), 0]),
        (19, 2, vec![10_i128.pow(19) - 1, 1 - 10_i128.pow(19), 0]),
        (5, -2, vec![99_999, -5]),
    ] {
        let array = Decimal128Array::from(values).with_precision_and_scale(precision, scale);
        assert_round_trip(ReferenceType::Numeric { precision, scale }, array.unwrap());
    }
    // The array itself does not check its digits.
    let array = Decimal128Array::from(vec![100_000])
        .with_precision_and_scale(5, 2)
        .unwrap();
    let kind = ReferenceType::Numeric {
        precision: 5,
        scale: 2,
    };
    let error = round_trip(kind, &(Arc::new(array) as ArrayRef)).unwrap_err();
    assert_eq!(parts(&error).0, "22003");
}

#[test]
fn texts_bytes_and_intervals_come_back() {
    use ReferenceType as T;
    let texts = vec![Some(""), Some(" "), Some("ä\u{10ffff}'\"\\\n"), None];
    assert_round_trip(T::Text, StringArray::from(texts.clone()));
    assert_round_trip(T::Varchar(10), StringArray::from(texts));
    assert_round_trip(
        T::Char(2),
        StringArray::from(vec![Some("ab"), Some("  "), None]),
    );
    let bytes: Vec<Option<&[u8]>> = vec![Some(&[]), Some(&[0, 255, 0]), None];
    assert_round_trip(T::Bytea, BinaryArray::from(bytes));
    let intervals = vec![
        Some(IntervalMonthDayNano::new(i32::MIN, i32::MAX, i64::MIN)),
        Some(IntervalMonthDayNano::new(i32::MAX, i32::MIN, i64::MAX)),
        Some(IntervalMonthDayNano::ZERO),
        None,
    ];
    assert_round_trip(T::Interval, IntervalMonthDayNanoArray::from(intervals));
}

#[test]
fn texts_with_a_form_are_checked_and_brought_into_it() {
    use ReferenceType as T;
    let back = |kind, text: &str| {
        let values: ArrayRef = Arc::new(StringViewArray::from(vec![text]));
        let back = round_trip(kind, &values)?;
        let back = back.as_any().downcast_ref::<StringArray>().unwrap();
        Ok::<_, ReferenceError>(back.value(0).to_owned())
    };
    assert_eq!(back(T::Char(3), "a").unwrap(), "a  ");
    assert_eq!(
        back(T::Json, " {\"b\":1,  \"a\":2}").unwrap(),
        " {\"b\":1,  \"a\":2}"
    );
    assert_eq!(
        back(T::Jsonb, " {\"b\":1,  \"a\":2}").unwrap(),
        "{\"a\": 2, \"b\": 1}"
    );
    let uuid = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11";
    assert_eq!(back(T::Uuid, uuid).unwrap(), uuid.to_lowercase());
    let error = back(T::Json, "{").unwrap_err();
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        ("22P02", "invalid input syntax for type json")
    );
    let error = back(T::Uuid, "x").unwrap_err();
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        ("22P02", "invalid input syntax for type uuid: \"x\"")
    );
    assert_eq!(back(T::Text, "a\0b").unwrap_err().sqlstate, "22021");
    let error = back(T::Varchar(3), "abcd").unwrap_err();
    assert_eq!(
        (error.sqlstate, error.message.as_str()),
        ("22001", "value too long for type character varying(3)")
    );
    assert_eq!(back(T::Varchar(3), "abc   ").unwrap(), "abc");
}

#[test]
fn values_of_another_type_are_refused() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert_eq!(
        round_trip(ReferenceType::Int8, &values)
            .unwrap_err()
            .sqlstate,
        "42804"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_values_come_back(
        ints in prop::collection::vec(any::<Option<i64>>(), 1..20),
        floats in prop::collection::vec(any::<Option<f64>>(), 1..20),
        texts in prop::collection::vec(any::<Option<String>>(), 1..20),
        bytes in prop::collection::vec(any::<Option<Vec<u8>>>(), 1..20),
        decimals in prop::collection::vec(-(10_i128.pow(38) - 1)..10_i128.pow(38), 1..20),
    ) {
        assert_round_trip(ReferenceType::Int8, Int64Array::from(ints));
        assert_round_trip(ReferenceType::Float8, Float64Array::from(floats));
        let texts: Vec<_> = texts.into_iter().map(|text| text.map(|text| text.replace('\0', ""))).collect();
        assert_round_trip(ReferenceType::Text, StringArray::from(texts));
        assert_round_trip(ReferenceType::Bytea, BinaryArray::from_iter(bytes));
        let decimals = Decimal128Array::from(decimals).with_precision_and_scale(38, 3).unwrap();
        assert_round_trip(ReferenceType::Numeric { precision: 38, scale: 3 }, decimals);
    }
}
