//! The databases: one driver each.
//!
//! To add one: a file here with a `KIND`, and a line in [`kinds`].

pub mod arrow;
pub mod cells;
pub mod chdb;
pub mod clickhouse;
pub mod conformance;
pub mod duckdb;
pub mod http;
pub mod influxdb;
pub mod line_protocol;
pub mod marigram;
pub mod null;
pub mod pg;
pub mod postgresql;
mod python;
pub mod questdb;
mod seen;
pub mod sql;
mod text_tags;
pub mod victoriametrics;

use crate::target::Kind;

/// Every kind of target that the laboratory brings along.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    vec![
        null::KIND,
        marigram::HTTP,
        marigram::POSTGRES,
        influxdb::KIND,
        victoriametrics::KIND,
        questdb::KIND,
        duckdb::KIND,
        postgresql::POSTGRESQL,
        postgresql::TIMESCALEDB,
        chdb::KIND,
        clickhouse::KIND,
    ]
}
