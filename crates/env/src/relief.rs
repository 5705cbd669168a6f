//! Relief for a system that is short of file descriptors.

use crate::blob_pool::BlobPool;
use crate::shortage::is_out_of_files;
use crate::traits::{File, Lock, LogStore};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file system that retries what the system refused for lack of descriptors, after it has closed
/// blobs of a pool: whatever needs a descriptor comes before blobs that are open only because they
/// were read once.
#[derive(Debug)]
pub struct ReliefFs {
    fs: Arc<dyn LogStore>,
    pool: Arc<BlobPool>,
}

impl ReliefFs {
    /// Around `fs`, with the pool whose blobs it closes.
    #[must_use]
    pub fn new(fs: Arc<dyn LogStore>, pool: Arc<BlobPool>) -> Self {
        Self { fs, pool }
    }

    fn retry<T>(&self, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
        loop {
            match attempt() {
                Err(error) if is_out_of_files(&error) && self.pool.release() => {}
                outcome => return outcome,
            }
        }
    }
}

impl LogStore for ReliefFs {
    fn is_of_machine(&self) -> bool {
        self.fs.is_of_machine()
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.fs.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.retry(|| self.fs.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.retry(|| self.fs.open(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.retry(|| self.fs.list(dir))
    }

    fn list_lengths(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.retry(|| self.fs.list_lengths(dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.fs.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fs.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.fs.rename_new(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.fs.remove(file)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.retry(|| self.fs.remove_dir_all(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.retry(|| self.fs.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.retry(|| self.fs.lock(path))
    }
}
