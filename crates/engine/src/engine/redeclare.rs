//! Gives a table without rows other columns.
//!
//! What a column is (the time, a tag or a field) decides how its rows are stored, so the columns of a
//! table keep their roles. A table without rows has nothing stored: another table takes its place, with
//! a number of its own, so that nothing that the old one left behind is ever read as the new one's.

use super::Engine;
use crate::catalog::TableSpec;
use crate::error::Result;
use crate::filter::TagFilter;
use crate::scan::{ScanMetrics, ScanRequest};
use marigram_model::{TableSchema, TimeRange};
use std::sync::Arc;

impl Engine {
    /// Whether a table has a row.
    ///
    /// # Errors
    /// If there is no such table, or what is stored of it cannot be read.
    pub fn has_rows(&self, database: &str, table: &str) -> Result<bool> {
        let snapshot = self.snapshot(database, table)?;
        let fields = snapshot.schema().fields.iter();
        let request = ScanRequest {
            selection: snapshot.select(&TagFilter::All),
            range: TimeRange::ALL,
            columns: fields.map(|field| field.id).collect(),
            bounds: Vec::new(),
            batch_rows: 1,
            partitions: 1,
            limit: Some(1),
        };
        for mut partition in snapshot.scan(&request, Arc::new(ScanMetrics::default()))? {
            while let Some(rows) = partition.next_rows()? {
                if !rows.is_empty() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Gives a table other columns and settings if it has no rows; `None` if it has some. Writes to
    /// the table wait meanwhile. A crash may leave it dropped: it was empty.
    ///
    /// # Errors
    /// If there is no such table, a view reads it, the columns exceed the limits, writes are refused,
    /// or the disk fails.
    pub fn redeclare_table(
        &self,
        database: &str,
        spec: &TableSpec,
    ) -> Result<Option<Arc<TableSchema>>> {
        let inner = self.writable()?;
        let _held = inner.gate.hold(database, &spec.name)?;
        if self.has_rows(database, &spec.name)? {
            return Ok(None);
        }
        let _room = self.room_to_drop(1)?;
        let (before, schema) = inner.schemas.replace_table(database, spec)?;
        self.register(&schema)?;
        self.forget(before)?;
        Ok(Some(schema))
    }
}
