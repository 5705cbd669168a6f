//! The login of a client: SCRAM-SHA-256, where there are users; SCRAM-SHA-256-PLUS on encrypted
//! connections, which proves that nobody is in between.
//!
//! A name without a user goes through the same exchange as one with a user, and fails at its end
//! with the same words.

use crate::audit::ClientAddress;
use crate::http::{NO_USERS, is_loopback};
use crate::postgres::PostgresShared;
use crate::postgres::error::PgError;
use crate::postgres::io::{ConnectionEnd, PostgresSocket, StatementHalt};
use crate::postgres::messages::{FrontendMessage, SaslInitialResponse, put_text};
use crate::slow_log::PEER;
use bytes::{BufMut, Bytes};
use marigram_access::{ChannelBinding, ScramExchange, ScramRefusal};
use marigram_service::Identity;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The mechanism without channel binding.
const SCRAM: &str = "SCRAM-SHA-256";
/// The mechanism with it; offered where the connection has a certificate to bind to.
const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Kinds of authentication requests (PostgreSQL's manual, "Message Formats").
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Lets a client prove that it is `user`.
///
/// # Errors
/// 28P01 if it does not, after a pause; 28000 if there are no users, and the client is on another
/// machine.
pub(super) async fn log_in(
    io: &mut PostgresSocket,
    shared: &PostgresShared,
    user: &str,
) -> Result<Identity, StatementHalt> {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let address = PEER.try_with(SocketAddr::ip).unwrap_or(unknown);
    let access = &shared.server.services.access;
    if access.is_open() {
        if is_loopback(address) {
            return Ok(Identity::unproved(user));
        }
        return Err(PgError::fatal("28000", NO_USERS).into());
    }
    let client = ClientAddress {
        listener: "postgres",
        address: PEER.try_with(|peer| *peer).unwrap_or((unknown, 0).into()),
    };
    // Taken before the exchange: a user who is created meanwhile is another one.
    let number = access.user_number(user);
    match exchange(io, shared, user).await? {
        Ok(()) => {
            let identity = Identity::of_password(user, number);
            shared.server.audit.note_login(client, &identity, false);
            Ok(identity)
        }
        Err(refusal) => {
            tracing::debug!(%refusal, "a login failed");
            shared.server.audit.note_failed_login(client, user);
            shared.server.failed_logins.slow_down(address).await;
            let message = match refusal {
                ScramRefusal::Password => {
                    format!("password authentication failed for user \"{user}\"")
                }
                malformed => malformed.to_string(),
            };
            Err(PgError::fatal("28P01", message).into())
        }
    }
}

/// The four messages of SCRAM.
async fn exchange(
    io: &mut PostgresSocket,
    shared: &PostgresShared,
    user: &str,
) -> Result<Result<(), ScramRefusal>, StatementHalt> {
    let end_point = io.stream().end_point();
    let channel = match &end_point {
        Some(hash) => ChannelBinding::ServerEndPoint(hash),
        None => ChannelBinding::None,
    };
    io.out.message(b'R', |body| {
        body.put_u32(SASL);
        if end_point.is_some() {
            put_text(body, SCRAM_PLUS);
        }
        put_text(body, SCRAM);
        body.put_u8(0);
    });
    let Some(initial) =
        SaslInitialResponse::read(answer(io).await?).map_err(ConnectionEnd::from)?
    else {
        let message = "it does not begin with an initial response";
        return Ok(Err(ScramRefusal::Malformed(message)));
    };
    let is_plus = match initial.mechanism.as_str() {
        SCRAM => false,
        SCRAM_PLUS if end_point.is_some() => true,
        _ => {
            let message = "its mechanism is not one that the server offers";
            return Ok(Err(ScramRefusal::Malformed(message)));
        }
    };
    let verifiers = shared.server.services.access.verifiers(user);
    let begun = ScramExchange::begin(&verifiers, &initial.data, is_plus, channel);
    let begun = match begun {
        Ok(begun) => begun,
        Err(refusal) => return Ok(Err(refusal)),
    };
    io.out.message(b'R', |body| {
        body.put_u32(SASL_CONTINUE);
        body.extend_from_slice(begun.challenge().as_bytes());
    });
    let proof = answer(io).await?;
    Ok(begun.finish(&proof).map(|last| {
        io.out.message(b'R', |body| {
            body.put_u32(SASL_FINAL);
            body.extend_from_slice(last.as_bytes());
        });
    }))
}

/// The client's next message, which must be an answer to the authentication request.
async fn answer(io: &mut PostgresSocket) -> Result<Bytes, StatementHalt> {
    io.flush().await?;
    match io.next().await? {
        FrontendMessage::Password(data) => Ok(data),
        _ => {
            let message = "the server expects an answer to its authentication request";
            Err(PgError::fatal("08P01", message).into())
        }
    }
}
