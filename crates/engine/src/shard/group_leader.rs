//! The work of a group's leader: takes one group of changes from the queue to the log and to
//! memory.
//!
//! No change of a group is visible before the whole group is durable, and none is visible if the
//! log fails.

use crate::commit::{CommitChange, CommitTicket, NewSlot, PendingWrite};
use crate::error::{EngineError, Result};
use crate::last_values::LastUpdate;
use crate::memory::{Holder, MemoryReservation};
use crate::options::Durability;
use crate::shard::{Shard, ShardLog, ShardState};
use crate::stats::add;
use marigram_manifest::Tombstone;
use marigram_model::{SeriesId, TableId, TagKey};
use marigram_series_index::SeriesIndex;
use marigram_wal::{DeleteEntry, RoomPromise, WalEntry, WalError, WriteEntry, encode_record};
use std::collections::HashMap;
use std::sync::Arc;

/// A buffer for larger records than this is released after use.
const BUFFER_BYTES_KEPT: usize = 2 << 20;

/// A change that has its sequence and is encoded.
struct StagedChange<'a> {
    ticket: &'a CommitTicket,
    sequence: u64,
    entry: WalEntry,
    /// Memory reserved for its rows.
    bytes: usize,
    /// Space in the log, until it has been written.
    _room: Option<RoomPromise>,
}

/// An entry, the memory reserved for its rows, and the space for it in the log.
type PreparedEntry = (WalEntry, usize, Option<RoomPromise>);

/// Series that the group creates.
struct NewSeries {
    next: SeriesId,
    ids: HashMap<(TableId, TagKey), SeriesId>,
}

impl Shard {
    /// Commits a group and decides each of its tickets. Changes that retire series take effect
    /// before the changes after them are resolved, because these may refer to those series.
    pub(super) fn lead(&self, group: &[Arc<CommitTicket>]) {
        let mut log = self.log();
        let mut rest = group;
        while !rest.is_empty() {
            let ends = rest.iter().position(|ticket| ticket.ends_series());
            let (part, after) = rest.split_at(ends.map_or(rest.len(), |at| at + 1));
            self.commit(&mut log, part);
            rest = after;
        }
    }

    fn commit(&self, log: &mut ShardLog, group: &[Arc<CommitTicket>]) {
        let staged = self.stage(log, group);
        if staged.is_empty() {
            return;
        }
        if let Err(error) = self.append(log) {
            for staged in staged {
                staged.ticket.decide(Err(error.again()));
            }
            return;
        }
        log.next_sequence = staged
            .last()
            .map_or(log.next_sequence, |last| last.sequence + 1);
        self.apply(&staged);
        for staged in staged {
            if let WalEntry::DropTable(table) = staged.entry {
                log.dropped.insert(table);
            }
            staged.ticket.decide(Ok(()));
        }
    }

    /// Assigns sequences and series to changes, and encodes them into the log's buffer. Decides
    /// changes that are impossible.
    fn stage<'a>(
        &self,
        log: &mut ShardLog,
        group: &'a [Arc<CommitTicket>],
    ) -> Vec<StagedChange<'a>> {
        log.buffer.clear();
        let mut new = NewSeries {
            next: self.index.read().next_id(),
            ids: HashMap::new(),
        };
        let mut staged: Vec<StagedChange<'_>> = Vec::with_capacity(group.len());
        for ticket in group {
            let Some(change) = ticket.take() else {
                continue;
            };
            let entry = match self.entry(log, change, &mut new) {
                Ok(entry) => entry,
                Err(error) => {
                    ticket.decide(Err(error));
                    continue;
                }
            };
            let (entry, bytes, room) = entry;
            let sequence = log.next_sequence + staged.len() as u64;
            encode_record(sequence, &entry, &mut log.buffer);
            staged.push(StagedChange {
                ticket,
                sequence,
                entry,
                bytes,
                _room: room,
            });
        }
        staged
    }

    fn entry(
        &self,
        log: &ShardLog,
        change: CommitChange,
        new: &mut NewSeries,
    ) -> Result<PreparedEntry> {
        self.context.health.check_lasting()?;
        Ok(match change {
            CommitChange::Write(mut write) => {
                self.context.health.check()?;
                if log.dropped.contains(&write.table) {
                    let name = format!("number {}", write.table);
                    return Err(EngineError::NotFound {
                        kind: "table",
                        name,
                        nearest: None,
                    });
                }
                let (bytes, room) = (write.bytes, write.room.take());
                (WalEntry::Write(self.identify(write, new)?), bytes, room)
            }
            CommitChange::Delete(delete, room) => (WalEntry::Delete(delete), 0, room),
            CommitChange::DropTable(table) => (WalEntry::DropTable(table), 0, None),
        })
    }

    /// Assigns a series to every row; unknown series get the next ids.
    fn identify(&self, write: PendingWrite, new: &mut NewSeries) -> Result<WriteEntry> {
        let PendingWrite {
            table,
            mut series,
            mut new_slots,
            times,
            columns,
            ..
        } = write;
        if new_slots.is_empty() {
            new_slots = self.renew(table, &mut series);
        }
        let mut new_series = Vec::new();
        if !new_slots.is_empty() {
            let index = self.index.read();
            let mut ids = Vec::with_capacity(new_slots.len());
            for slot in new_slots {
                let known = index.get(table, slot.key.as_bytes(), slot.hash);
                if let Some(id) = known.or_else(|| new.ids.get(&(table, slot.key.clone())).copied())
                {
                    ids.push(id.0);
                    continue;
                }
                let id = new.next;
                if id.0 == u32::MAX {
                    let full = format!("shard {} holds as many series as it can", self.number);
                    return Err(EngineError::Invalid(full));
                }
                new.next = SeriesId(id.0 + 1);
                new.ids.insert((table, slot.key.clone()), id);
                new_series.push((id, slot.key));
                ids.push(id.0);
            }
            for place in &mut series {
                *place = ids[*place as usize];
            }
        }
        Ok(WriteEntry {
            table,
            new_series,
            series: series.into(),
            times,
            columns,
        })
    }

    /// If some rows belong to series that were retired since they were looked up: slots for all
    /// rows, so that those series become new ones.
    fn renew(&self, table: TableId, series: &mut [u32]) -> Vec<NewSlot> {
        let index = self.index.read();
        let retired = index.retired();
        if retired.is_empty() || !series.iter().any(|id| retired.contains(*id)) {
            return Vec::new();
        }
        let (mut slots, mut numbers) = (Vec::new(), HashMap::new());
        for place in series {
            *place = *numbers.entry(*place).or_insert_with_key(|id| {
                // The write holds a pin, so the keys exist.
                let key = index.key(SeriesId(*id)).unwrap_or_default();
                let hash = SeriesIndex::hash(table, key.as_bytes());
                slots.push(NewSlot { key, hash });
                slots.len() as u32 - 1
            });
        }
        slots
    }

    /// Appends the buffer; it is durable when this returns, if the settings say so.
    fn append(&self, log: &mut ShardLog) -> Result<()> {
        let sync = self.context.options.durability == Durability::Fsync;
        let buffer = std::mem::take(&mut log.buffer);
        // Its size is limited by the memory admitted for its rows.
        let _held =
            MemoryReservation::counted(&self.context.memory, Holder::Memtable, buffer.capacity());
        let appended = log.wal.append(&buffer, sync);
        if buffer.capacity() <= BUFFER_BYTES_KEPT {
            log.buffer = buffer;
        }
        match appended {
            Ok(()) => {}
            // Nothing of it is in the log, which stays usable.
            Err(error @ WalError::Full { .. }) => return Err(error.into()),
            Err(error) => {
                self.context.health.fail(&error.to_string());
                return Err(match error {
                    WalError::Uncertain { .. } => error.into(),
                    error => EngineError::ReadOnly(error.to_string()),
                });
            }
        }
        if sync {
            self.note_synced(log);
        }
        log.unsynced |= !sync;
        add(&self.context.stats.wal_syncs, usize::from(sync));
        Ok(())
    }

    /// Makes changes visible.
    fn apply(&self, staged: &[StagedChange<'_>]) {
        let now_ns = self.context.env.clock.monotonic_ns();
        let brings_series = |staged: &StagedChange<'_>| matches!(&staged.entry, WalEntry::Write(w) if !w.new_series.is_empty());
        if staged.iter().any(brings_series) {
            let mut index = self.index.write();
            for entry in staged.iter().map(|staged| &staged.entry) {
                let WalEntry::Write(write) = entry else {
                    continue;
                };
                for (id, key) in &write.new_series {
                    index
                        .insert(*id, write.table, key.as_bytes())
                        .expect("ids were given in order under the commit lock");
                }
            }
        }
        let mut state = self.state.write();
        for staged in staged {
            // The manifest names the last flushed sequence: an entry below it is not replayed.
            debug_assert!(
                staged.sequence > state.sequence,
                "entry {} after entry {}",
                staged.sequence,
                state.sequence
            );
            state.active.note(staged.sequence, now_ns);
            match &staged.entry {
                WalEntry::Write(write) => {
                    let late = self.write(&mut state, staged.sequence, write, staged.bytes);
                    add(&self.context.stats.rows_written, write.times.len());
                    add(&self.context.stats.rows_late, late);
                }
                WalEntry::Delete(delete) => self.delete(&mut state, staged.sequence, delete),
                WalEntry::DropTable(table) => self.drop_table(&mut state, *table),
            }
            state.sequence = staged.sequence;
        }
    }

    /// Adds the rows of a write; returns how many were late.
    pub(crate) fn write(
        &self,
        state: &mut ShardState,
        sequence: u64,
        write: &WriteEntry,
        bytes: usize,
    ) -> usize {
        self.context.rollups.touch_rows(write.table, &write.times);
        let late = state.marks.late(&write.series, &write.times);
        state.active.write(sequence, write, late.as_deref(), bytes);
        self.last.lock().update(&LastUpdate {
            sequence,
            table: write.table,
            series: &write.series,
            times: &write.times,
            late: late.as_deref(),
            columns: &write.columns,
        });
        late.map_or(0, |late| late.iter().filter(|late| **late).count())
    }

    /// Adds a delete.
    pub(crate) fn delete(&self, state: &mut ShardState, sequence: u64, delete: &DeleteEntry) {
        match delete.rows.single_times() {
            Some(times) => self.context.rollups.touch_rows(delete.table, &times),
            None => self.context.rollups.touch_range(delete.table, delete.range),
        }
        let tombstone = Arc::new(Tombstone {
            sequence,
            table: delete.table,
            rows: delete.rows.clone(),
            range: delete.range,
        });
        state.active.delete(tombstone.clone());
        state.tombstones.push(tombstone);
        let series = delete.rows.series();
        self.last
            .lock()
            .invalidate(sequence, delete.table, series.as_deref(), delete.range);
        if delete.retires_series() {
            let mut index = self.index.write();
            let all = index.all(delete.table);
            match series {
                Some(series) => index.retire(delete.table, series),
                None => index.retire(delete.table, all.into_iter().map(SeriesId)),
            };
            index.sweep();
        }
    }

    /// Drops a table from memory.
    pub(crate) fn drop_table(&self, state: &mut ShardState, table: TableId) {
        state.active.drop_table(table);
        state
            .tombstones
            .retain(|tombstone| tombstone.table != table);
        self.last.lock().remove_table(table);
        self.index.write().remove_table(table);
    }
}
