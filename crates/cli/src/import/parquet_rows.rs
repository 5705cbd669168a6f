//! Reads Parquet, one batch of rows at a time.

use super::csv_rows::parsed;
use super::source::ImportSource;
use super::{BATCH_ROWS, ParsedBatch, ReadPlanOptions};
use anyhow::{Context, Result, bail};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use marigram::Roles;
use marigram_tabular::time::Precision;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::sync::Arc;

/// Digits of whole numbers that are BIGINT in any case.
const BIGINT_DIGITS: u8 = 18;

/// Reads a file and passes its rows to `send`, until `send` returns false. Lines are row numbers,
/// from 1.
pub(crate) fn read(
    source: ImportSource,
    reading: &ReadPlanOptions,
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let file = source.into_file()?;
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file).context("it is not a Parquet file")?;
    let roles = roles(reading, builder.schema())?;
    let fields = builder.schema().fields().iter().enumerate();
    let kept: Vec<usize> = fields
        .filter(|(_, field)| !field.data_type().is_nested())
        .map(|(at, _)| at)
        .collect();
    let kept_schema = Arc::new(builder.schema().project(&kept)?);
    let mask = ProjectionMask::roots(builder.parquet_schema(), kept);
    let builder = builder.with_projection(mask);
    let batches = builder.with_batch_size(BATCH_ROWS).build()?;
    let mut before = 0;
    for rows in batches {
        let rows = with_exact_numbers(&rows.context("cannot be read further")?)?;
        let rows = with_moments(rows, &roles.time, reading.options.precision)?;
        let rows = with_constant_tags(reading, rows)?;
        let count = rows.num_rows() as u64;
        let lines = (before + 1..=before + count).collect();
        before += count;
        if !send(parsed(reading, &roles, &rows, lines, Vec::new())) {
            return Ok(());
        }
    }
    if before == 0 {
        // Its columns make a table nevertheless.
        let rows = with_exact_numbers(&RecordBatch::new_empty(kept_schema))?;
        let rows = with_constant_tags(reading, rows)?;
        let schema = reading.schema.as_deref();
        let batch = marigram::convert(&reading.table, &roles, schema, &rows)?.batch;
        send(Ok(ParsedBatch {
            batches: vec![batch],
            lines: vec![Vec::new()],
            bad: Vec::new(),
            empty: 0,
        }));
    }
    Ok(())
}

/// The columns whose values no column of a table holds.
pub(crate) fn left_out(source: ImportSource) -> Vec<String> {
    let builder = |file| ParquetRecordBatchReaderBuilder::try_new(file).ok();
    let Some(builder) = source.into_file().ok().and_then(builder) else {
        return Vec::new();
    };
    let fields = builder.schema().fields().iter();
    fields
        .filter(|field| field.data_type().is_nested())
        .map(|field| field.name().clone())
        .collect()
}

/// Whether the times of a file are numbers, which say nothing of their unit.
pub(crate) fn has_number_times(source: ImportSource, reading: &ReadPlanOptions) -> bool {
    let builder = |file| ParquetRecordBatchReaderBuilder::try_new(file).ok();
    let Some(builder) = source.into_file().ok().and_then(builder) else {
        return false;
    };
    let schema = builder.schema();
    let is_export = Roles::from_metadata(schema).is_some();
    let time: Option<String> = roles(reading, schema).ok().map(|roles| roles.time);
    let column = time.and_then(|time| schema.field_with_name(&time).ok().cloned());
    !is_export && column.is_some_and(|column| column.data_type().is_integer())
}

/// The rows with times that are whole numbers in `unit` as ns; times beyond 1677 to 2262 are none.
fn with_moments(rows: RecordBatch, time: &str, unit: Option<Precision>) -> Result<RecordBatch> {
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
fn with_exact_numbers(rows: &RecordBatch) -> Result<RecordBatch> {
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

/// The name of the file's time column.
pub(crate) fn time_name(source: ImportSource, reading: &ReadPlanOptions) -> Option<String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(source.into_file().ok()?).ok()?;
    let roles = roles(reading, builder.schema()).ok()?;
    Some(roles.time)
}

/// The columns with zoned times in a file that an export wrote; those of other files are stored in
/// UTC without a zone.
pub(crate) fn zoned(source: ImportSource) -> Vec<String> {
    let is_zoned = |field: &Field| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
    exported_names(source, is_zoned)
}

/// The columns of a file that an export wrote, in their order; those of other files have the usual one.
pub(crate) fn order(source: ImportSource) -> Vec<String> {
    exported_names(source, |_| true)
}

/// The names of some columns of a file that an export wrote; none of any other file.
fn exported_names(source: ImportSource, is_wanted: impl Fn(&Field) -> bool) -> Vec<String> {
    let builder = |file| ParquetRecordBatchReaderBuilder::try_new(file).ok();
    let Some(builder) = source.into_file().ok().and_then(builder) else {
        return Vec::new();
    };
    let schema = builder.schema();
    if Roles::from_metadata(schema).is_none() {
        return Vec::new();
    }
    let fields = schema.fields().iter();
    let wanted = fields.filter(|field| is_wanted(field));
    wanted.map(|field| field.name().clone()).collect()
}

/// Which columns are time and tags: from the options, then the table, then the file's metadata; the
/// time falls back to the first timestamp column.
fn roles(reading: &ReadPlanOptions, schema: &Schema) -> Result<Roles> {
    let options = &reading.options;
    let has = |name: &str| schema.column_with_name(name).is_some();
    let written = Roles::from_metadata(schema);
    let known = reading.known.as_ref().map(|known| {
        Roles::new(
            known.time.clone(),
            known.tags.iter().map(|(name, _)| name.clone()),
        )
    });
    let first_timestamp = || {
        let is_time = |field: &&Arc<Field>| matches!(field.data_type(), DataType::Timestamp(_, _));
        schema
            .fields()
            .iter()
            .find(is_time)
            .map(|field| field.name().clone())
    };
    let time = options
        .time_column
        .clone()
        .or_else(|| written.as_ref().map(|roles| roles.time.clone()))
        .or_else(|| {
            known
                .as_ref()
                .map(|roles| roles.time.clone())
                .filter(|time| has(time))
        })
        .or_else(first_timestamp);
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let Some(time) = time.filter(|time| has(time)) else {
        bail!(
            "which column is the time? Give --time-column; the file has: {}",
            names.join(", ")
        );
    };
    let mut tags = options.tags.clone();
    for roles in [known, written].into_iter().flatten() {
        tags.extend(roles.tags.into_iter().filter(|tag| has(tag)));
    }
    if let Some(missing) = tags.iter().find(|tag| !has(tag)) {
        bail!(
            "there is no column '{missing}' for a tag; the file has: {}",
            names.join(", ")
        );
    }
    tags.extend(reading.constant_tags.iter().map(|(name, _)| name.clone()));
    tags.sort();
    tags.dedup();
    Ok(Roles { time, tags })
}

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
    fn decimals_are_exact_or_refused() {
        let rows = with_exact_numbers(&decimals(vec![Some(1050), Some(-1), None], 10, 2)).unwrap();
        let found = rows
            .column(0)
            .as_primitive::<arrow::datatypes::Float64Type>();
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
