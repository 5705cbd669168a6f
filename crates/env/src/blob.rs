//! Where immutable blobs stand: segments and backups.
//!
//! A [`BlobStore`] has the shape of an object store: flat names, whole puts, streamed uploads,
//! ranged reads, lists by prefix, deletes, put-if-absent. It asks for nothing that a bucket cannot
//! do, so that a bucket can stand behind it. In production it is [`FileBlobs`](crate::FileBlobs).
//!
//! A name is a path of UTF-8 components with `/` between them, relative to the store. Directories
//! are not part of the interface.

use crate::traits::{LogStore, ReadAt};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What [`BlobStore::put`] does if the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// It replaces the blob.
    Overwrite,
    /// It fails with `AlreadyExists` and changes nothing. Of several concurrent puts one succeeds.
    Create,
}

/// A blob in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its name, prefix included.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

impl BlobMeta {
    /// The last component of its name.
    #[must_use]
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

/// Immutable blobs by name.
///
/// A blob that was put is durable when `put` returns. The names of blobs that were uploaded, renamed
/// or deleted are durable after [`sync_names`](Self::sync_names) of their prefix: one call for many
/// of them, which costs one fsync on a file system and nothing on a bucket.
pub trait BlobStore: Debug + Send + Sync {
    /// Stores a blob whole. Readers see all of it or nothing. Durable, contents and name, when it
    /// returns. After an error other than `AlreadyExists` the blob may or may not be there.
    fn put(&self, name: &str, bytes: &[u8], mode: PutMode) -> io::Result<()>;

    /// Begins a blob that is written piece by piece; replaces one that has the name. Until
    /// [`BlobUpload::finish`] returns, the name may be missing, or stand for a part of the blob.
    fn upload(&self, name: &str) -> io::Result<Box<dyn BlobUpload>>;

    /// Opens a blob for reading; `NotFound` if there is none. The handle may hold a file descriptor.
    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>>;

    /// The length of a blob, bytes; `None` if there is none.
    fn head(&self, name: &str) -> io::Result<Option<u64>>;

    /// Blobs whose names are `prefix`, `/` and one more component, ascending by name. Names that end
    /// in [`UNFINISHED`] may be among them: remains of interrupted puts, which the owner of the
    /// prefix deletes.
    fn list(&self, prefix: &str) -> io::Result<Vec<BlobMeta>>;

    /// Gives a blob another name; replaces one that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Deletes a blob. Handles that are open may go on reading, or fail. `NotFound`, or nothing, if
    /// there is none.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes the present names below `prefix` durable.
    fn sync_names(&self, prefix: &str) -> io::Result<()>;

    /// Where a blob stands, for messages.
    fn location(&self, name: &str) -> PathBuf;
}

/// Ends the names of what an interrupted put leaves behind.
pub const UNFINISHED: &str = ".new";

/// A blob in the making. If it is dropped before [`finish`](Self::finish), the owner deletes what may
/// stand under its name.
pub trait BlobUpload: Debug + Send + Sync {
    /// Writes at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Completes the blob and makes its contents durable; its name is after
    /// [`BlobStore::sync_names`].
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Finds the blob store that belongs to a directory.
pub trait BlobStores: Debug + Send + Sync {
    /// The blob store of the data directory, or folder of backups, `dir`; `files` reaches the local
    /// file system.
    fn blobs_in(&self, files: &Arc<dyn LogStore>, dir: &Path) -> Arc<dyn BlobStore>;
}
