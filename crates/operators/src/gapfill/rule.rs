//! The rule that finds `time_bucket_gapfill` in GROUP BY, and the surrounding filling functions.
//!
//! Invariant: after this rule, the plan has no calls of these functions. A call in a place where it
//! has no meaning is an error that says where to put it.

use super::gap_fill_error;
use super::node::{BucketGrid, FillColumn, FillMethod, GapFill};
use super::range::{ConstantEvaluator, TimeBounds, column};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, Window};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use marigram_functions::marker_functions::{BUCKET, ENDS, INTERPOLATE, LOCF, VALUE, time_bucket};
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug)]
pub struct GapFillRule;

impl OptimizerRule for GapFillRule {
    fn name(&self) -> &'static str {
        "gap_filling"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if first_call(&plan)?.is_none() {
            return Ok(Transformed::no(plan));
        }
        let constants = ConstantEvaluator::new(config);
        let done = plan.transform_up_with_subqueries(|node| {
            // Columns below may have become nullable.
            let node = node.recompute_schema()?;
            rewritten(node, &constants).map(Transformed::yes)
        })?;
        match first_call(&done.data)? {
            Some(name) => Err(misplaced(&name)),
            None => Ok(done),
        }
    }
}

/// The first of these functions in a plan.
fn first_call(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found = call_in(expr);
            Ok(stop_if(found.is_some()))
        })
    })?;
    Ok(found)
}

fn stop_if(done: bool) -> TreeNodeRecursion {
    if done {
        TreeNodeRecursion::Stop
    } else {
        TreeNodeRecursion::Continue
    }
}

fn call_in(expr: &Expr) -> Option<String> {
    let mut found = None;
    let walked = expr.apply(|expr| {
        if let Expr::ScalarFunction(call) = expr
            && [BUCKET, LOCF, INTERPOLATE, VALUE].contains(&call.name())
        {
            found = Some(call.name().to_owned());
        }
        Ok(stop_if(found.is_some()))
    });
    walked.ok().and(found)
}

fn misplaced(name: &str) -> DataFusionError {
    let message = if name == BUCKET {
        "time_bucket_gapfill must be a key of its own in GROUP BY: SELECT time_bucket_gapfill('1m', time) AS \
         b, avg(x) FROM t WHERE time >= … AND time < … GROUP BY b"
            .to_owned()
    } else {
        format!(
            "{name} applies to aggregates in a SELECT that is grouped by time_bucket_gapfill: \
             {name}(avg(x)); its results can be sorted and filtered in a query around that SELECT"
        )
    };
    gap_fill_error("42803", name, message)
}

fn rewritten(node: LogicalPlan, constants: &ConstantEvaluator) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Aggregate(aggregate) => fill(aggregate, constants),
        // HAVING decides which rows exist, so that the rows it rejects become gaps.
        LogicalPlan::Filter(Filter {
            predicate, input, ..
        }) if GapFill::from_plan(&input).is_some() && call_in(&predicate).is_none() => {
            let Some(node) = GapFill::from_plan(&input) else {
                return Filter::try_new(predicate, input).map(LogicalPlan::Filter);
            };
            let below = Filter::try_new(predicate, Arc::new(node.input().clone()))?;
            Ok(node.over(LogicalPlan::Filter(below))?.into_plan())
        }
        node @ (LogicalPlan::Projection(_) | LogicalPlan::Window(_)) => take_fills(node, constants),
        other => Ok(other),
    }
}

/// Adds gap filling to an aggregate by a bucket that is to be filled; leaves other aggregates
/// unchanged.
fn fill(aggregate: Aggregate, constants: &ConstantEvaluator) -> Result<LogicalPlan> {
    let calls: Vec<(usize, ScalarFunction)> = aggregate
        .group_expr
        .iter()
        .enumerate()
        .filter_map(|(at, expr)| match expr.clone().unalias_nested().data {
            Expr::ScalarFunction(call) if call.name() == BUCKET => Some((at, call)),
            _ => None,
        })
        .collect();
    let grouping_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
    if aggregate
        .group_expr
        .iter()
        .any(|expr| grouping_set(expr) && call_in(expr).is_some())
    {
        let message = "time_bucket_gapfill cannot be combined with ROLLUP, CUBE or GROUPING SETS";
        return Err(gap_fill_error("0A000", BUCKET, message));
    }
    let (at, call) = match calls.as_slice() {
        [] => return Ok(LogicalPlan::Aggregate(aggregate)),
        [(at, call)] => (*at, call),
        _ => {
            let message = "there can be only one time_bucket_gapfill in GROUP BY";
            return Err(gap_fill_error("42803", BUCKET, message));
        }
    };
    let Aggregate {
        input,
        mut group_expr,
        aggr_expr,
        ..
    } = aggregate;
    let (grid, arguments) = grid(call, &input, constants)?;
    let name = group_expr[at].schema_name().to_string();
    let plain = ScalarFunction::new_udf(Arc::new(time_bucket()), arguments);
    group_expr[at] = Expr::ScalarFunction(plain).alias(name);
    let keys = group_expr.len();
    let aggregate = Aggregate::try_new(input, group_expr, aggr_expr)?;
    let columns = (0..keys).map(|key| {
        let column = Column::from(aggregate.schema.qualified_field(key));
        Expr::Column(column)
    });
    let mut keys: Vec<Expr> = columns.collect();
    let bucket = keys.remove(at);
    let aggregate = LogicalPlan::Aggregate(aggregate);
    Ok(GapFill::new(aggregate, keys, bucket, grid, Vec::new())?.into_plan())
}

/// The buckets that a call defines, and the arguments that `time_bucket` takes from it.
fn grid(
    call: &ScalarFunction,
    input: &LogicalPlan,
    constants: &ConstantEvaluator,
) -> Result<(BucketGrid, Vec<Expr>)> {
    let (mut arguments, mut range) = (Vec::new(), TimeBounds::default());
    let mut given = [None, None];
    for argument in &call.args {
        match end(argument) {
            Some((at, value)) => given[at] = Some(value),
            None => arguments.push(argument.clone()),
        }
    }
    let [width, time, places @ ..] = arguments.as_slice() else {
        return Err(misplaced(BUCKET));
    };
    if let Some(time) = column(time) {
        range.read(input, time, constants)?;
    }
    let bound = |at: usize, found: Option<i64>| -> Result<i64> {
        // NULL means that the conditions decide, as in TimescaleDB.
        let asked = given[at].map(|value| match constants.value(value)? {
            None => {
                let message = format!("{BUCKET}: '{}' is not the same for all rows", ENDS[at]);
                Err(gap_fill_error("42P10", BUCKET, message))
            }
            Some(value) if value.is_null() => Ok(None),
            Some(value) => {
                let time = constants.time(&Expr::Literal(value, None))?;
                // The end is exclusive.
                Ok(time.map(|time| time.saturating_sub(i64::from(at == 1))))
            }
        });
        asked
            .transpose()?
            .flatten()
            .or(found)
            .ok_or_else(|| no_range(at, time))
    };
    let grid = BucketGrid {
        first_ns: bound(0, range.first)?,
        last_ns: bound(1, range.last)?,
        width: constant(width, constants)?,
        places: places
            .iter()
            .map(|place| constant(place, constants))
            .collect::<Result<_>>()?,
    };
    // Report wrong buckets before anything is read.
    grid.buckets()?;
    Ok((grid, arguments))
}

/// An argument that is an end of the range: which end, and its value.
fn end(argument: &Expr) -> Option<(usize, &Expr)> {
    let Expr::ScalarFunction(call) = argument.clone_free() else {
        return None;
    };
    if call.name() != "named_struct" {
        return None;
    }
    let [Expr::Literal(name, _), value] = call.args.as_slice() else {
        return None;
    };
    let name = name.try_as_str().flatten()?;
    let at = ENDS.iter().position(|end| *end == name)?;
    Some((at, value))
}

/// An expression without its aliases.
trait WithoutAliases {
    fn clone_free(&self) -> &Expr;
}

impl WithoutAliases for Expr {
    fn clone_free(&self) -> &Expr {
        match self {
            Expr::Alias(alias) => alias.expr.clone_free(),
            other => other,
        }
    }
}

fn constant(expr: &Expr, constants: &ConstantEvaluator) -> Result<ScalarValue> {
    constants.value(expr)?.ok_or_else(|| {
        let message = format!("{BUCKET}: {expr} must be the same for all rows");
        gap_fill_error("42P10", BUCKET, message)
    })
}

fn no_range(at: usize, time: &Expr) -> DataFusionError {
    let time = column(time).map_or("time", |column| column.name.as_str());
    let (end, sign) = [("start", ">="), ("finish", "<")][at];
    let message = format!(
        "time_bucket_gapfill does not know where to {}: write a constant bound in WHERE ({time} \
         {sign} …) or as an argument ({end} => …)",
        ["begin", "end"][at]
    );
    gap_fill_error("22023", BUCKET, message)
}

/// Moves the calls of filling functions from a node to the node below that fills gaps.
fn take_fills(node: LogicalPlan, constants: &ConstantEvaluator) -> Result<LogicalPlan> {
    let names = NamePreserver::new(&node);
    let mut fills: Vec<FillColumn> = Vec::new();
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let taken = expr.transform_down(|expr| {
            let Some(fill) = as_fill(&expr, constants)? else {
                return Ok(Transformed::no(expr));
            };
            let column = Expr::Column(Column::new_unqualified(&fill.name));
            if !fills.contains(&fill) {
                fills.push(fill);
            }
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })?;
        exprs.push(name.restore(taken.data));
    }
    let inputs = node.inputs();
    let [input] = inputs.as_slice() else {
        return Ok(node);
    };
    if fills.is_empty() {
        return Ok(node);
    }
    let input = with_fills((*input).clone(), &fills)?;
    node.with_new_exprs(exprs, vec![input])
}

/// Reads a call of a filling function.
fn as_fill(expr: &Expr, constants: &ConstantEvaluator) -> Result<Option<FillColumn>> {
    let Expr::ScalarFunction(call) = expr else {
        return Ok(None);
    };
    let (value, second) = match (call.name(), call.args.as_slice()) {
        (LOCF | INTERPOLATE | VALUE, [value]) => (value, None),
        (LOCF | INTERPOLATE | VALUE, [value, second]) => (value, Some(second)),
        _ => return Ok(None),
    };
    if let Some(inner) = call_in(value) {
        let name = call.name();
        let message = format!("{inner} cannot be inside {name}; fill in a query around the SELECT");
        return Err(gap_fill_error("42803", name, message));
    }
    let second = second.map(|second| match constants.value(second)? {
        Some(value) => Ok(value),
        None => {
            let message = format!("{}: {second} must be the same for all rows", call.name());
            Err(gap_fill_error("42P10", call.name(), message))
        }
    });
    let second = second.transpose()?;
    let nulls = matches!(second, Some(ScalarValue::Boolean(Some(true))));
    let how = match (call.name(), second) {
        (LOCF, _) => FillMethod::Locf(nulls),
        (INTERPOLATE, _) => FillMethod::Interpolate(nulls),
        (_, Some(value)) => FillMethod::Value(value),
        (_, None) => return Ok(None),
    };
    Ok(Some(FillColumn {
        name: expr.schema_name().to_string(),
        value: value.clone(),
        how,
    }))
}

/// Adds columns of `fills` to the plan: a node that fills gaps must be below it, or below windows
/// over it.
fn with_fills(plan: LogicalPlan, fills: &[FillColumn]) -> Result<LogicalPlan> {
    if let Some(node) = GapFill::from_plan(&plan) {
        let mut all = node.fills.clone();
        for fill in fills {
            let known = node.input().schema();
            if let Some(column) = fill
                .value
                .column_refs()
                .iter()
                .find(|c| !known.has_column(c))
            {
                let message = format!(
                    "{}: '{}' is neither an aggregate nor a key of GROUP BY",
                    fill.name, column.name
                );
                return Err(gap_fill_error("42803", call_name(fill), message));
            }
            if !all.contains(fill) {
                all.push(fill.clone());
            }
        }
        let (input, keys) = (node.input().clone(), node.keys.clone());
        let node = GapFill::new(input, keys, node.bucket.clone(), node.grid.clone(), all)?;
        return Ok(node.into_plan());
    }
    match plan {
        LogicalPlan::Window(Window {
            input, window_expr, ..
        }) => {
            let input = with_fills(Arc::unwrap_or_clone(input), fills)?;
            Window::try_new(window_expr, Arc::new(input)).map(LogicalPlan::Window)
        }
        // A QUALIFY clause.
        LogicalPlan::Filter(Filter {
            predicate, input, ..
        }) => {
            let input = with_fills(Arc::unwrap_or_clone(input), fills)?;
            Filter::try_new(predicate, Arc::new(input)).map(LogicalPlan::Filter)
        }
        _ => Err(misplaced(fills.first().map_or(LOCF, call_name))),
    }
}

fn call_name(fill: &FillColumn) -> &'static str {
    match fill.how {
        FillMethod::Locf(_) => LOCF,
        FillMethod::Interpolate(_) => INTERPOLATE,
        FillMethod::Value(_) => VALUE,
    }
}
