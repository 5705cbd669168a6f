//! A common interface to three kinds of numbers: 64 bits each, with exact differences of whole
//! numbers.

use crate::arithmetic::out_of_range;
use arrow::array::{
    Array, ArrayRef, Float64Array, Int64Array, TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, downcast_value, internal_err};
use std::cmp::Ordering;

/// How to interpret the bits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    /// BIGINT, or the nanoseconds of a time.
    Signed,
    /// BIGINT UNSIGNED.
    Unsigned,
    /// DOUBLE.
    Float,
}

impl NumberKind {
    /// The kind of a column.
    pub(crate) fn from_type(data_type: &DataType) -> Result<Self> {
        match data_type {
            DataType::Int64 | DataType::Timestamp(..) => Ok(Self::Signed),
            DataType::UInt64 => Ok(Self::Unsigned),
            DataType::Float64 => Ok(Self::Float),
            other => internal_err!("numbers of the type {other}"),
        }
    }

    /// A number as a whole number; `None` for a float.
    pub(crate) fn whole(self, bits: u64) -> Option<i128> {
        match self {
            Self::Signed => Some(i128::from(bits as i64)),
            Self::Unsigned => Some(i128::from(bits)),
            Self::Float => None,
        }
    }

    /// A number as the nearest float.
    pub(crate) fn float(self, bits: u64) -> f64 {
        match self {
            Self::Signed => bits as i64 as f64,
            Self::Unsigned => bits as f64,
            Self::Float => f64::from_bits(bits),
        }
    }

    /// The order of two numbers; NaN is the greatest, as in PostgreSQL.
    pub(crate) fn compare(self, left: u64, right: u64) -> Ordering {
        match self {
            Self::Signed => (left as i64).cmp(&(right as i64)),
            Self::Unsigned => left.cmp(&right),
            Self::Float => compare_floats(f64::from_bits(left), f64::from_bits(right)),
        }
    }

    /// `left - right`, exact for whole numbers.
    pub(crate) fn minus(self, left: u64, right: u64) -> NumberDifference {
        match (self.whole(left), self.whole(right)) {
            (Some(left), Some(right)) => NumberDifference::Whole(left - right),
            _ => NumberDifference::Float(self.float(left) - self.float(right)),
        }
    }
}

/// The order of two floats; NaN is the greatest.
pub(crate) fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The difference of two numbers, or a sum of such differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NumberDifference {
    /// A difference of whole numbers.
    Whole(i128),
    /// A difference of floats.
    Float(f64),
}

impl NumberDifference {
    /// The difference as a float.
    pub(crate) fn float(self) -> f64 {
        match self {
            Self::Whole(difference) => difference as f64,
            Self::Float(difference) => difference,
        }
    }

    /// The sum of two differences of the same kind.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            // 2^64 numbers of 65 bits need 129 bits, but no group has that many rows.
            (Self::Whole(left), Self::Whole(right)) => Self::Whole(left.saturating_add(right)),
            (left, right) => Self::Float(left.float() + right.float()),
        }
    }

    /// The difference as a value of the result's type.
    ///
    /// # Errors
    /// If a whole number does not fit: it is neither rounded nor wrapped.
    pub(crate) fn scalar(self, function: &str, answer: &DataType) -> Result<ScalarValue> {
        match (self, answer) {
            (Self::Whole(whole), DataType::Int64) => match i64::try_from(whole) {
                Ok(whole) => Ok(ScalarValue::Int64(Some(whole))),
                Err(_) => Err(out_of_range(format!(
                    "{function}: {whole} does not fit into BIGINT"
                ))),
            },
            (Self::Whole(whole), DataType::UInt64) => match u64::try_from(whole) {
                Ok(whole) => Ok(ScalarValue::UInt64(Some(whole))),
                Err(_) => Err(out_of_range(format!(
                    "{function}: {whole} does not fit into BIGINT UNSIGNED"
                ))),
            },
            (difference, _) => Ok(ScalarValue::Float64(Some(difference.float()))),
        }
    }
}

/// A column of numbers.
#[derive(Clone, Copy)]
pub(crate) enum NumberColumn<'a> {
    /// BIGINT.
    Signed(&'a Int64Array),
    /// Times.
    Times(&'a TimestampNanosecondArray),
    /// BIGINT UNSIGNED.
    Unsigned(&'a UInt64Array),
    /// DOUBLE.
    Floats(&'a Float64Array),
}

impl<'a> NumberColumn<'a> {
    /// The numbers of a column.
    pub(crate) fn from_array(column: &'a ArrayRef) -> Result<Self> {
        Ok(match column.data_type() {
            DataType::Int64 => Self::Signed(downcast_value!(column, Int64Array)),
            DataType::UInt64 => Self::Unsigned(downcast_value!(column, UInt64Array)),
            DataType::Float64 => Self::Floats(downcast_value!(column, Float64Array)),
            _ => Self::Times(downcast_value!(column, TimestampNanosecondArray)),
        })
    }

    /// The bits of a number; `None` if it is null.
    pub(crate) fn get(self, row: usize) -> Option<u64> {
        match self {
            Self::Signed(array) => array.is_valid(row).then(|| array.value(row) as u64),
            Self::Times(array) => array.is_valid(row).then(|| array.value(row) as u64),
            Self::Unsigned(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Floats(array) => array.is_valid(row).then(|| array.value(row).to_bits()),
        }
    }
}
