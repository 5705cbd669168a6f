//! The errors of reference tables, as PostgreSQL numbers and words them.

use arrow::error::ArrowError;
use rusqlite::ErrorCode;

/// What reference tables give back.
pub type Result<T, E = ReferenceError> = std::result::Result<T, E>;

/// An error with PostgreSQL's SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReferenceError {
    /// Five characters, as PostgreSQL defines them.
    pub sqlstate: &'static str,
    /// What is wrong.
    pub message: String,
    /// Which values are at fault.
    pub detail: Option<String>,
    /// The constraint that refused.
    pub constraint: Option<Box<str>>,
    /// The table of that constraint.
    pub table: Option<Box<str>>,
    /// The column that lacks a value.
    pub column: Option<Box<str>>,
}

impl ReferenceError {
    /// An error without detail.
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            sqlstate,
            message: message.into(),
            detail: None,
            constraint: None,
            table: None,
            column: None,
        }
    }

    /// A row without a value in a column that needs one.
    #[must_use]
    pub fn missing_value(table: &str, column: &str) -> Self {
        let message = format!(
            "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
        );
        Self::new("23502", message).with_column(table, column)
    }

    /// A row for which a CHECK constraint is false.
    #[must_use]
    pub fn failed_check(table: &str, name: &str) -> Self {
        let message =
            format!("new row for relation \"{table}\" violates check constraint \"{name}\"");
        Self::new("23514", message).with_constraint(table, name)
    }

    /// The error with a detail.
    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The error with the name of a table's constraint.
    pub(crate) fn with_constraint(mut self, table: &str, name: &str) -> Self {
        self.constraint = Some(name.into());
        self.table = Some(table.into());
        self
    }

    /// The error with the column of a table.
    pub(crate) fn with_column(mut self, table: &str, column: &str) -> Self {
        self.table = Some(table.into());
        self.column = Some(column.into());
        self
    }

    /// The file holds what this crate never writes.
    pub(crate) fn damaged(finding: impl std::fmt::Display) -> Self {
        Self::new(
            "XX001",
            format!("the file of reference tables is damaged: {finding}"),
        )
    }

    /// A table that does not exist.
    pub(crate) fn no_table(name: &str) -> Self {
        Self::new("42P01", format!("relation \"{name}\" does not exist"))
    }

    /// A column that a table does not have.
    pub(crate) fn no_column(column: &str, table: &str) -> Self {
        let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
        Self::new("42703", message)
    }
}

impl From<rusqlite::Error> for ReferenceError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            return Self::new("XX000", format!("reference tables: {error}"));
        };
        let text = error.to_string();
        match code {
            ErrorCode::DiskFull => Self::new(
                "53100",
                "could not extend the file of reference tables: No space left on device",
            ),
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::NoLargeFileSupport => Self::new(
                "58030",
                format!("could not access the file of reference tables: {text}"),
            ),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::damaged(text),
            ErrorCode::OutOfMemory => Self::new("53200", "out of memory"),
            ErrorCode::TooBig => Self::new(
                "54000",
                format!("a value is too large for a reference table: {text}"),
            ),
            ErrorCode::OperationInterrupted => {
                Self::new("57014", "canceling statement due to user request")
            }
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::new(
                "55P03",
                format!("the file of reference tables is in use: {text}"),
            ),
            _ => Self::new("XX000", format!("reference tables: {text}")),
        }
    }
}

impl From<ArrowError> for ReferenceError {
    fn from(error: ArrowError) -> Self {
        Self::new("XX000", format!("reference tables: {error}"))
    }
}

/// An error of the file system at a path.
pub(crate) fn file_error(path: &std::path::Path, error: &std::io::Error) -> ReferenceError {
    let is_full = error.kind() == std::io::ErrorKind::StorageFull;
    let sqlstate = if is_full { "53100" } else { "58030" };
    ReferenceError::new(
        sqlstate,
        format!("could not access \"{}\": {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(code: i32) -> ReferenceError {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None).into()
    }

    #[test]
    fn failures_of_the_machine_have_the_states_of_postgresql() {
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_FULL).sqlstate, "53100");
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_IOERR_FSYNC).sqlstate, "58030");
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_CANTOPEN).sqlstate, "58030");
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_CORRUPT).sqlstate, "XX001");
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_NOTADB).sqlstate, "XX001");
        assert_eq!(sqlite(rusqlite::ffi::SQLITE_NOMEM).sqlstate, "53200");
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert_eq!(
            file_error(std::path::Path::new("a"), &full).sqlstate,
            "53100"
        );
    }
}
