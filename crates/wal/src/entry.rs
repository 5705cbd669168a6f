//! Entries of the log: the changes of a shard.

use arrow_array::ArrayRef;
use arrow_buffer::ScalarBuffer;
use marigram_model::{ColumnId, DeletedRows, SeriesId, TableId, TagKey, TimeRange};

/// One change of a shard. Sequence numbers rise by one or more from entry to entry.
#[derive(Clone, Debug)]
pub enum WalEntry {
    /// Rows of one table.
    Write(WriteEntry),
    /// A delete of rows.
    Delete(DeleteEntry),
    /// The table was dropped: all its rows up to here are gone.
    DropTable(TableId),
}

/// Rows of one table, columnar.
#[derive(Clone, Debug)]
pub struct WriteEntry {
    /// Table.
    pub table: TableId,
    /// Series that first appear with this entry; ids are the index's next ones, ascending.
    pub new_series: Vec<(SeriesId, TagKey)>,
    /// Per row: its series id.
    pub series: ScalarBuffer<u32>,
    /// Per row: its time, ns.
    pub times: ScalarBuffer<i64>,
    /// Fields, each with a value or null per row.
    pub columns: Vec<(ColumnId, ArrayRef)>,
}

/// A delete of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteEntry {
    /// Table.
    pub table: TableId,
    /// Which rows within `range`.
    pub rows: DeletedRows,
    /// Times that bound the deleted rows, both ends included.
    pub range: TimeRange,
}

impl DeleteEntry {
    /// Whether all rows of the named series go, and the series with them.
    #[must_use]
    pub fn retires_series(&self) -> bool {
        self.range == TimeRange::ALL && !matches!(self.rows, DeletedRows::Ranges(_))
    }
}
