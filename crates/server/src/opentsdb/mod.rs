//! OpenTSDB's protocols on one port: its HTTP API, and its telnet commands.
//!
//! The first byte of a connection decides: methods of HTTP are upper case, commands are lower case. The
//! HTTP API runs on the same server as the other HTTP APIs (`crate::http`).

mod line_buffer;
mod pending_points;
mod session;

use crate::http::serve_opentsdb;
use crate::listener::{ListenerContext, ListenerKind};
use crate::slow_log::PEER;
use crate::tls::{ClientStream, SecondProtocol};
use futures::future::BoxFuture;
use marigram_opentsdb::is_http;
use session::TelnetSession;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// How the server offers them.
pub(crate) const LISTENER: ListenerKind = ListenerKind {
    setting: "opentsdb",
    protocol: "OpenTSDB",
    title: "OpenTSDB",
    address: |config| config.opentsdb,
    url: |address, has_tls| {
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{address} (and telnet)")
    },
    serve,
};

/// Connections that wait to be taken.
const WAITING_MAX: usize = 16;

fn serve(listener: TcpListener, context: ListenerContext) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let (sender, clients) = mpsc::channel(WAITING_MAX);
        let idle_ms = context.server.config.http_idle_timeout_ms.max(1);
        let telnet = SecondProtocol {
            speaks: |first| !is_http(first),
            clients: sender,
            wait_max: Duration::from_millis(idle_ms),
        };
        let lines = serve_telnet(clients, context.clone());
        let http = serve_opentsdb(listener, telnet, context, LISTENER.setting);
        tokio::join!(http, lines);
    })
}

/// Serves the clients that send commands, until the server stops.
async fn serve_telnet(
    mut clients: mpsc::Receiver<(ClientStream, SocketAddr)>,
    context: ListenerContext,
) {
    let connections_max = context.server.config.connections_max;
    let places = Arc::new(Semaphore::new(
        connections_max.clamp(1, Semaphore::MAX_PERMITS),
    ));
    let mut sessions = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = context.stop.cancelled() => break,
            Some(_) = sessions.join_next(), if !sessions.is_empty() => continue,
            client = clients.recv() => match client {
                Some(client) => client,
                None => break,
            },
        };
        let place = Arc::clone(&places).try_acquire_owned().ok();
        let session = TelnetSession::new(stream, peer, &context);
        sessions.spawn(PEER.scope(peer, async move {
            let ended = match &place {
                Some(_) => session.run().await,
                None => session.refuse_for_lack_of_places().await,
            };
            if let Err(error) = ended {
                tracing::debug!(%error, %peer, "a telnet connection ended");
            }
        }));
    }
    drop(clients);
    while sessions.join_next().await.is_some() {}
}
