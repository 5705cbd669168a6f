//! The names of a result's columns, applied when it leaves.

use super::{name_of_item, naming_select};
use crate::name_forms::unmarked;
use arrow::array::RecordBatchOptions;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::Query;
use std::sync::Arc;

/// The names of a result's columns; `None` if those of its plan are right.
pub(crate) type Names = Option<Arc<OutputNames>>;

/// Names of the columns of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputNames {
    /// By position; `None` if there is a `*`, whose columns the plan names.
    by_place: Option<Vec<String>>,
}

impl OutputNames {
    /// The names of a query, as it was written.
    pub(crate) fn from_query(query: &Query) -> Self {
        let by_place = naming_select(query)
            .and_then(|select| select.projection.iter().map(name_of_item).collect());
        Self { by_place }
    }

    /// A schema with these names; `None` if it has them already.
    pub(crate) fn renamed(&self, schema: &SchemaRef) -> Option<SchemaRef> {
        let fields = schema.fields();
        let by_place = self.by_place.as_deref();
        let by_place = by_place.filter(|names| names.len() == fields.len());
        let name_at = |at: usize, field: &'_ Field| -> Option<String> {
            match by_place {
                Some(names) => (names[at] != *field.name()).then(|| names[at].clone()),
                None => unmarked(field.name()).map(str::to_owned),
            }
        };
        let mut changed = false;
        let named = fields.iter().enumerate().map(|(at, field)| {
            let Some(name) = name_at(at, field) else {
                return Arc::clone(field);
            };
            changed = true;
            Arc::new(field.as_ref().clone().with_name(name))
        });
        let named: Vec<_> = named.collect();
        changed.then(|| Arc::new(Schema::new_with_metadata(named, schema.metadata().clone())))
    }
}

/// A schema with the names of a result.
pub(crate) fn named_schema(names: &Names, schema: SchemaRef) -> SchemaRef {
    let renamed = names.as_ref().and_then(|names| names.renamed(&schema));
    renamed.unwrap_or(schema)
}

/// A batch with the names of its result's schema.
///
/// # Errors
/// If the batch does not fit the schema: a bug.
pub(crate) fn named_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let own = batch.schema_ref();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let pairs = schema.fields().iter().zip(own.fields());
    let differs = pairs.clone().any(|(named, own)| {
        own.data_type() != named.data_type() || own.is_nullable() != named.is_nullable()
    });
    // A batch may guarantee more about its columns than its stream.
    let schema = if differs {
        let fields = pairs.map(|(named, own)| own.as_ref().clone().with_name(named.name()));
        let fields: Vec<_> = fields.collect();
        Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()))
    } else {
        Arc::clone(schema)
    };
    RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options)
}
