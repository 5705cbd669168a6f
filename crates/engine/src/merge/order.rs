//! Puts rows of one series out of several sources in order where that is told by their times alone:
//! every row has all of its fields, and these are numbers.
//!
//! Rows are numbered, source by source, and it is numbers that are put in order: by places, where times
//! come at a pace, as they mostly do, or by sorting. Then times and columns are gathered by numbers,
//! without a branch, however short the slices are that alternate.

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

/// So many times as many places as rows are looked through at most: sorting would take as long.
const PLACES_A_ROW_MAX: usize = 4;

/// Rows of a source: `times.len()` rows of `block` from row `start` on.
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

/// The rows of `sources`, the newest source first, whose times ascend in each; of equal rows the
/// newest. `None` where more than times must be looked at, or they lie too far apart.
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

/// Times of rows, which are numbered as they stand here.
struct NumberedTimes {
    all: Vec<i64>,
    earliest: i64,
    latest: i64,
    /// The least distance of two times of the source that has the most, and of the first times of all;
    /// at least 2.
    pace: u64,
}

impl NumberedTimes {
    /// Of sources one after the other; `None` where they have no rows.
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

    /// The rows in order, if there is a place for each at their pace.
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
        // Rounded up, so that multiples of the pace come to their places; times are in order by it
        // whatever they are.
        let reciprocal = u64::MAX / pace + 1;
        let mut places = vec![0u32; last as usize + 2];
        let mut taken = 0;
        for (time, number) in all.iter().zip(1..) {
            let place = (u128::from(since(*time, *earliest)) * u128::from(reciprocal)) >> u64::BITS;
            // There is none for times of a damaged page that do not ascend.
            let place = places.get_mut(place as usize)?;
            taken |= *place;
            *place = number;
        }
        if taken != 0 {
            return None;
        }
        let (mut rows, mut len) = (vec![0; all.len() + 1], 0);
        for number in places {
            // What is written for an empty place is written over.
            rows[len] = number.wrapping_sub(1);
            len += usize::from(number != 0);
        }
        rows.truncate(all.len());
        Some(rows)
    }

    /// The rows in order, of each time the first; `None` where a time and a number need more bits than
    /// a word has, which is sorted in a fraction of what a pair would take.
    fn by_words(&self) -> Option<Vec<u32>> {
        let since = |time: i64| since(time, self.earliest);
        let row_bits = u64::BITS - (self.all.len() as u64).leading_zeros();
        let spare = since(self.latest).leading_zeros();
        // Times mostly are multiples of something.
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
            reason = "a stable sort is quick at lists that are sorted already"
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

/// The values of `rows`, which number those of the slices (values, first row, rows), one after the
/// other; `None` for a type whose values are not numbers.
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
