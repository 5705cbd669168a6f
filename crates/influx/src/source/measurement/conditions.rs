//! Translates the parts of a condition that the scan can evaluate to DataFusion expressions that
//! are true for exactly the same rows. The rest is evaluated for each row.

use super::column;
use crate::expression::Expression;
use crate::schema::{StoredMeasurement, stored_type};
use crate::value::{InfluxValueType, Value};
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit};
use marigram_influxql::ast::{BinaryOp, Cast, VarRef};
use marigram_model::{TagColumn, TagType};
use std::iter;

/// The operands of a condition's ANDs.
fn conjuncts(condition: &Expression) -> Vec<&Expression> {
    match condition {
        Expression::Paren(inner) => conjuncts(inner),
        Expression::Chain(first, links) if links.iter().all(|(op, _)| *op == BinaryOp::And) => {
            let mut all = conjuncts(first);
            for (_, rhs) in links {
                all.extend(conjuncts(rhs));
            }
            all
        }
        other => vec![other],
    }
}

/// The parts that the scan evaluates.
pub(crate) fn pushed_down(condition: &Expression, table: &StoredMeasurement) -> Vec<Expr> {
    let parts = conjuncts(condition).into_iter();
    parts.filter_map(|part| translated(part, table)).collect()
}

/// The rest of a condition.
pub(crate) fn residual(condition: &Expression, table: &StoredMeasurement) -> Option<Expression> {
    let mut left = conjuncts(condition)
        .into_iter()
        .filter(|part| translated(part, table).is_none())
        .cloned();
    let first = left.next()?;
    let links: Vec<_> = left.map(|part| (BinaryOp::And, part)).collect();
    Some(if links.is_empty() {
        first
    } else {
        Expression::Chain(Box::new(first), links)
    })
}

/// A condition for DataFusion, if it has the same meaning there.
fn translated(condition: &Expression, table: &StoredMeasurement) -> Option<Expr> {
    match condition {
        Expression::Paren(inner) => translated(inner, table),
        Expression::Value(Value::Boolean(value)) => Some(lit(*value)),
        Expression::Chain(first, links) => {
            if let [(op, rhs)] = links.as_slice()
                && op.precedence() == 3
            {
                return comparison(first, *op, rhs, table);
            }
            let (op, _) = links.first()?;
            let join = match op {
                BinaryOp::And => Expr::and,
                BinaryOp::Or => Expr::or,
                _ => return None,
            };
            if links.iter().any(|(other, _)| other != op) {
                return None;
            }
            let operands = iter::once(&**first).chain(links.iter().map(|(_, rhs)| rhs));
            let operands: Option<Vec<Expr>> =
                operands.map(|part| translated(part, table)).collect();
            balanced(operands?, join)
        }
        _ => None,
    }
}

/// Joins operands in a balanced tree: planning recurses into it, and looks at each level again.
fn balanced(mut operands: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    if operands.len() < 2 {
        return operands.pop();
    }
    let right = operands.split_off(operands.len() / 2);
    Some(join(balanced(operands, join)?, balanced(right, join)?))
}

fn comparison(
    left: &Expression,
    op: BinaryOp,
    right: &Expression,
    table: &StoredMeasurement,
) -> Option<Expr> {
    let (var, op, constant) = match (left, right) {
        (Expression::Name(var), constant) => (var, op, constant),
        (constant, Expression::Name(var)) => (var, op.mirrored(), constant),
        _ => return None,
    };
    if var.cast == Some(Cast::Tag) {
        return tag_condition(var, op, constant, table);
    }
    let (name, stored) = table.field_column(&var.name)?;
    field_condition((var, name), stored_type(stored)?, op, constant)
}

/// Whether a tag has a value. A missing tag is empty.
pub(super) fn tag_is(tag: &TagColumn, value: &str) -> Expr {
    let text = match tag.kind {
        TagType::String => column(&tag.name),
        _ => cast(column(&tag.name), DataType::Utf8),
    };
    let is = text.eq(lit(value));
    if value.is_empty() {
        column(&tag.name).is_null().or(is)
    } else {
        is
    }
}

/// A missing tag is empty.
fn tag_condition(
    var: &VarRef,
    op: BinaryOp,
    constant: &Expression,
    table: &StoredMeasurement,
) -> Option<Expr> {
    if var.cast.and_then(InfluxValueType::of_cast) != Some(InfluxValueType::Tag) {
        return None;
    }
    let (_, tag) = table.table.tag(&var.name)?;
    let text = match tag.kind {
        TagType::String => column(&var.name),
        _ => cast(column(&var.name), DataType::Utf8),
    };
    let missing = || column(&var.name).is_null();
    Some(match (op, constant) {
        (BinaryOp::Eq, Expression::Value(Value::String(value))) if value.is_empty() => {
            missing().or(text.eq(lit("")))
        }
        (BinaryOp::Neq, Expression::Value(Value::String(value))) if value.is_empty() => {
            text.not_eq(lit(""))
        }
        (BinaryOp::Eq, Expression::Value(Value::String(value))) => text.eq(lit(&**value)),
        (BinaryOp::Neq, Expression::Value(Value::String(value))) => {
            missing().or(text.not_eq(lit(&**value)))
        }
        (BinaryOp::EqRegex | BinaryOp::NeqRegex, Expression::Regex(regex)) => {
            let is_eq = op == BinaryOp::EqRegex;
            let operator = if is_eq {
                Operator::RegexMatch
            } else {
                Operator::RegexNotMatch
            };
            let matched = binary_expr(text, operator, lit(regex.as_str()));
            if regex.is_match("") == is_eq {
                missing().or(matched)
            } else {
                matched
            }
        }
        _ => return None,
    })
}

/// A missing field satisfies no condition.
fn field_condition(
    (var, name): (&VarRef, &str),
    stored: InfluxValueType,
    op: BinaryOp,
    constant: &Expression,
) -> Option<Expr> {
    if var.cast.and_then(InfluxValueType::of_cast) != Some(stored) {
        return None;
    }
    let Expression::Value(value) = constant else {
        return None;
    };
    let value = match (stored, value) {
        (InfluxValueType::Float, Value::Float(value)) if value.is_finite() => lit(*value),
        (InfluxValueType::Float, Value::Integer(value)) => lit(*value as f64),
        (InfluxValueType::Integer, Value::Integer(value)) => lit(*value),
        (InfluxValueType::String, Value::String(value))
            if matches!(op, BinaryOp::Eq | BinaryOp::Neq) =>
        {
            lit(&**value)
        }
        (InfluxValueType::Boolean, Value::Boolean(value))
            if matches!(op, BinaryOp::Eq | BinaryOp::Neq) =>
        {
            lit(*value)
        }
        _ => return None,
    };
    let operator = match op {
        BinaryOp::Eq => Operator::Eq,
        BinaryOp::Neq => Operator::NotEq,
        BinaryOp::Lt => Operator::Lt,
        BinaryOp::Lte => Operator::LtEq,
        BinaryOp::Gt => Operator::Gt,
        BinaryOp::Gte => Operator::GtEq,
        _ => return None,
    };
    Some(binary_expr(column(name), operator, value))
}
