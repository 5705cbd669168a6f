//! What all calls share, and what one call knows of its client.

use super::call_memory::CallMemory;
use super::fault::FlightFault;
use super::login_sessions::LoginSessions;
use super::running_statements::FlightStatements;
use crate::admission::RequestPermit;
use crate::audit::{AuditEvent, AuditOutcome, AuditedAction, ClientAddress};
use crate::http::{Credentials, NO_USERS, StopTime, is_loopback};
use crate::listener::ServerState;
use axum::http::{HeaderMap, Uri};
use marigram_access::{DatabasePrivileges, PasswordVerifiers};
use marigram_service::{DEFAULT_DATABASE, Identity, ServiceError, Session};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tonic::{Code, Request, Response, Status};

/// Headers that name the database, the first of them first.
const DATABASE_HEADERS: [&str; 5] = [
    "database",
    "bucket",
    "iox-namespace-name",
    "bucket-name",
    "catalog",
];

/// State that the calls share.
pub(super) struct FlightShared {
    pub server: ServerState,
    pub sessions: LoginSessions,
    pub running: FlightStatements,
}

/// A client of this listener, for the audit log.
fn client_at(address: SocketAddr) -> ClientAddress {
    ClientAddress {
        listener: "flight",
        address,
    }
}

/// With what a client came to a handshake.
#[derive(Clone)]
pub(super) enum HandshakeProof {
    /// A token, which it keeps: a handshake does not prolong it.
    Token(String),
    /// A name and a password, and what they were checked against; `None` where there are no users.
    Password(Option<PasswordVerifiers>),
}

fn handshake_proof(
    credentials: Credentials,
    verifiers: Option<PasswordVerifiers>,
) -> HandshakeProof {
    match credentials {
        Credentials::Token(token) => HandshakeProof::Token(token),
        _ => HandshakeProof::Password(verifiers),
    }
}

impl FlightShared {
    /// Who sends a request with these headers from `address`; with what else a handshake needs, if
    /// it is one.
    ///
    /// # Errors
    /// `Unauthenticated` if there are users and it does not prove to be one; `PermissionDenied` if
    /// there are none and it comes from another machine. Wrong credentials are answered late.
    pub(super) async fn authenticate(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        address: SocketAddr,
    ) -> Result<(Identity, Option<HandshakeProof>), FlightFault> {
        let access = &self.server.services.access;
        let is_login = uri.path().ends_with("/Handshake");
        let credentials = Credentials::new(uri, headers);
        if access.is_open() {
            if !is_loopback(address.ip()) {
                return Err(FlightFault::new(Code::PermissionDenied, "42501", NO_USERS));
            }
            let known = match &credentials {
                Credentials::Token(token) => self.sessions.find(token, Instant::now(), |_| None),
                _ => None,
            };
            let identity = known.unwrap_or_else(|| Identity::unproved(credentials.user()));
            return Ok((
                identity,
                is_login.then(|| handshake_proof(credentials, None)),
            ));
        }
        // Taken before the check, so that a change of the password in between ends the session.
        let verifiers = match &credentials {
            Credentials::Password(user, _) if is_login => Some(access.verifiers(user)),
            _ => None,
        };
        let found = self.check(&credentials, is_login).await;
        let client = client_at(address);
        match &found {
            Ok(identity) => self.server.audit.note_login(client, identity, true),
            // Who sends nothing guesses nothing.
            Err(ServiceError::Unauthenticated(_)) if credentials != Credentials::None => {
                self.server
                    .audit
                    .note_failed_login(client, credentials.user());
                self.server.failed_logins.slow_down(address.ip()).await;
            }
            Err(_) => {}
        }
        let proof = is_login.then(|| handshake_proof(credentials, verifiers));
        Ok((found?, proof))
    }

    /// Who has these credentials, where there are users.
    async fn check(
        &self,
        credentials: &Credentials,
        is_login: bool,
    ) -> Result<Identity, ServiceError> {
        let wrong = |message: &str| Err(ServiceError::Unauthenticated(message.to_owned()));
        match credentials {
            Credentials::None if is_login => wrong(
                "this server has users: send a name and a password by Basic in the header \
                 authorization",
            ),
            Credentials::None => wrong(
                "this server has users: send the header authorization with a token, or with what \
                 the handshake gave",
            ),
            Credentials::Password(user, password) => {
                self.server
                    .services
                    .access
                    .check_password(user, password)
                    .await
            }
            Credentials::Token(text) => match self.identity_of_token(text) {
                Some(identity) => Ok(identity),
                None => wrong("the token is wrong or has expired"),
            },
            Credentials::WebToken { .. } => wrong("Arrow Flight does not accept JSON Web Tokens"),
            Credentials::Cookie(_) | Credentials::Unreadable => {
                wrong("the header authorization is not Basic, Token or Bearer")
            }
        }
    }

    fn identity_of_token(&self, text: &str) -> Option<Identity> {
        let access = &self.server.services.access;
        if !LoginSessions::is_token(text) {
            return access.check_token(text);
        }
        let verifiers = |user: &str| Some(access.verifiers(user));
        let identity = self.sessions.find(text, Instant::now(), verifiers)?;
        access.rights(&identity).is_ok().then_some(identity)
    }

    /// Counts a call that ended with an error, and logs it.
    pub(super) fn count(
        &self,
        route: &'static str,
        fault: &FlightFault,
        peer: SocketAddr,
        begin: Instant,
    ) {
        let status = fault.http_status();
        self.server.telemetry.request(route, status, begin);
        let failures = &self.server.telemetry.failures;
        // What is not offered is no fault of the server; some clients ask it with each connection.
        if status >= 500 && status != 501 {
            failures.note(route, status, &fault.to_failure());
        } else if !matches!(status, 400 | 404 | 409 | 499 | 501) {
            failures.note_refused(route, status, &fault.to_failure(), peer);
        }
    }
}

/// The client of a call, as the gate found it.
#[derive(Clone)]
pub(super) struct FlightCaller {
    pub identity: Identity,
    /// What it came with, if the call is a handshake.
    pub proof: Option<HandshakeProof>,
    pub peer: SocketAddr,
    pub memory: CallMemory,
}

/// One call.
pub(super) struct FlightCall {
    pub shared: Arc<FlightShared>,
    pub identity: Identity,
    /// What the client came with, if the call is a handshake.
    pub proof: Option<HandshakeProof>,
    pub memory: CallMemory,
    /// The database that the headers name.
    database: Option<String>,
    peer: SocketAddr,
    route: &'static str,
    begin: Instant,
}

impl FlightCall {
    /// A call that begins now.
    ///
    /// # Errors
    /// If it did not pass the gate.
    pub(super) fn new<T>(
        shared: &Arc<FlightShared>,
        route: &'static str,
        request: &Request<T>,
    ) -> Result<Self, Status> {
        let Some(caller) = request.extensions().get::<FlightCaller>().cloned() else {
            return Err(Status::internal("the call did not pass the gate"));
        };
        let header = |name: &&str| request.metadata().get(*name)?.to_str().ok();
        let database = DATABASE_HEADERS.iter().find_map(header);
        let database = database.filter(|name| !name.is_empty());
        Ok(Self {
            shared: Arc::clone(shared),
            identity: caller.identity,
            proof: caller.proof,
            memory: caller.memory,
            database: database.map(str::to_owned),
            peer: caller.peer,
            route,
            begin: Instant::now(),
        })
    }

    /// Counts the call and turns its result into an answer.
    pub(super) fn finish<T>(&self, result: Result<T, FlightFault>) -> Result<Response<T>, Status> {
        match result {
            Ok(answer) => {
                self.shared
                    .server
                    .telemetry
                    .request(self.route, 200, self.begin);
                Ok(Response::new(answer))
            }
            Err(fault) => {
                self.shared.count(self.route, &fault, self.peer, self.begin);
                Err(fault.to_status())
            }
        }
    }

    /// Counts stored rows.
    pub(super) fn stored(&self, rows: usize) {
        self.shared.server.telemetry.rows(self.route, rows as u64);
    }

    /// The right to run.
    ///
    /// # Errors
    /// If too many requests run.
    pub(super) fn enter(&self) -> Result<RequestPermit, FlightFault> {
        self.shared
            .server
            .gate
            .enter()
            .ok_or_else(FlightFault::too_many)
    }

    /// A session in `database`; where it is empty, in the one of the headers or the client's first.
    ///
    /// # Errors
    /// As `Query::session`.
    pub(super) async fn session(&self, database: &str) -> Result<Session, FlightFault> {
        let query = &self.shared.server.services.query;
        let database = Some(database).filter(|name| !name.is_empty());
        let database = database.or(self.database.as_deref());
        let mut session = query.session(database, &self.identity).await?;
        session.statement_timeout = self.shared.server.config.statement_timeout();
        Ok(session)
    }

    /// The name of the database for what needs no session.
    pub(super) fn database_name<'a>(&'a self, database: &'a str) -> &'a str {
        let database = Some(database).filter(|name| !name.is_empty());
        let database = database.or(self.database.as_deref());
        database.unwrap_or(DEFAULT_DATABASE)
    }

    /// When a statement that begins now must stop.
    pub(super) fn stop_time(&self) -> StopTime {
        let timeout = self.shared.server.config.statement_timeout();
        StopTime::after(timeout, self.shared.server.kill.clone())
    }

    /// Refuses a client that lacks `privileges` in a database.
    ///
    /// # Errors
    /// `PermissionDenied`.
    pub(super) fn check_database(
        &self,
        database: &str,
        privileges: DatabasePrivileges,
    ) -> Result<(), FlightFault> {
        let access = &self.shared.server.services.access;
        if access.rights(&self.identity)?.allow(database, privileges) {
            return Ok(());
        }
        self.shared.server.audit.note(&AuditEvent {
            outcome: AuditOutcome::Refused,
            database: Some(database),
            statement: Some(self.route),
            ..AuditEvent::for_client(
                client_at(self.peer),
                AuditedAction::Request,
                &self.identity.user,
            )
        });
        let message =
            format!("permission denied: this needs {privileges} on database \"{database}\"");
        Err(ServiceError::Forbidden(message).into())
    }
}
