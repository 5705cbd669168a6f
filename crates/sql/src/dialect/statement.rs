//! Parsed statements.

mod reference;

pub(crate) use reference::{GrammarError, ReferenceChange, ReferenceStatement};

use crate::dialect::access_statement::AccessStatement;
use crate::dialect::column_names::Names;
use crate::dialect::hypertable_functions::FunctionDescription;
use crate::dialect::hypertable_settings::HypertableSettings;
use crate::stack::{DeepTree, StackNeed};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::DataType;
use marigram_model::{
    ColdCodec, ColumnCodec, Compressor, Encoding, FieldType, SeriesIdentity, TableOptions, TagType,
};
use marigram_service::TransactionStep;

/// A table as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableReferenceName {
    /// The database, if one is named; otherwise the session's.
    pub database: Option<String>,
    /// Table.
    pub table: String,
}

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFileFormat {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// Apache TsFile.
    TsFile,
}

/// `COPY … FROM 'file'`.
#[derive(Clone, Debug)]
pub(crate) struct CopyFrom {
    /// The table.
    pub target: TableReferenceName,
    /// The file, as it was written.
    pub path: String,
    /// Its format.
    pub form: CopyFileFormat,
    /// The delimiter between values of CSV.
    pub delimiter: u8,
    /// Whether CSV begins with the names of its columns.
    pub has_header: bool,
    /// The unit of the times in a TsFile, in nanoseconds.
    pub unit_ns: i64,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// The time of the row.
    Time,
    /// The time of the row, shown as a `timestamptz`.
    ZonedTime,
    /// Part of the series' identity.
    Tag(TagType),
    /// A measured value, and how it is stored.
    Field(FieldType, ColumnCodec),
    /// A measured time that is shown as a `timestamptz`, and how it is stored.
    ZonedField(ColumnCodec),
}

/// Changes to how values are stored; `None` means no change, `Some(None)` leaves the choice to
/// Marigram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::option_option,
    reason = "unset, automatic, and a name are three different things"
)]
pub(crate) struct CodecChange {
    /// New encoding.
    pub encoding: Option<Option<Encoding>>,
    /// New compressor.
    pub compressor: Option<Option<Compressor>>,
}

impl CodecChange {
    /// The codec after the change.
    pub(crate) fn apply(self, codec: ColumnCodec) -> ColumnCodec {
        ColumnCodec {
            encoding: self.encoding.unwrap_or(codec.encoding),
            compressor: self.compressor.unwrap_or(codec.compressor),
        }
    }
}

/// Changes to a table's settings; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionChanges {
    /// New time to live; `Some(None)` keeps rows for ever.
    #[expect(
        clippy::option_option,
        reason = "unset, none, and a time are three different things"
    )]
    pub ttl_ns: Option<Option<i64>>,
    /// New width of a partition.
    pub partition_ns: Option<i64>,
    /// New size of a page, bytes.
    pub page_bytes: Option<u32>,
    /// New default codec of fields that have no codec of their own.
    pub codec: CodecChange,
    /// New codec of cold data.
    pub cold_codec: Option<ColdCodec>,
    /// New identity by which series are found.
    pub identity: Option<SeriesIdentity>,
}

impl OptionChanges {
    /// The settings after the changes.
    pub(crate) fn apply(&self, options: &TableOptions) -> TableOptions {
        let codec = self.codec.apply(ColumnCodec {
            encoding: options.encoding,
            compressor: options.compressor,
        });
        TableOptions {
            ttl_ns: self.ttl_ns.unwrap_or(options.ttl_ns),
            partition_ns: self.partition_ns.unwrap_or(options.partition_ns),
            page_bytes: self.page_bytes.unwrap_or(options.page_bytes),
            encoding: codec.encoding,
            compressor: codec.compressor,
            cold_codec: self.cold_codec.unwrap_or(options.cold_codec),
            identity: self.identity.unwrap_or(options.identity),
            zoned: options.zoned.clone(),
        }
    }
}

/// Settings of a materialized view; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewOptions {
    /// Whether it is refreshed automatically.
    pub continuous: Option<bool>,
    /// The interval between refreshes, ns.
    pub refresh_ns: Option<i64>,
    /// How far it lags behind the newest row, ns.
    pub lag_ns: Option<i64>,
    /// Settings of its table.
    pub table: OptionChanges,
    /// What the client is told of settings that do nothing.
    pub notices: Vec<String>,
}

/// A call of TimescaleDB that changes something.
#[derive(Clone, Debug)]
pub(crate) struct HypertableCall {
    /// The function.
    pub description: &'static FunctionDescription,
    /// The table or view that it names.
    pub target: Option<TableReferenceName>,
    /// The other arguments that are given: their names, and their expressions as SQL.
    pub arguments: Vec<(&'static str, String)>,
    /// Whether it names a dimension instead of a column.
    pub is_by_dimension: bool,
    /// The name of its column in the answer.
    pub column: String,
}

/// What calls answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallAnswerForm {
    /// One column for each call.
    Values,
    /// The columns of the one call.
    Columns,
    /// No rows.
    Nothing,
}

/// Calls of TimescaleDB that change something.
#[derive(Clone, Debug)]
pub(crate) struct HypertableStatement {
    /// The calls, in order.
    pub calls: Vec<HypertableCall>,
    /// What the statement answers with.
    pub form: CallAnswerForm,
}

/// One change of `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableAlteration {
    /// A new column.
    Add {
        /// Name.
        name: String,
        /// What it holds: a tag or a field.
        kind: ColumnKind,
        /// Whether a column of that name may exist already.
        if_not_exists: bool,
    },
    /// A new codec for a field.
    Codec {
        /// Name.
        name: String,
        /// What changes.
        change: CodecChange,
    },
    /// Another type for a column, in which its values stay the same.
    Type {
        /// Name.
        name: String,
        /// The type as it is written.
        written: DataType,
    },
    /// New settings.
    Set(OptionChanges),
    /// Settings of TimescaleDB.
    Hypertable(HypertableSettings),
    /// A new name for the table.
    Rename(String),
    /// A new name for a column: from the first to the second.
    RenameColumn(String, String),
    /// A dropped column.
    Drop {
        /// Name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// A primary or unique key, which must be the tags and the time.
    Key {
        /// `PRIMARY KEY` or `UNIQUE`.
        kind: &'static str,
        /// Its columns.
        columns: Vec<String>,
    },
    /// An owner, of which tables have none.
    Owner,
}

/// A parsed `CREATE TABLE … AS`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CreateTableAs {
    /// The database, if one is named; otherwise the session's.
    pub database: Option<String>,
    /// The new table.
    pub table: String,
    /// Whether it may exist.
    pub if_not_exists: bool,
    /// Its tags, if they are named.
    pub tags: Option<Vec<String>>,
    /// Its time column, if it is named.
    pub time: Option<String>,
    /// Settings.
    pub options: OptionChanges,
    /// The query, as it is written.
    pub query: String,
    /// Whether to insert the query's rows.
    pub with_data: bool,
}

/// A parsed `CREATE VIEW`.
#[derive(Clone, Debug)]
pub(crate) struct CreatePlainView {
    /// The view.
    pub target: TableReferenceName,
    /// Whether it replaces a view with this name.
    pub or_replace: bool,
    /// Whether it may exist.
    pub if_not_exists: bool,
    /// The names of its columns, if given.
    pub columns: Vec<String>,
    /// The query, as it is written.
    pub query: String,
}

/// What `SHOW` shows.
#[derive(Clone, Debug)]
pub(crate) enum ShowStatement {
    /// Databases.
    Databases,
    /// Tables of a database.
    Tables(Option<String>),
    /// Columns of a table.
    Columns(TableReferenceName),
    /// The statement that would create a table.
    CreateTable(TableReferenceName),
    /// Segments, of one table or of all.
    Segments(Option<TableReferenceName>),
    /// Pages of a table.
    Pages {
        /// The table.
        target: TableReferenceName,
        /// The segment whose pages are shown; `None` for all segments.
        segment: Option<u64>,
        /// The largest number of pages to show.
        limit: Option<u64>,
    },
    /// Compactions that are running or ended recently.
    Compactions,
    /// Materialized views of a database.
    Views(Option<String>),
    /// A session variable.
    Variable(String),
    /// All session variables.
    All,
}

/// A parsed statement.
#[derive(Clone, Debug)]
pub(crate) enum Command {
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
        target: TableReferenceName,
        /// Columns in their order.
        columns: Vec<(String, ColumnKind)>,
        /// Settings.
        options: OptionChanges,
        /// Whether it may exist.
        if_not_exists: bool,
        /// What the client is told.
        notices: Vec<String>,
    },
    /// `ALTER TABLE`
    AlterTable {
        /// The table.
        target: TableReferenceName,
        /// Changes in their order.
        changes: Vec<TableAlteration>,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `CREATE INDEX`
    CreateIndex {
        /// The table.
        target: TableReferenceName,
        /// Its columns.
        columns: Vec<String>,
        /// Whether rows may not have the same values in them.
        is_unique: bool,
    },
    /// `DROP TABLE`
    DropTable {
        /// The tables.
        targets: Vec<TableReferenceName>,
        /// Whether they may be missing.
        if_exists: bool,
        /// Whether foreign keys that refer to them go, too.
        cascades: bool,
    },
    /// Calls of TimescaleDB that change something.
    Hypertable(HypertableStatement),
    /// `CREATE TABLE … AS`
    CreateTableAs(CreateTableAs),
    /// `SUMMARIZE`, with the query to summarize.
    Summarize(DeepTree<Statement>),
    /// `TRUNCATE`
    Truncate {
        /// The tables.
        targets: Vec<TableReferenceName>,
        /// Whether the numbers of identity columns begin anew.
        restarts_identity: bool,
        /// Whether tables that refer to them are emptied, too.
        cascades: bool,
    },
    /// A statement about reference tables, or about a table that may be one.
    Reference(ReferenceStatement),
    /// `CREATE VIEW`
    CreatePlainView(CreatePlainView),
    /// `DROP VIEW`
    DropPlainView {
        /// The views.
        targets: Vec<TableReferenceName>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `ALTER [MATERIALIZED] VIEW … RENAME TO`
    RenameView {
        /// The view.
        target: TableReferenceName,
        /// Its new name.
        to: String,
    },
    /// `CREATE MATERIALIZED VIEW`
    CreateView {
        /// The view.
        target: TableReferenceName,
        /// Whether it may exist.
        if_not_exists: bool,
        /// Settings.
        options: ViewOptions,
        /// Its query, as it is written.
        query: String,
        /// Whether it is filled before the statement completes.
        with_data: bool,
    },
    /// `ALTER MATERIALIZED VIEW`
    AlterView {
        /// The view.
        target: TableReferenceName,
        /// New settings.
        options: ViewOptions,
    },
    /// `DROP MATERIALIZED VIEW`
    DropView {
        /// The views.
        targets: Vec<TableReferenceName>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `REFRESH MATERIALIZED VIEW`
    RefreshView(TableReferenceName),
    /// `USE`
    Use(String),
    /// `SET`; `None` restores the default.
    Set {
        /// Variable, in lower case.
        name: String,
        /// Its new value.
        value: Option<String>,
    },
    /// `SHOW …` that needs no planning.
    Show(ShowStatement),
    /// `FLUSH`
    Flush,
    /// `COMPACT`
    Compact,
    /// `COPY … FROM 'file'`
    CopyFrom(CopyFrom),
    /// `COMPACT TABLE`
    CompactTable(TableReferenceName),
    /// A statement about users, roles, grants and tokens.
    Access(AccessStatement),
    /// A statement about the transaction block, and its command tag.
    Transaction(TransactionStep, &'static str),
    /// A statement that is accepted but has no effect; the command tag.
    Nothing(&'static str),
    /// A statement that is accepted, and tells the client that it has no effect.
    Skipped {
        /// The command tag.
        tag: &'static str,
        /// Why it has none.
        notice: String,
    },
    /// `VACUUM`, `ANALYZE` and the like, which Marigram does not need.
    Maintain {
        /// The command tag.
        tag: &'static str,
        /// The tables that it names.
        targets: Vec<TableReferenceName>,
    },
    /// A statement for DataFusion, and the names of its result's columns.
    Plan(DeepTree<Statement>, Names),
}

impl Command {
    /// The stack that executing it needs.
    pub(crate) fn need(&self) -> StackNeed {
        match self {
            Self::Plan(statement, _) | Self::Summarize(statement) => statement.need(),
            _ => StackNeed::for_depth(0),
        }
    }
}
