//! An answer of JSON values: a row with one text for each.

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema};
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
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, false)]));
    let column = Arc::new(StringArray::from(texts));
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), vec![column]).map_err(DataFusionError::from)?;
    Ok(StatementRows::Rows {
        schema,
        batches: futures::stream::iter([Ok(batch)]).boxed(),
    })
}
