//! Values that are compared with a subquery, and contain subqueries themselves:
//! `(SELECT max(x) FROM t) NOT IN (SELECT y FROM u WHERE u.k = o.k)`.
//!
//! Such a comparison becomes a condition inside the subquery ([`super::three_values`]), where the value
//! must be a column of the row outside. So the value is computed first, as a column beside the others.

use super::correlated::outer_as_columns;
use super::three_values::{has_subquery, outer_value, row_comparison, subquery_of};
use super::{BesideColumns, qualified_column};
use crate::dialect::rows::COMPARED_ROWS;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
};
use marigram_operators::lateral::columns_of;
use std::sync::Arc;

/// The name of the column with such a value.
const VALUE: &str = "value";

/// The values that are computed beside the rows.
#[derive(Default)]
struct ComparedValues {
    named: Vec<(String, Expr)>,
}

impl BesideColumns {
    /// Adds the values with subqueries that are compared with subqueries to the rows.
    pub(super) fn with_compared_values(
        &mut self,
        rows: LogicalPlan,
        exprs: Vec<Expr>,
    ) -> Result<(LogicalPlan, Vec<Expr>)> {
        let mut values = ComparedValues::default();
        let mut made = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let schema = Arc::clone(rows.schema());
            let expr =
                expr.transform_down(|part| self.with_value_taken(part, &mut values, &schema))?;
            made.push(expr.data);
        }
        let rows = self.with_columns(rows, values.named)?;
        Ok((rows, made))
    }

    /// Adds columns, which may contain subqueries, to the rows; each has a table of its own.
    pub(super) fn with_columns(
        &mut self,
        rows: LogicalPlan,
        named: Vec<(String, Expr)>,
    ) -> Result<LogicalPlan> {
        if named.is_empty() {
            return Ok(rows);
        }
        if let LogicalPlan::Sort(_) | LogicalPlan::Limit(_) = &rows
            && let [inner] = rows.inputs()[..]
        {
            let inner = self.with_columns(inner.clone(), named)?;
            return rows.with_new_exprs(rows.expressions(), vec![inner]);
        }
        let mut columns = columns_of(&rows);
        columns.extend(
            named.into_iter().map(|(name, value)| {
                value.alias_qualified(Some(TableReference::bare(name)), VALUE)
            }),
        );
        let rows = LogicalPlanBuilder::from(rows).project(columns)?.build()?;
        Ok(self.node(rows)?.data)
    }

    pub(super) fn column_of_value(&mut self, named: &mut Vec<(String, Expr)>, value: Expr) -> Expr {
        if let Some((name, _)) = named.iter().find(|(_, known)| *known == value) {
            return qualified_column(name, VALUE);
        }
        let name = self.name();
        let column = qualified_column(&name, VALUE);
        named.push((name, value));
        column
    }

    fn with_value_taken(
        &mut self,
        part: Expr,
        values: &mut ComparedValues,
        schema: &DFSchema,
    ) -> Result<Transformed<Expr>> {
        let taken = match part {
            Expr::InSubquery(mut asked) if has_subquery(&asked.expr) => {
                *asked.expr = self.column_of_value(&mut values.named, *asked.expr);
                Expr::InSubquery(asked)
            }
            Expr::SetComparison(mut asked) if has_subquery(&asked.expr) => {
                *asked.expr = self.column_of_value(&mut values.named, *asked.expr);
                Expr::SetComparison(asked)
            }
            Expr::Exists(asked) => {
                let has_some =
                    row_comparison(&asked).is_some_and(|filter| has_subquery(&filter.predicate));
                if !has_some {
                    return Ok(Transformed::no(Expr::Exists(asked)));
                }
                self.with_values_of_row_taken(asked, values, schema)?
            }
            other => return Ok(Transformed::no(other)),
        };
        Ok(Transformed::new(taken, true, TreeNodeRecursion::Jump))
    }

    /// Of each `value = column` in the comparison of a row, the value.
    fn with_values_of_row_taken(
        &mut self,
        asked: Exists,
        values: &mut ComparedValues,
        schema: &DFSchema,
    ) -> Result<Expr> {
        let Some(filter) = row_comparison(&asked) else {
            return Ok(Expr::Exists(asked));
        };
        let predicate = filter.predicate.clone().transform_down(|part| match part {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            }) if is_of_rows(&right) && has_subquery(&left) => {
                let value = outer_as_columns(*left)?;
                let kind = value.to_field(schema)?.1;
                let column = self.column_of_value(&mut values.named, value);
                let outer = match column {
                    Expr::Column(column) => Expr::OuterReferenceColumn(kind, column),
                    other => outer_value(other, schema)?,
                };
                let equal = BinaryExpr::new(Box::new(outer), Operator::Eq, right);
                let equal = Expr::BinaryExpr(equal);
                Ok(Transformed::new(equal, true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })?;
        let compared = LogicalPlanBuilder::new_from_arc(Arc::clone(&filter.input))
            .filter(predicate.data)?
            .build()?;
        let outermost = asked.subquery.subquery.as_ref();
        let rows = outermost.with_new_exprs(outermost.expressions(), vec![compared])?;
        Ok(Expr::Exists(Exists {
            subquery: subquery_of(rows, &asked.subquery),
            negated: asked.negated,
        }))
    }
}

/// Whether an expression is a column of the compared rows, perhaps of another type.
fn is_of_rows(expr: &Expr) -> bool {
    match expr {
        Expr::Column(column) => column
            .relation
            .as_ref()
            .is_some_and(|table| table.table() == COMPARED_ROWS),
        Expr::Cast(cast) => is_of_rows(&cast.expr),
        _ => false,
    }
}
