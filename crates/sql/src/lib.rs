//! SQL over an engine: DataFusion with Marigram's tables, statements and functions.
//!
//! The modules, from bottom to top. Each knows only those before it:
//!
//! | module | what it does |
//! |---|---|
//! | `stack`, `name_forms`, `error` | stacks for deep trees, forms of names, wording of errors |
//! | `access` | users, roles and tokens, and what each may do |
//! | `dialect` | parses text into statements |
//! | `tables` | tables of series, as table providers of DataFusion |
//! | `planning` | our own planning rules |
//! | `rollup` | materialized views: refreshing them, and answering queries from them |
//! | `catalog` | databases, tables and views by name |
//! | `plan_cache` | reuses plans, and decides when that is allowed |
//! | `statements` | executes statements that are not queries |
//! | `execution` | threads, memory and DataFusion's sessions |
//! | `service` | takes a statement from its text to its result |
//!
//! A query passes through `service`, `dialect`, `plan_cache`, `execution::context`, `catalog`,
//! `planning` and the scans and aggregates of `marigram-operators`, in this order. All of them run
//! on the service's own threads (`execution::thread_pool`); only short statements run on the
//! caller's thread. `marigram-functions` computes values.
//!
//! `docs/guides/sql.md` describes the language, and `docs/decisions/0004-sql.md` gives the reasons.

mod access;
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

pub use access::{AccessControl, check_administrator, check_database};
pub use dialect::types::{ROLE_KEY, arrow_schema};
pub use error::{SqlError, SqlResult, disk_full, schema_sqlstate};
pub use marigram_functions::POSTGRES_VERSION;
pub use marigram_reference::ReferenceStore;
pub use plan_cache::PlanCacheStats;
pub use rollup::{RollupStatus, touched_ns};
pub use service::SqlService;
pub use service::front_end;
pub use statements::copy::file_url;
pub use statements::tsfile;

use std::path::PathBuf;

/// Settings of the query side.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// The parallelism of a query, and the number of threads that execute queries.
    pub target_partitions: usize,
    /// The directory for data that queries spill when memory is short; `None` for the system's
    /// directory for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// Whether statements may read and write files of the machine (`CREATE EXTERNAL TABLE`,
    /// `COPY … TO`, `COPY … FROM`). A server must not allow it.
    pub allow_files: bool,
    /// The directory under which COPY may read and write files if `allow_files` is not set.
    pub copy_dir: Option<PathBuf>,
    /// Whether plans use the series-aware operators, and not only DataFusion's; only a comparison
    /// of the two needs `false`.
    pub knows_series: bool,
    /// Whether materialized views are refreshed in the background, and not only by `REFRESH`.
    pub refreshes_views: bool,
    /// Scans of fewer rows are not divided into partitions: beginning a partition takes as long as
    /// reading about ten thousand rows.
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
