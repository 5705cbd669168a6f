//! Settings of an engine, fixed while it is open.

use std::time::Duration;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After an fsync: it survives power loss.
    Fsync,
    /// After the write to the log; an fsync follows in the background at this interval. It
    /// survives the end of the process, and power loss once the interval has passed.
    Interval(Duration),
    /// After the write to the log; the operating system writes it to the disk when it likes.
    Os,
}

/// Which kind of compaction goes first where several are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompactionPolicy {
    /// All kinds alike, in turn (`balance`).
    #[default]
    Balance,
    /// Sequence with sequence and unsequence with unsequence before anything across
    /// (`inner_cross`): least is written, and late rows wait longest for their place.
    InnerCross,
    /// Unsequence into sequence before anything else (`cross_inner`): late rows come to their
    /// place soonest, and most is written.
    CrossInner,
}

impl CompactionPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Balance, Self::InnerCross, Self::CrossInner];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Balance => "balance",
            Self::InnerCross => "inner_cross",
            Self::CrossInner => "cross_inner",
        }
    }
}

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Shards of a new data directory; an existing one keeps its number.
    pub shards: usize,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// The ceiling over everything the engine and its queries hold, bytes.
    pub memory_limit_bytes: usize,
    /// A shard's memtable is flushed at this size, bytes; at a quarter of it where it has 512 rows of
    /// each series by then.
    pub flush_bytes_max: usize,
    /// A memtable is flushed at this age (`None`: never by age).
    pub flush_age_max: Option<Duration>,
    /// Threads for flush, compaction and retention. 0: none; the owner calls
    /// [`Engine::maintain`](crate::Engine::maintain).
    pub background_threads: usize,
    /// Which kind of compaction goes first.
    pub compaction: CompactionPolicy,
    /// What compaction in the background may read and write together, bytes a second (`None`: as
    /// much as it can). Compaction that was asked for is not held back.
    pub compaction_bytes_per_second: Option<u64>,
    /// How long a file that nothing names waits in the folder `trash` before it is removed; zero: not
    /// at all.
    pub trash_retention: Duration,
    /// Files of segments that are kept open at once, of however many there are. Threads that read
    /// add one each for a moment; logs, manifests and backups come on top.
    pub open_files_max: usize,
    /// Settings of new segments.
    pub segment: marigram_segment::SegmentOptions,
}

impl Default for EngineOptions {
    /// For an embedded engine on a small machine: fsync, 512 MiB, flush at 64 MiB or 10 minutes.
    fn default() -> Self {
        Self {
            shards: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            durability: Durability::Fsync,
            memory_limit_bytes: 512 << 20,
            flush_bytes_max: 64 << 20,
            flush_age_max: Some(Duration::from_mins(10)),
            background_threads: 2,
            compaction: CompactionPolicy::default(),
            compaction_bytes_per_second: None,
            trash_retention: Duration::from_hours(24),
            open_files_max: 512,
            segment: marigram_segment::SegmentOptions::default(),
        }
    }
}
