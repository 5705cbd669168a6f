//! Checks functions and their arguments.

use super::state::ColumnState;
use crate::ast::{Call, Expr, Literal};
use crate::duration::InfluxDuration;
use crate::select_error::{Arity, SelectError};

/// Whether a function is computed for each row.
pub fn is_math(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "sin"
            | "cos"
            | "tan"
            | "asin"
            | "acos"
            | "atan"
            | "atan2"
            | "exp"
            | "log"
            | "ln"
            | "log2"
            | "log10"
            | "sqrt"
            | "pow"
            | "floor"
            | "ceil"
            | "round"
    )
}

/// What is left to look at once a call's own arguments are checked.
pub(super) enum FunctionArgument<'a> {
    /// Expressions and constants.
    Operands(&'a [Expr]),
    /// The field of an aggregate.
    Field(&'a Expr),
    /// The argument of a transformation: an aggregate if there are groups of time, otherwise a
    /// field.
    Transformed(&'a Expr),
    /// A call whose values are used; `distinct` counts as an aggregate.
    Nested(&'a Call),
    /// A call whose values are used.
    Call(&'a Call),
    /// The column of `distinct`, which is alone or in `count`.
    Distinct {
        /// Its arguments.
        args: &'a [Expr],
        /// Whether it is inside another function.
        nested: bool,
    },
    /// The column after DISTINCT without parentheses, in `count`.
    DistinctName,
    /// Nothing.
    Nothing,
}

type Checked<'a> = Result<FunctionArgument<'a>, SelectError>;

/// Checks a call: that the function exists, its number of arguments, and each of them except the
/// one that is an expression, which is returned.
pub(super) fn check<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    if is_math(&call.name) {
        return math(call);
    }
    state.functions.calls += 1;
    match call.name.as_str() {
        "percentile" => percentile(call),
        "sample" => sample(call),
        "distinct" => Ok(FunctionArgument::Distinct {
            args: &call.args,
            nested: false,
        }),
        "top" | "bottom" => top_bottom(state, call),
        "derivative" | "non_negative_derivative" | "elapsed" => with_unit(state, call),
        "difference" | "non_negative_difference" | "cumulative_sum" => {
            count_arguments(call, Arity::Exactly(1))?;
            state.looks_back(1);
            Ok(FunctionArgument::Transformed(&call.args[0]))
        }
        "moving_average" => moving_average(state, call),
        "exponential_moving_average"
        | "double_exponential_moving_average"
        | "triple_exponential_moving_average"
        | "relative_strength_index"
        | "triple_exponential_derivative" => {
            let warmups = ["exponential", "simple"];
            smoothing(state, call, Arity::Between(2, 4), &warmups)
        }
        "chande_momentum_oscillator" => {
            let warmups = ["none", "exponential", "simple"];
            smoothing(state, call, Arity::Between(2, 4), &warmups)
        }
        "kaufmans_efficiency_ratio" | "kaufmans_adaptive_moving_average" => {
            smoothing(state, call, Arity::Between(2, 3), &[])
        }
        "integral" => integral(state, call),
        "holt_winters" | "holt_winters_with_fit" => holt_winters(state, call),
        _ => aggregate(state, call),
    }
}

fn count_arguments(call: &Call, expected: Arity) -> Result<(), SelectError> {
    let got = call.args.len();
    if expected.allows(got) {
        return Ok(());
    }
    Err(SelectError::ArgumentCount {
        function: call.name.clone(),
        expected,
        got,
    })
}

fn refuse<T>(text: impl Into<String>) -> Result<T, SelectError> {
    Err(SelectError::Argument(text.into()))
}

fn math(call: &Call) -> Checked<'_> {
    let two = matches!(call.name.as_str(), "atan2" | "pow" | "log");
    count_arguments(call, Arity::Exactly(if two { 2 } else { 1 }))?;
    Ok(FunctionArgument::Operands(&call.args))
}

fn aggregate<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    match call.name.as_str() {
        "max" | "min" | "first" | "last" => {}
        "count" | "sum" | "mean" | "median" | "mode" | "stddev" | "spread" => {
            state.functions.only_selectors = false;
        }
        other => return Err(SelectError::UndefinedFunction(other.to_owned())),
    }
    count_arguments(call, Arity::Exactly(1))?;
    if call.name == "count" {
        match &call.args[0] {
            Expr::Call(inner) if inner.name == "distinct" => {
                return Ok(FunctionArgument::Distinct {
                    args: &inner.args,
                    nested: true,
                });
            }
            Expr::Distinct(_) => return Ok(FunctionArgument::DistinctName),
            _ => {}
        }
    }
    Ok(FunctionArgument::Field(&call.args[0]))
}

fn percentile(call: &Call) -> Checked<'_> {
    count_arguments(call, Arity::Exactly(2))?;
    match call.args[1].as_literal() {
        Some(Literal::Integer(_) | Literal::Number(_)) => {}
        _ => return refuse("expected float argument in percentile()"),
    }
    Ok(FunctionArgument::Field(&call.args[0]))
}

fn sample(call: &Call) -> Checked<'_> {
    count_arguments(call, Arity::Exactly(2))?;
    match call.args[1].as_literal() {
        Some(Literal::Integer(size)) if *size <= 0 => {
            return refuse(format!("sample window must be greater than 1, got {size}"));
        }
        Some(Literal::Integer(_)) => {}
        _ => return refuse("expected integer argument in sample()"),
    }
    Ok(FunctionArgument::Field(&call.args[0]))
}

/// A unit of time, which must be positive.
fn unit(arg: &Expr, otherwise: impl FnOnce() -> String) -> Result<(), SelectError> {
    match arg.as_literal() {
        Some(Literal::Duration(ns)) if *ns <= 0 => {
            let got = InfluxDuration(*ns);
            refuse(format!("duration argument must be positive, got {got}"))
        }
        Some(Literal::Duration(_)) => Ok(()),
        _ => refuse(otherwise()),
    }
}

fn with_unit<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    let name = &call.name;
    count_arguments(call, Arity::Between(1, 2))?;
    if let Some(arg) = call.args.get(1) {
        let got = arg.kind_name();
        unit(arg, || {
            format!("second argument to {name} must be a duration, got {got}")
        })?;
    }
    state.looks_back(1);
    Ok(FunctionArgument::Transformed(&call.args[0]))
}

fn integral<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    count_arguments(call, Arity::Between(1, 2))?;
    if let Some(arg) = call.args.get(1) {
        unit(arg, || "second argument must be a duration".to_owned())?;
    }
    state.functions.only_selectors = false;
    Ok(FunctionArgument::Field(&call.args[0]))
}

fn moving_average<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    count_arguments(call, Arity::Exactly(2))?;
    let window = match call.args[1].as_literal() {
        Some(Literal::Integer(window)) => *window,
        _ => {
            let got = call.args[1].kind_name();
            return refuse(format!(
                "second argument for moving_average must be an integer, got {got}"
            ));
        }
    };
    if window <= 1 {
        return refuse(format!(
            "moving_average window must be greater than 1, got {window}"
        ));
    }
    state.looks_back(window.unsigned_abs());
    Ok(FunctionArgument::Transformed(&call.args[0]))
}

/// Moving averages of technical analysis: a period, a hold period, and how they warm up.
fn smoothing<'a>(
    state: &mut ColumnState,
    call: &'a Call,
    arity: Arity,
    warmups: &[&str],
) -> Checked<'a> {
    let name = &call.name;
    count_arguments(call, arity)?;
    let period = match call.args[1].as_literal() {
        Some(Literal::Integer(period)) => *period,
        _ => return refuse(format!("{name} period must be an integer")),
    };
    if period < 1 {
        return refuse(format!("{name} period must be greater than or equal to 1"));
    }
    if let Some(hold) = call.args.get(2) {
        let least = i64::from(name == "triple_exponential_derivative");
        match hold.as_literal() {
            // -1 means the default.
            Some(Literal::Integer(hold)) if *hold < least && *hold != -1 => {
                return refuse(format!(
                    "{name} hold period must be greater than or equal to {least}"
                ));
            }
            Some(Literal::Integer(_)) => {}
            _ => return refuse(format!("{name} hold period must be an integer")),
        }
    }
    state.looks_back(period.unsigned_abs());
    if let Some(warmup) = call.args.get(3) {
        match warmup.as_literal() {
            Some(Literal::String(text)) if warmups.contains(&text.as_str()) => {}
            Some(Literal::String(_)) => {
                let known = warmups.iter().map(|text| format!(" '{text}'"));
                let known: String = known.collect();
                return refuse(format!("{name} warmup type must be one of:{known}"));
            }
            _ => return refuse(format!("{name} warmup type must be a string")),
        }
    }
    match &call.args[0] {
        // `distinct` is no aggregate here.
        Expr::Call(inner) if state.has_interval() => Ok(FunctionArgument::Call(inner)),
        other => Ok(FunctionArgument::Transformed(other)),
    }
}

fn holt_winters<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    let name = &call.name;
    count_arguments(call, Arity::Exactly(3))?;
    match call.args[1].as_literal() {
        Some(Literal::Integer(count)) if *count <= 0 => {
            return refuse(format!(
                "second arg to {name} must be greater than 0, got {count}"
            ));
        }
        Some(Literal::Integer(_)) => {}
        _ => return refuse(format!("expected integer argument as second arg in {name}")),
    }
    match call.args[2].as_literal() {
        Some(Literal::Integer(season)) if *season < 0 => {
            return refuse(format!(
                "third arg to {name} cannot be negative, got {season}"
            ));
        }
        Some(Literal::Integer(_)) => {}
        _ => return refuse(format!("expected integer argument as third arg in {name}")),
    }
    state.functions.only_selectors = false;
    match &call.args[0] {
        Expr::Call(_) if !state.has_interval() => Err(SelectError::NeedsInterval(name.clone())),
        Expr::Call(inner) => Ok(FunctionArgument::Nested(inner)),
        _ => refuse(format!("must use aggregate function with {name}")),
    }
}

fn top_bottom<'a>(state: &mut ColumnState, call: &'a Call) -> Checked<'a> {
    let name = &call.name;
    if let Some(first) = &state.functions.top_bottom {
        return Err(SelectError::SelectorCombined(first.clone()));
    }
    count_arguments(call, Arity::AtLeast(2))?;
    let (first, last) = (&call.args[0], &call.args[call.args.len() - 1]);
    let limit = match last.as_literal() {
        Some(Literal::Integer(limit)) => *limit,
        _ => {
            return refuse(format!(
                "expected integer as last argument in {name}(), found {last}"
            ));
        }
    };
    if limit <= 0 {
        return refuse(format!(
            "limit ({limit}) in {name} function must be at least 1"
        ));
    }
    let rows = state.limit;
    if rows > 0 && limit.unsigned_abs() > rows {
        return refuse(format!(
            "limit ({limit}) in {name} function can not be larger than the LIMIT ({rows}) in the \
             select statement"
        ));
    }
    if !matches!(first, Expr::VarRef(_)) {
        return refuse(format!(
            "expected first argument to be a field in {name}(), found {first}"
        ));
    }
    for tag in &call.args[1..call.args.len() - 1] {
        if !matches!(tag, Expr::VarRef(_)) {
            return refuse(format!(
                "only fields or tags are allowed in {name}(), found {tag}"
            ));
        }
        state.named_in_top_bottom();
    }
    state.functions.top_bottom = Some(name.clone());
    Ok(FunctionArgument::Nothing)
}
