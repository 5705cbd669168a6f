//! `x IN (SELECT …)` and `EXISTS (SELECT …)` whose value is used: selected, counted, or part of a
//! condition.
//!
//! DataFusion plans them only in WHERE, and within OR and NOT without three-valued logic:
//! `x IN (…)` is NULL if x is NULL, or if it is not among values that include a NULL. Here each
//! subquery that does not depend on the row is joined to the rows: an outer join with the distinct
//! values adds the matching value, and the numbers of values and NULLs. A condition of WHERE that
//! consists of the subquery alone is left to DataFusion, whose semi and anti joins are correct and
//! faster. Scalar subqueries that depend on the row, and are not aggregates, are joined to the rows
//! as well (`correlated`).

mod correlated;
mod single_row;

use correlated::{CorrelatedJoin, is_correlated_value, value_of_correlated};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Case, Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;
use marigram_functions::interrupt;
use std::sync::Arc;

/// The names of the joined columns.
const FOUND: &str = "found";
const ROWS: &str = "rows";
const VALUES: &str = "values";

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub struct SubqueryValues;

impl AnalyzerRule for SubqueryValues {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut made = BesideColumns::default();
        let done = plan.transform_up_with_subqueries(|node| made.node(node))?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "subquery_values"
    }
}

/// Numbers the joined columns.
#[derive(Default)]
struct BesideColumns {
    numbers: usize,
}

impl BesideColumns {
    fn node(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        interrupt::check()?;
        match node {
            LogicalPlan::Filter(mut filter) => {
                let (left, parts): (Vec<_>, Vec<_>) =
                    split_conjunction_owned(filter.predicate.clone())
                        .into_iter()
                        .partition(|part| is_whole(part) || !has_values(part));
                let Some(used) = conjunction(parts) else {
                    return Ok(Transformed::no(LogicalPlan::Filter(filter)));
                };
                let columns = filter.input.schema().columns();
                let (mut joins, used) = self.taken_out(used, filter.input.schema())?;
                filter.input = Arc::new(beside(Arc::unwrap_or_clone(filter.input), &mut joins)?);
                let all = left.into_iter().chain([used]);
                let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input));
                let rows = match conjunction(all) {
                    Some(predicate) => rows.filter(predicate)?,
                    None => rows,
                };
                let kept = columns.into_iter().map(Expr::Column);
                Ok(Transformed::yes(rows.project(kept)?.build()?))
            }
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)
                if node.expressions().iter().any(has_values) =>
            {
                let names = NamePreserver::new(&node);
                let [input] = node.inputs()[..] else {
                    return plan_err!("a projection has one input");
                };
                let mut joins = Vec::new();
                let mut exprs = Vec::new();
                for expr in node.expressions() {
                    let name = names.save(&expr);
                    let (more, expr) = self.taken_out(expr, input.schema())?;
                    joins.extend(more);
                    exprs.push(name.restore(expr));
                }
                let input = beside(input.clone(), &mut joins)?;
                let node = node.with_new_exprs(exprs, vec![input])?;
                Ok(Transformed::yes(node))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    /// Replaces subqueries in an expression with columns that are joined to the rows, whose own
    /// columns are `outer`.
    fn taken_out(&mut self, expr: Expr, outer: &DFSchema) -> Result<(Vec<SubqueryJoin>, Expr)> {
        let mut joins = Vec::new();
        let expr = expr.transform_up(|part| match part {
            Expr::InSubquery(asked) if is_independent(&asked.subquery) => {
                let (join, value) = self.value_of_in(asked)?;
                joins.extend(join);
                Ok(Transformed::yes(value))
            }
            Expr::Exists(asked) if is_independent(&asked.subquery) => {
                let (join, value) = self.value_of_exists(&asked)?;
                joins.push(join);
                Ok(Transformed::yes(value))
            }
            Expr::ScalarSubquery(asked) if is_correlated_value(&asked) => {
                let taken = value_of_correlated(self.name(), &asked, outer)?;
                let Some((join, value)) = taken else {
                    return Ok(Transformed::no(Expr::ScalarSubquery(asked)));
                };
                joins.extend(join.map(SubqueryJoin::Correlated));
                Ok(Transformed::yes(value))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok((joins, expr.data))
    }

    fn name(&mut self) -> String {
        self.numbers += 1;
        format!("__subquery_{}", self.numbers)
    }

    fn value_of_in(&mut self, asked: InSubquery) -> Result<([SubqueryJoin; 2], Expr)> {
        let (value, subquery) = (*asked.expr, asked.subquery.subquery);
        let Some(column) = subquery.schema().columns().into_iter().next() else {
            return plan_err!("a subquery of IN has one column");
        };
        let column = Expr::Column(column);
        let (found, counts) = (self.name(), self.name());
        let values = LogicalPlanBuilder::from(Arc::clone(&subquery))
            .filter(column.clone().is_not_null())?
            .project([column.clone().alias(FOUND)])?
            .distinct()?
            .alias(found.as_str())?
            .build()?;
        let counted = LogicalPlanBuilder::from(subquery)
            .aggregate(
                Vec::<Expr>::new(),
                [count(lit(1_i64)).alias(ROWS), count(column).alias(VALUES)],
            )?
            .alias(counts.as_str())?
            .build()?;
        let found = qualified_column(&found, FOUND);
        let (rows, values_found) = (
            qualified_column(&counts, ROWS),
            qualified_column(&counts, VALUES),
        );
        let unknown = value
            .clone()
            .is_null()
            .or(rows.clone().not_eq(values_found));
        let known = |value: bool| Box::new(lit(value != asked.negated));
        let branches = vec![
            (Box::new(found.clone().is_not_null()), known(true)),
            (Box::new(rows.eq(lit(0_i64))), known(false)),
            (Box::new(unknown), Box::new(lit(ScalarValue::Boolean(None)))),
        ];
        let joins = [
            SubqueryJoin::On(values, value.eq(found)),
            SubqueryJoin::Row(counted),
        ];
        let value = Expr::Case(Case::new(None, branches, Some(known(false))));
        Ok((joins, value))
    }

    fn value_of_exists(&mut self, asked: &Exists) -> Result<(SubqueryJoin, Expr)> {
        let counts = self.name();
        let counted = LogicalPlanBuilder::from(Arc::clone(&asked.subquery.subquery))
            .limit(0, Some(1))?
            .aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias(ROWS)])?
            .alias(counts.as_str())?
            .build()?;
        let rows = qualified_column(&counts, ROWS);
        let zero = lit(0_i64);
        let value = if asked.negated {
            rows.eq(zero)
        } else {
            rows.gt(zero)
        };
        Ok((SubqueryJoin::Row(counted), value))
    }
}

fn qualified_column(relation: &str, name: &str) -> Expr {
    Expr::Column(Column::new(Some(relation), name))
}

/// A plan to join to the rows.
enum SubqueryJoin {
    /// One row for all rows.
    Row(LogicalPlan),
    /// The row for which a condition holds.
    On(LogicalPlan, Expr),
    /// The value of a correlated subquery for each row.
    Correlated(CorrelatedJoin),
}

/// Joins columns to the rows of a plan, below the nodes that sort and limit them; the number of
/// rows does not change.
fn beside(input: LogicalPlan, joins: &mut Vec<SubqueryJoin>) -> Result<LogicalPlan> {
    if let LogicalPlan::Sort(_) | LogicalPlan::Limit(_) = &input {
        let [inner] = input.inputs()[..] else {
            return plan_err!("what sorts rows has one input");
        };
        let inner = beside(inner.clone(), joins)?;
        return input.with_new_exprs(input.expressions(), vec![inner]);
    }
    let mut rows = LogicalPlanBuilder::from(input);
    for join in joins.drain(..) {
        rows = match join {
            SubqueryJoin::On(right, on) => rows.join_on(right, JoinType::Left, [on])?,
            SubqueryJoin::Row(right) => rows.cross_join(right)?,
            SubqueryJoin::Correlated(join) => join.beside(rows)?,
        };
    }
    rows.build()
}

/// Whether a subquery is the same for all rows.
fn is_independent(subquery: &datafusion::logical_expr::Subquery) -> bool {
    subquery.outer_ref_columns.is_empty()
}

fn has_values(expr: &Expr) -> bool {
    let mut found = false;
    // It never fails.
    let _ = expr.apply(|part| {
        found |= match part {
            Expr::InSubquery(asked) => is_independent(&asked.subquery),
            Expr::Exists(asked) => is_independent(&asked.subquery),
            Expr::ScalarSubquery(asked) => is_correlated_value(asked),
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Whether a condition consists of the subquery alone. `NOT IN` of a value without columns is none:
/// DataFusion's anti join for it ignores NULLs.
fn is_whole(condition: &Expr) -> bool {
    let (asked, is_not) = match condition {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    match asked {
        Expr::InSubquery(asked) if asked.negated != is_not => {
            !is_independent(&asked.subquery) || asked.expr.any_column_refs()
        }
        other => matches!(other, Expr::InSubquery(_) | Expr::Exists(_)),
    }
}
