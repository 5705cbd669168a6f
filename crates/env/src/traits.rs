//! The traits through which everything above reaches disk and clock.
//!
//! They promise only what a careful reading of POSIX gives: contents are durable after
//! [`File::sync`], names after [`FileSystem::sync_dir`] of their directory, and nothing else is.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A file. Positions are bytes from its start.
pub trait File: Debug + Send + Sync {
    /// Length, bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`; `UnexpectedEof` where the file ends earlier.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes at the end. After an error an unknown part of `bytes` may stand there.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Contents and length survive power loss from here on (fdatasync). After an error nothing is
    /// known about the bytes written since the last sync, and a later sync does not change that.
    fn sync(&self) -> io::Result<()>;

    /// Says that from here on the file is mostly read in small parts, here and there, so that little
    /// besides should be read from the disk; what is read in order may be read ahead all the same.
    /// Nothing that is read depends on it.
    fn advise_random_access(&self) {}

    /// Cuts the file to `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Takes room on the disk for the bytes in `range`, so that appends as far as its end do not
    /// find the disk full. The length of the file stays. Where the file system cannot promise that,
    /// it does nothing. What was taken is given back by [`truncate`](Self::truncate) and when the
    /// file is removed.
    fn reserve(&self, range: Range<u64>) -> io::Result<()>;
}

/// The part of a file system that Marigram needs. A new, renamed or removed name survives power
/// loss only after `sync_dir` of its directory.
pub trait FileSystem: Debug + Send + Sync {
    /// Makes a directory and those above it; one that exists is left as it is.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// New and empty (an existing file is truncated), for reading and appending.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Existing, for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Names (not paths) in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Names in a directory with the lengths of the files that they name, bytes, sorted; 0 for what
    /// is no file.
    fn list_lengths(&self, dir: &Path) -> io::Result<Vec<(String, u64)>>;

    /// Whether there is a file or directory of this path.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Gives a file a new name in the same file system. Replaces `to` atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Those who have it open can go on reading.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Removes a directory with everything in it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// The names in the directory, as they are now, survive power loss.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Exclusive lock held until dropped; `WouldBlock` where another process (or holder) has it.
    /// The file is created where it is missing.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
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
