//! Peers: other databases that the laboratory measures next to Marigram.
//!
//! To add one: a file here with a `KIND`, and a line in [`kinds`]. If package registries have it, say in
//! [`installed`] how to install and start it.

#![allow(
    clippy::disallowed_methods,
    reason = "a laboratory reads the machine's clock and disk, as a client of a database does"
)]

pub mod chdb;
pub mod clickhouse;
pub mod command;
pub mod duckdb;
pub mod influxdb;
pub mod installed;
pub mod postgresql;
mod python;
pub mod questdb;
mod seen;
mod text_tags;
pub mod victoriametrics;

use marigram_lab::target::Kind;

/// Every peer.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    vec![
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
