//! The machine of a run.

use crate::record::Machine;
use anyhow::{Context, Result};
use procfs::Current;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Number of appends whose median is the cost of an fsync.
const SYNCS: usize = 21;

/// Describes the machine; measures the disk under `dir`.
pub fn machine(dir: &Path) -> Result<Machine> {
    let processors = procfs::CpuInfo::current().context("reading /proc/cpuinfo")?;
    // Some architectures name no model.
    let cpu = processors.model_name(0).unwrap_or(std::env::consts::ARCH);
    Ok(Machine {
        cpu: cpu.to_owned(),
        cores: std::thread::available_parallelism()?.get(),
        memory_bytes: procfs::Meminfo::current()?.mem_total,
        system: system(),
        fsync_us: fsync_us(dir)?,
    })
}

/// Distribution and kernel.
fn system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .unwrap_or("Linux");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{}, kernel {}", name.trim_matches('"'), kernel.trim())
}

/// Median time of a 4 KiB append with fsync, microseconds.
fn fsync_us(dir: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(dir)
        .with_context(|| format!("a file in {} to measure fsync with", dir.display()))?;
    let mut times: Vec<f64> = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begin = Instant::now();
        file.write_all(&[0x5A; 4096])?;
        file.sync_data()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[SYNCS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_described() {
        let dir = tempfile::tempdir().expect("a folder");
        let machine = machine(dir.path()).expect("it is described");
        assert!(!machine.cpu.is_empty());
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.system.contains("kernel"), "{}", machine.system);
        assert!(machine.fsync_us > 0.0);
    }
}
