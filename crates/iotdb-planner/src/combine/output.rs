//! Writes joined rows.

use super::{CombineKey, CombinedRow, Combiner};
use arrow::array::{
    Array, ArrayRef, Int64Array, StringArray, TimestampNanosecondArray, UInt32Array, new_null_array,
};
use arrow::compute::take;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use marigram_sql::SqlResult;
use std::collections::HashMap;
use std::sync::Arc;

impl Combiner {
    /// Rows of the output as a batch.
    ///
    /// # Errors
    /// Arrow's errors.
    pub(super) fn written(&self, rows: &[CombinedRow]) -> SqlResult<RecordBatch> {
        let times = rows.iter().map(|row| match &self.key {
            CombineKey::Time => Some(row.key),
            CombineKey::Windows { windows, .. } => {
                let number = u64::try_from(row.key).unwrap_or(0);
                Some(windows.shown(number).saturating_mul(1_000_000))
            }
            CombineKey::Whole => None,
        });
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        columns.push(Arc::new(times.collect::<TimestampNanosecondArray>()));
        if let Some(names) = &self.by_device {
            let names = rows
                .iter()
                .map(|row| names.get(row.device).map(|name| &**name));
            columns.push(Arc::new(names.collect::<StringArray>()));
            let indices = rows.iter().map(|row| {
                let (begin, _) = row.rows?;
                u32::try_from(begin).ok()
            });
            let indices: UInt32Array = indices.collect();
            for place in 0..self.inputs.len() {
                let output = columns.len();
                columns.push(self.taken((place, output), Some(&indices), rows.len())?);
            }
        } else {
            let indices = self.indices(rows);
            for column in &self.columns {
                let device = self.devices.get(&column.device);
                let indices = device.and_then(|device| indices.get(device));
                let output = columns.len();
                columns.push(self.taken((column.place, output), indices, rows.len())?);
            }
        }
        let keys = rows.iter().map(|row| row.key);
        columns.push(Arc::new(Int64Array::from_iter_values(keys)));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        Ok(batch.map_err(DataFusionError::from)?)
    }

    /// For each device with rows, the row of the input for each row of the output.
    fn indices(&self, rows: &[CombinedRow]) -> HashMap<usize, UInt32Array> {
        let mut all: HashMap<usize, Vec<Option<u32>>> = HashMap::new();
        let Some(work) = &self.work else {
            return HashMap::new();
        };
        for (place, row) in rows.iter().enumerate() {
            let (begin, end) = row.rows.unwrap_or((0, 0));
            for input in begin..end {
                let Some(Some(device)) = work.devices.get(input) else {
                    continue;
                };
                if self.by_place.get(*device).is_none_or(Vec::is_empty) {
                    continue;
                }
                let indices = all.entry(*device).or_insert_with(|| vec![None; rows.len()]);
                indices[place] = u32::try_from(input).ok();
            }
        }
        let all = all.into_iter();
        all.map(|(device, indices)| (device, UInt32Array::from(indices)))
            .collect()
    }

    /// Values of a column of the input, as the column of the output at a place.
    fn taken(
        &self,
        (place, output): (usize, usize),
        rows: Option<&UInt32Array>,
        count: usize,
    ) -> SqlResult<ArrayRef> {
        let input = self.inputs.get(place).copied().unwrap_or(0);
        match (&self.work, rows) {
            (Some(work), Some(rows)) if rows.null_count() < rows.len() => {
                let taken = take(work.batch.column(input), rows, None);
                Ok(taken.map_err(DataFusionError::from)?)
            }
            _ => Ok(new_null_array(self.schema.field(output).data_type(), count)),
        }
    }
}
