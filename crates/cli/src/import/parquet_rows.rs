//! Reads Parquet, one batch of rows at a time.

use super::csv_rows::parsed;
use super::source::ImportSource;
use super::{BATCH_ROWS, ParsedBatch, ReadPlanOptions};
use anyhow::{Context, Result, bail};
use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use marigram::Roles;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::sync::Arc;

/// Reads a file and passes its rows to `send`, until `send` returns false. Lines are row numbers,
/// from 1.
pub fn read(
    source: ImportSource,
    reading: &ReadPlanOptions,
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let file = source.into_file()?;
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(file).context("it is not a Parquet file")?;
    let roles = roles(reading, builder.schema())?;
    let batches = builder.with_batch_size(BATCH_ROWS).build()?;
    let mut before = 0;
    for rows in batches {
        let rows = with_constant_tags(reading, rows.context("cannot be read further")?)?;
        let count = rows.num_rows() as u64;
        let lines = (before + 1..=before + count).collect();
        before += count;
        if !send(parsed(reading, &roles, &rows, lines, Vec::new())) {
            return Ok(());
        }
    }
    Ok(())
}

/// The name of the file's time column.
pub fn time_name(source: ImportSource, reading: &ReadPlanOptions) -> Option<String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(source.into_file().ok()?).ok()?;
    let roles = roles(reading, builder.schema()).ok()?;
    Some(roles.time)
}

/// The columns with zoned times in a file that an export wrote; those of other files are stored in
/// UTC without a zone.
pub fn zoned(source: ImportSource) -> Vec<String> {
    let builder = |file| ParquetRecordBatchReaderBuilder::try_new(file).ok();
    let Some(builder) = source.into_file().ok().and_then(builder) else {
        return Vec::new();
    };
    let schema = builder.schema();
    if Roles::from_metadata(schema).is_none() {
        return Vec::new();
    }
    let is_zoned =
        |field: &&Arc<Field>| matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
    let fields = schema.fields().iter().filter(is_zoned);
    fields.map(|field| field.name().clone()).collect()
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
pub fn with_constant_tags(reading: &ReadPlanOptions, rows: RecordBatch) -> Result<RecordBatch> {
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
