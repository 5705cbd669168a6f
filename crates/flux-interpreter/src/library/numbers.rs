//! The package `math`.

use crate::value::{FluxArguments, FluxBuiltin, FluxCaller, FluxValue};
use marigram_sql::SqlResult;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "abs",
        call: |_, arguments| of_one(arguments, f64::abs),
    },
    FluxBuiltin {
        name: "acos",
        call: |_, arguments| of_one(arguments, f64::acos),
    },
    FluxBuiltin {
        name: "asin",
        call: |_, arguments| of_one(arguments, f64::asin),
    },
    FluxBuiltin {
        name: "atan",
        call: |_, arguments| of_one(arguments, f64::atan),
    },
    FluxBuiltin {
        name: "atan2",
        call: atan2,
    },
    FluxBuiltin {
        name: "cbrt",
        call: |_, arguments| of_one(arguments, f64::cbrt),
    },
    FluxBuiltin {
        name: "ceil",
        call: |_, arguments| of_one(arguments, f64::ceil),
    },
    FluxBuiltin {
        name: "cos",
        call: |_, arguments| of_one(arguments, f64::cos),
    },
    FluxBuiltin {
        name: "exp",
        call: |_, arguments| of_one(arguments, f64::exp),
    },
    FluxBuiltin {
        name: "floor",
        call: |_, arguments| of_one(arguments, f64::floor),
    },
    FluxBuiltin {
        name: "isNaN",
        call: is_nan,
    },
    FluxBuiltin {
        name: "log",
        call: |_, arguments| of_one(arguments, f64::ln),
    },
    FluxBuiltin {
        name: "log10",
        call: |_, arguments| of_one(arguments, f64::log10),
    },
    FluxBuiltin {
        name: "log2",
        call: |_, arguments| of_one(arguments, f64::log2),
    },
    FluxBuiltin {
        name: "mMax",
        call: |_, arguments| of_two(arguments, f64::max),
    },
    FluxBuiltin {
        name: "mMin",
        call: |_, arguments| of_two(arguments, f64::min),
    },
    FluxBuiltin {
        name: "mod",
        call: |_, arguments| of_two(arguments, |x, y| x % y),
    },
    FluxBuiltin {
        name: "pow",
        call: |_, arguments| of_two(arguments, f64::powf),
    },
    FluxBuiltin {
        name: "round",
        call: |_, arguments| of_one(arguments, f64::round),
    },
    FluxBuiltin {
        name: "sin",
        call: |_, arguments| of_one(arguments, f64::sin),
    },
    FluxBuiltin {
        name: "sqrt",
        call: |_, arguments| of_one(arguments, f64::sqrt),
    },
    FluxBuiltin {
        name: "tan",
        call: |_, arguments| of_one(arguments, f64::tan),
    },
    FluxBuiltin {
        name: "trunc",
        call: |_, arguments| of_one(arguments, f64::trunc),
    },
];

/// A float; `None` for null.
fn number(arguments: &mut FluxArguments, name: &str) -> SqlResult<Option<f64>> {
    match arguments.need(name)? {
        FluxValue::Float(value) => Ok(Some(value)),
        FluxValue::Null => Ok(None),
        other => {
            let kind = other.type_name();
            Err(arguments.fault(format!("argument {name} is {kind}, and not float")))
        }
    }
}

fn of_one(arguments: &mut FluxArguments, compute: fn(f64) -> f64) -> SqlResult<FluxValue> {
    let value = number(arguments, "x")?;
    Ok(value.map_or(FluxValue::Null, |value| FluxValue::Float(compute(value))))
}

fn of_two(arguments: &mut FluxArguments, compute: fn(f64, f64) -> f64) -> SqlResult<FluxValue> {
    let values = number(arguments, "x")?.zip(number(arguments, "y")?);
    Ok(values.map_or(FluxValue::Null, |(x, y)| FluxValue::Float(compute(x, y))))
}

fn atan2(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let values = number(arguments, "y")?.zip(number(arguments, "x")?);
    Ok(values.map_or(FluxValue::Null, |(y, x)| FluxValue::Float(y.atan2(x))))
}

fn is_nan(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let value = number(arguments, "f")?;
    Ok(value.map_or(FluxValue::Null, |value| FluxValue::Bool(value.is_nan())))
}
