//! Every peer: its driver, and how it is installed.

use crate::install::Peer;
use crate::{chdb, clickhouse, duckdb, influxdb, postgresql, questdb, victoriametrics};
use marigram_lab::target::Kind;

/// The peers that can be installed, in the order in which `marigram lab peers` lists them.
pub const PEERS: [Peer; 6] = [
    influxdb::PEER,
    victoriametrics::PEER,
    questdb::PEER,
    duckdb::PEER,
    chdb::PEER,
    postgresql::PEER,
];

/// The drivers, in the order in which `marigram lab list` lists them.
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
