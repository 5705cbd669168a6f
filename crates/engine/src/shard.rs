//! A shard: its log, memtables, segments, series and last values, and changes to them.
//!
//! Locks, in the order in which they are taken: `maintenance` (compaction, retention), `flushing`,
//! the catalog, `log` (commit, freeze), `manifest`, `state`, `index`, `last`, `witness`. `state` is
//! only held briefly: readers copy what they need from it, and no lock is held while they stream.

mod directory_notes;
mod group_leader;

use crate::commit::{CommitChange, CommitQueue, CommitTicket};
use crate::compaction::CompactionHistory;
use crate::error::{EngineError, Result};
use crate::health::EngineHealth;
use crate::high_water_marks::HighWaterMarks;
use crate::last_values::LastValues;
use crate::memory::{Holder, MemoryAccountant, MemoryReservation};
use crate::memtable::Memtable;
use crate::options::EngineOptions;
use crate::reserve::DiskReserve;
use crate::rollups::RollupTracker;
use crate::segment_files::SegmentFiles;
use crate::stats::EngineCounters;
use crate::trash::TrashFolder;
use crate::view::{OpenSegment, ShardView};
use marigram_env::{BlobStore, Env};
use marigram_manifest::{
    Manifest, ManifestEdit, ManifestError, SegmentId, SegmentMeta, Tombstone, WitnessFile,
    WitnessedShard,
};
use marigram_model::{SeriesId, TableId};
use marigram_series_index::{SeriesIndex, SeriesLog};
use marigram_wal::{LogRoom, RoomPromise, Wal, WalError};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// State that all shards of an engine share.
#[derive(Debug)]
pub(crate) struct ShardContext {
    pub env: Env,
    /// Where segments stand.
    pub blobs: Arc<dyn BlobStore>,
    pub options: EngineOptions,
    pub memory: Arc<MemoryAccountant>,
    pub files: Arc<SegmentFiles>,
    pub health: Arc<EngineHealth>,
    pub stats: EngineCounters,
    pub compactions: CompactionHistory,
    pub rollups: RollupTracker,
    pub trash: TrashFolder,
    pub reserve: DiskReserve,
    /// The witness of the data directory: an older copy of a whole shard, with its own witness, is
    /// told apart by it.
    pub witness: Arc<Mutex<WitnessFile>>,
}

/// A memtable is flushed when it holds this part of the memory ceiling, whatever the settings say:
/// sorting it needs about as much again.
const FLUSH_PART: usize = 8;

/// If memory runs short, memtables are flushed at this part of their full size: smaller ones would
/// free little and produce many small segments.
pub(crate) const PRESSED_PART: usize = 8;
/// Average number of rows per series from which on a memtable need not grow: it is flushed at
/// [`EARLY_PART`] of its full size. More rows per series would hardly improve pages, and what waits
/// in memory is work that remains after the last row has arrived.
const EARLY_RUN_ROWS: usize = 512;
const EARLY_PART: usize = 4;

impl ShardContext {
    /// The size at which a shard's memtable is flushed, bytes.
    pub(crate) fn flush_bytes_max(&self) -> usize {
        self.options
            .flush_bytes_max
            .min(self.memory.limit() / FLUSH_PART)
    }
}

/// The log open for appending, which also orders changes.
#[derive(Debug)]
pub(crate) struct ShardLog {
    pub wal: Wal,
    /// Sequence of the next change.
    pub next_sequence: u64,
    /// Whether something was appended since the last sync.
    pub unsynced: bool,
    /// Tables dropped since the shard was opened, which accept no more rows.
    pub dropped: HashSet<TableId>,
    /// Encoded records; kept for its allocation.
    pub buffer: Vec<u8>,
}

/// A memtable that accepts no more rows and waits for its flush.
#[derive(Debug)]
pub(crate) struct FrozenMemtable {
    pub memtable: Memtable,
    /// The first log file without entries of it; `None` while the log is replayed.
    pub wal_floor: Option<u64>,
    /// First series that is newer than it.
    pub series_end: SeriesId,
}

/// What readers see, and where rows are written.
#[derive(Debug)]
pub(crate) struct ShardState {
    pub active: Memtable,
    /// Oldest first.
    pub frozen: VecDeque<Arc<FrozenMemtable>>,
    pub segments: Vec<Arc<OpenSegment>>,
    /// All tombstones that may still apply to something, ascending by sequence.
    pub tombstones: Vec<Arc<Tombstone>>,
    /// Highest visible sequence.
    pub sequence: u64,
    pub marks: HighWaterMarks,
}

/// The manifest, and the log of series, which is reopened after a failure.
#[derive(Debug)]
pub(crate) struct DurableShard {
    pub manifest: Manifest,
    pub series_log: Option<SeriesLog>,
}

/// State of flushing; one thread at a time holds it.
#[derive(Debug, Default)]
pub(crate) struct FlushState {
    /// When the background retries after a failure, on the monotonic clock.
    pub retry_at_ns: Option<u64>,
}

/// A self-contained unit of storage.
#[derive(Debug)]
pub(crate) struct Shard {
    pub number: usize,
    pub dir: PathBuf,
    pub context: Arc<ShardContext>,
    pub queue: CommitQueue,
    /// Set by recovery before the shard is shared.
    pub log: OnceLock<Mutex<ShardLog>>,
    /// Space in the log, which can be reserved without waiting for the log.
    pub room: OnceLock<Arc<LogRoom>>,
    pub durable: Mutex<DurableShard>,
    pub state: RwLock<ShardState>,
    pub index: Arc<RwLock<SeriesIndex>>,
    pub last: Arc<Mutex<LastValues>>,
    pub flushing: Mutex<FlushState>,
    pub maintenance: Mutex<MaintenanceState>,
    pub next_segment: AtomicU64,
    /// The second record of what is durable.
    pub witness: Arc<Mutex<WitnessFile>>,
    /// When a write last recorded the log in the witness of the data directory, on the monotonic clock.
    pub noted_ns: AtomicU64,
    /// Whether what the manifest does not name is certainly garbage.
    pub is_certain: bool,
    /// Segments whose files were missing or had another length when the shard was opened.
    pub damaged: BTreeSet<SegmentId>,
    pub counted: MeasuredUsage,
}

/// State of compaction.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceState {
    /// Number of compactions done.
    pub turn: u64,
    /// Inputs of compactions that found damage: they are left alone until the engine is reopened.
    pub unreadable: BTreeSet<SegmentId>,
}

/// Memory of structures that are measured rather than counted, as last reported to the accountant.
#[derive(Debug, Default)]
pub(crate) struct MeasuredUsage {
    segments: AtomicUsize,
    series: AtomicUsize,
}

impl Shard {
    /// Reserves space in the log for records of `bytes`, for as long as the promise is held.
    pub(crate) fn promise_room(&self, bytes: u64) -> Result<RoomPromise> {
        let room = self.room.get_or_init(|| Arc::clone(self.log().wal.room()));
        if !room.has_file() {
            self.log().wal.ensure_file()?;
        }
        Ok(room.promise(bytes)?)
    }

    /// Queues a change.
    pub(crate) fn submit(&self, change: CommitChange) -> Arc<CommitTicket> {
        self.queue.submit(change)
    }

    /// Waits until a change is durable and visible, or refused.
    pub(crate) fn drive(&self, ticket: &CommitTicket) -> Result<()> {
        self.queue.drive(ticket, |group| self.lead(group))
    }

    /// Commits a group with a change if no other thread is committing.
    pub(crate) fn lead_if_free(&self, ticket: &CommitTicket) {
        self.queue.lead_if_free(ticket, |group| self.lead(group));
    }

    /// The log, under its lock.
    pub(crate) fn log(&self) -> MutexGuard<'_, ShardLog> {
        self.log
            .get()
            .expect("recovery opens the log before the shard is shared")
            .lock()
    }

    /// Prefix of the names of its segments.
    pub(crate) fn segment_prefix(&self) -> String {
        segment_prefix(self.number)
    }

    /// Removes a file of the shard that nothing names.
    pub(crate) fn discard(&self, path: &Path) -> std::io::Result<()> {
        self.context
            .trash
            .take(&self.context.env, self.number, path)
    }

    /// A new segment's number and name.
    pub(crate) fn new_segment(&self) -> (SegmentId, String) {
        let id = SegmentId(self.next_segment.fetch_add(1, Ordering::Relaxed));
        (id, segment_name(self.number, id))
    }

    /// What a query on `table` currently sees.
    pub(crate) fn view(&self, table: TableId) -> ShardView {
        let state = self.state.read();
        let frozen = state
            .frozen
            .iter()
            .flat_map(|frozen| frozen.memtable.chunks(table));
        let holds = |segment: &&Arc<OpenSegment>| segment.meta.tables.binary_search(&table).is_ok();
        let applies = |tombstone: &&Arc<Tombstone>| tombstone.table == table;
        ShardView {
            shard: self.number,
            sequence: state.sequence,
            segments: state.segments.iter().filter(holds).cloned().collect(),
            chunks: frozen.chain(state.active.chunks(table)).cloned().collect(),
            tombstones: state.tombstones.iter().filter(applies).cloned().collect(),
            reservations: state
                .frozen
                .iter()
                .map(|frozen| &frozen.memtable)
                .chain([&state.active])
                .filter(|memtable| memtable.chunks(table).next().is_some())
                .map(|memtable| Arc::clone(&memtable.reservation))
                .collect(),
        }
    }

    /// Whether the active memtable is large enough for a flush.
    pub(crate) fn is_full(&self) -> bool {
        let full = self.context.flush_bytes_max().max(1);
        let (bytes, rows) = {
            let active = &self.state.read().active;
            (active.bytes, active.rows)
        };
        let has_long_runs = || rows / EARLY_RUN_ROWS >= self.index.read().len();
        bytes >= full || (bytes >= full.div_ceil(EARLY_PART) && has_long_runs())
    }

    /// Whether the active memtable is large enough for a flush if memory runs short.
    pub(crate) fn is_worth_freeing(&self) -> bool {
        let least = self.context.flush_bytes_max() / PRESSED_PART;
        self.state.read().active.bytes >= least.max(1)
    }

    /// Freezes the active memtable if it contains anything: the log starts a new file, and
    /// high-water marks rise. Returns whether it contained anything.
    pub(crate) fn freeze(&self) -> Result<bool> {
        let mut log = self.log();
        if self.state.read().active.is_empty() {
            return Ok(false);
        }
        let floor = match log.wal.rotate() {
            Ok(floor) => floor,
            // The old file stays in use.
            Err(error @ WalError::Full { .. }) => return Err(error.into()),
            Err(error) => {
                self.context.health.fail(&error.to_string());
                return Err(EngineError::ReadOnly(error.to_string()));
            }
        };
        if let Some((number, extent)) = log.wal.before() {
            self.witness.lock().note_wal(number, extent);
            self.note_in_directory(WitnessedShard {
                wal: Some((number, extent)),
                log: None,
            });
        }
        log.unsynced = false;
        let series_end = self.index.read().next_id();
        let memory = &self.context.memory;
        self.state.write().freeze(Some(floor), series_end, memory);
        Ok(true)
    }

    /// Syncs what was appended without a sync.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut log = self.log();
        if !std::mem::take(&mut log.unsynced) {
            return Ok(());
        }
        crate::stats::add(&self.context.stats.wal_syncs, 1);
        log.wal.sync().map_err(|error| {
            self.context.health.fail(&error.to_string());
            EngineError::from(error)
        })?;
        self.note_synced(&log);
        Ok(())
    }

    /// Commits a change to the set of segments, together with the removal of spent tombstones, and
    /// makes it visible. `flushed` says that the oldest frozen memtable is now in segments.
    pub(crate) fn install(&self, mut edit: ManifestEdit, flushed: bool) -> Result<()> {
        let mut durable = self.durable.lock();
        let mut after = durable.manifest.state().clone();
        after.apply(&edit);
        edit.tombstones_removed
            .extend(crate::compaction::spent_tombstones(&after));
        match durable.manifest.commit(&edit) {
            Ok(()) => {}
            Err(error @ ManifestError::Full { .. }) => {
                drop(durable);
                self.remove_new(&edit);
                return Err(error.into());
            }
            Err(error) => {
                self.context.health.fail(&error.to_string());
                return Err(error.into());
            }
        }
        {
            let mut witness = self.witness.lock();
            witness.note_log(durable.manifest.extent());
            witness.release_wal(durable.manifest.state().wal_floor);
        }
        self.note_in_directory(WitnessedShard {
            log: Some(durable.manifest.extent()),
            wal: None,
        });
        let added: Vec<_> = edit
            .added
            .iter()
            .map(|meta| self.open_added(meta))
            .collect();
        let mut state = self.state.write();
        let gone: HashSet<SegmentId> = edit.removed.iter().copied().collect();
        let kept: HashSet<SegmentId> = edit.added.iter().map(|meta| meta.id).collect();
        let left = state
            .segments
            .extract_if(.., |segment| gone.contains(&segment.meta.id));
        let left: Vec<_> = left.collect();
        state.segments.extend(added);
        debug_assert!(
            state.segments.len() == durable.manifest.state().segments.len(),
            "readers see the segments of the manifest, each once"
        );
        debug_assert!(
            !flushed || !state.frozen.is_empty(),
            "a flush ends with the memtable that it began with"
        );
        state
            .tombstones
            .retain(|t| !edit.tombstones_removed.contains(&t.sequence));
        let flushed = if flushed {
            state.frozen.pop_front()
        } else {
            None
        };
        drop(state);
        drop(flushed);
        drop(durable);
        // Readers of an older version reopen files by name: a file is removed with its last reader.
        let removed = left
            .iter()
            .filter(|segment| !kept.contains(&segment.meta.id));
        removed.for_each(|segment| segment.remove_when_unused());
        drop(left);
        self.measure();
        Ok(())
    }

    /// Removes the files of an edit that is certainly not in the manifest.
    pub(crate) fn remove_new(&self, edit: &ManifestEdit) {
        for meta in &edit.added {
            if edit.removed.contains(&meta.id) {
                continue;
            }
            let name = segment_name(self.number, meta.id);
            if let Err(error) = self.context.blobs.delete(&name) {
                tracing::warn!(name, %error, "a new segment was not removed");
            }
        }
    }

    /// Opens a segment that an edit added; an existing one is only moved.
    fn open_added(&self, meta: &SegmentMeta) -> Arc<OpenSegment> {
        let known = self
            .state
            .read()
            .segments
            .iter()
            .find(|s| s.meta.id == meta.id)
            .cloned();
        Arc::new(match known {
            Some(known) => known.moved(meta.clone()),
            None => open_segment(&self.context.files, self.number, meta.clone()),
        })
    }

    /// Reports to the accountant what the open segments and the series index hold.
    pub(crate) fn measure(&self) {
        let state = self.state.read();
        let segments = state
            .segments
            .iter()
            .map(|segment| segment.meta_bytes())
            .sum();
        let marks = state.marks.memory_bytes();
        drop(state);
        let series = self.index.read().memory_bytes() + marks;
        self.context.files.recount();
        let memory = &self.context.memory;
        recount(
            memory,
            Holder::SegmentIndex,
            &self.counted.segments,
            segments,
        );
        recount(memory, Holder::SeriesIndex, &self.counted.series, series);
    }
}

impl ShardState {
    /// Moves the active memtable to the frozen ones and raises the high-water marks. From now on,
    /// its memory, which was reserved from `memory`, is released when nothing holds it any more.
    pub(crate) fn freeze(
        &mut self,
        wal_floor: Option<u64>,
        series_end: SeriesId,
        memory: &Arc<MemoryAccountant>,
    ) {
        let memtable = std::mem::take(&mut self.active);
        let (holder, bytes) = (Holder::Memtable, memtable.bytes);
        memtable
            .reservation
            .get_or_init(|| MemoryReservation::adopted(memory, holder, bytes));
        memtable.raise(&mut self.marks);
        self.frozen.push_back(Arc::new(FrozenMemtable {
            memtable,
            wal_floor,
            series_end,
        }));
    }
}

/// Prefix of the names of a shard's segments in the blob store of the data directory.
pub(crate) fn segment_prefix(shard: usize) -> String {
    format!("shards/{shard:04}/segments")
}

/// Name of a segment in the blob store of the data directory.
pub(crate) fn segment_name(shard: usize, id: SegmentId) -> String {
    format!("{}/{:010}.seg", segment_prefix(shard), id.0)
}

/// A segment in the manifest. A damaged one stays in the version with its error.
pub(crate) fn open_segment(
    files: &Arc<SegmentFiles>,
    shard: usize,
    meta: SegmentMeta,
) -> OpenSegment {
    OpenSegment::open(files, &segment_name(shard, meta.id), meta)
}

fn recount(memory: &MemoryAccountant, holder: Holder, counted: &AtomicUsize, now: usize) {
    let before = counted.swap(now, Ordering::Relaxed);
    if now >= before {
        memory.grow(holder, now - before);
    } else {
        memory.shrink(holder, before - now);
    }
}
