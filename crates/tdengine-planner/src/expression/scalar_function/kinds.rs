//! Expressions in other types.

use crate::expression::Typed;
use crate::expression::scalar_function::row_function;
use crate::taos_value::{Val, arrow_type};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, cast};
use marigram_tdengine::TaosType;
use std::sync::Arc;

/// An expression in another type.
pub(crate) fn to_kind(typed: Typed, kind: TaosType) -> Expr {
    if typed.kind == TaosType::Null {
        return Expr::Literal(Val::Null.scalar(kind), None);
    }
    if arrow_type(typed.kind) == arrow_type(kind) {
        return typed.expr;
    }
    let convert = Arc::new(move |values: &[Val]| crate::conversion::converted(&values[0], kind));
    row_function("taos_to", vec![typed], kind, String::new(), convert).expr
}

/// An expression as a float.
pub(crate) fn as_number(typed: Typed) -> Expr {
    match (arrow_type(typed.kind), typed.expr) {
        (DataType::Float64, expr) => expr,
        (_, Expr::Literal(ScalarValue::Int64(value), _)) => {
            Expr::Literal(ScalarValue::Float64(value.map(|value| value as f64)), None)
        }
        (DataType::Int64 | DataType::UInt64, expr) => cast(expr, DataType::Float64),
        (_, expr) => {
            let typed = Typed {
                expr,
                kind: typed.kind,
            };
            // A text that is no number counts as zero.
            let convert = Arc::new(|values: &[Val]| match &values[0] {
                Val::Null => Val::Null,
                value => Val::Float(value.number().unwrap_or(0.0)),
            });
            let kind = TaosType::Double;
            row_function("taos_number", vec![typed], kind, String::new(), convert).expr
        }
    }
}

/// The type that holds values of all these types.
pub(crate) fn common_kind(kinds: impl IntoIterator<Item = TaosType>) -> TaosType {
    let mut common = TaosType::Null;
    for kind in kinds {
        common = match (common, kind) {
            (TaosType::Null, kind) => kind,
            (common, TaosType::Null) => common,
            (a, b) if a == b => a,
            (a, b) if a.is_text() || b.is_text() => {
                TaosType::VarChar(a.length().max(b.length()).clamp(32, 65_517))
            }
            (a, b) if a.is_integer() && b.is_integer() => TaosType::BigInt,
            (TaosType::Timestamp, _) | (_, TaosType::Timestamp) => TaosType::Timestamp,
            _ => TaosType::Double,
        };
    }
    common
}
