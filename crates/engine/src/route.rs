//! Finds the shard and the series of each row in a resolved batch.
//!
//! Identity is computed once per slot: canonical key, hash, shard, and the series id if the shard
//! knows it. Rows follow by table lookup, and columns are gathered per shard.

use crate::commit::{NewSlot, PendingWrite};
use crate::resolve::ResolvedBatch;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_select::take::take;
use marigram_model::{ColumnId, SeriesId, TableId, TagKey, WriteBatch};
use marigram_series_index::{RetiredSeriesPin, SeriesIndex};
use parking_lot::RwLock;
use std::sync::Arc;

/// A slot whose series the shard did not know when it was looked up.
const UNKNOWN: u32 = u32::MAX;

/// The shard of a series, by the hash of its identity. It must never change, because existing data
/// depends on it. The hash is mixed again, so that the hash map inside a shard still sees all its
/// bits.
pub(crate) fn shard_of(hash: u64, shards: usize) -> usize {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    ((mixed * shards as u64) >> 32) as usize
}

/// Identities of the slots in a batch.
struct SlotRoutes {
    keys: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<u64>,
    shards: Vec<u32>,
    series: Vec<u32>,
    /// By shard; taken before its series were looked up.
    pins: Vec<RetiredSeriesPin>,
}

impl SlotRoutes {
    fn key(&self, slot: usize) -> &[u8] {
        let start = slot.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[slot]]
    }

    fn from_batch(
        table: TableId,
        resolved: &ResolvedBatch,
        count: usize,
        indexes: &[Arc<RwLock<SeriesIndex>>],
    ) -> Self {
        let mut slots = Self {
            keys: Vec::new(),
            ends: Vec::with_capacity(count),
            hashes: Vec::with_capacity(count),
            shards: Vec::with_capacity(count),
            series: vec![UNKNOWN; count],
            pins: Vec::with_capacity(indexes.len()),
        };
        let mut key = TagKey::default();
        for slot in 0..count {
            key.clear();
            for (ordinal, tag) in &resolved.tags {
                if let Some(value) = tag.value(slot) {
                    key.push(*ordinal, value);
                }
            }
            let hash = SeriesIndex::hash(table, key.as_bytes());
            slots.keys.extend_from_slice(key.as_bytes());
            slots.ends.push(slots.keys.len());
            slots.hashes.push(hash);
            slots.shards.push(shard_of(hash, indexes.len()) as u32);
        }
        for (shard, index) in indexes.iter().enumerate() {
            let index = index.read();
            slots.pins.push(index.pin());
            for slot in (0..count).filter(|slot| slots.shards[*slot] as usize == shard) {
                if let Some(id) = index.get(table, slots.key(slot), slots.hashes[slot]) {
                    slots.series[slot] = id.0;
                }
            }
        }
        slots
    }
}

/// The rows of a batch that are not rejected, by shard: (shard, write), ascending.
pub(crate) fn route(
    table: TableId,
    batch: &WriteBatch,
    resolved: &ResolvedBatch,
    indexes: &[Arc<RwLock<SeriesIndex>>],
) -> Vec<(usize, PendingWrite)> {
    let slots = SlotRoutes::from_batch(table, resolved, batch.slot_count, indexes);
    let rows_by_shard = split(batch, resolved, &slots, indexes.len());
    let mut writes = Vec::new();
    for (shard, rows) in rows_by_shard.into_iter().enumerate() {
        let (row_slots, times, columns) = match rows {
            RoutedRows::None => continue,
            RoutedRows::All => (
                batch.slots.clone(),
                batch.times.clone(),
                own(&resolved.columns),
            ),
            RoutedRows::Some(rows) => gather(batch, resolved, rows),
        };
        let pin = slots.pins.get(shard).cloned();
        let write = pending(table, &slots, row_slots, times, columns);
        writes.push((shard, PendingWrite { pin, ..write }));
    }
    writes
}

/// Rows by their identity, for a delete.
pub(crate) struct RoutedKeys {
    /// By shard: series and time of each row. Rows of unknown series are left out.
    pub(crate) rows: Vec<Vec<(SeriesId, i64)>>,
    /// By shard: the numbers of the series stay theirs while this exists.
    pub(crate) pins: Vec<RetiredSeriesPin>,
}

/// Finds the shard and the series of each row of `keys`.
pub(crate) fn route_keys(
    table: TableId,
    keys: &WriteBatch,
    resolved: &ResolvedBatch,
    indexes: &[Arc<RwLock<SeriesIndex>>],
) -> RoutedKeys {
    let slots = SlotRoutes::from_batch(table, resolved, keys.slot_count, indexes);
    let mut rows = vec![Vec::new(); indexes.len()];
    for (slot, time) in keys.slots.iter().zip(keys.times.iter()) {
        let series = slots.series[*slot as usize];
        if series != UNKNOWN {
            rows[slots.shards[*slot as usize] as usize].push((SeriesId(series), *time));
        }
    }
    RoutedKeys {
        rows,
        pins: slots.pins,
    }
}

/// The shard of every row that is not rejected; used to tell which rows a failure affects.
pub(crate) fn shard_of_rows(
    table: TableId,
    batch: &WriteBatch,
    resolved: &ResolvedBatch,
    shards: usize,
) -> Vec<(u32, usize)> {
    let unasked: Vec<Arc<RwLock<SeriesIndex>>> = (0..shards).map(|_| Arc::default()).collect();
    let slots = SlotRoutes::from_batch(table, resolved, batch.slot_count, &unasked);
    let rows = batch.slots.iter().enumerate();
    rows.filter(|(row, _)| !resolved.rejects.contains(*row))
        .map(|(row, slot)| (row as u32, slots.shards[*slot as usize] as usize))
        .collect()
}

enum RoutedRows {
    None,
    All,
    Some(Vec<u32>),
}

fn split(
    batch: &WriteBatch,
    resolved: &ResolvedBatch,
    slots: &SlotRoutes,
    shards: usize,
) -> Vec<RoutedRows> {
    if resolved.rejects.is_empty() {
        let first = batch.slots.first().map(|slot| slots.shards[*slot as usize]);
        let one_shard = shards == 1
            || batch
                .slots
                .iter()
                .all(|slot| Some(slots.shards[*slot as usize]) == first);
        if one_shard {
            let all = |shard| {
                if Some(shard as u32) == first {
                    RoutedRows::All
                } else {
                    RoutedRows::None
                }
            };
            return (0..shards).map(all).collect();
        }
    }
    let mut rows: Vec<Vec<u32>> = (0..shards)
        .map(|_| Vec::with_capacity(batch.len() / shards + 64))
        .collect();
    for (row, slot) in batch.slots.iter().enumerate() {
        if !resolved.rejects.contains(row) {
            rows[slots.shards[*slot as usize] as usize].push(row as u32);
        }
    }
    let some = |rows: Vec<u32>| {
        if rows.is_empty() {
            RoutedRows::None
        } else {
            RoutedRows::Some(rows)
        }
    };
    rows.into_iter().map(some).collect()
}

type RoutedColumns = Vec<(ColumnId, ArrayRef)>;

/// The columns unchanged, except small slices of large buffers, which are copied so that the memory
/// kept matches the memory counted.
fn own(columns: &RoutedColumns) -> RoutedColumns {
    let own = |values: &ArrayRef| {
        if values.get_buffer_memory_size() <= 2 * values_bytes(values.as_ref()) + 4096 {
            return values.clone();
        }
        let rows: UInt32Array = (0..values.len() as u32).collect();
        take(values, &rows, None).expect("rows are within the batch")
    };
    columns
        .iter()
        .map(|(id, values)| (*id, own(values)))
        .collect()
}

/// Memory that the rows of a batch will need, bytes, estimated before it is known which of them are
/// stored.
pub(crate) fn estimate_bytes(batch: &WriteBatch) -> usize {
    let fields = batch
        .fields
        .iter()
        .map(|field| values_bytes(field.values.as_ref()));
    fields.sum::<usize>() + batch.len() * (size_of::<u32>() + size_of::<i64>())
}

fn gather(
    batch: &WriteBatch,
    resolved: &ResolvedBatch,
    rows: Vec<u32>,
) -> (Vec<u32>, ScalarBuffer<i64>, RoutedColumns) {
    let row_slots = rows.iter().map(|row| batch.slots[*row as usize]).collect();
    let times = rows.iter().map(|row| batch.times[*row as usize]).collect();
    let rows = UInt32Array::from(rows);
    let columns = resolved
        .columns
        .iter()
        .map(|(id, values)| {
            (
                *id,
                take(values, &rows, None).expect("rows are within the batch"),
            )
        })
        .filter(|(_, values)| values.null_count() < values.len());
    (row_slots, times, columns.collect())
}

fn pending(
    table: TableId,
    slots: &SlotRoutes,
    row_slots: Vec<u32>,
    times: ScalarBuffer<i64>,
    columns: RoutedColumns,
) -> PendingWrite {
    let mut series = row_slots;
    let known = series
        .iter()
        .all(|slot| slots.series[*slot as usize] != UNKNOWN);
    let mut new_slots: Vec<NewSlot> = Vec::new();
    if known {
        for place in &mut series {
            *place = slots.series[*place as usize];
        }
    } else {
        // Rows use temporary slot numbers until all their series have ids.
        let mut numbers = vec![UNKNOWN; slots.series.len()];
        for place in &mut series {
            let slot = *place as usize;
            if numbers[slot] == UNKNOWN {
                numbers[slot] = new_slots.len() as u32;
                let key = TagKey::from_bytes(slots.key(slot)).expect("the key was just made");
                new_slots.push(NewSlot {
                    key,
                    hash: slots.hashes[slot],
                });
            }
            *place = numbers[slot];
        }
    }
    let bytes = series.len() * (size_of::<u32>() + size_of::<i64>())
        + columns
            .iter()
            .map(|(_, values)| values_bytes(values.as_ref()))
            .sum::<usize>();
    PendingWrite {
        table,
        series,
        new_slots,
        times,
        columns,
        bytes,
        room: None,
        pin: None,
    }
}

/// Memory of a column's own values, bytes, without the rest of a larger buffer that it is a slice
/// of.
pub(crate) fn values_bytes(values: &dyn Array) -> usize {
    values
        .to_data()
        .get_slice_memory_size()
        .unwrap_or_else(|_| values.get_array_memory_size())
}
