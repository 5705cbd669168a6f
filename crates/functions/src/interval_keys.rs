//! Intervals by which a plan sorts, groups and joins: equal if they are of the same length.
//!
//! A group of intervals shows one of them, as PostgreSQL does.

use crate::interval_arithmetic::{becomes_length, is_interval, length};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, Join, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

/// A node that sorts, groups or joins by the lengths of its intervals.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn with_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Sort(mut sort) => {
            let schema = Arc::clone(sort.input.schema());
            let mut is_changed = false;
            for by in &mut sort.expr {
                is_changed |= becomes_length(&mut by.expr, &schema);
            }
            let sort = LogicalPlan::Sort(sort);
            Ok(Transformed::new_transformed(sort, is_changed))
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) if has_intervals(input.schema()) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column);
            let columns = columns.collect();
            grouped(Aggregate::try_new(input, columns, Vec::new())?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = Arc::clone(on.input.schema());
            let mut is_changed = false;
            for key in &mut on.on_expr {
                is_changed |= becomes_length(key, &schema);
            }
            for by in on.sort_expr.iter_mut().flatten() {
                is_changed |= becomes_length(&mut by.expr, &schema);
            }
            let on = LogicalPlan::Distinct(Distinct::On(on));
            Ok(Transformed::new_transformed(on, is_changed))
        }
        LogicalPlan::Join(join) if !join.on.is_empty() => Ok(joined(join)),
        other => Ok(Transformed::no(other)),
    }
}

fn has_intervals(schema: &DFSchema) -> bool {
    let mut types = schema.fields().iter().map(|field| field.data_type());
    types.any(|kind| matches!(kind, DataType::Interval(_)))
}

/// Groups by lengths, and takes the first interval of each group.
fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = Arc::clone(aggregate.input.schema());
    let keys = aggregate.group_expr.iter();
    let is_key: Vec<bool> = keys.map(|key| is_interval(key, &input)).collect();
    // Sets of groups keep their own list of keys.
    let is_set = |key: &Expr| matches!(key, Expr::GroupingSet(_));
    if !is_key.contains(&true) || aggregate.group_expr.iter().any(is_set) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let names = aggregate.schema.columns();
    let (mut keys, mut firsts) = (Vec::new(), Vec::new());
    for (key, is_interval) in aggregate.group_expr.into_iter().zip(&is_key) {
        if *is_interval {
            let key = key.unalias();
            firsts.push(first_value_udaf().call(vec![key.clone()]));
            keys.push(length(key));
        } else {
            keys.push(key);
        }
    }
    let key_count = keys.len();
    let own = aggregate.aggr_expr.len();
    let mut calls = aggregate.aggr_expr;
    calls.extend(firsts);
    let made = Aggregate::try_new(aggregate.input, keys, calls)?;
    let columns = made.schema.columns();
    let mut firsts = columns.iter().skip(key_count + own);
    let mut shown = Vec::with_capacity(names.len());
    for (at, name) in names.into_iter().enumerate() {
        let first = is_key.get(at).is_some_and(|is_key| *is_key);
        let column = if first {
            firsts.next()
        } else {
            columns.get(at)
        };
        let column = column.cloned().unwrap_or_else(|| name.clone());
        shown.push(renamed(column, name));
    }
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(made))
        .project(shown)?
        .build()?;
    Ok(Transformed::yes(plan))
}

fn renamed(column: Column, name: Column) -> Expr {
    if column == name {
        return Expr::Column(column);
    }
    Expr::Column(column).alias_qualified(name.relation, name.name)
}

fn joined(mut join: Join) -> Transformed<LogicalPlan> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let mut is_changed = false;
    for (mine, theirs) in &mut join.on {
        if is_interval(mine, left) && is_interval(theirs, right) {
            *mine = length(std::mem::take(mine));
            *theirs = length(std::mem::take(theirs));
            is_changed = true;
        }
    }
    Transformed::new_transformed(LogicalPlan::Join(join), is_changed)
}
