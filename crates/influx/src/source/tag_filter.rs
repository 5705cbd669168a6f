//! Translates a condition over tags alone to a filter of the series index, which finds the series without a
//! look at each.

use crate::expression::Expression;
use crate::schema::StoredMeasurement;
use crate::value::{InfluxValueType, Value};
use marigram_engine::{TagFilter, ValueTest};
use marigram_influxql::ast::BinaryOp;
use marigram_model::{TagType, TagValue};

/// The filter that is true for the series whose rows all fulfil a condition, where no row of another
/// series does; `None` for a condition on fields, and for one that the index cannot evaluate.
pub(super) fn tag_filter(
    condition: &Expression,
    measurement: &StoredMeasurement,
) -> Option<TagFilter> {
    match condition {
        Expression::Paren(inner) => tag_filter(inner, measurement),
        Expression::Chain(first, links) => {
            let (op, right) = links.first()?;
            if op.precedence() == 3 {
                return match links.as_slice() {
                    [_] => comparison(first, *op, right, measurement),
                    _ => None,
                };
            }
            if links.iter().any(|(other, _)| other != op) {
                return None;
            }
            let operands = std::iter::once(&**first).chain(links.iter().map(|(_, part)| part));
            let operands = operands.map(|part| tag_filter(part, measurement));
            let operands: Option<Vec<TagFilter>> = operands.collect();
            match op {
                BinaryOp::And => operands.map(TagFilter::And),
                BinaryOp::Or => operands.map(TagFilter::Or),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A missing tag is empty.
fn comparison(
    left: &Expression,
    op: BinaryOp,
    right: &Expression,
    measurement: &StoredMeasurement,
) -> Option<TagFilter> {
    let (var, op, constant) = match (left, right) {
        (Expression::Name(var), constant) => (var, op, constant),
        (constant, Expression::Name(var)) => (var, op.mirrored(), constant),
        _ => return None,
    };
    if var.cast.and_then(InfluxValueType::of_cast) != Some(InfluxValueType::Tag) {
        return None;
    }
    let (tag, column) = measurement.table.tag(&var.name)?;
    if column.kind != TagType::String {
        return None;
    }
    let (is_met, is_empty_met, negated) = match (op, constant) {
        (BinaryOp::Eq | BinaryOp::Neq, Expression::Value(Value::String(text))) => {
            let is_met = TagFilter::In(tag, vec![TagValue::String(text.to_string())]);
            (is_met, text.is_empty(), op == BinaryOp::Neq)
        }
        (BinaryOp::EqRegex | BinaryOp::NeqRegex, Expression::Regex(regex)) => {
            let is_met = TagFilter::Matches(tag, ValueTest::Regex(regex.regex().clone()));
            (is_met, regex.is_match(""), op == BinaryOp::NeqRegex)
        }
        _ => return None,
    };
    let is_met = if is_empty_met {
        TagFilter::Or(vec![TagFilter::IsNull(tag), is_met])
    } else {
        is_met
    };
    Some(if negated {
        TagFilter::Not(Box::new(is_met))
    } else {
        is_met
    })
}
