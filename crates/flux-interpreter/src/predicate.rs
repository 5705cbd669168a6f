//! What a scan can know of the functions that filter its rows.
//!
//! Invariant: rows that a function keeps are never left out. Filters run again over what is read, so
//! a scan may give too many rows.

use crate::evaluate::FluxEvaluator;
use crate::operators::compared;
use crate::value::{FluxScope, FluxValue};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit};
use marigram_flux::ast::{FluxBinary, FluxBody, FluxExpr, FluxExprKind, FluxUnary};
use marigram_influx::StoredMeasurement;
use marigram_model::{FieldType, TagType};

/// What is known of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ScanCondition {
    /// No row fulfils it.
    Never,
    /// Every row fulfils it.
    Always,
    /// The rows that fulfil it are those of the expression.
    Exactly(Expr),
    /// The rows that fulfil it are among those of the expression.
    Within(Expr),
    /// Nothing.
    Unknown,
}

/// A field of a measurement, for which a condition is judged.
pub(crate) struct ScannedField<'a> {
    /// The measurement.
    pub measurement: &'a StoredMeasurement,
    /// The field, as Flux names it.
    pub field: &'a str,
}

/// A column by its exact name.
pub(crate) fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

impl ScanCondition {
    /// The expression that restricts a scan.
    pub(crate) fn expression(self) -> Option<Expr> {
        match self {
            Self::Exactly(expr) | Self::Within(expr) => Some(expr),
            _ => None,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Always, other) | (other, Self::Always) => other,
            (Self::Exactly(a), Self::Exactly(b)) => Self::Exactly(a.and(b)),
            (Self::Unknown, other) | (other, Self::Unknown) => match other.expression() {
                Some(expr) => Self::Within(expr),
                None => Self::Unknown,
            },
            (a, b) => match (a.expression(), b.expression()) {
                (Some(a), Some(b)) => Self::Within(a.and(b)),
                _ => Self::Unknown,
            },
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Always, _) | (_, Self::Always) => Self::Always,
            (Self::Never, other) | (other, Self::Never) => other,
            (Self::Exactly(a), Self::Exactly(b)) => Self::Exactly(a.or(b)),
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (a, b) => match (a.expression(), b.expression()) {
                (Some(a), Some(b)) => Self::Within(a.or(b)),
                _ => Self::Unknown,
            },
        }
    }

    /// Where a condition is null, its negation is null, too: neither keeps the row.
    fn not(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Exactly(expr) => Self::Exactly(Expr::Not(Box::new(expr))),
            _ => Self::Unknown,
        }
    }
}

/// What is known of a function that filters rows.
pub(crate) fn judged(
    function: &FluxValue,
    place: &ScannedField<'_>,
    evaluator: &mut FluxEvaluator,
) -> ScanCondition {
    let closure = match function {
        FluxValue::Function(closure) => closure,
        FluxValue::Text(measurement) if **measurement == *place.measurement.name => {
            return ScanCondition::Always;
        }
        FluxValue::Text(_) => return ScanCondition::Never,
        _ => return ScanCondition::Unknown,
    };
    let FluxBody::Expression(body) = &closure.function.body else {
        return ScanCondition::Unknown;
    };
    let mut judge = PredicateJudge {
        scope: &closure.scope,
        place,
        evaluator,
    };
    match closure.function.parameters.as_slice() {
        [row] if row.name == "r" => judge.condition(body),
        _ => ScanCondition::Unknown,
    }
}

struct PredicateJudge<'a> {
    scope: &'a FluxScope,
    place: &'a ScannedField<'a>,
    evaluator: &'a mut FluxEvaluator,
}

/// The member of the row that an expression is.
fn row_member(expr: &FluxExpr) -> Option<&str> {
    match &expr.kind {
        FluxExprKind::Member { object, name } => match &object.kind {
            FluxExprKind::Name(row) if row == "r" => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression has the same value for every row, and is cheap.
fn is_constant(expr: &FluxExpr) -> bool {
    match &expr.kind {
        FluxExprKind::Integer(_)
        | FluxExprKind::Float(_)
        | FluxExprKind::Text(_)
        | FluxExprKind::Time(_)
        | FluxExprKind::Regex(_) => true,
        FluxExprKind::Name(name) => name != "r",
        FluxExprKind::Member { object, .. } => is_constant(object),
        FluxExprKind::Unary {
            operator: FluxUnary::Minus,
            operand,
        } => is_constant(operand),
        _ => false,
    }
}

impl PredicateJudge<'_> {
    fn condition(&mut self, expr: &FluxExpr) -> ScanCondition {
        match &expr.kind {
            FluxExprKind::Logical { is_and, operands } => {
                let mut all = if *is_and {
                    ScanCondition::Always
                } else {
                    ScanCondition::Never
                };
                for operand in operands {
                    let operand = self.condition(operand);
                    all = if *is_and {
                        all.and(operand)
                    } else {
                        all.or(operand)
                    };
                }
                all
            }
            FluxExprKind::Unary {
                operator: FluxUnary::Not,
                operand,
            } => self.condition(operand).not(),
            FluxExprKind::Unary {
                operator: FluxUnary::Exists,
                operand,
            } => match row_member(operand) {
                Some(name) => self.exists(name),
                None => ScanCondition::Unknown,
            },
            FluxExprKind::Binary {
                operator,
                left,
                right,
            } => {
                let (name, operator, constant) = match (row_member(left), row_member(right)) {
                    (Some(name), None) => (name, *operator, &**right),
                    (None, Some(name)) => (name, mirrored(*operator), &**left),
                    _ => return ScanCondition::Unknown,
                };
                self.comparison(name, operator, constant)
            }
            FluxExprKind::Name(name) if name == "true" => ScanCondition::Always,
            FluxExprKind::Name(name) if name == "false" => ScanCondition::Never,
            _ => ScanCondition::Unknown,
        }
    }

    fn exists(&self, name: &str) -> ScanCondition {
        if matches!(
            name,
            "_measurement" | "_field" | "_time" | "_value" | "_start" | "_stop"
        ) {
            return ScanCondition::Always;
        }
        match self.place.measurement.table.tag(name) {
            Some(_) => ScanCondition::Exactly(column(name).is_not_null()),
            None => ScanCondition::Never,
        }
    }

    fn comparison(
        &mut self,
        name: &str,
        operator: FluxBinary,
        constant: &FluxExpr,
    ) -> ScanCondition {
        if !is_constant(constant) {
            return ScanCondition::Unknown;
        }
        let Ok(value) = self.evaluator.evaluate(constant, self.scope) else {
            return ScanCondition::Unknown;
        };
        match name {
            "_measurement" => known(&self.place.measurement.name, operator, &value),
            "_field" => known(self.place.field, operator, &value),
            "_value" => self.of_value(operator, &value),
            "_time" | "_start" | "_stop" => ScanCondition::Unknown,
            name => self.of_tag(name, operator, &value),
        }
    }

    fn of_tag(&self, name: &str, operator: FluxBinary, value: &FluxValue) -> ScanCondition {
        let Some((_, tag)) = self.place.measurement.table.tag(name) else {
            // The row has no such column, so the comparison is null.
            return ScanCondition::Never;
        };
        let text = match tag.kind {
            TagType::String => column(name),
            _ => cast(column(name), arrow::datatypes::DataType::Utf8),
        };
        ScanCondition::Exactly(match (operator, value) {
            (FluxBinary::Equal, FluxValue::Text(value)) => text.eq(lit(&**value)),
            (FluxBinary::NotEqual, FluxValue::Text(value)) => text.not_eq(lit(&**value)),
            (FluxBinary::Matches, FluxValue::Regex(regex)) => {
                binary_expr(text, Operator::RegexMatch, lit(regex.as_str()))
            }
            (FluxBinary::MatchesNot, FluxValue::Regex(regex)) => {
                binary_expr(text, Operator::RegexNotMatch, lit(regex.as_str()))
            }
            _ => return ScanCondition::Unknown,
        })
    }

    /// The rows that have a fitting value of the field; others may have fitting values of others.
    fn of_value(&self, operator: FluxBinary, value: &FluxValue) -> ScanCondition {
        let Some((name, kind)) = self.place.measurement.field_column(self.place.field) else {
            return ScanCondition::Unknown;
        };
        let value = match (kind, value) {
            (FieldType::F64, FluxValue::Float(value)) if value.is_finite() => lit(*value),
            (FieldType::I64, FluxValue::Int(value)) => lit(*value),
            _ => return ScanCondition::Unknown,
        };
        let operator = match operator {
            FluxBinary::Equal => Operator::Eq,
            FluxBinary::Less => Operator::Lt,
            FluxBinary::LessOrEqual => Operator::LtEq,
            FluxBinary::Greater => Operator::Gt,
            FluxBinary::GreaterOrEqual => Operator::GtEq,
            _ => return ScanCondition::Unknown,
        };
        // SQL orders NaN above all numbers, Flux does not: the scan gives such rows, the filter
        // drops them. So it is no exact condition.
        ScanCondition::Within(binary_expr(column(name), operator, value))
    }
}

/// What a comparison of a known text gives.
fn known(text: &str, operator: FluxBinary, value: &FluxValue) -> ScanCondition {
    let holds = match (operator, value) {
        (FluxBinary::Matches, FluxValue::Regex(regex)) => Some(regex.is_match(text)),
        (FluxBinary::MatchesNot, FluxValue::Regex(regex)) => Some(!regex.is_match(text)),
        (FluxBinary::Matches | FluxBinary::MatchesNot, _) => None,
        (operator, FluxValue::Text(_)) => compared(operator, &FluxValue::text(text), value),
        _ => None,
    };
    match holds {
        Some(true) => ScanCondition::Always,
        Some(false) => ScanCondition::Never,
        None => ScanCondition::Unknown,
    }
}

const fn mirrored(operator: FluxBinary) -> FluxBinary {
    match operator {
        FluxBinary::Less => FluxBinary::Greater,
        FluxBinary::LessOrEqual => FluxBinary::GreaterOrEqual,
        FluxBinary::Greater => FluxBinary::Less,
        FluxBinary::GreaterOrEqual => FluxBinary::LessOrEqual,
        other => other,
    }
}
