//! How a database is opened: every setting of engine and queries, with defaults that fit the
//! machine, and with the same names in Rust, in a configuration file and on the command line.

use crate::descriptors::Descriptors;
use crate::error::{Error, Result};
use crate::machine;
use crate::units::{ByteSize, Span};
use marigram_engine::{CompactionPolicy, EngineOptions};
use marigram_segment::SegmentOptions;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// When an acknowledged write is safe from power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Before it is acknowledged.
    #[default]
    Fsync,
    /// Within [`OpenOptions::sync_interval`] after it is acknowledged.
    Interval,
    /// Whenever the operating system writes it. It survives a crash of the process, but not of the
    /// machine.
    Os,
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "fsync" => Ok(Self::Fsync),
            "interval" => Ok(Self::Interval),
            "os" => Ok(Self::Os),
            other => Err(format!(
                "'{other}' is not a durability: use fsync, interval or os"
            )),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fsync => "fsync",
            Self::Interval => "interval",
            Self::Os => "os",
        })
    }
}

/// Which kind of compaction has priority if several are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compaction {
    /// All kinds equally, in turn.
    #[default]
    Balance,
    /// First compactions among segments in order and among late ones, then those that move late
    /// segments where they belong: writes least.
    InnerCross,
    /// First compactions that move late segments where they belong: late rows cost reads least, and
    /// compaction writes most.
    CrossInner,
}

impl Compaction {
    fn policy(self) -> CompactionPolicy {
        match self {
            Self::Balance => CompactionPolicy::Balance,
            Self::InnerCross => CompactionPolicy::InnerCross,
            Self::CrossInner => CompactionPolicy::CrossInner,
        }
    }
}

impl FromStr for Compaction {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let all = [Self::Balance, Self::InnerCross, Self::CrossInner];
        let named = |policy: &Self| policy.policy().name() == text;
        all.into_iter().find(named).ok_or_else(|| {
            format!("'{text}' is not a policy: use balance, inner_cross or cross_inner")
        })
    }
}

impl fmt::Display for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy().name())
    }
}

/// Settings of an open database. `OpenOptions::default()` fits the machine; change what you need
/// and call [`open`](Self::open).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Shards of a new data directory (an existing one keeps its number). Default: one per core,
    /// and at most one per 32 MiB of the memory limit.
    pub shards: Option<usize>,
    /// When an acknowledged write is safe from power loss. Default: before it is acknowledged.
    pub durability: Option<Durability>,
    /// Longest time without a sync under [`Durability::Interval`]. Default 1 s.
    pub sync_interval: Option<Span>,
    /// Ceiling over memtables, caches, indexes, queries and compaction together. Default: half of
    /// the machine's (or container's) memory.
    pub memory_limit: Option<ByteSize>,
    /// A shard's memtable is flushed to a segment at this size. Default: an eighth of the memory
    /// limit divided among the shards, between 4 MiB and 64 MiB; at a quarter of that size if the
    /// shard's series have 512 rows in the memtable on average.
    pub flush_size: Option<ByteSize>,
    /// A memtable older than this is flushed to a segment. Default 10 min; 0 means never by age.
    pub flush_age: Option<Span>,
    /// Threads for flush, compaction and retention. Default: one per two cores.
    pub background_threads: Option<usize>,
    /// Which kind of compaction has priority. Default: all in turn.
    pub compaction: Option<Compaction>,
    /// Bytes per second that background compaction may read and write. Default: no limit; 0 means
    /// the same.
    pub compaction_rate: Option<ByteSize>,
    /// How long a file that nothing names waits in the folder `trash` before it is removed; 0
    /// removes it at once. Default 1 day.
    pub trash_retention: Option<Span>,
    /// Threads that answer queries. Default: one per core, and at most one per 32 MiB of the memory
    /// limit.
    pub query_threads: Option<usize>,
    /// Segment files kept open at once. Default: what the limit on open files leaves.
    pub open_files: Option<usize>,
    /// Rows of a row group of a segment. Default 1,048,576.
    pub row_group_rows: Option<usize>,
    /// Whether the memory limit covers the whole process, as in a server: other memory of the
    /// process then counts against it. Default: only the database.
    pub whole_process: Option<bool>,
    /// Directory under which `COPY … TO 'file'` and `COPY … FROM 'file'` may write and read.
    /// Default: none, and COPY touches no files.
    pub copy_dir: Option<PathBuf>,
    /// Whether statements may read and write any file that this process may. For programs that run
    /// only their own statements; never for a server. Default: no.
    #[serde(skip)]
    pub any_file: bool,
}

const MEMORY_WHERE_UNKNOWN: usize = 2 << 30;
const MEMORY_LIMIT_MIN: usize = 32 << 20;
/// Least memory of the limit for each shard and each query thread, on a machine with many cores and
/// little memory.
const SHARD_BYTES: usize = 32 << 20;
const THREAD_BYTES: usize = 32 << 20;
/// Memory of the limit for each thread that may wait, and the most such threads.
const WAITING_BYTES: usize = 8 << 20;
const WAITING_MAX: usize = 512;

impl OpenOptions {
    /// Sets [`shards`](Self::shards).
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Sets [`durability`](Self::durability).
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets [`memory_limit`](Self::memory_limit), bytes.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = Some(ByteSize(bytes));
        self
    }

    /// Sets [`flush_size`](Self::flush_size), bytes.
    #[must_use]
    pub fn flush_size(mut self, bytes: usize) -> Self {
        self.flush_size = Some(ByteSize(bytes));
        self
    }

    /// Sets [`background_threads`](Self::background_threads).
    #[must_use]
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = Some(threads);
        self
    }

    /// Sets [`query_threads`](Self::query_threads).
    #[must_use]
    pub fn query_threads(mut self, threads: usize) -> Self {
        self.query_threads = Some(threads);
        self
    }

    /// Sets [`whole_process`](Self::whole_process).
    #[must_use]
    pub fn whole_process(mut self, whole: bool) -> Self {
        self.whole_process = Some(whole);
        self
    }

    /// Sets [`copy_dir`](Self::copy_dir).
    #[must_use]
    pub fn copy_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.copy_dir = Some(dir.into());
        self
    }

    /// Sets [`any_file`](Self::any_file).
    #[must_use]
    pub fn any_file(mut self, allowed: bool) -> Self {
        self.any_file = allowed;
        self
    }

    /// These settings, and those of `other` for the ones that are not set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            shards: self.shards.or(other.shards),
            durability: self.durability.or(other.durability),
            sync_interval: self.sync_interval.or(other.sync_interval),
            memory_limit: self.memory_limit.or(other.memory_limit),
            flush_size: self.flush_size.or(other.flush_size),
            flush_age: self.flush_age.or(other.flush_age),
            background_threads: self.background_threads.or(other.background_threads),
            compaction: self.compaction.or(other.compaction),
            compaction_rate: self.compaction_rate.or(other.compaction_rate),
            trash_retention: self.trash_retention.or(other.trash_retention),
            query_threads: self.query_threads.or(other.query_threads),
            open_files: self.open_files.or(other.open_files),
            row_group_rows: self.row_group_rows.or(other.row_group_rows),
            whole_process: self.whole_process.or(other.whole_process),
            copy_dir: self.copy_dir.or(other.copy_dir),
            any_file: self.any_file || other.any_file,
        }
    }

    pub(crate) fn threads_for_queries(&self) -> Result<usize> {
        let fitting = || affordable(machine::cores(), self.limit_bytes(), THREAD_BYTES);
        at_least_one("query_threads", self.query_threads.unwrap_or_else(fitting))
    }

    /// Threads of one pool that may do blocking work at the same time: their stacks are memory,
    /// too. Servers use it to limit their own pool.
    #[must_use]
    pub fn threads_for_waiting(&self) -> usize {
        affordable(WAITING_MAX, self.limit_bytes(), WAITING_BYTES)
    }

    /// The memory limit in bytes, from the setting or from the machine.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        let by_machine =
            || (machine::memory_bytes().unwrap_or(MEMORY_WHERE_UNKNOWN) / 2).max(MEMORY_LIMIT_MIN);
        self.memory_limit.map_or_else(by_machine, |size| size.0)
    }

    /// The engine's settings with all defaults filled in.
    pub(crate) fn engine(&self) -> Result<EngineOptions> {
        let cores = machine::cores();
        let memory_limit_bytes = self.limit_bytes();
        let fitting = || affordable(cores, memory_limit_bytes, SHARD_BYTES);
        let shards = at_least_one("shards", self.shards.unwrap_or_else(fitting))?;
        if shards > 1024 {
            return Err(Error::Option(format!("shards = {shards}: at most 1024")));
        }
        if memory_limit_bytes < MEMORY_LIMIT_MIN {
            let (given, least) = (ByteSize(memory_limit_bytes), ByteSize(MEMORY_LIMIT_MIN));
            return Err(Error::Option(format!(
                "memory_limit = {given}: at least {least}"
            )));
        }
        let flush_bytes_max = self.flush_size.map_or_else(
            || (memory_limit_bytes / 8 / shards).clamp(4 << 20, 64 << 20),
            |size| size.0,
        );
        let interval = self
            .sync_interval
            .map_or(Duration::from_secs(1), |span| span.0);
        let flush_age = self
            .flush_age
            .map_or(Duration::from_mins(10), |span| span.0);
        let segment = SegmentOptions::default();
        Ok(EngineOptions {
            shards,
            durability: match self.durability.unwrap_or_default() {
                Durability::Fsync => marigram_engine::Durability::Fsync,
                Durability::Interval => marigram_engine::Durability::Interval(interval),
                Durability::Os => marigram_engine::Durability::Os,
            },
            memory_limit_bytes,
            flush_bytes_max: at_least_one("flush_size", flush_bytes_max)?,
            flush_age_max: (!flush_age.is_zero()).then_some(flush_age),
            background_threads: self.background_threads.unwrap_or(cores.div_ceil(2)),
            compaction: self.compaction.unwrap_or_default().policy(),
            compaction_bytes_per_second: self
                .compaction_rate
                .filter(|rate| rate.0 > 0)
                .map(|rate| rate.0 as u64),
            trash_retention: self
                .trash_retention
                .map_or(Duration::from_hours(24), |span| span.0),
            open_files_max: at_least_one(
                "open_files",
                self.open_files
                    .unwrap_or_else(|| Descriptors::of_process(Some(shards), 0).segments),
            )?,
            segment: SegmentOptions {
                row_group_rows: at_least_one(
                    "row_group_rows",
                    self.row_group_rows.unwrap_or(segment.row_group_rows),
                )?,
            },
        })
    }
}

/// At most `wanted`, each of which takes `each` bytes of the limit, and at least one.
fn affordable(wanted: usize, limit_bytes: usize, each: usize) -> usize {
    wanted.min(limit_bytes / each).max(1)
}

fn at_least_one(name: &str, number: usize) -> Result<usize> {
    if number == 0 {
        return Err(Error::Option(format!("{name} = 0: at least 1")));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_file_sets_what_it_names() {
        let text = "durability = 'interval'\nsync_interval = '200ms'\nmemory_limit = '512MB'\n";
        let options: OpenOptions = toml::from_str(text).unwrap();
        let engine = options.engine().unwrap();
        let interval = marigram_engine::Durability::Interval(Duration::from_millis(200));
        assert_eq!(engine.durability, interval);
        assert_eq!(engine.memory_limit_bytes, 512_000_000);
        assert!(engine.shards >= 1);
    }

    #[test]
    fn compaction_is_set_by_name_and_rate() {
        let text = "compaction = 'cross_inner'\ncompaction_rate = '20MB'\n";
        let options: OpenOptions = toml::from_str(text).unwrap();
        let engine = options.engine().unwrap();
        assert_eq!(engine.compaction, CompactionPolicy::CrossInner);
        assert_eq!(engine.compaction_bytes_per_second, Some(20_000_000));
        let unset = OpenOptions::default().engine().unwrap();
        assert_eq!(unset.compaction, CompactionPolicy::Balance);
        assert_eq!(unset.compaction_bytes_per_second, None);
        for policy in CompactionPolicy::ALL {
            let named: Compaction = policy.name().parse().unwrap();
            assert_eq!(named.policy(), policy);
            assert_eq!(named.to_string(), policy.name());
        }
        let error = "none".parse::<Compaction>().unwrap_err();
        assert!(error.contains("inner_cross"), "{error}");
    }

    #[test]
    fn unknown_keys_and_impossible_values_are_named() {
        let unknown = toml::from_str::<OpenOptions>("memory = '1GB'")
            .unwrap_err()
            .to_string();
        assert!(unknown.contains("memory"), "{unknown}");
        assert!(toml::from_str::<OpenOptions>("durability = 'often'").is_err());
        let tiny = OpenOptions::default()
            .memory_limit(1000)
            .engine()
            .unwrap_err();
        assert!(tiny.to_string().contains("memory_limit"), "{tiny}");
        assert!(OpenOptions::default().shards(0).engine().is_err());
    }

    #[test]
    fn little_memory_means_few_threads_and_shards() {
        assert_eq!(affordable(64, 128 << 20, SHARD_BYTES), 4);
        assert_eq!(affordable(2, 1 << 30, SHARD_BYTES), 2);
        assert_eq!(affordable(64, 1 << 20, SHARD_BYTES), 1);
        let small = OpenOptions::default().memory_limit(40 << 20);
        assert_eq!(small.engine().unwrap().shards, 1);
        assert_eq!(small.threads_for_queries().unwrap(), 1);
        assert_eq!(small.threads_for_waiting(), 5);
        let told = small.shards(3).query_threads(5);
        assert_eq!(told.engine().unwrap().shards, 3);
        assert_eq!(told.threads_for_queries().unwrap(), 5);
    }

    #[test]
    fn the_first_settings_win() {
        let flags = OpenOptions::default().shards(3);
        let file = OpenOptions::default().shards(9).query_threads(2);
        let both = flags.or(file);
        assert_eq!((both.shards, both.query_threads), (Some(3), Some(2)));
    }
}
