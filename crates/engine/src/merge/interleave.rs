//! Rows of one series that alternate between sources every few rows, as late rows do.
//!
//! The heap would have to be consulted for every row or two. Instead, the loaded rows of one series
//! are ordered at once, by their [times alone](super::order) if that is sufficient. Otherwise, the
//! longest list is traversed, and the rows of all others, sorted once, are inserted; the result is
//! a list of slices. Rows that several sources have are merged field by field, as in
//! [`overlay`](super::overlay).

use super::MergeStream;
use super::assemble::BatchAssembler;
use super::block::DecodedBlock;
use super::gather::{self, BlockSlice};
use super::key::RowKey;
use super::order::{self, SourceRows};
use crate::error::Result;
use arrow_array::Array;
use marigram_model::{SeriesId, SeriesRun};
use std::sync::Arc;

/// Ordering rows at once is worthwhile if a source supplies fewer rows than this before another one
/// follows.
const SHORT_ROWS: usize = 48;

/// This many rows are worth a block of their own.
const OWN_BLOCK_ROWS: usize = 64;

/// A row outside of the longest list: its time, its source, and its index there.
type OtherRow = (i64, u32, u32);

/// A source with loaded rows of the series.
struct InterleavedSource {
    cursor: u32,
    block: Arc<DecodedBlock>,
    /// The first row ahead, in its block.
    start: u32,
}

impl MergeStream {
    /// Orders the loaded rows of the first source's series, as far as that is certain, and takes
    /// them; `false` if the first source has many rows before the next one follows, and nothing was
    /// done. The first head must be exact.
    pub(super) fn take_interleaved(&mut self, bound: RowKey) -> Result<bool> {
        let Some((_, first)) = self.heap.first() else {
            return Ok(false);
        };
        let (series, _, times) = self.cursors[first as usize].ahead();
        let comes_soon = bound.series() == Some(series)
            && times
                .get(SHORT_ROWS)
                .is_none_or(|time| bound.time() <= *time);
        if !comes_soon {
            return Ok(false);
        }
        let last = times.len().min(self.assembler.batch_rows().max(SHORT_ROWS));
        let end = times[last - 1];
        let (members, end) = self.gather_members(series, end)?;
        self.order(series, members, end);
        Ok(true)
    }

    /// Takes all sources that have rows of `series` up to `end` out of the heap, and returns them
    /// with the time up to which all of their rows are loaded.
    fn gather_members(
        &mut self,
        series: SeriesId,
        mut end: i64,
    ) -> Result<(Vec<InterleavedSource>, i64)> {
        let mut members = Vec::new();
        while let Some((head, at)) = self.heap.first() {
            if head.key > RowKey::new(series, end) {
                break;
            }
            let cursor = &mut self.cursors[at as usize];
            if !head.exact {
                cursor.open(&self.scope)?;
                self.heap.replace_first(cursor.head());
                continue;
            }
            self.heap.replace_first(None);
            let block = cursor.block(&self.scope)?;
            let (_, start, times) = cursor.ahead();
            if let Some(last) = times.last().filter(|_| cursor.may_go_on()) {
                end = end.min(*last);
            }
            members.push(InterleavedSource {
                cursor: at,
                block,
                start: start as u32,
            });
        }
        Ok((members, end))
    }

    /// Passes the members' rows up to `end` to the assembler, and puts the members back.
    fn order(&mut self, series: SeriesId, mut members: Vec<InterleavedSource>, end: i64) {
        let Self {
            cursors,
            heap,
            assembler,
            scope,
            ..
        } = self;
        // The newest first, so that among equal rows the first one wins.
        members.sort_by_key(|m| std::cmp::Reverse(cursors[m.cursor as usize].rank()));
        let ahead: Vec<&[i64]> = members
            .iter()
            .map(|member| {
                let times = cursors[member.cursor as usize].ahead().2;
                &times[..times.partition_point(|time| *time <= end)]
            })
            .collect();
        let taken: Vec<usize> = ahead.iter().map(|times| times.len()).collect();
        let rows_taken: usize = taken.iter().sum();
        let ordered = (rows_taken >= OWN_BLOCK_ROWS).then(|| {
            let rows = members
                .iter()
                .zip(&ahead)
                .map(|(member, times)| SourceRows {
                    times,
                    block: &member.block,
                    start: member.start as usize,
                });
            order::in_order(&rows.collect::<Vec<_>>(), &scope.columns)
        });
        let given_way = match ordered.flatten() {
            Some(ordered) => {
                let rows = ordered.times.len();
                let block =
                    DecodedBlock::copied(ordered.times, ordered.columns, scope.memory.as_ref());
                let run = SeriesRun {
                    series,
                    rows: rows as u32,
                };
                assembler.push_slice(&Arc::new(block), 0, rows, &[run]);
                (rows_taken - rows) as u64
            }
            None => InterleavedWalk::along(series, &members, &ahead, assembler),
        };
        scope.metrics.add_merged(given_way);
        for (member, taken) in members.iter().zip(taken) {
            let cursor = &mut cursors[member.cursor as usize];
            cursor.skip(taken);
            if let Some(head) = cursor.head() {
                heap.push(head, member.cursor);
            }
        }
    }
}

/// The rows of a series on their way to the assembler.
struct InterleavedWalk<'a> {
    series: SeriesId,
    members: &'a [InterleavedSource],
    assembler: &'a mut BatchAssembler,
    /// Slices in order; `block` is the number of the member.
    parts: Vec<BlockSlice>,
    /// The members that have the current row, and its position in each; newest first.
    equal: Vec<(u32, u32)>,
}

impl<'a> InterleavedWalk<'a> {
    /// Passes the rows of `members`, which have the times `ahead`, to the assembler. Returns how
    /// many of them others replaced.
    fn along(
        series: SeriesId,
        members: &'a [InterleavedSource],
        ahead: &[&[i64]],
        assembler: &'a mut BatchAssembler,
    ) -> u64 {
        let longest = (0..ahead.len()).max_by_key(|at| ahead[*at].len());
        let longest = longest.unwrap_or_default();
        let mut others: Vec<OtherRow> = Vec::new();
        for (at, times) in ahead.iter().enumerate().filter(|(at, _)| *at != longest) {
            let rows = times.iter().enumerate();
            others.extend(rows.map(|(row, time)| (*time, at as u32, row as u32)));
        }
        // A stable sort is fast on concatenated sorted lists, and keeps the newest of equal rows
        // first.
        others.sort_by_key(|other| other.0);
        let mut walk = Self {
            series,
            members,
            assembler,
            parts: Vec::with_capacity(2 * others.len() + 1),
            equal: Vec::new(),
        };
        walk.run(ahead[longest], longest as u32, &others)
    }

    /// Inserts `others` into `times`, the rows of member `longest`. Returns how many rows others
    /// replaced.
    fn run(&mut self, times: &[i64], longest: u32, others: &[OtherRow]) -> u64 {
        let (mut row, mut at, mut given_way) = (0, 0, 0);
        while let Some((time, _, _)) = others.get(at).copied() {
            let before = rows_before(&times[row..], time);
            self.push(longest, row, before);
            row += before;
            self.equal.clear();
            while let Some((_, member, place)) = others.get(at).filter(|other| other.0 == time) {
                self.equal.push((*member, *place));
                at += 1;
            }
            if times.get(row) == Some(&time) {
                let newer = self.equal.partition_point(|(member, _)| *member < longest);
                self.equal.insert(newer, (longest, row as u32));
                row += 1;
            }
            given_way += self.equal.len() as u64 - 1;
            let (member, place) = self.equal[0];
            if self.equal.len() == 1 || self.members[member as usize].carries_all() {
                self.push(member, place as usize, 1);
            } else {
                self.push_merged();
            }
        }
        self.push(longest, row, times.len() - row);
        self.hand_over();
        given_way
    }

    /// Adds rows of a member, counted from the first one ahead.
    fn push(&mut self, member: u32, row: usize, len: usize) {
        if len > 0 {
            let part = BlockSlice {
                block: member,
                start: self.members[member as usize].start + row as u32,
                len: len as u32,
            };
            gather::extend(&mut self.parts, part);
        }
    }

    /// Adds a row that several members have, merged field by field.
    fn push_merged(&mut self) {
        self.hand_over();
        let holders = || {
            self.equal.iter().map(|(member, row)| {
                let member = &self.members[*member as usize];
                (&member.block, (member.start + row) as usize)
            })
        };
        let run = SeriesRun {
            series: self.series,
            rows: 1,
        };
        self.assembler.push_merged(run, |column| match column {
            None => holders().next(),
            Some(column) => holders().find(|(block, row)| {
                let array = block.columns[column].as_ref();
                array.is_some_and(|array| !array.is_null(*row))
            }),
        });
    }

    fn hand_over(&mut self) {
        let block = |at: u32| &self.members[at as usize].block;
        self.assembler.push_parts(&self.parts, block, self.series);
        self.parts.clear();
    }
}

impl InterleavedSource {
    /// Whether none of its rows lacks a field.
    fn carries_all(&self) -> bool {
        let mut columns = self.block.columns.iter();
        columns.all(|column| {
            column
                .as_ref()
                .is_some_and(|column| column.null_count() == 0)
        })
    }
}

/// How many of `times`, which ascend, are before `time`: searched from the start in doubling steps,
/// because it is usually near.
fn rows_before(times: &[i64], time: i64) -> usize {
    let mut step = 1;
    while times.get(step - 1).is_some_and(|at| *at < time) {
        step *= 2;
    }
    let from = step / 2;
    let until = times.len().min(step);
    from + times[from..until].partition_point(|at| *at < time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_before_a_time_are_counted_near_and_far() {
        for len in 0..40i64 {
            let times: Vec<i64> = (0..len).map(|at| at * 2).collect();
            for time in -1..=2 * len {
                let expected = times.iter().filter(|at| **at < time).count();
                assert_eq!(rows_before(&times, time), expected, "{len} {time}");
            }
        }
    }
}
