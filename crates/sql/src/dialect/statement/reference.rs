//! Parsed statements about reference tables.

use super::{Command, TableReferenceName};
use crate::error::SqlError;
use datafusion::sql::sqlparser::parser::ParserError;
use marigram_functions::Refusal;
use marigram_reference::{NewReferenceTable, ReferenceAlteration};

/// A statement about reference tables, or about a table that may be one.
#[derive(Clone, Debug)]
pub(crate) enum ReferenceStatement {
    /// `CREATE TABLE`
    CreateTable {
        /// The table. Its database is empty where the statement names none.
        new: NewReferenceTable,
        /// The database, if one is named; otherwise the session's.
        database: Option<String>,
        /// Whether it may exist.
        if_not_exists: bool,
        /// Whether it goes with the session.
        is_temporary: bool,
    },
    /// `ALTER TABLE` or `CREATE INDEX` of a table of either kind, as both grammars read it.
    Change {
        /// The table.
        target: TableReferenceName,
        /// Whether the table may be missing.
        if_exists: bool,
        /// What it means for a table of series: [`Command::AlterTable`] or [`Command::CreateIndex`].
        series: Result<Box<Command>, GrammarError>,
        /// What it means for a reference table.
        reference: Result<ReferenceChange, GrammarError>,
    },
    /// `DROP INDEX`
    DropIndex {
        /// The indexes.
        names: Vec<TableReferenceName>,
        /// Whether they may be missing.
        if_exists: bool,
    },
}

/// A change of a reference table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceChange {
    /// `ALTER TABLE`: the changes in their order.
    Alter(Vec<ReferenceAlteration>),
    /// `CREATE INDEX`
    CreateIndex {
        /// Its name, if it is named.
        name: Option<String>,
        /// Its columns. Without any, there is nothing to make: the statement indexes only expressions, or
        /// by a method that SQLite does not have.
        columns: Vec<String>,
        /// Whether rows may not have the same values in them.
        is_unique: bool,
        /// Whether it may exist.
        if_not_exists: bool,
    },
}

/// Why a statement does not follow a grammar. Unlike [`SqlError`], it can be copied with its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrammarError {
    /// It has what the grammar refuses.
    Refused(Refusal),
    /// It is no statement of the grammar.
    Parser(ParserError),
}

impl GrammarError {
    /// Whether the statement is no statement of the grammar at all.
    pub(crate) fn is_syntax(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.sqlstate == "42601",
            Self::Parser(_) => true,
        }
    }
}

impl From<SqlError> for GrammarError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Refused(refusal) => Self::Refused(refusal),
            SqlError::Parser(error) => Self::Parser(error),
            // Grammars have no other errors.
            other => Self::Parser(ParserError::ParserError(other.to_string())),
        }
    }
}

impl From<GrammarError> for SqlError {
    fn from(error: GrammarError) -> Self {
        match error {
            GrammarError::Refused(refusal) => Self::Refused(refusal),
            GrammarError::Parser(error) => Self::Parser(error),
        }
    }
}
