//! The simulated disk: inodes, paths over them, and what happens to all of them at a crash.

use super::faults::{FaultPlan, OpKind, OperationFate, SimCrash, io_error, no_space};
use super::inode::{DirNode, FileNode, InodeId, NameChange, SimInode};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Files of a directory and those below it, by path within it.
pub type DiskSnapshot = BTreeMap<PathBuf, Vec<u8>>;

const ROOT: InodeId = 0;

#[derive(Debug)]
pub(super) struct SimDisk {
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) plan: FaultPlan,
    /// Rises with each crash; handles of an earlier epoch are dead.
    pub(super) epoch: u64,
    pub(super) locks: HashSet<InodeId>,
    inodes: HashMap<InodeId, SimInode>,
    next_inode: InodeId,
    space_left: Option<u64>,
}

impl SimDisk {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            plan: FaultPlan::default(),
            epoch: 0,
            locks: HashSet::new(),
            inodes: HashMap::from([(ROOT, SimInode::Dir(DirNode::default()))]),
            next_inode: ROOT + 1,
            space_left: None,
        }
    }

    /// Counts an operation without effects on the disk.
    pub(super) fn look(&mut self, kind: OpKind) -> io::Result<()> {
        match self.plan.next(kind)? {
            OperationFate::Succeed => Ok(()),
            OperationFate::Fail => Err(io_error()),
            OperationFate::Crash => Err(SimCrash::error()),
        }
    }

    /// Counts an operation that is done wholly or not at all, and says whether to do it. The
    /// result to return then is [`Self::outcome`].
    fn attempt(&mut self, kind: OpKind) -> io::Result<OperationFate> {
        match self.plan.next(kind)? {
            OperationFate::Fail => Err(io_error()),
            OperationFate::Crash if self.rng.random_bool(0.5) => Err(SimCrash::error()),
            fate => Ok(fate),
        }
    }

    fn outcome(fate: OperationFate) -> io::Result<()> {
        if fate == OperationFate::Crash {
            Err(SimCrash::error())
        } else {
            Ok(())
        }
    }

    pub(super) fn set_space(&mut self, bytes: Option<u64>) {
        self.space_left = bytes;
    }

    // Paths.

    fn walk<'p>(&self, components: impl Iterator<Item = &'p str>) -> io::Result<InodeId> {
        let mut at = ROOT;
        for name in components {
            at = *self
                .dir(at)?
                .names()
                .get(name)
                .ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<InodeId> {
        self.walk(components(path)?.into_iter())
    }

    fn find_parent<'p>(&self, path: &'p Path) -> io::Result<(InodeId, &'p str)> {
        let mut names = components(path)?;
        let name = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.walk(names.into_iter())?;
        self.dir(parent)?;
        Ok((parent, name))
    }

    fn dir(&self, inode: InodeId) -> io::Result<&DirNode> {
        match self.inodes.get(&inode) {
            Some(SimInode::Dir(dir)) => Ok(dir),
            Some(SimInode::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn dir_mut(&mut self, inode: InodeId) -> io::Result<&mut DirNode> {
        match self.inodes.get_mut(&inode) {
            Some(SimInode::Dir(dir)) => Ok(dir),
            Some(SimInode::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn file(&self, inode: InodeId) -> io::Result<&FileNode> {
        match self.inodes.get(&inode) {
            Some(SimInode::File(file)) => Ok(file),
            Some(SimInode::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn file_mut(&mut self, inode: InodeId) -> io::Result<&mut FileNode> {
        match self.inodes.get_mut(&inode) {
            Some(SimInode::File(file)) => Ok(file),
            Some(SimInode::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn add(&mut self, parent: InodeId, name: &str, inode: SimInode) -> io::Result<InodeId> {
        let id = self.next_inode;
        self.dir_mut(parent)?
            .change(NameChange::Link(name.to_owned(), id));
        self.next_inode += 1;
        self.inodes.insert(id, inode);
        Ok(id)
    }

    // Operations on names.

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let fate = self.attempt(OpKind::CreateDir)?;
        self.make_dirs(path)?;
        Self::outcome(fate)
    }

    fn make_dirs(&mut self, path: &Path) -> io::Result<InodeId> {
        let mut at = ROOT;
        for name in components(path)? {
            at = match self.dir(at)?.names().get(name) {
                Some(inode) => *inode,
                None => self.add(at, name, SimInode::Dir(DirNode::default()))?,
            };
        }
        self.dir(at)?;
        Ok(at)
    }

    pub(super) fn create(&mut self, path: &Path, kind: OpKind) -> io::Result<InodeId> {
        let fate = self.attempt(kind)?;
        let (parent, name) = self.find_parent(path)?;
        let inode = match self.dir(parent)?.names().get(name) {
            Some(inode) => *inode,
            None => self.add(parent, name, SimInode::File(FileNode::default()))?,
        };
        if kind == OpKind::Create {
            self.cut(inode, 0)?;
        }
        Self::outcome(fate)?;
        Ok(inode)
    }

    pub(super) fn list(&mut self, dir: &Path) -> io::Result<Vec<String>> {
        self.look(OpKind::List)?;
        Ok(self.dir(self.find(dir)?)?.names().keys().cloned().collect())
    }

    pub(super) fn list_lengths(&mut self, dir: &Path) -> io::Result<Vec<(String, u64)>> {
        self.look(OpKind::List)?;
        let names = self.dir(self.find(dir)?)?.names();
        let length = |inode| self.file(inode).map_or(0, |file| file.live.len() as u64);
        let files = names.iter();
        Ok(files
            .map(|(name, inode)| (name.clone(), length(*inode)))
            .collect())
    }

    pub(super) fn rename_new(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.plan.is_crashed() && self.find(to).is_ok() {
            self.look(OpKind::Rename)?;
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let fate = self.attempt(OpKind::Rename)?;
        let (parent, from_name) = self.find_parent(from)?;
        let (to_parent, to_name) = self.find_parent(to)?;
        let inode = *self
            .dir(parent)?
            .names()
            .get(from_name)
            .ok_or(io::ErrorKind::NotFound)?;
        let (from, to) = (from_name.to_owned(), to_name.to_owned());
        if parent != to_parent {
            // Each directory is synced by itself: power loss may leave the file in both or in none.
            self.dir_mut(to_parent)?.change(NameChange::Link(to, inode));
            self.dir_mut(parent)?.change(NameChange::Unlink(from));
            return Self::outcome(fate);
        }
        self.dir_mut(parent)?
            .change(NameChange::Rename { from, to, inode });
        Self::outcome(fate)
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let fate = self.attempt(OpKind::Remove)?;
        let (parent, name) = self.find_parent(path)?;
        self.file(self.find(path)?)?;
        self.dir_mut(parent)?
            .change(NameChange::Unlink(name.to_owned()));
        Self::outcome(fate)
    }

    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let fate = self.attempt(OpKind::RemoveDir)?;
        let (parent, name) = self.find_parent(path)?;
        let inode = self.find(path)?;
        self.empty_dir(inode)?;
        self.dir_mut(parent)?
            .change(NameChange::Unlink(name.to_owned()));
        Self::outcome(fate)
    }

    fn empty_dir(&mut self, inode: InodeId) -> io::Result<()> {
        let names: Vec<_> = self
            .dir(inode)?
            .names()
            .iter()
            .map(|(name, id)| (name.clone(), *id))
            .collect();
        for (name, child) in names {
            if self.dir(child).is_ok() {
                self.empty_dir(child)?;
            }
            self.dir_mut(inode)?.change(NameChange::Unlink(name));
        }
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let fate = self.attempt(OpKind::SyncDir)?;
        let inode = self.find(path)?;
        self.dir_mut(inode)?.sync();
        Self::outcome(fate)
    }

    // Operations on files.

    pub(super) fn append(&mut self, inode: InodeId, bytes: &[u8]) -> io::Result<()> {
        let fate = self.plan.next(OpKind::Append)?;
        let wanted = match fate {
            OperationFate::Succeed => bytes.len(),
            OperationFate::Fail | OperationFate::Crash => self.rng.random_range(0..=bytes.len()),
        };
        let room = usize::try_from(self.space_left.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let file = self.file_mut(inode)?;
        let written = wanted.min(room.saturating_add(file.reserved));
        file.live.extend_from_slice(&bytes[..written]);
        let from_reserve = written.min(file.reserved);
        file.reserved -= from_reserve;
        let taken = (written - from_reserve) as u64;
        self.space_left = self.space_left.map(|left| left - taken);
        match fate {
            OperationFate::Crash => Err(SimCrash::error()),
            OperationFate::Fail => Err(io_error()),
            OperationFate::Succeed if written < wanted => Err(no_space()),
            OperationFate::Succeed => Ok(()),
        }
    }

    pub(super) fn sync(&mut self, inode: InodeId) -> io::Result<()> {
        let fate = self.plan.next(OpKind::Sync)?;
        let Self { inodes, rng, .. } = self;
        let Some(SimInode::File(file)) = inodes.get_mut(&inode) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        match fate {
            OperationFate::Succeed => file.sync(),
            OperationFate::Fail => {
                file.fail_sync(rng);
                return Err(io_error());
            }
            OperationFate::Crash => {
                if rng.random_bool(0.5) {
                    file.sync();
                }
            }
        }
        Self::outcome(fate)
    }

    pub(super) fn truncate(&mut self, inode: InodeId, len: u64) -> io::Result<()> {
        let fate = self.attempt(OpKind::Truncate)?;
        self.cut(
            inode,
            usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?,
        )?;
        Self::outcome(fate)
    }

    pub(super) fn reserve(&mut self, inode: InodeId, end: u64) -> io::Result<()> {
        let fate = self.attempt(OpKind::Reserve)?;
        let end = usize::try_from(end).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let space_left = self.space_left;
        let file = self.file_mut(inode)?;
        let wanted = end.saturating_sub(file.live.len() + file.reserved);
        if space_left.is_some_and(|left| left < wanted as u64) {
            return Err(no_space());
        }
        file.reserved += wanted;
        self.space_left = space_left.map(|left| left - wanted as u64);
        Self::outcome(fate)
    }

    fn cut(&mut self, inode: InodeId, len: usize) -> io::Result<()> {
        let file = self.file_mut(inode)?;
        let freed = (file.live.len() + file.reserved).saturating_sub(len) as u64;
        file.reserved = 0;
        file.truncate(len);
        self.space_left = self.space_left.map(|left| left.saturating_add(freed));
        Ok(())
    }

    // Crashes, damage and snapshots.

    pub(super) fn crash(&mut self) {
        // Ascending ids, so that every run draws the same random numbers.
        let mut ids: Vec<_> = self.inodes.keys().copied().collect();
        ids.sort_unstable();
        let Self { inodes, rng, .. } = self;
        for id in ids {
            match inodes.get_mut(&id) {
                Some(SimInode::File(file)) => file.crash(rng),
                Some(SimInode::Dir(dir)) => dir.crash(rng),
                None => {}
            }
        }
        self.drop_unreachable();
        self.kill();
    }

    pub(super) fn kill(&mut self) {
        self.epoch += 1;
        self.locks.clear();
        self.plan.restart();
    }

    fn drop_unreachable(&mut self) {
        let mut reachable = HashSet::new();
        let mut todo = vec![ROOT];
        while let Some(id) = todo.pop() {
            if !reachable.insert(id) {
                continue;
            }
            if let Ok(dir) = self.dir(id) {
                todo.extend(dir.names().values());
            }
        }
        self.inodes.retain(|id, _| reachable.contains(id));
    }

    pub(super) fn flip_bit(&mut self, path: &Path, bit: u64) -> io::Result<()> {
        let inode = self.find(path)?;
        let file = self.file_mut(inode)?;
        if bit / 8 >= file.live.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.flip_bit(bit);
        Ok(())
    }

    pub(super) fn snapshot(&self, dir: &Path) -> io::Result<DiskSnapshot> {
        let mut files = DiskSnapshot::new();
        let mut todo = vec![(PathBuf::new(), self.find(dir)?)];
        while let Some((path, inode)) = todo.pop() {
            match self.inodes.get(&inode) {
                Some(SimInode::File(file)) => {
                    files.insert(path, file.live.clone());
                }
                Some(SimInode::Dir(dir)) => {
                    todo.extend(dir.names().iter().map(|(name, id)| (path.join(name), *id)));
                }
                None => {}
            }
        }
        Ok(files)
    }

    /// Puts the files in place of `dir`, durably.
    pub(super) fn restore(&mut self, dir: &Path, files: &DiskSnapshot) -> io::Result<()> {
        if self.find(dir).is_ok_and(|inode| self.dir(inode).is_ok()) {
            let inode = self.find(dir)?;
            self.empty_dir(inode)?;
        }
        self.make_dirs(dir)?;
        for (path, bytes) in files {
            let path = dir.join(path);
            let parent = self.make_dirs(path.parent().unwrap_or(dir))?;
            let name = components(&path)?
                .pop()
                .ok_or(io::ErrorKind::InvalidInput)?;
            self.add(
                parent,
                name,
                SimInode::File(FileNode::durable(bytes.clone())),
            )?;
        }
        for inode in self.inodes.values_mut() {
            if let SimInode::Dir(dir) = inode {
                dir.sync();
            }
        }
        Ok(())
    }
}

/// The names that a path goes through.
fn components(path: &Path) -> io::Result<Vec<&str>> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_str().ok_or(io::ErrorKind::InvalidInput.into())),
        Component::RootDir | Component::CurDir => None,
        Component::ParentDir | Component::Prefix(_) => {
            Some(Err(io::ErrorKind::InvalidInput.into()))
        }
    });
    names.collect()
}
