//! Tags of the type JSON: the value of a key, and whether there is one.

use crate::expression::scalar_function::row_function;
use crate::expression::{Scope, Typed};
use crate::run::fault_about;
use crate::taos_value::{TEXT_LENGTH, Val};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosExpr, TaosLiteral};
use marigram_tdengine::{TaosCode, TaosType};
use serde_json::Value;
use std::sync::Arc;

fn key(expr: &TaosExpr) -> SqlResult<&str> {
    match expr {
        TaosExpr::Literal(TaosLiteral::Text(text)) => Ok(text),
        _ => Err(fault_about(TaosCode::WrongValueType, "a key of JSON")),
    }
}

/// `tag->'key'`, as text.
pub(crate) fn json_value(scope: &Scope<'_>, left: &TaosExpr, right: &TaosExpr) -> SqlResult<Typed> {
    let name = key(right)?.to_owned();
    let value = scope.typed(left)?;
    let id = name.clone();
    let found = Arc::new(move |values: &[Val]| {
        let parsed: Option<Value> = values[0]
            .text()
            .and_then(|text| serde_json::from_str(text).ok());
        match parsed.as_ref().and_then(|value| value.get(&name)) {
            None | Some(Value::Null) => Val::Null,
            Some(Value::String(text)) => Val::of_text(text),
            Some(other) => Val::of_text(other.to_string()),
        }
    });
    let kind = TaosType::VarChar(TEXT_LENGTH);
    Ok(row_function(
        "taos_json_value",
        vec![value],
        kind,
        id,
        found,
    ))
}

/// `tag CONTAINS 'key'`.
pub(crate) fn json_contains(
    scope: &Scope<'_>,
    left: &TaosExpr,
    right: &TaosExpr,
) -> SqlResult<Typed> {
    let name = key(right)?.to_owned();
    let value = scope.typed(left)?;
    let id = name.clone();
    let found = Arc::new(move |values: &[Val]| {
        let Some(text) = values[0].text() else {
            return Val::Null;
        };
        let parsed: Option<Value> = serde_json::from_str(text).ok();
        Val::Bool(parsed.is_some_and(|value| value.get(&name).is_some()))
    });
    Ok(row_function(
        "taos_json_contains",
        vec![value],
        TaosType::Bool,
        id,
        found,
    ))
}
