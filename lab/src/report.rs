//! What was measured, and the table that is printed.

use marigram_lab::set_s::SetS;
use std::fmt;
use std::time::Duration;

/// One repetition of one way in.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// From the first row sent to the last one acknowledged.
    pub ingest: Duration,
    /// From the first row sent until everything is in segments.
    pub flushed: Duration,
    /// Size of the data directory after flush and compaction, bytes.
    pub disk_bytes: u64,
    /// From the start of a process that follows a `kill -9` right after the last row to its first
    /// answer; for the embedded way, the time that opening takes.
    pub restart: Duration,
    /// WAL that the restart replayed, bytes.
    pub restart_wal_bytes: u64,
    /// Rows.
    pub rows: usize,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} M rows/s acknowledged, {:.2} M rows/s flushed, {:.3} bytes a row, \
             restart {:.0} ms over {:.0} MB of WAL",
            self.rows as f64 / self.ingest.as_secs_f64() / 1e6,
            self.rows as f64 / self.flushed.as_secs_f64() / 1e6,
            self.disk_bytes as f64 / self.rows as f64,
            self.restart.as_secs_f64() * 1e3,
            self.restart_wal_bytes as f64 / 1e6,
        )
    }
}

/// All ways in.
#[derive(Debug)]
pub struct Report {
    devices: usize,
    rows: usize,
    repeat: usize,
    lines: Vec<String>,
}

/// The median of a figure, and its extremes.
fn spread(runs: &[Measured], digits: usize, figure: impl Fn(&Measured) -> f64) -> String {
    let mut values: Vec<f64> = runs.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    let Some((first, last)) = values.first().zip(values.last()) else {
        return String::new();
    };
    format!(
        "{:.digits$} ({first:.digits$} – {last:.digits$})",
        values[values.len() / 2]
    )
}

impl Report {
    /// An empty report on `set`.
    #[must_use]
    pub fn new(set: &SetS, repeat: usize) -> Self {
        Self {
            devices: set.devices(),
            rows: set.len(),
            repeat,
            lines: Vec::new(),
        }
    }

    /// Adds the repetitions of one way in.
    pub fn add(&mut self, path: &str, runs: Vec<Measured>) {
        let rate = |time: Duration, rows: usize| rows as f64 / time.as_secs_f64() / 1e6;
        self.lines.push(format!(
            "| {path} | {} | {} | {} | {} | {} |",
            spread(&runs, 2, |run| rate(run.ingest, run.rows)),
            spread(&runs, 2, |run| rate(run.flushed, run.rows)),
            spread(&runs, 3, |run| run.disk_bytes as f64 / run.rows as f64),
            spread(&runs, 0, |run| run.restart.as_secs_f64() * 1e3),
            spread(&runs, 0, |run| run.restart_wal_bytes as f64 / 1e6),
        ));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Standard set S, {} devices, {} rows; median of {} (least – most)\n",
            self.devices, self.rows, self.repeat
        )?;
        writeln!(
            f,
            "| way in | M rows/s acknowledged | M rows/s until flushed | bytes a row on disk | \
             restart, ms | of WAL, MB |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
