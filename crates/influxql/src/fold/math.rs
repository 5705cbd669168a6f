//! Mathematical functions of constants.

use crate::ast::Literal;

/// The value of a function, where it is a mathematical one. Of what is no number it is nothing
/// (`nil`).
pub(super) fn call(name: &str, args: &[&Literal]) -> Option<Literal> {
    let value = match args {
        [arg] => one(name, arg)?,
        [first, second] => two(name, first, second)?,
        _ => return None,
    };
    Some(value.unwrap_or(Literal::Nil))
}

/// Functions of one number. The outer `None` is for a name that is none of them.
fn one(name: &str, arg: &Literal) -> Option<Option<Literal>> {
    let whole = match arg {
        Literal::Integer(value) if name == "abs" => Some(Literal::Integer(value.wrapping_abs())),
        Literal::Integer(value) => Some(Literal::Integer(*value)),
        _ => None,
    };
    let float = float(arg);
    let function: fn(f64) -> f64 = match name {
        "abs" | "floor" | "ceil" | "round" => {
            let function: fn(f64) -> f64 = match name {
                "abs" => f64::abs,
                "floor" => f64::floor,
                "ceil" => f64::ceil,
                _ => f64::round,
            };
            let number = match arg {
                Literal::Number(value) => Some(Literal::Number(function(*value))),
                _ => None,
            };
            return Some(number.or(whole));
        }
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
    Some(float.map(|value| Literal::Number(function(value))))
}

/// Functions of two numbers.
fn two(name: &str, first: &Literal, second: &Literal) -> Option<Option<Literal>> {
    let function: fn(f64, f64) -> f64 = match name {
        "atan2" => f64::atan2,
        "log" => |value, base| value.ln() / base.ln(),
        "pow" => f64::powf,
        _ => return None,
    };
    let both = float(first).zip(float(second));
    Some(both.map(|(first, second)| Literal::Number(function(first, second))))
}

fn float(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Number(value) => Some(*value),
        Literal::Integer(value) => Some(*value as f64),
        Literal::Unsigned(value) => Some(*value as f64),
        _ => None,
    }
}
