//! The ticket of InfluxDB 3's clients: a JSON object with a query.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a ticket cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// It is not the JSON of a query.
    #[error("the ticket is not the JSON of a query: {0}")]
    Json(String),
    /// A member is missing.
    #[error("the ticket has no '{0}'")]
    Missing(&'static str),
}

/// A query as InfluxDB 3's clients send it: `{"database", "sql_query", "query_type", "params"}`.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTicket {
    /// The database.
    pub database: String,
    /// The text of the query.
    pub text: String,
    /// Its language, in lower case: `sql` unless the ticket names another one.
    pub language: String,
    /// The values of `$name` in the text.
    pub params: Map<String, Value>,
}

#[derive(Deserialize)]
struct TicketMembers {
    #[serde(alias = "namespace_name", alias = "bucket", default)]
    database: String,
    #[serde(default)]
    sql_query: Option<String>,
    #[serde(default)]
    query_type: Option<String>,
    #[serde(default)]
    params: Option<Map<String, Value>>,
}

impl QueryTicket {
    /// Whether a ticket is one of these: those of Flight SQL do not begin with a brace.
    #[must_use]
    pub fn is_json(ticket: &[u8]) -> bool {
        ticket.trim_ascii_start().first() == Some(&b'{')
    }

    /// Reads a ticket.
    ///
    /// # Errors
    /// If it is not JSON, or names no database or query.
    pub fn read(ticket: &[u8]) -> Result<Self, TicketError> {
        let members: TicketMembers =
            serde_json::from_slice(ticket).map_err(|error| TicketError::Json(error.to_string()))?;
        if members.database.is_empty() {
            return Err(TicketError::Missing("database"));
        }
        Ok(Self {
            database: members.database,
            text: members.sql_query.ok_or(TicketError::Missing("sql_query"))?,
            language: members
                .query_type
                .map_or_else(|| "sql".to_owned(), |name| name.to_ascii_lowercase()),
            params: members.params.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_of_influxdbs_clients_are_read() {
        let ticket = br#"{"database": "plant", "sql_query": "SELECT $n", "query_type": "InfluxQL",
            "params": {"n": 1}, "is_debug": false}"#;
        assert!(QueryTicket::is_json(ticket));
        let read = QueryTicket::read(ticket).unwrap();
        assert_eq!(
            (&*read.database, &*read.text, &*read.language),
            ("plant", "SELECT $n", "influxql")
        );
        assert_eq!(read.params["n"], Value::from(1));
        let least = QueryTicket::read(br#"{"database":"d","sql_query":"q"}"#).unwrap();
        assert_eq!((&*least.language, least.params.len()), ("sql", 0));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |ticket: &str| QueryTicket::read(ticket.as_bytes()).unwrap_err();
        assert_eq!(
            error(r#"{"sql_query":"q"}"#),
            TicketError::Missing("database")
        );
        assert_eq!(
            error(r#"{"database":"d"}"#),
            TicketError::Missing("sql_query")
        );
        assert!(matches!(error("{"), TicketError::Json(_)));
        assert!(matches!(error(&"[".repeat(100_000)), TicketError::Json(_)));
        assert!(!QueryTicket::is_json(b"\n\x05"));
    }
}
