//! Reads Parquet, one batch of rows at a time.

use super::csv_rows::parsed;
use super::parquet_plan::{self, ParquetPlan};
use super::parquet_values::{
    renamed, whole_tags, with_constant_tags, with_exact_numbers, with_moments, with_whole_tags,
};
use super::source::ImportSource;
use super::{BATCH_ROWS, ParsedBatch, ReadPlanOptions};
use anyhow::{Context, Result};
use arrow::array::RecordBatch;
use parquet::arrow::ProjectionMask;
use std::sync::Arc;

/// Reads a file and passes its rows to `send`, until `send` returns false. Lines are row numbers,
/// from 1.
pub(crate) fn read(
    source: ImportSource,
    reading: &ReadPlanOptions,
    plan: &ParquetPlan,
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let builder = parquet_plan::builder(source)?;
    let roles = plan.roles(reading);
    let names = plan.names();
    let whole_tags = whole_tags(reading)?;
    let kept: Vec<usize> = plan.places().collect();
    let kept_schema = Arc::new(builder.schema().project(&kept)?);
    let mask = ProjectionMask::roots(builder.parquet_schema(), kept);
    let builder = builder.with_projection(mask);
    let batches = builder.with_batch_size(BATCH_ROWS).build()?;
    let mut before = 0;
    for rows in batches {
        let rows = renamed(&rows.context("cannot be read further")?, &names)?;
        let rows = with_exact_numbers(&rows)?;
        let rows = with_moments(rows, &roles.time, reading.options.precision)?;
        let rows = with_constant_tags(reading, rows)?;
        let count = rows.num_rows() as u64;
        let lines = (before + 1..=before + count).collect();
        before += count;
        let (rows, lines, bad) = with_whole_tags(rows, &whole_tags, lines)?;
        if !send(parsed(reading, &roles, &rows, lines, bad)) {
            return Ok(());
        }
    }
    if before == 0 {
        // Its columns make a table nevertheless.
        let rows = renamed(&RecordBatch::new_empty(kept_schema), &names)?;
        let rows = with_constant_tags(reading, with_exact_numbers(&rows)?)?;
        let (rows, _, _) = with_whole_tags(rows, &whole_tags, Vec::new())?;
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
