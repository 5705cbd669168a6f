//! A request for groups in terms of SQL's aggregates, where they compute it as InfluxQL does.

use super::{ReducedCall, ReducedInput, ReducedOperand, ReducedRequest};
use crate::reducer::Aggregate;
use crate::schema::{StoredMeasurement, stored_type};
use crate::source::SourceColumn;
use crate::source::measurement::{ReadColumn, column, requested_column, residual};
use crate::value::{InfluxValueType, Value};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::{Expr, cast, lit, when};
use marigram_influxql::ast::BinaryOp;
use marigram_model::{FieldType, TagType};
use std::sync::Arc;

/// What a result is computed from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartialInput {
    Field(String),
    /// The operands are fields, or numbers.
    Arithmetic(Result<String, f64>, BinaryOp, Result<String, f64>),
}

impl PartialInput {
    /// The expression over the scan.
    pub(super) fn expression(&self) -> Expr {
        let number = |operand: &Result<String, f64>| match operand {
            Ok(field) => cast(column(field), DataType::Float64),
            Err(constant) => lit(*constant),
        };
        match self {
            Self::Field(field) => column(field),
            Self::Arithmetic(left, op, right) => {
                let (left, right) = (number(left), number(right));
                let computed = match op {
                    BinaryOp::Add => left.clone() + right.clone(),
                    BinaryOp::Sub => left.clone() - right.clone(),
                    BinaryOp::Mul => left.clone() * right.clone(),
                    _ => left.clone() / right.clone(),
                };
                // x / 0 is 0, and what is not a number is null.
                let is_missing = left.is_null().or(right.clone().is_null());
                let null = Expr::Literal(ScalarValue::Float64(None), None);
                let mut choice = when(is_missing, null.clone());
                if *op == BinaryOp::Div {
                    choice = choice.when(right.eq(lit(0.0)), lit(0.0));
                }
                let computed = choice.otherwise(computed).unwrap_or(null.clone());
                let is_nan = isnan(computed.clone());
                when(is_nan, null).otherwise(computed).unwrap_or(lit(0.0))
            }
        }
    }
}

/// A result of the aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Partial {
    /// The name of the aggregate in SQL.
    pub(super) function: &'static str,
    /// Its argument.
    pub(super) input: PartialInput,
}

/// How a function's value follows from results of the aggregate.
#[derive(Clone, Copy, Debug)]
pub(super) enum FromPartials {
    /// There is no such field.
    Nothing,
    /// It is one of them.
    One(usize),
    /// It is one of them, and null instead of 0.
    Count(usize),
    /// It is the difference of two.
    Difference(usize, usize),
    /// It is the quotient of a sum of integers and their count.
    Mean(usize, usize),
}

/// A request as a plan.
pub(super) struct ReducedPlan {
    /// The results, each once.
    pub(super) partials: Vec<Partial>,
    /// The value of each function.
    pub(super) values: Vec<FromPartials>,
}

/// The input of a call and its type, if the aggregate computes the call as InfluxQL does; `Err` if not,
/// and `Ok(None)` if the table has no such field.
fn input_of(
    call: &ReducedCall,
    measurement: &StoredMeasurement,
) -> Result<Option<(PartialInput, InfluxValueType)>, ()> {
    let (input, kind, is_time) = match &call.input {
        ReducedInput::Column(asked) => match field_of(asked, measurement)? {
            Some((field, kind, is_time)) => (PartialInput::Field(field), kind, is_time),
            None => return Ok(None),
        },
        ReducedInput::Arithmetic(left, op, right) => {
            let operand = |operand: &ReducedOperand| match operand {
                ReducedOperand::Constant(constant) => Ok(Err(*constant)),
                ReducedOperand::Column(asked) => match field_of(asked, measurement)? {
                    Some((field, kind, false)) if kind.is_number() => Ok(Ok(field)),
                    _ => Err(()),
                },
            };
            let input = PartialInput::Arithmetic(operand(left)?, *op, operand(right)?);
            (input, InfluxValueType::Float, false)
        }
    };
    let is_counted = matches!(call.aggregate, Aggregate::Count);
    let is_edge = matches!(call.aggregate, Aggregate::First | Aggregate::Last);
    if !is_counted && (is_time || !(is_edge || kind.is_number())) {
        return Err(());
    }
    Ok(Some((input, kind)))
}

/// A field, its type, and whether it is stored as a time; `None` if the table has no such field.
fn field_of(
    asked: &SourceColumn,
    measurement: &StoredMeasurement,
) -> Result<Option<(String, InfluxValueType, bool)>, ()> {
    let (name, kind) = match requested_column(measurement, asked) {
        ReadColumn::Absent(Value::Null) => return Ok(None),
        ReadColumn::Field { name, kind } => (name, kind),
        _ => return Err(()),
    };
    let stored = measurement.table.field(&name).map(|field| field.kind);
    let stored_as = stored.and_then(stored_type).ok_or(())?;
    if kind.is_some_and(|kind| kind != stored_as) {
        return Err(());
    }
    Ok(Some((
        name,
        stored_as,
        stored == Some(FieldType::Timestamp),
    )))
}

impl ReducedPlan {
    /// `None` if the aggregate does not compute the request as InfluxQL does.
    pub(super) fn new(request: &ReducedRequest) -> Option<Self> {
        let measurement = &request.measurement;
        if let Some(condition) = &request.condition
            && residual(condition, measurement).is_some()
        {
            return None;
        }
        let table = &measurement.table;
        let is_text = |key: &Arc<str>| {
            let tag = table.tag(key);
            tag.is_none_or(|(_, tag)| tag.kind == TagType::String)
        };
        if !request.keys.iter().all(is_text) {
            return None;
        }
        // Of values with one time, InfluxDB takes the greatest; within a series there is one.
        let is_of_series = table
            .tags
            .iter()
            .all(|tag| request.keys.iter().any(|key| **key == *tag.name));
        let mut planned = Self {
            partials: Vec::new(),
            values: Vec::new(),
        };
        for call in &request.calls {
            let Some((input, kind)) = input_of(call, measurement).ok()? else {
                planned.values.push(FromPartials::Nothing);
                continue;
            };
            let mut add = |function| planned.add(function, &input);
            let value = match call.aggregate {
                Aggregate::Count => FromPartials::Count(add("count")),
                Aggregate::Sum => FromPartials::One(add("sum")),
                Aggregate::Mean if kind == InfluxValueType::Float => FromPartials::One(add("avg")),
                // InfluxDB rounds the sum to a double and then the quotient, which `avg` does not. A
                // sum that does not fit wraps in InfluxDB; here it fails.
                Aggregate::Mean => FromPartials::Mean(add("sum"), add("count")),
                Aggregate::Min => FromPartials::One(add("min")),
                Aggregate::Max => FromPartials::One(add("max")),
                Aggregate::Spread => FromPartials::Difference(add("max"), add("min")),
                Aggregate::First if is_of_series => FromPartials::One(add("first")),
                Aggregate::Last if is_of_series => FromPartials::One(add("last")),
                _ => return None,
            };
            planned.values.push(value);
        }
        Some(planned)
    }

    /// The place of a result, which is added if it is new.
    fn add(&mut self, function: &'static str, input: &PartialInput) -> usize {
        let wanted = Partial {
            function,
            input: input.clone(),
        };
        let known = self.partials.iter().position(|known| *known == wanted);
        known.unwrap_or_else(|| {
            self.partials.push(wanted);
            self.partials.len() - 1
        })
    }
}
