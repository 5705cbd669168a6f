//! The databases: one driver each.
//!
//! To add one: a file here with a `KIND`, and a line in [`kinds`].

pub mod cells;
pub mod chdb;
pub mod clickhouse;
pub mod duckdb;
pub mod http;
pub mod line_protocol;
mod python;
pub mod questdb;
pub mod sql;

use crate::target::Kind;

/// Every kind of target that the laboratory brings along.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    vec![questdb::KIND, duckdb::KIND, clickhouse::KIND, chdb::KIND]
}
