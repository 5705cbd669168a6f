//! The servers of Marigram: HTTP, the PostgreSQL protocol, Arrow Flight SQL, and the protocols of OpenTSDB,
//! IoTDB and TDengine, over the traits of `marigram_service`.
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
mod held_bytes;
mod http;
mod iotdb;
mod linger;
mod listener;
mod logins;
mod metric_rows;
mod opentsdb;
mod outgoing;
mod postgres;
mod running_servers;
mod services;
mod slow_log;
mod statement_text;
mod tdengine;
mod telemetry;
mod tls;
mod web_token;
mod write_stall;

pub use audit::AuditSettings;
pub use config::ServerConfig;
pub use running_servers::{RunningServers, ServerError};
pub use services::ServedDatabase;
pub use tls::{ClientCertificates, TlsSettings, TlsVersion};
pub use web_token::WebTokenKey;

use listener::ListenerKind;

/// Every protocol that the server speaks, in the order of the banner.
const LISTENERS: &[ListenerKind] = &[
    http::LISTENER,
    postgres::LISTENER,
    flight::LISTENER,
    opentsdb::LISTENER,
    iotdb::LISTENER,
    tdengine::LISTENER,
];

/// Opens the listeners of `config` and serves `services` on them until [`RunningServers::shutdown`].
/// Needs a tokio runtime with I/O and time.
///
/// # Errors
/// If the server cannot listen on an address, or a setting is invalid; no listener is open then.
pub async fn start(
    config: ServerConfig,
    services: ServedDatabase,
) -> Result<RunningServers, ServerError> {
    http::check_settings(&config)
        .map_err(|(setting, reason)| ServerError::Setting { setting, reason })?;
    running_servers::start(LISTENERS, config, services).await
}
