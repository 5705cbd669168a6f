//! Rows of an aggregate, by group, in columns.

use crate::interrupt;
use arrow::array::{Array, ArrayRef, DynComparator, UInt32Array, make_comparator};
use arrow::compute::{SortOptions, concat, take};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::EmitTo;
use std::cmp::Ordering;
use std::sync::Arc;

/// How rows are ordered and which of them count.
#[derive(Debug, Clone)]
pub(super) struct CollectedOrder {
    /// One for each column of ORDER BY; these columns follow the value.
    pub keys: Vec<SortOptions>,
    /// Of equal values in a group, one counts: DISTINCT. The rows then have the value only, and
    /// `keys` has its order.
    pub distinct: bool,
    /// Whether rows without a value count.
    pub keeps_nulls: bool,
}

impl CollectedOrder {
    /// The columns by which rows are sorted.
    fn key_columns<'a>(&self, columns: &'a [ArrayRef]) -> &'a [ArrayRef] {
        if self.distinct {
            &columns[..1]
        } else {
            &columns[1..]
        }
    }
}

/// The rows, as they arrived: pieces, of which each is larger than all that follow.
#[derive(Debug)]
pub(super) struct GroupedRows {
    order: CollectedOrder,
    pieces: Vec<RowPiece>,
    groups: usize,
    bytes: usize,
    /// With DISTINCT: the number of rows at which duplicates are removed again.
    compacted_at: usize,
}

#[derive(Debug)]
struct RowPiece {
    /// The value, then the columns of ORDER BY.
    columns: Vec<ArrayRef>,
    groups: Vec<u32>,
    bytes: usize,
}

/// Rows in the order of their groups.
#[derive(Debug)]
pub(super) struct EmittedRows {
    /// The value, then the columns of ORDER BY; none if there are no rows.
    pub columns: Vec<ArrayRef>,
    /// Where the rows of each group begin, and where the last ones end.
    pub offsets: Vec<i32>,
}

/// Rows before the first removal of duplicates.
const DISTINCT_ROWS: usize = 65_536;
/// What the columns of a piece take beside their buffers.
const COLUMN_BYTES: usize = 128;
/// A row's share of what sorting needs: its number, twice, and its group.
const SORT_BYTES: usize = 12;

fn bytes_of(columns: &[ArrayRef]) -> usize {
    let column = |column: &ArrayRef| column.get_array_memory_size() + COLUMN_BYTES;
    columns.iter().map(column).sum()
}

/// A number of rows, which DataFusion's groups and Arrow's indices hold in 32 bits.
fn row_number(number: usize) -> Result<u32> {
    let wide = |_| DataFusionError::ResourcesExhausted("an aggregate has too many rows".to_owned());
    u32::try_from(number).map_err(wide)
}

impl GroupedRows {
    /// No rows.
    pub(super) fn new(order: CollectedOrder) -> Self {
        Self {
            order,
            pieces: Vec::new(),
            groups: 0,
            bytes: 0,
            compacted_at: DISTINCT_ROWS,
        }
    }

    /// How rows are ordered.
    pub(super) fn order(&self) -> &CollectedOrder {
        &self.order
    }

    /// There are this many groups, also if some have no rows.
    pub(super) fn have_groups(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
    }

    /// Adds the rows for which `groups` has a group.
    pub(super) fn append(
        &mut self,
        columns: &[ArrayRef],
        groups: impl Iterator<Item = Option<usize>>,
    ) -> Result<()> {
        interrupt::check()?;
        let nulls = if self.order.keeps_nulls {
            None
        } else {
            columns[0].logical_nulls()
        };
        let (mut rows, mut of_rows) = (Vec::new(), Vec::new());
        for (row, group) in groups.enumerate() {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            if let (Some(group), false) = (group, is_null) {
                rows.push(row_number(row)?);
                of_rows.push(row_number(group)?);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let width = if self.order.distinct {
            1
        } else {
            1 + self.order.keys.len()
        };
        // A copy, because a slice would hold all of the batch of which it is a part.
        let columns = taken(&columns[..width], &UInt32Array::from(rows))?;
        self.push(columns, of_rows);
        while let [.., before, last] = self.pieces.as_slice()
            && before.groups.len() <= last.groups.len()
        {
            self.join_last()?;
        }
        if self.order.distinct && self.rows() >= self.compacted_at {
            let emitted = self.emit(EmitTo::All, true)?;
            self.restore(emitted)?;
            self.compacted_at = (self.rows() * 2).max(DISTINCT_ROWS);
        }
        Ok(())
    }

    /// The number of rows.
    fn rows(&self) -> usize {
        self.pieces.iter().map(|piece| piece.groups.len()).sum()
    }

    /// The bytes of the rows, of their sorted copy, and of the answer that is made of it.
    pub(super) fn size(&self) -> usize {
        self.bytes * 2 + self.rows() * SORT_BYTES + self.groups * size_of::<i32>()
    }

    fn push(&mut self, columns: Vec<ArrayRef>, groups: Vec<u32>) {
        let bytes = bytes_of(&columns) + groups.capacity() * size_of::<u32>();
        self.bytes += bytes;
        self.pieces.push(RowPiece {
            columns,
            groups,
            bytes,
        });
    }

    /// Makes one piece of the last two.
    fn join_last(&mut self) -> Result<()> {
        let (Some(last), Some(mut before)) = (self.pieces.pop(), self.pieces.pop()) else {
            return Ok(());
        };
        self.bytes = self.bytes.saturating_sub(last.bytes + before.bytes);
        let pairs = before.columns.iter().zip(&last.columns);
        let columns = pairs.map(|(before, last)| Ok(concat(&[before, last])?));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        before.groups.reserve_exact(last.groups.len());
        before.groups.extend(last.groups);
        self.push(columns, before.groups);
        Ok(())
    }

    fn restore(&mut self, emitted: EmittedRows) -> Result<()> {
        if emitted.columns.is_empty() {
            return Ok(());
        }
        let mut groups = Vec::with_capacity(emitted.columns[0].len());
        for (group, ends) in emitted.offsets.windows(2).enumerate() {
            let number = row_number(group)?;
            groups.extend((ends[0]..ends[1]).map(|_| number));
        }
        self.have_groups(emitted.offsets.len().saturating_sub(1));
        self.push(emitted.columns, groups);
        Ok(())
    }

    /// Removes the rows of some groups and returns them; those of the other groups stay. They are
    /// sorted if they are `final`: partial results are sorted when they are joined.
    pub(super) fn emit(&mut self, emit_to: EmitTo, is_final: bool) -> Result<EmittedRows> {
        let emitted = self.sorted(emit_to, is_final)?;
        let groups = emitted.offsets.len() - 1;
        let kept = self.groups - groups;
        let pieces = std::mem::take(&mut self.pieces);
        (self.bytes, self.groups) = (0, kept);
        if kept == 0 {
            return Ok(emitted);
        }
        let first = row_number(groups)?;
        for piece in pieces {
            let rows = piece.groups.iter().zip(0_u32..);
            let rows = rows.filter(|(group, _)| **group >= first);
            let (of_rows, rows): (Vec<u32>, Vec<u32>) =
                rows.map(|(group, row)| (group - first, row)).unzip();
            if !rows.is_empty() {
                let columns = taken(&piece.columns, &UInt32Array::from(rows))?;
                self.push(columns, of_rows);
            }
        }
        Ok(emitted)
    }

    /// The rows of some groups; all rows stay.
    pub(super) fn sorted(&mut self, emit_to: EmitTo, is_final: bool) -> Result<EmittedRows> {
        while self.pieces.len() > 1 {
            self.join_last()?;
        }
        let groups = match emit_to {
            EmitTo::All => self.groups,
            EmitTo::First(groups) => groups.min(self.groups),
        };
        let mut offsets = vec![0_i32; groups + 1];
        let Some(piece) = self.pieces.first() else {
            return Ok(EmittedRows {
                columns: Vec::new(),
                offsets,
            });
        };
        let end = row_number(groups)?;
        let rows = (0_u32..).zip(&piece.groups);
        let rows = rows.filter(|(_, group)| **group < end);
        let mut rows: Vec<u32> = rows.map(|(row, _)| row).collect();
        let group = |row: u32| piece.groups[row as usize];
        let same = if is_final || self.order.distinct {
            let keys = self.order.key_columns(&piece.columns);
            let keys = comparators(keys, &self.order.keys)?;
            rows.sort_unstable_by(|&left, &right| {
                let by_group = group(left).cmp(&group(right));
                let by_keys = || compare(&keys, left, right);
                by_group.then_with(by_keys).then_with(|| left.cmp(&right))
            });
            interrupt::check()?;
            self.order.distinct.then_some(keys)
        } else {
            rows.sort_by_key(|row| group(*row));
            None
        };
        if let Some(keys) = same {
            rows.dedup_by(|next, kept| {
                group(*next) == group(*kept) && compare(&keys, *kept, *next).is_eq()
            });
        }
        for row in &rows {
            offsets[group(*row) as usize + 1] += 1;
        }
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1];
        }
        let columns = taken(&piece.columns, &UInt32Array::from(rows))?;
        Ok(EmittedRows { columns, offsets })
    }
}

fn taken(columns: &[ArrayRef], rows: &UInt32Array) -> Result<Vec<ArrayRef>> {
    let column = |column: &ArrayRef| Ok(take(column, rows, None)?);
    columns.iter().map(column).collect()
}

fn comparators(columns: &[ArrayRef], keys: &[SortOptions]) -> Result<Vec<DynComparator>> {
    let columns = columns.iter().zip(keys);
    let comparator = |(column, options): (&ArrayRef, &SortOptions)| {
        Ok(make_comparator(column, &Arc::clone(column), *options)?)
    };
    columns.map(comparator).collect()
}

fn compare(keys: &[DynComparator], left: u32, right: u32) -> Ordering {
    let (left, right) = (left as usize, right as usize);
    let orders = keys.iter().map(|compare| compare(left, right));
    orders.fold(Ordering::Equal, Ordering::then)
}
