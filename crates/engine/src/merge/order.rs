//! Orders the rows of one series from several sources if their times alone decide: every row has
//! all of its fields, and these are numbers.
//!
//! Rows are numbered, source by source, and the numbers are ordered: by slots if the times are
//! regular, as they mostly are, or otherwise by sorting. Then times and columns are gathered by
//! number, branch-free, however short the alternating slices are.

use super::block::DecodedBlock;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use marigram_model::FieldType;
use marigram_segment::SegmentColumn;
use std::sync::Arc;

/// Most slots per row: with more, sorting would take no longer.
const PLACES_A_ROW_MAX: usize = 4;

/// The rows of a source: `times.len()` rows of `block` from row `start` on.
#[derive(Clone, Copy)]
pub(super) struct SourceRows<'a> {
    pub(super) times: &'a [i64],
    pub(super) block: &'a DecodedBlock,
    pub(super) start: usize,
}

/// Rows in order, each time once.
pub(super) struct OrderedRows {
    pub(super) times: ScalarBuffer<i64>,
    pub(super) columns: Vec<Option<ArrayRef>>,
}

/// The rows of `sources` in order; the newest source comes first, and the times ascend in each. Of
/// equal rows, the newest is taken. `None` if the times alone do not decide, or are too far apart.
pub(super) fn in_order(
    sources: &[SourceRows<'_>],
    columns: &[SegmentColumn],
) -> Option<OrderedRows> {
    let are_dense = sources.iter().all(|rows| {
        let mut columns = rows.block.columns.iter();
        columns.all(|column| column.as_ref().is_some_and(is_dense))
    });
    if !are_dense {
        return None;
    }
    let times = NumberedTimes::from_sources(sources)?;
    let rows = times.by_places().or_else(|| times.by_words())?;
    let columns = columns.iter().enumerate().map(|(at, column)| {
        let slices = sources.iter().filter_map(|rows| {
            let values = rows.block.columns[at].as_ref()?;
            Some((values, rows.start, rows.times.len()))
        });
        gathered(column.kind, slices, &rows).map(Some)
    });
    Some(OrderedRows {
        columns: columns.collect::<Option<_>>()?,
        times: pick(&times.all, &rows).into(),
    })
}

fn is_dense(values: &ArrayRef) -> bool {
    values.data_type().is_primitive() && values.null_count() == 0
}

/// The times of rows, numbered in this order.
struct NumberedTimes {
    all: Vec<i64>,
    earliest: i64,
    latest: i64,
    /// The smallest distance between two times of the largest source, and between the first times
    /// of all sources; at least 2.
    pace: u64,
}

impl NumberedTimes {
    /// The times of consecutive sources; `None` if they have no rows.
    fn from_sources(sources: &[SourceRows<'_>]) -> Option<Self> {
        let lists = || sources.iter().map(|rows| rows.times);
        let mut all = Vec::with_capacity(lists().map(<[i64]>::len).sum());
        lists().for_each(|times| all.extend_from_slice(times));
        let longest = lists().max_by_key(|times| times.len())?;
        let mut firsts: Vec<i64> = lists().filter_map(|times| times.first().copied()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        let pairs = longest.windows(2).chain(firsts.windows(2));
        let pace = pairs.map(|pair| since(pair[1], pair[0])).min();
        Some(Self {
            earliest: *firsts.first()?,
            latest: *lists().filter_map(<[i64]>::last).max()?,
            pace: pace.unwrap_or(2).max(2),
            all,
        })
    }

    /// The rows in order, if each has its own slot at this pace.
    fn by_places(&self) -> Option<Vec<u32>> {
        let Self {
            all,
            earliest,
            latest,
            pace,
        } = self;
        let last = since(*latest, *earliest) / pace;
        if last >= (PLACES_A_ROW_MAX * all.len()) as u64 {
            return None;
        }
        // Rounded up, so that multiples of the pace fall into their slots; it preserves the order
        // of times in any case.
        let reciprocal = u64::MAX / pace + 1;
        let mut places = vec![0u32; last as usize + 2];
        let mut taken = 0;
        for (time, number) in all.iter().zip(1..) {
            let place = (u128::from(since(*time, *earliest)) * u128::from(reciprocal)) >> u64::BITS;
            // There is none if the times of a damaged page do not ascend.
            let place = places.get_mut(place as usize)?;
            taken |= *place;
            *place = number;
        }
        if taken != 0 {
            return None;
        }
        let (mut rows, mut len) = (vec![0; all.len() + 1], 0);
        for number in places {
            // The value written for an empty slot is overwritten.
            rows[len] = number.wrapping_sub(1);
            len += usize::from(number != 0);
        }
        rows.truncate(all.len());
        Some(rows)
    }

    /// The rows in order, the first one of each time; `None` if a time and a number need more bits
    /// than a word, which sorts in a fraction of the time of a pair.
    fn by_words(&self) -> Option<Vec<u32>> {
        let since = |time: i64| since(time, self.earliest);
        let row_bits = u64::BITS - (self.all.len() as u64).leading_zeros();
        let spare = since(self.latest).leading_zeros();
        // Times are mostly multiples of some number.
        let any = self.all.iter().fold(0, |any, time| any | since(*time));
        let scale = any.trailing_zeros().min(u64::BITS - 1);
        if spare + scale < row_bits {
            return None;
        }
        let words = self.all.iter().zip(0..);
        let mut words: Vec<u64> = words
            .map(|(time, row)| (since(*time) >> scale) << row_bits | row)
            .collect();
        #[expect(
            clippy::stable_sort_primitive,
            reason = "a stable sort is fast on lists that are already sorted"
        )]
        words.sort();
        words.dedup_by_key(|word| *word >> row_bits);
        let mask = (1 << row_bits) - 1;
        Some(words.iter().map(|word| (word & mask) as u32).collect())
    }
}

fn since(time: i64, earlier: i64) -> u64 {
    time.wrapping_sub(earlier).cast_unsigned()
}

fn pick<T: Copy>(all: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| all[*row as usize]).collect()
}

/// The values of `rows`, which number the rows of consecutive slices (values, first row, rows);
/// `None` for a type whose values are not numbers.
fn gathered<'a>(
    kind: FieldType,
    slices: impl Iterator<Item = (&'a ArrayRef, usize, usize)>,
    rows: &[u32],
) -> Option<ArrayRef> {
    Some(match kind {
        FieldType::I32 => numbers::<Int32Type>(slices, rows),
        FieldType::I64 => numbers::<Int64Type>(slices, rows),
        FieldType::U64 => numbers::<UInt64Type>(slices, rows),
        FieldType::F32 => numbers::<Float32Type>(slices, rows),
        FieldType::F64 => numbers::<Float64Type>(slices, rows),
        FieldType::Timestamp => numbers::<TimestampNanosecondType>(slices, rows),
        FieldType::Bool | FieldType::String | FieldType::Bytes => return None,
    })
}

fn numbers<'a, T: ArrowPrimitiveType>(
    slices: impl Iterator<Item = (&'a ArrayRef, usize, usize)>,
    rows: &[u32],
) -> ArrayRef {
    let mut all: Vec<T::Native> = Vec::with_capacity(rows.len());
    for (values, start, len) in slices {
        all.extend_from_slice(&values.as_primitive::<T>().values()[start..start + len]);
    }
    let values = pick(&all, rows);
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
}

#[cfg(test)]
mod tests;
