//! What the analyzer rules have in common that replace parts of a plan's expressions.

use crate::interrupt;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Shows `replace` every candidate among the parts of the expressions, with the columns that it may name.
/// Expressions keep their names.
///
/// `is_candidate` tells without types which parts `replace` may have something for: the columns of a
/// node's inputs are merged only where there is such a part. Most plans have none.
///
/// # Errors
/// DataFusion's.
pub fn replace_in_expressions(
    plan: LogicalPlan,
    is_candidate: impl Fn(&Expr) -> bool,
    replace: impl Fn(Expr, &DFSchema) -> Transformed<Expr>,
) -> Result<LogicalPlan> {
    let replaced = plan.transform_up_with_subqueries(|plan| {
        interrupt::check()?;
        if !has_candidate(&plan, &is_candidate)? {
            return Ok(Transformed::no(plan));
        }
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            let (name, source) = (scan.table_name.clone(), scan.source.schema());
            schema.merge(&DFSchema::try_from_qualified_schema(name, &source)?);
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            if !expr.exists(|part| Ok(is_candidate(part)))? {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let replaced = expr.transform_up(|part| {
                Ok(if is_candidate(&part) {
                    replace(part, &schema)
                } else {
                    Transformed::no(part)
                })
            })?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(replaced.data)
}

/// An expression over the columns of `schema` as one over `values`, of which each takes the place of the
/// column with its index.
///
/// # Errors
/// None that can occur.
pub fn with_values_of_columns(expr: Expr, schema: &DFSchema, values: &[Expr]) -> Result<Expr> {
    let made = expr.transform(|part| {
        let at = match &part {
            Expr::Column(column) => schema.maybe_index_of_column(column),
            _ => None,
        };
        Ok(match at.and_then(|at| values.get(at)) {
            Some(value) => Transformed::yes(value.clone()),
            None => Transformed::no(part),
        })
    })?;
    Ok(made.data)
}

fn has_candidate(plan: &LogicalPlan, is_candidate: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = found || expr.exists(|part| Ok(is_candidate(part)))?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}
