//! Reads TsFile, device by device.

use super::Precision;
use super::csv_rows::parsed;
use super::parquet_values::{renamed, with_constant_tags};
use super::source::ImportSource;
use super::{ParsedBatch, ReadPlanOptions};
use anyhow::Result;
use marigram::Roles;
use marigram_model::TableSchema;
use marigram_sql::tsfile::TsFileRows;
use marigram_tabular::names;
use std::collections::HashMap;
use std::io::BufReader;
use std::sync::Arc;

/// Nanoseconds in a millisecond, the unit of most files.
const MILLISECOND_NS: i64 = 1_000_000;

/// The schemas of existing tables, by name.
pub(super) type TableSchemas = HashMap<String, Arc<TableSchema>>;

/// Reads a file and passes its rows to `send`, until `send` returns false. Lines are row numbers in
/// the order of the file, from 1. Rows go to the file's own tables unless the options name one.
pub(super) fn read(
    source: ImportSource,
    reading: &ReadPlanOptions,
    schemas: &TableSchemas,
    send: &dyn Fn(Result<ParsedBatch>) -> bool,
) -> Result<()> {
    let options = &reading.options;
    let written = reading.layout.as_ref().and_then(|layout| layout.unit_ns);
    let unit_ns = options.precision.map(Precision::ns).or(written);
    let unit_ns = unit_ns.filter(|ns| *ns > 0).unwrap_or(MILLISECOND_NS);
    let mut rows = TsFileRows::open(BufReader::new(source.into_file()?), unit_ns)?;
    let mut before = 0;
    while let Some(mut found) = rows.next_rows()? {
        let table = options.table.clone().unwrap_or(found.table);
        let reading = ReadPlanOptions {
            schema: schemas.get(&table).cloned(),
            table,
            ..reading.clone()
        };
        // The format has lower-case names only.
        let columns = reading.schema.as_deref().map(columns).or_else(|| {
            let layout = reading.layout.as_ref()?;
            Some(
                layout
                    .tags
                    .iter()
                    .chain(&layout.fields)
                    .map(|(name, _)| name.clone())
                    .collect(),
            )
        });
        let rows = match columns {
            Some(columns) => {
                let fields = found.rows.schema_ref().fields().iter();
                let names: Vec<String> = fields.map(|field| field.name().clone()).collect();
                let names = names::matched(&names, &columns)?;
                let schema = found.rows.schema();
                for name in std::iter::once(&mut found.time).chain(&mut found.tags) {
                    if let Ok(at) = schema.index_of(name) {
                        name.clone_from(&names[at]);
                    }
                }
                renamed(&found.rows, &names)?
            }
            None => found.rows,
        };
        let rows = with_constant_tags(&reading, rows)?;
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

fn columns(schema: &TableSchema) -> Vec<String> {
    let tags = schema.tags.iter().map(|tag| &tag.name);
    let fields = schema.fields.iter().map(|field| &field.name);
    std::iter::once(&schema.time_name)
        .chain(tags)
        .chain(fields)
        .cloned()
        .collect()
}
