//! Integers that ascend along a grid and skip some of its places, such as the times of a device
//! that reports every second but is not always received: one bit per place.
//!
//! If few places are missing, DELTA is smaller, and its [progressions](crate::progressions) are
//! few. In between, most numbers are one or a few steps after the previous one, so that a bit per
//! place takes less than a number per value; and counting bits tells how many numbers are below a
//! bound.

use crate::bytes::{ByteReader, put_signed, put_varint};
use crate::error::{CodecError, Result};
use crate::integer::{ExactDivisor, gcd};
use std::ops::Range;

/// Number of missing places from which on a new grid takes less than they do.
const HOLE_MAX: u64 = 128;
/// Approximate bytes of a grid's head.
const HEAD_BYTES: usize = 6;
/// Bits of a word.
const WORD: u32 = u64::BITS;
/// Set bits in a word from which on checking every place is faster than finding the next set bit.
const DENSE: u32 = 20;

/// Numbers on consecutive grids with the same step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberGrids {
    step: i64,
    all: Vec<NumberGrid>,
    /// One bit per place, set if there is a number; each grid begins at a word boundary.
    words: Vec<u64>,
    /// How many numbers come before each word, and in total.
    before: Vec<u32>,
}

/// One of the grids: its first and last places hold numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberGrid {
    first: i64,
    /// Its first word.
    word: u32,
    places: u32,
    /// Number of numbers before it, and including it.
    from: u32,
    to: u32,
}

impl NumberGrids {
    /// Distance between places; positive.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// Total number of numbers.
    pub fn len(&self) -> usize {
        self.before.last().map_or(0, |all| *all as usize)
    }

    /// Whether there is no number.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of each grid that contains some of the numbers `from..to`.
    pub fn parts(&self, from: u32, to: u32) -> impl Iterator<Item = GridPart<'_>> {
        let first = self.all.partition_point(|grid| grid.to <= from);
        let grids = self.all[first..].iter();
        grids
            .take_while(move |grid| grid.from < to)
            .map(move |grid| GridPart {
                grids: self,
                grid: *grid,
                from: grid.from.max(from),
                to: grid.to.min(to),
            })
    }

    /// How many numbers of all grids come before place `place`, counted from word `word` on.
    #[inline]
    fn rank(&self, word: u32, place: u32) -> u32 {
        let at = (word + place / WORD) as usize;
        let below = (1u64 << (place % WORD)) - 1;
        // After the last place, there may be no word.
        let bits = self.words.get(at).map_or(0, |bits| bits & below);
        self.before[at] + bits.count_ones()
    }

    /// Whether a grid has as many numbers as it claims, one at its first and at its last place, and
    /// none after that.
    fn is_whole(&self, grid: &NumberGrid) -> bool {
        let last_place = grid.places.wrapping_sub(1);
        let (first, last) = (grid.word as usize, (grid.word + last_place / WORD) as usize);
        grid.places > 0
            && self.before[first] == grid.from
            && self.before[last + 1] == grid.to
            && self.words[first] & 1 == 1
            && self.words[last] >> (last_place % WORD) == 1
    }

    /// Which of the numbers `rows`, which must ascend, are from `min` to `max`.
    fn within(&self, rows: Range<u32>, min: i64, max: i64) -> Range<u32> {
        let first_from = |bound: i64| {
            let firsts = self
                .parts(rows.start, rows.end)
                .map(|part| (part.row_at(bound), part.to));
            let mut firsts = firsts.skip_while(|(row, end)| row == end);
            firsts.next().map_or(rows.end, |(row, _)| row)
        };
        let from = first_from(min);
        let to = max.checked_add(1).map_or(rows.end, first_from);
        from..to.max(from)
    }

    /// The numbers in `rows`.
    fn values(&self, rows: Range<u32>) -> Vec<i64> {
        let mut values = Vec::with_capacity(rows.len());
        let parts = self.parts(rows.start, rows.end);
        for part in parts.filter(|part| part.from < part.to) {
            part.put(&mut values);
        }
        values
    }
}

/// Appends the numbers of a word whose first place stands for `first`.
#[inline]
fn put_word(mut bits: u64, first: i64, step: i64, out: &mut Vec<i64>) {
    if bits.count_ones() < DENSE {
        while bits != 0 {
            let place = i64::from(bits.trailing_zeros());
            out.push(first.wrapping_add(step.wrapping_mul(place)));
            bits &= bits - 1;
        }
        return;
    }
    // Branch-free: the value written for a missing place is overwritten.
    let mut room = [0; WORD as usize];
    let (mut len, mut number) = (0, first);
    for _ in 0..WORD {
        // There are never more numbers than places before this one.
        room[len % WORD as usize] = number;
        len += (bits & 1) as usize;
        bits >>= 1;
        number = number.wrapping_add(step);
    }
    out.extend_from_slice(&room[..len]);
}

/// Consecutive numbers of one grid.
#[derive(Clone, Copy, Debug)]
pub struct GridPart<'a> {
    grids: &'a NumberGrids,
    grid: NumberGrid,
    from: u32,
    to: u32,
}

impl GridPart<'_> {
    /// The page's row numbers that they cover.
    pub fn rows(&self) -> Range<u32> {
        self.from..self.to
    }

    /// Appends them; there must be at least one.
    fn put(&self, out: &mut Vec<i64>) {
        let NumberGrids {
            step,
            words,
            before,
            ..
        } = self.grids;
        let first_word = self.grid.word as usize;
        let end_word = first_word + self.grid.places.div_ceil(WORD) as usize;
        let before = &before[first_word..=end_word];
        // The words that contain them.
        let from = before.partition_point(|rows| *rows <= self.from) - 1;
        let to = before.partition_point(|rows| *rows < self.to);
        let stride = step.wrapping_mul(i64::from(WORD));
        let mut first = self
            .grid
            .first
            .wrapping_add(stride.wrapping_mul(from as i64));
        let start = out.len();
        for bits in &words[first_word + from..first_word + to] {
            put_word(*bits, first, *step, out);
            first = first.wrapping_add(stride);
        }
        out.truncate(start + (self.to - before[from]) as usize);
        out.drain(start..start + (self.from - before[from]) as usize);
    }

    /// The number in row `row` of the page, which must be one of these.
    pub fn get(&self, row: u32) -> i64 {
        if row == self.grid.from {
            return self.grid.first;
        }
        if row + 1 == self.grid.to {
            return self.value_at(i64::from(self.grid.places) - 1);
        }
        let NumberGrids { words, before, .. } = self.grids;
        let from = self.grid.word as usize;
        let to = from + self.grid.places.div_ceil(WORD) as usize;
        let word = from + before[from + 1..to].partition_point(|before| *before <= row);
        let mut bits = words[word];
        for _ in before[word]..row {
            bits &= bits.wrapping_sub(1);
        }
        let place = (word - from) as i64 * i64::from(WORD) + i64::from(bits.trailing_zeros());
        self.value_at(place)
    }

    /// The number at a place.
    fn value_at(&self, place: i64) -> i64 {
        let distance = self.grids.step.wrapping_mul(place);
        self.grid.first.wrapping_add(distance)
    }

    /// The page's row of the first of these numbers that is not below `end`; the row after the last
    /// one if all are below it.
    pub fn row_at(&self, end: i64) -> u32 {
        let Some(ahead) = end.checked_sub(self.grid.first) else {
            // It overflows, upwards or downwards.
            return if end < self.grid.first {
                self.from
            } else {
                self.to
            };
        };
        if ahead <= 0 {
            return self.from;
        }
        let place = (ahead - 1) / self.grids.step + 1;
        self.row_at_place(u32::try_from(place).unwrap_or(u32::MAX))
    }

    #[inline]
    fn row_at_place(&self, place: u32) -> u32 {
        let rank = self.grids.rank(self.grid.word, place.min(self.grid.places));
        rank.clamp(self.from, self.to)
    }

    /// Cuts these numbers at `end`, `end + width`, `end + 2 * width` and so on. Passes each piece
    /// that is not empty to the callback, with the number of cuts before it. `width` must be a
    /// positive multiple of the grid's step, and `end` not below the first of these numbers.
    pub fn cut(&self, end: i64, width: i64, see: impl FnMut(u32, Range<u32>)) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            #[expect(
                unsafe_code,
                reason = "it counts bits in one instruction rather than a dozen"
            )]
            // SAFETY: the processor has POPCNT.
            return unsafe { self.cut_by_popcnt(end, width, see) };
        }
        self.cut_by_any(end, width, see);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn cut_by_popcnt(&self, end: i64, width: i64, see: impl FnMut(u32, Range<u32>)) {
        self.cut_by_any(end, width, see);
    }

    #[expect(
        clippy::inline_always,
        reason = "it must be compiled for the instruction set of its caller"
    )]
    #[inline(always)]
    fn cut_by_any(&self, end: i64, width: i64, mut see: impl FnMut(u32, Range<u32>)) {
        let NumberGrids { step, .. } = self.grids;
        let places = i64::from(self.grid.places);
        // A grid begins before its cuts, so this does not wrap.
        let ahead = end.wrapping_sub(self.grid.first).cast_unsigned();
        let place = ahead.div_ceil(step.unsigned_abs());
        let mut place = place.min(places.unsigned_abs()) as i64;
        let stride = (width / step).clamp(1, places);
        let (mut row, mut cuts) = (self.from, 0);
        loop {
            let next = self.row_at_place(place as u32);
            if next > row {
                see(cuts, row..next);
                row = next;
            }
            if row == self.to {
                return;
            }
            cuts += 1;
            place = (place + stride).min(places);
        }
    }
}

/// How many numbers come before each word, and in total, if `rank` numbers come before the first.
fn ranks(words: &[u64], rank: u32) -> Vec<u32> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("popcnt") {
        #[expect(unsafe_code, reason = "as in `cut`")]
        // SAFETY: the processor has POPCNT.
        return unsafe { ranks_by_popcnt(words, rank) };
    }
    ranks_by_any(words, rank)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn ranks_by_popcnt(words: &[u64], rank: u32) -> Vec<u32> {
    ranks_by_any(words, rank)
}

#[expect(clippy::inline_always, reason = "as `cut_by_any`")]
#[inline(always)]
fn ranks_by_any(words: &[u64], mut rank: u32) -> Vec<u32> {
    let mut ranks = Vec::with_capacity(words.len() + 1);
    ranks.push(rank);
    for word in words {
        rank += word.count_ones();
        ranks.push(rank);
    }
    ranks
}

/// Appends `values` on grids; returns whether it did so: not if they would take more than
/// `bytes_max` bytes.
pub(crate) fn put_grid(values: &[i64], bytes_max: usize, out: &mut Vec<u8>) -> bool {
    let Some(first) = values.first() else {
        return true;
    };
    let step = step_of(values);
    let Some((heads, words)) = laid_out(values, step, bytes_max) else {
        return false;
    };
    let start = out.len();
    put_varint(step, out);
    put_varint(heads.len() as u64, out);
    let mut before = *first;
    put_signed(before, out);
    for head in heads {
        put_signed(head.first.wrapping_sub(before), out);
        put_varint(head.rows, out);
        put_varint(head.places - head.rows, out);
        before = head.first;
    }
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    if out.len() - start > bytes_max {
        out.truncate(start);
        return false;
    }
    true
}

/// The distance from the previous value, `last`, to `value`; `None` if it is not positive, or
/// exceeds i64.
fn ahead(last: i64, value: i64) -> Option<u64> {
    let ahead = value.checked_sub(last)?;
    (ahead > 0).then_some(ahead.cast_unsigned())
}

/// The largest number that divides every distance from a value to a greater one right after it.
/// (Between series, the values fall, so each series may have its own times.)
fn step_of(values: &[i64]) -> u64 {
    let pairs = values.windows(2);
    let divisor = pairs.filter_map(|pair| ahead(pair[0], pair[1])).fold(
        ExactDivisor::new(0),
        |divisor, ahead| {
            if divisor.divides(ahead) {
                divisor
            } else {
                ExactDivisor::new(gcd(divisor.factor, ahead))
            }
        },
    );
    divisor.factor.max(1)
}

/// The data before the words of a grid.
#[derive(Clone, Copy)]
struct GridHeader {
    first: i64,
    rows: u64,
    places: u64,
}

/// The grids of `values`, which must not be empty and whose distances are multiples of `step`;
/// `None` if they take more than about `bytes_max`.
fn laid_out(values: &[i64], step: u64, bytes_max: usize) -> Option<(Vec<GridHeader>, Vec<u64>)> {
    let divisor = ExactDivisor::new(step);
    let hole_max = step.saturating_mul(HOLE_MAX + 1);
    let (mut heads, mut words): (Vec<GridHeader>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut head = GridHeader {
        first: values[0],
        rows: 0,
        places: 1,
    };
    let (mut first_word, mut last) = (0, values[0]);
    for value in values {
        // The distance from the first to the last place of a grid must fit i64.
        let reaches = value.checked_sub(head.first).is_some();
        match ahead(last, *value) {
            Some(ahead) if ahead <= hole_max && reaches => head.places += divisor.divide(ahead),
            _ if head.rows == 0 => {}
            _ => {
                heads.push(head);
                first_word = words.len();
                head = GridHeader {
                    first: *value,
                    rows: 0,
                    places: 1,
                };
            }
        }
        last = *value;
        head.rows += 1;
        let place = head.places - 1;
        let word = first_word + (place / u64::from(WORD)) as usize;
        if word >= words.len() {
            words.resize(word + 1, 0);
            if heads.len() * HEAD_BYTES + words.len() * size_of::<u64>() > bytes_max {
                return None;
            }
        }
        words[word] |= 1 << (place % u64::from(WORD));
    }
    heads.push(head);
    Some((heads, words))
}

/// Reads `count` numbers written by [`put_grid`].
pub(crate) fn read_grids(reader: &mut ByteReader<'_>, count: usize) -> Result<NumberGrids> {
    read_around(reader, count, &(0..count))
}

/// Reads only the grids that contain the numbers in `rows`, out of `count` numbers written by
/// [`put_grid`].
fn read_around(
    reader: &mut ByteReader<'_>,
    count: usize,
    rows: &Range<usize>,
) -> Result<NumberGrids> {
    const DAMAGED: CodecError = CodecError::Damaged("a grid is not as it says");
    if count == 0 {
        return Ok(NumberGrids {
            step: 1,
            all: Vec::new(),
            words: Vec::new(),
            before: vec![0],
        });
    }
    let step = i64::try_from(reader.varint()?).ok();
    let step = step.filter(|step| *step > 0).ok_or(DAMAGED)?;
    let heads = reader.count(count)?;
    let mut first = reader.signed()?;
    let mut all: Vec<NumberGrid> = Vec::with_capacity(heads.min(rows.len()));
    let (mut word, mut row) = (0u32, 0u32);
    for _ in 0..heads {
        first = first.wrapping_add(reader.signed()?);
        let rows_of = reader.count(count - row as usize)? as u32;
        let empty = reader.varint()?;
        if empty > u64::from(rows_of) * HOLE_MAX {
            return Err(DAMAGED);
        }
        let places = u32::try_from(u64::from(rows_of) + empty).map_err(|_| DAMAGED)?;
        let reach = i64::from(places).checked_sub(1).ok_or(DAMAGED)?;
        let last = step
            .checked_mul(reach)
            .and_then(|reach| first.checked_add(reach));
        last.ok_or(DAMAGED)?;
        let (from, to) = (row, row + rows_of);
        if rows.start < to as usize && (from as usize) < rows.end {
            all.push(NumberGrid {
                first,
                word,
                places,
                from,
                to,
            });
        }
        row = to;
        word = word.checked_add(places.div_ceil(WORD)).ok_or(DAMAGED)?;
    }
    if row as usize != count {
        return Err(DAMAGED);
    }
    let bytes = reader.take(word as usize * size_of::<u64>())?;
    let (words, _) = bytes.as_chunks::<{ size_of::<u64>() }>();
    let (start, rank) = all.first().map_or((0, 0), |grid| (grid.word, grid.from));
    let end = all
        .last()
        .map_or(0, |grid| grid.word + grid.places.div_ceil(WORD));
    for grid in &mut all {
        grid.word -= start;
    }
    let words = &words[start as usize..end as usize];
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let before = ranks(&words, rank);
    let grids = NumberGrids {
        step,
        all,
        words,
        before,
    };
    if grids.all.iter().all(|grid| grids.is_whole(grid)) {
        Ok(grids)
    } else {
        Err(DAMAGED)
    }
}

/// Reads the numbers in `rows` out of `count` numbers written by [`put_grid`].
pub(crate) fn read_grid_part(
    reader: &mut ByteReader<'_>,
    count: usize,
    rows: &Range<usize>,
) -> Result<Vec<i64>> {
    let grids = read_around(reader, count, rows)?;
    Ok(grids.values(rows.start as u32..rows.end as u32))
}

/// Like [`read_grid_part`], for the numbers in `rows`, which must ascend, that are from `min` to
/// `max`; also returns which they are.
pub(crate) fn read_grid_within(
    reader: &mut ByteReader<'_>,
    count: usize,
    rows: &Range<usize>,
    (min, max): (i64, i64),
) -> Result<(Range<usize>, Vec<i64>)> {
    let grids = read_around(reader, count, rows)?;
    let within = grids.within(rows.start as u32..rows.end as u32, min, max);
    let values = grids.values(within.clone());
    Ok((within.start as usize..within.end as usize, values))
}

/// Reads `count` numbers written by [`put_grid`] into a list.
pub(crate) fn read_grid(reader: &mut ByteReader<'_>, count: usize) -> Result<Vec<i64>> {
    let grids = read_grids(reader, count)?;
    Ok(grids.values(0..count as u32))
}

#[cfg(test)]
mod tests;
