//! Functions of many rows: which there are, their arguments and types.

use crate::call_class::is_known;
use crate::expression::Scope;
use crate::moments::{duration, fixed_ns};
use crate::planned_call::PlannedCall;
use crate::run::fault_about;
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosCall, TaosExpr, TaosLiteral};
use marigram_tdengine::{TaosCode, TaosType};

/// The length that is told for a bin of HISTOGRAM.
const BINS_LENGTH: u32 = 512;

/// The length that is told for several percentiles.
const PERCENTILES_LENGTH: u32 = 500;

/// The constant that an argument is.
pub(crate) fn constant(expr: &TaosExpr) -> SqlResult<Val> {
    Ok(match expr {
        TaosExpr::Literal(literal) => match literal {
            TaosLiteral::Integer(number) => i64::try_from(*number).map_or(Val::Null, Val::Int),
            TaosLiteral::Float(number) => Val::Float(*number),
            TaosLiteral::Text(text) => Val::of_text(text),
            TaosLiteral::Bool(value) => Val::Bool(*value),
            TaosLiteral::Duration(duration) => Val::Time(fixed_ns(*duration)?),
            _ => Val::Null,
        },
        TaosExpr::Negative(inner) => match constant(inner)? {
            Val::Int(number) => Val::Int(-number),
            Val::Float(number) => Val::Float(-number),
            other => other,
        },
        _ => {
            if duration(expr).is_none() {
                return Err(fault_about(TaosCode::ParameterType, "a constant is needed"));
            }
            Val::Null
        }
    })
}

/// Plans a call.
///
/// # Errors
/// If its arguments do not fit.
pub(crate) fn planned(scope: &Scope<'_>, call: &TaosCall) -> SqlResult<PlannedCall> {
    let name = call.name.as_str();
    let count = call.arguments.len();
    let (least, most) = arity(name);
    if !(least..=most).contains(&count) {
        return Err(fault_about(TaosCode::ParameterCount, name));
    }
    let is_star = matches!(call.arguments.first(), Some(TaosExpr::Star(_)));
    let mut arguments = Vec::new();
    if !(name == "count" && is_star) {
        for argument in call.arguments.iter().take(1) {
            arguments.push(scope.typed(argument)?);
        }
    }
    let mut constants = Vec::new();
    for argument in call.arguments.iter().skip(1) {
        constants.push(constant(argument)?);
    }
    if name == "elapsed" && constants.is_empty() {
        constants.push(Val::Time(scope.setting.precision.tick_ns()));
    }
    let own = arguments
        .first()
        .map_or(TaosType::BigInt, |typed| typed.kind);
    check_type(name, own)?;
    check_constants(name, &constants)?;
    let kind = match name {
        "count" | "hyperloglog" | "statecount" | "stateduration" => TaosType::BigInt,
        "sum" | "csum" | "diff" => match own {
            TaosType::UBigInt if name != "diff" => TaosType::UBigInt,
            TaosType::Float | TaosType::Double => TaosType::Double,
            _ => TaosType::BigInt,
        },
        "first" | "last" | "last_row" | "min" | "max" | "mode" | "top" | "bottom" | "sample"
        | "tail" | "unique" | "interp" => own,
        "leastsquares" => TaosType::VarChar(128),
        "histogram" => TaosType::VarChar(BINS_LENGTH),
        "percentile" if constants.len() > 1 => TaosType::VarChar(PERCENTILES_LENGTH),
        _ => TaosType::Double,
    };
    Ok(PlannedCall {
        name: name.to_owned(),
        arguments,
        constants,
        kind,
    })
}

fn arity(name: &str) -> (usize, usize) {
    match name {
        "elapsed" | "diff" | "interp" => (1, 2),
        "percentile" => (2, 11),
        "apercentile" | "tail" => (2, 3),
        "top" | "bottom" | "sample" | "mavg" => (2, 2),
        "leastsquares" | "statecount" | "derivative" => (3, 3),
        "stateduration" => (3, 4),
        "histogram" => (4, 4),
        _ => (1, 1),
    }
}

/// Fails if a function cannot take values of a type.
fn check_type(name: &str, kind: TaosType) -> SqlResult<()> {
    let is_number = kind.is_number() || kind == TaosType::Null;
    let fits = match name {
        "sum" | "avg" | "stddev" | "stddev_pop" | "stddev_samp" | "var_pop" | "var_samp"
        | "variance" | "percentile" | "apercentile" | "twa" | "irate" | "leastsquares" | "csum"
        | "mavg" | "derivative" | "statecount" | "stateduration" | "histogram" | "top"
        | "bottom" => is_number,
        "spread" | "diff" => is_number || matches!(kind, TaosType::Timestamp | TaosType::Bool),
        "interp" => is_number || kind == TaosType::Bool,
        "elapsed" => kind == TaosType::Timestamp,
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(fault_about(TaosCode::ParameterType, name))
    }
}

fn check_constants(name: &str, constants: &[Val]) -> SqlResult<()> {
    let within = |place: usize, low: f64, high: f64| {
        let number = constants.get(place).and_then(Val::number);
        number.is_some_and(|number| (low..=high).contains(&number))
    };
    let fits = match name {
        "top" | "bottom" | "tail" => within(0, 1.0, 100.0),
        "sample" | "mavg" => within(0, 1.0, 1000.0),
        "apercentile" => within(0, 0.0, 100.0),
        "percentile" => (0..constants.len()).all(|place| within(place, 0.0, 100.0)),
        "statecount" | "stateduration" => constants.first().is_some_and(|operator| {
            let operator = operator.text().unwrap_or_default().to_ascii_uppercase();
            ["LT", "GT", "LE", "GE", "NE", "EQ"].contains(&operator.as_str())
        }),
        "derivative" => constants
            .first()
            .and_then(Val::integer)
            .is_some_and(|unit| unit > 0),
        "histogram" => crate::stage::histogram_bins(constants).is_some(),
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(fault_about(TaosCode::ParameterValue, name))
    }
}

/// The calls of functions of many rows within an expression, from the left.
///
/// # Errors
/// If one stands within another.
pub(crate) fn calls_within<'e>(expr: &'e TaosExpr, found: &mut Vec<&'e TaosCall>) -> SqlResult<()> {
    if let TaosExpr::Call(call) = expr
        && is_known(&call.name)
    {
        let mut inner = Vec::new();
        for argument in &call.arguments {
            calls_within(argument, &mut inner)?;
        }
        if let Some(inner) = inner.first() {
            return Err(fault_about(TaosCode::NestedAggregate, &inner.name));
        }
        if !found.contains(&call) {
            found.push(call);
        }
        return Ok(());
    }
    for child in expr.children() {
        calls_within(child, found)?;
    }
    Ok(())
}
