//! TsFile, device by device.

use super::csv_rows::parsed;
use super::parquet_rows::with_constant_tags;
use super::source::Source;
use super::time_text::Precision;
use super::{Parsed, Reading};
use anyhow::Result;
use marigram::Roles;
use marigram_model::TableSchema;
use marigram_sql::tsfile::TsFileRows;
use std::collections::HashMap;
use std::io::BufReader;
use std::sync::Arc;

/// Nanoseconds of a millisecond, the unit of most files.
const MILLISECOND_NS: i64 = 1_000_000;

/// The schemas of tables that exist, by their names.
pub type Schemas = HashMap<String, Arc<TableSchema>>;

/// Reads a file and hands its rows on, until `send` says that nobody wants more. Lines are numbers
/// of rows in the order in which the file gives them, from 1. Rows go to the file's own tables
/// unless one is told.
pub fn read(
    source: Source,
    reading: &Reading,
    schemas: &Schemas,
    send: &dyn Fn(Result<Parsed>) -> bool,
) -> Result<()> {
    let options = &reading.options;
    let unit_ns = options.precision.map_or(MILLISECOND_NS, Precision::ns);
    let mut rows = TsFileRows::open(BufReader::new(source.into_file()?), unit_ns)?;
    let mut before = 0;
    while let Some(mut found) = rows.next_rows()? {
        let table = options.table.clone().unwrap_or(found.table);
        let reading = Reading {
            schema: schemas.get(&table).cloned(),
            table,
            ..reading.clone()
        };
        let rows = with_constant_tags(&reading, found.rows)?;
        let constant = reading.constant_tags.iter().map(|(name, _)| name.clone());
        found.tags.extend(constant);
        let roles = Roles::new(found.time, found.tags);
        let count = rows.num_rows() as u64;
        let lines = (before + 1..=before + count).collect();
        before += count;
        if !send(parsed(&reading, &roles, &rows, lines, Vec::new())) {
            return Ok(());
        }
    }
    Ok(())
}
