//! Arrow Flight SQL over gRPC: statements, prepared statements, catalogs, and rows in and out as
//! Arrow batches; and the tickets of InfluxDB 3's clients.
//!
//! The server keeps nothing for a client between two calls but the tokens of handshakes: a handle
//! holds its statement ([`marigram_protocol::flight`]).

mod actions;
mod answer;
mod call;
mod call_memory;
mod catalogs;
mod fault;
mod gate;
mod incoming_rows;
mod ingest;
mod login_sessions;
mod parameters;
mod running_statements;
mod server_info;
mod service;
mod statements;

use crate::http::{ConnectedPeer, HttpConnection, HttpConnections};
use crate::listener::{ListenerContext, ListenerKind};
use crate::tls::{ClientListener, TlsProtocol};
use arrow_flight::flight_service_server::FlightServiceServer;
use axum::serve::Listener;
use call::FlightShared;
use futures::Stream;
use futures::stream::unfold;
use gate::FlightGate;
use server_info::ServerInfo;
use service::FlightSqlServer;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::Connected;

/// Calls of one connection at once.
const STREAMS_MAX: u32 = 128;

/// Bytes of a call that a client may send before the server read those before.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// The same for all calls of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// Bytes of a call's headers.
const HEADER_BYTES_MAX: u32 = 64 << 10;

/// How often an idle client is asked whether it is there, and how long it may take to answer.
const KEEPALIVE_EVERY: Duration = Duration::from_mins(1);
const KEEPALIVE_WAIT: Duration = Duration::from_secs(20);

/// What a client gets that speaks without TLS where it must not. It is no HTTP/2, so gRPC's clients end
/// the connection, and some show the text.
const PLAIN_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: application/json\r\nContent-Length: 86\r\nConnection: close\r\n\r\n\
    {\"error\":\"this server encrypts its connections: its address begins with grpc+tls://\"}\n";

/// How the server offers it.
pub(crate) const LISTENER: ListenerKind = ListenerKind {
    setting: "flight",
    protocol: "Arrow Flight",
    title: "Flight SQL",
    address: |config| config.flight,
    url: |address, has_tls| {
        let scheme = if has_tls { "grpc+tls" } else { "grpc" };
        format!("{scheme}://{address}")
    },
    serve: |listener, context| Box::pin(serve(listener, context)),
};

/// Serves Flight SQL on `listener` until the server stops, then finishes running calls.
async fn serve(listener: TcpListener, context: ListenerContext) {
    let ListenerContext { server, tls, stop } = context;
    let listener = ClientListener::new(
        listener,
        tls,
        TlsProtocol::Flight,
        PLAIN_ANSWER,
        stop.clone(),
    );
    let listener = HttpConnections::new(
        listener,
        &server.config,
        server.gate.stalled(),
        stop.clone(),
    );
    let info = match ServerInfo::new() {
        Ok(info) => info,
        Err(error) => {
            tracing::error!(%error, "the Flight server cannot start");
            return;
        }
    };
    let body_limit = server.config.body_limit;
    let message_bytes_max = server.gate.body_limit("body_limit", body_limit).bytes;
    let shared = Arc::new(FlightShared {
        server,
        sessions: login_sessions::LoginSessions::default(),
        running: running_statements::FlightStatements::default(),
    });
    let service = FlightServiceServer::new(FlightSqlServer::new(Arc::clone(&shared), info))
        .max_decoding_message_size(message_bytes_max)
        .max_encoding_message_size(usize::MAX);
    let served = Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_WAIT))
        .add_service(FlightGate::new(service, shared))
        .serve_with_incoming_shutdown(accepted(listener), stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the Flight server ended");
    }
}

/// The connections that a listener accepts, one after the other.
fn accepted(
    listener: impl Listener<Io = HttpConnection, Addr = ConnectedPeer>,
) -> impl Stream<Item = io::Result<FlightConnection>> {
    unfold(listener, |mut listener| async move {
        let (io, peer) = listener.accept().await;
        Some((Ok(FlightConnection { io, peer }), listener))
    })
}

/// A connection, and who is at its other end.
struct FlightConnection {
    io: HttpConnection,
    peer: ConnectedPeer,
}

impl Connected for FlightConnection {
    type ConnectInfo = ConnectedPeer;

    fn connect_info(&self) -> ConnectedPeer {
        self.peer.clone()
    }
}

impl AsyncRead for FlightConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, into)
    }
}

impl AsyncWrite for FlightConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
