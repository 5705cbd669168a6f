//! Answers in Arrow.

use crate::cells::{as_tag, leading_tags};
use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use marigram_lab::data::SECOND_NS;
use marigram_lab::question::{Answer, Cell, Question};

/// Days of a month, as PostgreSQL counts them when an interval becomes a number.
pub const MONTH_DAYS: f64 = 30.0;

/// The rows of `batches` as the answer to `question`. Fails on other types than answers have.
pub fn answer(question: &Question, batches: &[RecordBatch]) -> Result<Answer> {
    let tags = leading_tags(question);
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for batch in batches {
        let first = rows.len();
        rows.resize_with(first + batch.num_rows(), || {
            Vec::with_capacity(batch.num_columns())
        });
        for (at, column) in batch.columns().iter().enumerate() {
            let cells = column_cells(column.as_ref())
                .with_context(|| format!("column {}", batch.schema_ref().field(at).name()))?;
            for (row, cell) in rows[first..].iter_mut().zip(cells) {
                row.push(if at < tags { as_tag(cell) } else { cell });
            }
        }
    }
    Ok(Answer { rows })
}

fn column_cells(array: &dyn Array) -> Result<Vec<Cell>> {
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        return (0..array.len()).map(|row| cell(array, row)).collect();
    };
    if dictionary.values().is_empty() {
        return Ok(vec![Cell::Null; array.len()]);
    }
    let values = column_cells(dictionary.values().as_ref())?;
    // Keys of null rows are undefined.
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    let value = |(row, key): (usize, usize)| {
        if array.is_null(row) {
            Cell::Null
        } else {
            values[key].clone()
        }
    };
    Ok(keys.map(value).collect())
}

fn cell(array: &dyn Array, row: usize) -> Result<Cell> {
    macro_rules! number {
        ($kind:ty) => {
            Cell::Number(array.as_primitive::<$kind>().value(row) as f64)
        };
    }
    macro_rules! time {
        ($kind:ty, $ns:expr) => {
            Cell::Time(array.as_primitive::<$kind>().value(row) * $ns)
        };
    }
    if array.is_null(row) {
        return Ok(Cell::Null);
    }
    Ok(match array.data_type() {
        DataType::Null => Cell::Null,
        DataType::Boolean => Cell::Number(f64::from(u8::from(array.as_boolean().value(row)))),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Decimal128(_, scale) => {
            let decimal = array.as_primitive::<arrow_array::types::Decimal128Type>();
            Cell::Number(decimal.value(row) as f64 / 10f64.powi(i32::from(*scale)))
        }
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row).to_owned()),
        DataType::Timestamp(TimeUnit::Second, _) => time!(TimestampSecondType, SECOND_NS),
        DataType::Timestamp(TimeUnit::Millisecond, _) => time!(TimestampMillisecondType, 1_000_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => time!(TimestampMicrosecondType, 1_000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => time!(TimestampNanosecondType, 1),
        DataType::Duration(TimeUnit::Nanosecond) => {
            let ns = array.as_primitive::<DurationNanosecondType>().value(row);
            Cell::Number(ns as f64 / SECOND_NS as f64)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let days = f64::from(value.months) * MONTH_DAYS + f64::from(value.days);
            Cell::Number(days * 86_400.0 + value.nanoseconds as f64 / SECOND_NS as f64)
        }
        other => bail!("the type {other} is in no answer"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type as Key;
    use arrow_array::{
        ArrayRef, DictionaryArray, Float64Array, Int64Array, TimestampNanosecondArray,
    };
    use marigram_lab::question::{Ask, Select, Selection};
    use std::sync::Arc;

    #[test]
    fn tags_are_text_and_nulls_are_null() {
        let question = Question {
            name: "q".to_owned(),
            ask: Ask::Select(Select {
                by: vec![0, 1],
                bucket_ns: Some(1),
                ..Select::all(0, Selection::Aggregates(Vec::new()))
            }),
        };
        let names: DictionaryArray<Key> = vec![Some("b"), None].into_iter().collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("id", Arc::new(Int64Array::from(vec![7, 8]))),
            ("name", Arc::new(names)),
            (
                "bucket",
                Arc::new(TimestampNanosecondArray::from(vec![5, 6])),
            ),
            ("avg", Arc::new(Float64Array::from(vec![Some(1.5), None]))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        )
        .expect("columns of one length");
        let text = |text: &str| Cell::Text(text.to_owned());
        let rows = vec![
            vec![text("7"), text("b"), Cell::Time(5), Cell::Number(1.5)],
            vec![text("8"), Cell::Null, Cell::Time(6), Cell::Null],
        ];
        let decoded = answer(&question, &[batch]).expect("types that answers have");
        assert_eq!(decoded, Answer { rows });
    }
}
