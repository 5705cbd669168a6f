//! The traits through which everything above reaches logs, files and the clock. Immutable blobs
//! have a trait of their own, [`BlobStore`](crate::BlobStore).
//!
//! They promise only what a careful reading of POSIX gives: contents are durable after
//! [`File::sync`], names after [`LogStore::sync_dir`] of their directory, and nothing else is.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes that can be read from any position: an open file, or a blob. Positions are bytes from the
/// start.
pub trait ReadAt: Debug + Send + Sync {
    /// Length, bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether there are no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`; `UnexpectedEof` if the bytes end earlier.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Announces that most reads from here on are small and scattered, so that the system reads
    /// little else from the disk. Sequential reads may still be read ahead. Results do not depend on
    /// it.
    fn advise_random_access(&self) {}
}

/// An open file under append.
pub trait File: ReadAt {
    /// Writes at the end. After an error an unknown part of `bytes` may stand there.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes contents and length durable (fdatasync). After an error nothing is known about the
    /// bytes written since the last sync, and a later sync does not change that.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file to `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Allocates disk space for the bytes in `range`, so that appends up to its end do not find the
    /// disk full. The length of the file stays. On a file system without this feature, nothing
    /// happens. [`truncate`](Self::truncate) and the removal of the file release the space.
    fn reserve(&self, range: Range<u64>) -> io::Result<()>;
}

/// What a log needs: files that are appended to, synced, truncated, locked and renamed on a local
/// file system. A new, renamed or removed name is durable only after `sync_dir` of its directory.
pub trait LogStore: Debug + Send + Sync {
    /// Creates a directory and its ancestors; one that exists stays as it is.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file (truncates an existing one) for reading and appending.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Names (not paths) in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Names in a directory with the lengths of the files, bytes, sorted; 0 for anything but a file.
    fn list_lengths(&self, dir: &Path) -> io::Result<Vec<(String, u64)>>;

    /// Whether there is a file or directory of this path.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Renames a file within the file system. Replaces `to` atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file within its directory, atomically; `AlreadyExists` if `to` exists.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Those who have it open can go on reading.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Removes a directory with everything in it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Makes the present names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes an exclusive lock, held until dropped; `WouldBlock` if another process or holder has
    /// it. Creates the file if it is missing.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// Whether paths are those of the machine, so that others find the same files there.
    fn is_of_machine(&self) -> bool {
        false
    }
}

/// A held lock.
pub trait Lock: Debug + Send + Sync {}

/// Time.
pub trait Clock: Debug + Send + Sync {
    /// ns since the Unix epoch, UTC; may jump.
    fn now_ns(&self) -> i64;

    /// ns since some fixed moment; never goes back.
    fn monotonic_ns(&self) -> u64;
}
