//! Casts to `json`, `jsonb` and `uuid`. Both are texts here, so a cast becomes the call of a function that checks
//! the text. `TRY_CAST`, which returns NULL for what cannot be cast, has no such function and stays refused.

use crate::dialect::rewriting::call;
use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, TypedString, Value};
use marigram_functions::{JSON_READERS, UUID_READER};
use std::mem;

/// The call that stands for a cast to JSON or to a UUID, or for a literal such as `JSON '{}'`; `None` for other expressions.
pub(super) fn read_json(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr: value,
            data_type,
            ..
        } => {
            let reader = reader_of(data_type)?;
            let value = mem::replace(value.as_mut(), Expr::value(Value::Null));
            Some(call(reader, vec![value]))
        }
        Expr::TypedString(TypedString {
            data_type, value, ..
        }) => {
            let reader = reader_of(data_type)?;
            Some(call(reader, vec![Expr::Value(value.clone())]))
        }
        _ => None,
    }
}

fn reader_of(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::JSON => Some(JSON_READERS[0]),
        DataType::JSONB => Some(JSON_READERS[1]),
        DataType::Uuid => Some(UUID_READER),
        _ => None,
    }
}
