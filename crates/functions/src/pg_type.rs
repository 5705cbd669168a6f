//! The types of PostgreSQL that are texts here, as marks of fields.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::logical_expr::ReturnFieldArgs;
use marigram_service::PG_TYPE_KEY;
use std::collections::HashMap;
use std::sync::Arc;

/// The field of what a function returns, with the mark of a type of PostgreSQL where it has one.
pub(crate) fn marked_field(name: &str, kind: DataType, pg_type: Option<&str>) -> FieldRef {
    let mark = pg_type.map(|own| (PG_TYPE_KEY.to_owned(), own.to_owned()));
    let marks: HashMap<String, String> = mark.into_iter().collect();
    Arc::new(Field::new(name, kind, true).with_metadata(marks))
}

/// The types of a function's arguments.
pub(crate) fn argument_types(args: &ReturnFieldArgs<'_>) -> Vec<DataType> {
    let fields = args.arg_fields.iter();
    fields.map(|field| field.data_type().clone()).collect()
}

/// `json`, or `jsonb` for the binary form.
pub(crate) fn json_type(is_binary: bool) -> &'static str {
    if is_binary { "jsonb" } else { "json" }
}
