//! Values as PostgreSQL writes them in texts: times, floats, intervals, BYTES, and the rows and arrays of
//! them.

use crate::arguments::TIME;
use crate::date_part::of_difference;
use crate::interval_text::format_postgres_interval;
use crate::refusal::refused;
use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, StringArray, StringBuilder, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit, TimestampNanosecondType,
};
use datafusion::common::Result;
use marigram_pgtext::{ZoneClock, array_text, double_text, real_text, row_text};
use std::fmt::Write as _;
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Bytes as PostgreSQL prints them.
pub(crate) fn hexadecimal_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * bytes.len());
    out.push_str("\\x");
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Times as PostgreSQL prints them.
pub(crate) fn time_texts(values: &ArrayRef) -> Result<StringArray> {
    let out_of_range = || refused("22008", "timestamp out of range");
    let times = cast(values, &TIME)?;
    let utc = marigram_pgtext::zone_of("UTC").map_err(|_| out_of_range())?;
    let mut clock = ZoneClock::new(utc);
    let mut texts = StringBuilder::with_capacity(times.len(), 20 * times.len());
    for time in times.as_primitive::<TimestampNanosecondType>() {
        let text = match time {
            Some(time) => Some(clock.text(time).ok_or_else(out_of_range)?),
            None => None,
        };
        let text = text.as_deref();
        texts.append_option(text.map(|text| text.strip_suffix("+00").unwrap_or(text)));
    }
    Ok(texts.finish())
}

/// Floats as PostgreSQL prints them.
pub(crate) fn float_texts(values: &ArrayRef) -> Result<StringArray> {
    if let Some(reals) = values.as_primitive_opt::<Float32Type>() {
        return Ok(reals.iter().map(|real| real.map(real_text)).collect());
    }
    let doubles = cast(values, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>().iter();
    Ok(doubles.map(|double| double.map(double_text)).collect())
}

/// Converts a column to intervals; it may hold differences of times, which have days and a time.
pub fn as_intervals(values: &ArrayRef) -> Result<ArrayRef> {
    if !matches!(values.data_type(), DataType::Duration(_)) {
        return Ok(cast(values, &INTERVAL)?);
    }
    let nanos = cast(values, &DataType::Duration(TimeUnit::Nanosecond))?;
    let nanos = cast(&nanos, &DataType::Int64)?;
    let nanos = nanos.as_primitive::<Int64Type>().iter();
    let intervals: IntervalMonthDayNanoArray =
        nanos.map(|nanos| nanos.map(of_difference)).collect();
    Ok(Arc::new(intervals))
}

/// The texts of rows: `(1,"a b",)`.
pub(crate) fn row_texts(rows: &StructArray) -> Result<StringArray> {
    let columns = rows.columns().iter().map(value_texts);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let text = |row: usize| {
        let values = columns.iter().map(|texts| text_at(texts, row));
        rows.is_valid(row).then(|| row_text(values))
    };
    Ok((0..rows.len()).map(text).collect())
}

fn text_at(texts: &StringArray, row: usize) -> Option<&str> {
    texts.is_valid(row).then(|| texts.value(row))
}

/// The texts of the values within rows.
fn value_texts(values: &ArrayRef) -> Result<StringArray> {
    if let Some(rows) = values.as_struct_opt() {
        return row_texts(rows);
    }
    Ok(match values.data_type() {
        DataType::List(_) => {
            let lists = values.as_list::<i32>();
            let elements = value_texts(lists.values())?;
            let offsets = lists.value_offsets();
            let text = |row: usize| {
                let elements = (offsets[row]..offsets[row + 1])
                    .map(|element| text_at(&elements, element as usize));
                lists.is_valid(row).then(|| array_text(elements))
            };
            (0..lists.len()).map(text).collect()
        }
        DataType::Boolean => {
            let words = values.as_boolean().iter();
            let words = words.map(|word| word.map(|is_true| if is_true { "t" } else { "f" }));
            words.collect()
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let intervals = as_intervals(values)?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            let texts = intervals.iter();
            texts
                .map(|interval| interval.map(format_postgres_interval))
                .collect()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = cast(values, &DataType::Binary)?;
            let texts = bytes.as_binary::<i32>().iter();
            texts.map(|bytes| bytes.map(hexadecimal_bytes)).collect()
        }
        DataType::Timestamp(_, None) => time_texts(values)?,
        kind if kind.is_floating() => float_texts(values)?,
        _ => cast(values, &DataType::Utf8)?.as_string::<i32>().clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, Float64Array, Int64Array, ListArray};
    use arrow::datatypes::Field;

    #[test]
    fn values_have_the_texts_of_their_types() {
        let lists = [Some(vec![Some(1), None]), None];
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![1, 2])),
            Arc::new(StringArray::from(vec![Some("a b"), None])),
            Arc::new(BooleanArray::from(vec![true, false])),
            Arc::new(Float64Array::from(vec![1.5, 2.0])),
            Arc::new(lists),
        ];
        let fields = columns.into_iter().enumerate().map(|(at, column)| {
            let field = Field::new(format!("c{at}"), column.data_type().clone(), true);
            (Arc::new(field), column)
        });
        let rows = StructArray::from(fields.collect::<Vec<_>>());
        let texts = row_texts(&rows).unwrap();
        let texts: Vec<_> = texts.iter().flatten().collect();
        assert_eq!(texts, ["(1,\"a b\",t,1.5,\"{1,NULL}\")", "(2,,f,2,)"]);
    }
}
