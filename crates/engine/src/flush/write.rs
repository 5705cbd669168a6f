//! Writes a memtable's rows as segments.

use super::LiveTables;
use super::pieces::{PartitionPiece, cut, portions, runs_and_ranges};
use crate::chunk::part::{self, ChunkPart, SMALL_TEXT_BYTES};
use crate::chunk::sort::{ChunkOrder, PARTS_MAX, TextSizes};
use crate::chunk::{CHUNK_ROWS, Chunk};
use crate::error::{EngineError, Result};
use crate::layout::layout_of;
use crate::memory::Holder;
use crate::memtable::Memtable;
use crate::shard::Shard;
use crate::text::BATCH_TEXT_BYTES;
use arrow_array::BooleanArray;
use arrow_select::filter::filter;
use marigram_manifest::{Partition, SegmentMeta, SegmentSpace, Tombstone};
use marigram_model::{SeriesId, SortedRows, TableId, TableSchema, TimeRange};
use marigram_segment::{SegmentColumn, SegmentWriter, TableLayout};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that sorting needs per row.
const ORDER_BYTES_A_ROW: usize = 32;

/// The rows of one table in one space.
struct TableRows {
    table: TableId,
    parts: Vec<ChunkPart>,
    order: ChunkOrder,
    columns: Vec<SegmentColumn>,
    layout: TableLayout,
    pieces: BTreeMap<i64, Vec<PartitionPiece>>,
}

/// Writes the rows of `memtable` to new segments, which are durable when it returns. On an error,
/// no file is left behind.
pub(super) fn write_segments(
    shard: &Shard,
    memtable: &Memtable,
    tombstones: &[Arc<Tombstone>],
    live: &LiveTables,
) -> Result<Vec<SegmentMeta>> {
    let mut groups: BTreeMap<(i64, Option<i64>), Vec<TableId>> = BTreeMap::new();
    for (table, _) in memtable.tables() {
        if let Some(schema) = live.get(&table) {
            let options = &schema.options;
            groups
                .entry((options.partition_ns, options.ttl_ns))
                .or_default()
                .push(table);
        }
    }
    let mut written = Vec::new();
    let mut all = || -> Result<()> {
        for ((width_ns, _), tables) in &groups {
            for space in [SegmentSpace::Sequence, SegmentSpace::Unsequence] {
                let chunks = of_space(memtable, tables, space);
                let chunks = chunks
                    .into_iter()
                    .filter_map(|(table, chunks)| Some((live.get(&table)?, chunks)));
                let chunks: Vec<_> = chunks.collect();
                write_group(shard, *width_ns, space, &chunks, tombstones, &mut written)?;
            }
        }
        if !written.is_empty() {
            let (blobs, prefix) = (&shard.context.blobs, shard.segment_prefix());
            blobs
                .sync_names(&prefix)
                .map_err(|error| EngineError::io(&blobs.location(&prefix), error))?;
        }
        Ok(())
    };
    match all() {
        Ok(()) => Ok(written),
        Err(error) => {
            shard.remove_segments(&written);
            Err(error)
        }
    }
}

fn of_space(
    memtable: &Memtable,
    tables: &[TableId],
    space: SegmentSpace,
) -> Vec<(TableId, Vec<Arc<Chunk>>)> {
    let late = space == SegmentSpace::Unsequence;
    let chunks = |table: &TableId| {
        let chunks = memtable
            .chunks(*table)
            .filter(|chunk| chunk.is_late() == late);
        (*table, chunks.cloned().collect::<Vec<_>>())
    };
    tables
        .iter()
        .map(chunks)
        .filter(|(_, chunks)| !chunks.is_empty())
        .collect()
}

/// Writes the tables of one group and space, with one segment per partition.
fn write_group(
    shard: &Shard,
    width_ns: i64,
    space: SegmentSpace,
    tables: &[(&Arc<TableSchema>, Vec<Arc<Chunk>>)],
    tombstones: &[Arc<Tombstone>],
    written: &mut Vec<SegmentMeta>,
) -> Result<()> {
    let chunks = tables.iter().flat_map(|(_, chunks)| chunks);
    let sequence_max = chunks
        .clone()
        .map(|chunk| chunk.sequence_max())
        .max()
        .unwrap_or(0);
    let order_bytes = chunks.map(|chunk| chunk.rows()).sum::<usize>() * ORDER_BYTES_A_ROW;
    let memory = &shard.context.memory;
    memory.grow(Holder::Memtable, order_bytes);
    let sorted = tables
        .iter()
        .filter_map(|(schema, chunks)| sort(schema, chunks, tombstones, width_ns))
        .collect::<Vec<_>>();
    let mut starts: Vec<i64> = sorted
        .iter()
        .flat_map(|t| t.pieces.keys().copied())
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let mut outcome = Ok(());
    for start_ns in starts {
        let partition = Partition { start_ns, width_ns };
        outcome = write_segment(shard, &sorted, partition, space, sequence_max, written);
        if outcome.is_err() {
            break;
        }
    }
    memory.shrink(Holder::Memtable, order_bytes);
    outcome
}

/// Sorts the rows of a table, without deleted ones; `None` if none is left.
fn sort(
    schema: &TableSchema,
    chunks: &[Arc<Chunk>],
    tombstones: &[Arc<Tombstone>],
    width_ns: i64,
) -> Option<TableRows> {
    let mut parts = Vec::new();
    for chunk in chunks {
        let later: Vec<&Tombstone> = tombstones
            .iter()
            .map(AsRef::as_ref)
            .filter(|t| t.table == schema.id && t.sequence > chunk.sequence_max())
            .collect();
        for part in chunk.parts().iter() {
            match undeleted(part, &later) {
                Some(part) if part.len() > 0 => part::push(&mut parts, part, SMALL_TEXT_BYTES),
                _ => {}
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    // Merging neighbours always helps: they have more than a few thousand rows or a few megabytes
    // of text in total, so only terabytes in memory would exceed the limit.
    while parts.len() > PARTS_MAX {
        parts = part::halve(&parts);
    }
    // The range is narrower if rows were deleted, which `cut` need not know.
    let range = chunks
        .iter()
        .map(|chunk| chunk.range())
        .reduce(TimeRange::union)?;
    let order = ChunkOrder::from_parts(&parts);
    let pieces = cut(&order, range, width_ns);
    let columns = part::columns_of(&parts);
    Some(TableRows {
        table: schema.id,
        parts,
        order,
        layout: layout_of(schema, &columns, false),
        columns,
        pieces,
    })
}

/// The rows of a part that no tombstone deletes.
fn undeleted(part: &ChunkPart, tombstones: &[&Tombstone]) -> Option<ChunkPart> {
    if tombstones.is_empty() {
        return Some(part.clone());
    }
    let range = part.range();
    let touching: Vec<_> = tombstones
        .iter()
        .filter(|t| t.range.overlaps(range))
        .collect();
    if touching.is_empty() {
        return Some(part.clone());
    }
    let deletes = |series: u32, time: i64| {
        let mut tombstones = touching.iter();
        tombstones.any(|tombstone| tombstone.covers(SeriesId(series), time))
    };
    let rows = part.series.iter().zip(part.times.iter());
    let keep: Vec<bool> = rows
        .clone()
        .map(|(series, time)| !deletes(*series, *time))
        .collect();
    let kept = |at: &usize| keep[*at];
    let rows: Vec<usize> = (0..part.len()).filter(kept).collect();
    let mask = BooleanArray::from(keep.clone());
    let columns = part.columns.iter().map(|(id, values)| {
        (
            *id,
            filter(values, &mask).expect("columns are as long as the part"),
        )
    });
    (!rows.is_empty()).then(|| ChunkPart {
        series: rows.iter().map(|row| part.series[*row]).collect(),
        times: rows.iter().map(|row| part.times[*row]).collect(),
        columns: columns.collect(),
    })
}

fn write_segment(
    shard: &Shard,
    tables: &[TableRows],
    partition: Partition,
    space: SegmentSpace,
    sequence_max: u64,
    written: &mut Vec<SegmentMeta>,
) -> Result<()> {
    let (id, name) = shard.new_segment();
    let context = &shard.context;
    let write = || -> Result<_> {
        let options = context.options.segment.clone();
        let mut writer = SegmentWriter::create(&*context.blobs, &name, options)?;
        for rows in tables {
            let Some(pieces) = rows.pieces.get(&partition.start_ns) else {
                continue;
            };
            writer.table(rows.table, &rows.columns, &rows.layout)?;
            let texts = TextSizes::from_order(&rows.order, &rows.parts);
            for portion in portions(pieces, CHUNK_ROWS, texts.as_ref(), BATCH_TEXT_BYTES) {
                let (runs, ranges) = runs_and_ranges(&portion);
                let times: Vec<&[i64]> = ranges
                    .iter()
                    .map(|range| &rows.order.times[range.clone()])
                    .collect();
                let columns = rows.order.gather(&rows.parts, &rows.columns, &ranges);
                writer.append(&SortedRows {
                    runs: joined(runs),
                    times: times.concat().into(),
                    columns,
                })?;
            }
        }
        Ok(writer.finish()?)
    };
    let summary = write().inspect_err(|_| {
        // What was written is garbage; the next opening removes what stays.
        let _ = context.blobs.delete(&name);
    })?;
    written.push(SegmentMeta {
        id,
        space,
        partition,
        range: summary.range,
        rows: summary.rows,
        bytes: summary.bytes,
        sequence_max,
        tables: summary.tables,
        series_min: summary.series_min,
        series_max: summary.series_max,
        level: 0,
        pin: Some(summary.pin),
    });
    Ok(())
}

/// Joins runs of the same series if its pieces are adjacent.
fn joined(runs: Vec<marigram_model::SeriesRun>) -> Vec<marigram_model::SeriesRun> {
    let mut joined: Vec<marigram_model::SeriesRun> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.series == run.series => last.rows += run.rows,
            _ => joined.push(run),
        }
    }
    joined
}
