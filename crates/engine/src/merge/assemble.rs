//! Assembles batches: collects slices of blocks until there are enough rows, then gathers them.
//!
//! A long slice is a batch of its own, so that whole pages are handed on without a copy.

use super::block::Block;
use super::gather::{self, NO_BLOCK, Part};
use marigram_model::{SeriesId, SeriesRun, SortedRows};
use marigram_segment::SegmentColumn;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Decoded bytes that a batch in the making may hold on to, beside the pages that cursors have in
/// hand; above, its rows are copied together, so that a few rows do not keep many pages in memory.
const HELD_BYTES_MAX: usize = 4 << 20;

/// A batch in the making.
#[derive(Debug)]
pub(super) struct Assembler {
    columns: Vec<SegmentColumn>,
    batch_rows: usize,
    blocks: Vec<Arc<Block>>,
    /// Where a block stands in `blocks`, by its address.
    places: HashMap<usize, u32>,
    held_bytes: usize,
    /// Above, it is looked whether to let go of blocks.
    held_bytes_max: usize,
    pieces: Vec<Piece>,
    /// Of rows merged from several blocks: for each the block and row of its time, then of each
    /// column.
    picks: Vec<(u32, u32)>,
    runs: Vec<SeriesRun>,
    rows: usize,
    done: VecDeque<SortedRows>,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Slice(Part),
    /// One merged row: its place among the picks.
    Merged(usize),
}

impl Assembler {
    pub(super) fn new(columns: Vec<SegmentColumn>, batch_rows: usize) -> Self {
        Self {
            columns,
            batch_rows: batch_rows.clamp(1, 1 << 24),
            blocks: Vec::new(),
            places: HashMap::new(),
            held_bytes: 0,
            held_bytes_max: HELD_BYTES_MAX,
            pieces: Vec::new(),
            picks: Vec::new(),
            runs: Vec::new(),
            rows: 0,
            done: VecDeque::new(),
        }
    }

    pub(super) fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// A finished batch, if there is one.
    pub(super) fn ready(&mut self) -> Option<SortedRows> {
        if self.done.is_empty() && self.rows >= self.batch_rows {
            return Some(self.build());
        }
        self.done.pop_front()
    }

    /// What is left at the end.
    pub(super) fn finish(&mut self) -> Option<SortedRows> {
        (self.rows > 0).then(|| self.build())
    }

    /// Adds consecutive rows of a block, whose series are `runs`.
    pub(super) fn push_slice(
        &mut self,
        block: &Arc<Block>,
        start: usize,
        len: usize,
        runs: &[SeriesRun],
    ) {
        let long = len >= self.batch_rows.div_ceil(4);
        if long && self.rows > 0 {
            let rows = self.build();
            self.done.push_back(rows);
        }
        let block = self.place_of(block);
        self.pieces.push(Piece::Slice(Part {
            block,
            start: start as u32,
            len: len as u32,
        }));
        self.rows += len;
        for run in runs {
            self.push_run(*run);
        }
        if long {
            let rows = self.build();
            self.done.push_back(rows);
        } else {
            self.let_go();
        }
    }

    /// Copies the rows so far together, if that lets go of many blocks that no cursor has in hand
    /// any more.
    fn let_go(&mut self) {
        if self.held_bytes <= self.held_bytes_max {
            return;
        }
        let left = |block: &&Arc<Block>| Arc::strong_count(block) == 1;
        let left_bytes: usize = self
            .blocks
            .iter()
            .filter(left)
            .map(|block| block.bytes)
            .sum();
        if left_bytes > HELD_BYTES_MAX && self.blocks.len() > 1 {
            self.compact();
        } else {
            self.held_bytes_max = self.held_bytes + HELD_BYTES_MAX / 4;
        }
    }

    /// Adds slices of several blocks, all of one series.
    pub(super) fn push_parts<'a>(
        &mut self,
        parts: &[Part],
        block: impl Fn(u32) -> &'a Arc<Block>,
        series: SeriesId,
    ) {
        let long = self.batch_rows.div_ceil(4);
        let mut places: Vec<(u32, u32)> = Vec::new();
        for part in parts {
            let run = SeriesRun {
                series,
                rows: part.len,
            };
            if part.len as usize >= long {
                // It may end the batch, and then no block has its place any more.
                let (start, len) = (part.start as usize, part.len as usize);
                self.push_slice(block(part.block), start, len, &[run]);
                places.clear();
                continue;
            }
            let known = places.iter().find(|(member, _)| *member == part.block);
            let place = match known {
                Some((_, place)) => *place,
                None => {
                    let place = self.place_of(block(part.block));
                    places.push((part.block, place));
                    place
                }
            };
            self.pieces.push(Piece::Slice(Part {
                block: place,
                ..*part
            }));
            self.rows += part.len as usize;
            self.push_run(run);
        }
        self.let_go();
    }

    /// Adds one row. `pick` gives the block and row of its time (for `None`) and of each column;
    /// no block stands for no value.
    pub(super) fn push_merged<'a>(
        &mut self,
        run: SeriesRun,
        pick: impl Fn(Option<usize>) -> Option<(&'a Arc<Block>, usize)>,
    ) {
        self.pieces.push(Piece::Merged(self.picks.len()));
        let columns = std::iter::once(None).chain((0..self.columns.len()).map(Some));
        for column in columns {
            let picked = match pick(column) {
                Some((block, row)) => (self.place_of(block), row as u32),
                None => (NO_BLOCK, 0),
            };
            self.picks.push(picked);
        }
        self.rows += 1;
        self.push_run(run);
    }

    fn push_run(&mut self, run: SeriesRun) {
        match self.runs.last_mut() {
            Some(last) if last.series == run.series => last.rows += run.rows,
            _ => self.runs.push(run),
        }
    }

    /// The block's place among those of this batch: mostly one of the latest.
    fn place_of(&mut self, block: &Arc<Block>) -> u32 {
        let latest = self.blocks.len().saturating_sub(8);
        let known = self.blocks[latest..]
            .iter()
            .rposition(|held| Arc::ptr_eq(held, block));
        if let Some(at) = known {
            return (latest + at) as u32;
        }
        let next = self.blocks.len() as u32;
        let place = *self
            .places
            .entry(Arc::as_ptr(block) as usize)
            .or_insert(next);
        if place == next {
            self.held_bytes += block.bytes;
            self.blocks.push(block.clone());
        }
        place
    }

    /// Copies the rows so far together and lets go of their blocks.
    fn compact(&mut self) {
        let rows = self.build();
        self.rows = rows.len();
        self.runs = rows.runs;
        let part = Part {
            block: 0,
            start: 0,
            len: self.rows as u32,
        };
        self.pieces.push(Piece::Slice(part));
        let columns = rows.columns.into_iter().map(Some).collect();
        self.blocks
            .push(Arc::new(Block::new(rows.times, columns, None)));
    }

    fn build(&mut self) -> SortedRows {
        let rows = std::mem::take(&mut self.rows);
        let width = self.columns.len() + 1;
        let parts_of = |column: usize| {
            let mut parts = Vec::with_capacity(self.pieces.len());
            for piece in &self.pieces {
                let part = match piece {
                    Piece::Slice(part) => *part,
                    Piece::Merged(at) => {
                        let (block, start) = self.picks[at + column];
                        Part {
                            block,
                            start,
                            len: 1,
                        }
                    }
                };
                gather::extend(&mut parts, part);
            }
            parts
        };
        let block = |at: u32| &self.blocks[at as usize];
        let time_parts = parts_of(0);
        let times = gather::times(&time_parts, rows, |at| &block(at).times);
        let columns = (1..width)
            .map(|column| {
                let own;
                let parts = if self.picks.is_empty() {
                    &time_parts
                } else {
                    own = parts_of(column);
                    &own
                };
                let kind = self.columns[column - 1].kind;
                gather::column(kind, parts, rows, |at| {
                    block(at).columns[column - 1].as_ref()
                })
            })
            .collect();
        self.pieces.clear();
        self.picks.clear();
        self.blocks.clear();
        self.places.clear();
        self.held_bytes = 0;
        self.held_bytes_max = HELD_BYTES_MAX;
        SortedRows {
            runs: std::mem::take(&mut self.runs),
            times,
            columns,
        }
    }
}
