//! The partitions in which a table has rows: what TimescaleDB calls its chunks.

use crate::dialect::timescale::arguments::{ArgumentClock, CallArguments};
use crate::error::{SqlError, SqlResult};
use chrono::{DateTime, Utc};
use marigram_engine::{Chunk, Engine, ShardView};
use marigram_functions::zoned::UTC;
use marigram_model::{ColumnId, DeletedRows, TableSchema, TimeRange, partition_start};
use std::collections::BTreeMap;

/// The schema of the names of partitions.
pub(crate) const PARTITION_SCHEMA: &str = "_timescaledb_internal";

/// A window of time in which a table has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TablePartition {
    /// Its name, without the schema.
    pub name: String,
    /// First time, ns.
    pub start_ns: i64,
    /// First time after it, ns.
    pub end_ns: i64,
    /// The most rows that there can be in segments.
    pub rows: u64,
    /// Bytes in segments.
    pub bytes: u64,
    /// Whether all of its rows are in segments.
    pub is_stored: bool,
}

impl TablePartition {
    /// Its name with the schema.
    pub(crate) fn qualified(&self) -> String {
        format!("{PARTITION_SCHEMA}.{}", self.name)
    }

    /// Its times.
    pub(crate) fn range(&self) -> TimeRange {
        TimeRange {
            min: self.start_ns,
            max: self.end_ns.saturating_sub(1),
        }
    }
}

/// The name of the partition of a table that starts at a time: `_hyper_3_20240101_chunk`.
fn name(table: &TableSchema, start_ns: i64) -> String {
    let start: DateTime<Utc> = DateTime::from_timestamp_nanos(start_ns);
    let date = start.format("%Y%m%d");
    let time = start.format("%H%M%S").to_string();
    let id = table.id.0;
    if time == "000000" {
        format!("_hyper_{id}_{date}_chunk")
    } else {
        format!("_hyper_{id}_{date}_{time}_chunk")
    }
}

/// The partitions of a table, by time. Rows that were deleted do not count if one delete covers all of
/// a partition.
///
/// # Errors
/// If there is no such table.
pub(crate) fn partitions(engine: &Engine, table: &TableSchema) -> SqlResult<Vec<TablePartition>> {
    let snapshot = engine.snapshot(&table.database, &table.name)?;
    let mut found = BTreeMap::new();
    for view in snapshot.views() {
        for open in &view.segments {
            let window = open.meta.partition;
            let end_ns = window.start_ns.saturating_add(window.width_ns);
            if is_deleted(view, open.meta.sequence_max, open.meta.range) {
                continue;
            }
            let is_shared = open.meta.tables.len() > 1;
            let detail = is_shared
                .then(|| open.detail(Some(table.id)).ok())
                .flatten();
            let segment = is_shared.then(|| open.segment().ok()).flatten();
            let rows = segment
                .and_then(|segment| segment.whole(table.id).map(|whole| whole.rows))
                .unwrap_or(open.meta.rows);
            let bytes = detail.map_or(open.meta.bytes, |detail| detail.page_bytes);
            let partition = entry(&mut found, table, window.start_ns, end_ns);
            partition.rows += rows;
            partition.bytes += bytes;
        }
        for chunk in &view.chunks {
            for window in windows(chunk, table.options.partition_ns) {
                if !is_deleted(view, chunk.sequence_max(), window) {
                    let end_ns = window.min.saturating_add(table.options.partition_ns);
                    entry(&mut found, table, window.min, end_ns).is_stored = false;
                }
            }
        }
    }
    Ok(found.into_values().collect())
}

fn entry<'a>(
    found: &'a mut BTreeMap<i64, TablePartition>,
    table: &TableSchema,
    start_ns: i64,
    end_ns: i64,
) -> &'a mut TablePartition {
    let partition = found.entry(start_ns).or_insert_with(|| TablePartition {
        name: name(table, start_ns),
        start_ns,
        end_ns,
        rows: 0,
        bytes: 0,
        is_stored: true,
    });
    partition.end_ns = partition.end_ns.max(end_ns);
    partition
}

/// Whether a delete of all series covers what a source has in a range.
fn is_deleted(view: &ShardView, sequence_max: u64, range: TimeRange) -> bool {
    view.tombstones.iter().any(|tombstone| {
        tombstone.rows == DeletedRows::Table
            && sequence_max < tombstone.sequence
            && tombstone.range.min <= range.min
            && range.max <= tombstone.range.max
    })
}

/// The windows of a width in which a chunk of a memtable has rows.
fn windows(chunk: &Chunk, width_ns: i64) -> Vec<TimeRange> {
    let range = chunk.range();
    let window = |start: i64| TimeRange {
        min: start,
        max: start.saturating_add(width_ns - 1),
    };
    let (first, last) = (
        partition_start(range.min, width_ns),
        partition_start(range.max, width_ns),
    );
    if first == last {
        return vec![window(first)];
    }
    let times = chunk.sorted().times.iter();
    let mut starts: Vec<i64> = times.map(|time| partition_start(*time, width_ns)).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().map(window).collect()
}

/// How times without a zone are read that choose among a table's partitions: in the session's zone if the
/// table's times have one, else in UTC.
///
/// # Errors
/// If the zone is unknown.
pub(crate) fn clock(
    table: &TableSchema,
    now_ns: i64,
    session_zone: &str,
) -> SqlResult<ArgumentClock> {
    let is_zoned = table.options.zoned.contains(&ColumnId::TIME);
    let zone = if is_zoned { session_zone } else { UTC };
    ArgumentClock::new(now_ns, zone)
}

/// The partitions that lie before `older_than` and from `newer_than` on.
///
/// # Errors
/// If the arguments are no times, or `is_bounded` and there is none.
pub(crate) fn chosen(
    all: Vec<TablePartition>,
    arguments: &CallArguments,
    clock: &ArgumentClock,
    is_bounded: bool,
) -> SqlResult<Vec<TablePartition>> {
    for name in ["created_before", "created_after"] {
        if arguments.has(name) {
            let message = format!("{name} is not supported: partitions are chosen by their times");
            return Err(SqlError::named("0A000", name, message));
        }
    }
    let older = arguments.moment("older_than", clock)?;
    let newer = arguments.moment("newer_than", clock)?;
    if is_bounded && older.is_none() && newer.is_none() {
        let message = "drop_chunks needs older_than or newer_than; TRUNCATE deletes all rows";
        return Err(SqlError::named("22023", "drop_chunks", message));
    }
    let is_chosen = |partition: &TablePartition| {
        older.is_none_or(|older| partition.end_ns <= older)
            && newer.is_none_or(|newer| partition.start_ns >= newer)
    };
    Ok(all.into_iter().filter(is_chosen).collect())
}
