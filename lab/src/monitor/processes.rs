//! The kernel's counters of a set of processes and their children.

use crate::record::Usage;
use procfs::Current;
use procfs::process::{Process, Stat};
use std::collections::{BTreeMap, BTreeSet};

/// Processes that are monitored together.
pub(super) struct Processes {
    /// The processes whose children belong to the set.
    roots: Vec<i32>,
    /// Counters by process id. A process that has ended keeps its last counters.
    counted: BTreeMap<i32, Usage>,
    /// What the processes had used at the start.
    before: Usage,
}

/// Resident memory of processes, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Now, bytes.
    pub now_bytes: u64,
    /// The peak since each of them began, as the kernel measures it, bytes.
    pub peak_bytes: u64,
}

impl Processes {
    /// Processes that already run; what they used so far does not count.
    pub(super) fn running(ids: &[u32]) -> Self {
        let mut processes = Self {
            roots: ids.iter().map(|id| *id as i32).collect(),
            counted: BTreeMap::new(),
            before: Usage::default(),
        };
        processes.before = processes.usage();
        processes
    }

    /// The laboratory's own process, without its children.
    pub(super) fn this() -> Self {
        let mut processes = Self {
            roots: Vec::new(),
            counted: BTreeMap::from([(std::process::id() as i32, Usage::default())]),
            before: Usage::default(),
        };
        processes.before = processes.usage();
        processes
    }

    /// Whether no process is watched.
    pub(super) fn is_empty(&self) -> bool {
        self.roots.is_empty() && self.counted.is_empty()
    }

    /// Monitors other processes from now on.
    pub(super) fn follow(&mut self, ids: &[u32]) {
        self.roots = ids.iter().map(|id| *id as i32).collect();
        if ids.is_empty() {
            self.counted.clear();
        }
    }

    /// Memory of those that run.
    pub(super) fn resident(&self) -> Resident {
        let mut sum = Resident::default();
        for id in family(&self.roots) {
            let status = Process::new(id).and_then(|process| process.status());
            // A process that has just ended holds nothing.
            let Ok(status) = status else { continue };
            let bytes = |kib: Option<u64>| kib.unwrap_or(0) * 1024;
            sum.now_bytes += bytes(status.vmrss);
            sum.peak_bytes += bytes(status.vmhwm);
        }
        sum
    }

    /// Processor time and bytes since the start; resident memory now.
    pub(super) fn usage(&mut self) -> Usage {
        for id in family(&self.roots) {
            self.counted.entry(id).or_default();
        }
        let mut sum = Usage::default();
        for (id, usage) in &mut self.counted {
            usage.rss_bytes = 0;
            // A process that has ended keeps its last counters.
            if let Some(now) = read(*id) {
                *usage = now;
            }
            sum.cpu_s += usage.cpu_s;
            sum.rss_bytes += usage.rss_bytes;
            sum.read_bytes += usage.read_bytes;
            sum.write_bytes += usage.write_bytes;
        }
        Usage {
            cpu_s: sum.cpu_s - self.before.cpu_s,
            rss_bytes: sum.rss_bytes,
            read_bytes: sum.read_bytes.saturating_sub(self.before.read_bytes),
            write_bytes: sum.write_bytes.saturating_sub(self.before.write_bytes),
        }
    }
}

fn read(id: i32) -> Option<Usage> {
    let process = Process::new(id).ok()?;
    let stat = process.stat().ok().filter(|stat| stat.state != 'Z')?;
    // The kernel shows memory and time of another user's process, but not its disk I/O.
    let (read_bytes, write_bytes) = process
        .io()
        .map_or((0, 0), |io| (io.read_bytes, io.write_bytes));
    Some(Usage {
        cpu_s: cpu_s(&stat),
        rss_bytes: stat.rss * procfs::page_size(),
        read_bytes,
        write_bytes,
    })
}

fn cpu_s(stat: &Stat) -> f64 {
    (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64
}

/// `roots` and all their descendants.
fn family(roots: &[i32]) -> BTreeSet<i32> {
    let mut family: BTreeSet<i32> = roots.iter().copied().collect();
    if roots.is_empty() {
        return family;
    }
    let Ok(all) = procfs::process::all_processes() else {
        return family;
    };
    let parents: Vec<(i32, i32)> = all
        .filter_map(|process| process.ok()?.stat().ok())
        .map(|stat| (stat.pid, stat.ppid))
        .collect();
    loop {
        let before = family.len();
        for (id, parent) in &parents {
            if family.contains(parent) {
                family.insert(*id);
            }
        }
        if family.len() == before {
            return family;
        }
    }
}

/// Page cache of the machine, bytes; 0 if it cannot be read.
pub(super) fn page_cache_bytes() -> u64 {
    procfs::Meminfo::current().map_or(0, |memory| memory.cached)
}
