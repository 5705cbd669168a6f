//! The servers of Marigram: HTTP and the PostgreSQL protocol over the traits of
//! `marigram_service`.
//!
//! [`start`] opens the listeners and returns at once; [`RunningServers`] tells their addresses and stops
//! them. This crate knows bytes, protocols and limits; what a table or a query is, it asks of the
//! [`ServedDatabase`] that it was given.
//!
//! Invariants: nothing that a client sends panics or is held in memory beyond the limits of
//! [`ServerConfig`]; a client that goes away stops its query; CPU-bound work on large bodies runs
//! on blocking threads.

#![allow(
    clippy::disallowed_methods,
    reason = "servers stand at the edge: they measure real time for latencies and deadlines"
)]

mod admission;
mod config;
mod failures;
mod http;
mod linger;
mod outgoing;
mod postgres;
mod running_servers;
mod services;
mod slow_log;
mod telemetry;
mod write_stall;

pub use config::ServerConfig;
pub use running_servers::{RunningServers, ServerError, start};
pub use services::ServedDatabase;
