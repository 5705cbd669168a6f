//! What one query, or one compaction, sees of a shard: open segments, chunks, tombstones.
//!
//! Immutable: a change of the shard makes a new view, and files stay open while a view holds them.

use crate::chunk::Chunk;
use crate::error::{EngineError, Result};
use crate::memory::Held;
use crate::shared_rows::SharedRows;
use marigram_env::FileSystem;
use marigram_manifest::{SegmentMeta, Tombstone};
use marigram_segment::Segment;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A segment of a version: its entry in the manifest and the open file.
///
/// A damaged segment stays in the version, and whoever touches it gets the error. A disk that
/// refused is asked again: it may be well by then.
#[derive(Debug)]
pub struct OpenSegment {
    /// Its entry in the manifest.
    pub meta: SegmentMeta,
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    segment: OnceLock<Arc<Segment>>,
    /// Why the file is no segment, once that is known.
    damage: OnceLock<EngineError>,
    pub(crate) shared: Arc<SharedRows>,
}

impl OpenSegment {
    /// The segment in the file at `path`. An error is told by [`segment`](Self::segment).
    #[must_use]
    pub fn open(fs: Arc<dyn FileSystem>, path: PathBuf, meta: SegmentMeta) -> Self {
        let (segment, damage) = (OnceLock::new(), OnceLock::new());
        let open = Self {
            meta,
            fs,
            path,
            segment,
            damage,
            shared: Arc::default(),
        };
        if let Err(error) = open.segment() {
            tracing::warn!(%error, "a segment cannot be read; queries that need it will fail");
        }
        open
    }

    /// The same file under another entry of the manifest.
    pub(crate) fn moved(&self, meta: SegmentMeta) -> Self {
        let damage = OnceLock::new();
        if let Some(error) = self.damage.get() {
            damage.get_or_init(|| error.again());
        }
        Self {
            meta,
            fs: Arc::clone(&self.fs),
            path: self.path.clone(),
            segment: self.segment.clone(),
            damage,
            shared: Arc::clone(&self.shared),
        }
    }

    /// The open file, or why it cannot be opened.
    pub fn segment(&self) -> Result<&Arc<Segment>> {
        if let Some(segment) = self.segment.get() {
            return Ok(segment);
        }
        if let Some(damage) = self.damage.get() {
            return Err(damage.again());
        }
        let opened = Segment::open(&self.fs, &self.path).and_then(|segment| {
            segment.check_pin(self.meta.bytes, self.meta.pin)?;
            Ok(segment)
        });
        match opened {
            Ok(segment) => Ok(self.segment.get_or_init(|| Arc::new(segment))),
            Err(error) => {
                let error = EngineError::from(error);
                if matches!(error, EngineError::Corrupt { .. }) {
                    self.damage.get_or_init(|| error.again());
                }
                Err(error)
            }
        }
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
    /// Keeps the memory of the chunks' memtables counted while the view holds the chunks.
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate) kept: Vec<Arc<OnceLock<Held>>>,
}
