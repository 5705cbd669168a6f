//! Functions of numbers.

use crate::expression::Typed;
use crate::expression::scalar_function::{RowFunction, RowFunctionSpec};
use crate::taos_value::Val;
use marigram_tdengine::TaosType;
use std::sync::Arc;

/// Functions of numbers that keep their type.
pub(crate) fn same_type(name: &str, arguments: &[Typed]) -> Option<RowFunctionSpec> {
    let kind = arguments.first()?.kind;
    if !kind.is_number() {
        return None;
    }
    let compute: fn(f64) -> f64 = match name {
        "abs" => f64::abs,
        "ceil" => f64::ceil,
        "floor" => f64::floor,
        "round" if arguments.len() == 1 => f64::round,
        "round" => {
            let function: RowFunction = Arc::new(move |values: &[Val]| {
                let (Some(value), Some(digits)) = (values[0].number(), values[1].integer()) else {
                    return Val::Null;
                };
                let scale = 10f64.powi(i32::try_from(digits.clamp(-300, 300)).unwrap_or(0));
                let rounded = Val::of_number((value * scale).round() / scale);
                crate::conversion::converted(&rounded, kind)
            });
            return Some(RowFunctionSpec {
                arity: (2, 2),
                kind,
                function,
            });
        }
        _ => return None,
    };
    let function: RowFunction = Arc::new(move |values: &[Val]| match &values[0] {
        Val::Int(value) if name_is_abs(compute) => value.checked_abs().map_or(Val::Null, Val::Int),
        Val::Int(_) | Val::UInt(_) => values[0].clone(),
        value => value
            .number()
            .map_or(Val::Null, |value| Val::of_number(compute(value))),
    });
    Some(RowFunctionSpec {
        arity: (1, 1),
        kind,
        function,
    })
}

/// Whether a function changes integers: only the absolute value does.
fn name_is_abs(compute: fn(f64) -> f64) -> bool {
    compute(-1.0) > 0.0
}

/// Functions of floats.
pub(crate) fn math(name: &str) -> Option<RowFunctionSpec> {
    let one: Option<fn(f64) -> f64> = match name {
        "acos" => Some(f64::acos),
        "asin" => Some(f64::asin),
        "atan" => Some(f64::atan),
        "cos" => Some(f64::cos),
        "sin" => Some(f64::sin),
        "tan" => Some(f64::tan),
        "sqrt" => Some(f64::sqrt),
        "exp" => Some(f64::exp),
        "ln" => Some(f64::ln),
        "degrees" => Some(f64::to_degrees),
        "radians" => Some(f64::to_radians),
        "sign" => Some(|value| if value == 0.0 { 0.0 } else { value.signum() }),
        _ => None,
    };
    if let Some(one) = one {
        let function: RowFunction = Arc::new(move |values: &[Val]| {
            values[0]
                .number()
                .map_or(Val::Null, |value| Val::of_number(one(value)))
        });
        return Some(RowFunctionSpec {
            arity: (1, 1),
            kind: TaosType::Double,
            function,
        });
    }
    type TwoNumbers = fn(f64, Option<f64>) -> f64;
    let (arity, two): ((usize, usize), TwoNumbers) = match name {
        "pow" | "power" => ((2, 2), |base, power| base.powf(power.unwrap_or(1.0))),
        "log" => ((1, 2), |value, base| match base {
            Some(base) => value.ln() / base.ln(),
            None => value.ln(),
        }),
        "mod" => ((2, 2), |a, b| a % b.unwrap_or(1.0)),
        "trunc" | "truncate" => ((2, 2), |value, digits| {
            let scale = 10f64.powf(digits.unwrap_or(0.0).trunc());
            (value * scale).trunc() / scale
        }),
        _ => return None,
    };
    let function: RowFunction = Arc::new(move |values: &[Val]| {
        let Some(first) = values[0].number() else {
            return Val::Null;
        };
        match values.get(1) {
            None => Val::of_number(two(first, None)),
            Some(second) => match second.number() {
                Some(second) => Val::of_number(two(first, Some(second))),
                None => Val::Null,
            },
        }
    });
    Some(RowFunctionSpec {
        arity,
        kind: TaosType::Double,
        function,
    })
}
