//! `LATERAL (SELECT count(*), 7 FROM … WHERE t.k = o.k)`: an aggregate without groups has one row for each
//! row of the left side.
//!
//! DataFusion joins the groups that exist, and writes the counts of the others itself, but not what is
//! computed from them or beside them: there, a constant would be NULL. So what the subquery computes from
//! its aggregates is computed above the join. In a LEFT JOIN, a condition of ON decides there whether the
//! values are shown.

use super::rows::columns_of;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue, TableReference};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use marigram_functions::with_values_of_columns;
use std::sync::Arc;

/// The names of the joined rows begin so; no user's table has such a name.
const ROWS: &str = "\u{1f}rows of ";

/// See the module documentation. The rule runs before DataFusion decorrelates lateral joins.
#[derive(Debug)]
pub struct LateralAggregateRule;

impl OptimizerRule for LateralAggregateRule {
    fn name(&self) -> &'static str {
        "lateral_aggregates"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = &plan else {
            return Ok(Transformed::no(plan));
        };
        Ok(match above_join(join)? {
            Some(above) => Transformed::yes(above),
            None => Transformed::no(plan),
        })
    }
}

fn lateral_subquery(right: &LogicalPlan) -> Option<&Subquery> {
    match right {
        LogicalPlan::Subquery(subquery) => Some(subquery),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some(subquery),
            _ => None,
        },
        _ => None,
    }
}

/// The aggregate without groups below a plan, and the plan's columns as expressions of it.
fn over_aggregate(plan: &LogicalPlan) -> Result<Option<(&LogicalPlan, Vec<Expr>)>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            Ok(Some((plan, columns_of(plan))))
        }
        LogicalPlan::SubqueryAlias(alias) => over_aggregate(&alias.input),
        LogicalPlan::Projection(projection) => {
            let Some((aggregate, below)) = over_aggregate(&projection.input)? else {
                return Ok(None);
            };
            let schema = projection.input.schema();
            let exprs = projection
                .expr
                .iter()
                .map(|expr| with_values_of_columns(expr.clone().unalias(), schema, &below));
            Ok(Some((aggregate, exprs.collect::<Result<_>>()?)))
        }
        _ => Ok(None),
    }
}

/// The join with what its subquery computes from aggregates above it; `None` if it computes nothing.
fn above_join(join: &Join) -> Result<Option<LogicalPlan>> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Ok(None);
    }
    let Some(subquery) = lateral_subquery(&join.right) else {
        return Ok(None);
    };
    let Some((aggregate, values)) = over_aggregate(&subquery.subquery)? else {
        return Ok(None);
    };
    let left = join.left.schema();
    let is_beyond = |expr: &Expr| match expr {
        Expr::OuterReferenceColumn(_, column) => !left.has_column(column),
        _ => false,
    };
    let refers = subquery.subquery.all_out_ref_exprs();
    let is_plain = |value: &Expr| matches!(value, Expr::Column(_));
    if values.iter().all(is_plain) || refers.iter().any(is_beyond) {
        return Ok(None);
    }
    let shown = join.right.schema();
    let name = name_of_rows(shown);
    let values = values
        .into_iter()
        .map(|value| above(value, aggregate, &name));
    let mut values = values.collect::<Result<Vec<_>>>()?;
    let outer_ref_columns = aggregate.all_out_ref_exprs();
    // DataFusion adds the keys of the groups to a projection.
    let columns = columns_of(aggregate).into_iter().enumerate();
    let columns = columns.map(|(at, column)| column.alias(value_name(at)));
    let mut right = LogicalPlanBuilder::from(aggregate.clone())
        .project(columns)?
        .build()?;
    if !outer_ref_columns.is_empty() {
        right = LogicalPlan::Subquery(Subquery {
            subquery: Arc::new(right),
            outer_ref_columns,
            spans: subquery.spans.clone(),
        });
    }
    let right = LogicalPlanBuilder::from(right).alias(name)?.build()?;
    let joined = LogicalPlanBuilder::new_from_arc(Arc::clone(&join.left)).join_on(
        right,
        JoinType::Inner,
        [lit(true)],
    )?;
    let condition = condition_of(join);
    if let (JoinType::Left, Some(condition)) = (join.join_type, &condition) {
        let condition = with_values_of_columns(condition.clone(), shown, &values)?;
        values = values
            .into_iter()
            .map(|value| when(condition.clone(), value).end())
            .collect::<Result<_>>()?;
    }
    shown_above(join, joined, values, condition).map(Some)
}

fn value_name(at: usize) -> String {
    format!("value_{at}")
}

/// A name for the joined rows: no other table of the statement has a right side of this name.
fn name_of_rows(shown: &DFSchema) -> String {
    let name = shown.iter().find_map(|(table, _)| table);
    format!("{ROWS}{}", name.map_or("", TableReference::table))
}

/// The columns of the left side, and values in place of those of the right side, where an inner join's
/// condition holds.
fn shown_above(
    join: &Join,
    joined: LogicalPlanBuilder,
    values: Vec<Expr>,
    condition: Option<Expr>,
) -> Result<LogicalPlan> {
    let mut columns = columns_of(&join.left);
    let values = values.into_iter().zip(join.right.schema().iter());
    columns.extend(
        values.map(|(value, (table, field))| value.alias_qualified(table.cloned(), field.name())),
    );
    let rows = joined.project(columns)?;
    match (join.join_type, condition) {
        (JoinType::Inner, Some(condition)) => rows.filter(condition)?.build(),
        _ => rows.build(),
    }
}

/// A value of the subquery, which is computed from an aggregate, as one above the join.
fn above(value: Expr, aggregate: &LogicalPlan, name: &str) -> Result<Expr> {
    let rows = TableReference::bare(name);
    let columns = 0..aggregate.schema().fields().len();
    let columns = columns.map(|at| Expr::Column(Column::new(Some(rows.clone()), value_name(at))));
    let columns: Vec<Expr> = columns.collect();
    above_left(with_values_of_columns(value, aggregate.schema(), &columns)?)
}

/// A value in which the columns of the left side are columns of the join.
fn above_left(value: Expr) -> Result<Expr> {
    let value = value.transform(|part| {
        Ok(match part {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            other => Transformed::no(other),
        })
    })?;
    Ok(value.data)
}

/// The condition of the join; `None` if it always holds.
fn condition_of(join: &Join) -> Option<Expr> {
    let is_true = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Boolean(Some(true)), _));
    let on = join.on.iter();
    let on = on.map(|(left, right)| left.clone().eq(right.clone()));
    let all = on.chain(join.filter.clone());
    all.filter(|condition| !is_true(condition))
        .reduce(Expr::and)
}
