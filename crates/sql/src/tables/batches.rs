//! Batches of a few named columns, for the results of `SHOW`.

use crate::error::{SqlError, SqlResult};
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// A column of texts.
pub(crate) fn text(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// One batch of columns of texts.
///
/// # Errors
/// If their lengths differ.
pub(crate) fn texts(columns: Vec<(&str, Vec<String>)>) -> SqlResult<RecordBatch> {
    batch(
        columns
            .into_iter()
            .map(|(name, values)| (name, text(values)))
            .collect(),
    )
}

/// One batch; columns are nullable if they contain nulls.
///
/// # Errors
/// If their lengths differ.
pub(crate) fn batch(columns: Vec<(&str, ArrayRef)>) -> SqlResult<RecordBatch> {
    let fields = columns.iter().map(|(name, values)| {
        Field::new(*name, values.data_type().clone(), values.null_count() > 0)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(
        schema,
        columns.into_iter().map(|(_, values)| values).collect(),
    )
    .map_err(|error| SqlError::DataFusion(error.into()))
}
