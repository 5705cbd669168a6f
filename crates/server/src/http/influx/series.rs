//! Batches cut into series.
//!
//! A batch has a column for the measurement, columns for the tags of GROUP BY, and the columns that are
//! shown, each with its role in its metadata. The rows of a series stand together.
//!
//! Answers of SHOW have no time. Among them, a row whose shown columns are all null stands for a series
//! without rows. Where the schema's metadata has [`SPARSE_KEY`], columns that are null in the first row
//! of a series are no columns of it.

use super::columns::{InfluxColumn, InfluxValue};
use arrow::array::{Array, ArrayRef};
use arrow::compute::partition;
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use marigram_service::ROLE_KEY;
use std::ops::Range;

/// Key of the metadata of a schema whose series have different columns.
pub(super) const SPARSE_KEY: &str = "marigram.sparse";

/// What the rows of one series have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeriesHeader {
    /// The measurement; empty if there is none.
    pub name: String,
    /// Tags of GROUP BY, ascending by key; a tag that is missing is empty.
    pub tags: Vec<(String, String)>,
    /// Names of the columns that are shown.
    pub columns: Vec<String>,
}

/// What the columns of batches are.
#[derive(Debug)]
pub(super) struct SeriesLayout {
    measurement: Option<usize>,
    /// Key and column, ascending by key.
    tags: Vec<(String, usize)>,
    /// Name and column.
    shown: Vec<(String, usize)>,
    has_time: bool,
    is_sparse: bool,
}

/// Rows of a batch that belong to one series.
#[derive(Debug)]
pub(super) struct SeriesRows {
    /// The series.
    pub header: SeriesHeader,
    /// Which of the batch's shown columns it has.
    pub columns: Vec<usize>,
    /// Its rows in the batch.
    pub rows: Range<usize>,
}

impl SeriesLayout {
    /// The layout of batches with this schema.
    pub(super) fn new(schema: &Schema) -> Self {
        let role = |field: &Field| field.metadata().get(ROLE_KEY).cloned().unwrap_or_default();
        let mut layout = Self {
            measurement: None,
            tags: Vec::new(),
            shown: Vec::new(),
            has_time: false,
            is_sparse: schema.metadata().contains_key(SPARSE_KEY),
        };
        for (at, field) in schema.fields().iter().enumerate() {
            let named = (field.name().clone(), at);
            match role(field).as_str() {
                "measurement" => layout.measurement = Some(at),
                "tag" => layout.tags.push(named),
                "time" => {
                    layout.has_time = true;
                    layout.shown.push(named);
                }
                _ => layout.shown.push(named),
            }
        }
        layout.tags.sort();
        layout
    }

    /// The shown columns of a batch.
    ///
    /// # Errors
    /// If their values cannot be cast.
    pub(super) fn columns(&self, batch: &RecordBatch) -> Result<Vec<InfluxColumn>, ArrowError> {
        let shown = self.shown.iter();
        shown
            .map(|(_, at)| InfluxColumn::new(batch.column(*at)))
            .collect()
    }

    /// The series of a batch, in order. The rows of a series without rows are an empty range.
    ///
    /// # Errors
    /// If the values cannot be cast or compared.
    pub(super) fn series(
        &self,
        batch: &RecordBatch,
        columns: &[InfluxColumn],
    ) -> Result<Vec<SeriesRows>, ArrowError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let key = |at: &usize| InfluxColumn::new(batch.column(*at));
        let measurement = self.measurement.as_ref().map(key).transpose()?;
        let tags = self.tags.iter().map(|(_, at)| key(at));
        let tags: Vec<_> = tags.collect::<Result<_, _>>()?;
        let mut all = Vec::new();
        for rows in self.ranges(batch)? {
            let first = rows.start;
            let is_null = |column: &&InfluxColumn| column.value(first) == InfluxValue::Null;
            let is_empty = !self.has_time && columns.iter().all(|column| is_null(&column));
            let is_column = |at: &usize| !self.is_sparse || !is_null(&&columns[*at]);
            let of_series: Vec<usize> = (0..columns.len()).filter(is_column).collect();
            let named = self.tags.iter().zip(&tags);
            let header = SeriesHeader {
                name: measurement
                    .as_ref()
                    .map_or("", |column| column.text(first))
                    .to_owned(),
                tags: named
                    .map(|((key, _), column)| (key.clone(), column.text(first).to_owned()))
                    .collect(),
                columns: of_series
                    .iter()
                    .map(|at| self.shown[*at].0.clone())
                    .collect(),
            };
            let rows = if is_empty { first..first } else { rows };
            all.push(SeriesRows {
                header,
                columns: of_series,
                rows,
            });
        }
        Ok(all)
    }

    /// Where measurement and tags stay the same.
    fn ranges(&self, batch: &RecordBatch) -> Result<Vec<Range<usize>>, ArrowError> {
        let keys = self.tags.iter().map(|(_, at)| *at).chain(self.measurement);
        let keys: Vec<ArrayRef> = keys.map(|at| batch.column(at).clone()).collect();
        if keys.is_empty() {
            return Ok(std::iter::once(0..batch.num_rows()).collect());
        }
        debug_assert!(keys.iter().all(|key| key.len() == batch.num_rows()));
        Ok(partition(&keys)?.ranges())
    }
}
