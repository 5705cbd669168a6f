//! The parts of an engine, and how they are opened and closed.

use super::warning_throttle::WarningThrottle;
use crate::background::BackgroundSignal;
use crate::catalog::LiveCatalog;
use crate::compaction::{CompactionHistory, TokenBucket};
use crate::directory::{self, DirectoryIdentity};
use crate::error::{EngineError, Result};
use crate::health::EngineHealth;
use crate::memory::MemoryAccountant;
use crate::options::{Durability, EngineOptions};
use crate::parallel::side_by_side;
use crate::recovery::{RecoveredLogs, ShardOpening, open_shard};
use crate::reserve::DiskReserve;
use crate::rollups::RollupTracker;
use crate::segment_files::SegmentFiles;
use crate::shard::{Shard, ShardContext};
use crate::stats::EngineCounters;
use crate::status::EngineStatus;
use crate::survey::{KnownLogs, refuse_remains, survey};
use crate::table_gate::TableGate;
use crate::trash::TrashFolder;
use marigram_env::{BlobPool, Env, Lock, ReliefFs};
use marigram_series_index::SeriesIndex;
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// An open data directory, without its threads.
#[derive(Debug)]
pub(super) struct EngineInner {
    /// The data directory.
    pub dir: PathBuf,
    pub context: Arc<ShardContext>,
    pub schemas: Arc<LiveCatalog>,
    pub shards: Vec<Shard>,
    /// Series indexes by shard.
    pub indexes: Vec<Arc<RwLock<SeriesIndex>>>,
    pub bell: Arc<BackgroundSignal>,
    /// Holds back changes of tables whose rows are rewritten.
    pub gate: TableGate,
    /// Time of the last background sync of the log, monotonic ns.
    pub synced_ns: AtomicU64,
    /// The rate limit of background compaction.
    pub budget: Option<Mutex<TokenBucket>>,
    /// Number of batches; determines which shard comes first.
    pub turn: AtomicUsize,
    closed: AtomicBool,
    lock: Mutex<Option<Box<dyn Lock>>>,
    recovery_ms: u64,
    recovered: RecoveredLogs,
    /// Failures of background work, for throttling their reports.
    pub complaints: WarningThrottle,
}

/// Opens the shards, in parallel if threads are allowed at all.
fn open_shards(
    context: &Arc<ShardContext>,
    dir: &Path,
    opening: &ShardOpening<'_>,
    known: &[KnownLogs],
) -> Result<Vec<Result<(Shard, RecoveredLogs)>>> {
    let dirs =
        (0..opening.shards).map(|number| directory::make_shard_dir(&context.env, dir, number));
    let dirs = dirs.collect::<Result<Vec<_>>>()?;
    let open = |(number, dir)| {
        let known = known.get(number).cloned().unwrap_or_default();
        open_shard(context, dir, number, opening, known)
    };
    let numbered = dirs.into_iter().enumerate();
    if context.options.background_threads == 0 {
        return Ok(numbered.map(open).collect());
    }
    Ok(side_by_side(numbered, open))
}

fn log_opened(shards: &[Shard], tables: usize, recovered: &RecoveredLogs, took_ms: u64) {
    let segments = |shard: &Shard| shard.state.read().segments.len();
    let damaged = |shard: &Shard| shard.damaged.len();
    tracing::info!(
        shards = shards.len(),
        tables,
        segments = shards.iter().map(segments).sum::<usize>(),
        segments_damaged = shards.iter().map(damaged).sum::<usize>(),
        log_files = recovered.wal_files,
        log_bytes = recovered.wal_bytes,
        rows_replayed = recovered.rows,
        took_ms,
        "the data directory is open"
    );
}

impl EngineInner {
    pub(super) fn open(
        memory: Arc<MemoryAccountant>,
        env: Env,
        dir: &Path,
        options: EngineOptions,
    ) -> Result<Self> {
        let started_ns = env.clock.monotonic_ns();
        let lock = directory::lock(&env, dir)?;
        // Before anything is created, moved or removed, everything that decides what counts must be
        // intact.
        let identity = directory::identity(&env, dir)?;
        let survey = match identity {
            Some(identity) => Some(survey(&env, dir, identity)?),
            None => {
                directory::check_shards(options.shards)?;
                refuse_remains(&env, dir)?;
                None
            }
        };
        let proof = survey.as_ref().map(|survey| survey.catalog.proof());
        let health = Arc::new(EngineHealth::default());
        let schemas = LiveCatalog::open(
            env.fs.clone(),
            dir,
            &proof.unwrap_or_default(),
            health.clone(),
        )?;
        // The catalog comes first: if there is a MARIGRAM, there was a catalog.
        let identity = match identity {
            Some(identity) => identity,
            None => {
                let identity = DirectoryIdentity::new(&env, options.shards);
                directory::write_identity(&env, dir, identity)?;
                identity
            }
        };
        let witness = schemas.witness(env.fs.clone(), dir, identity.lineage)?;
        let schemas = Arc::new(schemas);
        let live = schemas.all();
        let stats = EngineCounters::default();
        let pool = BlobPool::new(env.blob_store(dir), options.open_files_max);
        let fs = Arc::new(ReliefFs::new(env.fs, pool.clone()));
        let env = Env { fs, ..env };
        let blobs = env.blob_store(dir);
        let trash = TrashFolder::new(dir, blobs.clone(), options.trash_retention);
        trash.purge(&env);
        let reserve = DiskReserve::open(&env, dir, identity.shards);
        let files = SegmentFiles::with_pool(pool, memory.clone());
        let bell = Arc::new(BackgroundSignal::default());
        let pressed = bell.clone();
        memory.on_refusal(move || pressed.press());
        let context = Arc::new(ShardContext {
            env,
            blobs,
            options,
            memory,
            files,
            health,
            stats,
            compactions: CompactionHistory::default(),
            rollups: RollupTracker::new(schemas.clone()),
            trash,
            reserve,
            witness,
        });
        let rate = context.options.compaction_bytes_per_second;
        let known = survey.map(|survey| survey.shards).unwrap_or_default();
        for doubt in known.iter().filter_map(|known| known.doubt.as_ref()) {
            tracing::warn!(
                doubt,
                "files that the manifest does not name stay in place until the next start"
            );
        }
        let opening = ShardOpening {
            dir,
            lineage: identity.lineage,
            shards: identity.shards,
            live: &live,
            table_max: schemas.table_max(),
        };
        let mut shards = Vec::with_capacity(identity.shards);
        let mut recovered = RecoveredLogs::default();
        for opened in open_shards(&context, dir, &opening, &known)? {
            let (shard, part) = opened?;
            recovered.add(&part);
            shards.push(shard);
        }
        schemas.note_in_shards(shards.iter().map(|shard| shard.witness.clone()).collect());
        let now_ns = context.env.clock.monotonic_ns();
        let recovery_ms = now_ns.saturating_sub(started_ns) / 1_000_000;
        log_opened(&shards, live.len(), &recovered, recovery_ms);
        Ok(Self {
            dir: dir.to_owned(),
            indexes: shards.iter().map(|shard| shard.index.clone()).collect(),
            schemas,
            shards,
            bell,
            gate: TableGate::default(),
            synced_ns: AtomicU64::new(now_ns),
            budget: rate.map(|rate| Mutex::new(TokenBucket::new(rate))),
            turn: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
            recovery_ms,
            recovered,
            complaints: WarningThrottle::default(),
            context,
        })
    }

    /// Returns `Closed` after [`close`](Self::close).
    pub(super) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            Err(EngineError::Closed)
        } else {
            Ok(())
        }
    }

    /// Refuses further calls, flushes and releases the lock.
    pub(super) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(EngineError::Closed);
        }
        let flushed = self.flush();
        for shard in &self.shards {
            // A compaction for which another thread waits stops at its next batch.
            drop(shard.maintenance.lock());
        }
        self.unlock();
        flushed
    }

    /// Releases the directory's lock. If the log is synced at intervals, syncs it first.
    pub(super) fn unlock(&self) {
        let Some(lock) = self.lock.lock().take() else {
            return;
        };
        if matches!(self.context.options.durability, Durability::Interval(_)) {
            for shard in &self.shards {
                if let Err(error) = shard.sync() {
                    tracing::error!(%error, "the log was not synced at the end");
                }
            }
        }
        self.shards.iter().for_each(Shard::note_extent);
        // From here on, the directory may belong to another process.
        self.context.files.pool().close();
        drop(lock);
    }

    pub(super) fn status(&self) -> EngineStatus {
        EngineStatus {
            databases: self.schemas.databases().len(),
            tables: self.schemas.all().len(),
            recovery_ms: self.recovery_ms,
            recovery_wal_bytes: self.recovered.wal_bytes,
            recovery_rows: self.recovered.rows,
            ..crate::status::status(&self.context, &self.shards)
        }
    }
}
