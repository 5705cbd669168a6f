//! The first messages of a connection, until it says who it is: requests for encryption, and the
//! startup message.
//!
//! Invariant: where TLS is required, nothing but requests to cancel is read from a connection without
//! it. Cancelling needs no encryption, as in PostgreSQL: a secret stands for one connection, which the
//! request ends, and clients send it as they please.

use crate::postgres::PostgresShared;
use crate::postgres::error::PgError;
use crate::postgres::io::{ConnectionEnd, PostgresSocket, StatementHalt};
use crate::postgres::messages::StartupMessage;
use crate::tls::{ServerTls, begins_handshake, tell_failed};
use bytes::BufMut;

/// What a client tells of itself.
pub(super) struct ClientStartup {
    /// Minor version of its protocol.
    pub minor: u16,
    /// Its parameters.
    pub parameters: Vec<(String, String)>,
}

impl ClientStartup {
    /// The value of a parameter that is not empty.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// Encrypts the connection if the client wants it, and reads its startup message; `None` if there is
/// no session to begin.
///
/// # Errors
/// 28000 if the client must use TLS and does not; 08P01 if it breaks the protocol.
pub(super) async fn read_startup(
    io: &mut PostgresSocket,
    shared: &PostgresShared,
) -> Result<Option<ClientStartup>, StatementHalt> {
    let tls = shared.tls.as_deref();
    let is_direct = match (tls, io.stream().socket()) {
        (Some(_), Some(socket)) => begins_handshake(socket)
            .await
            .map_err(ConnectionEnd::from)?,
        _ => false,
    };
    if let Some(tls) = tls.filter(|_| is_direct) {
        encrypt(io, shared, tls).await?;
        // A client of another protocol must not come so far that its bytes are read as messages.
        if !io.stream().has_named_protocol() {
            let message = "a connection that begins with TLS must name its protocol (ALPN)";
            return Err(PgError::fatal("08P01", message).into());
        }
    }
    loop {
        match io.opening().await? {
            StartupMessage::Tls | StartupMessage::Gss if io.has_input() => {
                let message = "data came before the answer about encryption";
                return Err(PgError::fatal("08P01", message).into());
            }
            StartupMessage::Tls => match tls {
                Some(_) if io.stream().is_encrypted() => {
                    let message = "the connection is encrypted already";
                    return Err(PgError::fatal("08P01", message).into());
                }
                Some(tls) => {
                    answer(io, b'S').await?;
                    encrypt(io, shared, tls).await?;
                }
                None => answer(io, b'N').await?,
            },
            StartupMessage::Gss => answer(io, b'N').await?,
            StartupMessage::Cancel { process, secret } => {
                shared.registry.cancel(process, secret);
                return Ok(None);
            }
            StartupMessage::Startup { minor, parameters } => {
                if tls.is_some_and(ServerTls::is_required) && !io.stream().is_encrypted() {
                    let message = "this server encrypts its connections: connect with \
                                   sslmode=require, or verify-full to know whom you talk to";
                    return Err(PgError::fatal("28000", message).into());
                }
                return Ok(Some(ClientStartup { minor, parameters }));
            }
        }
    }
}

async fn answer(io: &mut PostgresSocket, byte: u8) -> Result<(), ConnectionEnd> {
    io.out.bytes.put_u8(byte);
    io.flush().await
}

async fn encrypt(
    io: &mut PostgresSocket,
    shared: &PostgresShared,
    tls: &ServerTls,
) -> Result<(), ConnectionEnd> {
    let encrypted = io.encrypt(tls).await;
    if let (Err(error), Ok(peer)) = (&encrypted, crate::slow_log::PEER.try_with(|peer| *peer)) {
        tell_failed(&shared.tls_lines, error, peer);
    }
    Ok(encrypted?)
}
