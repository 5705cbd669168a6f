//! The files of segments and their cached content, both bounded, however many segments there are.
//!
//! A segment is a blob of a [`BlobPool`]: it is opened when something of it is read. Its footer is
//! read when a query, a compaction or recovery first needs it, and stays in memory with the
//! directories and page indexes that were read since, until others need the room: a part of the
//! memory ceiling is for all of them together, and what nobody holds and nobody has used lately goes
//! first (the clock algorithm).
//!
//! Invariant: the accountant counts what is in memory, and only what nothing holds is evicted, so
//! that nothing uncounted grows.

use crate::error::{EngineError, Result};
use crate::memory::{Holder, MemoryAccountant};
use marigram_env::{BlobPool, BlobStore, PooledBlob, ReadAt};
use marigram_segment::Segment;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Footers and indexes that nothing holds may keep one of this many parts of the memory ceiling.
const MEMORY_PART: usize = 8;
/// How far the hand moves at most for one segment that is read: a query may hold all of them.
const STEPS: usize = 16;
/// When a query that found no memory for footers may retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// State that the segments of an engine share.
#[derive(Debug)]
pub struct SegmentFiles {
    pool: Arc<BlobPool>,
    memory: Arc<MemoryAccountant>,
    ring: Mutex<LoadedRing>,
}

#[derive(Debug, Default)]
struct LoadedRing {
    loaded: Vec<Weak<LoadedSegment>>,
    hand: usize,
    /// Their total size in bytes, at the last count.
    bytes: usize,
}

/// A segment's file, and its footer and indexes while they are in memory.
#[derive(Debug)]
pub(crate) struct LoadedSegment {
    files: Arc<SegmentFiles>,
    file: Arc<PooledBlob>,
    /// Length in bytes and pin that the manifest names.
    named: (u64, Option<u32>),
    segment: RwLock<Option<Arc<Segment>>>,
    /// Whether it was used since the hand last passed.
    is_used: AtomicBool,
    counted: AtomicUsize,
    /// Why the file is not a valid segment, once that is known.
    damage: OnceLock<EngineError>,
}

impl SegmentFiles {
    /// Blobs of `store`, of which `open_files_max` are kept open; memory is taken from `memory`.
    #[must_use]
    pub fn new(
        store: Arc<dyn BlobStore>,
        open_files_max: usize,
        memory: Arc<MemoryAccountant>,
    ) -> Arc<Self> {
        Self::with_pool(BlobPool::new(store, open_files_max), memory)
    }

    /// Blobs of a pool.
    pub(crate) fn with_pool(pool: Arc<BlobPool>, memory: Arc<MemoryAccountant>) -> Arc<Self> {
        let ring = Mutex::default();
        Arc::new(Self { pool, memory, ring })
    }

    /// The pool.
    pub(crate) fn pool(&self) -> &Arc<BlobPool> {
        &self.pool
    }

    /// The segment in the blob `name`, of which nothing is read yet. The manifest names it with
    /// this length in bytes and this pin.
    pub(crate) fn segment(
        self: &Arc<Self>,
        name: &str,
        bytes: u64,
        pin: Option<u32>,
    ) -> Arc<LoadedSegment> {
        Arc::new(LoadedSegment {
            files: Arc::clone(self),
            file: self.pool.blob(name),
            named: (bytes, pin),
            segment: RwLock::new(None),
            is_used: AtomicBool::new(false),
            counted: AtomicUsize::new(0),
            damage: OnceLock::new(),
        })
    }

    /// Counts again what has been read of indexes since, and evicts what exceeds the limit.
    pub(crate) fn recount(&self) {
        let mut ring = self.ring.lock();
        let mut bytes = 0;
        ring.loaded.retain(|loaded| {
            let Some(loaded) = loaded.upgrade() else {
                return false;
            };
            let Some(now) = loaded.segment.read().as_ref().map(|s| s.memory_bytes()) else {
                return false;
            };
            loaded.count(now);
            bytes += now;
            true
        });
        ring.bytes = bytes;
        drop(ring);
        self.evict(self.bytes_max(), usize::MAX);
    }

    fn bytes_max(&self) -> usize {
        self.memory.limit() / MEMORY_PART
    }

    /// Evicts what nothing holds until at most `left` bytes are in memory, or the hand has moved by
    /// `steps`.
    fn evict(&self, left: usize, mut steps: usize) {
        let mut ring = self.ring.lock();
        // Twice around: the first time, what was used recently only loses its mark.
        steps = steps.min(2 * ring.loaded.len());
        let mut evicted = Vec::new();
        while ring.bytes > left && steps > 0 && !ring.loaded.is_empty() {
            steps -= 1;
            let at = ring.hand % ring.loaded.len();
            ring.hand = at + 1;
            let Some(loaded) = ring.loaded[at].upgrade() else {
                ring.loaded.swap_remove(at);
                ring.hand = at;
                continue;
            };
            if loaded.is_used.swap(false, Ordering::Relaxed) {
                continue;
            }
            if let Some((segment, bytes)) = loaded.take_unheld() {
                ring.bytes = ring.bytes.saturating_sub(bytes);
                ring.loaded.swap_remove(at);
                ring.hand = at;
                evicted.push(segment);
            }
        }
    }

    /// Reserves memory for a segment that was read and that the caller holds.
    fn admit(&self, loaded: &Arc<LoadedSegment>, bytes: usize) -> Result<()> {
        let take = || self.memory.try_grow(Holder::SegmentIndex, bytes);
        if !take() {
            self.evict(0, usize::MAX);
            if !take() {
                // Without its footer, no segment can be read: a part of the ceiling is for footers,
                // whatever else is in memory.
                if self.ring.lock().bytes + bytes > self.bytes_max() {
                    return Err(self.refusal());
                }
                self.memory.grow(Holder::SegmentIndex, bytes);
            }
        }
        loaded.counted.store(bytes, Ordering::Relaxed);
        let is_over = {
            let mut ring = self.ring.lock();
            ring.bytes += bytes;
            ring.loaded.push(Arc::downgrade(loaded));
            ring.bytes > self.bytes_max()
        };
        if is_over {
            self.evict(self.bytes_max(), STEPS);
        }
        Ok(())
    }

    fn refusal(&self) -> EngineError {
        EngineError::Busy {
            reason: format!(
                "{} of {} bytes of memory are in use, {} of them by the indexes of segments; \
                 ask for a shorter range of time",
                self.memory.used(),
                self.memory.limit(),
                self.memory.used_by(Holder::SegmentIndex),
            ),
            retry_after: RETRY_AFTER,
        }
    }
}

impl LoadedSegment {
    /// The file.
    pub(crate) fn file(&self) -> &Arc<PooledBlob> {
        &self.file
    }

    /// Why the file is not a valid segment, if that is known.
    pub(crate) fn damage(&self) -> Option<&EngineError> {
        self.damage.get()
    }

    /// The segment; its footer is read if it is not in memory.
    pub(crate) fn get(self: &Arc<Self>) -> Result<Arc<Segment>> {
        if let Some(segment) = &*self.segment.read() {
            if !self.is_used.load(Ordering::Relaxed) {
                self.is_used.store(true, Ordering::Relaxed);
            }
            return Ok(Arc::clone(segment));
        }
        if let Some(damage) = self.damage.get() {
            return Err(damage.again());
        }
        let file: Arc<dyn ReadAt> = self.file.clone();
        let (bytes, pin) = self.named;
        let read = Segment::from_file(file, &self.file.location())
            .and_then(|segment| segment.check_pin(bytes, pin).map(|()| segment));
        let segment = read.map_err(EngineError::from).inspect_err(|error| {
            if matches!(error, EngineError::Corrupt { .. }) {
                self.damage.get_or_init(|| error.again());
            }
        })?;
        self.keep(Arc::new(segment))
    }

    /// Stores a segment that was read, unless another thread was faster.
    fn keep(self: &Arc<Self>, segment: Arc<Segment>) -> Result<Arc<Segment>> {
        {
            let mut known = self.segment.write();
            if let Some(known) = &*known {
                return Ok(Arc::clone(known));
            }
            *known = Some(Arc::clone(&segment));
        }
        self.is_used.store(true, Ordering::Relaxed);
        if let Err(error) = self.files.admit(self, segment.memory_bytes()) {
            *self.segment.write() = None;
            return Err(error);
        }
        Ok(segment)
    }

    /// Removes the segment from memory if nothing holds it; returns it with its size in bytes.
    fn take_unheld(&self) -> Option<(Arc<Segment>, usize)> {
        let mut segment = self.segment.write();
        if segment.as_ref().is_none_or(|s| Arc::strong_count(s) > 1) {
            return None;
        }
        let taken = segment.take()?;
        let bytes = self.counted.load(Ordering::Relaxed);
        self.count(0);
        Some((taken, bytes))
    }

    /// Reports to the accountant that it holds this many bytes.
    fn count(&self, now: usize) {
        let memory = &self.files.memory;
        let before = self.counted.swap(now, Ordering::Relaxed);
        if now >= before {
            memory.grow(Holder::SegmentIndex, now - before);
        } else {
            memory.shrink(Holder::SegmentIndex, before - now);
        }
    }
}

impl Drop for LoadedSegment {
    fn drop(&mut self) {
        self.count(0);
    }
}
