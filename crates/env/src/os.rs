//! The machine's own disk and clock.

use crate::read_ahead::ReadAhead;
use crate::traits::{Clock, File, Lock, LogStore, ReadAt};
use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFs;

#[derive(Debug)]
struct OsFile {
    file: fs::File,
    /// Set once reads are announced to be scattered.
    ahead: OnceLock<Box<ReadAhead>>,
}

impl OsFile {
    fn new(file: fs::File) -> Self {
        let ahead = OnceLock::new();
        Self { file, ahead }
    }
}

/// Holds the lock until the file is closed, which the kernel also does when the process dies.
#[derive(Debug)]
struct OsLock(#[expect(dead_code, reason = "kept open, which is what holds the lock")] fs::File);

impl Lock for OsLock {}

impl ReadAt for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if let Some(ahead) = self.ahead.get() {
            ahead.before(&self.file, offset, buf.len() as u64);
        }
        self.file.read_exact_at(buf, offset)
    }

    fn advise_random_access(&self) {
        self.ahead
            .get_or_init(|| Box::new(ReadAhead::begin(&self.file)));
    }
}

impl File for OsFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        reserve(&self.file, range)
    }
}

impl LogStore for OsFs {
    fn is_of_machine(&self) -> bool {
        true
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        file.set_len(0)?;
        Ok(Arc::new(OsFile::new(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let opened = fs::OpenOptions::new().read(true).append(true).open(path);
        let file = match opened {
            // A data directory on read-only media can still be read.
            Err(error) if is_read_only(&error) => fs::File::open(path)?,
            opened => opened?,
        };
        Ok(Arc::new(OsFile::new(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // Marigram's own names are UTF-8: others are not ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn list_lengths(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() => files.push((name, metadata.len())),
                Ok(_) => files.push((name, 0)),
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        // A hard link fails on every system if the name is taken.
        match rename_without_replacing(from, to) {
            Some(outcome) => outcome,
            None => {
                fs::hard_link(from, to)?;
                fs::remove_file(from)
            }
        }
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(OsLock(file))),
            Err(fs::TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "another process holds the lock on this file",
            )),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Renames atomically, unless `to` exists; `None` if this file system cannot.
#[cfg(target_os = "linux")]
fn rename_without_replacing(from: &Path, to: &Path) -> Option<io::Result<()>> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => None,
        outcome => Some(outcome.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_without_replacing(_: &Path, _: &Path) -> Option<io::Result<()>> {
    None
}

/// Allocates blocks for a range of a file without changing its length.
#[cfg(target_os = "linux")]
fn reserve(file: &fs::File, range: Range<u64>) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    let len = range.end.saturating_sub(range.start);
    if len == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, range.start, len) {
        // A file system without this feature: appends may find the disk full.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        outcome => Ok(outcome?),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &fs::File, _: Range<u64>) -> io::Result<()> {
    Ok(())
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    )
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time counts from now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        let saturated = |ns: u128| i64::try_from(ns).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => saturated(after.as_nanos()),
            Err(before) => -saturated(before.duration().as_nanos()),
        }
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_appended_to_read_truncated_and_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let fs: &dyn LogStore = &OsFs;
        let nested = dir.path().join("a/b");
        fs.create_dir_all(&nested).unwrap();
        let file = fs.create(&nested.join("x")).unwrap();
        assert!(file.is_empty().unwrap());
        file.append(b"hello").unwrap();
        file.append(b" world").unwrap();
        file.sync().unwrap();
        file.truncate(7).unwrap();
        file.append(b"!").unwrap();
        let mut read = [0; 8];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"hello w!");
        let end = file.read_exact_at(&mut read, 1).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);

        fs.rename(&nested.join("x"), &nested.join("y")).unwrap();
        fs.sync_dir(&nested).unwrap();
        assert_eq!(fs.list(&nested).unwrap(), ["y"]);
        let again = fs.open(&nested.join("y")).unwrap();
        again.append(b"?").unwrap();
        assert_eq!(again.len().unwrap(), 9);
        assert!(fs.create(&nested.join("y")).unwrap().is_empty().unwrap());
        fs.remove(&nested.join("y")).unwrap();
        assert!(!fs.exists(&nested.join("y")).unwrap());
        fs.remove_dir_all(&dir.path().join("a")).unwrap();
        assert_eq!(fs.list(dir.path()).unwrap(), [""; 0]);
    }

    #[test]
    fn a_lock_is_held_by_one_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = OsFs.lock(&path).unwrap();
        assert_eq!(
            OsFs.lock(&path).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(held);
        OsFs.lock(&path).unwrap();
    }

    #[test]
    fn the_clock_reads_the_present() {
        let clock = SystemClock::new();
        let year_2020_ns = 1_577_836_800_000_000_000;
        assert!(clock.now_ns() > year_2020_ns);
        let before = clock.monotonic_ns();
        assert!(clock.monotonic_ns() >= before);
    }
}
