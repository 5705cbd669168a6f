//! TLS, the same for every listener: which certificate the server shows, how a connection becomes an
//! encrypted one, and how long it may take for that.
//!
//! [`ServerTls`] holds the certificate, which changes while the server runs. [`ClientListener`] accepts
//! connections for a protocol whose connections are encrypted from their first byte;
//! [`ClientStream`] is a connection of either kind.
//!
//! Invariants: a connection uses one certificate from its handshake to its end, and a certificate that
//! cannot be read never replaces one that works. A connection that is not open yet holds none of the
//! places of `connections_max`.

mod certificate;
mod listener;
mod openings;
mod settings;
mod stream;

pub(crate) use certificate::TlsError;
pub(crate) use listener::{ClientListener, SecondProtocol, tell_failed};
pub(crate) use openings::OpeningConnections;
pub use settings::{ClientCertificates, TlsSettings, TlsVersion};
pub(crate) use stream::ClientStream;

use certificate::TlsIdentity;
use marigram_service::run_blocking;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long a client may take for its handshake.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// How often the files are compared with what was read.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The first byte of a TLS connection: the type of a record with a handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

/// A protocol over TLS, by its name in ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsProtocol {
    /// HTTP/1.1.
    Http,
    /// PostgreSQL's.
    Postgres,
    /// Arrow Flight: gRPC over HTTP/2.
    Flight,
    /// IoTDB's, which has no registered name.
    IotDb,
}

impl TlsProtocol {
    fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http => b"http/1.1",
            Self::Postgres => b"postgresql",
            Self::Flight => b"h2",
            Self::IotDb => b"iotdb",
        }
    }
}

/// The server's side of TLS, shared by all listeners.
#[derive(Debug)]
pub(crate) struct ServerTls {
    settings: TlsSettings,
    current: RwLock<Arc<TlsIdentity>>,
    /// Digest of files that could not be used, so that the log says so once.
    refused: Mutex<Option<[u8; 32]>>,
}

impl ServerTls {
    /// Reads the files that `settings` name.
    ///
    /// # Errors
    /// If a file cannot be read, or certificate and key do not belong together.
    pub(crate) fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let identity = TlsIdentity::read(&settings)?;
        Ok(Self {
            settings,
            current: RwLock::new(Arc::new(identity)),
            refused: Mutex::default(),
        })
    }

    /// Reads the files again; new connections use what they hold now. Returns whether that is
    /// something new.
    ///
    /// # Errors
    /// As [`load`](Self::load); what worked before stays in use.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        let read = TlsIdentity::read(&self.settings)?;
        if read.digest == self.identity().digest {
            return Ok(false);
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        Ok(true)
    }

    /// Reads the files again and logs what came of it. Blocks.
    pub(crate) fn reload_and_log(&self) {
        match self.reload() {
            Ok(false) => {}
            Ok(true) => tracing::info!("new connections use the changed TLS certificate"),
            Err(error) => {
                let digest = Some(error.digest);
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                if *refused != digest {
                    *refused = digest;
                    let reason = error.to_string();
                    tracing::warn!(
                        reason,
                        "the TLS certificate was not read again; the old one stays in use"
                    );
                }
            }
        }
    }

    /// Reads the files again whenever they change, until `stop` fires.
    pub(crate) async fn follow_files(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.reload_in_background().await;
        }
    }

    /// Reads the files again on a thread that may block, and logs what came of it.
    pub(crate) async fn reload_in_background(self: &Arc<Self>) {
        let tls = Arc::clone(self);
        if let Err(error) = run_blocking(move || tls.reload_and_log()).await {
            tracing::warn!(%error, "the TLS certificate was not read again");
        }
    }

    /// Whether clients must use TLS.
    pub(crate) fn is_required(&self) -> bool {
        self.settings.is_required
    }

    fn identity(&self) -> Arc<TlsIdentity> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Performs the handshake of a connection, within [`HANDSHAKE_MAX`].
    ///
    /// # Errors
    /// If the client breaks off, takes too long, or does not agree with the server on versions,
    /// protocols or certificates.
    pub(crate) async fn encrypt(
        &self,
        socket: TcpStream,
        protocol: TlsProtocol,
    ) -> io::Result<ClientStream> {
        let identity = self.identity();
        let mut config = identity.config.clone();
        config.alpn_protocols = vec![protocol.alpn().to_vec()];
        let accept = TlsAcceptor::from(Arc::new(config)).accept(socket);
        match tokio::time::timeout(HANDSHAKE_MAX, accept).await {
            Ok(stream) => Ok(ClientStream::encrypted(stream?, identity.end_point.clone())),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "the handshake took longer than {} s",
                    HANDSHAKE_MAX.as_secs()
                ),
            )),
        }
    }
}

/// Whether a client begins with a TLS handshake; waits for its first byte, and does not take it.
pub(crate) async fn begins_handshake(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let read = socket.peek(&mut first).await?;
    Ok(read == 1 && first[0] == HANDSHAKE_RECORD)
}
