//! What the audit log tells of an event, as one line of JSON.

use crate::statement_text::AuditedAction;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::SystemTime;

/// Characters of a name, as a client gives it, that are logged.
const NAME_CHARS_MAX: usize = 200;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditOutcome {
    /// It was done.
    Done,
    /// The client may not do it.
    Refused,
    /// It failed for another reason.
    Failed,
}

/// A client's address, and the listener to which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    /// `http`, `postgres` or `flight`.
    pub listener: &'static str,
    /// The address.
    pub address: SocketAddr,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct AuditEvent<'a> {
    /// Whose; nobody's if a client is not known any more.
    pub client: Option<ClientAddress>,
    /// What was done.
    pub action: AuditedAction,
    /// What came of it.
    pub outcome: AuditOutcome,
    /// The user, as proved; for a login that failed, as said.
    pub user: &'a str,
    /// The database of the session.
    pub database: Option<&'a str>,
    /// The statement, without secrets, or the path of a request.
    pub statement: Option<&'a str>,
    /// The SQLSTATE of an error.
    pub error: Option<&'a str>,
}

impl<'a> AuditEvent<'a> {
    /// Something that a client did, and that was done.
    pub(crate) fn for_client(client: ClientAddress, action: AuditedAction, user: &'a str) -> Self {
        Self {
            client: Some(client),
            action,
            outcome: AuditOutcome::Done,
            user,
            database: None,
            statement: None,
            error: None,
        }
    }
}

#[derive(Serialize)]
struct AuditLine<'a> {
    time: String,
    action: AuditedAction,
    outcome: AuditOutcome,
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    listener: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// How many events were lost before a line.
#[derive(Serialize)]
pub(super) struct LostEvents {
    time: String,
    action: &'static str,
    count: u64,
}

impl LostEvents {
    /// The line that says so.
    pub(super) fn line(now: SystemTime, count: u64) -> String {
        json(&Self {
            time: text_of(now),
            action: "lost",
            count,
        })
    }
}

fn text_of(now: SystemTime) -> String {
    let now = chrono::DateTime::<chrono::Utc>::from(now);
    now.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn json(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(NAME_CHARS_MAX);
    &name[..end.map_or(name.len(), |(at, _)| at)]
}

/// The line of an event.
pub(super) fn line(now: SystemTime, event: &AuditEvent<'_>) -> String {
    json(&AuditLine {
        time: text_of(now),
        action: event.action,
        outcome: event.outcome,
        user: shortened(event.user),
        listener: event.client.map(|client| client.listener),
        address: event.client.map(|client| client.address),
        database: event.database.map(shortened),
        statement: event.statement,
        error: event.error,
    })
}
