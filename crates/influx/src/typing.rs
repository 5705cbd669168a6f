//! The types of columns, and the type errors that InfluxDB reports.

use crate::evaluate::{Division, binary};
use crate::expression::Expression;
use crate::schema::refused;
use crate::value::{InfluxValueType, Value};
use marigram_influxql::ast::{BinaryOp, Cast, Literal};
use marigram_influxql::validate::is_math;
use marigram_sql::SqlResult;

/// The type of an expression whose names carry their types; `None` if it is unknown.
///
/// # Errors
/// If an operator does not take its operands.
pub(crate) fn type_of(expression: &Expression) -> SqlResult<Option<InfluxValueType>> {
    Ok(match expression {
        Expression::Value(value) => value.value_type(),
        Expression::Literal(Literal::Duration(_)) => Some(InfluxValueType::Integer),
        Expression::Name(var) => var.cast.and_then(InfluxValueType::of_cast),
        Expression::Column(_, kind) => *kind,
        Expression::Paren(inner) => type_of(inner)?,
        Expression::Call(name, args) => call_type(name, args)?,
        Expression::Chain(first, links) => {
            let mut kind = type_of(first)?;
            let mut is_literal = first.is_literal();
            for (place, (op, rhs)) in links.iter().enumerate() {
                let right = type_of(rhs)?;
                let text = || {
                    let before = Expression::Chain(first.clone(), links[..=place].to_vec());
                    before.to_string()
                };
                kind = joined((kind, is_literal), *op, (right, rhs.is_literal()), text)?;
                is_literal = false;
            }
            kind
        }
        Expression::Literal(_) | Expression::Regex(_) | Expression::Other(_) => None,
    })
}

fn call_type(name: &str, args: &[Expression]) -> SqlResult<Option<InfluxValueType>> {
    if is_math(name) {
        let mut kinds = Vec::with_capacity(args.len());
        for arg in args {
            kinds.push(type_of(arg)?);
        }
        return math_type(name, &kinds);
    }
    Ok(match name {
        "count" | "elapsed" => Some(InfluxValueType::Integer),
        "mean"
        | "median"
        | "integral"
        | "stddev"
        | "derivative"
        | "non_negative_derivative"
        | "moving_average" => Some(InfluxValueType::Float),
        _ => args.first().map_or(Ok(None), type_of)?,
    })
}

/// The type of a mathematical function.
fn math_type(name: &str, kinds: &[Option<InfluxValueType>]) -> SqlResult<Option<InfluxValueType>> {
    for (place, kind) in kinds.iter().enumerate() {
        if let Some(kind) = kind
            && !kind.is_number()
        {
            return Err(refused(format!(
                "invalid argument type for {} argument in {name}(): {}",
                ordinal(place),
                kind.name()
            )));
        }
    }
    Ok(match name {
        "abs" | "floor" | "ceil" | "round" => kinds.first().copied().flatten(),
        "pow" => match (kinds.first(), kinds.get(1)) {
            (Some(Some(_)), _) | (_, Some(Some(_))) => Some(InfluxValueType::Float),
            _ => None,
        },
        _ => Some(InfluxValueType::Float),
    })
}

const fn ordinal(place: usize) -> &'static str {
    match place {
        0 => "first",
        _ => "second",
    }
}

/// The type of `left op right`; `text` is its text.
fn joined(
    (left, left_literal): (Option<InfluxValueType>, bool),
    op: BinaryOp,
    (right, right_literal): (Option<InfluxValueType>, bool),
    text: impl Fn() -> String,
) -> SqlResult<Option<InfluxValueType>> {
    use InfluxValueType::{Integer, Unsigned};
    let type_error = |why: String| Err(refused(format!("type error: {}: {why}", text())));
    match (left, right) {
        (Some(Unsigned), Some(Integer)) | (Some(Integer), Some(Unsigned)) => {
            let (unsigned_literal, integer_literal) = if left == Some(Unsigned) {
                (left_literal, right_literal)
            } else {
                (right_literal, left_literal)
            };
            if unsigned_literal {
                return type_error(format!(
                    "cannot use {} with an integer and unsigned literal",
                    op.sign()
                ));
            }
            if !integer_literal {
                return type_error(format!(
                    "cannot use {} between an integer and unsigned, an explicit cast is required",
                    op.sign()
                ));
            }
            Ok(Some(Unsigned))
        }
        (None, other) | (other, None) => Ok(other),
        (Some(left), Some(right)) => {
            let value = binary(&zero(left), op, &zero(right), Division::Integer);
            let fits = !value.is_null() && (!op.is_predicate() || comparable(left, right));
            if !fits {
                let (left, right) = (left.name(), right.name());
                return type_error(format!("incompatible types: {left} and {right}"));
            }
            Ok(match (op, value.value_type()) {
                // What is shown of it is a float.
                (BinaryOp::Div, Some(Integer | Unsigned)) => Some(InfluxValueType::Float),
                (_, kind) => kind,
            })
        }
    }
}

const fn comparable(left: InfluxValueType, right: InfluxValueType) -> bool {
    left.is_number() == right.is_number()
}

const fn zero_f64() -> Value {
    Value::Float(0.0)
}

fn zero(kind: InfluxValueType) -> Value {
    match kind {
        InfluxValueType::Float => zero_f64(),
        InfluxValueType::Integer => Value::Integer(0),
        InfluxValueType::Unsigned => Value::Unsigned(0),
        InfluxValueType::Boolean => Value::Boolean(false),
        InfluxValueType::String | InfluxValueType::Tag => Value::String("".into()),
    }
}

/// Whether a cast leaves the type to the stored data.
pub(crate) const fn is_open(cast: Option<Cast>) -> bool {
    matches!(cast, None | Some(Cast::Field))
}
