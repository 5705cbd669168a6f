//! What a protocol brings to be served: its setting, its address, and what serves its clients.
//!
//! Each protocol has a module with a [`ListenerKind`]; the list of them is in `lib.rs`. The rest of
//! the crate knows listeners only by this description, so that another protocol changes nothing
//! but its own module, that list, and its setting.

use crate::admission::AdmissionControl;
use crate::audit::AuditLog;
use crate::config::ServerConfig;
use crate::logins::FailedLogins;
use crate::services::ServedDatabase;
use crate::telemetry::Telemetry;
use crate::tls::ServerTls;
use futures::future::BoxFuture;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A protocol that the server speaks.
#[derive(Clone, Copy)]
pub(crate) struct ListenerKind {
    /// The setting that holds its address, which is also its name in the audit log.
    pub setting: &'static str,
    /// Its name in messages.
    pub protocol: &'static str,
    /// Its name in the banner.
    pub title: &'static str,
    /// Where it listens; not at all if absent.
    pub address: fn(&ServerConfig) -> Option<SocketAddr>,
    /// The URL of an address, with or without encryption.
    pub url: fn(SocketAddr, bool) -> String,
    /// Serves clients until [`ListenerContext::stop`] fires, then finishes what runs.
    pub serve: fn(TcpListener, ListenerContext) -> BoxFuture<'static, ()>,
}

/// What a listener serves its clients with.
#[derive(Clone)]
pub(crate) struct ListenerContext {
    pub server: ServerState,
    pub tls: Option<Arc<ServerTls>>,
    /// Fires when no new connections and requests may begin.
    pub stop: CancellationToken,
}

/// What the requests of all listeners share. The listeners of HTTP, PostgreSQL and Flight SQL hold it
/// inside their own state.
#[derive(Clone)]
pub(crate) struct ServerState {
    pub services: ServedDatabase,
    pub config: Arc<ServerConfig>,
    pub gate: AdmissionControl,
    pub telemetry: Arc<Telemetry>,
    pub failed_logins: Arc<FailedLogins>,
    pub audit: AuditLog,
    /// Fires when running requests must stop.
    pub kill: CancellationToken,
}
