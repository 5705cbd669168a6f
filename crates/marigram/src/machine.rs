//! Properties of the machine, from which defaults are derived.

use std::num::NonZero;
use std::thread;

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Memory that this process may use, in bytes: that of its control group if it is less than the
/// machine's. `None` if the system does not report it.
pub(crate) fn memory_bytes() -> Option<usize> {
    // These files describe the machine and do not belong to a database, so they are read directly.
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total(&text));
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&own).into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse().ok()
    });
    machine.into_iter().chain(limits).min()
}

/// The files that may contain a memory limit of this process, according to `/proc/self/cgroup`:
/// those of its control groups, of version 1 and 2, and of all their parents. In a container, the
/// group's path may be the one outside, so that only the root exists.
fn limit_files(own: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            v1 if v1.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("{root}{path}/{name}"));
            match path.rfind('/') {
                Some(at) => path = &path[..at],
                None => break,
            }
        }
    }
    files
}

/// Files that this process may have open; `None` if the system does not report it.
pub(crate) fn open_files_limit() -> Option<usize> {
    // The file describes the process, so it is read directly.
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    open_files(&limits)
}

/// The soft limit on open files in Linux's `/proc/self/limits`.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(3)? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    }
}

/// `MemTotal` of Linux's `/proc/meminfo`, bytes.
fn total(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_groups_above_count() {
        let own = "9:name=systemd:/\n4:cpu,memory:/a/b\n3:cpuset:/\n0::/c\n";
        let expected = [
            "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/c/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert_eq!(limit_files(own), expected);
    }

    #[test]
    fn the_total_is_found() {
        assert_eq!(
            total("MemTotal:       2048 kB\nMemFree: 1 kB\n"),
            Some(2_097_152)
        );
        assert_eq!(total("nothing"), None);
        assert!(cores() > 0);
        let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                      Max open files            1024                 4096                 files\n";
        assert_eq!(open_files(limits), Some(1024));
    }
}
