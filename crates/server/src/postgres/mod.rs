//! The PostgreSQL protocol 3.0, which psql, psycopg, pgx and JDBC use.
//!
//! This module reads and writes the messages itself instead of using `pgwire`, whose decoders panic
//! on messages that are shorter than they claim, and whose queries cannot be cancelled once their
//! rows stream.

mod announced;
mod cancel;
mod connection;
mod control;
mod copy;
mod encode;
mod error;
mod execute;
mod io;
mod login;
mod messages;
mod numeric;
mod opening;
mod parameters;
mod portal;
mod prepared;
mod reference_copy;
mod savepoints;
mod session_statements;
mod session_syntax;
mod setting_scope;
mod types;
mod uuid;
mod zones;

use crate::failures::ThrottledLines;
use crate::listener::{ListenerContext, ListenerKind, ServerState};
use crate::slow_log::PEER;
use crate::tls::{OpeningConnections, ServerTls};
use cancel::ConnectionRegistry;
use connection::PostgresConnection;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The PostgreSQL version that clients see; it decides what they ask of the catalogue.
const SERVER_VERSION: &str = "16.6";

/// Pause after a connection could not be accepted (too many files are open).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// State that connections share.
#[derive(Clone)]
struct PostgresShared {
    server: ServerState,
    registry: ConnectionRegistry,
    tls: Option<Arc<ServerTls>>,
    /// Lines about handshakes that failed.
    tls_lines: Arc<ThrottledLines>,
    openings: OpeningConnections,
    /// Fires when no new statements may begin.
    stop: CancellationToken,
}

/// How the server offers it.
pub(crate) const LISTENER: ListenerKind = ListenerKind {
    setting: "postgres",
    protocol: "PostgreSQL",
    title: "PostgreSQL",
    address: |config| config.postgres,
    url: |address, _| format!("postgres://{address}/main"),
    serve: |listener, context| Box::pin(serve(listener, context)),
};

/// Serves the PostgreSQL protocol on `listener` until the server stops, then lets running statements
/// finish.
async fn serve(listener: TcpListener, context: ListenerContext) {
    let ListenerContext { server, tls, stop } = context;
    let places = Arc::new(Semaphore::new(
        server.config.connections_max.min(Semaphore::MAX_PERMITS),
    ));
    let registry = ConnectionRegistry::default();
    let shared = PostgresShared {
        server,
        registry,
        tls,
        tls_lines: Arc::default(),
        openings: OpeningConnections::default(),
        stop,
    };
    let mut connections = JoinSet::new();
    loop {
        let (socket, peer) = tokio::select! {
            () = shared.stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a PostgreSQL connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let (places, shared) = (places.clone(), shared.clone());
        connections.spawn(async move {
            shared.server.telemetry.postgres_connections.inc();
            let run = PEER.scope(peer, PostgresConnection::run(socket, &shared, places));
            if let Err(error) = run.await {
                tracing::debug!(%error, "a PostgreSQL connection ended");
            }
            shared.server.telemetry.postgres_connections.dec();
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
