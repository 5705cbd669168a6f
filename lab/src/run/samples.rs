//! The raw samples of a run, as Parquet: `operations.parquet` and `resources.parquet`.
//!
//! Both count time from the same moment, when the target had started. Memory is bounded: a client
//! that makes more requests in a step than its share of [`OPERATIONS_MAX`] stores every second,
//! fourth, eighth … of them, and the column `weight` is the number of requests that a row
//! represents.

use crate::monitor::Sample;
use crate::record::Usage;
use anyhow::{Context, Result};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Approximate number of requests of one run that are stored individually.
pub(super) const OPERATIONS_MAX: usize = 2_000_000;

/// Rows that become one Arrow batch on their way to disk.
const CHUNK_ROWS: usize = 65_536;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Index of its kind among those of the step.
    pub(super) kind: usize,
    /// When it began, or by its schedule should have begun.
    pub(super) start_us: i64,
    /// Latency; `None`: it failed.
    pub(super) latency_us: Option<f64>,
    /// Rows written, or rows of the answer as far as known.
    pub(super) rows: u32,
}

/// Requests of one client in one step.
pub(super) struct Samples {
    client: usize,
    max: usize,
    every: u32,
    seen: u64,
    operations: Vec<Operation>,
}

impl Samples {
    pub(super) fn new(client: usize, max: usize) -> Self {
        Self {
            client,
            max: max.max(2),
            every: 1,
            seen: 0,
            operations: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, operation: Operation) {
        if self.seen.is_multiple_of(u64::from(self.every)) {
            if self.operations.len() == self.max {
                // The rest are again every `every`-th request, from the first on.
                let mut keep = false;
                self.operations.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.every = self.every.saturating_mul(2);
            }
            if self.seen.is_multiple_of(u64::from(self.every)) {
                self.operations.push(operation);
            }
        }
        self.seen += 1;
    }
}

/// The writer of `operations.parquet`.
pub(super) struct Operations {
    writer: ArrowWriter<File>,
    schema: Arc<Schema>,
}

impl Operations {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("step", DataType::UInt32, false),
            Field::new("client", DataType::UInt32, false),
            Field::new("kind", DataType::Utf8, false),
            Field::new("start_us", DataType::Int64, false),
            Field::new("latency_us", DataType::Float64, true),
            Field::new("rows", DataType::UInt32, false),
            Field::new("ok", DataType::Boolean, false),
            Field::new("weight", DataType::UInt32, false),
        ]));
        let path = folder.join("operations.parquet");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), None)?;
        Ok(Self { writer, schema })
    }

    /// Adds a client's requests in `step`; `kinds` are the names of their kinds.
    pub(super) fn append(&mut self, step: usize, kinds: &[&str], samples: &Samples) -> Result<()> {
        for chunk in samples.operations.chunks(CHUNK_ROWS) {
            let of = |value: usize| UInt32Array::from(vec![value as u32; chunk.len()]);
            let each = chunk.iter();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(of(step)),
                Arc::new(of(samples.client)),
                Arc::new(
                    each.clone()
                        .map(|o| Some(kinds[o.kind]))
                        .collect::<StringArray>(),
                ),
                Arc::new(each.clone().map(|o| o.start_us).collect::<Int64Array>()),
                Arc::new(each.clone().map(|o| o.latency_us).collect::<Float64Array>()),
                Arc::new(each.clone().map(|o| o.rows).collect::<UInt32Array>()),
                Arc::new(
                    each.map(|o| Some(o.latency_us.is_some()))
                        .collect::<BooleanArray>(),
                ),
                Arc::new(of(samples.every as usize)),
            ];
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
            self.writer.write(&batch)?;
        }
        Ok(())
    }

    pub(super) fn close(self) -> Result<()> {
        self.writer.close()?;
        Ok(())
    }
}

/// A counter of [`Usage`].
type Counter = fn(&Usage) -> u64;

/// Writes `resources.parquet`; the columns of the server are null where there is none.
pub(super) fn resources(folder: &Path, samples: &[Sample]) -> Result<()> {
    let mut fields = vec![Field::new("at_s", DataType::Float64, false)];
    let at: Float64Array = samples.iter().map(|sample| sample.at_s).collect();
    let mut columns: Vec<ArrayRef> = vec![Arc::new(at)];
    let counters: [(&str, Counter); 3] = [
        ("rss_bytes", |usage| usage.rss_bytes),
        ("read_bytes", |usage| usage.read_bytes),
        ("write_bytes", |usage| usage.write_bytes),
    ];
    for side in ["server", "client"] {
        let usage = |sample: &Sample| match side {
            "server" => sample.server,
            _ => Some(sample.client),
        };
        let cpu: Float64Array = samples.iter().map(|s| usage(s).map(|u| u.cpu_s)).collect();
        fields.push(Field::new(format!("{side}_cpu_s"), DataType::Float64, true));
        columns.push(Arc::new(cpu));
        for (name, counter) in counters {
            let values: UInt64Array = samples
                .iter()
                .map(|sample| usage(sample).map(|usage| counter(&usage)))
                .collect();
            fields.push(Field::new(format!("{side}_{name}"), DataType::UInt64, true));
            columns.push(Arc::new(values));
        }
    }
    let cache: UInt64Array = samples.iter().map(|s| Some(s.page_cache_bytes)).collect();
    fields.push(Field::new("page_cache_bytes", DataType::UInt64, false));
    columns.push(Arc::new(cache));
    let schema = Arc::new(Schema::new(fields));
    let path = folder.join("resources.parquet");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), None)?;
    writer.write(&RecordBatch::try_new(schema, columns)?)?;
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_client_keeps_every_kth_request() {
        let mut samples = Samples::new(0, 8);
        for at in 0..1000 {
            samples.push(Operation {
                kind: 0,
                start_us: at,
                latency_us: None,
                rows: 0,
            });
        }
        assert!(samples.operations.len() <= 8 && samples.operations.len() >= 4);
        let every = i64::from(samples.every);
        for (index, operation) in samples.operations.iter().enumerate() {
            assert_eq!(operation.start_us, index as i64 * every);
        }
    }
}
