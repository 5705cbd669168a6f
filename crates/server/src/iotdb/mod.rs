//! Apache IoTDB's Thrift protocol: what `Session`, JDBC and the clients of other languages send.
//!
//! `marigram_iotdb` reads and writes the messages. Statements go to the database as text of IoTDB's tree
//! SQL, and so do requests about the schema; rows go there as batches. A connection has one session.

mod arrow_rows;
mod cast;
mod catalog;
mod connection;
mod device_batches;
mod fault;
mod field_choice;
mod frames;
mod insert;
mod insert_rows;
mod left_out;
mod login;
mod open_query;
mod replies;
mod session;
mod statements;
mod store;

use crate::listener::{ListenerContext, ListenerKind, ServerState};
use crate::slow_log::PEER;
use crate::tls::{ClientListener, OpeningConnections, TlsProtocol};
use catalog::TreeCatalog;
use connection::IotDbSession;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How the server offers it.
pub(crate) const LISTENER: ListenerKind = ListenerKind {
    setting: "iotdb",
    protocol: "IoTDB",
    title: "IoTDB",
    address: |config| config.iotdb,
    url: |address, _| format!("iotdb://{address}"),
    serve,
};

/// What the connections of the listener share.
#[derive(Clone)]
struct IotDbShared {
    server: ServerState,
    catalog: Arc<TreeCatalog>,
    openings: OpeningConnections,
    places: Arc<Semaphore>,
    /// The number of the last session.
    sessions: Arc<AtomicI64>,
    /// Fires when no new requests may begin.
    stop: CancellationToken,
}

fn serve(listener: TcpListener, context: ListenerContext) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let ListenerContext { server, tls, stop } = context;
        let connections_max = server.config.connections_max.min(Semaphore::MAX_PERMITS);
        let shared = IotDbShared {
            server,
            catalog: Arc::default(),
            openings: OpeningConnections::default(),
            places: Arc::new(Semaphore::new(connections_max)),
            sessions: Arc::default(),
            stop: stop.clone(),
        };
        let listener = ClientListener::new(listener, tls, TlsProtocol::IotDb, b"", stop);
        serve_clients(listener, shared).await;
    })
}

/// Serves clients until the server stops, then lets running requests finish.
async fn serve_clients(mut listener: ClientListener, shared: IotDbShared) {
    let mut sessions = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = shared.stop.cancelled() => break,
            Some(_) = sessions.join_next(), if !sessions.is_empty() => continue,
            client = listener.accept(|| {}) => client,
        };
        let session = IotDbSession::new(stream, peer, &shared);
        sessions.spawn(PEER.scope(peer, async move {
            if let Err(reason) = session.run().await {
                tracing::debug!(%reason, %peer, "an IoTDB connection ended");
            }
        }));
    }
    drop(listener);
    while sessions.join_next().await.is_some() {}
}
