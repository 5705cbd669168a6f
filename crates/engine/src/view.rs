//! What one query, or one compaction, sees of a shard: open segments, chunks, tombstones.
//!
//! Immutable: a change of the shard makes a new view, and files stay open while a view holds them.

use crate::chunk::Chunk;
use crate::error::{EngineError, Result};
use marigram_manifest::{SegmentMeta, Tombstone};
use marigram_segment::Segment;
use std::sync::Arc;

/// A segment of a version: its entry in the manifest and the open file.
#[derive(Debug)]
pub struct OpenSegment {
    /// Its entry in the manifest.
    pub meta: SegmentMeta,
    segment: Result<Arc<Segment>>,
}

impl OpenSegment {
    /// A segment that was opened, or the error that opening it gave: a damaged segment stays in
    /// the version, and whoever touches it gets the error.
    #[must_use]
    pub fn new(meta: SegmentMeta, segment: Result<Segment>) -> Self {
        Self {
            meta,
            segment: segment.map(Arc::new),
        }
    }

    /// The same file under another entry of the manifest.
    pub(crate) fn moved(&self, meta: SegmentMeta) -> Self {
        let segment = self
            .segment
            .as_ref()
            .map(Arc::clone)
            .map_err(EngineError::again);
        Self { meta, segment }
    }

    /// The open file, or why it could not be opened.
    pub fn segment(&self) -> Result<&Arc<Segment>> {
        self.segment.as_ref().map_err(EngineError::again)
    }
}

/// What one query sees of one shard: immutable.
///
/// Which of two sources with the same (series, time) is newer: unsequence is newer than sequence;
/// in one space the higher `sequence_max` is newer. A tombstone applies to the sources whose
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
}
