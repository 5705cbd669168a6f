//! `openSession`: who the client is, and what its session is like.

use super::{IotDbShared, LISTENER};
use crate::audit::ClientAddress;
use crate::http::{NO_USERS, is_loopback};
use marigram_iotdb::{IotDbFault, OpenSessionRequest, StatusCode, TreeSqlContext};
use marigram_service::{Identity, ServiceError};
use std::net::SocketAddr;

/// A session.
pub(super) struct OpenedSession {
    /// Its number.
    pub(super) id: i64,
    /// The client.
    pub(super) identity: Identity,
    /// Its time zone, as it calls it.
    pub(super) zone: String,
    /// When it began, ms.
    pub(super) login_ms: i64,
}

/// Lets a client prove who it is.
///
/// # Errors
/// If it does not, after a pause; or if it wants a session that there is not.
pub(super) async fn log_in(
    shared: &IotDbShared,
    peer: SocketAddr,
    request: &OpenSessionRequest<'_>,
) -> Result<Identity, IotDbFault> {
    check_request(request)?;
    let access = &shared.server.services.access;
    if access.is_open() {
        if is_loopback(peer.ip()) {
            return Ok(Identity::unproved(request.username));
        }
        return Err(IotDbFault::new(StatusCode::WRONG_LOGIN, NO_USERS));
    }
    let client = ClientAddress {
        listener: LISTENER.setting,
        address: peer,
    };
    let (user, password) = (request.username, request.password.unwrap_or_default());
    match access.check_password(user, password).await {
        Ok(identity) => {
            shared.server.audit.note_login(client, &identity, false);
            Ok(identity)
        }
        Err(error) => {
            if matches!(error, ServiceError::Unauthenticated(_)) {
                shared.server.audit.note_failed_login(client, user);
                shared.server.failed_logins.slow_down(peer.ip()).await;
            }
            let code = match error {
                ServiceError::Busy { .. } => StatusCode::TOO_MANY_QUERIES,
                _ => StatusCode::WRONG_LOGIN,
            };
            Err(IotDbFault::new(
                code,
                format!("Authentication failed. {error}"),
            ))
        }
    }
}

/// Checks that there is a session as the client wants it.
fn check_request(request: &OpenSessionRequest<'_>) -> Result<(), IotDbFault> {
    check_zone(request.zone)?;
    let mut settings = request.configuration.iter().flat_map(|map| &map.0);
    let dialect = settings.find(|(name, _)| *name == "sql_dialect");
    match dialect {
        Some((_, dialect)) if !dialect.eq_ignore_ascii_case("tree") => Err(IotDbFault::new(
            StatusCode::UNSUPPORTED_DIALECT,
            format!(
                "the SQL dialect '{dialect}' is not supported: use 'tree', or SQL over PostgreSQL's protocol"
            ),
        )),
        _ => Ok(()),
    }
}

/// Checks that a time zone exists.
///
/// # Errors
/// If it does not.
pub(super) fn check_zone(zone: &str) -> Result<(), IotDbFault> {
    TreeSqlContext::for_zone(0, zone).map(drop)
}
