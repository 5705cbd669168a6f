//! Files and directories of the simulated disk: what a reader sees now, and what power loss leaves.
//!
//! A file's `durable` bytes are those of its last successful sync. What was written since may be
//! there or not after a crash, page by page: the kernel writes pages back in any order, and the
//! length of the file is metadata that may be ahead of them. A directory's `durable` names are
//! those of its last sync; each later change of a name may have reached the disk or not.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng as _, RngExt as _};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) type InodeId = u64;

#[derive(Debug)]
pub(super) enum SimInode {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Debug, Default)]
pub(super) struct FileNode {
    pub(super) live: Vec<u8>,
    /// Bytes beyond its length for which the disk has room set aside.
    pub(super) reserved: usize,
    durable: Vec<u8>,
    /// Shortest length since the last sync: below it, `live` and `durable` are equal.
    common: usize,
    /// Pages that a failed sync has dropped: a later sync reports success and does not write them.
    dropped: Vec<Range<usize>>,
}

impl FileNode {
    /// A file that has been synced.
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            durable: bytes.clone(),
            common: bytes.len(),
            live: bytes,
            reserved: 0,
            dropped: Vec::new(),
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len > self.live.len() {
            self.live.resize(len, 0);
            return;
        }
        self.live.truncate(len);
        self.common = self.common.min(len);
        for range in &mut self.dropped {
            range.end = range.end.min(len);
        }
        self.dropped.retain(|range| !range.is_empty());
    }

    pub(super) fn sync(&mut self) {
        self.durable.truncate(self.common);
        self.durable.extend_from_slice(&self.live[self.common..]);
        for range in self.dropped.drain(..) {
            self.durable[range].fill(0);
        }
        self.common = self.durable.len();
    }

    /// A sync that fails: by chance the kernel now takes the dirty pages for clean.
    pub(super) fn fail_sync(&mut self, rng: &mut Xoshiro256PlusPlus) {
        if rng.random_bool(0.5) && self.common < self.live.len() {
            self.dropped.push(self.common..self.live.len());
        }
    }

    pub(super) fn flip_bit(&mut self, bit: u64) {
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        self.live[byte] ^= mask;
        if byte < self.common {
            self.durable[byte] ^= mask;
        }
    }

    /// Reduces it to what power loss leaves of it.
    pub(super) fn crash(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let truncated = self.common < self.durable.len();
        let survived = if truncated && rng.random_bool(0.5) {
            // The truncation never reached the disk, nor did what was written after it.
            std::mem::take(&mut self.durable)
        } else {
            // The synced part as it is on disk: the cache may show pages that a sync has dropped.
            let mut bytes = std::mem::take(&mut self.durable);
            bytes.truncate(self.common);
            bytes.extend_from_slice(&self.live[self.common..]);
            tear(&mut bytes, self.common, rng);
            for range in &self.dropped {
                let end = range.end.min(bytes.len());
                let start = range.start.min(end);
                bytes[start..end].fill(0);
            }
            bytes
        };
        *self = Self::durable(survived);
    }
}

/// Reduces the bytes from `synced` on to what a disk may have of them.
fn tear(bytes: &mut Vec<u8>, synced: usize, rng: &mut Xoshiro256PlusPlus) {
    let unsynced = bytes.len() - synced;
    if unsynced == 0 {
        return;
    }
    match rng.random_range(0..8) {
        0..2 => bytes.truncate(synced),
        2 => {}
        3..6 => bytes.truncate(synced + rng.random_range(0..=unsynced)),
        _ => {
            if rng.random_bool(0.5) {
                bytes.truncate(synced + rng.random_range(1..=unsynced));
            }
            tear_pages(bytes, synced, rng);
        }
    }
}

/// Keeps some pages of the bytes from `synced` on and replaces the others.
fn tear_pages(bytes: &mut [u8], synced: usize, rng: &mut Xoshiro256PlusPlus) {
    let page = if rng.random_bool(0.5) { 512 } else { 4096 };
    let kept = [0.2, 0.5, 0.8][rng.random_range(0..3)];
    let mut start = synced;
    while start < bytes.len() {
        let end = ((start / page + 1) * page).min(bytes.len());
        if !rng.random_bool(kept) {
            if rng.random_bool(0.7) {
                bytes[start..end].fill(0);
            } else {
                rng.fill_bytes(&mut bytes[start..end]);
            }
        }
        start = end;
    }
}

/// A change of one name.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Link(String, InodeId),
    Unlink(String),
    /// Both at once, or neither.
    Rename {
        from: String,
        to: String,
        inode: InodeId,
    },
}

#[derive(Debug, Default)]
pub(super) struct DirNode {
    live: BTreeMap<String, InodeId>,
    durable: BTreeMap<String, InodeId>,
    /// Changes since the last sync, oldest first.
    pending: Vec<NameChange>,
}

impl DirNode {
    pub(super) fn names(&self) -> &BTreeMap<String, InodeId> {
        &self.live
    }

    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.live);
        self.pending.clear();
    }

    /// Reduces it to what power loss leaves of it.
    pub(super) fn crash(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let mut names = std::mem::take(&mut self.durable);
        let changes = std::mem::take(&mut self.pending);
        match rng.random_range(0..4) {
            0 => {}
            1 => changes.iter().for_each(|change| change.apply(&mut names)),
            2 => {
                let reached = rng.random_range(0..=changes.len());
                changes[..reached]
                    .iter()
                    .for_each(|change| change.apply(&mut names));
            }
            _ => {
                for change in changes {
                    if rng.random_bool(0.5) {
                        change.apply(&mut names);
                    }
                }
            }
        }
        self.live.clone_from(&names);
        self.durable = names;
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, InodeId>) {
        match self {
            Self::Link(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Unlink(name) => {
                names.remove(name);
            }
            Self::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}
