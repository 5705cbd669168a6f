//! Tables as batches of Arrow, in the form that `service::FLUX_RESULT_KEY` describes.

use crate::value::{FluxColumn, FluxKind, FluxTable, FluxValue};
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatchOptions, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use marigram_service::{FLUX_DEFAULT_KEY, FLUX_GROUP_KEY, FLUX_RESULT_KEY, FLUX_TABLE_KEY};
use marigram_sql::SqlResult;
use std::collections::HashMap;
use std::sync::Arc;

/// The rows of a batch.
const BATCH_ROWS: usize = 8192;

fn data_type(kind: FluxKind) -> DataType {
    match kind {
        FluxKind::Bool => DataType::Boolean,
        FluxKind::Int => DataType::Int64,
        FluxKind::UInt => DataType::UInt64,
        FluxKind::Float => DataType::Float64,
        FluxKind::Text => DataType::Utf8,
        FluxKind::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
    }
}

/// The schema of a table of a result.
fn schema(result: &str, number: usize, table: &FluxTable) -> Arc<Schema> {
    let fields = table.columns.iter().map(|column| {
        let mut metadata = HashMap::new();
        if table.is_key(&column.name) {
            metadata.insert(FLUX_GROUP_KEY.to_owned(), "true".to_owned());
            if table.rows == 0
                && let Some(shown) = column.value(0).shown()
            {
                metadata.insert(FLUX_DEFAULT_KEY.to_owned(), shown);
            }
        }
        let name = column.name.to_string();
        Field::new(name, data_type(column.kind), true).with_metadata(metadata)
    });
    let fields: Vec<Field> = fields.collect();
    let metadata = HashMap::from([
        (FLUX_RESULT_KEY.to_owned(), result.to_owned()),
        (FLUX_TABLE_KEY.to_owned(), number.to_string()),
    ]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// The batch that ends a result.
///
/// # Errors
/// If Arrow refuses it.
pub(crate) fn end_of_result(result: &str) -> SqlResult<RecordBatch> {
    let metadata = HashMap::from([(FLUX_RESULT_KEY.to_owned(), result.to_owned())]);
    let schema = Schema::new_with_metadata(Vec::<Field>::new(), metadata);
    let options = RecordBatchOptions::new().with_row_count(Some(0));
    let batch = RecordBatch::try_new_with_options(Arc::new(schema), Vec::new(), &options);
    Ok(batch.map_err(DataFusionError::from)?)
}

fn array(column: &FluxColumn, rows: std::ops::Range<usize>) -> ArrayRef {
    let values = rows.map(|row| column.value(row));
    match column.kind {
        FluxKind::Bool => {
            let cells = values.map(|value| match value {
                FluxValue::Bool(value) => Some(*value),
                _ => None,
            });
            Arc::new(cells.collect::<BooleanArray>())
        }
        FluxKind::Int => {
            let cells = values.map(|value| match value {
                FluxValue::Int(value) => Some(*value),
                _ => None,
            });
            Arc::new(cells.collect::<Int64Array>())
        }
        FluxKind::UInt => {
            let cells = values.map(|value| match value {
                FluxValue::UInt(value) => Some(*value),
                _ => None,
            });
            Arc::new(cells.collect::<UInt64Array>())
        }
        FluxKind::Float => {
            let cells = values.map(|value| match value {
                FluxValue::Float(value) => Some(*value),
                _ => None,
            });
            Arc::new(cells.collect::<Float64Array>())
        }
        FluxKind::Text => {
            let cells = values.map(|value| match value {
                FluxValue::Text(value) => Some(&**value),
                _ => None,
            });
            Arc::new(cells.collect::<StringArray>())
        }
        FluxKind::Time => {
            let times = values.map(|value| match value {
                FluxValue::Time(ns) => Some(*ns),
                _ => None,
            });
            let times = times.collect::<TimestampNanosecondArray>();
            Arc::new(times.with_timezone("UTC"))
        }
    }
}

/// The batches of a table; a table without rows has one batch without rows.
///
/// # Errors
/// If Arrow refuses them.
pub(crate) fn batches(
    result: &str,
    number: usize,
    table: &FluxTable,
) -> impl Iterator<Item = SqlResult<RecordBatch>> {
    let schema = schema(result, number, table);
    let starts = (0..table.rows.max(1)).step_by(BATCH_ROWS);
    starts.map(move |start| {
        let end = (start + BATCH_ROWS).min(table.rows);
        let arrays = table.columns.iter().map(|column| array(column, start..end));
        let options = RecordBatchOptions::new().with_row_count(Some(end - start));
        let arrays = arrays.collect();
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options);
        Ok(batch.map_err(DataFusionError::from)?)
    })
}
