//! What a handler gets with a request: the shared state, and who sent the request.

use super::HttpShared;
use super::credentials::{Credentials, NOBODY};
use super::error::HttpError;
use crate::audit::ClientAddress;
use axum::extract::{FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_service::{Identity, ServiceError};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The shared state, with the identity of the request's client.
pub(super) struct RequestContext(pub HttpShared);

impl FromRequestParts<HttpShared> for RequestContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &HttpShared) -> Result<Self, Infallible> {
        let identity = parts.extensions.get::<Identity>().cloned();
        Ok(Self(HttpShared {
            identity: identity.unwrap_or_else(|| Identity::unproved(NOBODY)),
            ..state.clone()
        }))
    }
}

/// Paths that need no credentials: they tell nothing of data or users.
const OPEN_PATHS: [&str; 6] = [
    "/health",
    "/ping",
    "/ready",
    "/api/v2/health",
    "/api/v2/ready",
    "/api/v2/setup",
];

/// The credentials of a request; `None` if its path needs none.
pub(super) fn needed_credentials(request: &Request) -> Option<Credentials> {
    let is_open = OPEN_PATHS.contains(&request.uri().path());
    (!is_open).then(|| Credentials::new(request.uri(), request.headers()))
}

impl HttpShared {
    /// Who sends a request with these credentials from `peer`; `None` stands for a path that needs
    /// none.
    ///
    /// # Errors
    /// 401 if there are users and it does not prove to be one; 403 if there are none and it comes
    /// from another machine. A wrong password is answered late.
    pub(super) async fn authenticate(
        &self,
        credentials: Option<Credentials>,
        peer: SocketAddr,
    ) -> Result<Identity, HttpError> {
        let access = &self.server.services.access;
        let Some(credentials) = credentials else {
            return Ok(Identity::unproved(NOBODY));
        };
        if access.is_open() {
            if is_loopback(peer.ip()) {
                return Ok(Identity::unproved(credentials.user()));
            }
            return Err(HttpError::new(StatusCode::FORBIDDEN, "forbidden", NO_USERS));
        }
        let found = match &credentials {
            Credentials::None => {
                let message = "unable to parse authentication credentials: this server has users; \
                               send a name and a password, or a token";
                return Err(HttpError::unauthorized(message));
            }
            Credentials::Password(user, password) => access.check_password(user, password).await,
            Credentials::Token(text) => access
                .check_token(text)
                .ok_or_else(|| refused("the token is wrong or has expired")),
            Credentials::WebToken { text, .. } => self.check_web_token(text),
            Credentials::Cookie(cookie) => self.check_cookie(cookie),
            Credentials::Unreadable => Err(refused(
                "the header Authorization is not Basic, Token or Bearer",
            )),
        };
        let client = ClientAddress {
            listener: self.listener,
            address: peer,
        };
        match &found {
            Ok(identity) => self.server.audit.note_login(client, identity, true),
            Err(ServiceError::Unauthenticated(_)) => {
                self.server
                    .audit
                    .note_failed_login(client, credentials.user());
                self.server.failed_logins.slow_down(peer.ip()).await;
            }
            Err(_) => {}
        }
        found.map_err(HttpError::from)
    }

    /// Whose JSON Web Token this is.
    fn check_web_token(&self, text: &str) -> Result<Identity, ServiceError> {
        let Some(key) = &self.server.config.web_token_key else {
            return Err(refused(
                "JSON Web Tokens are not accepted: this server has no jwt_secret",
            ));
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.map_or(0.0, |now| now.as_secs_f64());
        let user = key
            .verify(text, now_s)
            .map_err(|refusal| refused(&refusal.to_string()))?;
        self.user_who_may_log_in(&user)
    }

    /// Whose cookie this is.
    fn check_cookie(&self, cookie: &str) -> Result<Identity, ServiceError> {
        let access = &self.server.services.access;
        let verifiers = |user: &str| access.verifiers(user);
        match self.sessions.user_of(cookie, Instant::now(), verifiers) {
            Some(user) => self.user_who_may_log_in(&user),
            None => Err(refused("the session has expired: sign in again")),
        }
    }

    fn user_who_may_log_in(&self, user: &str) -> Result<Identity, ServiceError> {
        let access = &self.server.services.access;
        let identity = Identity::of_password(user, access.user_number(user));
        match access.rights(&identity) {
            Ok(_) => Ok(identity),
            Err(_) => Err(refused("the user of the token or session may not log in")),
        }
    }

    /// What the client may do.
    pub(super) fn rights(&self) -> Result<Arc<AccessRights>, HttpError> {
        Ok(self.server.services.access.rights(&self.identity)?)
    }

    /// Refuses a client that lacks one of `privileges` in a database.
    pub(super) fn check_database(
        &self,
        database: &str,
        privileges: DatabasePrivileges,
    ) -> Result<(), HttpError> {
        if self.rights()?.allow(database, privileges) {
            return Ok(());
        }
        let user = &self.identity.user;
        let message = format!(
            "\"{user}\" user is not authorized: this needs {privileges} on database \"{database}\""
        );
        Err(HttpError::new(StatusCode::FORBIDDEN, "forbidden", message))
    }

    /// Refuses a client that is no administrator.
    pub(super) fn check_administrator(&self, what: &str) -> Result<(), HttpError> {
        if self.rights()?.is_administrator {
            return Ok(());
        }
        let message = format!("permission denied: {what} needs an administrator");
        Err(HttpError::new(StatusCode::FORBIDDEN, "forbidden", message))
    }
}

/// What clients from other machines are told where there are no users.
pub(crate) const NO_USERS: &str = "this server has no administrator, so it serves clients on its own machine only; \
                            create one there: CREATE USER name WITH PASSWORD '…' SUPERUSER";

/// Whether an address is of this machine.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn refused(message: &str) -> ServiceError {
    ServiceError::Unauthenticated(message.to_owned())
}
