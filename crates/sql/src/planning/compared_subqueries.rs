//! `x > ANY (SELECT …)` and `x > ALL (SELECT …)`: the column of the subquery gets a name of its own.
//! `x NOT IN (SELECT …)` of a subquery that depends on the row becomes NOT EXISTS.
//!
//! DataFusion compares the value with the column in one condition. Where both have the same name, as
//! in `n > ANY (SELECT n FROM t)` over `t`, it compares the column with itself. Its anti join for
//! NOT IN counts a NULL as a value that is found or not found, where more conditions are joined.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, TableReference};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// The names of the subqueries begin so; no user's table has such a name.
const COMPARED: &str = "\u{1f}compared";

/// See the module documentation.
#[derive(Debug)]
pub struct ComparedSubqueries;

impl AnalyzerRule for ComparedSubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut number = 0;
        let done = plan.transform_up_with_subqueries(|node| {
            let node = not_in_as_exists(node, &mut number)?;
            node.transform_data(|node| {
                node.map_expressions(|expr| {
                    expr.transform_up(|expr| named_apart(expr, &mut number))
                })
            })
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "compared_subqueries"
    }
}

/// The rows of a subquery, whose column gets a name of its own. An alias of the whole subquery would
/// hide the columns that DataFusion adds below it for conditions on the row.
fn renamed(subquery: &Subquery, number: &mut usize) -> Result<LogicalPlan> {
    let rows = LogicalPlanBuilder::new_from_arc(Arc::clone(&subquery.subquery));
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let column = Expr::Column(Column::from((qualifier, field)));
    let table = TableReference::bare(format!("{COMPARED}{number}"));
    *number += 1;
    rows.project([column.alias_qualified(Some(table), field.name())])?
        .build()
}

/// Replaces the conditions of a filter that are such a NOT IN: no row is equal to the value, or may
/// be.
fn not_in_as_exists(node: LogicalPlan, number: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = node else {
        return Ok(Transformed::no(node));
    };
    let parts = split_conjunction(&filter.predicate);
    if !parts.iter().any(|part| correlated_not_in(part).is_some()) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(asked) = correlated_not_in(part) else {
            kept.push(part.clone());
            continue;
        };
        let rows = renamed(&asked.subquery, number)?;
        let column = Expr::Column(Column::from(rows.schema().qualified_field(0)));
        let value = outer_value(asked.expr.as_ref().clone(), filter.input.schema())?;
        let rows = LogicalPlanBuilder::from(rows);
        let rows = rows.filter(value.eq(column).is_not_false())?.build()?;
        kept.push(Expr::Exists(Exists {
            subquery: Subquery {
                outer_ref_columns: rows.all_out_ref_exprs(),
                subquery: Arc::new(rows),
                spans: asked.subquery.spans.clone(),
            },
            negated: true,
        }));
    }
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input));
    let rows = match conjunction(kept) {
        Some(condition) => rows.filter(condition)?,
        None => rows,
    };
    Ok(Transformed::yes(rows.build()?))
}

fn correlated_not_in(condition: &Expr) -> Option<&InSubquery> {
    let (asked, is_not) = match condition {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    match asked {
        Expr::InSubquery(asked) if asked.negated != is_not => {
            let is_correlated = !asked.subquery.outer_ref_columns.is_empty();
            is_correlated.then_some(asked)
        }
        _ => None,
    }
}

/// A value of the row, as its subquery names it.
fn outer_value(value: Expr, outer: &DFSchema) -> Result<Expr> {
    let value = value.transform_up(|part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(outer.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(value.data)
}

fn named_apart(expr: Expr, number: &mut usize) -> Result<Transformed<Expr>> {
    let Expr::SetComparison(comparison) = expr else {
        return Ok(Transformed::no(expr));
    };
    let subquery = comparison.subquery;
    let rows = renamed(&subquery, number)?;
    Ok(Transformed::yes(Expr::SetComparison(SetComparison {
        subquery: Subquery {
            subquery: Arc::new(rows),
            ..subquery
        },
        ..comparison
    })))
}
