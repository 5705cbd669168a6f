//! The folder for files that nothing names any more.
//!
//! Files left over from an interrupted flush or compaction are garbage, provided that the manifest
//! is the right one. This is proved before anything is moved; and still, nothing is removed at
//! once. A file waits in the folder `trash` of the data directory, under a name that contains its
//! arrival time, its shard and its original name. It is removed when its time has passed, when the
//! folder would grow too large, or when the disk is full.

use marigram_env::Env;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The folder's name.
const FOLDER: &str = "trash";
/// Most bytes that wait.
const BYTES_MAX: u64 = 1 << 30;
/// How often the background threads check it.
const PURGE_EVERY: Duration = Duration::from_mins(5);

/// The trash of a data directory.
#[derive(Debug)]
pub(crate) struct TrashFolder {
    dir: PathBuf,
    retention: Duration,
    /// Held while the folder is checked.
    alone: Mutex<()>,
    /// When it was last checked for files that have waited long enough, monotonic ns.
    purged_ns: AtomicU64,
}

/// A file in the trash.
struct TrashEntry {
    path: PathBuf,
    moved_ns: i64,
    bytes: u64,
}

impl TrashFolder {
    /// The trash of the data directory `dir`.
    pub fn new(dir: &Path, retention: Duration) -> Self {
        Self {
            dir: dir.join(FOLDER),
            retention,
            alone: Mutex::new(()),
            purged_ns: AtomicU64::new(0),
        }
    }

    /// Moves a file of a shard, which nothing names, to the trash.
    pub fn take(&self, env: &Env, shard: usize, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if self.retention.is_zero() {
            tracing::info!(path = %path.display(), "removing a file that nothing names");
            return env.fs.remove(path);
        }
        let _alone = self.alone.lock();
        env.fs.create_dir_all(&self.dir)?;
        let moved_ns = env.clock.now_ns().max(0);
        let to = self.dir.join(format!("{moved_ns:019}-{shard:04}-{name}"));
        tracing::info!(path = %path.display(), to = %to.display(), "moving a file that nothing names");
        env.fs.rename(path, &to)
    }

    /// Calls [`purge`](Self::purge) if the last time was some minutes ago.
    pub fn purge_if_due(&self, env: &Env) {
        let now_ns = env.clock.monotonic_ns();
        let purged_ns = self.purged_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(purged_ns) >= PURGE_EVERY.as_nanos() as u64 {
            self.purged_ns.store(now_ns, Ordering::Relaxed);
            self.purge(env);
        }
    }

    /// Removes files that have waited long enough, and the oldest ones if the total is too large.
    pub fn purge(&self, env: &Env) {
        let retention_ns = i64::try_from(self.retention.as_nanos()).unwrap_or(i64::MAX);
        let until_ns = env.clock.now_ns().saturating_sub(retention_ns);
        self.remove_where(env, |entry, bytes| {
            entry.moved_ns <= until_ns || bytes > BYTES_MAX
        });
    }

    /// Removes everything; returns whether there was anything. For a full disk.
    pub fn empty(&self, env: &Env) -> bool {
        self.remove_where(env, |_, _| true) > 0
    }

    /// Removes the files for which `wanted` returns true, oldest first; `wanted` gets the bytes of
    /// the file and all newer ones.
    fn remove_where(&self, env: &Env, wanted: impl Fn(&TrashEntry, u64) -> bool) -> usize {
        let _alone = self.alone.lock();
        let entries = match self.entries(env) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(path = %self.dir.display(), %error, "the trash cannot be read");
                return 0;
            }
        };
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut removed = 0;
        for entry in entries {
            if wanted(&entry, bytes) {
                match env.fs.remove(&entry.path) {
                    Ok(()) => removed += 1,
                    Err(error) => {
                        tracing::warn!(path = %entry.path.display(), %error, "cannot remove a file from the trash");
                    }
                }
            }
            bytes -= entry.bytes;
        }
        removed
    }

    /// Its files, oldest first, without those that someone else has put there.
    fn entries(&self, env: &Env) -> io::Result<Vec<TrashEntry>> {
        if !env.fs.exists(&self.dir)? {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        // Times always have the same number of digits, so sorting names sorts by time.
        for name in env.fs.list(&self.dir)? {
            let Some(moved_ns) = name.split_once('-').and_then(|(time, _)| time.parse().ok())
            else {
                continue;
            };
            let path = self.dir.join(name);
            let bytes = env.fs.open(&path)?.len()?;
            entries.push(TrashEntry {
                path,
                moved_ns,
                bytes,
            });
        }
        Ok(entries)
    }
}
