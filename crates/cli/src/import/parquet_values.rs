//! Converts the values of Parquet and TsFile columns to those of a table, and adds columns.

use super::{Precision, ReadPlanOptions};
use anyhow::{Context, Result, bail};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use marigram_model::TagType;
use marigram_tabular::layout::ColumnLayout;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Digits of whole numbers that are BIGINT in any case.
const BIGINT_DIGITS: u8 = 18;

/// The rows with other names of their columns.
pub(crate) fn renamed(rows: &RecordBatch, names: &[String]) -> Result<RecordBatch> {
    let fields = rows.schema_ref().fields().iter().zip(names);
    let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new(schema, rows.columns().to_vec())?)
}

/// The rows with times that are whole numbers in `unit` as ns; times beyond 1677 to 2262 are none.
pub(crate) fn with_moments(
    rows: RecordBatch,
    time: &str,
    unit: Option<Precision>,
) -> Result<RecordBatch> {
    let (Some(unit), Some((at, field))) = (unit, rows.schema_ref().column_with_name(time)) else {
        return Ok(rows);
    };
    if !field.data_type().is_integer() {
        return Ok(rows);
    }
    let numbers = cast(rows.column(at), &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>().iter();
    let moments = numbers.map(|number| number?.checked_mul(unit.ns()));
    let moments: Int64Array = moments.collect();
    let mut fields: Vec<Field> = rows
        .schema_ref()
        .fields()
        .iter()
        .map(|f| f.as_ref().clone())
        .collect();
    fields[at] = fields[at]
        .clone()
        .with_data_type(DataType::Int64)
        .with_nullable(true);
    let mut columns = rows.columns().to_vec();
    columns[at] = Arc::new(moments);
    let schema = Schema::new_with_metadata(fields, rows.schema_ref().metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// The rows with their decimals as numbers of a table, none of which is rounded: whole ones as BIGINT,
/// others as DOUBLE.
pub(crate) fn with_exact_numbers(rows: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let kind = match column.data_type() {
            DataType::Decimal32(digits, 0)
            | DataType::Decimal64(digits, 0)
            | DataType::Decimal128(digits, 0)
                if *digits <= BIGINT_DIGITS =>
            {
                DataType::Int64
            }
            decimal if decimal.is_decimal() => {
                columns.push(Arc::new(exact_doubles(field.name(), column)?) as ArrayRef);
                fields.push(field.as_ref().clone().with_data_type(DataType::Float64));
                continue;
            }
            other => other.clone(),
        };
        columns.push(cast(column, &kind)?);
        fields.push(field.as_ref().clone().with_data_type(kind));
    }
    let schema = Schema::new_with_metadata(fields, rows.schema_ref().metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// Decimals as doubles; an error where a double does not show one as it is.
fn exact_doubles(name: &str, column: &ArrayRef) -> Result<Float64Array> {
    let texts = cast(column, &DataType::Utf8)?;
    let doubles = texts.as_string::<i32>().iter().map(|text| {
        let Some(text) = text else {
            return Ok(None);
        };
        let nearest: f64 = text.parse().context("a decimal is no number")?;
        let shown = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text
        };
        if format!("{nearest}") != shown && nearest != 0.0 {
            bail!(
                "column '{name}': {text} is no DOUBLE without being rounded; make the column a text or \
                 a double in the file"
            );
        }
        Ok(Some(nearest))
    });
    doubles.collect()
}

/// The tags of the table that are whole numbers.
pub(crate) fn whole_tags(reading: &ReadPlanOptions) -> Result<Vec<String>> {
    let known = reading.known.as_ref().map(ColumnLayout::tag_types);
    let known = known.transpose()?.unwrap_or_default().into_iter();
    let whole = known.filter(|(_, kind)| *kind == TagType::I64);
    Ok(whole.map(|(name, _)| name).collect())
}

/// Rows, their lines, and the lines and reasons of those that were taken out.
pub(crate) type CheckedRows = (RecordBatch, Vec<u64>, Vec<(u64, String)>);

/// The rows with floats as whole numbers in the columns `tags`: 5.0 is the series 5. Rows with another float are
/// taken out.
pub(crate) fn with_whole_tags(
    rows: RecordBatch,
    tags: &[String],
    lines: Vec<u64>,
) -> Result<CheckedRows> {
    let is_float = |field: &Field| field.data_type().is_floating() && tags.contains(field.name());
    if !rows
        .schema_ref()
        .fields()
        .iter()
        .any(|field| is_float(field))
    {
        return Ok((rows, lines, Vec::new()));
    }
    let mut bad: BTreeMap<usize, String> = BTreeMap::new();
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        if !is_float(field) {
            fields.push(field.as_ref().clone());
            columns.push(Arc::clone(column));
            continue;
        }
        let floats = cast(column, &DataType::Float64)?;
        let floats = floats.as_primitive::<Float64Type>().iter().enumerate();
        let whole = floats.map(|(row, value)| {
            let value = value?;
            let is_whole = value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value);
            if !is_whole {
                let reason = || format!("column '{}': {value} is not BIGINT", field.name());
                bad.entry(row).or_insert_with(reason);
            }
            is_whole.then_some(value as i64)
        });
        columns.push(Arc::new(whole.collect::<Int64Array>()) as ArrayRef);
        // A column without nulls has them until the rows with another float are taken out.
        let whole = field.as_ref().clone().with_data_type(DataType::Int64);
        fields.push(whole.with_nullable(true));
    }
    let schema = Schema::new_with_metadata(fields, rows.schema_ref().metadata().clone());
    let rows = RecordBatch::try_new(Arc::new(schema), columns)?;
    if bad.is_empty() {
        return Ok((rows, lines, Vec::new()));
    }
    let mask: BooleanArray = (0..rows.num_rows())
        .map(|row| Some(!bad.contains_key(&row)))
        .collect();
    let kept = lines.iter().enumerate();
    let kept = kept.filter(|(row, _)| !bad.contains_key(row));
    let kept = kept.map(|(_, line)| *line).collect();
    let line_of = |row: usize| lines.get(row).copied().unwrap_or(0);
    let bad = bad
        .iter()
        .map(|(row, reason)| (line_of(*row), reason.clone()));
    Ok((filter_record_batch(&rows, &mask)?, kept, bad.collect()))
}

/// 2^63: BIGINT ends below it.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Adds a column to the rows for each constant tag.
pub(crate) fn with_constant_tags(
    reading: &ReadPlanOptions,
    rows: RecordBatch,
) -> Result<RecordBatch> {
    if reading.constant_tags.is_empty() {
        return Ok(rows);
    }
    let mut fields: Vec<Field> = rows
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    let mut columns = rows.columns().to_vec();
    for (name, value) in &reading.constant_tags {
        let values = StringArray::from_iter_values(std::iter::repeat_n(value, rows.num_rows()));
        fields.push(Field::new(name, values.data_type().clone(), true));
        columns.push(Arc::new(values) as ArrayRef);
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Decimal128Array;

    fn decimals(values: Vec<Option<i128>>, digits: u8, scale: i8) -> RecordBatch {
        let array = Decimal128Array::from(values);
        let array = array.with_precision_and_scale(digits, scale).unwrap();
        let field = Field::new("x", array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        RecordBatch::try_new(schema, vec![Arc::new(array)]).unwrap()
    }

    #[test]
    fn whole_floats_are_tags_and_others_are_taken_out() {
        let values = vec![
            Some(5.0),
            Some(5.5),
            None,
            Some(f64::NAN),
            Some(1e30),
            Some(-0.0),
        ];
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        let field = Field::new("unit", DataType::Float64, true);
        let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap();
        let lines: Vec<u64> = (1..=6).collect();
        let tags = ["unit".to_owned()];
        let (whole, kept, bad) = with_whole_tags(rows.clone(), &tags, lines.clone()).unwrap();
        let numbers: Vec<_> = whole.column(0).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(numbers, [Some(5), None, Some(0)]);
        assert_eq!(kept, [1, 3, 6]);
        let bad_lines: Vec<u64> = bad.iter().map(|(line, _)| *line).collect();
        assert_eq!(bad_lines, [2, 4, 5]);
        assert_eq!(bad[0].1, "column 'unit': 5.5 is not BIGINT");
        let (same, _, bad) = with_whole_tags(rows.clone(), &[], lines).unwrap();
        assert!(same.num_rows() == 6 && bad.is_empty());
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        let rows = with_exact_numbers(&decimals(vec![Some(1050), Some(-1), None], 10, 2)).unwrap();
        let found = rows.column(0).as_primitive::<Float64Type>();
        assert_eq!((found.value(0), found.value(1)), (10.5, -0.01));
        assert!(found.is_null(2));
        let whole = with_exact_numbers(&decimals(vec![Some(123_456_789_012_345_678)], 18, 0));
        let whole = whole.unwrap();
        let found = whole.column(0).as_primitive::<Int64Type>();
        assert_eq!(found.value(0), 123_456_789_012_345_678);
        let long = with_exact_numbers(&decimals(vec![Some(12_345_678_901_234_567_891)], 38, 2));
        let error = long.unwrap_err().to_string();
        assert!(
            error.contains("column 'x': 123456789012345678.91"),
            "{error}"
        );
    }
}
