//! Accepts connections of a protocol that is encrypted from its first byte.

use super::{
    ClientStream, HANDSHAKE_MAX, OpeningConnections, ServerTls, TlsProtocol, begins_handshake,
};
use crate::failures::ThrottledLines;
use crate::linger::LingeringConnection;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Pause after a connection could not be accepted (too many files are open).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listening socket, with TLS if the server has it. Handshakes run beside each other.
pub(crate) struct ClientListener {
    listener: TcpListener,
    handshakes: Option<Handshakes>,
}

/// What every handshake of a listener needs.
#[derive(Clone)]
struct HandshakeRules {
    tls: Arc<ServerTls>,
    protocol: TlsProtocol,
    /// What a client without TLS is told where it must use it.
    plain_answer: &'static [u8],
    lines: Arc<ThrottledLines>,
    stop: CancellationToken,
}

struct Handshakes {
    rules: HandshakeRules,
    opening: OpeningConnections,
    running: JoinSet<Option<(ClientStream, SocketAddr)>>,
}

impl ClientListener {
    /// Accepts on `listener`; with `tls`, connections are encrypted, or if it is not required, may
    /// be. A client without TLS gets `plain_answer` where it is required.
    pub(crate) fn new(
        listener: TcpListener,
        tls: Option<Arc<ServerTls>>,
        protocol: TlsProtocol,
        plain_answer: &'static [u8],
        stop: CancellationToken,
    ) -> Self {
        let handshakes = tls.map(|tls| Handshakes {
            rules: HandshakeRules {
                tls,
                protocol,
                plain_answer,
                lines: Arc::default(),
                stop,
            },
            opening: OpeningConnections::default(),
            running: JoinSet::new(),
        });
        Self {
            listener,
            handshakes,
        }
    }

    /// The next connection that is open. `refused` is called after the system refused one, which it
    /// does while too many files are open.
    pub(crate) async fn accept(&mut self, refused: impl Fn()) -> (ClientStream, SocketAddr) {
        loop {
            let accepted = match &mut self.handshakes {
                None => self.listener.accept().await,
                Some(handshakes) => tokio::select! {
                    Some(done) = handshakes.running.join_next(), if !handshakes.running.is_empty() => {
                        match done {
                            Ok(Some(open)) => return open,
                            Ok(None) | Err(_) => continue,
                        }
                    }
                    accepted = self.listener.accept() => accepted,
                },
            };
            match accepted {
                Ok((socket, address)) => {
                    if let Err(error) = socket.set_nodelay(true) {
                        tracing::debug!(%error, "TCP_NODELAY could not be set");
                    }
                    match &mut self.handshakes {
                        None => return (ClientStream::plain(socket), address),
                        Some(handshakes) => handshakes.begin(socket, address),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    refused();
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// The address on which it listens.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Handshakes {
    fn begin(&mut self, socket: TcpStream, address: SocketAddr) {
        let (rules, opening) = (self.rules.clone(), self.opening.enter());
        self.running.spawn(async move {
            let opened = tokio::select! {
                opened = timeout(HANDSHAKE_MAX, rules.open(socket)) => {
                    opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                }
                () = opening.must_end() => Err(io::Error::other("newer connections take its place")),
            };
            match opened {
                Ok(open) => open.map(|stream| (stream, address)),
                Err(error) => {
                    tell_failed(&rules.lines, &error, address);
                    None
                }
            }
        });
    }
}

/// Logs a handshake that failed, within limits.
pub(crate) fn tell_failed(lines: &ThrottledLines, error: &io::Error, peer: SocketAddr) {
    if lines.may_log("TLS handshakes that failed") {
        let reason = error.to_string();
        tracing::info!(reason, %peer, "a TLS handshake failed");
    }
}

impl HandshakeRules {
    /// Opens a connection; `None` if it was refused.
    async fn open(&self, mut socket: TcpStream) -> io::Result<Option<ClientStream>> {
        if begins_handshake(&socket).await? {
            return self.tls.encrypt(socket, self.protocol).await.map(Some);
        }
        if !self.tls.is_required() {
            return Ok(Some(ClientStream::plain(socket)));
        }
        socket.write_all(self.plain_answer).await?;
        socket.shutdown().await?;
        let mut linger = LingeringConnection::until(self.stop.clone());
        poll_fn(|context| linger.poll(&mut socket, context)).await;
        Ok(None)
    }
}
