//! Correlated scalar subqueries that are not aggregates: `(SELECT x FROM t WHERE t.k = o.k)`.
//!
//! DataFusion accepts a correlated scalar subquery only if it is an aggregate, which has one row.
//! PostgreSQL accepts any, and fails when it reads a second row for an outer row. Here the rows of
//! the subquery are joined to the outer rows: one row of each key if all conditions are equalities,
//! otherwise all rows, counted for each outer row. The join adds the number of rows, and the value
//! is protected by a check of this number ([`single_row`]): a branch of CASE that is not taken does
//! not fail.

use super::single_row::single_row;
use super::three_values::has_subquery;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, TableReference};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprFunctionExt, Filter, Limit, LogicalPlan, LogicalPlanBuilder,
    Operator, Projection, Subquery, WindowFunctionDefinition, lit, when,
};
use marigram_operators::lateral::{CorrelatedCondition, DecorrelatedSubquery, FIRST, columns_of};
use std::sync::Arc;

/// The number of rows that the subquery has for an outer row.
const ROWS: &str = "rows";

/// The rows of a subquery, to be joined to the outer rows.
pub(super) struct CorrelatedJoin {
    name: String,
    right: LogicalPlan,
    on: Vec<Expr>,
    /// The order of the rows that are counted for each outer row; `None` if there is one row per
    /// key.
    counted: Option<Vec<Sort>>,
}

/// Whether a scalar subquery is correlated, and not an aggregate that DataFusion accepts.
pub(super) fn is_correlated_value(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty() && !is_aggregate(&subquery.subquery)
}

fn is_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            !projection.expr.iter().any(Expr::contains_outer) && is_aggregate(&projection.input)
        }
        LogicalPlan::SubqueryAlias(alias) => is_aggregate(&alias.input),
        LogicalPlan::Filter(Filter { input, .. }) => {
            matches!(input.as_ref(), LogicalPlan::Aggregate(_)) && is_aggregate(input)
        }
        LogicalPlan::Aggregate(aggregate) => !aggregate.aggr_expr.is_empty(),
        _ => false,
    }
}

/// The rows of which the first has the value, and the value as an expression of their columns,
/// which may contain outer columns.
fn rows_and_value(plan: &LogicalPlan) -> Option<(LogicalPlan, Expr)> {
    match plan {
        LogicalPlan::Projection(Projection { expr, input, .. })
            if expr.iter().any(Expr::contains_outer) =>
        {
            let value = expr.first()?.clone().unalias();
            Some((input.as_ref().clone(), value))
        }
        LogicalPlan::Limit(limit) if plan_names_outer(&limit.input) => {
            let (input, value) = rows_and_value(&limit.input)?;
            let limit = Limit {
                input: Arc::new(input),
                ..limit.clone()
            };
            Some((LogicalPlan::Limit(limit), value))
        }
        // The order of a single row has no meaning.
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => rows_and_value(&sort.input),
        _ => {
            let column = plan.schema().columns().into_iter().next()?;
            Some((plan.clone(), Expr::Column(column)))
        }
    }
}

fn plan_names_outer(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Projection(_)) && plan.contains_outer_reference()
}

/// An aggregate whose value is computed with outer columns, `(SELECT max(x) + o.y FROM …)`: each
/// column of the aggregate becomes a separate subquery.
fn over_aggregate(rows: &LogicalPlan, value: &Expr, subquery: &Subquery) -> Result<Expr> {
    let replaced = value.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let plan = LogicalPlanBuilder::from(rows.clone())
                    .project([Expr::Column(column)])?
                    .build()?;
                let outer_ref_columns = plan.all_out_ref_exprs();
                let subquery = Subquery {
                    subquery: Arc::new(plan),
                    outer_ref_columns,
                    spans: subquery.spans.clone(),
                };
                Transformed::new(
                    Expr::ScalarSubquery(subquery),
                    true,
                    TreeNodeRecursion::Jump,
                )
            }
            other => Transformed::no(other),
        })
    })?;
    outer_as_columns(replaced.data)
}

/// Turns outer columns into columns of the current plan; those within subqueries stay.
pub(super) fn outer_as_columns(expr: Expr) -> Result<Expr> {
    let replaced = expr.transform(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            other => Transformed::no(other),
        })
    })?;
    Ok(replaced.data)
}

/// Whether an outer column belongs to a query further out than `outer`.
pub(super) fn is_beyond(expr: &Expr, outer: &DFSchema) -> bool {
    match expr {
        Expr::OuterReferenceColumn(_, column) => !outer.has_column(column),
        _ => true,
    }
}

/// The join for a subquery, and its value as an expression of the joined columns; `None` if it
/// cannot be decorrelated, or refers to a query further out.
///
/// # Errors
/// DataFusion's errors.
pub(super) fn value_of_correlated(
    name: String,
    subquery: &Subquery,
    outer: &DFSchema,
) -> Result<Option<(Option<CorrelatedJoin>, Expr)>> {
    let refers = subquery.subquery.all_out_ref_exprs();
    if refers.iter().any(|expr| is_beyond(expr, outer)) {
        return Ok(None);
    }
    let Some((rows, value)) = rows_and_value(&subquery.subquery) else {
        return Ok(None);
    };
    if has_subquery(&value) {
        return Ok(None);
    }
    if is_aggregate(&rows) {
        return Ok(Some((None, over_aggregate(&rows, &value, subquery)?)));
    }
    let columns: Vec<Column> = value.column_refs().into_iter().cloned().collect();
    let mut values: Vec<Expr> = columns.iter().cloned().map(Expr::Column).collect();
    if values.is_empty() {
        values.push(lit(true));
    }
    let named = values.into_iter().enumerate();
    let named = named.map(|(at, value)| value.alias(value_name(at)));
    let rows = LogicalPlanBuilder::from(rows).project(named)?.build()?;
    let relation = TableReference::bare(name.as_str());
    let Ok(found) = DecorrelatedSubquery::new(&rows) else {
        return Ok(None);
    };
    let found = found.under(Some(&relation))?;
    if found.rows.is_some_and(|rows| rows != FIRST) {
        return Ok(None);
    }
    let is_first = found.rows.is_some();
    let join = match by_keys(&name, &found, columns.len().max(1))? {
        Some(join) => join,
        None => counted(name.clone(), found)?,
    };
    let rows = Expr::Column(Column::new(Some(relation.clone()), ROWS));
    let there = if is_first {
        rows.gt(lit(0_i64))
    } else {
        single_row(rows)
    };
    let value = value.transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let at = columns.iter().position(|known| *known == column);
                let name = value_name(at.unwrap_or_default());
                Transformed::yes(Expr::Column(Column::new(Some(relation.clone()), name)))
            }
            other => Transformed::no(other),
        })
    })?;
    let value = outer_as_columns(value.data)?;
    Ok(Some((Some(join), when(there, value).end()?)))
}

fn value_name(at: usize) -> String {
    format!("value_{at}")
}

/// Takes one row per key, if all conditions are equalities.
fn by_keys(
    name: &str,
    found: &DecorrelatedSubquery,
    values: usize,
) -> Result<Option<CorrelatedJoin>> {
    if found.rows.is_some() {
        return Ok(None);
    }
    let (mut keys, mut on): (Vec<Expr>, Vec<Expr>) = (Vec::new(), Vec::new());
    for condition in &found.conditions {
        match CorrelatedCondition::classify(condition) {
            CorrelatedCondition::Outer => on.push(outer_as_columns(condition.clone())?),
            CorrelatedCondition::Compared(
                outer,
                op @ (Operator::Eq | Operator::IsNotDistinctFrom),
                inner,
            ) => {
                let known = keys.iter().position(|key| *key == *inner);
                let at = known.unwrap_or(keys.len());
                if known.is_none() {
                    keys.push(*inner);
                }
                let key = Expr::Column(Column::new(Some(name), key_name(at)));
                on.push(Expr::BinaryExpr(BinaryExpr {
                    left: Box::new(outer_as_columns(*outer)?),
                    op,
                    right: Box::new(key),
                }));
            }
            CorrelatedCondition::Compared(..) | CorrelatedCondition::Other => return Ok(None),
        }
    }
    let mut asked = vec![count(lit(1_i64))];
    asked.extend((0..values).map(|at| {
        let column = Column::new(Some(name), value_name(at));
        first_value_udaf().call(vec![Expr::Column(column)])
    }));
    let count_of_keys = keys.len();
    let aggregate = Aggregate::try_new(Arc::new(found.plan.clone()), keys, asked)?;
    let names = (0..count_of_keys)
        .map(key_name)
        .chain([ROWS.to_owned()])
        .chain((0..values).map(value_name));
    let columns = aggregate.schema.iter().zip(names);
    let columns: Vec<Expr> = columns
        .map(|(field, name)| Expr::Column(Column::from(field)).alias(name))
        .collect();
    let right = LogicalPlanBuilder::from(LogicalPlan::Aggregate(aggregate))
        .project(columns)?
        .alias(name)?
        .build()?;
    Ok(Some(CorrelatedJoin {
        name: name.to_owned(),
        right,
        on,
        counted: None,
    }))
}

fn key_name(at: usize) -> String {
    format!("key_{at}")
}

/// Takes all rows; the join counts those of each outer row.
fn counted(name: String, found: DecorrelatedSubquery) -> Result<CorrelatedJoin> {
    let on = found.conditions.into_iter().map(outer_as_columns);
    let on = on.collect::<Result<Vec<_>>>()?;
    let mut columns = columns_of(&found.plan);
    let there = lit(true).alias_qualified(Some(name.as_str()), there_name(&name));
    columns.push(there);
    let right = LogicalPlanBuilder::from(found.plan)
        .project(columns)?
        .build()?;
    Ok(CorrelatedJoin {
        name,
        right,
        on,
        counted: Some(found.order),
    })
}

fn there_name(name: &str) -> String {
    format!("{name}_there")
}

impl CorrelatedJoin {
    /// Joins the rows to those of a plan, whose number does not change.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(super) fn beside(self, outer: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
        let on = if self.on.is_empty() {
            vec![lit(true)]
        } else {
            self.on
        };
        let Some(order) = self.counted else {
            return outer.join_on(self.right, JoinType::Left, on);
        };
        let relation = TableReference::bare(self.name.as_str());
        let number = Expr::Column(Column::new_unqualified(format!("{}_row", self.name)));
        let numbered = row_number();
        let mut columns = columns_of(outer.plan());
        let column = Column::new_unqualified(numbered.schema_name().to_string());
        columns.push(Expr::Column(column).alias(format!("{}_row", self.name)));
        let joined = outer.window(vec![numbered])?.project(columns)?.join_on(
            self.right,
            JoinType::Left,
            on,
        )?;
        let mut columns = columns_of(joined.plan());
        let mut place = row_number().partition_by(vec![number.clone()]);
        if !order.is_empty() {
            place = place.order_by(order);
        }
        let place = place.build()?;
        let there = Expr::Column(Column::new(Some(relation.clone()), there_name(&self.name)));
        let definition = WindowFunctionDefinition::AggregateUDF(count_udaf());
        let rows = Expr::from(WindowFunction::new(definition, vec![there]))
            .partition_by(vec![number])
            .build()?;
        let result = |expr: &Expr| Column::new_unqualified(expr.schema_name().to_string());
        let first = Expr::Column(result(&place)).eq(lit(1_u64));
        columns.push(Expr::Column(result(&rows)).alias_qualified(Some(relation), ROWS));
        joined
            .window(vec![place, rows])?
            .filter(first)?
            .project(columns)
    }
}
