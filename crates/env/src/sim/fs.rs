//! The simulated file system: handles on a simulated disk, and the controls that break it.

use super::disk::{DiskSnapshot, SimDisk};
use super::faults::{OpKind, PlannedFault, too_many_open_files};
use super::inode::InodeId;
use crate::traits::{File, Lock, LogStore, ReadAt};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file system in memory that loses what was not synced. Clones are handles on the same disk.
///
/// Everything left to chance comes from the seed, so that a single-threaded run repeats exactly.
///
/// - [`crash`](Self::crash) cuts the power: of each file what was synced stays, and of what was
///   not, any prefix or any pages may; of each directory any unsynced change of a name may.
/// - [`kill`](Self::kill) ends the process alone: everything written stays.
/// - [`crash_at`](Self::crash_at) lets power fail in the middle of an operation to come.
/// - [`fail`](Self::fail) plans I/O errors, [`set_space`](Self::set_space) a full disk.
///
/// A file that is renamed into another directory may be in both or in none after a loss of power,
/// as long as not both directories are synced.
#[derive(Clone, Debug)]
pub struct SimFs {
    disk: Arc<Mutex<SimDisk>>,
    descriptors: Arc<SimDescriptors>,
}

/// Files and locks that are open, of all handles on a disk.
#[derive(Debug)]
struct SimDescriptors {
    open: AtomicUsize,
    peak: AtomicUsize,
    max: AtomicUsize,
}

/// One of them; dropped with its handle.
#[derive(Debug)]
struct SimDescriptor(Arc<SimDescriptors>);

impl Drop for SimDescriptor {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SimFs {
    /// An empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            disk: Arc::new(Mutex::new(SimDisk::new(seed))),
            descriptors: Arc::new(SimDescriptors {
                open: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
                max: AtomicUsize::new(usize::MAX),
            }),
        }
    }

    /// Limits how many files and locks may be open at once; the next one fails with EMFILE. The limit
    /// survives crashes.
    pub fn set_open_files_max(&self, files: usize) {
        self.descriptors.max.store(files, Ordering::Relaxed);
    }

    /// Files and locks that are open now.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.descriptors.open.load(Ordering::Relaxed)
    }

    /// The most files and locks that were open at once since this was last called.
    #[must_use]
    pub fn open_files_peak(&self) -> usize {
        self.descriptors
            .peak
            .swap(self.open_files(), Ordering::Relaxed)
    }

    /// Operations counted so far, failed ones too. Those after the power was cut do not count.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.disk.lock().plan.ops()
    }

    /// Operations of one kind so far, counted as in [`ops`](Self::ops).
    #[must_use]
    pub fn count(&self, kind: OpKind) -> u64 {
        self.disk.lock().plan.count(kind)
    }

    /// Power fails during the operation with this number (the first one ever has 0; see
    /// [`ops`](Self::ops)) or the first one after it: it may have had its effect wholly, in part
    /// or not at all, and it and all later ones fail with [`SimCrash`](super::SimCrash).
    pub fn crash_at(&self, op: u64) {
        self.disk.lock().plan.crash_at(Some(op));
    }

    /// Cancels [`crash_at`](Self::crash_at), if the power is still on.
    pub fn cancel_crash(&self) {
        self.disk.lock().plan.crash_at(None);
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.disk.lock().plan.is_crashed()
    }

    /// Cuts the power if it is on, and turns it on again: the disk holds one of the states that
    /// power loss may leave, old handles only give errors, locks are free, no fault is planned.
    pub fn crash(&self) {
        self.disk.lock().crash();
    }

    /// As [`crash`](Self::crash), but the kernel survives: nothing that was written is lost.
    pub fn kill(&self) {
        self.disk.lock().kill();
    }

    /// Plans an I/O error. Faults add up.
    pub fn fail(&self, fault: PlannedFault) {
        self.disk.lock().plan.add(fault);
    }

    /// Cancels all planned I/O errors.
    pub fn clear_faults(&self) {
        self.disk.lock().plan.clear_faults();
    }

    /// Lets the disk take `bytes` more (`None`: any number) before appends fail with ENOSPC, the
    /// first of them after a part. Truncating gives bytes back, removing does not. Outlasts
    /// crashes.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.disk.lock().set_space(bytes);
    }

    /// Flips a bit of a file, counted from its start, on disk and in memory.
    ///
    /// # Errors
    /// If there is no such file or bit.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        self.disk.lock().flip_bit(path, bit)
    }

    /// Every file below a directory, as a reader sees it now.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn snapshot(&self, dir: &Path) -> io::Result<DiskSnapshot> {
        self.disk.lock().snapshot(dir)
    }

    /// Replaces what is in a directory by a snapshot, durably.
    ///
    /// # Errors
    /// If a file stands where a directory is needed.
    pub fn restore(&self, dir: &Path, files: &DiskSnapshot) -> io::Result<()> {
        self.disk.lock().restore(dir, files)
    }

    fn handle(&self, disk: &SimDisk, inode: InodeId, descriptor: SimDescriptor) -> InodeHandle {
        InodeHandle {
            disk: Arc::clone(&self.disk),
            epoch: disk.epoch,
            inode,
            _descriptor: descriptor,
        }
    }

    fn descriptor(&self) -> io::Result<SimDescriptor> {
        let all = &self.descriptors;
        let descriptor = SimDescriptor(Arc::clone(all));
        let open = all.open.fetch_add(1, Ordering::Relaxed) + 1;
        if open > all.max.load(Ordering::Relaxed) {
            return Err(too_many_open_files());
        }
        all.peak.fetch_max(open, Ordering::Relaxed);
        Ok(descriptor)
    }
}

/// A handle on an inode, dead after the next crash.
#[derive(Debug)]
struct InodeHandle {
    disk: Arc<Mutex<SimDisk>>,
    epoch: u64,
    inode: InodeId,
    _descriptor: SimDescriptor,
}

impl InodeHandle {
    fn disk(&self) -> io::Result<MutexGuard<'_, SimDisk>> {
        let disk = self.disk.lock();
        if disk.epoch == self.epoch {
            return Ok(disk);
        }
        Err(io::Error::other(
            "this handle is from before the simulated crash",
        ))
    }
}

impl ReadAt for InodeHandle {
    fn len(&self) -> io::Result<u64> {
        let mut disk = self.disk()?;
        disk.look(OpKind::Len)?;
        Ok(disk.file(self.inode)?.live.len() as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk()?;
        disk.look(OpKind::Read)?;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = disk
            .file(self.inode)?
            .live
            .get(offset..)
            .unwrap_or_default();
        let bytes = rest.get(..buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

impl File for InodeHandle {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.disk()?.append(self.inode, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk()?.sync(self.inode)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.disk()?.truncate(self.inode, len)
    }

    fn reserve(&self, range: Range<u64>) -> io::Result<()> {
        self.disk()?.reserve(self.inode, range.end)
    }
}

#[derive(Debug)]
struct HeldLock(InodeHandle);

impl Lock for HeldLock {}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if let Ok(mut disk) = self.0.disk() {
            disk.locks.remove(&self.0.inode);
        }
    }
}

impl LogStore for SimFs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.lock().create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let descriptor = self.descriptor()?;
        let mut disk = self.disk.lock();
        let inode = disk.create(path, OpKind::Create)?;
        Ok(Arc::new(self.handle(&disk, inode, descriptor)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let descriptor = self.descriptor()?;
        let mut disk = self.disk.lock();
        disk.look(OpKind::Open)?;
        let inode = disk.find(path)?;
        disk.file(inode)?;
        Ok(Arc::new(self.handle(&disk, inode, descriptor)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.lock().list(dir)
    }

    fn list_lengths(&self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.disk.lock().list_lengths(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        disk.look(OpKind::Exists)?;
        Ok(disk.find(path).is_ok())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.lock().rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.lock().rename_new(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.disk.lock().remove(file)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.lock().remove_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.lock().sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let descriptor = self.descriptor()?;
        let mut disk = self.disk.lock();
        let inode = disk.create(path, OpKind::Lock)?;
        disk.file(inode)?;
        if !disk.locks.insert(inode) {
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "the lock is held",
            ));
        }
        Ok(Box::new(HeldLock(self.handle(&disk, inode, descriptor))))
    }
}
