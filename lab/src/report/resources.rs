//! What the targets cost: processor, memory and disk over time and in sum.

mod samples;

use super::document::{Block, Plot, Table, TableCell};
use super::load::{Run, StudyRuns};
use super::names::{label, look};
use super::number::{bytes, plain};
use super::plot::{self, Chart, Point, Series, X};
use super::statistics::median;
use crate::record::{Configuration, Resources, Usage};
use anyhow::Result;
use samples::{Samples, read};
use std::collections::BTreeMap;

/// Longer runs are thinned out to so many points.
const POINTS_MAX: usize = 240;

/// Processor time comes in ticks of 10 ms: over less than this, seconds, a rate says nothing.
const WINDOW_MIN_S: f64 = 0.08;

/// The blocks about resources; none when none were measured.
pub fn blocks(
    prefix: &str,
    configuration: &Configuration,
    study: &StudyRuns,
) -> Result<Vec<Block>> {
    let mut blocks = over_time(prefix, configuration, study)?;
    blocks.extend(table(prefix, configuration, study).map(Block::Table));
    if blocks.is_empty() {
        return Ok(blocks);
    }
    Ok(vec![Block::Folded {
        summary: "Resources: processor, memory, disk".to_owned(),
        blocks,
    }])
}

/// Plots over time: one run of each target, of the setup that takes longest.
fn over_time(prefix: &str, configuration: &Configuration, study: &StudyRuns) -> Result<Vec<Block>> {
    let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
    for run in &study.runs {
        *seconds.entry(&run.result.setup).or_default() += run.result.seconds;
    }
    let longest = seconds.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let Some((setup, _)) = longest else {
        return Ok(Vec::new());
    };
    let mut cpu = Vec::new();
    let mut memory = Vec::new();
    for target in &configuration.targets {
        let of = |run: &&Run| run.result.target == *target && run.result.setup == **setup;
        let Some(run) = study.runs.iter().find(of) else {
            continue;
        };
        let Some(samples) = read(&run.folder.join("resources.parquet"))? else {
            continue;
        };
        let side = if samples.has_server() {
            ""
        } else {
            " + client"
        };
        let line = |points: Vec<(f64, f64)>| Series {
            label: format!("{}{side}", label(target)),
            look: look(&configuration.targets, target),
            points: points.into_iter().map(at).collect(),
            second: Vec::new(),
            wrong: Vec::new(),
        };
        // The client alone is not a target whose cost matters here.
        if super::names::is_null(target) || samples.len() < 2 {
            continue;
        }
        cpu.push(line(processor(&samples)));
        memory.push(line(resident(&samples)));
    }
    let mut blocks = Vec::new();
    let plots = [
        ("processor", "CPU, % of one core", cpu),
        ("memory", "resident, MiB", memory),
    ];
    for (name, unit, series) in plots {
        if series.is_empty() {
            continue;
        }
        let chart = Chart {
            x_label: "seconds since the run began".to_owned(),
            y_label: unit.to_owned(),
            second_label: None,
            log: false,
            x: X::Quantity,
            series,
            marks: false,
        };
        blocks.push(Block::Plot(Plot {
            name: format!("{prefix}-{name}"),
            alt: format!(
                "{}: {unit} of the server over time, setup {setup}",
                study.title
            ),
            svg: plot::lines(&chart)?,
        }));
    }
    if !blocks.is_empty() {
        blocks.insert(
            0,
            Block::Text(format!(
                "The server over time, in the first run of each target with setup {setup}:"
            )),
        );
    }
    Ok(blocks)
}

fn at((x, y): (f64, f64)) -> Point {
    Point {
        x,
        y,
        low: y,
        high: y,
    }
}

/// Processor time as percent of one core: (seconds, %), a mean for each window of samples.
fn processor(samples: &Samples) -> Vec<(f64, f64)> {
    let length_s = samples.at_s.last().copied().unwrap_or(0.0);
    let window_s = (length_s / POINTS_MAX as f64).max(WINDOW_MIN_S);
    let (mut points, mut from) = (Vec::new(), 0);
    for to in 1..samples.len() {
        let seconds = samples.at_s[to] - samples.at_s[from];
        if seconds < window_s {
            continue;
        }
        // A server that was started again counts from nothing.
        let used = (samples.cpu_s(to) - samples.cpu_s(from)).max(0.0);
        points.push((samples.at_s[to], used / seconds * 100.0));
        from = to;
    }
    points
}

/// Resident memory: (seconds, MiB), the largest of each window of samples.
fn resident(samples: &Samples) -> Vec<(f64, f64)> {
    let step = samples.len().div_ceil(POINTS_MAX).max(1);
    let starts = (0..samples.len()).step_by(step);
    let windows = starts.map(|from| from..(from + step).min(samples.len()));
    let point = |window: std::ops::Range<usize>| {
        let largest = window
            .clone()
            .map(|at| samples.rss_bytes(at))
            .fold(0.0, f64::max);
        (samples.at_s[window.end - 1], largest / 1_048_576.0)
    };
    windows.map(point).collect()
}

/// What one repetition of a target used in all setups together.
#[derive(Clone, Copy, Default)]
struct Total {
    server: Option<Usage>,
    client: Usage,
    page_cache_bytes: u64,
}

impl Total {
    fn add(&mut self, step: &Resources) {
        let add = |sum: &mut Usage, usage: &Usage| {
            sum.cpu_s += usage.cpu_s;
            sum.rss_bytes = sum.rss_bytes.max(usage.rss_bytes);
            sum.read_bytes += usage.read_bytes;
            sum.write_bytes += usage.write_bytes;
        };
        if let Some(server) = &step.server {
            add(self.server.get_or_insert_default(), server);
        }
        add(&mut self.client, &step.client);
        self.page_cache_bytes = self.page_cache_bytes.max(step.page_cache_bytes);
    }
}

/// A column: its heading, its figure, and whether that is bytes.
type Column = (&'static str, fn(&Total) -> Option<f64>, bool);

fn table(prefix: &str, configuration: &Configuration, study: &StudyRuns) -> Option<Table> {
    let mut table = Table {
        name: format!("{prefix}-resources"),
        caption: "What all measured steps of a repetition used: medians over the repetitions; \
                  memory and page cache at their largest. A server within the client’s process \
                  has no figures of its own."
            .to_owned(),
        ..Table::default()
    };
    let columns: [Column; 9] = [
        ("server CPU, s", |total| Some(total.server?.cpu_s), false),
        (
            "server memory",
            |total| Some(total.server?.rss_bytes as f64),
            true,
        ),
        (
            "server read",
            |total| Some(total.server?.read_bytes as f64),
            true,
        ),
        (
            "server written",
            |total| Some(total.server?.write_bytes as f64),
            true,
        ),
        ("client CPU, s", |total| Some(total.client.cpu_s), false),
        (
            "client memory",
            |total| Some(total.client.rss_bytes as f64),
            true,
        ),
        (
            "client read",
            |total| Some(total.client.read_bytes as f64),
            true,
        ),
        (
            "client written",
            |total| Some(total.client.write_bytes as f64),
            true,
        ),
        (
            "page cache",
            |total| Some(total.page_cache_bytes as f64),
            true,
        ),
    ];
    table.head.push("target".to_owned());
    table
        .head
        .extend(columns.iter().map(|(name, ..)| (*name).to_owned()));
    for target in &configuration.targets {
        let mut totals: BTreeMap<usize, Total> = BTreeMap::new();
        for run in study.runs.iter().filter(|run| run.result.target == *target) {
            for step in run
                .result
                .steps
                .iter()
                .filter_map(|step| step.resources.as_ref())
            {
                totals.entry(run.result.repeat).or_default().add(step);
            }
        }
        if totals.is_empty() {
            continue;
        }
        let cell = |(_, part, is_bytes): &Column| {
            let values: Vec<f64> = totals.values().filter_map(part).collect();
            let show = if *is_bytes { bytes } else { plain };
            TableCell::plain(median(&values).map_or("–".to_owned(), show))
        };
        table.push(label(target), columns.iter().map(cell).collect());
    }
    (!table.rows.is_empty()).then_some(table)
}
