//! INSERT: which tables, tags and columns; the rows stay text.

use super::TaosName;
use crate::value::TaosValue;
use std::ops::Range;

/// An INSERT into one or several tables. The rows of a clause are read with
/// [`InsertedRows`](crate::InsertedRows) from the text of the statement: they need no memory of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosInsert {
    /// One for each table.
    pub clauses: Vec<TaosInsertClause>,
}

/// The rows for one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosInsertClause {
    /// The table; a super table if its columns name `tbname`.
    pub table: TaosName,
    /// How to create the table if it is not there.
    pub using: Option<TaosUsing>,
    /// The columns; `None` for all, in order.
    pub columns: Option<Vec<String>>,
    /// Where the rows stand in the text.
    pub rows: Range<usize>,
    /// How many there are.
    pub row_count: usize,
}

/// USING: the super table and the tags of a table that may have to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosUsing {
    /// The super table.
    pub stable: TaosName,
    /// The tags that have values; `None` for all, in order.
    pub tag_names: Option<Vec<String>>,
    /// Their values.
    pub tags: Vec<TaosValue<'static>>,
}
