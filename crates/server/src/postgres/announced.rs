//! Rows have the types that the client was told before they ran: it reads binary values by them. They differ
//! only where values of parameters made another plan.

use crate::postgres::types::column_type;
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use marigram_service::{Result, RowStream, ServiceError};
use std::sync::Arc;

/// The rows with the types of `announced`.
pub(super) fn with_announced_types(rows: RowStream, announced: Option<SchemaRef>) -> RowStream {
    let Some(announced) = announced else {
        return rows;
    };
    let sent = rows.schema.fields();
    if sent.len() != announced.fields().len() {
        return rows;
    }
    let fields = sent.iter().zip(announced.fields());
    let fields: Vec<FieldRef> = fields.map(|(sent, told)| field_for(sent, told)).collect();
    if fields.iter().zip(sent).all(|(one, other)| one == other) {
        return rows;
    }
    let schema = Arc::new(Schema::new(fields));
    let wanted = Arc::clone(&schema);
    let batches = rows.batches.map(move |batch| cast(&batch?, &wanted));
    RowStream {
        schema,
        batches: batches.boxed(),
        notices: rows.notices,
    }
}

/// The field as it was told, if clients would read it as another type than the one that is sent.
fn field_for(sent: &FieldRef, told: &FieldRef) -> FieldRef {
    if column_type(sent) == column_type(told) {
        return Arc::clone(sent);
    }
    let kind = match told.data_type() {
        // A client takes a type that is open for a text.
        DataType::Null => &DataType::Utf8,
        other => other,
    };
    if !can_cast_types(sent.data_type(), kind) {
        return Arc::clone(sent);
    }
    let field = Field::new(sent.name(), kind.clone(), true);
    Arc::new(field.with_metadata(told.metadata().clone()))
}

fn cast(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        cast_with_options(column, field.data_type(), &options).map_err(|error| {
            ServiceError::Invalid {
                message: format!(
                    "a value of \"{}\" is out of range of the type that was announced: {error}; cast the \
                     column in the statement",
                    field.name()
                ),
                position: None,
                sqlstate: "22003",
            }
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| ServiceError::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int32Type;
    use futures::executor::block_on;

    fn rows(values: Vec<i64>) -> RowStream {
        let field = Field::new("n", DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field]));
        let column = Arc::new(Int64Array::from(values));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
        let batches = futures::stream::iter([Ok(batch)]).boxed();
        RowStream::new(schema, batches)
    }

    #[test]
    fn rows_have_the_types_that_were_announced() {
        let announced = Schema::new(vec![Field::new("n", DataType::Int32, false)]);
        let announced = Some(Arc::new(announced));
        let mut cast = with_announced_types(rows(vec![3, -4]), announced.clone());
        assert_eq!(cast.schema.field(0).data_type(), &DataType::Int32);
        let batch = block_on(cast.batches.next()).unwrap().unwrap();
        let values = batch.column(0).as_primitive::<Int32Type>().values();
        assert_eq!(values, &[3, -4]);
        let mut wide = with_announced_types(rows(vec![1 << 40]), announced);
        let error = block_on(wide.batches.next()).unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), "22003");
        let same = with_announced_types(rows(vec![1]), None);
        assert_eq!(same.schema.field(0).data_type(), &DataType::Int64);
    }
}
