//! Assembles batches: collects slices of blocks until there are enough rows, then gathers them.
//!
//! A long slice becomes a batch of its own, so that whole pages are passed on without a copy.
//!
//! Invariant: a batch assembled from several blocks has at most about `text_max` bytes of text.
//! Beyond the bytes of its own rows, the current batch keeps at most [`IDLE_BYTES_MAX`] of blocks
//! that nothing else needs.

use super::block::{BlockMemory, DecodedBlock};
use super::gather::{self, BlockSlice, NO_BLOCK};
use crate::text;
use marigram_model::{FieldType, SeriesId, SeriesRun, SortedRows};
use marigram_segment::SegmentColumn;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Bytes of finished pages that the current batch may hold. Above it, the batch's rows are copied,
/// so that a few rows do not keep many pages in memory.
const IDLE_BYTES_MAX: usize = 4 << 20;

/// Number of recent blocks to search before the map of all blocks is used.
const LATEST: usize = 16;

/// The batch under construction.
#[derive(Debug)]
pub(super) struct BatchAssembler {
    columns: Vec<SegmentColumn>,
    batch_rows: usize,
    text_max: usize,
    /// Indexes of the text columns.
    texts: Vec<usize>,
    memory: Option<BlockMemory>,
    blocks: Vec<Arc<DecodedBlock>>,
    /// Index of each block by its address, once there are many.
    places: HashMap<usize, u32>,
    held_bytes: usize,
    /// Whether a block was added since idle ones were last counted.
    grown: bool,
    pieces: Vec<BatchPiece>,
    /// For rows merged from several blocks: the block and row of each row's time, then of each of
    /// its columns.
    picks: Vec<(u32, u32)>,
    runs: Vec<SeriesRun>,
    rows: usize,
    text_bytes: usize,
    done: VecDeque<SortedRows>,
}

#[derive(Clone, Copy, Debug)]
enum BatchPiece {
    Slice(BlockSlice),
    /// One merged row: its index among the picks.
    Merged(usize),
}

impl BatchAssembler {
    pub(super) fn new(
        columns: Vec<SegmentColumn>,
        batch_rows: usize,
        text_max: usize,
        memory: Option<BlockMemory>,
    ) -> Self {
        let is_text = |kind: FieldType| matches!(kind, FieldType::String | FieldType::Bytes);
        let texts = (0..columns.len())
            .filter(|at| is_text(columns[*at].kind))
            .collect();
        Self {
            columns,
            batch_rows: batch_rows.clamp(1, 1 << 24),
            text_max,
            texts,
            memory,
            blocks: Vec::new(),
            places: HashMap::new(),
            held_bytes: 0,
            grown: false,
            pieces: Vec::new(),
            picks: Vec::new(),
            runs: Vec::new(),
            rows: 0,
            text_bytes: 0,
            done: VecDeque::new(),
        }
    }

    pub(super) fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// A finished batch, if there is one.
    pub(super) fn ready(&mut self) -> Option<SortedRows> {
        let full = self.rows >= self.batch_rows || self.text_bytes >= self.text_max;
        if self.done.is_empty() && self.rows > 0 && full {
            return Some(self.build());
        }
        self.done.pop_front()
    }

    /// The last batch.
    pub(super) fn finish(&mut self) -> Option<SortedRows> {
        (self.rows > 0).then(|| self.build())
    }

    /// Adds consecutive rows of a block, whose series are `runs`.
    pub(super) fn push_slice(
        &mut self,
        block: &Arc<DecodedBlock>,
        start: usize,
        len: usize,
        runs: &[SeriesRun],
    ) {
        let long = len >= self.batch_rows.div_ceil(4);
        let bytes = self.text_in(block, start, len);
        // A single slice above the limit becomes a batch without a copy.
        let over = self.text_bytes + bytes > self.text_max;
        if (long || over) && self.rows > 0 {
            let rows = self.build();
            self.done.push_back(rows);
        }
        let block = self.place_of(block);
        self.pieces.push(BatchPiece::Slice(BlockSlice {
            block,
            start: start as u32,
            len: len as u32,
        }));
        self.rows += len;
        self.text_bytes += bytes;
        for run in runs {
            self.push_run(*run);
        }
        if long {
            let rows = self.build();
            self.done.push_back(rows);
        } else {
            self.compact_if_idle();
        }
    }

    /// Adds slices of several blocks, all of one series.
    pub(super) fn push_parts<'a>(
        &mut self,
        parts: &[BlockSlice],
        block: impl Fn(u32) -> &'a Arc<DecodedBlock>,
        series: SeriesId,
    ) {
        let long = self.batch_rows.div_ceil(4);
        let mut places: Vec<(u32, u32)> = Vec::new();
        for part in parts {
            let run = SeriesRun {
                series,
                rows: part.len,
            };
            let (start, len) = (part.start as usize, part.len as usize);
            let bytes = self.text_in(block(part.block), start, len);
            if len >= long || self.text_bytes + bytes > self.text_max {
                // This may end the batch, which invalidates the indexes of blocks.
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
            self.pieces.push(BatchPiece::Slice(BlockSlice {
                block: place,
                ..*part
            }));
            self.rows += len;
            self.text_bytes += bytes;
            self.push_run(run);
        }
        self.compact_if_idle();
    }

    /// Adds one row. `pick` returns the block and row of its time (for `None`) and of each column;
    /// no block means no value.
    pub(super) fn push_merged<'a>(
        &mut self,
        run: SeriesRun,
        pick: impl Fn(Option<usize>) -> Option<(&'a Arc<DecodedBlock>, usize)>,
    ) {
        self.pieces.push(BatchPiece::Merged(self.picks.len()));
        let columns = std::iter::once(None).chain((0..self.columns.len()).map(Some));
        for column in columns {
            let picked = match pick(column) {
                Some((block, row)) => {
                    let values = column.and_then(|column| block.columns[column].as_ref());
                    let bytes = values.map_or(0, |values| text::bytes_in(values, row..row + 1));
                    self.text_bytes += bytes;
                    (self.place_of(block), row as u32)
                }
                None => (NO_BLOCK, 0),
            };
            self.picks.push(picked);
        }
        self.rows += 1;
        self.push_run(run);
        if self.rows >= self.batch_rows || self.text_bytes >= self.text_max {
            let rows = self.build();
            self.done.push_back(rows);
        } else {
            self.compact_if_idle();
        }
    }

    /// Bytes of text in rows of a block.
    fn text_in(&self, block: &DecodedBlock, start: usize, len: usize) -> usize {
        let columns = self
            .texts
            .iter()
            .filter_map(|at| block.columns[*at].as_ref());
        columns
            .map(|values| text::bytes_in(values, start..start + len))
            .sum()
    }

    fn push_run(&mut self, run: SeriesRun) {
        match self.runs.last_mut() {
            Some(last) if last.series == run.series => last.rows += run.rows,
            _ => self.runs.push(run),
        }
    }

    /// The block's index in this batch.
    fn place_of(&mut self, block: &Arc<DecodedBlock>) -> u32 {
        let latest = self.blocks.len().saturating_sub(LATEST);
        let known = self.blocks[latest..]
            .iter()
            .rposition(|held| Arc::ptr_eq(held, block));
        if let Some(at) = known {
            return (latest + at) as u32;
        }
        let address = Arc::as_ptr(block).addr();
        if let Some(place) = self.places.get(&address).filter(|_| latest > 0) {
            return *place;
        }
        let place = self.blocks.len() as u32;
        self.held_bytes += block.bytes;
        self.grown = true;
        self.places.insert(address, place);
        self.blocks.push(block.clone());
        place
    }

    /// Copies the rows so far and releases their blocks, if enough of these are held only for them.
    /// Pages that the merge still reads would not be released by that.
    fn compact_if_idle(&mut self) {
        if self.held_bytes <= IDLE_BYTES_MAX || !std::mem::take(&mut self.grown) {
            return;
        }
        let idle = self
            .blocks
            .iter()
            .filter(|block| Arc::strong_count(block) == 1);
        // A further copy does not split an earlier copy.
        let idle: usize = idle
            .filter(|block| !block.is_copy)
            .map(|block| block.bytes)
            .sum();
        if idle > IDLE_BYTES_MAX {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let text_bytes = self.text_bytes;
        let rows = self.build();
        self.text_bytes = text_bytes;
        self.rows = rows.len();
        self.runs = rows.runs;
        let part = BlockSlice {
            block: 0,
            start: 0,
            len: self.rows as u32,
        };
        self.pieces.push(BatchPiece::Slice(part));
        let columns = rows.columns.into_iter().map(Some).collect();
        let block = DecodedBlock::copied(rows.times, columns, self.memory.as_ref());
        self.held_bytes = block.bytes;
        self.blocks.push(Arc::new(block));
    }

    fn build(&mut self) -> SortedRows {
        let rows = std::mem::take(&mut self.rows);
        let width = self.columns.len() + 1;
        let parts_of = |column: usize| {
            let mut parts = Vec::with_capacity(self.pieces.len());
            for piece in &self.pieces {
                let part = match piece {
                    BatchPiece::Slice(part) => *part,
                    BatchPiece::Merged(at) => {
                        let (block, start) = self.picks[at + column];
                        BlockSlice {
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
        (self.held_bytes, self.text_bytes, self.grown) = (0, 0, false);
        SortedRows {
            runs: std::mem::take(&mut self.runs),
            times,
            columns,
        }
    }
}
