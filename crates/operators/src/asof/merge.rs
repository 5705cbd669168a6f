//! The merge: reads both sides in the order of keys and time, and finds the match of each left row.

use super::node::AsOfCondition;
use arrow::array::{Array, ArrayRef, Int64Array, RecordBatchOptions, new_null_array};
use arrow::compute::{SortOptions, cast, interleave};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use futures::StreamExt;
use std::cmp::Ordering;
use std::sync::Arc;

/// The largest number of right batches that contribute to one output batch.
const HELD_MAX: usize = 16;

/// The expressions by which a side is compared.
#[derive(Clone, Debug)]
pub(super) struct AsOfKeys {
    /// Keys.
    pub keys: Vec<Arc<dyn PhysicalExpr>>,
    /// The time.
    pub time: Arc<dyn PhysicalExpr>,
}

/// A batch of a side, with its keys and times.
struct AsOfBatch {
    number: usize,
    batch: RecordBatch,
    keys: Option<Rows>,
    /// Whether a key is null; such a row matches nothing.
    without_key: Vec<bool>,
    times: Int64Array,
}

/// A side of the join, and the position in it.
pub(super) struct AsOfSide {
    stream: SendableRecordBatchStream,
    by: AsOfKeys,
    kinds: Vec<DataType>,
    converter: Option<RowConverter>,
    forward: bool,
    current: Option<Arc<AsOfBatch>>,
    row: usize,
    number: usize,
    ended: bool,
}

impl AsOfSide {
    /// Reads `stream`, whose keys have the types `kinds`.
    ///
    /// # Errors
    /// If keys cannot be compared.
    pub(super) fn new(
        stream: SendableRecordBatchStream,
        by: AsOfKeys,
        kinds: &[DataType],
        forward: bool,
    ) -> Result<Self> {
        let options = SortOptions {
            descending: false,
            nulls_first: false,
        };
        let fields = kinds
            .iter()
            .map(|kind| SortField::new_with_options(kind.clone(), options));
        let converter = match kinds {
            [] => None,
            _ => Some(RowConverter::new(fields.collect())?),
        };
        Ok(Self {
            stream,
            by,
            kinds: kinds.to_vec(),
            converter,
            forward,
            current: None,
            row: 0,
            number: 0,
            ended: false,
        })
    }

    /// Reads on if the batch has no more rows; returns whether there is a row.
    async fn ready(&mut self) -> Result<bool> {
        while !self.ended
            && self
                .current
                .as_ref()
                .is_none_or(|current| self.row >= current.batch.num_rows())
        {
            self.row = 0;
            self.current = match self.stream.next().await {
                Some(batch) => Some(Arc::new(self.rowed(batch?)?)),
                None => {
                    self.ended = true;
                    None
                }
            };
        }
        Ok(self.current.is_some())
    }

    fn rowed(&mut self, batch: RecordBatch) -> Result<AsOfBatch> {
        let rows = batch.num_rows();
        let of = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&batch)?.into_array(rows);
        let keys = self.by.keys.iter().zip(&self.kinds).map(|(key, kind)| {
            let key = of(key)?;
            if key.data_type() == kind {
                return Ok(key);
            }
            Ok(cast(&key, kind)?)
        });
        let keys = keys.collect::<Result<Vec<ArrayRef>>>()?;
        let mut without_key = vec![false; rows];
        for key in &keys {
            if let Some(nulls) = key.logical_nulls() {
                for (row, without) in without_key.iter_mut().enumerate() {
                    *without |= nulls.is_null(row);
                }
            }
        }
        let times = cast(&of(&self.by.time)?, &DataType::Int64)?;
        let times = datafusion::common::cast::as_int64_array(&times)?;
        // With inverted times, the next row becomes the last one.
        let times = if self.forward {
            times.unary(|time: i64| !time)
        } else {
            times.clone()
        };
        let keys = match &self.converter {
            Some(converter) => Some(converter.convert_columns(&keys)?),
            None => None,
        };
        self.number += 1;
        Ok(AsOfBatch {
            number: self.number,
            batch,
            keys,
            without_key,
            times,
        })
    }
}

fn compare(one: &AsOfBatch, row: usize, other: &AsOfBatch, other_row: usize) -> Ordering {
    match (&one.keys, &other.keys) {
        (Some(keys), Some(others)) => keys.row(row).cmp(&others.row(other_row)),
        _ => Ordering::Equal,
    }
}

/// A merge of two sides.
pub(super) struct AsOfMerge {
    /// The rows for which matches are sought.
    pub left: AsOfSide,
    /// The rows that may match.
    pub right: AsOfSide,
    /// The condition of a match.
    pub matching: AsOfCondition,
    /// The columns of the left side, then those of the right side.
    pub schema: SchemaRef,
    /// Columns of the right side.
    pub right_schema: SchemaRef,
    /// The last row of the right side with the same keys that is not after the row of the left
    /// side.
    pub found: AsOfMatch,
}

/// A row of the right side.
#[derive(Default)]
pub(super) struct AsOfMatch(Option<(Arc<AsOfBatch>, usize)>);

impl AsOfMerge {
    /// The next batch of the answer.
    ///
    /// # Errors
    /// If a side fails.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if !self.left.ready().await? {
            return Ok(None);
        }
        let Some(left) = self.left.current.clone() else {
            return Ok(None);
        };
        let start = self.left.row;
        let mut held: Vec<Arc<AsOfBatch>> = Vec::new();
        // Index 0 is a null.
        let mut places: Vec<(usize, usize)> = Vec::new();
        while self.left.row < left.batch.num_rows() && held.len() < HELD_MAX {
            let row = self.left.row;
            let place = match self.look_up(&left, row).await? {
                None => (0, 0),
                Some((from, at)) => {
                    let known = held.last().is_some_and(|last| last.number == from.number);
                    if !known {
                        held.push(from);
                    }
                    (held.len(), at)
                }
            };
            places.push(place);
            self.left.row += 1;
        }
        let mut columns = left.batch.slice(start, places.len()).columns().to_vec();
        for (at, field) in self.right_schema.fields().iter().enumerate() {
            let nothing = new_null_array(field.data_type(), 1);
            let mut values: Vec<&dyn Array> = vec![nothing.as_ref()];
            values.extend(held.iter().map(|held| held.batch.column(at).as_ref()));
            columns.push(interleave(&values, &places)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
        let schema = Arc::clone(&self.schema);
        Ok(Some(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?))
    }

    async fn look_up(
        &mut self,
        left: &Arc<AsOfBatch>,
        row: usize,
    ) -> Result<Option<(Arc<AsOfBatch>, usize)>> {
        if left.without_key[row] || left.times.is_null(row) {
            return Ok(None);
        }
        let time = left.times.value(row);
        let same = |(found, at): &(Arc<AsOfBatch>, usize)| compare(found, *at, left, row).is_eq();
        if !self.found.0.as_ref().is_some_and(same) {
            self.found = AsOfMatch(None);
        }
        while self.right.ready().await? {
            let Some(right) = self.right.current.clone() else {
                break;
            };
            let at = self.right.row;
            match compare(&right, at, left, row) {
                Ordering::Greater => break,
                Ordering::Less => {}
                // Among equal keys, nulls come last.
                Ordering::Equal if right.times.is_null(at) => break,
                Ordering::Equal => {
                    let found = right.times.value(at);
                    if found > time || (self.matching.strict && found == time) {
                        break;
                    }
                    self.found = AsOfMatch(Some((right, at)));
                }
            }
            self.right.row += 1;
        }
        let found = self.found.0.as_ref().filter(|(found, at)| {
            let apart = i128::from(time) - i128::from(found.times.value(*at));
            self.matching
                .most
                .is_none_or(|most| apart <= i128::from(most))
        });
        Ok(found.cloned())
    }
}
