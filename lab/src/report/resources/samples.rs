//! Reads `resources.parquet`: one row a sample, counters since the monitor began.

use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// The samples of a run.
pub(super) struct Samples {
    /// Time since the monitor began, seconds.
    pub at_s: Vec<f64>,
    server_cpu_s: Vec<Option<f64>>,
    server_rss_bytes: Vec<Option<f64>>,
    client_cpu_s: Vec<Option<f64>>,
    client_rss_bytes: Vec<Option<f64>>,
}

impl Samples {
    /// Number of samples.
    pub(super) fn len(&self) -> usize {
        self.at_s.len()
    }

    /// Whether the server has processes of its own.
    pub(super) fn has_server(&self) -> bool {
        self.server_cpu_s.iter().any(Option::is_some)
    }

    /// Processor time of the server, or of the client that contains it, seconds.
    pub(super) fn cpu_s(&self, at: usize) -> f64 {
        let side = if self.has_server() {
            &self.server_cpu_s
        } else {
            &self.client_cpu_s
        };
        side[at].unwrap_or(0.0)
    }

    /// Resident memory of the same, bytes.
    pub(super) fn rss_bytes(&self, at: usize) -> f64 {
        let side = if self.has_server() {
            &self.server_rss_bytes
        } else {
            &self.client_rss_bytes
        };
        side[at].unwrap_or(0.0)
    }
}

/// Reads the samples of a run; `None` if it has none.
pub(super) fn read(path: &Path) -> Result<Option<Samples>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("open {}", path.display())),
    };
    let damaged = || format!("{} is not a Parquet file of samples", path.display());
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).with_context(damaged)?;
    let mut samples = Samples {
        at_s: Vec::new(),
        server_cpu_s: Vec::new(),
        server_rss_bytes: Vec::new(),
        client_cpu_s: Vec::new(),
        client_rss_bytes: Vec::new(),
    };
    for batch in reader.build().with_context(damaged)? {
        let batch = batch.with_context(damaged)?;
        samples.at_s.extend(
            column(&batch, "at_s")
                .into_iter()
                .map(|at| at.unwrap_or(0.0)),
        );
        samples.server_cpu_s.extend(column(&batch, "server_cpu_s"));
        samples
            .server_rss_bytes
            .extend(column(&batch, "server_rss_bytes"));
        samples.client_cpu_s.extend(column(&batch, "client_cpu_s"));
        samples
            .client_rss_bytes
            .extend(column(&batch, "client_rss_bytes"));
    }
    Ok(Some(samples))
}

/// The numbers of a column; empty if the file has no such column.
fn column(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    let Some(column) = batch.column_by_name(name) else {
        return vec![None; batch.num_rows()];
    };
    match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().collect(),
        DataType::Int64 => {
            let numbers = column.as_primitive::<Int64Type>().iter();
            numbers
                .map(|number| number.map(|number| number as f64))
                .collect()
        }
        DataType::UInt64 => {
            let numbers = column.as_primitive::<UInt64Type>().iter();
            numbers
                .map(|number| number.map(|number| number as f64))
                .collect()
        }
        _ => vec![None; column.len()],
    }
}
