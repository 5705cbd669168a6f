//! Settings of an engine, fixed while it is open.

use std::time::Duration;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After an fsync: it survives power loss.
    Fsync,
    /// After the write to the log; an fsync follows in the background at this interval. It survives
    /// the end of the process, and a power loss once the interval has passed.
    Interval(Duration),
    /// After the write to the log; the operating system writes it to the disk at some later time.
    Os,
}

/// Which kind of compaction has priority if several are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompactionPolicy {
    /// All kinds equally, in turn (`balance`).
    #[default]
    Balance,
    /// Compactions within the sequence and within the unsequence space before those across
    /// (`inner_cross`): writes least, and late rows wait longest for their place.
    InnerCross,
    /// Compactions from the unsequence into the sequence space first (`cross_inner`): late rows
    /// reach their place soonest, and compaction writes most.
    CrossInner,
}

impl CompactionPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Balance, Self::InnerCross, Self::CrossInner];

    /// Name in settings.
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
    /// The ceiling over everything that the engine and its queries hold, bytes.
    pub memory_limit_bytes: usize,
    /// A shard's memtable is flushed at this size, bytes; at a quarter of it if it then has 512
    /// rows of each series on average.
    pub flush_bytes_max: usize,
    /// A memtable is flushed at this age (`None` disables this).
    pub flush_age_max: Option<Duration>,
    /// Threads for flush, compaction and retention. With 0, the owner must call
    /// [`Engine::maintain`](crate::Engine::maintain).
    pub background_threads: usize,
    /// Which kind of compaction has priority.
    pub compaction: CompactionPolicy,
    /// Bytes per second that background compaction may read and write in total (`None` for no
    /// limit). Compaction on demand is not limited.
    pub compaction_bytes_per_second: Option<u64>,
    /// How long a file that nothing names waits in the folder `trash` before it is removed; zero
    /// removes it at once.
    pub trash_retention: Duration,
    /// Segment files that are kept open at once, however many there are. Threads that read may
    /// briefly add one each; logs, manifests and backups need further descriptors.
    pub open_files_max: usize,
    /// Settings of new segments.
    pub segment: marigram_segment::SegmentOptions,
}

impl Default for EngineOptions {
    /// Suits an embedded engine on a small machine: fsync, 512 MiB, flush at 64 MiB or 10 minutes.
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
