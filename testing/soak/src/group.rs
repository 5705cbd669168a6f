//! A control group of the kernel's with a ceiling on memory, version 1 or 2, where this process may
//! make one.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders in which groups are made, with the names of their files: limit, use, count of kills.
const KINDS: [GroupKind; 2] = [
    GroupKind {
        parent: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        usage: "memory.usage_in_bytes",
        kills: "memory.oom_control",
    },
    GroupKind {
        parent: "/sys/fs/cgroup",
        limit: "memory.max",
        usage: "memory.current",
        kills: "memory.events",
    },
];

#[derive(Debug)]
struct GroupKind {
    parent: &'static str,
    limit: &'static str,
    usage: &'static str,
    kills: &'static str,
}

/// A group; removed when dropped, by when its processes must have ended.
#[derive(Debug)]
pub struct ControlGroup {
    dir: PathBuf,
    kind: &'static GroupKind,
}

impl ControlGroup {
    /// A group whose processes may have so many bytes; `None` where none can be made.
    pub fn make(bytes: usize) -> Option<Self> {
        KINDS.iter().find_map(|kind| Self::create(kind, bytes))
    }

    fn create(kind: &'static GroupKind, bytes: usize) -> Option<Self> {
        let name = format!("marigram-soak-{}-{bytes}", std::process::id());
        let dir = Path::new(kind.parent).join(name);
        fs::create_dir(&dir).ok()?;
        let group = Self { dir, kind };
        fs::write(group.dir.join(kind.limit), bytes.to_string()).ok()?;
        Some(group)
    }

    /// The file that takes the number of a process.
    pub fn entrance(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Bytes that the kernel charges to it, its page cache among them.
    pub fn usage_bytes(&self) -> usize {
        let text = fs::read_to_string(self.dir.join(self.kind.usage)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// How many processes the kernel killed in it.
    pub fn oom_kills(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.kind.kills)).unwrap_or_default();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // What remains where it fails is an empty folder.
        let _ = fs::remove_dir(&self.dir);
    }
}
