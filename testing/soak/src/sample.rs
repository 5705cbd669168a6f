//! The resources that the server holds, measured often and recorded once per second.

use crate::client::SoakClient;
use crate::group::ControlGroup;
use crate::server::SoakServer;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(10);
const NOTE_EVERY: Duration = Duration::from_secs(1);
/// Number of records that share one survey of the disk and the server's own figures.
const NOTES_A_SURVEY: usize = 5;

/// One second of the server's life.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerSample {
    /// Since the start of the load.
    pub seconds: f64,
    /// Peak resident memory in this second, bytes.
    pub resident_bytes: usize,
    /// Anonymous memory at the last measurement, bytes.
    pub anonymous_bytes: usize,
    /// Mapped file pages, mostly its code, at the last measurement, bytes.
    pub file_bytes: usize,
    /// Memory charged to the control group, including page cache, bytes.
    pub group_bytes: usize,
    /// Memory that the server accounts for, bytes.
    pub accounted_bytes: usize,
    /// The part of it that only the process holds, bytes.
    pub process_bytes: usize,
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Files in the data directory.
    pub files: usize,
    /// Their bytes.
    pub disk_bytes: u64,
}

/// Measures until the load is over.
pub(crate) fn watch(
    server: &SoakServer,
    group: Option<&ControlGroup>,
    data: &Path,
    over: &AtomicBool,
) -> Vec<ServerSample> {
    let (begun, client) = (Instant::now(), SoakClient::new(server.port));
    let (mut samples, mut now) = (Vec::new(), ServerSample::default());
    while !over.load(Ordering::Acquire) && server.ended().is_none() {
        now.resident_bytes = now.resident_bytes.max(resident(server.pid));
        if begun.elapsed() >= NOTE_EVERY * (samples.len() as u32 + 1) {
            now.seconds = begun.elapsed().as_secs_f64();
            note(&mut now, server.pid, group);
            if samples.len() % NOTES_A_SURVEY == 0 {
                survey(&mut now, &client, data);
            }
            samples.push(now);
            now.resident_bytes = 0;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    samples
}

fn resident(pid: u32) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|text| text.parse().ok());
    pages.unwrap_or(0) * 4096
}

fn note(now: &mut ServerSample, pid: u32, group: Option<&ControlGroup>) {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |name: &str| -> usize {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    };
    now.anonymous_bytes = number("RssAnon:") << 10;
    now.file_bytes = number("RssFile:") << 10;
    now.threads = number("Threads:");
    now.group_bytes = group.map_or(0, ControlGroup::usage_bytes);
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    now.descriptors = descriptors.map_or(0, Iterator::count);
}

fn survey(now: &mut ServerSample, client: &SoakClient, data: &Path) {
    (now.files, now.disk_bytes) = size(data);
    let metrics = client.metrics();
    let held = metrics
        .lines()
        .filter(|line| line.starts_with("marigram_memory_bytes{"));
    let held = held.filter_map(|line| {
        let (name, bytes) = line.rsplit_once(' ')?;
        Some((name.contains("\"process\""), bytes.parse::<f64>().ok()?))
    });
    (now.accounted_bytes, now.process_bytes) = (0, 0);
    for (is_process, bytes) in held {
        now.accounted_bytes += bytes as usize;
        now.process_bytes += if is_process { bytes as usize } else { 0 };
    }
}

fn size(dir: &Path) -> (usize, u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return (0, 0);
    };
    let (mut files, mut bytes) = (0, 0);
    for entry in entries.flatten() {
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if about.is_dir() {
            let below = size(&entry.path());
            files += below.0;
            bytes += below.1;
        } else {
            files += 1;
            bytes += about.len();
        }
    }
    (files, bytes)
}

/// The samples as a table.
pub(crate) fn csv(samples: &[ServerSample]) -> String {
    let mut text = String::from(
        "seconds,resident_bytes,anonymous_bytes,file_bytes,group_bytes,accounted_bytes,\
         process_bytes,descriptors,threads,files,disk_bytes\n",
    );
    for s in samples {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:.1},{},{},{},{},{},{},{},{},{},{}",
            s.seconds,
            s.resident_bytes,
            s.anonymous_bytes,
            s.file_bytes,
            s.group_bytes,
            s.accounted_bytes,
            s.process_bytes,
            s.descriptors,
            s.threads,
            s.files,
            s.disk_bytes
        );
    }
    text
}
