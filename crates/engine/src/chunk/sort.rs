//! Sorts written rows into storage order: by (series, time), with duplicates merged.
//!
//! Rows mostly arrive in time order within each series. So a stable counting sort distributes them
//! by series (series ids are dense), and only series whose times do not ascend are sorted. The sort
//! moves only the time and the place of a row; the columns are gathered by place afterwards, slice
//! by slice, so that a flush never holds a second copy of all its rows.
//!
//! A place is `part << 16 | row`; places ascend in the order of arrival.

use crate::chunk::part::{ChunkPart, PART_ROWS};
use crate::text;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_select::interleave::interleave;
use marigram_model::{ColumnId, FieldType, SeriesId, SeriesRun};
use marigram_segment::SegmentColumn;
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

/// Most parts that can be sorted together.
pub(crate) const PARTS_MAX: usize = 1 << 16;

/// If the ids span more than this times the number of rows, the rows are sorted in two passes.
const SPARSE: usize = 8;

/// Approximate number of words in a bucket, if they are evenly distributed.
const BUCKET_WORDS: usize = 2;

/// The storage order of the rows in some parts.
#[derive(Debug)]
pub(crate) struct ChunkOrder {
    /// Runs of series, ascending.
    pub runs: Vec<SeriesRun>,
    /// Time of each row in order, ns.
    pub times: Vec<i64>,
    /// Place of each row in order; of the newest if several rows have the same (series, time).
    places: Vec<u32>,
    /// Places of overwritten rows: (row in order, place), ascending by row, newest first.
    older: Vec<(u32, u32)>,
}

/// A row to sort.
#[derive(Clone, Copy)]
struct SortItem {
    time: i64,
    place: u32,
}

impl ChunkOrder {
    /// The order of the rows of `parts`, which are in the order of arrival.
    pub(crate) fn from_parts(parts: &[ChunkPart]) -> Self {
        assert!(parts.len() <= PARTS_MAX, "callers must merge parts first");
        let rows: usize = parts.iter().map(ChunkPart::len).sum();
        let mut order = Self {
            runs: Vec::new(),
            times: Vec::with_capacity(rows),
            places: Vec::with_capacity(rows),
            older: Vec::new(),
        };
        if is_sorted(parts) {
            for (place, series, time) in walk(parts) {
                order.push(series, SortItem { time, place });
            }
            return order;
        }
        match SeriesIdSpan::from_parts(parts)
            .filter(|span| span.len() <= SPARSE * rows.max(PART_ROWS))
        {
            Some(span) => order.distribute(parts, rows, span),
            None => order.sort_sparse(parts, rows),
        }
        for row in order.older.chunk_by_mut(|a, b| a.0 == b.0) {
            row.reverse();
        }
        order
    }

    /// Adds all rows if their series ids are close together: a counting sort, whose result only
    /// changes for series whose times do not ascend.
    fn distribute(&mut self, parts: &[ChunkPart], rows: usize, span: SeriesIdSpan) {
        let mut starts = vec![0_u32; span.len() + 1];
        for part in parts {
            for series in &*part.series {
                starts[(series - span.min) as usize + 1] += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        self.times.resize(rows, 0);
        self.places.resize(rows, 0);
        for (at, part) in parts.iter().enumerate() {
            let mut place = (at as u32) << 16;
            for (series, time) in part.series.iter().zip(part.times.iter()) {
                let next = &mut starts[(series - span.min) as usize];
                self.times[*next as usize] = *time;
                self.places[*next as usize] = place;
                *next += 1;
                place = place.wrapping_add(1);
            }
        }
        // Each start has moved to the end of its series.
        let mut sorter = SeriesSorter::default();
        let (mut start, mut kept) = (0, 0);
        for (series, end) in (span.min..).zip(&starts[..span.len()]) {
            let rows = start..*end as usize;
            start = rows.end;
            if !rows.is_empty() {
                kept = self.settle(series, rows, kept, &mut sorter);
            }
        }
        self.times.truncate(kept);
        self.places.truncate(kept);
    }

    /// Orders the distributed rows of a series, which then begin at row `to` of the order; returns
    /// the row after them.
    fn settle(
        &mut self,
        series: u32,
        rows: Range<usize>,
        to: usize,
        sorter: &mut SeriesSorter,
    ) -> usize {
        let rises = (self.times[rows.clone()].windows(2)).all(|pair| pair[0] < pair[1]);
        let end = if rises {
            if to < rows.start {
                self.times.copy_within(rows.clone(), to);
                self.places.copy_within(rows.clone(), to);
            }
            to + rows.len()
        } else {
            self.settle_sorted(rows, to, sorter)
        };
        self.runs.push(SeriesRun {
            series: SeriesId(series),
            rows: (end - to) as u32,
        });
        end
    }

    /// [`settle`](Self::settle) for rows whose times do not ascend.
    fn settle_sorted(&mut self, rows: Range<usize>, to: usize, sorter: &mut SeriesSorter) -> usize {
        let mut end = to;
        for item in sorter.sort(&self.times[rows.clone()], &self.places[rows]) {
            if end > to && self.times[end - 1] == item.time {
                let older = std::mem::replace(&mut self.places[end - 1], item.place);
                self.older.push((end as u32 - 1, older));
                continue;
            }
            (self.times[end], self.places[end]) = (item.time, item.place);
            end += 1;
        }
        end
    }

    /// Adds all rows if they are few and their series ids far apart: a comparison sort.
    fn sort_sparse(&mut self, parts: &[ChunkPart], rows: usize) {
        let mut items = Vec::with_capacity(rows);
        items.extend(walk(parts).map(|(place, series, time)| (series, SortItem { time, place })));
        items.sort_unstable_by_key(|(series, item)| (*series, item.time, item.place));
        for (series, item) in items {
            self.push(series, item);
        }
    }

    /// Adds the next row, or a newer version of the last one.
    fn push(&mut self, series: u32, item: SortItem) {
        let run = self.runs.last_mut().filter(|run| run.series.0 == series);
        let Some(run) = run else {
            self.runs.push(SeriesRun {
                series: SeriesId(series),
                rows: 1,
            });
            self.times.push(item.time);
            self.places.push(item.place);
            return;
        };
        if self.times.last() == Some(&item.time) {
            let row = self.times.len() - 1;
            let older = std::mem::replace(&mut self.places[row], item.place);
            self.older.push((row as u32, older));
            return;
        }
        run.rows += 1;
        self.times.push(item.time);
        self.places.push(item.place);
    }

    /// Gathers the values of `columns` for the rows of the order in `ranges` (ascending), from the
    /// same parts. The rows must have less text than an array can hold: see [`TextSizes`].
    pub(crate) fn gather(
        &self,
        parts: &[ChunkPart],
        columns: &[SegmentColumn],
        ranges: &[Range<usize>],
    ) -> Vec<ArrayRef> {
        if let [range] = ranges
            && let Some((part, start)) = self.whole_slice(parts, range)
        {
            return columns
                .iter()
                .map(|column| match part.column(column.id) {
                    Some(values) => values.slice(start, range.len()),
                    None => column.kind.nulls(range.len()),
                })
                .collect();
        }
        let older = self.older_in(ranges);
        let places: Vec<&[u32]> = ranges
            .iter()
            .map(|range| &self.places[range.clone()])
            .collect();
        let newest: OnceCell<Vec<(usize, usize)>> = OnceCell::new();
        let each = || places.iter().flat_map(|places| places.iter());
        let newest = || newest.get_or_init(|| each().map(|place| split(*place)).collect());
        columns
            .iter()
            .map(|column| {
                let whole = if older.is_empty() {
                    gather_numbers(parts, *column, &places)
                } else {
                    None
                };
                whole.unwrap_or_else(|| gather_one(parts, *column, &older, newest()))
            })
            .collect()
    }

    /// The places of overwritten rows within `ranges`, as (row of the output, place).
    fn older_in(&self, ranges: &[Range<usize>]) -> Vec<(usize, u32)> {
        let mut older = Vec::new();
        let mut output = 0;
        for range in ranges {
            let first = self
                .older
                .partition_point(|(row, _)| (*row as usize) < range.start);
            let within = self.older[first..].iter();
            let within = within.take_while(|(row, _)| (*row as usize) < range.end);
            older.extend(within.map(|(row, at)| (output + *row as usize - range.start, *at)));
            output += range.len();
        }
        older
    }

    /// The part, and the row in it, from which the range can be sliced directly.
    fn whole_slice<'a>(
        &self,
        parts: &'a [ChunkPart],
        range: &Range<usize>,
    ) -> Option<(&'a ChunkPart, usize)> {
        let places = &self.places[range.clone()];
        let (first, last) = (*places.first()?, *places.last()?);
        let in_order = self.older.is_empty()
            && last.checked_sub(first) == u32::try_from(places.len() - 1).ok()
            && split(first).0 == split(last).0
            && places.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let (part, row) = split(first);
        in_order.then(|| (&parts[part], row))
    }
}

/// Sorts the rows of one series after another, in memory that it reuses.
#[derive(Default)]
struct SeriesSorter {
    words: Vec<u64>,
    /// The words, grouped by bucket.
    sorted: Vec<u64>,
    /// Position of the next word of each bucket.
    next: Vec<u32>,
    items: Vec<SortItem>,
}

impl SeriesSorter {
    /// The rows of a series by (time, place); their `places` ascend, and there is at least one.
    fn sort(&mut self, times: &[i64], places: &[u32]) -> &[SortItem] {
        let item = |row: usize| SortItem {
            time: times[row],
            place: places[row],
        };
        let earliest = times.iter().min().copied().unwrap_or(0);
        let since = |time: &i64| time.wrapping_sub(earliest) as u64;
        let span = times.iter().map(since).max().unwrap_or(0);
        let row_bits = u64::BITS - (times.len() as u64).leading_zeros();
        self.items.clear();
        if span.leading_zeros() >= row_bits {
            // A time and a row's number fit one word, and sorting words is much faster than sorting
            // items.
            let row_mask = (1 << row_bits) - 1;
            let rows = times.iter().zip(0..);
            self.words.clear();
            self.words
                .extend(rows.map(|(time, row)| since(time) << row_bits | row));
            self.sort_words(span << row_bits | row_mask);
            let rows = self.sorted.iter().map(|word| (word & row_mask) as usize);
            self.items.extend(rows.map(item));
        } else {
            self.items.extend((0..times.len()).map(item));
            self.items
                .sort_unstable_by_key(|item| (item.time, item.place));
        }
        &self.items
    }

    /// Sorts the words; there is at least one, and none exceeds `most`. Sorts first by their
    /// highest bits into buckets of a few words each, because late times are mostly evenly
    /// distributed, and then within each bucket.
    fn sort_words(&mut self, most: u64) {
        let Self {
            words,
            sorted,
            next,
            ..
        } = self;
        let bucket_bits = (words.len() / BUCKET_WORDS).max(2).ilog2();
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(bucket_bits);
        let bucket = |word: &u64| (word >> shift) as usize;
        next.clear();
        next.resize((1 << bucket_bits) + 1, 0);
        for word in &*words {
            next[bucket(word) + 1] += 1;
        }
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        sorted.resize(words.len(), 0);
        for word in &*words {
            let next = &mut next[bucket(word)];
            sorted[*next as usize] = *word;
            *next += 1;
        }
        // Each start has moved to the end of its bucket.
        let mut start = 0;
        for end in &next[..1 << bucket_bits] {
            sorted[start..*end as usize].sort_unstable();
            start = *end as usize;
        }
    }
}

/// Gathers a column of numbers by place; `None` if the column has another type, or a row may have
/// no value.
fn gather_numbers(
    parts: &[ChunkPart],
    column: SegmentColumn,
    places: &[&[u32]],
) -> Option<ArrayRef> {
    match column.kind {
        FieldType::I32 => gather_dense::<Int32Type>(parts, column.id, places),
        FieldType::I64 => gather_dense::<Int64Type>(parts, column.id, places),
        FieldType::U64 => gather_dense::<UInt64Type>(parts, column.id, places),
        FieldType::F32 => gather_dense::<Float32Type>(parts, column.id, places),
        FieldType::F64 => gather_dense::<Float64Type>(parts, column.id, places),
        FieldType::Timestamp => gather_dense::<TimestampNanosecondType>(parts, column.id, places),
        FieldType::Bool | FieldType::String | FieldType::Bytes => None,
    }
}

fn gather_dense<T: ArrowPrimitiveType>(
    parts: &[ChunkPart],
    id: ColumnId,
    places: &[&[u32]],
) -> Option<ArrayRef> {
    let dense = parts.iter().map(|part| {
        let values = part.column(id)?;
        (values.null_count() == 0).then(|| &values.as_primitive::<T>().values()[..])
    });
    let values: Vec<&[T::Native]> = dense.collect::<Option<_>>()?;
    let value = |place: &u32| {
        let (part, row) = split(*place);
        values[part][row]
    };
    let mut gathered = Vec::with_capacity(places.iter().map(|places| places.len()).sum());
    for places in places {
        gathered.extend(places.iter().map(value));
    }
    Some(Arc::new(PrimitiveArray::<T>::new(gathered.into(), None)))
}

/// Gathers one column by the places of the newest rows; nulls are filled from the newest of the
/// older rows that is not null.
fn gather_one(
    parts: &[ChunkPart],
    column: SegmentColumn,
    older: &[(usize, u32)],
    newest: &[(usize, usize)],
) -> ArrayRef {
    // Parts without the column share a single null, to which all their rows point.
    let null = column.kind.nulls(1);
    let arrays: Vec<Option<&ArrayRef>> = parts.iter().map(|part| part.column(column.id)).collect();
    let is_null = |(part, row): (usize, usize)| arrays[part].is_none_or(|a| a.is_null(row));
    let mut patched: Option<Vec<(usize, usize)>> = None;
    for (row, place) in older {
        if is_null(patched.as_deref().unwrap_or(newest)[*row]) {
            patched.get_or_insert_with(|| newest.to_vec())[*row] = split(*place);
        }
    }
    if arrays.iter().any(Option::is_none) {
        for place in patched.get_or_insert_with(|| newest.to_vec()) {
            if arrays[place.0].is_none() {
                place.1 = 0;
            }
        }
    }
    let arrays: Vec<&dyn Array> = arrays
        .into_iter()
        .map(|array| array.unwrap_or(&null).as_ref())
        .collect();
    interleave(&arrays, patched.as_deref().unwrap_or(newest))
        .expect("a column has one type, and callers limit its text")
}

/// Text sizes of the rows in an order.
pub(crate) struct TextSizes<'a> {
    order: &'a ChunkOrder,
    /// For each part, the offsets of its text columns.
    offsets: Vec<Vec<&'a [i32]>>,
}

impl<'a> TextSizes<'a> {
    /// For the rows of `parts` in their order; `None` if there are no text columns.
    pub(crate) fn from_order(order: &'a ChunkOrder, parts: &'a [ChunkPart]) -> Option<Self> {
        let of_part = |part: &'a ChunkPart| -> Vec<&'a [i32]> {
            part.columns
                .iter()
                .filter_map(|(_, values)| text::offsets(values))
                .collect()
        };
        let offsets: Vec<Vec<&[i32]>> = parts.iter().map(of_part).collect();
        let any = offsets.iter().any(|part| !part.is_empty());
        any.then_some(Self { order, offsets })
    }

    /// Upper bound of the text bytes of a row in the order: the text of everything written for it.
    pub(crate) fn bytes_max(&self, row: usize) -> usize {
        let older = &self.order.older;
        let first = older.partition_point(|(at, _)| (*at as usize) < row);
        let older = older[first..]
            .iter()
            .take_while(|(at, _)| *at as usize == row);
        let places = std::iter::once(self.order.places[row]).chain(older.map(|(_, place)| *place));
        places.map(|place| self.bytes_at(place)).sum()
    }

    fn bytes_at(&self, place: u32) -> usize {
        let (part, row) = split(place);
        let texts = self.offsets[part].iter();
        texts
            .map(|offsets| (offsets[row + 1] - offsets[row]) as usize)
            .sum()
    }
}

fn split(place: u32) -> (usize, usize) {
    ((place >> 16) as usize, row_of(place))
}

fn row_of(place: u32) -> usize {
    place as usize & (PART_ROWS - 1)
}

/// The range of ids that contains all series of some rows.
#[derive(Clone, Copy)]
struct SeriesIdSpan {
    min: u32,
    max: u32,
}

impl SeriesIdSpan {
    /// `None` if there are no rows.
    fn from_parts(parts: &[ChunkPart]) -> Option<Self> {
        let all = parts.iter().flat_map(|part| part.series.iter().copied());
        let (min, max) = all.fold((u32::MAX, 0), |(min, max), s| (min.min(s), max.max(s)));
        (min <= max).then_some(Self { min, max })
    }

    /// Number of ids in the range.
    fn len(self) -> usize {
        (self.max - self.min) as usize + 1
    }
}

/// All rows in the order of arrival as (place, series, time).
fn walk(parts: &[ChunkPart]) -> impl Iterator<Item = (u32, u32, i64)> {
    parts.iter().enumerate().flat_map(|(at, part)| {
        let start = (at as u32) << 16;
        let rows = part.series.iter().zip(part.times.iter()).enumerate();
        rows.map(move |(row, (series, time))| (start + row as u32, *series, *time))
    })
}

fn is_sorted(parts: &[ChunkPart]) -> bool {
    let mut last: Option<(u32, i64)> = None;
    for part in parts {
        for (series, time) in part.series.iter().zip(part.times.iter()) {
            if last.is_some_and(|last| last >= (*series, *time)) {
                return false;
            }
            last = Some((*series, *time));
        }
    }
    true
}
