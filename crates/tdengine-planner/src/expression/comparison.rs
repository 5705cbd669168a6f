//! Comparisons: of times with texts and integers, of numbers, and of texts with patterns.

use crate::expression::scalar_function::kinds::to_kind;
use crate::expression::scalar_function::row_function;
use crate::expression::{Scope, Typed, constant};
use crate::moments::moment;
use crate::run::{fault_about, taos};
use crate::taos_value::{Val, arrow_type};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator, binary_expr, not};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosExpr, TaosLiteral, TaosOperator};
use marigram_tdengine::{TaosCode, TaosError, TaosType};
use regex::RegexBuilder;
use std::sync::Arc;

/// Bytes of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A comparison.
pub(crate) fn compared(
    scope: &Scope<'_>,
    operator: TaosOperator,
    left: &TaosExpr,
    right: &TaosExpr,
) -> SqlResult<Expr> {
    match operator {
        TaosOperator::Like | TaosOperator::NotLike => {
            let (value, pattern) = (text(scope, left)?, text(scope, right)?);
            let like = value.like(pattern);
            return Ok(if operator == TaosOperator::NotLike {
                not(like)
            } else {
                like
            });
        }
        TaosOperator::Match | TaosOperator::NotMatch => {
            let matched = matched(scope, left, right)?;
            return Ok(if operator == TaosOperator::NotMatch {
                not(matched)
            } else {
                matched
            });
        }
        _ => {}
    }
    let order = match operator {
        TaosOperator::NotEqual => Operator::NotEq,
        TaosOperator::Less => Operator::Lt,
        TaosOperator::LessEqual => Operator::LtEq,
        TaosOperator::Greater => Operator::Gt,
        TaosOperator::GreaterEqual => Operator::GtEq,
        _ => Operator::Eq,
    };
    let (a, b) = (scope.typed(left)?, scope.typed(right)?);
    let (a, b) = operands(scope, (left, a), (right, b))?;
    Ok(binary_expr(a, order, b))
}

/// Both operands in one type.
fn operands(
    scope: &Scope<'_>,
    (left, a): (&TaosExpr, Typed),
    (right, b): (&TaosExpr, Typed),
) -> SqlResult<(Expr, Expr)> {
    if a.kind == TaosType::Null || b.kind == TaosType::Null {
        let kind = if a.kind == TaosType::Null {
            b.kind
        } else {
            a.kind
        };
        return Ok((to_kind(a, kind), to_kind(b, kind)));
    }
    let times = (a.kind == TaosType::Timestamp, b.kind == TaosType::Timestamp);
    match times {
        (true, false) => return Ok((a.expr, time(scope, right, b)?)),
        (false, true) => return Ok((time(scope, left, a)?, b.expr)),
        _ => {}
    }
    let (x, y) = (arrow_type(a.kind), arrow_type(b.kind));
    if x == y {
        return Ok((a.expr, b.expr));
    }
    // A constant takes the type of the other operand if nothing is lost.
    if let Some(b) = exact_constant(&b.expr, a.kind) {
        return Ok((a.expr, b));
    }
    if let Some(a) = exact_constant(&a.expr, b.kind) {
        return Ok((a, b.expr));
    }
    if x == DataType::Binary || y == DataType::Binary {
        let kind = TaosType::VarBinary(1);
        return Ok((to_kind(a, kind), to_kind(b, kind)));
    }
    let kind = TaosType::Double;
    Ok((to_kind(a, kind), to_kind(b, kind)))
}

/// A constant in another type, if it has the same value there.
fn exact_constant(expr: &Expr, kind: TaosType) -> Option<Expr> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    let value = match value {
        ScalarValue::Int64(Some(value)) => Val::Int(*value),
        ScalarValue::Float64(Some(value)) => Val::Float(*value),
        ScalarValue::Boolean(Some(value)) => Val::Bool(*value),
        ScalarValue::Utf8(Some(text)) => Val::of_text(text),
        _ => return None,
    };
    let is_exact = match (&value, arrow_type(kind)) {
        (Val::Float(value), DataType::Int64 | DataType::UInt64) => {
            value.fract() == 0.0 && value.abs() < 9e15
        }
        (Val::Int(value), DataType::Boolean) => matches!(value, 0 | 1),
        (Val::Int(value), DataType::UInt64) => *value >= 0,
        (Val::Int(value), DataType::Float64) => value.unsigned_abs() < 1 << 53,
        (Val::Text(text), DataType::Int64) => text.trim().parse::<i64>().is_ok(),
        (Val::Text(text), DataType::UInt64) => text.trim().parse::<u64>().is_ok(),
        (Val::Text(text), DataType::Float64) => text.trim().parse::<f64>().is_ok(),
        (Val::Text(_), DataType::Boolean) => value.truth().is_some(),
        (Val::Text(_), DataType::Binary) | (Val::Bool(_), DataType::Int64 | DataType::Float64) => {
            true
        }
        _ => false,
    };
    is_exact.then(|| constant(&value, kind).expr)
}

/// What is compared with a time.
fn time(scope: &Scope<'_>, expr: &TaosExpr, typed: Typed) -> SqlResult<Expr> {
    if let Some(at) = moment(expr, scope.setting)? {
        return Ok(constant(&Val::Time(at), TaosType::Timestamp).expr);
    }
    let setting = scope.setting.clone();
    let key = format!("{:?}", setting.precision);
    let kind = TaosType::Timestamp;
    let convert =
        Arc::new(move |values: &[Val]| crate::conversion::cast_value(&values[0], kind, &setting));
    Ok(row_function("taos_time", vec![typed], kind, key, convert).expr)
}

fn text(scope: &Scope<'_>, expr: &TaosExpr) -> SqlResult<Expr> {
    let typed = scope.typed(expr)?;
    Ok(to_kind(typed, TaosType::VarChar(1)))
}

/// MATCH.
fn matched(scope: &Scope<'_>, left: &TaosExpr, right: &TaosExpr) -> SqlResult<Expr> {
    let TaosExpr::Literal(TaosLiteral::Text(pattern)) = right else {
        return Err(fault_about(TaosCode::WrongValueType, "MATCH"));
    };
    let regex = RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| {
            let message = format!("Invalid regular expression: {error}");
            taos(TaosError::with_message(TaosCode::ParameterValue, message))
        })?;
    let value = scope.typed(left)?;
    let test = Arc::new(move |values: &[Val]| match values[0].text() {
        Some(text) => Val::Bool(regex.is_match(text)),
        None => Val::Null,
    });
    let kind = TaosType::Bool;
    Ok(row_function("taos_match", vec![value], kind, pattern.clone(), test).expr)
}

/// IN.
pub(crate) fn listed(
    scope: &Scope<'_>,
    value: &TaosExpr,
    list: &[TaosExpr],
    negated: bool,
) -> SqlResult<Expr> {
    let own = scope.typed(value)?;
    let mut constants = Vec::with_capacity(list.len());
    let mut others = Vec::new();
    for item in list {
        let typed = scope.typed(item)?;
        let (_, other) = operands(scope, (value, own.clone()), (item, typed))?;
        match &other {
            Expr::Literal(constant, _) if constant.data_type() == arrow_type(own.kind) => {
                constants.push(other);
            }
            _ => others.push(compared(scope, TaosOperator::Equal, value, item)?),
        }
    }
    if !constants.is_empty() {
        others.push(own.expr.in_list(constants, false));
    }
    let found =
        balanced(others, Operator::Or).ok_or_else(|| fault_about(TaosCode::SyntaxError, "IN"))?;
    Ok(if negated { not(found) } else { found })
}

/// A chain of conditions as a balanced tree: planning recurses into it.
pub(crate) fn balanced(mut parts: Vec<Expr>, operator: Operator) -> Option<Expr> {
    if parts.len() < 2 {
        return parts.pop();
    }
    let right = parts.split_off(parts.len() / 2);
    let (left, right) = (balanced(parts, operator)?, balanced(right, operator)?);
    Some(binary_expr(left, operator, right))
}
