//! Taking rows.
//!
//! Invariant: a row of which a report says that it is stored is durable as the database is set up
//! to be, and readable at once; a row that is rejected is never visible.

use crate::error::Result;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use marigram_model::WriteBatch;

/// A row that was not stored, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRow {
    /// Row in the batch that was given, from 0.
    pub row: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Rows stored.
    pub stored: usize,
    /// Rows refused, ascending by row; the others are stored.
    pub rejected: Vec<RejectedRow>,
}

/// Takes rows.
#[async_trait]
pub trait Ingest: Send + Sync {
    /// Stores batches, creating table and columns where needed (the database too where it is
    /// missing and `create_database` is set). Durable when it returns. One report per batch, in
    /// order.
    ///
    /// # Errors
    /// Why nothing of the call may be counted on as stored; a batch may be written again.
    async fn write(
        &self,
        database: &str,
        batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>>;

    /// Stores batches whose tables are measurements of a retention policy: the one named, or the
    /// database's default one.
    ///
    /// # Errors
    /// As [`Ingest::write`], and `NotFound` with SQLSTATE `42704` if there is no such policy.
    async fn write_measurements(
        &self,
        database: &str,
        retention_policy: Option<&str>,
        batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>>;

    /// The schema of a table as Arrow, for COPY. The metadata of each field says its role under
    /// the key `marigram.role`: `time`, `tag` or `field`.
    ///
    /// # Errors
    /// If there is no such database or table.
    async fn table_schema(&self, database: &str, table: &str) -> Result<SchemaRef>;

    /// Stores Arrow rows in an existing table: columns by name; missing ones are null.
    ///
    /// # Errors
    /// As [`Ingest::write`], and if a column is none of the table's.
    async fn write_arrow(
        &self,
        database: &str,
        table: &str,
        batch: RecordBatch,
    ) -> Result<WriteReport>;
}
