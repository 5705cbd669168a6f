//! Refuses `SELECT * REPLACE (x AS name)` if no such column exists: the planner would ignore it.

use crate::dialect::ast_walk::walk;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Select, SelectItem, Visitor};
use std::ops::ControlFlow;

/// The names of the columns that a statement replaces.
pub(crate) fn replaced_names(statement: &Statement) -> Vec<String> {
    let mut found = ReplacedNames(Vec::new());
    let mut inner = statement;
    while let Statement::Explain(explain) = inner {
        inner = &explain.statement;
    }
    if let Statement::Statement(statement) = inner {
        let _ = walk(statement.as_ref(), &mut found);
    }
    found.0
}

struct ReplacedNames(Vec<String>);

impl Visitor for ReplacedNames {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item
            else {
                continue;
            };
            for element in options
                .opt_replace
                .iter()
                .flat_map(|replace| &replace.items)
            {
                self.0.push(fold_case(&element.column_name));
            }
        }
        ControlFlow::Continue(())
    }
}

/// Refuses names of columns that the plan does not select.
///
/// # Errors
/// If there is such a name.
pub(crate) fn check_replaced(names: &[String], plan: &LogicalPlan) -> SqlResult<()> {
    for name in names {
        let mut is_there = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Projection(projection) = node {
                is_there |= projection.expr.iter().any(|expr| {
                    matches!(expr, Expr::Alias(alias) if alias.name.eq_ignore_ascii_case(name))
                });
            }
            Ok(if is_there {
                TreeNodeRecursion::Stop
            } else {
                TreeNodeRecursion::Continue
            })
        })?;
        if !is_there {
            let message = format!("REPLACE names the column '{name}', which * does not have");
            return Err(SqlError::named("42703", name, message));
        }
    }
    Ok(())
}
