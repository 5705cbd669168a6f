//! Numbers that identify tables, columns and series. They are newtypes, so that they cannot be
//! confused.

use std::fmt;

/// A table's number, unique in a data directory and never reused after the table is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A field's number within its table; stable under renames and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u32);

impl ColumnId {
    /// The time column. Fields are numbered from 1.
    pub const TIME: Self = Self(0);
}

/// A column of a table, whatever its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableColumn {
    /// The time column.
    Time,
    /// The tag with this ordinal.
    Tag(u16),
    /// The field with this id.
    Field(ColumnId),
}

/// A series' number, dense from 0 within a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u32);

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SeriesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
