//! A shard: its log, memtables, segments, series and last values, and the changes of them.
//!
//! Locks, in the order in which they are taken: `maintenance` (compaction, retention), `flushing`,
//! the catalog, `log` (commit, freeze), `manifest`, `state`, `index`, `last`, `witness`. `state` is held for moments only:
//! readers copy what they need out of it, and no lock is held while they stream.

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
};
use marigram_model::{SeriesId, TableId};
use marigram_series_index::{SeriesIndex, SeriesLog};
use marigram_wal::{LogRoom, RoomPromise, Wal, WalError};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What all shards of an engine share.
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
}

/// A memtable is flushed when it holds this part of the memory ceiling, whatever the settings say:
/// sorting it takes about as much again.
const FLUSH_PART: usize = 8;

/// Where memory runs short, memtables are flushed at this part of the size at which they are full:
/// smaller ones would free little and leave many small segments.
pub(crate) const PRESSED_PART: usize = 8;
/// Rows that each series of a shard has on average in a memtable that need not become larger: it is
/// flushed at [`EARLY_PART`] of its full size. More rows of each would make hardly better pages, and
/// what waits in memory is work left to do when the last row has come.
const EARLY_RUN_ROWS: usize = 512;
const EARLY_PART: usize = 4;

impl ShardContext {
    /// The size at which a shard's memtable is flushed, bytes.
    pub fn flush_bytes_max(&self) -> usize {
        self.options
            .flush_bytes_max
            .min(self.memory.limit() / FLUSH_PART)
    }
}

/// The log under append, and what orders changes.
#[derive(Debug)]
pub(crate) struct ShardLog {
    pub wal: Wal,
    /// Sequence of the next change.
    pub next_sequence: u64,
    /// Whether something was appended since the last sync.
    pub unsynced: bool,
    /// Tables dropped since the shard was opened: they take no rows any more.
    pub dropped: HashSet<TableId>,
    /// Encoded records; kept for its memory.
    pub buffer: Vec<u8>,
}

/// A memtable that takes no more rows and waits to be flushed.
#[derive(Debug)]
pub(crate) struct FrozenMemtable {
    pub memtable: Memtable,
    /// The first log file that holds none of its entries; `None` while the log is replayed.
    pub wal_floor: Option<u64>,
    /// First series that is younger than it.
    pub series_end: SeriesId,
}

/// What readers see, and where rows go.
#[derive(Debug)]
pub(crate) struct ShardState {
    pub active: Memtable,
    /// Oldest first.
    pub frozen: VecDeque<Arc<FrozenMemtable>>,
    pub segments: Vec<Arc<OpenSegment>>,
    /// All that may still apply to something, ascending by sequence.
    pub tombstones: Vec<Arc<Tombstone>>,
    /// Highest sequence that is visible.
    pub sequence: u64,
    pub marks: HighWaterMarks,
}

/// The manifest, and the log of series, which is opened anew after it failed.
#[derive(Debug)]
pub(crate) struct DurableShard {
    pub manifest: Manifest,
    pub series_log: Option<SeriesLog>,
}

/// What those who flush a shard share; one at a time holds it.
#[derive(Debug, Default)]
pub(crate) struct FlushState {
    /// When the background tries again after a failure, on the monotonic clock.
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
    /// Room in the log, which is promised without waiting for the log.
    pub room: OnceLock<Arc<LogRoom>>,
    pub durable: Mutex<DurableShard>,
    pub state: RwLock<ShardState>,
    pub index: Arc<RwLock<SeriesIndex>>,
    pub last: Arc<Mutex<LastValues>>,
    pub flushing: Mutex<FlushState>,
    pub maintenance: Mutex<MaintenanceState>,
    pub next_segment: AtomicU64,
    /// What was made durable, written down a second time.
    pub witness: Mutex<WitnessFile>,
    /// Whether what the manifest does not name is garbage for certain.
    pub is_certain: bool,
    /// Segments whose files were missing or of another length when the shard was opened.
    pub damaged: BTreeSet<SegmentId>,
    pub counted: MeasuredUsage,
}

/// What compaction remembers.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceState {
    /// Compactions done.
    pub turn: u64,
    /// Inputs of compactions that met damage: they are left alone until the engine is opened again.
    pub unreadable: BTreeSet<SegmentId>,
}

/// Memory of structures that are measured, not counted, as the accountant knows it.
#[derive(Debug, Default)]
pub(crate) struct MeasuredUsage {
    segments: AtomicUsize,
    series: AtomicUsize,
}

impl Shard {
    /// Room in the log for records of `bytes`, for as long as the promise is held.
    pub fn promise_room(&self, bytes: u64) -> Result<RoomPromise> {
        let room = self.room.get_or_init(|| Arc::clone(self.log().wal.room()));
        if !room.has_file() {
            self.log().wal.ensure_file()?;
        }
        Ok(room.promise(bytes)?)
    }

    /// Queues a change.
    pub fn submit(&self, change: CommitChange) -> Arc<CommitTicket> {
        self.queue.submit(change)
    }

    /// Waits until a change is durable and visible, or refused.
    pub fn drive(&self, ticket: &CommitTicket) -> Result<()> {
        self.queue.drive(ticket, |group| self.lead(group))
    }

    /// Commits a group that holds a change, if nobody does so just now.
    pub fn lead_if_free(&self, ticket: &CommitTicket) {
        self.queue.lead_if_free(ticket, |group| self.lead(group));
    }

    /// The log, under its lock.
    pub fn log(&self) -> MutexGuard<'_, ShardLog> {
        self.log
            .get()
            .expect("recovery opens the log before the shard is shared")
            .lock()
    }

    /// Prefix of the names of its segments.
    pub fn segment_prefix(&self) -> String {
        segment_prefix(self.number)
    }

    /// Takes a file of the shard away that nothing names.
    pub fn discard(&self, path: &Path) -> std::io::Result<()> {
        self.context
            .trash
            .take(&self.context.env, self.number, path)
    }

    /// A new segment's number and name.
    pub fn new_segment(&self) -> (SegmentId, String) {
        let id = SegmentId(self.next_segment.fetch_add(1, Ordering::Relaxed));
        (id, segment_name(self.number, id))
    }

    /// What a query on `table` sees now.
    pub fn view(&self, table: TableId) -> ShardView {
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

    /// Whether the active memtable holds what a flush is worth.
    pub fn is_full(&self) -> bool {
        let full = self.context.flush_bytes_max().max(1);
        let (bytes, rows) = {
            let active = &self.state.read().active;
            (active.bytes, active.rows)
        };
        let has_long_runs = || rows / EARLY_RUN_ROWS >= self.index.read().len();
        bytes >= full || (bytes >= full.div_ceil(EARLY_PART) && has_long_runs())
    }

    /// Whether the active memtable holds enough to be flushed where memory runs short.
    pub fn is_worth_freeing(&self) -> bool {
        let least = self.context.flush_bytes_max() / PRESSED_PART;
        self.state.read().active.bytes >= least.max(1)
    }

    /// Freezes the active memtable, if anything is in it: the log begins a new file, and late
    /// marks rise. Says whether there was anything.
    pub fn freeze(&self) -> Result<bool> {
        let mut log = self.log();
        if self.state.read().active.is_empty() {
            return Ok(false);
        }
        let floor = match log.wal.rotate() {
            Ok(floor) => floor,
            // The old file goes on.
            Err(error @ WalError::Full { .. }) => return Err(error.into()),
            Err(error) => {
                self.context.health.fail(&error.to_string());
                return Err(EngineError::ReadOnly(error.to_string()));
            }
        };
        if let Some((number, extent)) = log.wal.before() {
            self.witness.lock().note_wal(number, extent);
        }
        log.unsynced = false;
        let series_end = self.index.read().next_id();
        let memory = &self.context.memory;
        self.state.write().freeze(Some(floor), series_end, memory);
        Ok(true)
    }

    /// Makes durable what was appended without a sync.
    pub fn sync(&self) -> Result<()> {
        let mut log = self.log();
        if !std::mem::take(&mut log.unsynced) {
            return Ok(());
        }
        crate::stats::add(&self.context.stats.wal_syncs, 1);
        log.wal.sync().map_err(|error| {
            self.context.health.fail(&error.to_string());
            EngineError::from(error)
        })?;
        self.witness
            .lock()
            .note_wal(log.wal.number(), log.wal.synced());
        Ok(())
    }

    /// Commits a change of the set of segments, together with the end of tombstones that nothing
    /// needs any more, and makes it visible. `flushed`: the oldest frozen memtable is now in
    /// segments.
    pub fn install(&self, mut edit: ManifestEdit, flushed: bool) -> Result<()> {
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
        // Readers of an older version open files again by their names: a file goes with its last one.
        let removed = left
            .iter()
            .filter(|segment| !kept.contains(&segment.meta.id));
        removed.for_each(|segment| segment.remove_when_unused());
        drop(left);
        self.measure();
        Ok(())
    }

    /// Removes the files of an edit that the manifest surely does not have.
    pub fn remove_new(&self, edit: &ManifestEdit) {
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

    /// Opens a segment that an edit added; one that was there before only moves.
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

    /// Tells the accountant what the open segments and the series index hold.
    pub fn measure(&self) {
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
    /// Moves the active memtable to the frozen ones and raises the late marks. From here on its
    /// memory, taken from `memory`, is given back when nobody holds it any more.
    pub fn freeze(
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

/// A segment of the manifest. One that is damaged stays in the version with its error.
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
