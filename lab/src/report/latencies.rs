//! Latencies of requests: a table of every step, and plots of the steps with the longest tails.

use super::document::{Block, CellMark, Plot, Table, TableCell};
use super::load::StudyRuns;
use super::names::{is_null, label, look};
use super::number::plain;
use super::plot::{self, Chart, Point, Series, X};
use super::series::act;
use super::statistics::median;
use crate::record::{Configuration, Latency, Verdict};
use crate::study::{Knobs, StepAction};
use anyhow::Result;
use std::collections::BTreeMap;

/// One of the figures of a latency, milliseconds.
type LatencyFigure = fn(&Latency) -> f64;

/// The figures of a latency, as columns and as points of the plot.
const LATENCY_FIGURES: [(&str, LatencyFigure); 6] = [
    ("average", |latency| latency.mean),
    ("P50", |latency| latency.p50),
    ("P95", |latency| latency.p95),
    ("P99", |latency| latency.p99),
    ("P99.9", |latency| latency.p999),
    ("max", |latency| latency.max),
];

/// A step, and the latencies of its requests by target: medians over the repetitions.
struct Stage {
    kind: &'static str,
    name: String,
    by_target: Vec<(String, RequestLatencies)>,
}

/// Latencies of requests.
#[derive(Default)]
struct RequestLatencies {
    all: Vec<Latency>,
    wrong: bool,
}

impl RequestLatencies {
    fn part(&self, part: LatencyFigure) -> Option<f64> {
        median(&self.all.iter().map(part).collect::<Vec<f64>>())
    }
}

/// The blocks about latencies; none if nothing was asked or written.
pub(super) fn blocks(
    prefix: &str,
    configuration: &Configuration,
    study: &StudyRuns,
) -> Result<Vec<Block>> {
    let stages = stages(configuration, study);
    let mut blocks = Vec::new();
    if stages.is_empty() {
        return Ok(blocks);
    }
    for kind in ["writing", "asking", "on the clock"] {
        // One plot per kind: the step with the longest tail says most about tails.
        let tail = |stage: &&Stage| {
            let parts = stage.by_target.iter().filter(|(_, taken)| !taken.wrong);
            let tails: Vec<f64> = parts
                .filter_map(|(_, taken)| taken.part(|l| l.p99))
                .collect();
            median(&tails).unwrap_or(0.0)
        };
        let steps = stages.iter().filter(|stage| stage.kind == kind);
        let Some(stage) = steps.max_by(|a, b| tail(a).total_cmp(&tail(b))) else {
            continue;
        };
        if let Some(svg) = picture(stage, &configuration.targets)? {
            blocks.push(Block::Text(format!(
                "Latencies of requests, {kind}, in the step with the longest tail ({}):",
                stage.name
            )));
            blocks.push(Block::Plot(Plot {
                name: format!("{prefix}-percentiles-{}", kind.replace(' ', "-")),
                alt: format!(
                    "{}: percentiles of latencies, {kind}, {}",
                    study.title, stage.name
                ),
                svg,
            }));
        }
    }
    blocks.push(Block::Folded {
        summary: "Latencies of all steps".to_owned(),
        blocks: vec![Block::Table(table(prefix, &stages))],
    });
    Ok(blocks)
}

fn stages(configuration: &Configuration, study: &StudyRuns) -> Vec<Stage> {
    let mut order: Vec<(&str, usize, &Knobs)> = Vec::new();
    let mut found: BTreeMap<(&str, usize, &Knobs), BTreeMap<&str, RequestLatencies>> =
        BTreeMap::new();
    for run in study.runs.iter().filter(|run| !is_null(&run.result.target)) {
        for step in &run.result.steps {
            let Some(latency) = step.latency.filter(|latency| latency.count > 0) else {
                continue;
            };
            if matches!(step.verdict, Verdict::Cannot(_) | Verdict::Failed(_)) {
                continue;
            }
            let key = (run.result.setup.as_str(), step.step, &step.knobs);
            if !found.contains_key(&key) {
                order.push(key);
            }
            let targets = found.entry(key).or_default();
            let taken = targets.entry(&run.result.target).or_default();
            taken.all.push(latency);
            taken.wrong |= matches!(step.verdict, Verdict::Wrong(_));
        }
    }
    let many = study.plan.setups.len() > 1;
    let mut stages = Vec::new();
    for (setup, step, knobs) in order {
        let mut taken = found.remove(&(setup, step, knobs)).unwrap_or_default();
        let targets = configuration.targets.iter();
        let by_target = targets.filter_map(|name| Some((name.clone(), taken.remove(&**name)?)));
        let mut name: Vec<String> = Vec::new();
        if many {
            name.push(setup.to_owned());
        }
        name.extend(
            knobs
                .iter()
                .map(|(knob, value)| format!("{} {value}", knob.replace('_', " "))),
        );
        stages.push(Stage {
            kind: match act(study, setup, step) {
                Some(StepAction::Ask(_) | StepAction::Mix(_) | StepAction::Cold(_)) => "asking",
                Some(StepAction::Mixed { .. })
                    if knobs.get("side").is_some_and(|side| side == "ask") =>
                {
                    "asking"
                }
                Some(StepAction::Clock(_)) => "on the clock",
                _ => "writing",
            },
            name: name.join(", "),
            by_target: by_target.collect(),
        });
    }
    stages
}

fn table(prefix: &str, stages: &[Stage]) -> Table {
    let mut table = Table {
        name: format!("{prefix}-latencies"),
        caption: "Latencies of requests, ms: medians over the repetitions. “Slowest client” is \
                  the mean of the client that waited longest."
            .to_owned(),
        ..Table::default()
    };
    table.head = vec![
        "step".to_owned(),
        "target".to_owned(),
        "requests".to_owned(),
    ];
    table
        .head
        .extend(LATENCY_FIGURES.iter().map(|(name, _)| (*name).to_owned()));
    table.head.push("slowest client".to_owned());
    for stage in stages {
        for (target, taken) in &stage.by_target {
            let cell = |part: LatencyFigure| {
                TableCell::plain(taken.part(part).map_or("–".to_owned(), plain))
            };
            let mut cells = vec![TableCell::plain(label(target))];
            if taken.wrong {
                cells[0].detail.push_str("wrong answers");
                cells[0].mark = CellMark::Wrong;
            }
            cells.push(cell(|latency| latency.count as f64));
            cells.extend(LATENCY_FIGURES.iter().map(|(_, part)| cell(*part)));
            cells.push(cell(|latency| latency.slowest_client));
            table.push(stage.name.clone(), cells);
        }
    }
    table
}

fn picture(stage: &Stage, targets: &[String]) -> Result<Option<String>> {
    let series: Vec<Series> = stage
        .by_target
        .iter()
        .filter(|(_, taken)| !taken.wrong)
        .map(|(target, taken)| Series {
            label: label(target),
            look: look(targets, target),
            points: LATENCY_FIGURES
                .iter()
                .enumerate()
                .filter_map(|(at, (_, part))| {
                    let y = taken.part(*part)?;
                    Some(Point {
                        x: at as f64,
                        y,
                        low: y,
                        high: y,
                    })
                })
                .collect(),
            second: Vec::new(),
            wrong: Vec::new(),
        })
        .collect();
    if series.is_empty() {
        return Ok(None);
    }
    let chart = Chart {
        x_label: String::new(),
        y_label: "ms".to_owned(),
        second_label: None,
        log: true,
        x: X::Names(
            LATENCY_FIGURES
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        ),
        series,
        marks: true,
    };
    plot::lines(&chart).map(Some)
}
