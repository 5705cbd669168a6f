//! The value of an expression for a row, as InfluxDB computes it: x / 0 is 0, integers wrap, and
//! operands of the wrong type give null or false.

use crate::expression::Expression;
use crate::value::Value;
use marigram_influxql::ast::BinaryOp;

/// How to divide integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// The quotient of two integers is a float: in columns.
    Float,
    /// The quotient of two integers is an integer: in conditions.
    Integer,
}

/// The value of an expression.
pub(crate) fn evaluate(expression: &Expression, row: &[Value], division: Division) -> Value {
    match expression {
        Expression::Value(value) => value.clone(),
        Expression::Column(place, _) => row.get(*place).cloned().unwrap_or_default(),
        Expression::Paren(inner) => evaluate(inner, row, division),
        Expression::Call(name, args) => {
            let args: Vec<Value> = args
                .iter()
                .map(|arg| evaluate(arg, row, division))
                .collect();
            math(name, &args)
        }
        Expression::Chain(first, links) => {
            let mut value = evaluate(first, row, division);
            for (op, rhs) in links {
                if let Expression::Regex(regex) = rhs {
                    value = match (&value, op) {
                        (Value::String(text), BinaryOp::EqRegex) => {
                            Value::Boolean(regex.is_match(text))
                        }
                        (Value::String(text), BinaryOp::NeqRegex) => {
                            Value::Boolean(!regex.is_match(text))
                        }
                        _ => Value::Boolean(false),
                    };
                    continue;
                }
                let right = evaluate(rhs, row, division);
                value = binary(&value, *op, &right, division);
            }
            value
        }
        Expression::Literal(_)
        | Expression::Regex(_)
        | Expression::Name(_)
        | Expression::Other(_) => Value::Null,
    }
}

/// Whether a condition is true.
pub(crate) fn holds(expression: &Expression, row: &[Value]) -> bool {
    evaluate(expression, row, Division::Integer) == Value::Boolean(true)
}

/// `left op right`.
pub(crate) fn binary(left: &Value, op: BinaryOp, right: &Value, division: Division) -> Value {
    use Value::{Boolean, Float, Integer, Null, String, Unsigned};
    match (left, right) {
        (Boolean(a), Boolean(b)) => booleans(*a, op, *b),
        (Boolean(a), Null) if takes_nothing(op) => booleans(*a, op, false),
        (Null, Boolean(b)) if takes_nothing(op) => booleans(false, op, *b),
        (Float(a), _) if right.as_f64().is_some() => floats(*a, op, right.as_f64().unwrap_or(0.0)),
        (_, Float(b)) if left.as_f64().is_some() => floats(left.as_f64().unwrap_or(0.0), op, *b),
        (Integer(a), Integer(b)) => integers(*a, op, *b, division),
        (Unsigned(a), Unsigned(b)) => unsigned(*a, op, *b, division),
        // With an unsigned number, an integer is treated as unsigned if possible.
        (Unsigned(a), Integer(b)) => mixed(*a, op, *b, false, division),
        (Integer(a), Unsigned(b)) => mixed(*b, op, *a, true, division),
        (String(a), String(b)) => match op {
            BinaryOp::Eq => Boolean(a == b),
            BinaryOp::Neq => Boolean(a != b),
            _ => missing(op),
        },
        _ => missing(op),
    }
}

/// Whether nothing beside a boolean is taken as false.
const fn takes_nothing(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::BitwiseAnd
            | BinaryOp::BitwiseOr
            | BinaryOp::BitwiseXor
    )
}

/// The result of an operator whose operands have unsuitable types.
fn missing(op: BinaryOp) -> Value {
    if op.is_predicate() {
        Value::Boolean(false)
    } else {
        Value::Null
    }
}

fn booleans(a: bool, op: BinaryOp, b: bool) -> Value {
    Value::Boolean(match op {
        BinaryOp::And | BinaryOp::BitwiseAnd => a && b,
        BinaryOp::Or | BinaryOp::BitwiseOr => a || b,
        BinaryOp::BitwiseXor | BinaryOp::Neq => a != b,
        BinaryOp::Eq => a == b,
        op => return missing(op),
    })
}

fn compared<T: PartialOrd>(a: T, op: BinaryOp, b: T) -> Option<Value> {
    Some(Value::Boolean(match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Neq => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Lte => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Gte => a >= b,
        _ => return None,
    }))
}

fn floats(a: f64, op: BinaryOp, b: f64) -> Value {
    if let Some(answer) = compared(a, op, b) {
        return answer;
    }
    Value::Float(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div if b == 0.0 => 0.0,
        BinaryOp::Div => a / b,
        BinaryOp::Mod => a % b,
        op => return missing(op),
    })
}

fn integers(a: i64, op: BinaryOp, b: i64, division: Division) -> Value {
    if let Some(answer) = compared(a, op, b) {
        return answer;
    }
    Value::Integer(match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div if division == Division::Float => {
            return floats(a as f64, op, b as f64);
        }
        BinaryOp::Div | BinaryOp::Mod if b == 0 => 0,
        BinaryOp::Div => a.wrapping_div(b),
        BinaryOp::Mod => a.wrapping_rem(b),
        BinaryOp::BitwiseAnd => a & b,
        BinaryOp::BitwiseOr => a | b,
        BinaryOp::BitwiseXor => a ^ b,
        op => return missing(op),
    })
}

fn unsigned(a: u64, op: BinaryOp, b: u64, division: Division) -> Value {
    if let Some(answer) = compared(a, op, b) {
        return answer;
    }
    Value::Unsigned(match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div if division == Division::Float => {
            return floats(a as f64, op, b as f64);
        }
        BinaryOp::Div => a.checked_div(b).unwrap_or(0),
        BinaryOp::Mod => a.checked_rem(b).unwrap_or(0),
        BinaryOp::BitwiseAnd => a & b,
        BinaryOp::BitwiseOr => a | b,
        BinaryOp::BitwiseXor => a ^ b,
        op => return missing(op),
    })
}

/// An unsigned number and an integer; `swapped` if the integer comes first.
fn mixed(a: u64, op: BinaryOp, b: i64, swapped: bool, division: Division) -> Value {
    let wide = (i128::from(a), i128::from(b));
    let (left, right) = if swapped { (wide.1, wide.0) } else { wide };
    if let Some(answer) = compared(left, op, right) {
        return answer;
    }
    let (left, right) = if swapped {
        (b as u64, a)
    } else {
        (a, b as u64)
    };
    unsigned(left, op, right, division)
}

/// The value of a mathematical function; null if it is not a number.
pub(crate) fn math(name: &str, args: &[Value]) -> Value {
    let number = |place: usize| args.get(place).and_then(Value::as_f64);
    let rounded = |function: fn(f64) -> f64| match args.first() {
        Some(Value::Float(value)) => Value::Float(function(*value)),
        Some(value @ (Value::Integer(_) | Value::Unsigned(_))) => value.clone(),
        _ => Value::Null,
    };
    let of_one = |function: fn(f64) -> f64| {
        number(0).map_or(Value::Null, |value| Value::Float(function(value)))
    };
    let of_two = |function: fn(f64, f64) -> f64| match (number(0), number(1)) {
        (Some(a), Some(b)) => Value::Float(function(a, b)),
        _ => Value::Null,
    };
    match name {
        "abs" => match args.first() {
            Some(Value::Integer(value)) => Value::Integer(value.wrapping_abs()),
            _ => rounded(f64::abs),
        },
        "floor" => rounded(f64::floor),
        "ceil" => rounded(f64::ceil),
        "round" => rounded(f64::round),
        "sin" => of_one(f64::sin),
        "cos" => of_one(f64::cos),
        "tan" => of_one(f64::tan),
        "asin" => of_one(f64::asin),
        "acos" => of_one(f64::acos),
        "atan" => of_one(f64::atan),
        "exp" => of_one(f64::exp),
        "ln" => of_one(f64::ln),
        "log2" => of_one(f64::log2),
        "log10" => of_one(f64::log10),
        "sqrt" => of_one(f64::sqrt),
        "atan2" => of_two(f64::atan2),
        "pow" => of_two(f64::powf),
        "log" => of_two(|value, base| value.ln() / base.ln()),
        _ => Value::Null,
    }
}
