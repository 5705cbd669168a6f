//! Fills whole groups, batch by batch, with the missing buckets inserted.

use super::groups::WholeGroups;
use super::interpolation::{FillSource, draw};
use super::node::FillMethod;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatchOptions, TimestampNanosecondArray,
    UInt32Array, new_null_array,
};
use arrow::compute::kernels::zip::zip;
use arrow::compute::take;
use arrow::datatypes::{SchemaRef, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::physical_expr::PhysicalExpr;
use marigram_functions::TimeBuckets;
use std::sync::Arc;

/// The columns to fill.
#[derive(Debug)]
pub(super) struct GapFillLayout {
    /// The columns of the input, then the filled columns.
    pub schema: SchemaRef,
    /// The indexes of the input's key columns, without the bucket.
    pub keys: Vec<usize>,
    /// The index of the input's bucket column.
    pub bucket: usize,
    /// Expressions over the input's columns, and how to fill them.
    pub fills: Vec<(Arc<dyn PhysicalExpr>, FillMethod)>,
}

/// A row of the output.
#[derive(Clone, Copy)]
struct GapFillRow {
    /// The first row of its group.
    group: u32,
    /// Its bucket.
    time: Option<i64>,
    /// The input row, if there is one.
    row: Option<u32>,
    /// The input row at or before this one, in the group.
    before: Option<u32>,
    /// The input row at or after this one, in the group.
    after: Option<u32>,
}

/// A column to fill.
struct GapFillColumn {
    values: ArrayRef,
    how: FillMethod,
    /// For each row, the last row up to it that has a value; used if nulls are missing values.
    last: Vec<Option<u32>>,
    /// For each row, the first row from it on that has a value.
    next: Vec<Option<u32>>,
}

/// Groups that are being filled.
pub(super) struct GapFiller {
    shape: Arc<GapFillLayout>,
    rows: RecordBatch,
    ends: Vec<usize>,
    columns: Vec<GapFillColumn>,
    times: TimestampNanosecondArray,
    buckets: TimeBuckets,
    /// The first and last bucket to fill; `None` for an empty range.
    range: Option<(i64, i64)>,
    /// The number of finished groups.
    done: usize,
    /// The first row of the group, and the next row to process.
    start: usize,
    row: usize,
    /// The next bucket that must be present.
    due: Option<i64>,
}

impl GapFiller {
    /// Starts to fill groups.
    ///
    /// # Errors
    /// If a value cannot be evaluated.
    pub(super) fn new(
        shape: Arc<GapFillLayout>,
        whole: WholeGroups,
        buckets: TimeBuckets,
        range: Option<(i64, i64)>,
    ) -> Result<Self> {
        let WholeGroups { rows, ends } = whole;
        if u32::try_from(rows.num_rows()).is_err() {
            return Err(exec_datafusion_err!("a group has too many rows to fill"));
        }
        let times = rows
            .column(shape.bucket)
            .as_primitive_opt::<TimestampNanosecondType>();
        let times = times
            .cloned()
            .ok_or_else(|| exec_datafusion_err!("a bucket is not a time"))?;
        let columns = shape.fills.iter().map(|(value, how)| {
            let values = value.evaluate(&rows)?.into_array(rows.num_rows())?;
            let by_value = matches!(how, FillMethod::Locf(true) | FillMethod::Interpolate(true));
            let (last, next) = if by_value {
                neighbours(&values, &times, &ends)
            } else {
                (Vec::new(), Vec::new())
            };
            Ok(GapFillColumn {
                values,
                how: how.clone(),
                last,
                next,
            })
        });
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            due: range.map(|(first, _)| first),
            shape,
            rows,
            ends,
            times,
            buckets,
            range,
            done: 0,
            start: 0,
            row: 0,
        })
    }

    /// The next batch, of at most `most` rows; `None` when all groups are finished.
    ///
    /// # Errors
    /// If a bucket is outside the range of times.
    pub(super) fn next_batch(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let mut spaced = Vec::new();
        while spaced.len() < most
            && let Some(next) = self.next_row()?
        {
            spaced.push(next);
        }
        if spaced.is_empty() {
            return Ok(None);
        }
        self.answer(&spaced).map(Some)
    }

    fn next_row(&mut self) -> Result<Option<GapFillRow>> {
        loop {
            let Some(end) = self.ends.get(self.done).copied() else {
                return Ok(None);
            };
            let is_there = self.row < end;
            let has_time = is_there && self.times.is_valid(self.row);
            let time = has_time.then(|| self.times.value(self.row));
            let is_gap = match (self.due, time) {
                (Some(due), Some(time)) => due < time,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let before = (self.row > self.start).then(|| index(self.row - 1));
            let next = has_time.then(|| index(self.row));
            if is_gap {
                let time = self.due;
                self.advance()?;
                return Ok(Some(GapFillRow {
                    group: index(self.start),
                    time,
                    row: None,
                    before,
                    after: next,
                }));
            }
            if is_there {
                if time.is_some() && time == self.due {
                    self.advance()?;
                }
                let row = index(self.row);
                self.row += 1;
                return Ok(Some(GapFillRow {
                    group: index(self.start),
                    time,
                    row: Some(row),
                    before: Some(row),
                    after: Some(row),
                }));
            }
            self.done += 1;
            self.start = end;
            self.due = self.range.map(|(first, _)| first);
        }
    }

    fn advance(&mut self) -> Result<()> {
        if let (Some(due), Some((_, last))) = (self.due, self.range) {
            let next = self.buckets.next(due);
            let next = next.map_err(|reason| {
                DataFusionError::Execution(format!("time_bucket_gapfill: {reason}"))
            })?;
            // Buckets that do not advance would never end.
            self.due = next.filter(|next| due < *next && *next <= last);
        }
        Ok(())
    }

    fn answer(&self, spaced: &[GapFillRow]) -> Result<RecordBatch> {
        let groups: UInt32Array = spaced.iter().map(|s| Some(s.group)).collect();
        let rows: UInt32Array = spaced.iter().map(|s| s.row).collect();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.shape.schema.fields().len());
        for (at, column) in self.rows.columns().iter().enumerate() {
            columns.push(if at == self.shape.bucket {
                let times: TimestampNanosecondArray = spaced.iter().map(|s| s.time).collect();
                Arc::new(times.with_data_type(column.data_type().clone()))
            } else if self.shape.keys.contains(&at) {
                picked(column, &groups)?
            } else {
                picked(column, &rows)?
            });
        }
        for column in &self.columns {
            columns.push(self.filled(column, spaced, &rows)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(spaced.len()));
        let schema = Arc::clone(&self.shape.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    fn filled(
        &self,
        column: &GapFillColumn,
        spaced: &[GapFillRow],
        rows: &UInt32Array,
    ) -> Result<ArrayRef> {
        let last = |row: u32| column.last[row as usize];
        let next = |row: u32| column.next[row as usize];
        match &column.how {
            FillMethod::Locf(false) => {
                let from: UInt32Array = spaced.iter().map(|s| s.before).collect();
                picked(&column.values, &from)
            }
            FillMethod::Locf(true) => {
                let from: UInt32Array = spaced.iter().map(|s| s.before.and_then(last)).collect();
                picked(&column.values, &from)
            }
            FillMethod::Interpolate(nulls) => {
                let spots: Vec<FillSource> = spaced
                    .iter()
                    .map(|s| match (s.row, nulls) {
                        (Some(row), false) => FillSource::Row(row),
                        (None, false) => self.between(s.time, s.before, s.after),
                        (Some(row), true) if column.values.is_valid(row as usize) => {
                            FillSource::Row(row)
                        }
                        (_, true) => {
                            let before = s.before.and_then(last);
                            self.between(s.time, before, s.after.and_then(next))
                        }
                    })
                    .collect();
                draw(&column.values, &spots)
            }
            FillMethod::Value(value) => {
                let there: BooleanArray = spaced.iter().map(|s| Some(s.row.is_some())).collect();
                let value = value.cast_to(column.values.data_type())?;
                let there_is = picked(&column.values, rows)?;
                Ok(zip(&there, &there_is, &value.to_scalar()?)?)
            }
        }
    }

    fn between(&self, time: Option<i64>, before: Option<u32>, after: Option<u32>) -> FillSource {
        let at = |row: u32| {
            let row = row as usize;
            self.times
                .is_valid(row)
                .then(|| i128::from(self.times.value(row)))
        };
        let ends = before.zip(after).and_then(|(before, after)| {
            let (first, last) = (at(before)?, at(after)?);
            let done = i128::from(time?) - first;
            (first < last).then_some(FillSource::Between(before, after, done, last - first))
        });
        ends.unwrap_or(FillSource::Nothing)
    }
}

/// For each row, the last row of its group up to it that has a value and a time, and the first such
/// row from it on.
fn neighbours(
    values: &ArrayRef,
    times: &TimestampNanosecondArray,
    ends: &[usize],
) -> (Vec<Option<u32>>, Vec<Option<u32>>) {
    let has = |row: usize| values.is_valid(row) && times.is_valid(row);
    let (mut last, mut next) = (Vec::with_capacity(values.len()), vec![None; values.len()]);
    let mut start = 0;
    for end in ends {
        let mut known = None;
        for row in start..*end {
            known = if has(row) { Some(index(row)) } else { known };
            last.push(known);
        }
        let mut known = None;
        for (row, next) in next.iter_mut().enumerate().take(*end).skip(start).rev() {
            known = if has(row) { Some(index(row)) } else { known };
            *next = known;
        }
        start = *end;
    }
    (last, next)
}

/// The values of rows; nulls if there are no values.
fn picked(values: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    if values.is_empty() {
        return Ok(new_null_array(values.data_type(), rows.len()));
    }
    Ok(take(values, rows, None)?)
}

/// The rows were counted when they arrived.
fn index(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
