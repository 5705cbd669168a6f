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
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Pause after a connection could not be accepted (too many files are open).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listening socket, with TLS if the server has it. Handshakes run beside each other.
pub(crate) struct ClientListener {
    listener: TcpListener,
    rules: HandshakeRules,
    /// Connections that open beside each other, where opening one takes time.
    handshakes: Option<Handshakes>,
}

/// Another protocol that is spoken on the port of a listener, and who serves its clients.
#[derive(Clone)]
pub(crate) struct SecondProtocol {
    /// Whether a client whose first byte is this one speaks it.
    pub speaks: fn(u8) -> bool,
    /// Takes its connections.
    pub clients: mpsc::Sender<(ClientStream, SocketAddr)>,
    /// How long a client may take to send its first byte.
    pub wait_max: Duration,
}

/// What every handshake of a listener needs.
#[derive(Clone)]
struct HandshakeRules {
    tls: Option<Arc<ServerTls>>,
    second: Option<SecondProtocol>,
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
        let has_tls = tls.is_some();
        let rules = HandshakeRules {
            tls,
            second: None,
            protocol,
            plain_answer,
            lines: Arc::default(),
            stop,
        };
        Self {
            listener,
            handshakes: has_tls.then(|| Handshakes::new(rules.clone())),
            rules,
        }
    }

    /// The same listener, where connections of another protocol go to whoever serves that.
    pub(crate) fn with_second(mut self, second: SecondProtocol) -> Self {
        self.rules.second = Some(second);
        self.handshakes = Some(Handshakes::new(self.rules.clone()));
        self
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
    fn new(rules: HandshakeRules) -> Self {
        Self {
            rules,
            opening: OpeningConnections::default(),
            running: JoinSet::new(),
        }
    }

    fn begin(&mut self, socket: TcpStream, address: SocketAddr) {
        let (rules, opening) = (self.rules.clone(), self.opening.enter());
        self.running.spawn(async move {
            let opened = tokio::select! {
                opened = rules.open_for_first(socket, address) => opened,
                () = opening.must_end() => Err(io::Error::other("newer connections take its place")),
            };
            match opened {
                Ok(open) => open.map(|stream| (stream, address)),
                Err(error) => {
                    rules.tell_failed(&error, address);
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
    /// Opens a connection of the listener's first protocol; `None` if it was refused, or goes to the
    /// second one.
    async fn open_for_first(
        &self,
        socket: TcpStream,
        address: SocketAddr,
    ) -> io::Result<Option<ClientStream>> {
        let opened = timeout(HANDSHAKE_MAX, self.open(socket)).await;
        let opened = opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let Some(second) = &self.second else {
            return Ok(opened);
        };
        let Some(mut stream) = opened else {
            return Ok(None);
        };
        match timeout(second.wait_max, stream.first_byte()).await {
            Ok(Ok(first)) if (second.speaks)(first) => {
                // Where nobody takes it any more, the server stops.
                let _ = second.clients.send((stream, address)).await;
                Ok(None)
            }
            Ok(Ok(_)) => Ok(Some(stream)),
            // A client that says nothing, or leaves, is none.
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Opens a connection; `None` if it was refused.
    async fn open(&self, mut socket: TcpStream) -> io::Result<Option<ClientStream>> {
        let Some(tls) = &self.tls else {
            return Ok(Some(ClientStream::plain(socket)));
        };
        if begins_handshake(&socket).await? {
            return tls.encrypt(socket, self.protocol).await.map(Some);
        }
        if !tls.is_required() {
            return Ok(Some(ClientStream::plain(socket)));
        }
        socket.write_all(self.plain_answer).await?;
        socket.shutdown().await?;
        let mut linger = LingeringConnection::until(self.stop.clone());
        poll_fn(|context| linger.poll(&mut socket, context)).await;
        Ok(None)
    }

    fn tell_failed(&self, error: &io::Error, peer: SocketAddr) {
        if self.tls.is_some() {
            tell_failed(&self.lines, error, peer);
        }
    }
}
