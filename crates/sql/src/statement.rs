//! What a statement asks for, after parsing.

use datafusion::sql::parser::Statement;
use marigram_model::{FieldType, TableOptions, TagType};

/// A table as it stands in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Database, where one is named; otherwise the session's.
    pub database: Option<String>,
    /// Table.
    pub table: String,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// The time of the row.
    Time,
    /// Part of the series' identity.
    Tag(TagType),
    /// A measured value.
    Field(FieldType),
}

/// Changes to a table's settings; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionChanges {
    /// New time to live; `Some(None)` keeps rows for ever.
    #[expect(
        clippy::option_option,
        reason = "not named, none, and a time are three things"
    )]
    pub ttl_ns: Option<Option<i64>>,
    /// New width of a partition.
    pub partition_ns: Option<i64>,
}

impl OptionChanges {
    /// The settings after the changes.
    pub fn apply(&self, options: &TableOptions) -> TableOptions {
        TableOptions {
            ttl_ns: self.ttl_ns.unwrap_or(options.ttl_ns),
            partition_ns: self.partition_ns.unwrap_or(options.partition_ns),
        }
    }
}

/// One change of `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new column.
    Add {
        /// Name.
        name: String,
        /// What it holds: a tag or a field.
        kind: ColumnKind,
        /// Whether a column of that name may exist already.
        if_not_exists: bool,
    },
    /// New settings.
    Set(OptionChanges),
}

/// What `SHOW` shows.
#[derive(Clone, Debug)]
pub enum Show {
    /// Databases.
    Databases,
    /// Tables of a database.
    Tables(Option<String>),
    /// Columns of a table.
    Columns(Target),
    /// The statement that would create a table.
    CreateTable(Target),
    /// Segments, of one table or of all.
    Segments(Option<Target>),
    /// Compactions that run and that ended lately.
    Compactions,
    /// A session variable.
    Variable(String),
    /// All session variables.
    All,
}

/// A parsed statement.
#[derive(Clone, Debug)]
pub enum Command {
    /// `CREATE DATABASE`
    CreateDatabase {
        /// Name.
        name: String,
        /// Whether it may exist.
        if_not_exists: bool,
    },
    /// `DROP DATABASE`
    DropDatabase {
        /// Name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `CREATE TABLE`
    CreateTable {
        /// The new table.
        target: Target,
        /// Columns in their order.
        columns: Vec<(String, ColumnKind)>,
        /// Settings.
        options: OptionChanges,
        /// Whether it may exist.
        if_not_exists: bool,
    },
    /// `ALTER TABLE`
    AlterTable {
        /// The table.
        target: Target,
        /// Changes in their order.
        changes: Vec<Change>,
    },
    /// `DROP TABLE`
    DropTable {
        /// The tables.
        targets: Vec<Target>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `USE`
    Use(String),
    /// `SET`; `None` sets the default again.
    Set {
        /// Variable, in lower case.
        name: String,
        /// Its new value.
        value: Option<String>,
    },
    /// `SHOW …` that needs no planning.
    Show(Show),
    /// `FLUSH`
    Flush,
    /// `COMPACT`
    Compact,
    /// `COMPACT TABLE`
    CompactTable(Target),
    /// Accepted, and nothing is done; the command tag.
    Nothing(&'static str),
    /// A statement for DataFusion.
    Plan(Box<Statement>),
}
