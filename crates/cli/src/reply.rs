//! The result of a statement, wherever it ran: rows, a tag, or a failure with its position.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use marigram::ServiceError;

/// A statement that failed.
#[derive(Clone, Debug)]
pub(crate) struct StatementFailure {
    /// The reason.
    pub message: String,
    /// Position in the statement, in characters from 1.
    pub position: Option<usize>,
}

/// The result of a statement.
pub(crate) enum StatementReply {
    /// Rows, which stream in.
    Rows(ReplyRows),
    /// A command tag with the number of changed rows.
    Done(String),
}

/// Rows that stream in.
pub(crate) struct ReplyRows {
    /// Columns of every batch.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch, StatementFailure>>>,
    /// The session's time zone; `None` for UTC.
    pub zone: Option<String>,
}

/// Prints the database's notice about an answer, as psql does.
pub(crate) fn tell_notice(notice: &str) {
    erroutln!("NOTICE: {notice}");
}

impl From<ServiceError> for StatementFailure {
    fn from(error: ServiceError) -> Self {
        Self {
            message: error.to_string(),
            position: error.position(),
        }
    }
}

impl std::fmt::Display for StatementFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StatementFailure {}

impl StatementFailure {
    /// A failure without a position.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            position: None,
        }
    }

    /// The message and, below it, the line of the statement with a caret at the error.
    pub(crate) fn explain(&self, statement: &str) -> String {
        let Some(position) = self.position.and_then(|position| position.checked_sub(1)) else {
            return self.message.clone();
        };
        let mut start = 0;
        for (number, line) in statement.lines().enumerate() {
            let len = line.chars().count();
            if position <= start + len {
                let label = format!("LINE {}: ", number + 1);
                let indent = " ".repeat(label.len() + position - start);
                return format!("{}\n{label}{line}\n{indent}^", self.message);
            }
            start += len + 1;
        }
        self.message.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_error() {
        let failure = StatementFailure {
            message: "no".into(),
            position: Some(10),
        };
        assert_eq!(
            failure.explain("SELECT x\nFROM t"),
            "no\nLINE 2: FROM t\n        ^"
        );
        let failure = StatementFailure {
            message: "no".into(),
            position: Some(8),
        };
        assert_eq!(
            failure.explain("SELECT x"),
            "no\nLINE 1: SELECT x\n               ^"
        );
        let beyond = StatementFailure {
            message: "no".into(),
            position: Some(99),
        };
        assert_eq!(beyond.explain("SELECT x"), "no");
    }
}
