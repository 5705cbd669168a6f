//! Operators between two values.

use crate::fault::fault;
use crate::value::{FluxSpan, FluxValue};
use marigram_flux::FluxPosition;
use marigram_flux::ast::FluxBinary;
use marigram_sql::SqlResult;
use std::cmp::Ordering;

/// Whether a condition holds; `None` for null.
///
/// # Errors
/// If it is no boolean.
pub(crate) fn truth(at: FluxPosition, value: &FluxValue) -> SqlResult<Option<bool>> {
    match value {
        FluxValue::Bool(value) => Ok(Some(*value)),
        FluxValue::Null => Ok(None),
        other => {
            let kind = other.type_name();
            Err(fault(at, format!("expected bool but found {kind}")))
        }
    }
}

/// The value of an operator. Null, where an operand is null.
///
/// # Errors
/// If the operator does not take values of these types.
pub(crate) fn binary(
    at: FluxPosition,
    operator: FluxBinary,
    left: &FluxValue,
    right: &FluxValue,
) -> SqlResult<FluxValue> {
    if left.is_null() || right.is_null() {
        return Ok(FluxValue::Null);
    }
    match operator {
        FluxBinary::Matches | FluxBinary::MatchesNot => {
            if let (FluxValue::Text(text), FluxValue::Regex(regex)) = (left, right) {
                let wanted = operator == FluxBinary::Matches;
                return Ok(FluxValue::Bool(regex.is_match(text) == wanted));
            }
        }
        FluxBinary::Equal
        | FluxBinary::NotEqual
        | FluxBinary::Less
        | FluxBinary::LessOrEqual
        | FluxBinary::Greater
        | FluxBinary::GreaterOrEqual => {
            if let Some(holds) = compared(operator, left, right) {
                return Ok(FluxValue::Bool(holds));
            }
        }
        _ => {
            if let Some(value) = computed(at, operator, left, right)? {
                return Ok(value);
            }
        }
    }
    let (left, right) = (left.type_name(), right.type_name());
    let symbol = operator.symbol();
    Err(fault(
        at,
        format!("unsupported binary expression {left} {symbol} {right}"),
    ))
}

/// Whether a comparison holds; `None` for types that are not compared.
pub(crate) fn compared(operator: FluxBinary, left: &FluxValue, right: &FluxValue) -> Option<bool> {
    let order = match (left, right) {
        (FluxValue::Bool(a), FluxValue::Bool(b))
            if matches!(operator, FluxBinary::Equal | FluxBinary::NotEqual) =>
        {
            Some(a.cmp(b))
        }
        (FluxValue::Text(a), FluxValue::Text(b)) => Some(a.cmp(b)),
        (FluxValue::Time(a), FluxValue::Time(b)) | (FluxValue::Int(a), FluxValue::Int(b)) => {
            Some(a.cmp(b))
        }
        (FluxValue::UInt(a), FluxValue::UInt(b)) => Some(a.cmp(b)),
        (FluxValue::Int(a), FluxValue::UInt(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (FluxValue::UInt(a), FluxValue::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (FluxValue::Duration(a), FluxValue::Duration(b)) => {
            Some((a.months, a.ns).cmp(&(b.months, b.ns)))
        }
        (left, right) => left.as_float()?.partial_cmp(&right.as_float()?),
    };
    Some(match operator {
        FluxBinary::Equal => order == Some(Ordering::Equal),
        FluxBinary::NotEqual => order != Some(Ordering::Equal),
        FluxBinary::Less => order == Some(Ordering::Less),
        FluxBinary::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        FluxBinary::Greater => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn computed(
    at: FluxPosition,
    operator: FluxBinary,
    left: &FluxValue,
    right: &FluxValue,
) -> SqlResult<Option<FluxValue>> {
    let by_zero = || fault(at, "cannot divide by zero");
    Ok(Some(match (left, right) {
        (FluxValue::Int(a), FluxValue::Int(b)) => FluxValue::Int(match operator {
            FluxBinary::Add => a.wrapping_add(*b),
            FluxBinary::Subtract => a.wrapping_sub(*b),
            FluxBinary::Multiply => a.wrapping_mul(*b),
            FluxBinary::Divide | FluxBinary::Modulo if *b == 0 => return Err(by_zero()),
            FluxBinary::Divide => a.wrapping_div(*b),
            FluxBinary::Modulo => a.wrapping_rem(*b),
            FluxBinary::Power => return Ok(Some(FluxValue::Float((*a as f64).powf(*b as f64)))),
            _ => return Ok(None),
        }),
        (FluxValue::UInt(a), FluxValue::UInt(b)) => FluxValue::UInt(match operator {
            FluxBinary::Add => a.wrapping_add(*b),
            FluxBinary::Subtract => a.wrapping_sub(*b),
            FluxBinary::Multiply => a.wrapping_mul(*b),
            FluxBinary::Divide | FluxBinary::Modulo if *b == 0 => return Err(by_zero()),
            FluxBinary::Divide => a / b,
            FluxBinary::Modulo => a % b,
            FluxBinary::Power => return Ok(Some(FluxValue::Float((*a as f64).powf(*b as f64)))),
            _ => return Ok(None),
        }),
        (FluxValue::Float(a), FluxValue::Float(b)) => FluxValue::Float(match operator {
            FluxBinary::Add => a + b,
            FluxBinary::Subtract => a - b,
            FluxBinary::Multiply => a * b,
            FluxBinary::Divide => a / b,
            FluxBinary::Modulo => a % b,
            FluxBinary::Power => a.powf(*b),
            _ => return Ok(None),
        }),
        (FluxValue::Text(a), FluxValue::Text(b)) if operator == FluxBinary::Add => {
            FluxValue::text(&format!("{a}{b}"))
        }
        (FluxValue::Time(a), FluxValue::Duration(b)) => match operator {
            FluxBinary::Add => FluxValue::Time(b.after(*a)),
            FluxBinary::Subtract => FluxValue::Time(b.negated().after(*a)),
            _ => return Ok(None),
        },
        (FluxValue::Time(a), FluxValue::Time(b)) if operator == FluxBinary::Subtract => {
            let ns = a.saturating_sub(*b);
            FluxValue::Duration(FluxSpan { months: 0, ns })
        }
        (FluxValue::Duration(a), FluxValue::Duration(b)) => {
            let b = match operator {
                FluxBinary::Add => *b,
                FluxBinary::Subtract => b.negated(),
                _ => return Ok(None),
            };
            FluxValue::Duration(FluxSpan {
                months: a.months.saturating_add(b.months),
                ns: a.ns.saturating_add(b.ns),
            })
        }
        (FluxValue::Int(factor), FluxValue::Duration(span))
        | (FluxValue::Duration(span), FluxValue::Int(factor))
            if operator == FluxBinary::Multiply =>
        {
            FluxValue::Duration(FluxSpan {
                months: span.months.saturating_mul(*factor),
                ns: span.ns.saturating_mul(*factor),
            })
        }
        _ => return Ok(None),
    }))
}
