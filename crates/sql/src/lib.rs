//! SQL over an engine: DataFusion with Marigram's tables, statements and functions.
//!
//! A statement is parsed (`parse`, `ddl`, `session`) into a `Command`. What is Marigram's own is
//! done directly (`ddl_execution`, `show`, `storage`, `delete`); everything else is planned by DataFusion over
//! the engine's tables and the views of them (`catalog`, `table`, `rollup`), whose scans (`predicate`, `scan`, `rows`) know series
//! and times. All of it runs on threads of the service's own (`thread_pool`), never on the caller's.
//!
//! Statements that are deep are refused, balanced or given a larger stack (`nesting`, `balance`,
//! `stack`); functions that make large values are bounded (`functions/bounded`).
//!
//! What is spoken is described in `docs/guides/sql.md`, and why it is so in
//! `docs/decisions/0004-sql.md`.

mod arithmetic;
mod array_literals;
mod array_subqueries;
mod asof;
mod ast_walk;
mod balance;
mod batches;
mod cached_plan;
mod casts;
mod catalog;
mod catalog_statements;
mod client_statements;
mod column_names;
mod compactions;
mod comparison;
mod context;
mod copy;
mod ddl;
mod ddl_execution;
mod delete;
mod dialect;
mod duration;
mod error;
mod exact_numbers;
mod execution_session;
mod floats;
mod foreign_names;
mod from_first;
mod functions;
mod gapfill;
mod generic_plan;
mod grouping_sets;
mod growth;
mod identifiers;
mod inline;
mod inserted_lists;
mod interrupt;
mod interruptible_rule;
mod interval_arithmetic;
mod lateral;
mod latest_on;
mod memory;
mod name_forms;
mod named;
mod nesting;
mod notices;
mod numeric_division;
mod parameter_types;
mod parse;
mod plain_views;
mod plan_cache;
mod plan_dependencies;
mod plan_template;
mod planner;
mod postgres_calls;
mod predicate;
mod prepared;
mod reduce;
mod repair;
mod replaced;
mod rewriting;
mod rollup;
mod rows;
mod sample;
mod scan;
mod series;
mod service;
mod session;
mod settings;
mod shorthand;
mod show;
mod sink;
mod stack;
mod statement;
mod storage;
mod subqueries;
mod summarize;
mod table;
mod tag_patterns;
mod text_memory;
mod thread_pool;
mod time_texts;
mod trim_from;
pub mod tsfile;
mod types;
mod value_casts;
mod wildcard_replacements;
mod write_detection;
mod yielding;
mod zoned;
mod zones;

pub use error::{SqlError, disk_full, schema_sqlstate};
pub use plan_cache::PlanCacheStats;
pub use rollup::{RollupStatus, touched_ns};
pub use service::SqlService;
pub use session::POSTGRES_VERSION;
pub use types::{ROLE_KEY, arrow_schema};

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
