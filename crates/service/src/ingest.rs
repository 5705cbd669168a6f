//! Storing rows.
//!
//! Invariant: a row that a report counts as stored is as durable as the settings require, and
//! readable at once; a rejected row is never visible.

use crate::error::Result;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use marigram_model::WriteBatch;

/// A row that was not stored, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRow {
    /// The row's number in the given batch, from 0.
    pub row: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// The result of writing a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Rows stored.
    pub stored: usize,
    /// Rows refused, ascending by row; the others are stored.
    pub rejected: Vec<RejectedRow>,
    /// What was created for them: the database, the table or columns, each as the statement that would have
    /// created it.
    pub created: Vec<String>,
}

/// Which columns of Arrow rows are the time and the tags, for a table that they create; the others
/// are fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowRoles {
    /// The time.
    pub time: String,
    /// The tags, in order.
    pub tags: Vec<String>,
}

/// Stores rows.
#[async_trait]
pub trait Ingest: Send + Sync {
    /// Stores batches, and creates tables and columns as needed (the database, too, if it is
    /// missing and `create_database` is set). The rows are durable when it returns. Returns one
    /// report per batch, in order.
    ///
    /// # Errors
    /// Why the caller cannot rely on any row of the call being stored; a batch may be written
    /// again.
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

    /// The schema of a table as Arrow, for COPY. The metadata of each field holds its role under
    /// the key `marigram.role`: `time`, `tag` or `field`.
    ///
    /// # Errors
    /// If there is no such database or table.
    async fn table_schema(&self, database: &str, table: &str) -> Result<SchemaRef>;

    /// Stores Arrow rows: columns by name; missing ones are null. With `roles`, a table that does not
    /// exist is created with them.
    ///
    /// # Errors
    /// As [`Ingest::write`], if the table does not have a column, and if it has other roles.
    async fn write_arrow(
        &self,
        database: &str,
        table: &str,
        batch: RecordBatch,
        roles: Option<&ArrowRoles>,
    ) -> Result<WriteReport>;
}
