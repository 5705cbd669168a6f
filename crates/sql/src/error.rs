//! Errors of the SQL layer, and their translation for servers.
//!
//! Every message says what is wrong and names it. If the name occurs in the statement, the error
//! carries its position (in characters, from 1), and the message suggests a similar name.

pub(crate) mod calls;
mod rewording;

pub(crate) use calls::know_functions;
pub(crate) use marigram_functions::in_sql;

use crate::name_forms::unmarked;
use crate::stack::NESTED_MAX;
use arrow::error::ArrowError;
use calls::{no_such_call, no_such_function};
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};
use datafusion::sql::sqlparser::{dialect::PostgreSqlDialect, tokenizer::TokenizerError};
use marigram_engine::EngineError;
use marigram_functions::Refusal;
use marigram_model::SchemaError as ModelError;
pub(crate) use marigram_model::nearest;
use marigram_model::suggested;
use marigram_reference::ReferenceError;
use marigram_service::{ServiceError, ViolatedConstraint, stored_note};
use std::time::Duration;

/// Result of the SQL layer.
pub type SqlResult<T> = Result<T, SqlError>;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The statement is wrong.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Planning or execution failed.
    #[error(transparent)]
    DataFusion(#[from] DataFusionError),
    /// The statement could not be parsed.
    #[error(transparent)]
    Parser(#[from] ParserError),
    /// The statement's tokens could not be read.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// An error in the form that servers take.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The store of reference tables refused.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A statement failed after some of its rows were stored.
    #[error("{error}{}", stored_note(*stored))]
    AfterRows {
        /// How many rows are stored.
        stored: u64,
        /// Why it failed.
        error: Box<SqlError>,
    },
}

impl SqlError {
    /// An error for a wrong statement.
    pub fn invalid(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self::Refused(Refusal {
            sqlstate,
            message: message.into(),
            name: None,
        })
    }

    /// An error for a wrong name in a statement.
    pub fn named(sqlstate: &'static str, name: &str, message: impl Into<String>) -> Self {
        Self::Refused(Refusal {
            sqlstate,
            message: message.into(),
            name: Some(name.to_owned()),
        })
    }

    /// An error for a statement that does not follow the grammar.
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::invalid("42601", message)
    }

    /// An error for a feature that Marigram does not support.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::invalid("0A000", message)
    }

    /// An error for a name that does not exist.
    pub fn unknown<'a>(
        sqlstate: &'static str,
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let is_name = ["column", "database", "table", "view"].contains(&kind);
        let hint = nearest(name, known).map(|near| {
            let near = if is_name {
                suggested(&near)
            } else {
                format!("'{near}'")
            };
            format!("; did you mean {near}?")
        });
        let message = format!("{kind} '{name}' does not exist{}", hint.unwrap_or_default());
        Self::named(sqlstate, name, message)
    }

    /// The error in the form that servers take; `sql` is the statement that failed.
    pub fn into_service(self, sql: &str) -> ServiceError {
        match self {
            Self::Refused(refusal) => refused(refusal, sql),
            Self::Engine(error) => engine(&error, sql),
            Self::DataFusion(error) => rewording::in_our_words(datafusion(error, sql), sql),
            Self::Parser(error) => parser(&error, sql),
            Self::Tokenizer(error) => parser(&ParserError::from(error), sql),
            Self::Service(error) => error,
            Self::Reference(error) => reference(error),
            Self::AfterRows { stored, error } => {
                error.into_service(sql).with_note(&stored_note(stored))
            }
        }
    }
}

/// An error of the store of reference tables.
fn reference(error: ReferenceError) -> ServiceError {
    if error.sqlstate.starts_with("23") {
        return ServiceError::Violation(Box::new(ViolatedConstraint {
            message: error.message,
            detail: error.detail,
            sqlstate: error.sqlstate,
            table: error.table.map(String::from),
            column: error.column.map(String::from),
            constraint: error.constraint.map(String::from),
        }));
    }
    let message = match error.detail {
        // Protocols have one text; the sentence of the detail follows.
        Some(detail) => format!("{}: {detail}", error.message),
        None => error.message,
    };
    ServiceError::Invalid {
        message,
        position: None,
        sqlstate: error.sqlstate,
    }
}

/// The position of the first word or text in `sql` that equals `name`.
fn position_of(sql: &str, name: &str) -> Option<usize> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
        .tokenize_with_location()
        .ok()?;
    let last = name.rsplit('.').next().unwrap_or(name);
    let found = tokens.iter().find(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_some() => word.value == name || word.value == last,
        Token::Word(word) => {
            word.value.eq_ignore_ascii_case(name) || word.value.eq_ignore_ascii_case(last)
        }
        Token::SingleQuotedString(text) => text == name,
        _ => false,
    })?;
    character(sql, found.span.start)
}

/// The character (from 1) at a line and column (both from 1).
fn character(sql: &str, location: Location) -> Option<usize> {
    if location.line == 0 {
        return None;
    }
    let line_index = usize::try_from(location.line - 1).ok()?;
    let before: usize = sql
        .split('\n')
        .take(line_index)
        .map(|l| l.chars().count() + 1)
        .sum();
    Some(before + usize::try_from(location.column).ok()?)
}

fn invalid(sqlstate: &'static str, message: String, position: Option<usize>) -> ServiceError {
    ServiceError::Invalid {
        message,
        position,
        sqlstate,
    }
}

fn parser(error: &ParserError, sql: &str) -> ServiceError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.clone(),
        ParserError::RecursionLimitExceeded => {
            let message = format!(
                "the statement is nested too deeply: at most {NESTED_MAX} parentheses, calls, \
                 signs and queries may be nested"
            );
            return invalid("54001", message, None);
        }
    };
    let text = text
        .replace("found: EOF", "found: the end of the statement")
        .replace("before EOF", "before the end of the statement");
    let end = Some(sql.trim_end().chars().count() + 1);
    let Some((message, place)) = text.rsplit_once(" at Line: ") else {
        let is_at_end = text.ends_with("the end of the statement");
        let position = end.filter(|_| is_at_end);
        return invalid("42601", format!("syntax error: {text}"), position);
    };
    let numbers = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Location {
            line: line.trim().parse().ok()?,
            column: column.trim().parse().ok()?,
        })
    });
    let position = match numbers {
        Some(at) if at.line > 0 => character(sql, at),
        _ => end,
    };
    let place = match numbers {
        Some(at) if at.line > 0 => format!(" at line {}, column {}", at.line, at.column),
        _ => String::new(),
    };
    invalid("42601", format!("syntax error{place}: {message}"), position)
}

/// PostgreSQL's error code for a wrong name or schema.
#[must_use]
pub fn schema_sqlstate(error: &ModelError) -> &'static str {
    match error {
        ModelError::EmptyName { .. } => "42602",
        ModelError::LongName { .. } => "42622",
        ModelError::ControlInName { .. } => "22021",
        ModelError::DuplicateColumn { .. } => "42701",
        ModelError::TooMany { .. } => "54011",
        _ => "22023",
    }
}

/// An engine's error in the form that servers take.
fn engine(error: &EngineError, sql: &str) -> ServiceError {
    let message = error.to_string();
    match error {
        EngineError::NotFound { kind, name, .. } => {
            let sqlstate = match *kind {
                "database" => "3D000",
                "table" => "42P01",
                _ => "42703",
            };
            invalid(sqlstate, message, position_of(sql, name))
        }
        EngineError::AlreadyExists { kind, name } => {
            let sqlstate = match *kind {
                "database" => "42P04",
                "table" => "42P07",
                _ => "42701",
            };
            invalid(sqlstate, message, position_of(sql, name))
        }
        EngineError::Needed { .. } => invalid("2BP01", message, None),
        EngineError::Invalid(_) => invalid("22023", message, None),
        EngineError::Schema(error) => invalid(schema_sqlstate(error), message, None),
        EngineError::Busy {
            reason,
            retry_after,
        } => ServiceError::Busy {
            message: reason.clone(),
            retry_after: *retry_after,
        },
        EngineError::ReadOnly(_) => ServiceError::ReadOnly(message),
        EngineError::Closed => invalid("57P03", message, None),
        EngineError::Io { source, .. } => {
            disk_full(source, &message).unwrap_or(ServiceError::Internal(message))
        }
        _ => ServiceError::Internal(message),
    }
}

fn datafusion(error: DataFusionError, sql: &str) -> ServiceError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            datafusion(*inner, sql)
        }
        DataFusionError::Collection(mut errors) if !errors.is_empty() => {
            datafusion(errors.swap_remove(0), sql)
        }
        DataFusionError::Shared(shared) => shared_error(&shared, sql),
        DataFusionError::External(external) => external_error(external, sql),
        DataFusionError::SQL(error, _) => parser(&error, sql),
        DataFusionError::SchemaError(error, _) => schema_error(&error, sql),
        DataFusionError::ResourcesExhausted(reason) => out_of_memory(&reason),
        DataFusionError::NotImplemented(message) => invalid("0A000", message, None),
        DataFusionError::Plan(message) | DataFusionError::Configuration(message) => {
            plan_error(message, sql)
        }
        DataFusionError::ArrowError(error, _) => arrow_error(*error, sql),
        DataFusionError::Execution(message) => execution_error(message),
        DataFusionError::IoError(error) => io_error(&error),
        DataFusionError::Internal(message) if message.contains("difference in schemas") => invalid(
            "0A000",
            "a comparison with ANY or ALL of a subquery is not supported; write it with IN, \
             EXISTS, min or max"
                .to_owned(),
            None,
        ),
        DataFusionError::Internal(message) => {
            let first = message
                .split("\nThis issue was likely")
                .next()
                .unwrap_or(&message);
            ServiceError::Internal(first.to_owned())
        }
        other => wrapped(&other),
    }
}

/// Translates an error that several readers share, without owning it.
fn shared_error(error: &DataFusionError, sql: &str) -> ServiceError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            shared_error(inner, sql)
        }
        DataFusionError::Shared(inner) => shared_error(inner, sql),
        DataFusionError::ResourcesExhausted(reason) => out_of_memory(reason),
        DataFusionError::Execution(message) => execution_error(message.clone()),
        DataFusionError::Plan(message) => plan_error(message.clone(), sql),
        DataFusionError::NotImplemented(message) => invalid("0A000", message.clone(), None),
        DataFusionError::External(external) => shared_external(external.as_ref(), sql),
        DataFusionError::ArrowError(inner, _) => match &**inner {
            ArrowError::ExternalError(external) => shared_external(external.as_ref(), sql),
            ArrowError::MemoryError(reason) => out_of_memory(reason),
            ArrowError::IoError(_, error) => io_error(error),
            other => arrow_text(&other.to_string()),
        },
        DataFusionError::IoError(error) => io_error(error),
        other => wrapped(other),
    }
}

fn refused(refusal: Refusal, sql: &str) -> ServiceError {
    let position = refusal.name.and_then(|name| position_of(sql, &name));
    invalid(refusal.sqlstate, refusal.message, position)
}

fn external_error(error: Box<dyn std::error::Error + Send + Sync>, sql: &str) -> ServiceError {
    let error = match error.downcast::<SqlError>() {
        Ok(own) => return own.into_service(sql),
        Err(error) => error,
    };
    let error = match error.downcast::<Refusal>() {
        Ok(refusal) => return refused(*refusal, sql),
        Err(error) => error,
    };
    let error = match error.downcast::<EngineError>() {
        Ok(error) => return engine(&error, sql),
        Err(error) => error,
    };
    let error = match error.downcast::<DataFusionError>() {
        Ok(error) => return datafusion(*error, sql),
        Err(error) => error,
    };
    match error.downcast::<ServiceError>() {
        Ok(error) => *error,
        Err(error) => shared_external(error.as_ref(), sql),
    }
}

/// Translates a shared error of another crate, without owning it.
fn shared_external(
    error: &(dyn std::error::Error + Send + Sync + 'static),
    sql: &str,
) -> ServiceError {
    if let Some(error) = error.downcast_ref::<ServiceError>() {
        return error.clone();
    }
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return refused(refusal.clone(), sql);
    }
    if let Some(error) = error.downcast_ref::<EngineError>() {
        return engine(error, sql);
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return shared_error(error, sql);
    }
    match error.downcast_ref::<ArrowError>() {
        Some(ArrowError::ExternalError(inner)) => return shared_external(inner.as_ref(), sql),
        Some(ArrowError::MemoryError(reason)) => return out_of_memory(reason),
        _ => {}
    }
    match error.downcast_ref::<SqlError>() {
        Some(error) => shared_own(error, sql),
        None => wrapped(error),
    }
}

/// Translates a shared error of this crate, without owning it.
fn shared_own(error: &SqlError, sql: &str) -> ServiceError {
    match error {
        SqlError::Engine(error) => engine(error, sql),
        SqlError::DataFusion(error) => shared_error(error, sql),
        SqlError::Service(error) => error.clone(),
        SqlError::Reference(error) => reference(error.clone()),
        SqlError::Refused(refusal) => refused(refusal.clone(), sql),
        SqlError::AfterRows { stored, error } => {
            shared_own(error, sql).with_note(&stored_note(*stored))
        }
        SqlError::Parser(_) | SqlError::Tokenizer(_) => wrapped(error),
    }
}

/// An error of the system while a query spilled or copied. A writer of spilled batches wraps it
/// twice.
fn io_error(error: &std::io::Error) -> ServiceError {
    wrapped(error)
}

/// A transient error: a full disk may have room again.
#[must_use]
pub fn disk_full(error: &std::io::Error, message: &str) -> Option<ServiceError> {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded).then(|| {
        let message = format!("{message}; make room on the disk, and send it again");
        invalid("53100", message, None)
    })
}

/// The service error that another crate wrapped in an error of the system.
fn wrapped(error: &(dyn std::error::Error + 'static)) -> ServiceError {
    let message = error.to_string();
    let mut inner = Some(error);
    while let Some(error) = inner {
        if let Some(found) = error.downcast_ref::<std::io::Error>()
            && let Some(full) = disk_full(found, &message)
        {
            return full;
        }
        inner = error.source();
    }
    ServiceError::Internal(message)
}

/// The error of a query that reached the memory ceiling.
fn out_of_memory(reason: &str) -> ServiceError {
    let reason = reason.lines().next().unwrap_or_default();
    ServiceError::Busy {
        message: format!("the query needs more memory than is available: {reason}"),
        retry_after: Duration::from_secs(1),
    }
}

fn schema_error(error: &SchemaError, sql: &str) -> ServiceError {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let is_marked = |valid: &datafusion::common::Column| {
                unmarked(valid.name()).is_some_and(|name| name == field.name())
            };
            if valid_fields.iter().any(is_marked) {
                let message = format!(
                    "column '{}' is ambiguous: several columns have this name; give them others \
                     with AS",
                    field.flat_name()
                );
                return invalid("42702", message, position_of(sql, field.name()));
            }
            // The two sides of a join, or a table and its source, name the same columns.
            let mut known: Vec<&str> = Vec::new();
            for name in valid_fields.iter().map(datafusion::common::Column::name) {
                // A statement cannot name an unnamed expression.
                if !known.contains(&name) && !name.contains('(') && unmarked(name).is_none() {
                    known.push(name);
                }
            }
            if let Some(table) = &field.relation
                && !valid_fields
                    .iter()
                    .any(|valid| valid.relation.as_ref() == Some(table))
            {
                let message = format!(
                    "there is no table '{table}' in FROM to which '{}' could belong",
                    field.name()
                );
                return invalid("42P01", message, position_of(sql, table.table()));
            }
            let hint = match nearest(field.name(), known.iter().copied()) {
                Some(near) => format!("; did you mean {}?", suggested(&near)),
                None if known.is_empty() => String::new(),
                None => {
                    let shown: Vec<&str> = known.iter().copied().take(12).collect();
                    let more = if known.len() > shown.len() {
                        ", …"
                    } else {
                        ""
                    };
                    format!("; there are {}{more}", shown.join(", "))
                }
            };
            let message = format!("column '{}' does not exist{hint}", field.flat_name());
            invalid("42703", message, position_of(sql, field.name()))
        }
        SchemaError::AmbiguousReference { field } => {
            let message = format!(
                "column '{}' is ambiguous; name its table",
                field.flat_name()
            );
            invalid("42702", message, position_of(sql, field.name()))
        }
        other => invalid("42701", other.to_string(), None),
    }
}

fn plan_error(message: String, sql: &str) -> ServiceError {
    let quoted = |start: &str| {
        let rest = message.strip_prefix(start)?;
        rest.split('\'').next().map(str::to_owned)
    };
    if let Some(name) = quoted("Invalid function '") {
        return no_such_function(&name, sql);
    }
    if let Some(name) = quoted("table '") {
        let position = position_of(sql, &name);
        return invalid("42P01", message, position);
    }
    if let Some(error) = no_such_call(&message, sql) {
        return error;
    }
    let message = message.replace("While expanding wildcard, ", "");
    let lower = message.to_lowercase();
    let types = ["coerce", "type", "cast", "compar"];
    let sqlstate = if types.iter().any(|sign| lower.contains(sign)) {
        "42804"
    } else {
        "42000"
    };
    let sqlstate = if lower.contains("group by") {
        "42803"
    } else {
        sqlstate
    };
    invalid(sqlstate, message, None)
}

fn arrow_error(error: ArrowError, sql: &str) -> ServiceError {
    match error {
        ArrowError::ExternalError(external) => external_error(external, sql),
        ArrowError::MemoryError(reason) => out_of_memory(&reason),
        ArrowError::IoError(_, error) => io_error(&error),
        // Only spilled data is read in this format.
        ArrowError::IpcError(text) => ServiceError::Internal(format!(
            "the data that the query spilled to disk could not be read back: {text}"
        )),
        ArrowError::DivideByZero => invalid("22012", "division by zero".into(), None),
        ArrowError::ArithmeticOverflow(text) => invalid("22003", text, None),
        other => arrow_text(&other.to_string()),
    }
}

fn arrow_text(text: &str) -> ServiceError {
    let lower = text.to_lowercase();
    if lower.contains("non-nullable") {
        return no_time();
    }
    let sqlstate = if lower.contains("divide by zero") {
        "22012"
    } else if lower.contains("timestamp out of range") {
        "22008"
    } else if lower.contains("overflow")
        || lower.contains("can't cast value")
        || is_number_cast(text)
    {
        "22003"
    } else if lower.contains("timestamp") || lower.contains("date") || lower.contains("interval") {
        "22007"
    } else if lower.contains("cast") || lower.contains("parse") {
        "22P02"
    } else {
        "22000"
    };
    let text = [
        "Parser error: ",
        "Cast error: ",
        "Compute error: ",
        "Invalid argument error: ",
    ]
    .iter()
    .find_map(|prefix| text.strip_prefix(prefix))
    .unwrap_or(text);
    invalid(sqlstate, text.to_owned(), None)
}

/// Whether a failed cast had the text of a number, which does not fit.
fn is_number_cast(text: &str) -> bool {
    let quoted = text.split_once("Cannot cast string '");
    let quoted = quoted.and_then(|(_, rest)| rest.split_once('\''));
    quoted.is_some_and(|(number, _)| number.trim().parse::<i128>().is_ok())
}

fn execution_error(message: String) -> ServiceError {
    if message.contains("non-nullable") {
        no_time()
    } else {
        invalid("22000", message, None)
    }
}

/// The time is the only column that cannot be null.
fn no_time() -> ServiceError {
    let message = "a row has no time; give every row a time, or leave the column out";
    invalid("23502", message.into(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_characters_from_one() {
        assert_eq!(position_of("select ü,\n tempp from t", "tempp"), Some(12));
        assert_eq!(position_of("select 'tempp', \"tempp\"", "tempp"), Some(8));
        assert_eq!(position_of("select 1", "x"), None);
    }

    #[test]
    fn what_passes_is_told_from_what_is_wrong_and_from_damage() {
        use std::io::{Error as IoError, ErrorKind};
        let busy = || EngineError::Busy {
            reason: "no memory".into(),
            retry_after: Duration::from_secs(1),
        };
        let io = |kind| EngineError::Io {
            path: "f".into(),
            source: IoError::from(kind),
        };
        let corrupt = EngineError::Corrupt {
            path: "f".into(),
            offset: 7,
            reason: "a checksum".into(),
        };
        let not_found = EngineError::NotFound {
            kind: "table",
            name: "t".into(),
            nearest: None,
        };
        let name = |error: ModelError| EngineError::Schema(error);
        for (error, sqlstate) in [
            (busy(), "53200"),
            (EngineError::ReadOnly("full".into()), "25006"),
            (EngineError::Closed, "57P03"),
            (io(ErrorKind::StorageFull), "53100"),
            (io(ErrorKind::QuotaExceeded), "53100"),
            (io(ErrorKind::PermissionDenied), "XX000"),
            (corrupt, "XX000"),
            (EngineError::Invalid("no".into()), "22023"),
            (not_found, "42P01"),
            (name(ModelError::EmptyName { kind: "table" }), "42602"),
            (
                name(ModelError::LongName {
                    kind: "table",
                    start: "x".into(),
                    len: 300,
                }),
                "42622",
            ),
            (
                name(ModelError::ControlInName {
                    kind: "tag",
                    name: "x".into(),
                }),
                "22021",
            ),
        ] {
            let what = format!("{error:?}");
            assert_eq!(engine(&error, "").sqlstate(), sqlstate, "{what}");
        }
        // However they are wrapped on their way through a query.
        let arrow = |error: EngineError| ArrowError::ExternalError(Box::new(error));
        let external = |error: EngineError| DataFusionError::External(Box::new(error));
        let shared = |error: DataFusionError| DataFusionError::Shared(std::sync::Arc::new(error));
        for error in [
            external(busy()),
            external(busy()).context("while reading"),
            shared(external(busy())),
            shared(shared(external(busy()).context("twice"))),
            DataFusionError::ArrowError(Box::new(arrow(busy())), None),
            shared(DataFusionError::ArrowError(Box::new(arrow(busy())), None)),
            shared(DataFusionError::External(Box::new(
                SqlError::Engine(busy()),
            ))),
            DataFusionError::External(Box::new(external(busy()))),
            DataFusionError::External(Box::new(arrow(busy()))),
            DataFusionError::ResourcesExhausted("memory".into()),
            DataFusionError::ArrowError(Box::new(ArrowError::MemoryError("m".into())), None),
        ] {
            let what = format!("{error:?}");
            let told = SqlError::from(error).into_service("");
            assert!(
                matches!(told, ServiceError::Busy { .. }),
                "{what}: {told:?}"
            );
        }
        let full = || IoError::from(ErrorKind::StorageFull);
        // The writer of a spill file wraps an error of the system in an error of DataFusion, and
        // that in an error of the system; the writer of batches wraps it in one of Arrow.
        let spilled = |error| {
            let written = IoError::from(DataFusionError::IoError(error));
            DataFusionError::from(ArrowError::from(written))
        };
        for error in [
            DataFusionError::IoError(full()),
            shared(DataFusionError::IoError(full())),
            DataFusionError::ArrowError(Box::new(ArrowError::from(full())), None),
            DataFusionError::External(Box::new(full())),
            DataFusionError::ArrowError(
                Box::new(ArrowError::from(DataFusionError::IoError(full()))),
                None,
            ),
            DataFusionError::from(IoError::from(DataFusionError::IoError(full()))),
            spilled(full()),
            shared(spilled(full())),
        ] {
            let what = format!("{error:?}");
            assert_eq!(
                SqlError::from(error).into_service("").sqlstate(),
                "53100",
                "{what}"
            );
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(
            nearest("tempp", ["time", "temp", "hum"]),
            Some("temp".into())
        );
        assert_eq!(nearest("zzz", ["time", "temp"]), None);
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let error = crate::dialect::parse::parse("select *\nfrom t wher x").unwrap_err();
        let sql = "select *\nfrom t wher x";
        let ServiceError::Invalid {
            message,
            position,
            sqlstate,
        } = error.into_service(sql)
        else {
            panic!("an invalid statement");
        };
        assert_eq!((position, sqlstate), (Some(22), "42601"), "{message}");
    }
}
