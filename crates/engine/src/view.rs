//! What one query, or one compaction, sees of a shard: open segments, chunks, tombstones.
//!
//! Immutable: a change of the shard creates a new view, and files stay in place while a view holds
//! them, so that they can be reopened.

use crate::chunk::Chunk;
use crate::error::{EngineError, Result};
use crate::memory::MemoryReservation;
use crate::segment_files::{LoadedSegment, SegmentFiles};
use crate::shared_rows::SharedRows;
use marigram_env::{PooledBlob, ReadAt};
use marigram_manifest::{SegmentMeta, Tombstone};
use marigram_segment::Segment;
use std::sync::{Arc, OnceLock};

/// A segment in a version: its entry in the manifest and its file.
///
/// A damaged segment stays in the version, and every reader of it gets the error. After a disk
/// error, the disk is tried again: it may have recovered. The file exists as long as a version
/// names it.
#[derive(Debug)]
pub struct OpenSegment {
    /// Its entry in the manifest.
    pub meta: SegmentMeta,
    loaded: Arc<LoadedSegment>,
    pub(crate) shared: Arc<SharedRows>,
}

impl OpenSegment {
    /// The segment in the blob `name`, which is read when it is first asked for.
    #[must_use]
    pub fn open(files: &Arc<SegmentFiles>, name: &str, meta: SegmentMeta) -> Self {
        Self {
            loaded: files.segment(name, meta.bytes, meta.pin),
            meta,
            shared: Arc::default(),
        }
    }

    /// The same file with another entry in the manifest.
    pub(crate) fn moved(&self, meta: SegmentMeta) -> Self {
        Self {
            meta,
            loaded: Arc::clone(&self.loaded),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The segment, or why it cannot be read.
    ///
    /// # Errors
    /// If the file is not a segment or cannot be read, or there is currently no memory for its
    /// footer.
    pub fn segment(&self) -> Result<Arc<Segment>> {
        let is_new = self.loaded.damage().is_none();
        self.loaded.get().inspect_err(|error| {
            if is_new && matches!(error, EngineError::Corrupt { .. }) {
                tracing::warn!(%error, "a segment cannot be read; queries that need it fail");
            }
        })
    }

    /// The blob, whatever is in it.
    pub(crate) fn file(&self) -> Arc<dyn ReadAt> {
        self.loaded.file().clone()
    }

    /// Has the blob deleted when no version and no reader holds it any more.
    pub(crate) fn remove_when_unused(&self) {
        self.loaded.file().delete_when_unused();
    }

    /// Memory that the segment needs while it belongs to the version, bytes: here and in the
    /// manifest's state.
    pub(crate) fn meta_bytes(&self) -> usize {
        let meta = size_of::<SegmentMeta>() + size_of_val(&*self.meta.tables);
        2 * meta
            + size_of::<Self>()
            + size_of::<LoadedSegment>()
            + size_of::<PooledBlob>()
            + self.loaded.file().name().len()
    }
}

/// What one query sees of one shard: immutable.
///
/// Which of two sources with the same (series, time) is newer: unsequence is newer than sequence;
/// within a space, the higher `sequence_max` is newer. A tombstone applies to the sources whose
/// `sequence_max` is lower than its `sequence`.
#[derive(Clone, Debug)]
pub struct ShardView {
    /// Number of the shard.
    pub shard: usize,
    /// Highest WAL sequence that is visible.
    pub sequence: u64,
    /// Segments with rows of the table.
    pub segments: Vec<Arc<OpenSegment>>,
    /// All memtables' chunks of the table, oldest first, both spaces.
    pub chunks: Vec<Arc<Chunk>>,
    /// Tombstones of the table.
    pub tombstones: Vec<Arc<Tombstone>>,
    /// Keeps the memory of the chunks' memtables counted while the view holds the chunks.
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate) reservations: Vec<Arc<OnceLock<MemoryReservation>>>,
}
