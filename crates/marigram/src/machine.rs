//! What the machine has: for defaults that fit it.

use std::num::NonZero;
use std::thread;

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Memory that this process may use, bytes: the machine's, or its control group's where that is
/// less. `None` where the system does not say.
pub(crate) fn memory_bytes() -> Option<usize> {
    // These files describe the machine and are no part of a database, so they are read directly.
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total(&text));
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (machine, group) => machine.or(group),
    }
}

/// Files that this process may have open; `None` where the system does not say.
pub(crate) fn open_files_limit() -> Option<usize> {
    // As above: the file describes the process.
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    open_files(&limits)
}

/// The soft limit of open files in Linux's `/proc/self/limits`.
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
