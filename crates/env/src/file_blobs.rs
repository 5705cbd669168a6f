//! Blobs as files: a blob store in a directory of a file system.
//!
//! A blob is the file of its name. A put writes a file aside, syncs it, renames it and syncs its
//! directory; an upload writes the file in place, since whoever uploads gives the name out only when
//! it is durable. Both go through [`LogStore`], so that the simulated disk tears blobs in the making
//! as it tears logs.
//!
//! Invariant: one process at a time writes below the directory, as the lock of its owner says.

use crate::blob::{BlobMeta, BlobStore, BlobStores, BlobUpload, PutMode, UNFINISHED};
use crate::traits::{File, LogStore, ReadAt};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A blob store whose blobs are the files below a directory.
#[derive(Debug)]
pub struct FileBlobs {
    files: Arc<dyn LogStore>,
    root: PathBuf,
    /// Tells concurrent puts of one name apart.
    puts: AtomicU64,
}

impl FileBlobs {
    /// The blobs below `root`.
    #[must_use]
    pub fn new(files: Arc<dyn LogStore>, root: &Path) -> Self {
        Self {
            files,
            root: root.to_owned(),
            puts: AtomicU64::new(0),
        }
    }

    /// The file of a blob; `InvalidInput` if the name leads out of the directory.
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let is_normal = |part| matches!(part, Component::Normal(_));
        if Path::new(name).components().all(is_normal) {
            return Ok(self.root.join(name));
        }
        let reason = format!("'{name}' is no name of a blob");
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    }

    /// Does something that needs the directory of `path`, which is created if it is missing.
    fn in_directory<T>(&self, path: &Path, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match (act(), path.parent()) {
            (Err(error), Some(parent))
                if error.kind() == io::ErrorKind::NotFound && !self.files.exists(parent)? =>
            {
                self.create_directory(parent)?;
                act()
            }
            (outcome, _) => outcome,
        }
    }

    /// Creates a directory below the root and those above it that are missing, durably.
    fn create_directory(&self, dir: &Path) -> io::Result<()> {
        let mut grown = Vec::new();
        for parent in dir.ancestors().skip(1) {
            grown.push(parent);
            if parent == self.root || self.files.exists(parent)? {
                break;
            }
        }
        self.files.create_dir_all(dir)?;
        for parent in grown {
            self.files.sync_dir(parent)?;
        }
        Ok(())
    }

    fn write_aside(&self, unfinished: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.in_directory(unfinished, || self.files.create(unfinished))?;
        file.append(bytes)?;
        file.sync()
    }
}

impl BlobStore for FileBlobs {
    fn put(&self, name: &str, bytes: &[u8], mode: PutMode) -> io::Result<()> {
        let path = self.path(name)?;
        let number = self.puts.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.path(&format!("{name}.{number}{UNFINISHED}"))?;
        let put = self
            .write_aside(&unfinished, bytes)
            .and_then(|()| match mode {
                PutMode::Overwrite => self.files.rename(&unfinished, &path),
                PutMode::Create => self.files.rename_new(&unfinished, &path),
            });
        if let Err(error) = put {
            // One that cannot be removed now is garbage that its owner finds in the list.
            let _ = self.files.remove(&unfinished);
            return Err(error);
        }
        self.files.sync_dir(path.parent().unwrap_or(&self.root))
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn BlobUpload>> {
        let path = self.path(name)?;
        let file = self.in_directory(&path, || self.files.create(&path))?;
        Ok(Box::new(FileUpload(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        Ok(self.files.open(&self.path(name)?)?)
    }

    fn head(&self, name: &str) -> io::Result<Option<u64>> {
        match self.files.open(&self.path(name)?) {
            Ok(file) => Ok(Some(file.len()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<BlobMeta>> {
        let files = match self.files.list_lengths(&self.path(prefix)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            files => files?,
        };
        let blob = |(base_name, bytes): (String, u64)| BlobMeta {
            name: match prefix {
                "" => base_name,
                prefix => format!("{prefix}/{base_name}"),
            },
            bytes,
        };
        Ok(files.into_iter().map(blob).collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        self.in_directory(&to, || self.files.rename(&from, &to))
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.files.remove(&self.path(name)?)
    }

    fn sync_names(&self, prefix: &str) -> io::Result<()> {
        self.files.sync_dir(&self.path(prefix)?)
    }

    fn location(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// A file that becomes a blob.
#[derive(Debug)]
struct FileUpload(Arc<dyn File>);

impl BlobUpload for FileUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.sync()
    }
}

/// Blobs stand as files in the directory that they belong to.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileBlobStores;

impl BlobStores for FileBlobStores {
    fn blobs_in(&self, files: &Arc<dyn LogStore>, dir: &Path) -> Arc<dyn BlobStore> {
        Arc::new(FileBlobs::new(Arc::clone(files), dir))
    }
}

#[cfg(test)]
#[path = "file_blobs_tests.rs"]
mod tests;
