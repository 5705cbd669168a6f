//! The cost of targets: processor, memory and disk over time and in total.

mod samples;

use super::document::{Block, Plot, Table, TableCell};
use super::load::{FinishedRun, StudyRuns};
use super::names::{label, look};
use super::number::{bytes, plain};
use super::plot::{self, Chart, Point, Series, X};
use super::statistics::median;
use crate::record::{Configuration, Resources, Usage};
use anyhow::Result;
use samples::{Samples, read};
use std::collections::BTreeMap;

/// The largest number of points of a plot; longer runs are thinned out.
const POINTS_MAX: usize = 240;

/// The shortest interval for a rate of processor time, seconds, because processor time comes in
/// ticks of 10 ms.
const WINDOW_MIN_S: f64 = 0.08;

/// The blocks about resources; none if none were measured.
pub(super) fn blocks(
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
    let Some(setup) = longest_setup(study) else {
        return Ok(Vec::new());
    };
    let (mut cpu, mut memory) = (Vec::new(), Vec::new());
    for target in &configuration.targets {
        let is_own = |run: &&FinishedRun| run.result.target == *target && run.result.setup == setup;
        let Some(run) = study.runs.iter().find(is_own) else {
            continue;
        };
        let Some(samples) = read(&run.folder.join("resources.parquet"))? else {
            continue;
        };
        // The cost of the client alone is not shown here.
        if super::names::is_null(target) || samples.len() < 2 {
            continue;
        }
        let side = if samples.has_server() {
            ""
        } else {
            " + client"
        };
        let line = |points: Vec<(f64, f64)>| Series {
            label: format!("{}{side}", label(target)),
            look: look(&configuration.targets, target),
            points: points.into_iter().map(point_at).collect(),
            second: Vec::new(),
            wrong: Vec::new(),
        };
        cpu.push(line(processor(&samples)));
        memory.push(line(resident(&samples)));
    }
    let plots = [
        ("processor", "CPU, % of one core", cpu),
        ("memory", "resident, MiB", memory),
    ];
    let plots = plots.into_iter().filter(|(.., series)| !series.is_empty());
    let plots = plots.map(|(name, unit, series)| {
        let name = format!("{prefix}-{name}");
        let alt = format!(
            "{}: {unit} of the server over time, setup {setup}",
            study.title
        );
        time_plot(name, alt, unit, series).map(Block::Plot)
    });
    let mut blocks = plots.collect::<Result<Vec<_>>>()?;
    if !blocks.is_empty() {
        let text =
            format!("The server over time, in the first run of each target with setup {setup}:");
        blocks.insert(0, Block::Text(text));
    }
    Ok(blocks)
}

/// The setup whose runs took longest altogether.
fn longest_setup(study: &StudyRuns) -> Option<&str> {
    let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
    for run in &study.runs {
        *seconds.entry(&run.result.setup).or_default() += run.result.seconds;
    }
    let longest = seconds.iter().max_by(|a, b| a.1.total_cmp(b.1));
    longest.map(|(setup, _)| *setup)
}

fn time_plot(name: String, alt: String, unit: &str, series: Vec<Series>) -> Result<Plot> {
    let chart = Chart {
        x_label: "seconds since the run began".to_owned(),
        y_label: unit.to_owned(),
        second_label: None,
        log: false,
        x: X::Quantity,
        series,
        marks: false,
    };
    let svg = plot::lines(&chart)?;
    Ok(Plot { name, alt, svg })
}

fn point_at((x, y): (f64, f64)) -> Point {
    Point {
        x,
        y,
        low: y,
        high: y,
    }
}

/// Processor time as percent of one core: (seconds, %), the mean of each window of samples.
fn processor(samples: &Samples) -> Vec<(f64, f64)> {
    let length_s = samples.at_s.last().copied().unwrap_or(0.0);
    let window_s = (length_s / POINTS_MAX as f64).max(WINDOW_MIN_S);
    let (mut points, mut from) = (Vec::new(), 0);
    for to in 1..samples.len() {
        let seconds = samples.at_s[to] - samples.at_s[from];
        if seconds < window_s {
            continue;
        }
        // The counters of a restarted server begin at 0.
        let used = (samples.cpu_s(to) - samples.cpu_s(from)).max(0.0);
        points.push((samples.at_s[to], used / seconds * 100.0));
        from = to;
    }
    points
}

/// Resident memory: (seconds, MiB), the largest value of each window of samples.
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

/// What one repetition of a target used in all setups.
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

/// A column of the table.
struct Column {
    head: &'static str,
    figure: fn(&Total) -> Option<f64>,
    is_bytes: bool,
}

const fn seconds(head: &'static str, figure: fn(&Total) -> Option<f64>) -> Column {
    Column {
        head,
        figure,
        is_bytes: false,
    }
}

const fn size(head: &'static str, figure: fn(&Total) -> Option<f64>) -> Column {
    Column {
        head,
        figure,
        is_bytes: true,
    }
}

const COLUMNS: [Column; 9] = [
    seconds("server CPU, s", |total| Some(total.server?.cpu_s)),
    size("server memory", |total| {
        Some(total.server?.rss_bytes as f64)
    }),
    size("server read", |total| Some(total.server?.read_bytes as f64)),
    size("server written", |total| {
        Some(total.server?.write_bytes as f64)
    }),
    seconds("client CPU, s", |total| Some(total.client.cpu_s)),
    size("client memory", |total| Some(total.client.rss_bytes as f64)),
    size("client read", |total| Some(total.client.read_bytes as f64)),
    size("client written", |total| {
        Some(total.client.write_bytes as f64)
    }),
    size("page cache", |total| Some(total.page_cache_bytes as f64)),
];

fn table(prefix: &str, configuration: &Configuration, study: &StudyRuns) -> Option<Table> {
    let mut table = Table {
        name: format!("{prefix}-resources"),
        caption: "What all measured steps of a repetition used: medians over the repetitions; \
                  memory and page cache at their largest. A server within the client’s process \
                  has no figures of its own."
            .to_owned(),
        ..Table::default()
    };
    let heads = COLUMNS.iter().map(|column| column.head);
    let heads = ["target"].into_iter().chain(heads);
    table.head.extend(heads.map(str::to_owned));
    for target in &configuration.targets {
        let totals = totals(study, target);
        if totals.is_empty() {
            continue;
        }
        let cell = |column: &Column| {
            let values: Vec<f64> = totals.iter().filter_map(column.figure).collect();
            let show = if column.is_bytes { bytes } else { plain };
            TableCell::plain(median(&values).map_or("–".to_owned(), show))
        };
        table.push(label(target), COLUMNS.iter().map(cell).collect());
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What `target` used, for each repetition.
fn totals(study: &StudyRuns, target: &str) -> Vec<Total> {
    let mut totals: BTreeMap<usize, Total> = BTreeMap::new();
    for run in study.runs.iter().filter(|run| run.result.target == target) {
        let steps = run.result.steps.iter();
        for resources in steps.filter_map(|step| step.resources.as_ref()) {
            let total = totals.entry(run.result.repeat).or_default();
            total.add(resources);
        }
    }
    totals.into_values().collect()
}
