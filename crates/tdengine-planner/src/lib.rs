//! TDengine's SQL on top of the service: turns a parsed statement into rows or into changes.
//!
//! A database of TDengine is a database, a super table is a table, and a sub-table is its series with the
//! tag `tbname`. What the engine does not know of them is in a table of each database (`catalog`,
//! `objects`). `definition` and `alteration` change tables, `insert` and `remove` their rows, `show` and
//! `information` list them.
//!
//! A query becomes a `relation`: a DataFusion plan with TDengine's names and types of its columns.
//! `source` makes one of FROM, `expression` those of expressions, `select` that of a SELECT, and `query`
//! joins them. Functions of many rows are DataFusion's aggregates where these suffice (`fast_groups`) and
//! stages over ordered rows otherwise (`grouping`, `stage`). `answer` runs the plan.
//!
//! # Invariants
//! - A stage holds one partition's open windows at a time, in memory from the pool of all statements.
//! - Every statement has checked the rights of the databases that it names before it reads them.

mod aggregate;
mod alteration;
mod answer;
mod call_class;
mod child_list;
mod conversion;
mod definition;
mod expression;
mod front_end;
mod information;
mod insert;
mod listing;
mod moments;
mod planned_call;
mod query;
mod relation;
mod remove;
mod run;
mod show;
mod stage;
mod sub_table;
mod system_tables;
mod taos_value;

pub use front_end::{TDengineStatements, USE_TAG};

/// The version that clients are told.
pub const SERVER_VERSION: &str = "3.3.6.0";
