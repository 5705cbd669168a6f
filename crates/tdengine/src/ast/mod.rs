//! The syntax tree of a statement.
//!
//! Names are as TDengine stores them: lower case, unless they stand in backquotes.
//!
//! Invariant: a tree that the parser makes is not deeper than the limits of the crate allow.

mod definition;
mod expression;
mod insert;
mod query;
mod show;

pub use definition::{
    TaosAlterTable, TaosColumn, TaosCreateTable, TaosDatabaseOption, TaosDrop, TaosSubTable,
    TaosTableChange,
};
pub use expression::{TaosCall, TaosExpr, TaosLiteral, TaosOperator};
pub use insert::{TaosInsert, TaosInsertClause, TaosUsing};
pub use query::{
    TaosFill, TaosFrom, TaosJoin, TaosJoinKind, TaosLimit, TaosOrder, TaosPartition, TaosQuery,
    TaosQueryBody, TaosSelect, TaosSelectItem, TaosWindow,
};
pub use show::{TaosShow, TaosTableKind};

/// A name with or without its database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaosName {
    /// The database.
    pub database: Option<String>,
    /// The name.
    pub name: String,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosStatement {
    /// SELECT.
    Query(Box<TaosQuery>),
    /// EXPLAIN of a query.
    Explain(Box<TaosQuery>),
    /// INSERT.
    Insert(TaosInsert),
    /// CREATE DATABASE.
    CreateDatabase {
        /// Name.
        name: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Options, as they are written.
        options: Vec<TaosDatabaseOption>,
    },
    /// ALTER DATABASE.
    AlterDatabase {
        /// Name.
        name: String,
        /// The options to change.
        options: Vec<TaosDatabaseOption>,
    },
    /// DROP DATABASE.
    DropDatabase {
        /// Name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// USE.
    UseDatabase(String),
    /// CREATE TABLE and CREATE STABLE with columns.
    CreateTable(TaosCreateTable),
    /// CREATE TABLE … USING …, for one or several tables.
    CreateSubTables(Vec<TaosSubTable>),
    /// DROP TABLE.
    DropTables(Vec<TaosDrop>),
    /// DROP STABLE.
    DropStable(TaosDrop),
    /// ALTER TABLE and ALTER STABLE.
    AlterTable(TaosAlterTable),
    /// DESCRIBE.
    Describe(TaosName),
    /// SHOW.
    Show(TaosShow),
    /// DELETE.
    Delete {
        /// The table.
        table: TaosName,
        /// WHERE.
        condition: Option<TaosExpr>,
    },
    /// A command about storage or caches, which has nothing to do here: FLUSH, COMPACT, RESET.
    Maintain,
}
