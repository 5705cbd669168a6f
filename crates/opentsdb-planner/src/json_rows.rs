//! An answer of JSON values: a row with one text for each.

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use futures::StreamExt;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::sync::Arc;

/// The answer of these texts.
///
/// # Errors
/// Arrow's errors.
pub(crate) fn json_rows(texts: Vec<String>) -> SqlResult<StatementRows> {
    let batch = json_batch(texts)?;
    Ok(StatementRows::Rows {
        schema: json_schema(),
        batches: futures::stream::iter([Ok(batch)]).boxed(),
    })
}

/// The columns of such an answer.
pub(crate) fn json_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, false)]))
}

/// A batch of these texts.
///
/// # Errors
/// Arrow's errors.
pub(crate) fn json_batch(texts: Vec<String>) -> SqlResult<RecordBatch> {
    let column = Arc::new(StringArray::from(texts));
    let batch = RecordBatch::try_new(json_schema(), vec![column]);
    Ok(batch.map_err(DataFusionError::from)?)
}
