//! Groups and windows whose functions DataFusion has: the engine answers many of them from what it knows
//! of its pages.

use crate::query::select::grouping::StageInput;
use crate::relation::{Relation, builder, plan_column};
use crate::run::internal;
use crate::stage::StageMode;
use crate::taos_value::arrow_type;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::functions_aggregate::expr_fn::{count, last_value};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, SortExpr, cast, lit};
use marigram_sql::SqlResult;
use marigram_tdengine::TaosType;

/// Whether DataFusion's aggregates answer these calls.
pub(crate) fn can_aggregate(input: &StageInput, mode: &StageMode) -> bool {
    let has_windows = match mode {
        StageMode::Whole => true,
        StageMode::Interval(windows) => windows.fixed().is_some(),
        _ => false,
    };
    has_windows
        && input.carried.is_empty()
        && input.calls.iter().all(|call| {
            let kind = call.arguments.first().map(|typed| typed.kind);
            match call.name.as_str() {
                "count" => true,
                "sum" | "avg" | "stddev" | "stddev_pop" | "spread" => {
                    kind.is_some_and(TaosType::is_number)
                }
                "min" | "max" => kind.is_some_and(|kind| {
                    kind.is_number() || kind == TaosType::Timestamp || kind.is_text()
                }),
                "first" | "last" | "last_row" => {
                    input.time.is_some() && kind != Some(TaosType::Null)
                }
                _ => false,
            }
        })
}

/// The groups, with the columns of a stage.
pub(crate) fn fast_groups(
    state: &SessionState,
    source: &Relation,
    input: &StageInput,
    mode: &StageMode,
    answers_nothing: bool,
) -> SqlResult<LogicalPlan> {
    let mut groups: Vec<Expr> = input.keys.iter().map(|(_, key)| key.expr.clone()).collect();
    let mut width_ns = None;
    if let (StageMode::Interval(windows), Some(time)) = (mode, &input.time) {
        let (width, offset) = windows.fixed().unwrap_or((1, 0));
        let bucket = state
            .scalar_functions()
            .get("time_bucket")
            .ok_or_else(|| internal("the function time_bucket is missing"))?;
        let origin = ScalarValue::TimestampNanosecond(Some(offset), None);
        let arguments = vec![interval(width), time.clone(), Expr::Literal(origin, None)];
        groups.push(bucket.call(arguments));
        width_ns = Some(width);
    }
    let mut results = Vec::new();
    for (place, call) in input.calls.iter().enumerate() {
        let argument = call.arguments.first().map(|typed| typed.expr.clone());
        let name = result_name(place);
        let mut argument = argument.unwrap_or_else(|| lit(1_i64));
        if !matches!(call.name.as_str(), "sum" | "avg" | "stddev" | "stddev_pop") {
            argument = stored(argument, source);
        }
        let time = input.time.clone().unwrap_or_else(|| lit(0_i64));
        if call.name == "spread" {
            let highest = aggregate(state, "max", vec![argument.clone()])?;
            results.push(highest.alias(format!("{name}h")));
        }
        let result = result_of(state, &call.name, (argument, time))?;
        results.push(result.alias(name));
    }
    let keys = input.keys.len();
    // Without groups there is a row even if there is none below.
    let is_bare = keys == 0 && width_ns.is_none() && !answers_nothing;
    let takes_edges = !input.calls.is_empty()
        && input
            .calls
            .iter()
            .all(|call| matches!(call.name.as_str(), "first" | "last"));
    if is_bare && !takes_edges {
        results.push(count(lit(1_i64)).alias(ROWS));
    }
    let plan = builder(source.plan.clone())
        .aggregate(groups, results)?
        .build()?;
    let columns = plan.schema().columns();
    let column = |place: usize| {
        let found = columns.get(place).cloned().map(Expr::Column);
        found.ok_or_else(|| internal("an aggregate lacks a column"))
    };
    let mut shown = Vec::new();
    for place in 0..keys {
        shown.push(column(place)?.alias(format!("k{place}")));
    }
    match width_ns {
        Some(width) => {
            let start = column(keys)?;
            let end = start.clone() + interval(width);
            shown.push(start.alias("ws"));
            shown.push(end.alias("we"));
        }
        None => {
            let nothing = || Expr::Literal(ScalarValue::TimestampNanosecond(None, None), None);
            shown.push(nothing().alias("ws"));
            shown.push(nothing().alias("we"));
        }
    }
    for (place, call) in input.calls.iter().enumerate() {
        let name = result_name(place);
        let value = if call.name == "spread" {
            let float = |expr: Expr| cast(expr, DataType::Float64);
            float(plan_column(&format!("{name}h"))) - float(plan_column(&name))
        } else {
            cast(plan_column(&name), arrow_type(call.kind))
        };
        shown.push(value.alias(format!("a{place}")));
    }
    let mut plan = builder(plan);
    if is_bare {
        // FIRST and LAST answer nothing if they have no value.
        let edges =
            (0..input.calls.len()).map(|place| plan_column(&result_name(place)).is_not_null());
        let is_there = match edges.reduce(Expr::or) {
            Some(edges) if takes_edges => edges,
            _ => plan_column(ROWS).gt(lit(0_i64)),
        };
        plan = plan.filter(is_there)?;
    }
    Ok(plan.project(shown)?.build()?)
}

/// An aggregate of the session: those that the engine knows how to answer.
fn aggregate(state: &SessionState, name: &str, arguments: Vec<Expr>) -> SqlResult<Expr> {
    let udaf = state.aggregate_functions().get(name);
    let udaf = udaf.ok_or_else(|| internal("an aggregate is missing"))?;
    Ok(udaf.call(arguments))
}

/// The result of a call; of SPREAD the lowest value.
fn result_of(state: &SessionState, name: &str, (argument, time): (Expr, Expr)) -> SqlResult<Expr> {
    match name {
        "count" => Ok(count(argument)),
        "stddev" | "stddev_pop" => aggregate(state, "stddev_pop", vec![argument]),
        "spread" => aggregate(state, "min", vec![argument]),
        "first" | "last" => aggregate(state, name, vec![argument, time]),
        "last_row" => {
            let order = vec![SortExpr::new(time, true, true)];
            Ok(last_value(argument, order))
        }
        _ => aggregate(state, name, vec![argument]),
    }
}

/// A column of FLOAT as it is stored, without the cast to a float of 64 bits: the engine knows its
/// extremes and edges.
fn stored(argument: Expr, source: &Relation) -> Expr {
    if let Expr::Cast(cast) = &argument
        && matches!(*cast.expr, Expr::Column(_))
        && cast.expr.get_type(source.plan.schema().as_ref()).ok() == Some(DataType::Float32)
    {
        return (*cast.expr).clone();
    }
    argument
}

/// How many rows a group has. No column of a table begins as this name does.
const ROWS: &str = "\u{1}rows";

/// The result of a call.
fn result_name(place: usize) -> String {
    format!("\u{1}a{place}")
}

fn interval(ns: i64) -> Expr {
    let value = IntervalMonthDayNano::new(0, 0, ns);
    Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), None)
}
