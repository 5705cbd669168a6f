//! Mathematical functions of constants.

use crate::ast::Literal;

/// The value of a function, if it is a mathematical one; [`Literal::Nil`] if the argument is not a
/// number.
pub(super) fn call(name: &str, args: &[&Literal]) -> Option<Literal> {
    match args {
        [arg] => rounding(name, arg).or_else(|| of_one(name, arg)),
        [first, second] => of_two(name, first, second),
        _ => None,
    }
}

/// Functions that leave whole numbers whole.
fn rounding(name: &str, arg: &Literal) -> Option<Literal> {
    let function: fn(f64) -> f64 = match name {
        "abs" => f64::abs,
        "floor" => f64::floor,
        "ceil" => f64::ceil,
        "round" => f64::round,
        _ => return None,
    };
    Some(match arg {
        Literal::Number(value) => Literal::Number(function(*value)),
        Literal::Integer(value) if name == "abs" => Literal::Integer(value.wrapping_abs()),
        Literal::Integer(value) => Literal::Integer(*value),
        // InfluxDB has no literal for the resulting unsigned number.
        _ => Literal::Nil,
    })
}

/// Functions of one number.
fn of_one(name: &str, arg: &Literal) -> Option<Literal> {
    let function: fn(f64) -> f64 = match name {
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        "exp" => f64::exp,
        "ln" => f64::ln,
        "log2" => f64::log2,
        "log10" => f64::log10,
        "sqrt" => f64::sqrt,
        _ => return None,
    };
    Some(float(arg).map_or(Literal::Nil, |value| Literal::Number(function(value))))
}

/// Functions of two numbers.
fn of_two(name: &str, first: &Literal, second: &Literal) -> Option<Literal> {
    let function: fn(f64, f64) -> f64 = match name {
        "atan2" => f64::atan2,
        "log" => |value, base| value.ln() / base.ln(),
        "pow" => f64::powf,
        _ => return None,
    };
    let both = float(first).zip(float(second));
    Some(both.map_or(Literal::Nil, |(first, second)| {
        Literal::Number(function(first, second))
    }))
}

fn float(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Number(value) => Some(*value),
        Literal::Integer(value) => Some(*value as f64),
        Literal::Unsigned(value) => Some(*value as f64),
        _ => None,
    }
}
