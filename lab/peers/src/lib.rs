//! Peers: other databases that the laboratory measures next to Marigram.
//!
//! Each module of a database has its driver (`KIND`) and, if a package registry has the database, how
//! it is installed and started (`PEER`). To add a database, write a module and its lines in
//! [`catalog`]. The crate `marigram-lab-drivers` has the code that drivers share.
//!
//! From below to above: [`install`] (the tools of registries), `write_history`, `line_server` and
//! `text_tags` (shared by the two databases without SQL), `python` (shared by the databases that are
//! Python packages), the databases, [`catalog`] (the list of them), [`manage`] (installs, starts and
//! stops them), [`command`] (`marigram lab peers`).

#![allow(
    clippy::disallowed_methods,
    reason = "a laboratory reads the machine's clock and disk, as a client of a database does"
)]

pub mod catalog;
pub mod chdb;
pub mod clickhouse;
pub mod command;
pub mod duckdb;
pub mod influxdb;
pub mod install;
mod line_server;
pub mod manage;
pub mod postgresql;
mod python;
pub mod questdb;
#[cfg(test)]
mod sample;
mod text_tags;
pub mod victoriametrics;
mod write_history;

pub use catalog::kinds;
