//! The types of a statement's columns, as clients are told before it runs.
//!
//! The planner gives CASE and UNION the type of their first branch, and the analyzer the common type of all
//! of them. Binary protocols announce types before the rows, so they must be the final ones.

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::sync::Arc;

/// The types that the analyzer gives the columns of a plan, where they may differ from the plan's own.
///
/// # Errors
/// DataFusion's, for plans that cannot be traversed.
pub(crate) fn final_types(
    state: &SessionState,
    plan: &LogicalPlan,
) -> Result<Option<Vec<DataType>>> {
    if !has_branches(plan)? {
        return Ok(None);
    }
    // Types that are still open, such as those of parameters, may make it fail; it runs again with values.
    let analyzed =
        state
            .analyzer()
            .execute_and_check(plan.clone(), state.config_options(), |_, _| {});
    Ok(analyzed.ok().map(|analyzed| {
        let fields = analyzed.schema().fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    }))
}

/// A schema with these types.
pub(crate) fn with_types(schema: &SchemaRef, types: &[DataType]) -> SchemaRef {
    let fields = schema.fields().iter().zip(types);
    let fields = fields.map(|(field, kind)| {
        if field.data_type() == kind {
            return Arc::clone(field);
        }
        Arc::new(field.as_ref().clone().with_data_type(kind.clone()))
    });
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

fn has_branches(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Union(_));
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(matches!(part, Expr::Case(_))))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}
