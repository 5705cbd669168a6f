//! Columns of a batch as values that an answer of InfluxDB can hold.

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampNanosecondType,
    UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::sync::Arc;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum InfluxValue<'a> {
    /// None.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// An integer that is not negative.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// A text.
    Text(&'a str),
    /// A time, ns since 1970 in UTC.
    Time(i64),
}

/// A column, cast to one of the few types that there are values of.
#[derive(Debug)]
pub(super) struct InfluxColumn {
    array: ArrayRef,
    /// The zone in which its times are shown.
    pub zone: Option<Tz>,
}

impl InfluxColumn {
    /// A column with the values of an array.
    ///
    /// # Errors
    /// If the values cannot be cast.
    pub(super) fn new(array: &ArrayRef) -> Result<Self, ArrowError> {
        let to = |kind| cast(array, &kind);
        let mut zone = None;
        let array = match array.data_type() {
            DataType::Null
            | DataType::Boolean
            | DataType::Int64
            | DataType::UInt64
            | DataType::Float64
            | DataType::Utf8
            | DataType::Timestamp(TimeUnit::Nanosecond, None) => array.clone(),
            DataType::Int8 | DataType::Int16 | DataType::Int32 => to(DataType::Int64)?,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => to(DataType::UInt64)?,
            // By its digits: 0.1 stays 0.1.
            DataType::Float32 => {
                let floats = array.as_primitive::<Float32Type>();
                let widen = |value: f32| value.to_string().parse().unwrap_or(f64::from(value));
                let wide: Float64Array = floats.iter().map(|value| value.map(widen)).collect();
                Arc::new(wide)
            }
            DataType::Float16 | DataType::Decimal128(..) => to(DataType::Float64)?,
            DataType::Timestamp(_, name) => {
                zone = name.as_deref().map(str::parse).transpose()?;
                to(DataType::Timestamp(TimeUnit::Nanosecond, None))?
            }
            DataType::Dictionary(_, values) if is_text(values) => {
                let kind = Box::new(DataType::Utf8);
                to(DataType::Dictionary(Box::new(DataType::Int32), kind))?
            }
            DataType::LargeUtf8 | DataType::Utf8View => to(DataType::Utf8)?,
            _ => shown(array)?,
        };
        Ok(Self { array, zone })
    }

    /// The value of a row.
    pub(super) fn value(&self, row: usize) -> InfluxValue<'_> {
        let array = &self.array;
        if array.is_null(row) {
            return InfluxValue::Null;
        }
        match array.data_type() {
            DataType::Boolean => InfluxValue::Bool(array.as_boolean().value(row)),
            DataType::Int64 => InfluxValue::Integer(array.as_primitive::<Int64Type>().value(row)),
            DataType::UInt64 => {
                InfluxValue::Unsigned(array.as_primitive::<UInt64Type>().value(row))
            }
            DataType::Float64 => InfluxValue::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Timestamp(..) => {
                InfluxValue::Time(array.as_primitive::<TimestampNanosecondType>().value(row))
            }
            DataType::Utf8 => InfluxValue::Text(array.as_string::<i32>().value(row)),
            DataType::Dictionary(..) => {
                let texts = array.as_dictionary::<Int32Type>();
                let (key, values) = (texts.keys().value(row) as usize, texts.values());
                if values.is_null(key) {
                    return InfluxValue::Null;
                }
                InfluxValue::Text(values.as_string::<i32>().value(key))
            }
            _ => InfluxValue::Null,
        }
    }

    /// The text of a row of a column of texts; of nothing the empty text.
    pub(super) fn text(&self, row: usize) -> &str {
        match self.value(row) {
            InfluxValue::Text(text) => text,
            _ => "",
        }
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// What InfluxDB has no type for, as Arrow prints it.
fn shown(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let format = ArrayFormatter::try_new(array.as_ref(), &FormatOptions::default())?;
    let text = |row| (!array.is_null(row)).then(|| format.value(row).to_string());
    let texts: StringArray = (0..array.len()).map(text).collect();
    Ok(Arc::new(texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Float32Array, Int32Array, TimestampSecondArray};
    use arrow::datatypes::UInt8Type;

    #[test]
    fn narrow_types_become_the_few_that_there_are() {
        let value = |array: ArrayRef| {
            let column = InfluxColumn::new(&array).unwrap();
            let value = column.value(0);
            let null = column.value(1);
            assert_eq!(null, InfluxValue::Null);
            match value {
                InfluxValue::Text(text) => format!("text {text}"),
                value => format!("{value:?}"),
            }
        };
        let dictionary: DictionaryArray<UInt8Type> = vec![Some("a"), None].into_iter().collect();
        assert_eq!(value(Arc::new(dictionary)), "text a");
        let floats = Float32Array::from(vec![Some(0.1), None]);
        assert_eq!(value(Arc::new(floats)), "Float(0.1)");
        let integers = Int32Array::from(vec![Some(-3), None]);
        assert_eq!(value(Arc::new(integers)), "Integer(-3)");
        let seconds = TimestampSecondArray::from(vec![Some(2), None]).with_timezone("+01:00");
        assert_eq!(value(Arc::new(seconds)), "Time(2000000000)");
    }
}
