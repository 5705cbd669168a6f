//! A kernel control group, version 1 or 2, with a limit on memory, if this process can create one.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders in which groups are created, with the names of their files: limit, usage, number of
/// kills.
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

/// A group; removed when dropped, by which time its processes must have ended.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    dir: PathBuf,
    kind: &'static GroupKind,
}

impl ControlGroup {
    /// Creates a group whose processes may use this many bytes; `None` if that is impossible.
    pub(crate) fn make(bytes: usize) -> Option<Self> {
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

    /// The file to which the id of a process is written.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Bytes that the kernel charges to the group, including its page cache.
    pub(crate) fn usage_bytes(&self) -> usize {
        let text = fs::read_to_string(self.dir.join(self.kind.usage)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Number of processes in it that the kernel killed.
    pub(crate) fn oom_kills(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.kind.kills)).unwrap_or_default();
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // If this fails, an empty folder remains.
        let _ = fs::remove_dir(&self.dir);
    }
}
