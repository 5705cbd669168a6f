//! Many blobs that are read, few of them open: a bounded cache of descriptors.
//!
//! A [`PooledBlob`] has a name and is opened when it is read. The pool keeps a bounded number of blobs
//! open; before it opens another, it closes one that was not read lately (the clock algorithm). An
//! open blob is read without a lock: a reader takes its own handle, which stays open until the read is
//! done even if the pool closes the blob meanwhile. So beyond the pool's capacity at most as many
//! blobs are open as threads read.
//!
//! Invariants: a name is opened again only for the blob that stood there before, recognized by its
//! length and its last bytes. A blob that is to be deleted is deleted when nobody can read it any
//! more, and never after the pool was closed.

use crate::blob::BlobStore;
use crate::shortage::is_out_of_files;
use crate::traits::ReadAt;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes at a blob's end by which it is recognized.
const TAIL_BYTES: u64 = 32;

/// The blobs that are open, of those that belong to the pool.
#[derive(Debug)]
pub struct BlobPool {
    store: Arc<dyn BlobStore>,
    capacity: usize,
    ring: Mutex<PoolRing>,
    /// Whether blobs are no longer the pool's to delete.
    closed: RwLock<bool>,
    opens: AtomicU64,
}

/// What the clock's hand goes around.
#[derive(Debug, Default)]
struct PoolRing {
    slots: Vec<Arc<PoolSlot>>,
    hand: usize,
}

/// Holds a blob while it is open.
#[derive(Debug, Default)]
struct PoolSlot {
    file: RwLock<Option<Arc<dyn ReadAt>>>,
    /// Whether it was read since the hand last passed.
    is_used: AtomicBool,
}

impl BlobPool {
    /// A pool that keeps up to `capacity` blobs of `store` open, at least one.
    #[must_use]
    pub fn new(store: Arc<dyn BlobStore>, capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            store,
            capacity: capacity.max(1),
            ring: Mutex::default(),
            closed: RwLock::new(false),
            opens: AtomicU64::new(0),
        })
    }

    /// The blob `name`, which is opened when it is first read. It must not change any more.
    #[must_use]
    pub fn blob(self: &Arc<Self>, name: &str) -> Arc<PooledBlob> {
        Arc::new(PooledBlob {
            pool: Arc::clone(self),
            name: name.into(),
            slot: Arc::default(),
            tail: OnceLock::new(),
            is_scattered: AtomicBool::new(false),
            is_doomed: AtomicBool::new(false),
        })
    }

    /// How many blobs are kept open at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many blobs are open now.
    #[must_use]
    pub fn open_files(&self) -> usize {
        let ring = self.ring.lock();
        let is_open = |slot: &&Arc<PoolSlot>| slot.file.read().is_some();
        ring.slots.iter().filter(is_open).count()
    }

    /// How often a blob was opened.
    #[must_use]
    pub fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// Closes half of the open blobs; says whether there were any. For those who need descriptors
    /// more.
    pub fn release(&self) -> bool {
        let open = self.ring.lock().slots.len();
        drop(self.evict(open / 2));
        open > 0
    }

    /// From here on no blob is deleted: the store may have another owner.
    pub fn close(&self) {
        *self.closed.write() = true;
    }

    /// Takes blobs out until at most `left` are open. They are closed when the last read of them is
    /// done; the caller drops them outside every lock.
    fn evict(&self, left: usize) -> Vec<Arc<dyn ReadAt>> {
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

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        drop(self.evict(self.capacity - 1));
        loop {
            self.opens.fetch_add(1, Ordering::Relaxed);
            match self.store.open(name) {
                Err(error) if is_out_of_files(&error) && self.release() => {}
                outcome => return outcome,
            }
        }
    }

    /// Deletes a blob that nobody can read any more.
    fn delete(&self, name: &str) {
        let closed = self.closed.read();
        if !*closed {
            // One that cannot be deleted now is garbage at the next opening.
            let _ = self.store.delete(name);
        }
    }
}

/// A blob of a pool, open while it is in use.
#[derive(Debug)]
pub struct PooledBlob {
    pool: Arc<BlobPool>,
    name: Box<str>,
    slot: Arc<PoolSlot>,
    /// Length and last bytes as they were when it was first opened.
    tail: OnceLock<(u64, Vec<u8>)>,
    is_scattered: AtomicBool,
    is_doomed: AtomicBool,
}

impl PooledBlob {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it stands, for messages.
    #[must_use]
    pub fn location(&self) -> PathBuf {
        self.pool.store.location(&self.name)
    }

    /// Deletes the blob when nobody holds it any more.
    pub fn delete_when_unused(&self) {
        self.is_doomed.store(true, Ordering::Release);
    }

    /// A handle on the open blob.
    fn handle(&self) -> io::Result<Arc<dyn ReadAt>> {
        if let Some(file) = &*self.slot.file.read() {
            // Written once between two passes of the hand, so that readers share the cache line.
            if !self.slot.is_used.load(Ordering::Relaxed) {
                self.slot.is_used.store(true, Ordering::Relaxed);
            }
            return Ok(Arc::clone(file));
        }
        self.open()
    }

    fn open(&self) -> io::Result<Arc<dyn ReadAt>> {
        let file = self.pool.open(&self.name)?;
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

    /// Fails if the blob is not the one that was opened first.
    fn recognize(&self, file: &dyn ReadAt) -> io::Result<()> {
        let len = file.len()?;
        let mut bytes = vec![0; len.min(TAIL_BYTES) as usize];
        file.read_exact_at(&mut bytes, len.saturating_sub(TAIL_BYTES))?;
        if *self.tail.get_or_init(|| (len, bytes.clone())) == (len, bytes) {
            return Ok(());
        }
        let reason = "this is not the file that was opened before";
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }
}

impl ReadAt for PooledBlob {
    fn len(&self) -> io::Result<u64> {
        if let Some((len, _)) = self.tail.get() {
            return Ok(*len);
        }
        self.handle()?.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.handle()?.read_exact_at(buf, offset)
    }

    fn advise_random_access(&self) {
        self.is_scattered.store(true, Ordering::Relaxed);
        if let Some(file) = &*self.slot.file.read() {
            file.advise_random_access();
        }
    }
}

impl Drop for PooledBlob {
    fn drop(&mut self) {
        let file = self.slot.file.write().take();
        drop(file);
        if *self.is_doomed.get_mut() {
            self.pool.delete(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_blobs::FileBlobs;
    use crate::sim::SimFs;
    use crate::traits::LogStore as _;
    use std::path::Path;

    /// `count` files named by their numbers, each with its number in it.
    fn numbered(
        fs: &SimFs,
        count: usize,
        capacity: usize,
    ) -> (Arc<BlobPool>, Vec<Arc<PooledBlob>>) {
        let blobs = Arc::new(FileBlobs::new(Arc::new(fs.clone()), Path::new("/")));
        let pool = BlobPool::new(blobs, capacity);
        let file = |number: usize| {
            let path = PathBuf::from(format!("/{number}"));
            fs.create(&path)
                .unwrap()
                .append(&number.to_le_bytes())
                .unwrap();
            pool.blob(&number.to_string())
        };
        let files = (0..count).map(file).collect();
        (pool, files)
    }

    fn read(file: &PooledBlob) -> io::Result<usize> {
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
        files[1].delete_when_unused();
        files.remove(1);
        read(&files[0]).unwrap();
        assert_eq!(read(&reader).unwrap(), 1, "it is opened again");
        drop(reader);
        assert!(!fs.exists(Path::new("/1")).unwrap());
        files[0].delete_when_unused();
        pool.close();
        drop(files);
        assert!(fs.exists(Path::new("/0")).unwrap());
    }
}
