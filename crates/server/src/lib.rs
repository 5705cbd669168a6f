//! The servers of Marigram: HTTP, the PostgreSQL protocol and Arrow Flight SQL over the traits of
//! `marigram_service`.
//!
//! [`start`] opens the listeners and returns at once; [`RunningServers`] reports their addresses
//! and stops them. This crate knows bytes, protocols and limits. It leaves tables and queries to
//! its [`ServedDatabase`].
//!
//! Invariants: no input of a client causes a panic, or memory use beyond the limits of
//! [`ServerConfig`]; a client that disconnects stops its query; CPU-bound work on large bodies runs
//! on blocking threads.

#![allow(
    clippy::disallowed_methods,
    reason = "servers are at the edge: they measure real time for latencies and deadlines"
)]

mod admission;
mod audit;
mod config;
mod failures;
mod flight;
mod http;
mod linger;
mod logins;
mod outgoing;
mod postgres;
mod running_servers;
mod services;
mod slow_log;
mod statement_text;
mod telemetry;
mod tls;
mod web_token;
mod write_stall;

pub use audit::AuditSettings;
pub use config::ServerConfig;
pub use running_servers::{RunningServers, ServerError, start};
pub use services::ServedDatabase;
pub use tls::{ClientCertificates, TlsSettings, TlsVersion};
pub use web_token::WebTokenKey;
