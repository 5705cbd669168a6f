//! SQL over an engine: DataFusion with Marigram's tables, statements and functions.
//!
//! The rooms, from below to above. Each knows only those before it:
//!
//! | room | what it does |
//! |---|---|
//! | `stack`, `name_forms`, `error` | stacks for deep trees, how names are written, refusals in our words |
//! | `dialect` | text to statements |
//! | `tables` | tables of series as DataFusion sees them |
//! | `rollup` | materialized views: refreshing them, and answering queries from them |
//! | `catalog` | databases, tables and views by name |
//! | `planning` | rules of ours about plans |
//! | `plan_cache` | plans that are used again, and when they may be |
//! | `statements` | executing what is no query |
//! | `execution` | threads, memory and DataFusion's sessions |
//! | `service` | a statement from its text to its answer |
//!
//! A query passes `service`, `dialect`, `plan_cache`, `execution::context`, `catalog`, `planning` and
//! the scans and aggregates of `marigram-operators`, in this order. All of it runs on threads of the
//! service's own (`execution::thread_pool`), never on the caller's. Values are computed by
//! `marigram-functions`.
//!
//! What is spoken is described in `docs/guides/sql.md`, and why it is so in
//! `docs/decisions/0004-sql.md`.

mod catalog;
mod dialect;
mod error;
mod execution;
mod name_forms;
mod plan_cache;
mod planning;
mod rollup;
mod service;
mod stack;
mod statements;
mod tables;

pub use dialect::types::{ROLE_KEY, arrow_schema};
pub use error::{SqlError, SqlResult, disk_full, schema_sqlstate};
pub use marigram_functions::POSTGRES_VERSION;
pub use plan_cache::PlanCacheStats;
pub use rollup::{RollupStatus, touched_ns};
pub use service::SqlService;
pub use service::front_end;
pub use statements::tsfile;

use std::path::PathBuf;

/// Settings of the query side.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// Parallelism of a query, and number of threads that execute queries.
    pub target_partitions: usize,
    /// Directory for what queries spill when memory is short; the system's for temporary files
    /// where `None`.
    pub spill_dir: Option<PathBuf>,
    /// Whether statements may read and write files of this machine (`CREATE EXTERNAL TABLE`,
    /// `COPY … TO`, `COPY … FROM`). A server must not allow it.
    pub allow_files: bool,
    /// Directory under which COPY may read and write files where `allow_files` is not set.
    pub copy_dir: Option<PathBuf>,
    /// Whether plans are made with the operators that know series, and not with DataFusion's alone;
    /// only a comparison of the two wants `false`.
    pub knows_series: bool,
    /// Whether materialized views are refreshed in the background, and not by `REFRESH` alone.
    pub refreshes_views: bool,
    /// Rows below which a scan is not cut into partitions: to begin one takes as long as to read
    /// some ten thousand rows.
    pub partition_rows: usize,
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self {
            target_partitions: 2,
            spill_dir: None,
            allow_files: false,
            copy_dir: None,
            knows_series: true,
            refreshes_views: true,
            partition_rows: 32 << 10,
        }
    }
}
