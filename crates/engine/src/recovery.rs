//! Recovery: opens a shard's directory.
//!
//! Manifest, series and the footers of segments are loaded and compared with what is known of them.
//! Files that the manifest does not name go to the trash, if the manifest is certain to be the
//! latest one. The part of the log that is not in segments is replayed into a memtable, which is
//! flushed whenever it exceeds its size, so memory stays bounded however long the log is. Replay is
//! idempotent: after a crash during recovery, the next one starts again.

use crate::damage::damaged;
use crate::error::{EngineError, Result};
use crate::flush::{LiveTables, identity_of};
use crate::high_water_marks::HighWaterMarks;
use crate::last_values::LastValues;
use crate::memory::{Holder, MemoryReservation};
use crate::memtable::Memtable;
use crate::route::values_bytes;
use crate::shard::{
    DurableShard, MaintenanceState, MeasuredUsage, PRESSED_PART, Shard, ShardContext, ShardLog,
    ShardState, open_segment, segment_name, segment_prefix,
};
use crate::survey::{KnownLogs, unknown_table};
use crate::view::OpenSegment;
use marigram_manifest::{
    LogProof, Manifest, SegmentId, WitnessFile, WitnessOwner, WitnessedShard, WitnessedState,
};
use marigram_model::{ColumnId, FieldValue, LogOwner, TableId};
use marigram_segment::SegmentError;
use marigram_series_index::{DiscardFile, LogPosition, SeriesIndex, SeriesLog};
use marigram_wal::{Wal, WalEntry, WalError, WalProof, WriteEntry};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// Number of segments whose directories are read for exact high-water marks; older ones count by
/// their time range.
const EXACT_SEGMENTS_MAX: usize = 64;

/// Parameters for opening the shards of a directory.
#[derive(Debug)]
pub(crate) struct ShardOpening<'a> {
    /// The data directory.
    pub dir: &'a Path,
    pub lineage: u64,
    /// Number of shards.
    pub shards: usize,
    /// The tables in the catalog.
    pub live: &'a LiveTables,
    /// Highest id that a table in it ever had.
    pub table_max: u32,
}

/// What was replayed from logs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecoveredLogs {
    /// Number of files with records.
    pub wal_files: usize,
    pub wal_bytes: u64,
    /// Number of rows that were not in segments yet.
    pub rows: u64,
}

impl RecoveredLogs {
    /// Adds what another shard replayed.
    pub(crate) fn add(&mut self, other: &Self) {
        self.wal_files += other.wal_files;
        self.wal_bytes += other.wal_bytes;
        self.rows += other.rows;
    }
}

fn create_folders(context: &ShardContext, dir: &Path, folders: [&Path; 2]) -> Result<()> {
    for made in folders {
        let done = context.env.fs.create_dir_all(made);
        done.map_err(|error| EngineError::io(made, error))?;
    }
    let synced = context.env.fs.sync_dir(dir);
    synced.map_err(|error| EngineError::io(dir, error))
}

/// Opens or creates a shard if it agrees with what is known of it; also returns what was replayed.
pub(crate) fn open_shard(
    context: &Arc<ShardContext>,
    dir: PathBuf,
    number: usize,
    opening: &ShardOpening<'_>,
    known: KnownLogs,
) -> Result<(Shard, RecoveredLogs)> {
    let (fs, live) = (&context.env.fs, opening.live);
    let wal_dir = dir.join("wal");
    create_folders(context, &dir, [&dir.join("segments"), &wal_dir])?;
    let owner = LogOwner {
        lineage: opening.lineage,
        shard: number as u32,
    };
    let proof = LogProof {
        owner: Some(owner),
        ..known.proof()
    };
    let (manifest, durable) = Manifest::open_proved(fs.clone(), &dir, &proof)?;
    if let Some(torn) = manifest.torn_tail() {
        tracing::warn!(
            shard = number,
            ?torn,
            "the manifest ended in an unacknowledged edit"
        );
    }
    let identity = |table: TableId| live.get(&table).map(|schema| identity_of(schema));
    let position = LogPosition(durable.series_log_bytes);
    let is_certain = known.is_certain;
    let discard = |path: &Path| context.trash.take(&context.env, number, path);
    let discard: Option<DiscardFile<'_>> = is_certain.then_some(&discard);
    let pin = durable.series_log_checksum;
    let (series_log, mut index) =
        SeriesLog::open_proved(fs.clone(), &dir, position, pin, discard, &identity)?;
    for schema in live.values() {
        index.set_identity(schema.id, identity_of(schema));
    }
    let files = segments_there(context, number)?;
    let highest_there = if is_certain {
        discard_unnamed(&files, number, &durable, context)
    } else {
        files.last().map(|(highest, _)| *highest)
    };
    let segment_dir = context.blobs.location(&segment_prefix(number));
    let damaged = damaged(&segment_dir, durable.segments.values(), &files, live);
    let next_segment = durable.next_segment().0;
    let of = WitnessOwner::from(owner);
    let witnessed = WitnessedState {
        log: Some(manifest.extent()),
        wal: known.witnessed.wal.clone(),
        ..WitnessedState::default()
    };
    let witness = WitnessFile::open(fs.clone(), &dir, of, witnessed)?;
    let open = |meta: &marigram_manifest::SegmentMeta| {
        Arc::new(open_segment(&context.files, number, meta.clone()))
    };
    let segments: Vec<_> = durable.segments.values().map(open).collect();
    let marks = marks_of(&segments, &index);
    let last = LastValues::new(
        context.memory.clone(),
        context.memory.share(Holder::LastValues) / opening.shards,
        index.next_id(),
    );
    let state = ShardState {
        active: Memtable::default(),
        frozen: VecDeque::new(),
        segments,
        tombstones: durable.tombstones.iter().cloned().map(Arc::new).collect(),
        sequence: durable.flushed_sequence,
        marks,
    };
    let shard = Shard {
        number,
        dir,
        context: context.clone(),
        queue: crate::commit::CommitQueue::default(),
        log: OnceLock::new(),
        room: OnceLock::new(),
        durable: Mutex::new(DurableShard {
            manifest,
            series_log: Some(series_log),
        }),
        state: RwLock::new(state),
        index: Arc::new(RwLock::new(index)),
        last: Arc::new(Mutex::new(last)),
        flushing: Mutex::default(),
        maintenance: Mutex::new(MaintenanceState::default()),
        // An existing file may still be needed, whatever its name.
        next_segment: AtomicU64::new(highest_there.map_or(next_segment, |highest| {
            next_segment.max(highest.saturating_add(1))
        })),
        witness: Arc::new(Mutex::new(witness)),
        noted_ns: AtomicU64::new(0),
        is_certain,
        damaged,
        counted: MeasuredUsage::default(),
    };
    shard.measure();
    let proof = WalProof {
        durable: known.witnessed.wal,
        owner: Some(owner),
        remove_released: is_certain,
    };
    let recovered = replay(&shard, &wal_dir, &durable, &proof, opening)?;
    forget_dropped(&shard, live);
    shard.note_extent();
    shard.measure();
    Ok((shard, recovered))
}

/// Replays the log and opens it for appending.
fn replay(
    shard: &Shard,
    dir: &Path,
    durable: &marigram_manifest::ManifestState,
    proof: &WalProof,
    opening: &ShardOpening<'_>,
) -> Result<RecoveredLogs> {
    let mut failure = None;
    let mut rows = 0;
    let mut apply = |sequence: u64, entry: WalEntry| {
        let flushed_sequence = durable.flushed_sequence;
        if let WalEntry::Write(write) = &entry
            && sequence > flushed_sequence
        {
            rows += write.times.len() as u64;
        }
        replay_entry(shard, sequence, &entry, flushed_sequence, opening).map_err(|error| {
            let source = std::io::Error::other(error.to_string());
            failure = Some(error);
            WalError::Io {
                path: dir.to_owned(),
                source,
            }
        })
    };
    let (fs, floor) = (shard.context.env.fs.clone(), durable.wal_floor);
    let opened = Wal::open_proved(fs, dir, floor, proof, &mut apply);
    if let Some(error) = failure {
        return Err(error);
    }
    let (wal, report) = opened?;
    if let Some((path, offset, reason)) = &report.torn {
        let path = path.display();
        tracing::warn!(%path, offset, reason, "the log ends here; what follows was never acknowledged");
    }
    {
        let mut witness = shard.witness.lock();
        for (number, extent) in &report.files {
            witness.note_wal(*number, *extent);
        }
    }
    let newest = report.files.last_key_value();
    shard.note_in_directory(WitnessedShard {
        log: None,
        wal: newest.map(|(number, extent)| (*number, *extent)),
    });
    let log = ShardLog {
        wal,
        next_sequence: shard.state.read().sequence + 1,
        unsynced: false,
        dropped: HashSet::new(),
        buffer: Vec::new(),
    };
    assert!(
        shard.log.set(Mutex::new(log)).is_ok(),
        "a shard must be recovered only once"
    );
    Ok(RecoveredLogs {
        wal_files: report.files.len(),
        wal_bytes: report.bytes,
        rows,
    })
}

fn replay_entry(
    shard: &Shard,
    sequence: u64,
    entry: &WalEntry,
    flushed_sequence: u64,
    opening: &ShardOpening<'_>,
) -> Result<()> {
    let live = opening.live;
    if let WalEntry::Write(write) = entry {
        check_columns(shard, write, opening)?;
        let mut index = shard.index.write();
        for (id, key) in &write.new_series {
            index.insert(*id, write.table, key.as_bytes())?;
        }
        check_series(shard, write, &index)?;
    }
    if sequence <= flushed_sequence {
        return Ok(());
    }
    let memory = &shard.context.memory;
    let now_ns = shard.context.env.clock.monotonic_ns();
    let mut state = shard.state.write();
    state.active.note(sequence, now_ns);
    match entry {
        WalEntry::Write(write) if live.contains_key(&write.table) => {
            let columns = write
                .columns
                .iter()
                .map(|(_, values)| values_bytes(values.as_ref()));
            let bytes = columns.sum::<usize>() + write.times.len() * 12;
            // The record is in the log's window until it is applied.
            let _record = MemoryReservation::counted(memory, Holder::Recovery, bytes);
            memory.grow(Holder::Memtable, bytes);
            shard.write(&mut state, sequence, write, bytes);
        }
        WalEntry::Write(_) => {}
        WalEntry::Delete(delete) => shard.delete(&mut state, sequence, delete),
        WalEntry::DropTable(table) => shard.drop_table(&mut state, *table),
    }
    state.sequence = sequence;
    let pressed = memory.used_by(Holder::Memtable) > memory.available(Holder::Memtable) / 2;
    let flush_bytes_max = shard.context.flush_bytes_max();
    let full = state.active.bytes >= flush_bytes_max
        || (pressed && state.active.bytes >= flush_bytes_max / PRESSED_PART);
    if full {
        let series_end = shard.index.read().next_id();
        state.freeze(None, series_end, memory);
        drop(state);
        if let Err(error) = shard.flush_oldest(&|| live.clone()) {
            keep_unflushed(shard, error)?;
        }
    }
    Ok(())
}

/// Checks that a record only names tables and columns that the catalog knows: they were durable in
/// it before any row that used them.
fn check_columns(shard: &Shard, write: &WriteEntry, opening: &ShardOpening<'_>) -> Result<()> {
    let Some(schema) = opening.live.get(&write.table) else {
        if write.table.0 <= opening.table_max {
            return Ok(());
        }
        let (dir, max) = (opening.dir, opening.table_max);
        return Err(unknown_table(dir, shard.number, write.table, max));
    };
    let is_unknown = |id: &ColumnId| schema.field_by_id(*id).is_none() && !schema.is_dropped(*id);
    match write
        .columns
        .iter()
        .map(|(id, _)| id)
        .find(|id| is_unknown(id))
    {
        None => Ok(()),
        Some(id) => Err(EngineError::Corrupt {
            path: opening.dir.join("CATALOG"),
            offset: 0,
            reason: format!(
                "table {} has no field {id} in it, and the log of shard {} holds values of it: its \
                 end is lost, or it was replaced by an older version",
                schema.name, shard.number
            ),
        }),
    }
}

/// On a full disk, replayed rows stay in memory as far as the ceiling allows, so that the database
/// can be read. They are flushed when there is space.
fn keep_unflushed(shard: &Shard, error: EngineError) -> Result<()> {
    if !error.is_of_full_disk() {
        return Err(error);
    }
    let memory = &shard.context.memory;
    let (used, share) = (
        memory.used_by(Holder::Memtable),
        memory.share(Holder::Memtable),
    );
    if used <= share {
        tracing::warn!(shard = shard.number, %error, "replayed rows stay in memory for now");
        return Ok(());
    }
    let reason = format!(
        "{error}; the log holds more rows than fit in {share} bytes of memory: make room on the \
         disk, or raise memory_limit"
    );
    Err(EngineError::ReadOnly(reason))
}

/// Checks that a record only names existing series: otherwise a bug or damage would surface much
/// later.
fn check_series(shard: &Shard, write: &WriteEntry, index: &SeriesIndex) -> Result<()> {
    let end = index.next_id().0;
    match write.series.iter().find(|series| **series >= end) {
        None => Ok(()),
        Some(series) => Err(EngineError::Corrupt {
            path: shard.dir.join("wal"),
            offset: 0,
            reason: format!("a record names series {series}, and there are {end}"),
        }),
    }
}

/// Drops series and deletes of tables that are not in the catalog: they were dropped, and the crash
/// came before the shard was told.
fn forget_dropped(shard: &Shard, live: &LiveTables) {
    let tables: Vec<TableId> = shard.index.read().tables().collect();
    for table in tables.into_iter().filter(|table| !live.contains_key(table)) {
        let mut state = shard.state.write();
        shard.drop_table(&mut state, table);
    }
}

/// Removes segments that the manifest does not name; returns the highest number of those that stay.
fn discard_unnamed(
    files: &[(u64, u64)],
    shard: usize,
    manifest: &marigram_manifest::ManifestState,
    context: &ShardContext,
) -> Option<u64> {
    let mut highest = None;
    for (id, _) in files.iter().copied() {
        if manifest.segments.contains_key(&SegmentId(id)) {
            highest = Some(id);
            continue;
        }
        let name = segment_name(shard, SegmentId(id));
        if let Err(error) = context.trash.take_segment(&context.env, shard, &name) {
            tracing::warn!(name, %error, "it was not moved to the trash");
            highest = Some(id);
        }
    }
    highest
}

/// Numbers of the segments that are there, ascending, and their lengths.
fn segments_there(context: &ShardContext, shard: usize) -> Result<Vec<(u64, u64)>> {
    let prefix = segment_prefix(shard);
    let blobs = context.blobs.list(&prefix);
    let blobs = blobs.map_err(|error| EngineError::io(&context.blobs.location(&prefix), error))?;
    let number = |name: &str| name.strip_suffix(".seg")?.parse().ok();
    let numbered = blobs
        .iter()
        .filter_map(|blob| Some((number(blob.base_name())?, blob.bytes)));
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_unstable();
    Ok(numbered)
}

/// High-water marks from the segments: exact for the newest ones, an upper bound for the others.
fn marks_of(segments: &[Arc<OpenSegment>], index: &SeriesIndex) -> HighWaterMarks {
    let mut newest_first: Vec<&OpenSegment> = segments.iter().map(AsRef::as_ref).collect();
    newest_first
        .sort_by_key(|segment| std::cmp::Reverse((segment.meta.range.max, segment.meta.id)));
    let mut marks = HighWaterMarks::default();
    let mut floors: HashMap<TableId, i64> = HashMap::new();
    for (at, segment) in newest_first.into_iter().enumerate() {
        if at < EXACT_SEGMENTS_MAX && raise_exactly(&mut marks, segment).is_ok() {
            continue;
        }
        for table in &segment.meta.tables {
            let floor = floors.entry(*table).or_insert(i64::MIN);
            *floor = (*floor).max(segment.meta.range.max);
        }
    }
    for (table, floor) in floors {
        for series in index.all(table) {
            marks.raise_one(series, floor);
        }
    }
    marks
}

/// Raises the marks of a segment's series to the largest time in the page with their last row.
fn raise_exactly(marks: &mut HighWaterMarks, segment: &OpenSegment) -> Result<()> {
    let segment = segment.segment()?;
    for (at, row_group) in segment.row_groups().iter().enumerate() {
        let directory = segment.directory(at)?;
        let pages = segment
            .pages(at, ColumnId::TIME)?
            .ok_or_else(|| SegmentError::Corrupt {
                path: segment.path().to_owned(),
                offset: 0,
                reason: format!("row group {at} has no time column"),
            })?;
        let (mut end, mut page) = (0_u32, 0);
        for run in directory.iter() {
            end = end.saturating_add(run.rows);
            while page + 1 < pages.len() && pages[page + 1].first_row < end {
                page += 1;
            }
            let max = match pages.get(page).and_then(|page| page.stats.max.as_ref()) {
                Some(FieldValue::I64(max) | FieldValue::Timestamp(max)) => *max,
                _ => row_group.range.max,
            };
            marks.raise_one(run.series.0, max);
        }
    }
    Ok(())
}
