//! A file system that can be read and ignores changes, for code that repairs what it opens.

use marigram_env::{File, Lock, LogStore, ReadAt};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Reads from another file system; accepts every change without making it.
#[derive(Debug)]
pub(super) struct ReadOnlyFs(pub Arc<dyn LogStore>);

/// An existing file (`None` for one that was "created").
#[derive(Debug)]
struct ReadOnlyFile(Option<Arc<dyn File>>);

impl ReadAt for ReadOnlyFile {
    fn len(&self) -> io::Result<u64> {
        self.0.as_ref().map_or(Ok(0), |file| file.len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.0 {
            Some(file) => file.read_exact_at(buf, offset),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl File for ReadOnlyFile {
    fn append(&self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn reserve(&self, _range: Range<u64>) -> io::Result<()> {
        Ok(())
    }
}

impl LogStore for ReadOnlyFs {
    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, _path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(ReadOnlyFile(None)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(ReadOnlyFile(Some(self.0.open(path)?))))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn list_lengths(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.0.list_lengths(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename_new(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _file: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_dir_all(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Box<dyn Lock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
