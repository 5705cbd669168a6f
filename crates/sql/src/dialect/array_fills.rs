//! `array_fill(value, sizes)`: an array of equal elements, as `array_repeat` within `array_repeat`.

use crate::dialect::rewriting::call;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{Expr, Value};

/// The call that stands for `array_fill`.
///
/// # Errors
/// 0A000 if the sizes are no list, or the array does not begin at 1.
pub(super) fn filled(value: &Expr, sizes: &Expr, bounds: Option<&Expr>) -> SqlResult<Expr> {
    let Some(sizes) = listed(sizes) else {
        return Err(SqlError::unsupported(
            "array_fill takes its sizes as a list: array_fill(0, ARRAY[3])",
        ));
    };
    let begins_at_one = match bounds.map(listed) {
        None => true,
        Some(bounds) => bounds.is_some_and(|bounds| bounds.iter().all(is_one)),
    };
    if !begins_at_one {
        return Err(SqlError::unsupported(
            "array_fill: arrays begin at 1 and have no other bounds",
        ));
    }
    if sizes.is_empty() {
        let none = Expr::value(Value::Number("0".to_owned(), false));
        return Ok(call("array_repeat", vec![value.clone(), none]));
    }
    let mut filled = value.clone();
    for size in sizes.iter().rev() {
        filled = call("array_repeat", vec![filled, size.clone()]);
    }
    Ok(filled)
}

/// The elements of an array that is written as a list, possibly with a cast.
fn listed(array: &Expr) -> Option<&[Expr]> {
    match array {
        Expr::Array(array) => Some(&array.elem),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => listed(expr),
        _ => None,
    }
}

/// Whether an expression is the number 1.
fn is_one(expr: &Expr) -> bool {
    let Expr::Value(value) = expr else {
        return false;
    };
    match &value.value {
        Value::Number(text, _) | Value::SingleQuotedString(text) => text == "1",
        _ => false,
    }
}
