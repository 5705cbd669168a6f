//! The folder for files that nothing names any more.
//!
//! What is left over from a flush or a compaction that was interrupted is garbage, if the manifest
//! is what it should be. It is proved to be before anything is moved; and still nothing goes at
//! once: it waits in the folder `trash` of the data directory, under a name that says when it came,
//! from which shard, and what it was called there. It goes when its time has passed, when the folder
//! would grow too large, or when the disk is full. Segments wait under the prefix `trash` of the blob
//! store, which is the same folder where blobs are files.

use marigram_env::{BlobStore, Env};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    blobs: Arc<dyn BlobStore>,
    retention: Duration,
    /// Held while the folder is checked.
    alone: Mutex<()>,
    /// When it was last checked for files that have waited long enough, monotonic ns.
    purged_ns: AtomicU64,
}

/// A file in the trash.
struct TrashEntry {
    name: String,
    is_blob: bool,
    moved_ns: i64,
    bytes: u64,
}

impl TrashFolder {
    /// The trash of the data directory `dir`, whose segments are in `blobs`.
    pub(crate) fn new(dir: &Path, blobs: Arc<dyn BlobStore>, retention: Duration) -> Self {
        Self {
            dir: dir.join(FOLDER),
            blobs,
            retention,
            alone: Mutex::new(()),
            purged_ns: AtomicU64::new(0),
        }
    }

    /// Moves a file of a shard, which nothing names, to the trash.
    pub(crate) fn take(&self, env: &Env, shard: usize, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if self.retention.is_zero() {
            tracing::info!(path = %path.display(), "removing a file that nothing names");
            return env.fs.remove(path);
        }
        let _alone = self.alone.lock();
        env.fs.create_dir_all(&self.dir)?;
        let to = self.dir.join(entry_name(env, shard, &name));
        tracing::info!(path = %path.display(), to = %to.display(), "moving a file that nothing names");
        env.fs.rename(path, &to)
    }

    /// Takes a segment of a shard away, which nothing names.
    pub(crate) fn take_segment(&self, env: &Env, shard: usize, name: &str) -> io::Result<()> {
        if self.retention.is_zero() {
            tracing::info!(name, "removing a segment that nothing names");
            return self.blobs.delete(name);
        }
        let base_name = name.rsplit('/').next().unwrap_or_default();
        let _alone = self.alone.lock();
        // Where blobs are files, this is the folder that they go into.
        env.fs.create_dir_all(&self.dir)?;
        let to = format!("{FOLDER}/{}", entry_name(env, shard, base_name));
        tracing::info!(name, to, "moving a segment that nothing names");
        self.blobs.rename(name, &to)
    }

    /// [`purge`](Self::purge), if that was some minutes ago.
    pub(crate) fn purge_if_due(&self, env: &Env) {
        let now_ns = env.clock.monotonic_ns();
        let purged_ns = self.purged_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(purged_ns) >= PURGE_EVERY.as_nanos() as u64 {
            self.purged_ns.store(now_ns, Ordering::Relaxed);
            self.purge(env);
        }
    }

    /// Removes files that have waited long enough, and the oldest ones if the total is too large.
    pub(crate) fn purge(&self, env: &Env) {
        let retention_ns = i64::try_from(self.retention.as_nanos()).unwrap_or(i64::MAX);
        let until_ns = env.clock.now_ns().saturating_sub(retention_ns);
        self.remove_where(env, |entry, bytes| {
            entry.moved_ns <= until_ns || bytes > BYTES_MAX
        });
    }

    /// Removes everything; returns whether there was anything. For a full disk.
    pub(crate) fn empty(&self, env: &Env) -> bool {
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
                match self.remove(env, &entry) {
                    Ok(()) => removed += 1,
                    Err(error) => {
                        tracing::warn!(name = entry.name, %error, "it was not removed");
                    }
                }
            }
            bytes -= entry.bytes;
        }
        removed
    }

    fn remove(&self, env: &Env, entry: &TrashEntry) -> io::Result<()> {
        if entry.is_blob {
            return self.blobs.delete(&format!("{FOLDER}/{}", entry.name));
        }
        env.fs.remove(&self.dir.join(&entry.name))
    }

    /// The files and blobs in it, oldest first; those that somebody else has put there are not among
    /// them.
    fn entries(&self, env: &Env) -> io::Result<Vec<TrashEntry>> {
        let mut found = BTreeMap::new();
        for blob in self.blobs.list(FOLDER)? {
            found.insert(blob.base_name().to_owned(), (true, blob.bytes));
        }
        if env.fs.exists(&self.dir)? {
            for (name, bytes) in env.fs.list_lengths(&self.dir)? {
                // Where blobs are files, both lists are one.
                found.insert(name, (false, bytes));
            }
        }
        // A time has always as many digits, so that names are sorted by it.
        let entries = found.into_iter().filter_map(|(name, (is_blob, bytes))| {
            let moved_ns = name.split_once('-')?.0.parse().ok()?;
            Some(TrashEntry {
                name,
                is_blob,
                moved_ns,
                bytes,
            })
        });
        Ok(entries.collect())
    }
}

/// What a file that comes now from a shard is called in the trash.
fn entry_name(env: &Env, shard: usize, base_name: &str) -> String {
    let moved_ns = env.clock.now_ns().max(0);
    format!("{moved_ns:019}-{shard:04}-{base_name}")
}
