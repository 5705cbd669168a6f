//! A laboratory made of fakes, in a temporary folder.

use super::fakes::{Small, expect, kind};
use crate::record::RunResult;
use crate::run::{Means, Order, Outcome, run_with};
use crate::study::{Plan, Scale, Study};
use crate::target::Settings;
use anyhow::Result;
use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A laboratory in a temporary folder.
pub(super) struct Lab {
    folder: tempfile::TempDir,
    pub(super) order: Order,
    pub(super) round_bytes: usize,
    pub(super) stop: AtomicBool,
}

impl Lab {
    pub(super) fn new(plan: fn(Scale) -> Plan, targets: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let study = Study {
            name: "study",
            title: "",
            about: "",
            source: "",
            plan,
        };
        let target = |name: &&'static str| {
            let log = folder.path().join("log").display().to_string();
            let settings = Settings {
                url: Some(log),
                ..Settings::default()
            };
            (kind(name), settings)
        };
        let order = Order {
            studies: vec![study],
            targets: targets.iter().map(target).collect(),
            scale: Scale::Tiny,
            repeat: 1,
            seed: 1,
            out: folder.path().join("out"),
            data: None,
            command: "lab run study".to_owned(),
            quiet: true,
        };
        Self {
            folder,
            order,
            round_bytes: 1 << 20,
            stop: AtomicBool::new(false),
        }
    }

    pub(super) fn run(&self) -> Result<Outcome> {
        let means = Means {
            build: &|_, _| Arc::new(Small::new()),
            expect: Arc::new(expect),
            round_bytes: self.round_bytes,
        };
        run_with(&self.order, &means, &self.stop)
    }

    /// Targets in the order in which they started since the last call.
    pub(super) fn started(&self) -> Vec<String> {
        let log = self.folder.path().join("log");
        let lines = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        lines.lines().map(str::to_owned).collect()
    }

    pub(super) fn folder(&self, setup: &str, target: &str, repeat: usize) -> PathBuf {
        let runs = self.order.out.join("runs/study");
        runs.join(setup).join(target).join(repeat.to_string())
    }

    pub(super) fn result(&self, setup: &str, target: &str, repeat: usize) -> RunResult {
        let file = self.folder(setup, target, repeat).join("result.json");
        let text = std::fs::read(file).expect("a result");
        serde_json::from_slice(&text).expect("a result")
    }

    /// All of `operations.parquet`, one batch per row group.
    pub(super) fn operations(&self, setup: &str, target: &str) -> Vec<RecordBatch> {
        let file = self.folder(setup, target, 0).join("operations.parquet");
        let file = std::fs::File::open(file).expect("samples");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
        let batches = reader.build().expect("a reader");
        batches.map(|batch| batch.expect("a batch")).collect()
    }

    /// Latencies of the requests of one kind, milliseconds, in the order of their starts.
    pub(super) fn latencies_ms(&self, setup: &str, target: &str, kind: &str) -> Vec<f64> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::{Float64Type, Int64Type};
        let mut all: Vec<(i64, f64)> = Vec::new();
        for batch in self.operations(setup, target) {
            let of = |name| batch.column_by_name(name).expect("a column");
            let (kinds, starts) = (of("kind").as_string::<i32>(), of("start_us"));
            let starts = starts.as_primitive::<Int64Type>();
            let latencies = of("latency_us").as_primitive::<Float64Type>();
            let rows = (0..batch.num_rows()).filter(|row| kinds.value(*row) == kind);
            all.extend(rows.map(|row| (starts.value(row), latencies.value(row) / 1e3)));
        }
        all.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        all.into_iter().map(|(_, latency)| latency).collect()
    }
}
