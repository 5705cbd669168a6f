//! The known rows of one table: typed columns of slots.
//!
//! A slot is *hot* from the moment when its row is requested until the hand of the clock passes it;
//! a slot that is not hot when the hand arrives is evicted. So rows that are read stay, and rows
//! that are only written make room for them.

use super::cached_state::CachedSeriesState;
use super::columns::{LastColumn, SlotUpdate, grow, retain};
use crate::text;
use arrow_array::{Array, ArrayRef};
use marigram_model::{ColumnId, FieldType};
use marigram_segment::SegmentColumn;
use std::cmp::Ordering;

/// One sweep evicts at most one of this many parts of the slots.
const SWEEP_PART: usize = 4;
/// Bytes of a slot in addition to its columns: series, time, change, heat.
const SLOT_BYTES: usize = 17;

#[derive(Debug, Default)]
pub(super) struct LastTable {
    series: Vec<u32>,
    times: Vec<i64>,
    /// Sequence (its low half) of the last change of each slot.
    changed: Vec<u32>,
    hot: Vec<bool>,
    columns: Vec<(ColumnId, LastColumn)>,
    free: Vec<u32>,
    /// The start of the next sweep.
    hand: usize,
}

impl LastTable {
    pub(super) fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(_, column)| column.bytes());
        self.times.capacity() * SLOT_BYTES + self.free.capacity() * 4 + columns.sum::<usize>()
    }

    /// Number of slots, including free ones.
    pub(super) fn slots(&self) -> usize {
        self.times.len()
    }

    /// The series of each slot; a free slot has the series of an evicted row.
    pub(super) fn series(&self) -> &[u32] {
        &self.series
    }

    /// Whether there is a free slot.
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Bytes of one more slot with these columns, without its texts.
    pub(super) fn slot_bytes<'a>(
        &self,
        columns: impl Iterator<Item = (ColumnId, &'a ArrayRef)>,
    ) -> usize {
        let own = self.columns.iter().map(|(_, column)| column.slot_bytes());
        let new = columns.filter(|(id, _)| !self.columns.iter().any(|(own, _)| own == id));
        let new = new.filter_map(|(_, values)| FieldType::from_arrow(values.data_type()));
        let new = new.map(|kind| LastColumn::new(kind).slot_bytes());
        // Vectors grow by an eighth.
        (SLOT_BYTES + own.sum::<usize>() + new.sum::<usize>()) / 8 * 9
    }

    pub(super) fn time(&self, slot: usize) -> i64 {
        self.times[slot]
    }

    /// Sets the row of a slot to `time`, changed at `sequence`, unless the slot is newer. Returns
    /// how the slot's time compared with it.
    pub(super) fn follow(&mut self, slot: usize, time: i64, sequence: u32) -> Ordering {
        let known = self.times[slot];
        // Branch-free: if rows are late, their order is practically random.
        self.times[slot] = known.max(time);
        let changed = &mut self.changed[slot];
        *changed = if known <= time { sequence } else { *changed };
        known.cmp(&time)
    }

    /// Records that something happened to the series of a slot at `sequence` that did not change
    /// its newest row.
    pub(super) fn touch(&mut self, slot: usize, sequence: u32) {
        self.changed[slot] = sequence;
    }

    /// Records that the row of a slot was requested.
    pub(super) fn heat(&mut self, slot: usize) {
        self.hot[slot] = true;
    }

    pub(super) fn release(&mut self, slot: usize) {
        self.free.push(slot as u32);
    }

    pub(super) fn holds(&self, slot: usize, series: usize) -> bool {
        let own = self.series.get(slot);
        own.is_some_and(|own| *own as usize == series)
    }

    pub(super) fn unchanged_since(&self, slot: usize, sequence: u64) -> bool {
        let changed = self.changed.get(slot);
        changed.is_some_and(|changed| changed.wrapping_sub(sequence as u32) as i32 <= 0)
    }

    pub(super) fn add(&mut self, series: u32, time: i64, sequence: u32, hot: bool) -> u32 {
        if let Some(slot) = self.free.pop() {
            let at = slot as usize;
            (self.series[at], self.times[at]) = (series, time);
            (self.changed[at], self.hot[at]) = (sequence, hot);
            return slot;
        }
        let slots = self.times.len() + 1;
        grow(&mut self.series, slots, series);
        grow(&mut self.times, slots, time);
        grow(&mut self.changed, slots, sequence);
        grow(&mut self.hot, slots, hot);
        (slots - 1) as u32
    }

    /// Stores the values of the rows of `actions`, column by column.
    pub(super) fn store<'a>(
        &mut self,
        values: impl Iterator<Item = (ColumnId, &'a ArrayRef)>,
        actions: &[SlotUpdate],
    ) {
        let slots = self.times.len();
        let mut carried = Vec::new();
        for (id, array) in values {
            let Some(kind) = FieldType::from_arrow(array.data_type()) else {
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

    pub(super) fn column(&self, wanted: SegmentColumn, slots: &[u32]) -> ArrayRef {
        let own = self.columns.iter().find(|(id, _)| *id == wanted.id);
        match own {
            Some((_, column)) if column.kind() == wanted.kind => column.gather(slots),
            _ => wanted.kind.nulls(slots.len()),
        }
    }

    /// Bytes of text in a slot, over all columns.
    pub(super) fn text_bytes(&self, slot: usize) -> usize {
        self.columns
            .iter()
            .map(|(_, column)| column.text_bytes_at(slot))
            .sum()
    }

    /// Evicts slots that are not hot, starting at the hand, up to about a quarter of all, and cools
    /// those that it passes. Their series are then unknown as of their last change.
    pub(super) fn sweep(&mut self, places: &mut [CachedSeriesState]) {
        let slots = self.times.len();
        let mut keep: Vec<bool> = (0..slots)
            .map(|slot| places[self.series[slot] as usize].slot() == Some(slot))
            .collect();
        let mut left = slots.div_ceil(SWEEP_PART);
        let mut stopped = self.hand;
        for step in 0..slots {
            let slot = (self.hand + step) % slots;
            stopped = slot + 1;
            if !keep[slot] || std::mem::take(&mut self.hot[slot]) {
                continue;
            }
            keep[slot] = false;
            places[self.series[slot] as usize] = CachedSeriesState::unknown(self.changed[slot]);
            left -= 1;
            if left == 0 {
                break;
            }
        }
        self.hand = keep[..stopped.min(slots)]
            .iter()
            .filter(|kept| **kept)
            .count();
        self.retain(&keep);
        for (slot, series) in self.series.iter().enumerate() {
            places[*series as usize] = CachedSeriesState::in_slot(slot as u32);
        }
    }

    fn retain(&mut self, keep: &[bool]) {
        retain(&mut self.series, keep);
        retain(&mut self.times, keep);
        retain(&mut self.changed, keep);
        retain(&mut self.hot, keep);
        for (_, column) in &mut self.columns {
            column.resize(keep.len());
            column.retain(keep);
        }
        self.free = Vec::new();
    }
}

/// Bytes of a row's text in all of the given columns.
pub(super) fn row_text_bytes<'a>(columns: impl Iterator<Item = &'a ArrayRef>, row: usize) -> usize {
    columns
        .map(|values| text::bytes_in(values, row..row + 1))
        .sum()
}
