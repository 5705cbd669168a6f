//! Correlated aggregates whose condition is not an equality: `(SELECT max(x) FROM t WHERE t.k < o.k)`.
//!
//! DataFusion groups the rows of such a subquery by its keys, which only equalities have. For any other
//! condition, the rows are joined to the outer rows here, and aggregated for each of them.

use super::correlated::{
    CorrelatedJoin, aggregate_name, counted, is_beyond, outer_as_columns, there_column,
};
use super::three_values::has_subquery;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, Filter, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, WindowFunctionDefinition, lit, when,
};
use marigram_operators::lateral::{CorrelatedCondition, DecorrelatedSubquery};
use std::sync::Arc;

/// A subquery that aggregates without groups: its value, and the condition of its HAVING, as expressions
/// of the aggregate's columns.
struct AggregateSubquery<'a> {
    aggregate: &'a Aggregate,
    having: Option<Expr>,
    value: Expr,
}

impl<'a> AggregateSubquery<'a> {
    fn from_plan(plan: &'a LogicalPlan) -> Option<Self> {
        match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let below = Self::from_plan(input)?;
                // Only the columns of an aggregate are named above it.
                let is_next = !matches!(input.as_ref(), LogicalPlan::Projection(_));
                let value = expr.first()?.clone().unalias();
                is_next.then_some(Self { value, ..below })
            }
            LogicalPlan::Filter(Filter {
                predicate, input, ..
            }) => {
                let LogicalPlan::Aggregate(_) = input.as_ref() else {
                    return None;
                };
                let having = Some(predicate.clone());
                Some(Self {
                    having,
                    ..Self::from_plan(input)?
                })
            }
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                let column = plan.schema().columns().into_iter().next()?;
                Some(Self {
                    aggregate,
                    having: None,
                    value: Expr::Column(column),
                })
            }
            _ => None,
        }
    }
}

/// Whether the rows of an aggregate without groups are compared with the outer row other than by
/// equalities.
pub fn compares_otherwise(plan: &LogicalPlan) -> bool {
    let Some(found) = AggregateSubquery::from_plan(plan) else {
        return false;
    };
    let Ok(rows) = DecorrelatedSubquery::new(&found.aggregate.input) else {
        return false;
    };
    let is_other = |condition: &Expr| {
        !matches!(
            CorrelatedCondition::classify(condition),
            CorrelatedCondition::Outer | CorrelatedCondition::Compared(_, Operator::Eq, _)
        )
    };
    rows.rows.is_none()
        && rows.conditions.iter().any(is_other)
        && !rows.conditions.iter().any(has_subquery)
        && found
            .aggregate
            .aggr_expr
            .iter()
            .all(|call| plain_call(call).is_some())
}

/// A call without DISTINCT and ORDER BY, which windows would not accept.
fn plain_call(call: &Expr) -> Option<&AggregateFunction> {
    let call = match call {
        Expr::Alias(alias) => alias.expr.as_ref(),
        other => other,
    };
    match call {
        Expr::AggregateFunction(call)
            if !call.params.distinct
                && call.params.order_by.is_empty()
                && call.params.null_treatment.is_none()
                && !call
                    .params
                    .args
                    .iter()
                    .any(|argument| argument.contains_outer() || has_subquery(argument)) =>
        {
            Some(call)
        }
        _ => None,
    }
}

/// The join for such a subquery, and its value as an expression of the joined columns.
///
/// # Errors
/// DataFusion's errors.
pub fn value_of_aggregate(
    name: String,
    plan: &LogicalPlan,
    outer: &DFSchema,
) -> Result<Option<(CorrelatedJoin, Expr)>> {
    let refers = plan.all_out_ref_exprs();
    if refers.iter().any(|expr| is_beyond(expr, outer)) {
        return Ok(None);
    }
    let Some(found) = AggregateSubquery::from_plan(plan) else {
        return Ok(None);
    };
    if has_subquery(&found.value) || found.having.as_ref().is_some_and(has_subquery) {
        return Ok(None);
    }
    let relation = TableReference::bare(name.as_str());
    let there = there_column(&name);
    let (mut inputs, mut calls) = (Vec::new(), Vec::new());
    let mut input = |value: Expr| {
        let column = format!("argument_{}", inputs.len());
        inputs.push(value.alias(&column));
        Expr::Column(Column::new(Some(relation.clone()), column))
    };
    for call in &found.aggregate.aggr_expr {
        let Some(call) = plain_call(call) else {
            return Ok(None);
        };
        let arguments = call.params.args.iter().cloned().map(&mut input).collect();
        let own = call.params.filter.as_deref().cloned().map(&mut input);
        let is_there = there.clone().is_not_null();
        let filter = match own {
            Some(own) => is_there.and(own),
            None => is_there,
        };
        let definition = WindowFunctionDefinition::AggregateUDF(Arc::clone(&call.func));
        calls.push(Expr::from(WindowFunction::new(definition, arguments)).filter(filter));
    }
    if inputs.is_empty() {
        inputs.push(lit(true));
    }
    let rows = LogicalPlanBuilder::new_from_arc(Arc::clone(&found.aggregate.input))
        .project(inputs)?
        .build()?;
    let Ok(rows) = DecorrelatedSubquery::new(&rows) else {
        return Ok(None);
    };
    let rows = rows.under(Some(&relation))?;
    if rows.rows.is_some() {
        return Ok(None);
    }
    let columns = found.aggregate.schema.columns();
    let with_columns = |expr: Expr| -> Result<Expr> {
        let replaced = expr.transform(|part| {
            let at = match &part {
                Expr::Column(column) => columns.iter().position(|known| known == column),
                _ => None,
            };
            Ok(match at {
                Some(at) => {
                    let column = Column::new(Some(relation.clone()), aggregate_name(at));
                    Transformed::yes(Expr::Column(column))
                }
                None => Transformed::no(part),
            })
        })?;
        outer_as_columns(replaced.data)
    };
    let value = with_columns(found.value)?;
    let value = match found.having {
        Some(having) => when(with_columns(having)?, value).end()?,
        None => value,
    };
    let mut join = counted(name, rows)?;
    join.aggregates = calls;
    Ok(Some((join, value)))
}
