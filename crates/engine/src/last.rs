//! The last-value cache of a shard: of each series, its newest row, in memory.
//!
//! A series is in one of four states: *known* (its newest row is here), *empty* (it has no row at
//! all), *unseen* (it may have rows in storage, and nothing was written to it since the shard was
//! opened) or *unknown* (looked up in storage when it is asked for, and then known). Known rows
//! follow every commit; a row that is after all that was ever frozen or flushed makes an unseen
//! series known without a look.
//!
//! Invariants: commits come in the order of their sequences, before they are visible; what is known
//! is the newest row as of the last commit. A reader of an older version gets a row only if it has
//! not changed since that version, and what a reader found in its version is kept only if nothing
//! happened to the series since.

mod columns;
#[cfg(test)]
mod tests;

use crate::memory::{Holder, MemoryAccountant};
use arrow_array::{Array, ArrayRef};
use columns::{Action, LastColumn};
use marigram_model::{ColumnId, FieldType, SeriesId, SeriesRun, SortedRows, TableId, TimeRange};
use marigram_segment::SegmentColumn;
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::Arc;

/// Committed rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct LastUpdate<'a> {
    /// WAL sequence of the commit.
    pub sequence: u64,
    /// Table.
    pub table: TableId,
    /// Series of each row.
    pub series: &'a [u32],
    /// Time of each row, ns.
    pub times: &'a [i64],
    /// For each row, whether it is not after all that was frozen or flushed of its series;
    /// `None`: no row is late.
    pub late: Option<&'a [bool]>,
    /// Columns; a null is not carried.
    pub columns: &'a [(ColumnId, ArrayRef)],
}

/// See the head of this file.
#[derive(Debug)]
pub struct LastValues {
    memory: Arc<MemoryAccountant>,
    bytes_max: usize,
    /// Bytes taken from the accountant.
    bytes: usize,
    first_new: u32,
    /// Of each series.
    places: Vec<Place>,
    tables: HashMap<TableId, LastTable>,
}

/// State of a series in 4 bytes: a slot of its table, or a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

impl Place {
    const EMPTY: Self = Self(0xC000_0000);
    const UNSEEN: Self = Self(0xC000_0001);
    const SEQUENCE_MASK: u32 = 0x3FFF_FFFF;

    /// Changed at `sequence` in a way that was not followed.
    fn unknown(sequence: u64) -> Self {
        Self(0x8000_0000 | sequence as u32 & Self::SEQUENCE_MASK)
    }

    fn slot(self) -> Option<usize> {
        (self.0 < 0x8000_0000).then_some(self.0 as usize)
    }

    /// Whether nothing happened to the series after `sequence`, so that a row found then holds.
    fn quiet_since(self, sequence: u64) -> bool {
        match self.0 >> 30 {
            // Sequences wrap after 2^30 commits; no version lives that long.
            2 => {
                let ahead = (self.0 & Self::SEQUENCE_MASK).wrapping_sub(sequence as u32) << 2;
                ahead == 0 || ahead >= 1 << 31
            }
            3 => true,
            _ => false,
        }
    }
}

#[derive(Debug, Default)]
struct LastTable {
    series: Vec<u32>,
    times: Vec<i64>,
    /// Sequence (its low half) of the last change of each slot.
    changed: Vec<u32>,
    columns: Vec<(ColumnId, LastColumn)>,
    free: Vec<u32>,
}

/// What the cache knows of some series, and what it does not.
#[derive(Debug)]
pub(crate) struct LastKnown {
    pub(crate) rows: SortedRows,
    pub(crate) unknown: RoaringBitmap,
}

impl LastValues {
    /// An empty cache that takes at most `bytes_max` from `memory`. Series below `first_new` may
    /// have rows in storage; those from it on have none yet.
    pub fn new(memory: Arc<MemoryAccountant>, bytes_max: usize, first_new: SeriesId) -> Self {
        let (places, tables) = (Vec::new(), HashMap::new());
        Self {
            memory,
            bytes_max,
            bytes: 0,
            first_new: first_new.0,
            places,
            tables,
        }
    }

    /// Follows a commit.
    pub fn update(&mut self, rows: &LastUpdate<'_>) {
        let Some(most) = rows.series.iter().max() else {
            return;
        };
        self.reach(*most);
        let table = self.tables.entry(rows.table).or_default();
        let row_bytes = table.row_bytes().max(16 + 9 * rows.columns.len());
        let budget = self.bytes_max.saturating_sub(self.bytes);
        let free = self.memory.limit().saturating_sub(self.memory.used());
        let mut admit = budget.min(free) / row_bytes;
        let mut actions = Vec::with_capacity(rows.series.len());
        for (row, (series, time)) in rows.series.iter().zip(rows.times).enumerate() {
            let place = &mut self.places[*series as usize];
            if let Some(slot) = place.slot() {
                let known = &mut table.times[slot];
                if *time < *known {
                    continue;
                }
                let replaces = *time > *known;
                *known = *time;
                table.changed[slot] = rows.sequence as u32;
                actions.push(Action {
                    slot: slot as u32,
                    row: row as u32,
                    replaces,
                });
                continue;
            }
            let late = rows.late.is_some_and(|late| late[row]);
            let newest = *place == Place::EMPTY || (*place == Place::UNSEEN && !late);
            if !newest || admit == 0 {
                *place = Place::unknown(rows.sequence);
                continue;
            }
            admit -= 1;
            let slot = table.add(*series, *time, rows.sequence as u32);
            *place = Place(slot);
            actions.push(Action {
                slot,
                row: row as u32,
                replaces: true,
            });
        }
        table.store(
            rows.columns.iter().map(|(id, values)| (*id, values)),
            &actions,
        );
        self.account();
    }

    /// A range was deleted: series (`None`: every one of the table) whose newest row may lie in it
    /// are no longer known.
    pub fn invalidate(
        &mut self,
        sequence: u64,
        table: TableId,
        series: Option<&[SeriesId]>,
        range: TimeRange,
    ) {
        let mut table = self.tables.get_mut(&table);
        let mut forget = |id: usize, places: &mut [Place]| {
            let place = places[id];
            if place == Place::EMPTY {
                return;
            }
            if let Some(slot) = place.slot() {
                let Some(table) = table.as_mut().filter(|table| table.holds(slot, id)) else {
                    return;
                };
                // The newest row stays where older ones are deleted.
                if !range.contains(table.times[slot]) {
                    table.changed[slot] = sequence as u32;
                    return;
                }
                table.free.push(slot as u32);
            }
            places[id] = Place::unknown(sequence);
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
        // Unseen series stand for every table; they are read again, which does no harm.
        if let Some(most) = self.first_new.checked_sub(1) {
            Self::reach_places(&mut self.places, self.first_new, most);
        }
        for id in 0..self.places.len() {
            forget(id, &mut self.places);
        }
    }

    /// Forgets a table that was dropped.
    pub fn remove_table(&mut self, table: TableId) {
        if let Some(table) = self.tables.remove(&table) {
            for (slot, series) in table.series.iter().enumerate() {
                let place = &mut self.places[*series as usize];
                if place.slot() == Some(slot) {
                    *place = Place::UNSEEN;
                }
            }
        }
        self.account();
    }

    /// Lets go of everything, as of the commit `sequence`.
    pub fn evict_all(&mut self, sequence: u64) {
        for place in &mut self.places {
            if place.slot().is_some() {
                *place = Place::unknown(sequence);
            }
        }
        self.tables.clear();
        self.account();
    }

    /// The newest rows of `series` as of the version `sequence`, as far as they are known.
    pub(crate) fn known(
        &self,
        table: TableId,
        sequence: u64,
        series: &RoaringBitmap,
        columns: &[SegmentColumn],
    ) -> LastKnown {
        let none = LastTable::default();
        let table = self.tables.get(&table).unwrap_or(&none);
        let mut unknown = RoaringBitmap::new();
        let (mut slots, mut runs, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for id in series {
            let place = self
                .places
                .get(id as usize)
                .copied()
                .unwrap_or(self.beyond(id));
            match place.slot() {
                Some(slot) if table.unchanged_since(slot, sequence) => {
                    slots.push(slot as u32);
                    runs.push(SeriesRun {
                        series: SeriesId(id),
                        rows: 1,
                    });
                    times.push(table.times[slot]);
                }
                None if place == Place::EMPTY => {}
                _ => {
                    unknown.insert(id);
                }
            }
        }
        let columns = columns
            .iter()
            .map(|column| table.column(*column, &slots))
            .collect();
        LastKnown {
            rows: SortedRows {
                runs,
                times: times.into(),
                columns,
            },
            unknown,
        }
    }

    /// Keeps what a reader of the version `sequence` found in storage: `rows`, one a series, of
    /// the series `asked`; those without a row have none.
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
        let table = self.tables.entry(table).or_default();
        let row_bytes = table.row_bytes().max(16 + 9 * columns.len());
        let budget = self.bytes_max.saturating_sub(self.bytes);
        let free = self.memory.limit().saturating_sub(self.memory.used());
        let mut admit = budget.min(free) / row_bytes;
        let mut actions = Vec::new();
        let mut found = rows.runs.iter().zip(&rows.times[..]).enumerate().peekable();
        for id in asked {
            let row = found.next_if(|(_, (run, _))| run.series.0 == id);
            let place = &mut self.places[id as usize];
            if !place.quiet_since(sequence) || *place == Place::EMPTY {
                continue;
            }
            match row {
                None => *place = Place::EMPTY,
                Some((row, (_, time))) if admit > 0 => {
                    admit -= 1;
                    let slot = table.add(id, *time, sequence as u32);
                    *place = Place(slot);
                    actions.push(Action {
                        slot,
                        row: row as u32,
                        replaces: true,
                    });
                }
                Some(_) => {}
            }
        }
        let values = columns.iter().map(|column| column.id).zip(&rows.columns);
        table.store(values, &actions);
        self.account();
    }

    fn beyond(&self, series: u32) -> Place {
        if series < self.first_new {
            Place::UNSEEN
        } else {
            Place::EMPTY
        }
    }

    fn reach(&mut self, series: u32) {
        Self::reach_places(&mut self.places, self.first_new, series);
    }

    /// Makes places up to `series`.
    fn reach_places(places: &mut Vec<Place>, first_new: u32, series: u32) {
        let len = series as usize + 1;
        let known_before = (first_new as usize).min(len);
        if places.len() < known_before {
            places.resize(known_before, Place::UNSEEN);
        }
        if places.len() < len {
            places.resize(len, Place::EMPTY);
        }
    }

    /// Tells the accountant of what was gained or lost.
    fn account(&mut self) {
        let tables: usize = self.tables.values().map(LastTable::bytes).sum();
        let bytes = tables + self.places.capacity() * size_of::<Place>();
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

impl LastTable {
    fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(_, column)| column.bytes());
        self.times.capacity() * 16 + self.free.capacity() * 4 + columns.sum::<usize>()
    }

    /// Bytes of a row, about.
    fn row_bytes(&self) -> usize {
        if self.times.is_empty() {
            16
        } else {
            self.bytes().div_ceil(self.times.len())
        }
    }

    fn holds(&self, slot: usize, series: usize) -> bool {
        self.series
            .get(slot)
            .is_some_and(|own| *own as usize == series)
    }

    fn unchanged_since(&self, slot: usize, sequence: u64) -> bool {
        let changed = self.changed.get(slot);
        changed.is_some_and(|changed| changed.wrapping_sub(sequence as u32) as i32 <= 0)
    }

    fn add(&mut self, series: u32, time: i64, sequence: u32) -> u32 {
        if let Some(slot) = self.free.pop() {
            let at = slot as usize;
            (self.series[at], self.times[at], self.changed[at]) = (series, time, sequence);
            return slot;
        }
        self.series.push(series);
        self.times.push(time);
        self.changed.push(sequence);
        (self.times.len() - 1) as u32
    }

    /// Stores the values of the rows of `actions`, column by column.
    fn store<'a>(
        &mut self,
        values: impl Iterator<Item = (ColumnId, &'a ArrayRef)>,
        actions: &[Action],
    ) {
        let slots = self.times.len();
        let mut carried = Vec::new();
        for (id, array) in values {
            let Some(kind) = FieldType::of(array.data_type()) else {
                continue;
            };
            let known = self.columns.iter().position(|(own, _)| *own == id);
            let at = known.unwrap_or_else(|| {
                self.columns.push((id, LastColumn::new(kind)));
                self.columns.len() - 1
            });
            self.columns[at].1.resize(slots);
            self.columns[at].1.store(array, actions);
            carried.push(id);
        }
        for (id, column) in &mut self.columns {
            if !carried.contains(id) {
                column.resize(slots);
                column.clear(actions);
            }
        }
    }

    fn column(&self, wanted: SegmentColumn, slots: &[u32]) -> ArrayRef {
        let own = self.columns.iter().find(|(id, _)| *id == wanted.id);
        match own {
            Some((_, column)) if column.kind() == wanted.kind => column.gather(slots),
            _ => wanted.kind.nulls(slots.len()),
        }
    }
}
