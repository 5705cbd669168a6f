//! A value as SQLite stores it, and how values of Arrow become such.
//!
//! | type | in SQLite |
//! |---|---|
//! | boolean, integers, date (days), times (nanoseconds) | integer |
//! | floats | real; NaN is the text `NaN`, which sorts behind all numbers as in PostgreSQL |
//! | numeric | integer without the point up to 18 digits, else 16 bytes that sort as the number does |
//! | interval | 16 bytes of its length, which sort as it does, then months, days and nanoseconds |
//! | bytea | blob |
//! | others | text |
//!
//! Invariant: SQLite orders the stored values as PostgreSQL orders values in the collation `C`, and equal values
//! are stored equally.

use crate::definition::{ReferenceColumn, ReferenceType};
use crate::error::{ReferenceError, Result};
use crate::input;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64NanosecondType,
    TimestampNanosecondType,
};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::borrow::Cow;

/// Digits of a numeric that is stored as an integer.
pub(crate) const INTEGER_DIGITS_MAX: u8 = 18;

/// The text that stands for NaN.
pub(crate) const NAN: &str = "NaN";

/// A value as SQLite stores it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
    /// A short blob in place.
    Bytes([u8; 32], usize),
}

impl Cell<'_> {
    /// A value that SQLite gave back. Texts that are not UTF-8 are taken as what can be read of them; only
    /// messages show them.
    pub(crate) fn stored(value: ValueRef<'_>) -> Cell<'static> {
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => {
                Cell::Text(Cow::Owned(String::from_utf8_lossy(text).into_owned()))
            }
            ValueRef::Blob(bytes) => Cell::Blob(Cow::Owned(bytes.to_vec())),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The bytes of a blob.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Blob(bytes) => Some(bytes),
            Self::Bytes(bytes, len) => bytes.get(..*len),
            _ => None,
        }
    }

    /// The value by which it is compared; see [`crate::schema::comparable`].
    pub(crate) fn comparable(self, kind: ReferenceType) -> Self {
        if kind != ReferenceType::Interval {
            return self;
        }
        let Some(length) = self.bytes().and_then(|bytes| bytes.get(..16)) else {
            return self;
        };
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(length);
        Self::Bytes(bytes, 16)
    }

    pub(crate) fn into_owned(self) -> Cell<'static> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(number) => Cell::Integer(number),
            Self::Real(number) => Cell::Real(number),
            Self::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Self::Blob(bytes) => Cell::Blob(Cow::Owned(bytes.into_owned())),
            Self::Bytes(bytes, len) => Cell::Bytes(bytes, len),
        }
    }

    fn of_i128(value: i128) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&sortable(value));
        Self::Bytes(bytes, 16)
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Bytes(bytes, len) => ValueRef::Blob(bytes.get(..*len).unwrap_or_default()),
        }))
    }
}

/// Bytes that sort as numbers do.
fn sortable(value: i128) -> [u8; 16] {
    ((value as u128) ^ (1 << 127)).to_be_bytes()
}

/// The number of sortable bytes.
pub(crate) fn from_sortable(bytes: &[u8]) -> Option<i128> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some((u128::from_be_bytes(bytes) ^ (1 << 127)) as i128)
}

/// The bytes of an interval.
fn interval_cell<'a>(value: IntervalMonthDayNano) -> Cell<'a> {
    const DAY_NS: i128 = 86_400_000_000_000;
    let days = i128::from(value.months) * 30 + i128::from(value.days);
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&sortable(days * DAY_NS + i128::from(value.nanoseconds)));
    bytes[16..20].copy_from_slice(&value.months.to_be_bytes());
    bytes[20..24].copy_from_slice(&value.days.to_be_bytes());
    bytes[24..].copy_from_slice(&value.nanoseconds.to_be_bytes());
    Cell::Bytes(bytes, 32)
}

/// The interval of bytes.
pub(crate) fn interval_of(bytes: &[u8]) -> Option<IntervalMonthDayNano> {
    let bytes: &[u8; 32] = bytes.try_into().ok()?;
    let months = i32::from_be_bytes(bytes[16..20].try_into().ok()?);
    let days = i32::from_be_bytes(bytes[20..24].try_into().ok()?);
    let nanoseconds = i64::from_be_bytes(bytes[24..].try_into().ok()?);
    Some(IntervalMonthDayNano::new(months, days, nanoseconds))
}

fn real_cell<'a>(value: f64) -> Cell<'a> {
    if value.is_nan() {
        Cell::Text(Cow::Borrowed(NAN))
    } else {
        Cell::Real(value)
    }
}

/// What differs from a column's type in the width of offsets or the name of a time zone alone becomes it.
pub(crate) fn normalized(column: &ReferenceColumn, array: &ArrayRef) -> Result<ArrayRef> {
    let expected = column.kind.data_type();
    let actual = array.data_type();
    if *actual == expected {
        return Ok(array.clone());
    }
    let is_same = match (&expected, actual) {
        (_, DataType::Null)
        | (DataType::Utf8, DataType::LargeUtf8 | DataType::Utf8View)
        | (DataType::Binary, DataType::LargeBinary | DataType::BinaryView) => true,
        (DataType::Timestamp(a, zone), DataType::Timestamp(b, other)) => {
            a == b && zone.is_some() == other.is_some()
        }
        (_, DataType::Dictionary(_, value)) => **value == expected,
        _ => false,
    };
    if !is_same {
        let message = format!(
            "column \"{}\" is of type {} but expression is of type {actual}",
            column.name, column.kind
        );
        return Err(ReferenceError::new("42804", message));
    }
    Ok(arrow::compute::cast(array, &expected)?)
}

/// The values of a normalized array at a row, checked and stored as the column's type says.
pub(crate) fn cell(kind: ReferenceType, array: &ArrayRef, row: usize) -> Result<Cell<'_>> {
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    let integer = |value: i64| Ok(Cell::Integer(value));
    match kind {
        ReferenceType::Bool => integer(i64::from(array.as_boolean().value(row))),
        ReferenceType::Int2 => integer(array.as_primitive::<Int16Type>().value(row).into()),
        ReferenceType::Int4 => integer(array.as_primitive::<Int32Type>().value(row).into()),
        ReferenceType::Int8 => integer(array.as_primitive::<Int64Type>().value(row)),
        ReferenceType::Date => integer(array.as_primitive::<Date32Type>().value(row).into()),
        ReferenceType::Time => integer(array.as_primitive::<Time64NanosecondType>().value(row)),
        ReferenceType::Timestamp | ReferenceType::TimestampTz => {
            integer(array.as_primitive::<TimestampNanosecondType>().value(row))
        }
        ReferenceType::Float4 => Ok(real_cell(
            array.as_primitive::<Float32Type>().value(row).into(),
        )),
        ReferenceType::Float8 => Ok(real_cell(array.as_primitive::<Float64Type>().value(row))),
        ReferenceType::Numeric { precision, scale } => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            input::check_digits(value, precision, scale)?;
            if precision <= INTEGER_DIGITS_MAX {
                return integer(value as i64);
            }
            Ok(Cell::of_i128(value))
        }
        ReferenceType::Interval => Ok(interval_cell(
            array.as_primitive::<IntervalMonthDayNanoType>().value(row),
        )),
        ReferenceType::Bytea => Ok(Cell::Blob(Cow::Borrowed(
            array.as_binary::<i32>().value(row),
        ))),
        ReferenceType::Text
        | ReferenceType::Varchar(_)
        | ReferenceType::Char(_)
        | ReferenceType::Uuid
        | ReferenceType::Json
        | ReferenceType::Jsonb => Ok(Cell::Text(input::text(
            kind,
            array.as_string::<i32>().value(row),
        )?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_sort_as_numbers_do(a: i128, b: i128) {
            prop_assert_eq!(sortable(a).cmp(&sortable(b)), a.cmp(&b));
            prop_assert_eq!(from_sortable(&sortable(a)), Some(a));
        }

        #[test]
        fn intervals_come_back(months: i32, days: i32, nanoseconds: i64) {
            let value = IntervalMonthDayNano::new(months, days, nanoseconds);
            let cell = interval_cell(value);
            prop_assert_eq!(cell.bytes().and_then(interval_of), Some(value));
        }
    }

    #[test]
    fn a_month_is_thirty_days_where_intervals_are_compared() {
        let month = interval_cell(IntervalMonthDayNano::new(1, 0, 0));
        let days = interval_cell(IntervalMonthDayNano::new(0, 30, 0));
        assert_ne!(month, days);
        let kind = ReferenceType::Interval;
        assert_eq!(month.comparable(kind), days.comparable(kind));
    }
}
