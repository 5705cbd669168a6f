//! FILL: what stands for missing values.

use crate::statement::semantic;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray,
    UInt32Array,
};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, concat, is_not_null, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use marigram_iotdb::{IotDbType, TreeFill, TreeLiteral};
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

fn arrow_error(error: arrow::error::ArrowError) -> SqlError {
    DataFusionError::from(error).into()
}

/// A value that a column had, and its time.
#[derive(Clone)]
struct ValueBefore {
    value: ArrayRef,
    time_ms: i64,
}

/// Fills batches of an answer. The times of rows are the first column.
pub(crate) struct Filler {
    fill: TreeFill,
    kinds: Vec<IotDbType>,
    before: Vec<Option<ValueBefore>>,
}

impl Filler {
    /// Fills columns of these types, behind the column of times.
    pub(crate) fn new(fill: TreeFill, kinds: Vec<IotDbType>) -> Self {
        let before = vec![None; kinds.len()];
        Self {
            fill,
            kinds,
            before,
        }
    }

    /// Whether all rows are needed before the first one is known.
    pub(crate) fn needs_all(&self) -> bool {
        self.fill == TreeFill::Linear
    }

    /// Fills the columns of a batch; those before `first` stay.
    ///
    /// # Errors
    /// Arrow's errors.
    pub(crate) fn filled(&mut self, batch: &RecordBatch, first: usize) -> SqlResult<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        let times = batch.columns().first().cloned();
        for (place, kind) in self.kinds.clone().into_iter().enumerate() {
            let Some(column) = columns.get_mut(first + place) else {
                continue;
            };
            let values = Arc::clone(column);
            *column = match self.fill.clone() {
                TreeFill::Constant(value) => constant(&values, kind, &value)?,
                TreeFill::Previous(reach) => {
                    self.previous(place, &values, times.as_ref(), reach)?
                }
                TreeFill::Linear => linear(&values, kind, times.as_ref())?,
            };
        }
        RecordBatch::try_new(batch.schema(), columns).map_err(arrow_error)
    }

    /// The values of a column, each missing one replaced by the one before.
    fn previous(
        &mut self,
        place: usize,
        values: &ArrayRef,
        times: Option<&ArrayRef>,
        reach_ms: Option<i64>,
    ) -> SqlResult<ArrayRef> {
        let times = times.and_then(|times| times.as_primitive_opt::<Int64Type>());
        let time = |row: usize| times.map_or(0, |times| times.value(row));
        let carried = self.before.get(place).cloned().flatten();
        // The value from before is the first one of the source.
        let offset = u32::from(carried.is_some());
        let mut last = carried.as_ref().map(|before| (0_u32, before.time_ms));
        let mut indices = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            if !values.is_null(row) {
                let index = u32::try_from(row)
                    .unwrap_or(u32::MAX)
                    .saturating_add(offset);
                last = Some((index, time(row)));
            }
            let is_near = |before: i64| {
                reach_ms.is_none_or(|reach| time(row).abs_diff(before) <= reach.unsigned_abs())
            };
            let found = last.filter(|(_, before)| is_near(*before));
            indices.push(found.map(|(index, _)| index));
        }
        let source = match &carried {
            Some(before) => {
                concat(&[before.value.as_ref(), values.as_ref()]).map_err(arrow_error)?
            }
            None => Arc::clone(values),
        };
        if let (Some((index, time_ms)), Some(before)) = (last, self.before.get_mut(place)) {
            let one = UInt32Array::from(vec![index]);
            let value = take(&source, &one, None).map_err(arrow_error)?;
            *before = Some(ValueBefore { value, time_ms });
        }
        take(&source, &UInt32Array::from(indices), None).map_err(arrow_error)
    }
}

/// The values of a column, each missing one replaced by a constant, if it has the type of the column.
fn constant(values: &ArrayRef, kind: IotDbType, value: &TreeLiteral) -> SqlResult<ArrayRef> {
    let number = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) };
    let is_number = crate::compile::is_number(kind);
    let one: ArrayRef = match value {
        TreeLiteral::Boolean(value) if kind == IotDbType::Boolean => {
            Arc::new(BooleanArray::from(vec![*value]))
        }
        TreeLiteral::Integer(value) | TreeLiteral::Time(value)
            if is_number || kind == IotDbType::Timestamp =>
        {
            Arc::new(Int64Array::from(vec![*value]))
        }
        TreeLiteral::Float(value) if matches!(kind, IotDbType::Float | IotDbType::Double) => {
            number(*value)
        }
        TreeLiteral::Text(text) if matches!(kind, IotDbType::Text | IotDbType::String) => {
            Arc::new(StringArray::from(vec![text.as_str()]))
        }
        TreeLiteral::Bytes(bytes) if kind == IotDbType::Blob => {
            Arc::new(BinaryArray::from(vec![bytes.as_slice()]))
        }
        _ => return Ok(Arc::clone(values)),
    };
    let one = cast(&one, values.data_type()).map_err(arrow_error)?;
    let scalar = arrow::array::Scalar::new(one);
    let is_there = is_not_null(values).map_err(arrow_error)?;
    zip(&is_there, values, &scalar).map_err(arrow_error)
}

/// The values of a column of numbers, missing ones on the lines between those around them.
fn linear(values: &ArrayRef, kind: IotDbType, times: Option<&ArrayRef>) -> SqlResult<ArrayRef> {
    let times = times.and_then(|times| times.as_primitive_opt::<Int64Type>());
    let Some(times) = times.filter(|_| crate::compile::is_number(kind)) else {
        return Ok(Arc::clone(values));
    };
    let numbers = cast(values, &DataType::Float64).map_err(arrow_error)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    let mut filled: Vec<Option<f64>> = numbers.iter().collect();
    let mut before: Option<usize> = None;
    for row in 0..filled.len() {
        let Some(value) = filled[row] else { continue };
        if let Some(begin) = before
            && let Some(from) = filled[begin]
        {
            let width = times.value(row) as f64 - times.value(begin) as f64;
            for (place, missing) in filled.iter_mut().enumerate().take(row).skip(begin + 1) {
                let part = (times.value(place) as f64 - times.value(begin) as f64) / width;
                *missing = Some(from + (value - from) * part);
            }
        }
        before = Some(row);
    }
    let filled: ArrayRef = Arc::new(Float64Array::from(filled));
    let whole = matches!(kind, IotDbType::Int32 | IotDbType::Int64);
    if !whole {
        return cast(&filled, values.data_type()).map_err(arrow_error);
    }
    // Values that were there keep all of their digits.
    let estimated = cast(&filled, values.data_type()).map_err(arrow_error)?;
    let is_there = is_not_null(values).map_err(arrow_error)?;
    zip(&is_there, values, &estimated).map_err(arrow_error)
}

/// Refuses a filling that does not fit.
///
/// # Errors
/// If FILL stands in a query for the newest points.
pub(crate) fn check(fill: Option<&TreeFill>, is_last: bool) -> SqlResult<()> {
    if fill.is_some() && is_last {
        return Err(semantic("FILL clause is not supported in LAST query."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, Schema};

    fn batch(times: &[i64], values: &[Option<f64>]) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("Time", DataType::Int64, true),
            Field::new("v", DataType::Float64, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(times.to_vec())),
            Arc::new(Float64Array::from(values.to_vec())),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).expect("a batch")
    }

    fn filled(filler: &mut Filler, batch: &RecordBatch) -> Vec<Option<f64>> {
        let filled = filler.filled(batch, 1).expect("it fills");
        filled
            .column(1)
            .as_primitive::<Float64Type>()
            .iter()
            .collect()
    }

    #[test]
    fn values_before_reach_into_the_next_batch() {
        let mut filler = Filler::new(TreeFill::Previous(None), vec![IotDbType::Double]);
        let first = batch(&[1, 2, 3], &[None, Some(2.0), None]);
        assert_eq!(filled(&mut filler, &first), [None, Some(2.0), Some(2.0)]);
        let second = batch(&[4, 5], &[None, Some(5.0)]);
        assert_eq!(filled(&mut filler, &second), [Some(2.0), Some(5.0)]);
        let mut near = Filler::new(TreeFill::Previous(Some(1)), vec![IotDbType::Double]);
        assert_eq!(filled(&mut near, &first), [None, Some(2.0), Some(2.0)]);
        assert_eq!(filled(&mut near, &second), [None, Some(5.0)]);
    }

    #[test]
    fn lines_and_constants_fill() {
        let values = batch(&[0, 1, 3, 4], &[Some(0.0), None, Some(6.0), None]);
        let mut line = Filler::new(TreeFill::Linear, vec![IotDbType::Double]);
        assert_eq!(
            filled(&mut line, &values),
            [Some(0.0), Some(2.0), Some(6.0), None]
        );
        let seven = TreeFill::Constant(TreeLiteral::Integer(7));
        let mut constant = Filler::new(seven, vec![IotDbType::Double]);
        assert_eq!(
            filled(&mut constant, &values),
            [Some(0.0), Some(7.0), Some(6.0), Some(7.0)]
        );
        let text = TreeFill::Constant(TreeLiteral::Text("x".to_owned()));
        let mut other = Filler::new(text, vec![IotDbType::Double]);
        assert_eq!(
            filled(&mut other, &values),
            [Some(0.0), None, Some(6.0), None]
        );
    }
}
