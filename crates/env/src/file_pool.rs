//! Many files that are read, few of them open: a bounded cache of descriptors.
//!
//! A [`PooledFile`] has a path and opens it when it is read. The pool keeps a bounded number of files
//! open and closes one that was not read lately (the clock algorithm) before it opens another. A file
//! that is open is read without a lock: a reader takes its own handle, and the handle stays open until
//! the read is done even if the pool closes the file meanwhile. So at most as many files as threads
//! that read are open beyond the pool's capacity.
//!
//! Invariants: a path is opened again only for the file that stood there before, by its length and its
//! last bytes; a file that is to be removed is removed when nobody can read it any more, and never
//! after the pool was closed.

use crate::shortage::is_out_of_files;
use crate::traits::{File, FileSystem};
use parking_lot::{Mutex, RwLock};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes at a file's end by which it is recognized.
const TAIL_BYTES: u64 = 32;

/// The files that are open, of those that belong to the pool.
#[derive(Debug)]
pub struct FilePool {
    fs: Arc<dyn FileSystem>,
    capacity: usize,
    ring: Mutex<PoolRing>,
    /// Whether files are no longer the pool's to remove.
    closed: RwLock<bool>,
    opens: AtomicU64,
}

/// What the clock's hand goes around.
#[derive(Debug, Default)]
struct PoolRing {
    slots: Vec<Arc<PoolSlot>>,
    hand: usize,
}

/// Where a file is while it is open.
#[derive(Debug, Default)]
struct PoolSlot {
    file: RwLock<Option<Arc<dyn File>>>,
    /// Whether it was read since the hand last passed.
    is_used: AtomicBool,
}

impl FilePool {
    /// A pool that keeps up to `capacity` files open, at least one.
    #[must_use]
    pub fn new(fs: Arc<dyn FileSystem>, capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            fs,
            capacity: capacity.max(1),
            ring: Mutex::default(),
            closed: RwLock::new(false),
            opens: AtomicU64::new(0),
        })
    }

    /// The file at `path`, which is opened when it is first read. It must not change any more.
    #[must_use]
    pub fn file(self: &Arc<Self>, path: PathBuf) -> Arc<PooledFile> {
        Arc::new(PooledFile {
            pool: Arc::clone(self),
            path,
            slot: Arc::default(),
            tail: OnceLock::new(),
            is_scattered: AtomicBool::new(false),
            is_doomed: AtomicBool::new(false),
        })
    }

    /// Files that are kept open at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Files that are open now.
    #[must_use]
    pub fn open_files(&self) -> usize {
        let ring = self.ring.lock();
        let is_open = |slot: &&Arc<PoolSlot>| slot.file.read().is_some();
        ring.slots.iter().filter(is_open).count()
    }

    /// How often a file was opened.
    #[must_use]
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// Closes half of the files that are open; says whether there were any. For those who need
    /// descriptors more.
    pub fn release(&self) -> bool {
        let open = self.ring.lock().slots.len();
        drop(self.evict(open / 2));
        open > 0
    }

    /// From here on no file is removed: the directory may be somebody else's.
    pub fn close(&self) {
        *self.closed.write() = true;
    }

    /// Takes files out until at most `left` are open. They are closed when the last read of them is
    /// done; the caller drops them outside every lock.
    fn evict(&self, left: usize) -> Vec<Arc<dyn File>> {
        let mut evicted = Vec::new();
        let mut ring = self.ring.lock();
        while ring.slots.len() > left {
            let at = ring.hand % ring.slots.len();
            let slot = &ring.slots[at];
            if slot.is_used.swap(false, Ordering::Relaxed) && slot.file.read().is_some() {
                ring.hand = at + 1;
                continue;
            }
            evicted.extend(slot.file.write().take());
            ring.slots.swap_remove(at);
            ring.hand = at;
        }
        evicted
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        drop(self.evict(self.capacity - 1));
        loop {
            self.opens.fetch_add(1, Ordering::Relaxed);
            match self.fs.open(path) {
                Err(error) if is_out_of_files(&error) && self.release() => {}
                outcome => return outcome,
            }
        }
    }

    /// Removes a file that nobody can read any more.
    fn remove(&self, path: &Path) {
        let closed = self.closed.read();
        if !*closed {
            // One that cannot be removed now is garbage at the next opening.
            let _ = self.fs.remove(path);
        }
    }
}

/// A file of a pool, open while it is in use. It can only be read.
#[derive(Debug)]
pub struct PooledFile {
    pool: Arc<FilePool>,
    path: PathBuf,
    slot: Arc<PoolSlot>,
    /// Length and last bytes as they were when it was first opened.
    tail: OnceLock<(u64, Vec<u8>)>,
    is_scattered: AtomicBool,
    is_doomed: AtomicBool,
}

impl PooledFile {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file when nobody holds it any more.
    pub fn remove_when_unused(&self) {
        self.is_doomed.store(true, Ordering::Release);
    }

    /// A handle on the open file.
    fn handle(&self) -> io::Result<Arc<dyn File>> {
        if let Some(file) = &*self.slot.file.read() {
            // Written once between two passes of the hand, so that readers share the cache line.
            if !self.slot.is_used.load(Ordering::Relaxed) {
                self.slot.is_used.store(true, Ordering::Relaxed);
            }
            return Ok(Arc::clone(file));
        }
        self.open()
    }

    fn open(&self) -> io::Result<Arc<dyn File>> {
        let file = self.pool.open(&self.path)?;
        self.recognize(&*file)?;
        if self.is_scattered.load(Ordering::Relaxed) {
            file.advise_random_access();
        }
        let mut open = self.slot.file.write();
        if let Some(other) = &*open {
            return Ok(Arc::clone(other));
        }
        *open = Some(Arc::clone(&file));
        drop(open);
        self.slot.is_used.store(true, Ordering::Relaxed);
        self.pool.ring.lock().slots.push(Arc::clone(&self.slot));
        Ok(file)
    }

    /// An error where another file stands in the place of the one that was opened first.
    fn recognize(&self, file: &dyn File) -> io::Result<()> {
        let len = file.len()?;
        let mut bytes = vec![0; len.min(TAIL_BYTES) as usize];
        file.read_exact_at(&mut bytes, len.saturating_sub(TAIL_BYTES))?;
        if *self.tail.get_or_init(|| (len, bytes.clone())) == (len, bytes) {
            return Ok(());
        }
        let reason = "another file stands here than the one that was opened before";
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }
}

impl File for PooledFile {
    fn len(&self) -> io::Result<u64> {
        if let Some((len, _)) = self.tail.get() {
            return Ok(*len);
        }
        self.handle()?.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle()?.read_exact_at(buf, offset)
    }

    fn append(&self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn advise_random_access(&self) {
        self.is_scattered.store(true, Ordering::Relaxed);
        if let Some(file) = &*self.slot.file.read() {
            file.advise_random_access();
        }
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reserve(&self, _: Range<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Drop for PooledFile {
    fn drop(&mut self) {
        let file = self.slot.file.write().take();
        drop(file);
        if *self.is_doomed.get_mut() {
            self.pool.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimFs;

    /// `count` files named by their numbers, each with its number in it.
    fn numbered(
        fs: &SimFs,
        count: usize,
        capacity: usize,
    ) -> (Arc<FilePool>, Vec<Arc<PooledFile>>) {
        let pool = FilePool::new(Arc::new(fs.clone()), capacity);
        let file = |number: usize| {
            let path = PathBuf::from(format!("/{number}"));
            fs.create(&path)
                .unwrap()
                .append(&number.to_le_bytes())
                .unwrap();
            pool.file(path)
        };
        let files = (0..count).map(file).collect();
        (pool, files)
    }

    fn read(file: &PooledFile) -> io::Result<usize> {
        let mut bytes = [0; size_of::<usize>()];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(usize::from_le_bytes(bytes))
    }

    #[test]
    fn few_of_many_files_are_open_and_all_can_be_read() {
        let fs = SimFs::new(1);
        let (pool, files) = numbered(&fs, 100, 7);
        let _ = fs.open_files_peak();
        for _ in 0..3 {
            for (number, file) in files.iter().enumerate() {
                assert_eq!(read(file).unwrap(), number);
            }
        }
        assert_eq!(fs.open_files_peak(), 7);
        assert_eq!(pool.open_files(), 7);
        drop(files);
        assert_eq!(fs.open_files(), 0);
    }

    #[test]
    fn what_is_read_again_and_again_stays_open() {
        let fs = SimFs::new(1);
        let (pool, files) = numbered(&fs, 50, 10);
        read(&files[0]).unwrap();
        for file in &files {
            read(file).unwrap();
            read(&files[0]).unwrap();
        }
        assert!(pool.opens() <= 60, "{}", pool.opens());
        let before = pool.opens();
        read(&files[0]).unwrap();
        assert_eq!(pool.opens(), before);
    }

    #[test]
    fn a_pool_gives_way_where_descriptors_are_short() {
        let fs = SimFs::new(1);
        let (pool, files) = numbered(&fs, 20, 20);
        fs.set_open_files_max(5);
        for (number, file) in files.iter().enumerate() {
            assert_eq!(read(file).unwrap(), number);
        }
        assert!(pool.open_files() <= 5);
        while pool.release() {}
        let others: Vec<_> = (0..5)
            .map(|n| fs.open(Path::new(&format!("/{n}"))).unwrap())
            .collect();
        assert!(is_out_of_files(&read(&files[0]).unwrap_err()));
        drop(others);
        assert_eq!(read(&files[0]).unwrap(), 0, "it is an error of the moment");
    }

    #[test]
    fn another_file_of_the_name_is_not_read() {
        let fs = SimFs::new(1);
        let (pool, files) = numbered(&fs, 2, 1);
        read(&files[0]).unwrap();
        read(&files[1]).unwrap();
        fs.create(Path::new("/0")).unwrap().append(&[9; 8]).unwrap();
        assert_eq!(
            read(&files[0]).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert_eq!(pool.open_files(), 0);
        assert_eq!(read(&files[1]).unwrap(), 1);
    }

    #[test]
    fn a_doomed_file_goes_with_its_last_reader_and_not_after_the_end() {
        let fs = SimFs::new(1);
        let (pool, mut files) = numbered(&fs, 3, 1);
        let reader = Arc::clone(&files[1]);
        files[1].remove_when_unused();
        files.remove(1);
        read(&files[0]).unwrap();
        assert_eq!(read(&reader).unwrap(), 1, "it is opened again");
        drop(reader);
        assert!(!fs.exists(Path::new("/1")).unwrap());
        files[0].remove_when_unused();
        pool.close();
        drop(files);
        assert!(fs.exists(Path::new("/0")).unwrap());
    }
}
