//! Session variables, as `SET`, `RESET` and `SHOW` use them.
//!
//! Most of them exist because PostgreSQL's clients send them. Only the timeouts, the database, the time zone,
//! and the modes of transactions affect statements.

use crate::error::{SqlError, SqlResult};
use crate::tables::reference::block::TransactionBlock;
use marigram_functions::POSTGRES_VERSION;
use marigram_functions::duration::parse_interval;
use marigram_pgtext::{session_zone, zone_of_seconds};
use marigram_service::{IDLE_IN_TRANSACTION_TIMEOUT, Session};
use std::sync::Arc;
use std::time::Duration;

/// Variables with a fixed value: (name, displayed value, PostgreSQL's spelling of the name).
const FIXED: [(&str, &str); 34] = [
    ("application_name", ""),
    ("backslash_quote", "safe_encoding"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("check_function_bodies", "on"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("default_transaction_deferrable", "off"),
    ("enable_seqscan", "on"),
    ("escape_string_warning", "on"),
    ("extra_float_digits", "1"),
    ("gin_fuzzy_search_limit", "0"),
    ("idle_session_timeout", "0"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("jit", "off"),
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "255"),
    ("row_security", "on"),
    ("search_path", "public"),
    ("server_encoding", "UTF8"),
    ("server_version", POSTGRES_VERSION),
    ("server_version_num", "160006"),
    ("standard_conforming_strings", "on"),
    ("synchronize_seqscans", "on"),
    ("transaction_timeout", "0"),
    ("work_mem", "4MB"),
    ("xmloption", "content"),
];

/// Variables that decide how values are written, and the one form that they have here: a client that
/// asked for another would misread the answers.
const FORMS: [(&str, &str); 4] = [
    ("bytea_output", "hex"),
    ("datestyle", "iso"),
    ("intervalstyle", "postgres"),
    ("standard_conforming_strings", "on"),
];

/// Variables that the session stores.
pub(crate) const KEPT: [&str; 8] = [
    "timezone",
    "statement_timeout",
    "database",
    DEFAULT_READ_ONLY,
    READ_ONLY,
    DEFAULT_ISOLATION,
    ISOLATION,
    IDLE_IN_TRANSACTION,
];
const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";
const READ_ONLY: &str = "transaction_read_only";
const DEFAULT_ISOLATION: &str = "default_transaction_isolation";
const ISOLATION: &str = "transaction_isolation";
const IDLE_IN_TRANSACTION: &str = "idle_in_transaction_session_timeout";

fn on_or_off(is_on: bool) -> String {
    (if is_on { "on" } else { "off" }).to_owned()
}

/// A truth value as PostgreSQL reads it; off by default.
fn is_on(variable: &str, value: Option<&str>) -> SqlResult<bool> {
    match value.unwrap_or("off").to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Ok(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Ok(false),
        other => {
            let message =
                format!("parameter \"{variable}\" requires a Boolean value, not '{other}'");
            Err(SqlError::named("22023", variable, message))
        }
    }
}

fn unknown(variable: &str) -> SqlError {
    let known = FIXED.iter().map(|(name, _)| *name).chain(KEPT);
    SqlError::unknown("42704", "session variable", variable, known)
}

/// Sets a variable; `None` sets its default.
///
/// # Errors
/// If there is no such variable, or it cannot have that value.
pub(crate) fn set(session: &mut Session, variable: &str, value: Option<&str>) -> SqlResult<()> {
    match variable {
        "timezone" => session.time_zone = time_zone(value.unwrap_or("UTC"))?,
        "statement_timeout" => session.statement_timeout = timeout(value.unwrap_or("0"))?,
        DEFAULT_READ_ONLY => session.default_transaction_read_only = is_on(variable, value)?,
        // Outside a block there is no transaction after the statement.
        READ_ONLY => {
            let read_only = is_on(variable, value)?;
            session.transaction_read_only = session.transaction_read_only.map(|_| read_only);
        }
        DEFAULT_ISOLATION => session.default_serializable = is_serializable(value)?,
        // Outside a block there is no transaction after the statement.
        ISOLATION => {
            if let Some(block) = block_of(session) {
                block.set_serializable(is_serializable(value)?)?;
            }
        }
        IDLE_IN_TRANSACTION => {
            session.idle_in_transaction_timeout = match value {
                Some(value) => timeout(value)?,
                None => Some(IDLE_IN_TRANSACTION_TIMEOUT),
            };
        }
        "all" if value.is_none() => {
            let variables = [
                "timezone",
                "statement_timeout",
                DEFAULT_READ_ONLY,
                DEFAULT_ISOLATION,
                IDLE_IN_TRANSACTION,
            ];
            for variable in variables {
                set(session, variable, None)?;
            }
        }
        "session_authorization" | "role" => become_user(session, value)?,
        "client_encoding" => {
            // As in PostgreSQL, only letters and digits count: asyncpg sends the quotation marks, too.
            let encoding = value.unwrap_or("UTF8").to_uppercase();
            let encoding = encoding.replace(|c: char| !c.is_ascii_alphanumeric(), "");
            if !["UTF8", "UNICODE", "SQLASCII"].contains(&encoding.as_str()) {
                let message = format!(
                    "client_encoding is UTF8, not {}: texts are not converted; let the client convert \
                     them (PGCLIENTENCODING=UTF8)",
                    value.unwrap_or_default()
                );
                return Err(SqlError::named("22023", variable, message));
            }
        }
        _ if FORMS.iter().any(|(name, _)| *name == variable) => check_form(variable, value)?,
        // A name with a dot belongs to an extension; PostgreSQL accepts any.
        _ if variable.contains('.') || FIXED.iter().any(|(name, _)| *name == variable) => {}
        _ => return Err(unknown(variable)),
    }
    Ok(())
}

/// A variable's value.
///
/// # Errors
/// If there is no such variable.
pub(crate) fn get(session: &Session, variable: &str) -> SqlResult<String> {
    match variable {
        "timezone" => Ok(session.time_zone.clone()),
        "database" => Ok(session.database.clone()),
        DEFAULT_READ_ONLY => Ok(on_or_off(session.default_transaction_read_only)),
        READ_ONLY => Ok(on_or_off(session.is_transaction_read_only())),
        "statement_timeout" => Ok(shown_timeout(session.statement_timeout)),
        IDLE_IN_TRANSACTION => Ok(shown_timeout(session.idle_in_transaction_timeout)),
        DEFAULT_ISOLATION => Ok(shown_level(session.default_serializable)),
        ISOLATION => {
            let block = block_of(session);
            let is_serializable = block.map(|block| block.is_serializable());
            Ok(shown_level(
                is_serializable.unwrap_or(session.default_serializable),
            ))
        }
        _ => {
            let fixed = FIXED.iter().find(|(name, _)| *name == variable);
            fixed
                .map(|(_, value)| (*value).to_owned())
                .ok_or_else(|| unknown(variable))
        }
    }
}

fn shown_timeout(timeout: Option<Duration>) -> String {
    match timeout {
        Some(timeout) => format!("{}ms", timeout.as_millis()),
        None => "0".to_owned(),
    }
}

fn shown_level(is_serializable: bool) -> String {
    let level = if is_serializable {
        "serializable"
    } else {
        "read committed"
    };
    level.to_owned()
}

/// Whether an isolation level means one snapshot.
fn is_serializable(level: Option<&str>) -> SqlResult<bool> {
    match level.unwrap_or("read committed").to_lowercase().as_str() {
        "serializable" | "repeatable read" => Ok(true),
        "read committed" | "read uncommitted" => Ok(false),
        other => {
            let message = format!("'{other}' is not an isolation level");
            Err(SqlError::named("22023", other, message))
        }
    }
}

/// The transaction block of a session.
fn block_of(session: &Session) -> Option<Arc<TransactionBlock>> {
    session.transaction.as_ref()?.downcast()
}

/// Every variable and its value, by name.
pub(crate) fn all(session: &Session) -> Vec<(&'static str, String)> {
    let names = FIXED.iter().map(|(name, _)| *name).chain(KEPT);
    let mut all: Vec<_> = names
        .filter_map(|name| Some((name, get(session, name).ok()?)))
        .collect();
    all.sort_unstable();
    all
}

/// Refuses a form of values that is not the one that Marigram writes.
fn check_form(variable: &str, value: Option<&str>) -> SqlResult<()> {
    let form = FORMS.iter().find(|(name, _)| *name == variable);
    let (Some((_, form)), Some(value)) = (form, value) else {
        return Ok(());
    };
    // DateStyle also names the order of day and month in texts such as 05/04/2026.
    let mut parts = value.split([',', ' ']).map(str::to_lowercase);
    let other_orders = ["dmy", "ymd", "euro", "european"];
    if variable == "datestyle" && parts.any(|part| other_orders.contains(&part.as_str())) {
        let message = format!(
            "datestyle is always ISO, MDY, not '{value}': 05/04/2026 is 4 May; write 2026-04-05"
        );
        return Err(SqlError::named("22023", variable, message));
    }
    let first = value.split([',', ' ']).next().unwrap_or_default();
    let first = first.to_lowercase();
    let is_form = first == *form
        || (*form == "on" && ["true", "1", "yes"].contains(&first.as_str()))
        || (*form == "iso" && ["mdy", "us"].contains(&first.as_str()));
    if is_form {
        return Ok(());
    }
    let message = format!("{variable} is always {form}, not '{value}'; to_char writes other forms");
    Err(SqlError::named("22023", variable, message))
}

/// `SET ROLE` and `SET SESSION AUTHORIZATION`: a session has the rights of the user that logged in.
fn become_user(session: &Session, user: Option<&str>) -> SqlResult<()> {
    match user {
        Some(user) if user != session.identity.user => {
            let message = format!(
                "a session cannot become another user: connect as '{user}'; the rights of a user's roles \
                 apply without SET ROLE"
            );
            Err(SqlError::named("0A000", user, message))
        }
        _ => Ok(()),
    }
}

fn time_zone(text: &str) -> SqlResult<String> {
    if let Some(interval) = text
        .get(..9)
        .filter(|head| head.eq_ignore_ascii_case("interval "))
    {
        let written = text[interval.len()..].trim();
        let seconds = interval_seconds(written).ok_or_else(|| {
            let message = format!("'{written}' is not an interval that can be a time zone");
            SqlError::named("22023", "timezone", message)
        })?;
        let zone = zone_of_seconds(seconds);
        return match zone {
            Ok((name, _)) => Ok(name),
            Err(error) => Err(SqlError::named("22023", "timezone", error.to_string())),
        };
    }
    if let Ok((name, _)) = session_zone(text) {
        return Ok(name);
    }
    let zones = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
    Err(SqlError::unknown("22023", "time zone", text, zones))
}

/// The seconds of `+02:30`, optionally followed by `HOUR TO MINUTE`, and of `2 hours`.
fn interval_seconds(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let words = [" hour to minute", " hour to second", " hour"];
    let word = words.iter().find_map(|word| lower.strip_suffix(word));
    let clock = word.unwrap_or(&lower).trim();
    let (is_west, digits) = match clock.strip_prefix(['-', '+']) {
        Some(rest) => (clock.starts_with('-'), rest.trim()),
        None => (false, clock),
    };
    let parts: Vec<Option<i64>> = digits.split(':').map(|part| part.parse().ok()).collect();
    let seconds = match parts[..] {
        [Some(hours)] if word.is_some() => hours * 3600,
        [Some(hours), Some(minutes)] => hours * 3600 + minutes * 60,
        [Some(hours), Some(minutes), Some(seconds)] => hours * 3600 + minutes * 60 + seconds,
        _ => {
            let ns = parse_interval(&lower).ok()?.fixed_ns()?;
            return Some(ns / 1_000_000_000);
        }
    };
    Some(if is_west { -seconds } else { seconds })
}

/// PostgreSQL's form: a number of milliseconds, or an interval; 0 means no timeout.
fn timeout(text: &str) -> SqlResult<Option<Duration>> {
    let bad = |_| {
        SqlError::named(
            "22023",
            "statement_timeout",
            format!("'{text}' is not a timeout"),
        )
    };
    let ms = match text.trim().parse::<u64>() {
        Ok(ms) => ms,
        Err(_) => {
            let ns = parse_interval(text).map_err(bad)?.fixed_ns().unwrap_or(-1);
            u64::try_from(ns).map_err(|_| bad(String::new()))? / 1_000_000
        }
    };
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;
    use crate::dialect::statement::Command;
    use marigram_service::Identity;

    fn session() -> Session {
        Session {
            database: "d".into(),
            time_zone: "UTC".into(),
            statement_timeout: None,
            read_only: false,
            ..Session::new("d", Identity::owner("u"))
        }
    }

    fn run(session: &mut Session, sql: &str) -> SqlResult<()> {
        match parse(sql)? {
            Command::Set { name, value } => set(session, &name, value.as_deref()),
            Command::Nothing(_) => Ok(()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_clients_send_is_accepted() {
        let mut session = session();
        for sql in [
            "SET extra_float_digits = 3",
            "SET application_name = 'PostgreSQL JDBC Driver'",
            "set client_encoding to 'UTF8'",
            "SET NAMES 'utf-8'",
            "SET client_encoding = '''utf-8'''",
            "SET DateStyle TO ISO, MDY",
            "set search_path = public, pg_catalog",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET standard_conforming_strings=on",
            "DISCARD ALL",
            "RESET ALL",
            "set my.variable = 'x'",
            "SET DateStyle = 'ISO'",
            "SET INTERVALSTYLE = POSTGRES",
            "SET standard_conforming_strings TO true",
            "SET ROLE NONE",
            "RESET ROLE",
            "SET ROLE u",
            "SET SESSION AUTHORIZATION DEFAULT",
            "SET CONSTRAINTS ALL DEFERRED",
            "SET check_function_bodies = false",
            "SET xmloption = content",
        ] {
            assert!(run(&mut session, sql).is_ok(), "{sql}");
        }
        run(&mut session, "SET TIME ZONE 'europe/berlin'").unwrap();
        assert_eq!(get(&session, "timezone").unwrap(), "Europe/Berlin");
        run(&mut session, "SET statement_timeout = '1500 ms'").unwrap();
        assert_eq!(session.statement_timeout, Some(Duration::from_millis(1500)));
        run(&mut session, "SET statement_timeout = 0").unwrap();
        assert_eq!(session.statement_timeout, None);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let mut session = session();
        assert!(run(&mut session, "SET timezon = 'UTC'").is_err());
        assert!(run(&mut session, "SET TIME ZONE 'Europe/Berlinn'").is_err());
        assert!(run(&mut session, "SET client_encoding = 'LATIN1'").is_err());
        assert!(run(&mut session, "SET DateStyle = 'German, DMY'").is_err());
        assert!(run(&mut session, "SET intervalstyle = iso_8601").is_err());
        assert!(run(&mut session, "SET bytea_output = escape").is_err());
        assert!(run(&mut session, "SET ROLE another").is_err());
        assert!(run(&mut session, "SET statement_timeout = 'soon'").is_err());
        assert!(get(&session, "nothing").is_err());
    }
}
