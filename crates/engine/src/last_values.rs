//! The last-value cache of a shard: the newest row of each series, in memory.
//!
//! A series is in one of four states: *known* (its newest row is cached), *empty* (it has no row at
//! all), *unseen* (it may have rows in storage, and nothing was written to it since the shard was
//! opened) or *unknown* (it is looked up in storage on demand, and is then known). Known rows
//! follow every commit. A row after everything that was ever frozen or flushed makes an unseen
//! series known without a lookup. When the cache's share of memory is full, series whose rows were
//! not requested recently become unknown, and others take their places. Written rows fill only a
//! part of the share, so that millions of series that are never requested cost no more than that.
//!
//! Invariants: commits arrive in the order of their sequences, before they are visible; a known row
//! is the newest as of the last commit. A reader of an older version gets a row only if it has not
//! changed since that version. What a reader found in its version is cached only if nothing has
//! happened to the series since.

mod cached_state;
mod columns;
mod table;
#[cfg(test)]
mod tests;

use crate::memory::{Holder, MemoryAccountant};
use crate::text::BATCH_TEXT_BYTES;
use arrow_array::ArrayRef;
use cached_state::CachedSeriesState;
use columns::SlotUpdate;
use marigram_model::{ColumnId, SeriesId, SeriesRun, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::Arc;
use table::{LastTable, row_text_bytes};

/// Committed rows of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastUpdate<'a> {
    /// WAL sequence of the commit.
    pub sequence: u64,
    /// Table.
    pub table: TableId,
    /// Series of each row.
    pub series: &'a [u32],
    /// Time of each row, ns.
    pub times: &'a [i64],
    /// For each row, whether it is not after everything that was frozen or flushed of its series;
    /// `None` if no row is late.
    pub late: Option<&'a [bool]>,
    /// Columns; a null means that the row has no value.
    pub columns: &'a [(ColumnId, ArrayRef)],
}

/// Bytes that rows fill without being requested: about a million rows of two fields. Further rows
/// are unknown until they are requested.
const UNASKED_BYTES: usize = 32 << 20;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct LastValues {
    memory: Arc<MemoryAccountant>,
    bytes_max: usize,
    /// Bytes reserved from the accountant.
    bytes: usize,
    /// Rows that found no memory since the last sweep.
    refused: usize,
    first_new: u32,
    /// The state of each series.
    places: Vec<CachedSeriesState>,
    tables: HashMap<TableId, LastTable>,
}

/// Most rows that are gathered into one batch.
const BATCH_ROWS: usize = 64 * 1024;

/// The known rows of some series, and the unknown series.
#[derive(Debug)]
pub(crate) struct LastKnown {
    /// One row per series, in consecutive batches.
    pub(crate) rows: Vec<SortedRows>,
    pub(crate) unknown: RoaringBitmap,
}

impl LastValues {
    /// An empty cache that takes at most `bytes_max` from `memory`. Series below `first_new` may
    /// have rows in storage; the others have none yet.
    pub(crate) fn new(
        memory: Arc<MemoryAccountant>,
        bytes_max: usize,
        first_new: SeriesId,
    ) -> Self {
        let (places, tables) = (Vec::new(), HashMap::new());
        Self {
            memory,
            bytes_max,
            bytes: 0,
            refused: 0,
            first_new: first_new.0,
            places,
            tables,
        }
    }

    /// Applies a commit.
    pub(crate) fn update(&mut self, rows: &LastUpdate<'_>) {
        let Some(most) = rows.series.iter().max() else {
            return;
        };
        self.reach(*most);
        // Slots take values by the position of their row.
        debug_assert_eq!(rows.series.len(), rows.times.len(), "series of rows");
        debug_assert!(
            rows.columns
                .iter()
                .all(|(_, values)| values.len() == rows.times.len()),
            "a value or null for each row"
        );
        let mut room = self.room();
        let rows_bytes: usize = self.tables.values().map(LastTable::bytes).sum();
        let mut unasked = UNASKED_BYTES.saturating_sub(rows_bytes);
        let sequence = rows.sequence as u32;
        let table = self.tables.entry(rows.table).or_default();
        let columns = || rows.columns.iter().map(|(id, values)| (*id, values));
        let slot_bytes = table.slot_bytes(columns());
        // Record each row; it stays if it must be stored: see `follow`.
        let mut actions = vec![SlotUpdate::default(); rows.series.len()];
        let mut stored = 0;
        for (row, (series, time)) in rows.series.iter().zip(rows.times).enumerate() {
            let place = &mut self.places[*series as usize];
            if let Some(slot) = place.slot() {
                let known = table.follow(slot, *time, sequence);
                actions[stored] = SlotUpdate {
                    slot: slot as u32,
                    row: row as u32,
                    replaces: known.is_lt(),
                };
                stored += usize::from(known.is_le());
                continue;
            }
            let late = rows.late.is_some_and(|late| late[row]);
            let newest = *place == CachedSeriesState::EMPTY
                || (*place == CachedSeriesState::UNSEEN && !late);
            let bytes = if table.has_free() { 0 } else { slot_bytes };
            let bytes = bytes + row_text_bytes(columns().map(|column| column.1), row);
            if !newest || !take(&mut unasked, bytes) {
                *place = CachedSeriesState::unknown(sequence);
                continue;
            }
            if !take(&mut room, bytes) {
                self.refused += 1;
                *place = CachedSeriesState::unknown(sequence);
                continue;
            }
            let slot = table.add(*series, *time, sequence, false);
            *place = CachedSeriesState::in_slot(slot);
            actions[stored] = SlotUpdate {
                slot,
                row: row as u32,
                replaces: true,
            };
            stored += 1;
        }
        // Of several rows of a series, only the newest are stored.
        let mut newest = 0;
        for at in 0..stored {
            let action = actions[at];
            actions[newest] = action;
            let known = table.time(action.slot as usize);
            newest += usize::from(rows.times[action.row as usize] == known);
        }
        table.store(columns(), &actions[..newest]);
        self.settle();
    }

    /// Applies a range delete: series (`None`: all series of the table) whose newest row may be in
    /// the range are no longer known.
    pub(crate) fn invalidate(
        &mut self,
        sequence: u64,
        table: TableId,
        series: Option<&[SeriesId]>,
        range: TimeRange,
    ) {
        let mut table = self.tables.get_mut(&table);
        let mut forget = |id: usize, places: &mut [CachedSeriesState]| {
            let place = places[id];
            if place == CachedSeriesState::EMPTY {
                return;
            }
            if let Some(slot) = place.slot() {
                let Some(table) = table.as_mut().filter(|table| table.holds(slot, id)) else {
                    return;
                };
                // The newest row stays if older ones are deleted.
                if !range.contains(table.time(slot)) {
                    table.touch(slot, sequence as u32);
                    return;
                }
                table.release(slot);
            }
            places[id] = CachedSeriesState::unknown(sequence as u32);
        };
        if let Some(series) = series {
            if let Some(most) = series.iter().max() {
                Self::reach_places(&mut self.places, self.first_new, most.0);
            }
            for id in series {
                forget(id.0 as usize, &mut self.places);
            }
            return;
        }
        // Unseen series may belong to any table; reading them again does no harm.
        if let Some(most) = self.first_new.checked_sub(1) {
            Self::reach_places(&mut self.places, self.first_new, most);
        }
        for id in 0..self.places.len() {
            forget(id, &mut self.places);
        }
    }

    /// Drops the rows of a dropped table.
    pub(crate) fn remove_table(&mut self, table: TableId) {
        if let Some(table) = self.tables.remove(&table) {
            for (slot, series) in table.series().iter().enumerate() {
                let place = &mut self.places[*series as usize];
                if place.slot() == Some(slot) {
                    *place = CachedSeriesState::UNSEEN;
                }
            }
        }
        self.account();
    }

    /// Evicts everything, as of the commit `sequence`.
    pub(crate) fn evict_all(&mut self, sequence: u64) {
        for place in &mut self.places {
            if place.slot().is_some() {
                *place = CachedSeriesState::unknown(sequence as u32);
            }
        }
        self.tables.clear();
        self.account();
    }

    /// Evicts rows that were not requested recently: at most a quarter of all.
    pub(crate) fn evict_cold(&mut self) {
        for table in self.tables.values_mut() {
            table.sweep(&mut self.places);
        }
        self.refused = 0;
        self.account();
    }

    /// Whether [`cached_rows`](Self::cached_rows) leaves nothing unknown.
    pub(crate) fn knows(&self, table: TableId, sequence: u64, series: &RoaringBitmap) -> bool {
        let table = self.tables.get(&table);
        series.iter().all(|id| {
            let place = self.place(id);
            let slot = place.slot().zip(table);
            slot.map_or(place == CachedSeriesState::EMPTY, |(slot, table)| {
                table.unchanged_since(slot, sequence)
            })
        })
    }

    /// Those of `series` that have no row at all, as far as that is known.
    pub(crate) fn empty_among(&self, series: &RoaringBitmap) -> RoaringBitmap {
        let is_empty = |id: &u32| self.place(*id) == CachedSeriesState::EMPTY;
        series.iter().filter(is_empty).collect()
    }

    fn place(&self, id: u32) -> CachedSeriesState {
        let beyond = if id < self.first_new {
            CachedSeriesState::UNSEEN
        } else {
            CachedSeriesState::EMPTY
        };
        self.places.get(id as usize).copied().unwrap_or(beyond)
    }

    /// The newest rows of `series` as of the version `sequence`, as far as they are known.
    pub(crate) fn cached_rows(
        &mut self,
        table: TableId,
        sequence: u64,
        series: &RoaringBitmap,
        columns: &[SegmentColumn],
    ) -> LastKnown {
        let mut none = LastTable::default();
        let table = self.tables.get_mut(&table).unwrap_or(&mut none);
        let mut known = LastKnown {
            rows: Vec::new(),
            unknown: RoaringBitmap::new(),
        };
        let (mut slots, mut runs, mut text_bytes) = (Vec::new(), Vec::new(), 0);
        let gather = |table: &LastTable, slots: &mut Vec<u32>, runs: &mut Vec<SeriesRun>| {
            let times = slots
                .iter()
                .map(|slot| table.time(*slot as usize))
                .collect();
            let columns = columns.iter().map(|column| table.column(*column, slots));
            let columns = columns.collect();
            slots.clear();
            SortedRows {
                runs: std::mem::take(runs),
                times,
                columns,
            }
        };
        for id in series {
            let beyond = if id < self.first_new {
                CachedSeriesState::UNSEEN
            } else {
                CachedSeriesState::EMPTY
            };
            let place = self.places.get(id as usize).copied().unwrap_or(beyond);
            match place.slot() {
                Some(slot) if table.unchanged_since(slot, sequence) => {
                    let bytes = table.text_bytes(slot);
                    let full = slots.len() >= BATCH_ROWS || text_bytes + bytes > BATCH_TEXT_BYTES;
                    if full && !slots.is_empty() {
                        known.rows.push(gather(table, &mut slots, &mut runs));
                        text_bytes = 0;
                    }
                    table.heat(slot);
                    text_bytes += bytes;
                    slots.push(slot as u32);
                    runs.push(SeriesRun {
                        series: SeriesId(id),
                        rows: 1,
                    });
                }
                None if place == CachedSeriesState::EMPTY => {}
                _ => {
                    known.unknown.insert(id);
                }
            }
        }
        if !slots.is_empty() {
            known.rows.push(gather(table, &mut slots, &mut runs));
        }
        known
    }

    /// Caches what a reader of the version `sequence` found in storage: `rows`, one per series, of
    /// the series `asked`; the series without a row have none.
    pub(crate) fn learn(
        &mut self,
        table: TableId,
        sequence: u64,
        asked: &RoaringBitmap,
        rows: &SortedRows,
        columns: &[SegmentColumn],
    ) {
        let Some(most) = asked.max() else { return };
        self.reach(most);
        let mut room = self.room();
        let table = self.tables.entry(table).or_default();
        let values = || columns.iter().map(|column| column.id).zip(&rows.columns);
        let slot_bytes = table.slot_bytes(values());
        let mut actions = Vec::new();
        let mut found = rows.runs.iter().zip(&rows.times[..]).enumerate().peekable();
        for id in asked {
            let row = found.next_if(|(_, (run, _))| run.series.0 == id);
            let place = &mut self.places[id as usize];
            if !place.quiet_since(sequence) || *place == CachedSeriesState::EMPTY {
                continue;
            }
            let Some((row, (_, time))) = row else {
                *place = CachedSeriesState::EMPTY;
                continue;
            };
            let bytes = if table.has_free() { 0 } else { slot_bytes };
            let bytes = bytes + row_text_bytes(rows.columns.iter(), row);
            if !take(&mut room, bytes) {
                self.refused += 1;
                continue;
            }
            let slot = table.add(id, *time, sequence as u32, true);
            *place = CachedSeriesState::in_slot(slot);
            actions.push(SlotUpdate {
                slot,
                row: row as u32,
                replaces: true,
            });
        }
        table.store(values(), &actions);
        self.settle();
    }

    /// Bytes that may be added at present.
    fn room(&self) -> usize {
        let memory = &self.memory;
        let available = memory.available(Holder::LastValues);
        let free = available.saturating_sub(memory.used_by(Holder::LastValues));
        self.bytes_max.saturating_sub(self.bytes).min(free)
    }

    /// Updates the size, and sweeps if texts have grown beyond the share, or if rows have found no
    /// memory: once per as many rows as a sweep may evict, so that the cost per row is small.
    fn settle(&mut self) {
        self.account();
        let slots: usize = self.tables.values().map(LastTable::slots).sum();
        if self.refused > slots / 4 + 64 && slots > 0 {
            self.evict_cold();
        }
        // A sweep cools the slots that it passes, so that the following ones find something to
        // evict.
        while self.bytes > self.bytes_max && self.tables.values().any(|table| table.slots() > 0) {
            self.evict_cold();
        }
    }

    fn reach(&mut self, series: u32) {
        Self::reach_places(&mut self.places, self.first_new, series);
    }

    /// Creates states up to `series`.
    fn reach_places(places: &mut Vec<CachedSeriesState>, first_new: u32, series: u32) {
        let len = series as usize + 1;
        let known_before = (first_new as usize).min(len);
        if places.len() < known_before {
            places.resize(known_before, CachedSeriesState::UNSEEN);
        }
        if places.len() < len {
            places.resize(len, CachedSeriesState::EMPTY);
        }
    }

    /// Reports growth or shrinkage to the accountant.
    fn account(&mut self) {
        let tables: usize = self.tables.values().map(LastTable::bytes).sum();
        let bytes = tables + self.places.capacity() * size_of::<CachedSeriesState>();
        if bytes > self.bytes {
            self.memory.grow(Holder::LastValues, bytes - self.bytes);
        } else {
            self.memory.shrink(Holder::LastValues, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for LastValues {
    fn drop(&mut self) {
        self.memory.shrink(Holder::LastValues, self.bytes);
    }
}

/// Takes `bytes` out of `room` if they are available; returns whether they were.
fn take(room: &mut usize, bytes: usize) -> bool {
    let rest = room.checked_sub(bytes);
    *room = rest.unwrap_or(*room);
    rest.is_some()
}
