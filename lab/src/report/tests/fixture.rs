//! A folder in the form of `lab run`, built from a few numbers.

use crate::question::{Answer, Cell};
use crate::record::{
    Configuration, Latency, Machine, Resources, RunResult, StepResult, Usage, Verdict,
};
use crate::study::{
    AskStep, Knobs, Plan, PublishedFigures, ReportView, Scale, Setup, Step, StepAction, Study,
    Write,
};
use crate::target::{TargetFacts, Tuning};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// The one study, with a title that HTML and Markdown must escape.
pub(crate) const STUDY: Study = Study {
    name: "rehearsal",
    title: "Writing & asking <b>| *first*",
    about: "How fast rows go in, and answers come out.",
    source: "A \"paper\" of nobody's.",
    plan: |_| plan(),
};

/// Knobs from pairs.
pub(crate) fn knobs(pairs: &[(&str, &str)]) -> Knobs {
    let owned = |(knob, value): &(&str, &str)| ((*knob).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn view(title: &str, figure: &str, unit: &str, x: &str) -> ReportView {
    ReportView {
        title: title.to_owned(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        scale: 1.0,
        more_is_better: false,
        x: x.to_owned(),
        split: None,
        only: Knobs::new(),
        second: None,
        log: false,
        published: Vec::new(),
    }
}

/// Numbers of clients and batch sizes of writing.
pub(crate) const CLIENTS: [&str; 4] = ["1", "2", "4", "16"];
/// Rows per request.
pub(crate) const BATCHES: [&str; 2] = ["100", "2000"];
/// The questions; `top` is SQL, compared between targets.
pub(crate) const QUESTIONS: [&str; 4] = ["last", "avg-by-hour", "top", "all-rows"];

/// Writes at each number of clients and batch size, then size, then questions.
pub(crate) fn plan() -> Plan {
    let mut steps = Vec::new();
    for batch in BATCHES {
        for clients in CLIENTS {
            steps.push(Step {
                knobs: knobs(&[("clients", clients), ("batch_rows", batch)]),
                act: StepAction::Write(Write {
                    clients: clients.parse().expect("clients are numbers"),
                    batch_rows: batch.parse().expect("batches are numbers"),
                    rows_max: None,
                    time_max: None,
                    rows_per_s: None,
                    suffix: format!("_{clients}_{batch}"),
                }),
            });
        }
    }
    steps.push(Step {
        knobs: knobs(&[("set", "S")]),
        act: StepAction::Size,
    });
    steps.push(Step {
        knobs: Knobs::new(),
        act: StepAction::Ask(AskStep {
            clients: 1,
            questions: Vec::new(),
            times: 10,
            time_max: None,
            suffix: String::new(),
        }),
    });
    let mut rate = view("Ingest rate", "rows_per_s", "1000 rows/s", "clients");
    rate.scale = 1e-3;
    rate.more_is_better = true;
    rate.split = Some("batch_rows".to_owned());
    rate.second = Some(("latency_p99_ms".to_owned(), "P99, ms".to_owned()));
    rate.published = vec![PublishedFigures {
        system: "TDengine 1.6".to_owned(),
        source: "a comparison of 2019, 24 cores & <SSD>".to_owned(),
        split: Some("2000".to_owned()),
        points: vec![("1".to_owned(), 900.0), ("7".to_owned(), 2300.0)],
    }];
    let size = view("Size on disk", "bytes_per_row", "bytes", "set");
    let mut asked = view("Answer times", "latency_ms", "ms", "question");
    asked.log = true;
    Plan {
        setups: vec![Setup {
            name: "all".to_owned(),
            source: crate::generate::SourceSpec::SetS {
                devices: 10,
                rows: 1000,
            },
            steps,
            tuning: Tuning::default(),
        }],
        views: vec![rate, size, asked],
        ..Plan::default()
    }
}

/// A folder with runs.
pub(crate) struct Fixture {
    /// How it was started.
    pub configuration: Configuration,
    /// Results, changed by a test before they are written.
    pub results: Vec<RunResult>,
}

impl Fixture {
    /// Runs of `targets`, each with its relative rate with one client; repetitions differ by 2 %.
    pub(crate) fn new(targets: &[(&str, f64)], repeat: usize) -> Self {
        let configuration = Configuration {
            format: 1,
            version: "0.1.0".to_owned(),
            scale: Scale::Medium,
            seed: 7,
            repeat,
            studies: vec![STUDY.name.to_owned()],
            targets: targets.iter().map(|(name, _)| (*name).to_owned()).collect(),
            command: "marigram lab run rehearsal --scale medium".to_owned(),
            started: "2026-06-01T12:00:00Z".to_owned(),
            machine: Machine {
                cpu: "Example CPU @ 2.5 GHz".to_owned(),
                cores: 2,
                memory_bytes: 8 << 30,
                system: "Linux 6.1".to_owned(),
                fsync_us: 812.0,
            },
        };
        let mut results = Vec::new();
        for (target, speed) in targets {
            results.extend((0..repeat).map(|repeat| result(target, *speed, repeat)));
        }
        Self {
            configuration,
            results,
        }
    }

    /// The step of `target` with the question `question`, in every repetition.
    pub(crate) fn question(
        &mut self,
        target: &str,
        question: &str,
        change: impl Fn(&mut StepResult),
    ) {
        let results = self
            .results
            .iter_mut()
            .filter(|result| result.target == target);
        let steps = results.flat_map(|result| &mut result.steps);
        let of = |step: &&mut StepResult| {
            step.knobs
                .get("question")
                .is_some_and(|own| own == question)
        };
        steps.filter(of).for_each(change);
    }

    /// Writes everything to `folder`.
    pub(crate) fn write(&self, folder: &Path) {
        store(&folder.join("lab.json"), &self.configuration);
        store(&folder.join("plans/rehearsal.json"), &plan());
        for result in &self.results {
            let run = folder
                .join("runs/rehearsal/all")
                .join(&result.target)
                .join(result.repeat.to_string());
            store(&run.join("result.json"), result);
            samples(&run.join("resources.parquet"), &result.target);
        }
    }
}

fn store(path: &Path, value: &impl serde::Serialize) {
    fs::create_dir_all(path.parent().expect("paths have a folder")).expect("create folder");
    fs::write(path, serde_json::to_vec(value).expect("serialize")).expect("write file");
}

fn samples(path: &Path, target: &str) {
    let at: Vec<f64> = (0..60).map(f64::from).collect();
    let speed = target.len() as f64 / 10.0;
    let cpu: Vec<f64> = at
        .iter()
        .map(|at| at * speed + (at / 5.0).sin().abs())
        .collect();
    let rss: Vec<i64> = at
        .iter()
        .map(|at| ((80.0 + at * speed) * 1e6) as i64)
        .collect();
    let server = target != "embedded";
    let own = |values: &[f64]| -> Float64Array {
        values
            .iter()
            .map(|value| server.then_some(*value))
            .collect()
    };
    let resident: Int64Array = rss.iter().map(|value| server.then_some(*value)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("at_s", Arc::new(Float64Array::from(at.clone()))),
        ("server_cpu_s", Arc::new(own(&cpu))),
        ("server_rss_bytes", Arc::new(resident)),
        ("client_cpu_s", Arc::new(Float64Array::from(cpu))),
        ("client_rss_bytes", Arc::new(Int64Array::from(rss))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .expect("columns have one length");
    let file = File::create(path).expect("create file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("schema");
    writer.write(&batch).expect("write samples");
    writer.close().expect("close");
}

fn result(target: &str, speed: f64, repeat: usize) -> RunResult {
    let noise = 1.0 + 0.02 * ((repeat * 7 + target.len() * 3) % 5) as f64 / 5.0;
    let speed = speed * noise;
    let mut steps = Vec::new();
    for batch in BATCHES {
        for clients in CLIENTS {
            let n: f64 = clients.parse().expect("clients are numbers");
            let rows: f64 = batch.parse().expect("batches are numbers");
            let rate = speed * 1e5 * n.powf(0.4) * rows.powf(0.2);
            let ms = rows * n / rate * 1e3;
            steps.push(StepResult {
                knobs: knobs(&[("clients", clients), ("batch_rows", batch)]),
                figures: BTreeMap::from([("rows_per_s".to_owned(), rate)]),
                latency: Some(latency(ms)),
                resources: Some(resources(target, repeat)),
                ..StepResult::default()
            });
        }
    }
    steps.push(StepResult {
        knobs: knobs(&[("set", "S")]),
        figures: BTreeMap::from([("bytes_per_row".to_owned(), 10.0 / speed.sqrt())]),
        ..StepResult::default()
    });
    let asks = if target == "null" {
        &[][..]
    } else {
        &QUESTIONS[..]
    };
    for (index, question) in asks.iter().enumerate() {
        let ms = 0.8 * 6.0_f64.powi(index as i32) / speed;
        let mut step = StepResult {
            knobs: knobs(&[("question", question)]),
            figures: BTreeMap::from([("latency_ms".to_owned(), ms)]),
            latency: Some(latency(ms)),
            resources: Some(resources(target, repeat)),
            verdict: Verdict::Right,
            ..StepResult::default()
        };
        if *question == "top" {
            step.verdict = Verdict::Unchecked;
            step.answers = vec![answer(&[1.0, 2.0]), answer(&[3.0])];
        }
        steps.push(step);
    }
    for (index, step) in steps.iter_mut().enumerate() {
        step.step = index.min(9);
    }
    RunResult {
        study: STUDY.name.to_owned(),
        setup: "all".to_owned(),
        target: target.to_owned(),
        repeat,
        facts: Some(TargetFacts {
            version: format!("{target} 1.{repeat}"),
            path: "rows over HTTP; SQL".to_owned(),
            durability: "fsync before acknowledgement".to_owned(),
            notes: String::new(),
        }),
        started: "2026-06-01T12:00:00Z".to_owned(),
        seconds: 60.0,
        steps,
        failed: None,
    }
}

/// An answer of one column.
pub(crate) fn answer(numbers: &[f64]) -> Answer {
    Answer {
        rows: numbers
            .iter()
            .map(|number| vec![Cell::Number(*number)])
            .collect(),
    }
}

fn latency(ms: f64) -> Latency {
    Latency {
        count: 1000,
        mean: ms * 1.1,
        p50: ms,
        p95: ms * 1.6,
        p99: ms * 2.4,
        p999: ms * 6.0,
        max: ms * 20.0,
        slowest_client: ms * 1.3,
    }
}

fn resources(target: &str, repeat: usize) -> Resources {
    let usage = |factor: f64| Usage {
        cpu_s: factor * (1.0 + repeat as f64 / 50.0),
        rss_bytes: (factor * 5e8) as u64,
        read_bytes: 4096,
        write_bytes: (factor * 3e8) as u64,
    };
    Resources {
        seconds: 2.0,
        server: (target != "embedded").then(|| usage(1.5)),
        client: usage(0.4),
        page_cache_bytes: 1 << 30,
    }
}
