//! `ORDER BY (SELECT … WHERE t.k = o.k)`: sorts by a subquery that depends on the row.
//!
//! The subquery may name columns that are not selected. So it is computed where these are there: in the
//! projection below the sort.

use super::{BesideColumns, depends_on_row, outer_columns};
use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, Sort};
use marigram_functions::with_values_of_columns;
use std::sync::Arc;

/// The name of the column with such a value.
const VALUE: &str = "value";

impl BesideColumns {
    /// A sort by keys with subqueries.
    pub(super) fn sort(&mut self, sort: Sort) -> Result<LogicalPlan> {
        let columns = sort.input.schema().columns();
        let input = Arc::unwrap_or_clone(sort.input);
        let (input, keys) = match input {
            LogicalPlan::Projection(selected)
                if sort
                    .expr
                    .iter()
                    .any(|by| !outer_columns(&by.expr).is_empty()) =>
            {
                self.in_projection(selected, sort.expr)?
            }
            input => {
                let (keys, exprs): (Vec<_>, Vec<_>) = sort
                    .expr
                    .into_iter()
                    .map(|by| ((by.asc, by.nulls_first), by.expr))
                    .unzip();
                let (input, exprs) = self.beside_values(input, exprs)?;
                let keys = keys.into_iter().zip(exprs);
                let keys = keys.map(|((asc, first), expr)| SortKey::new(expr, asc, first));
                (input, keys.collect())
            }
        };
        LogicalPlanBuilder::from(input)
            .sort_with_limit(keys, sort.fetch)?
            .project(columns.into_iter().map(Expr::Column))?
            .build()
    }

    /// Adds the keys with subqueries to the projection below the sort.
    fn in_projection(
        &mut self,
        selected: Projection,
        keys: Vec<SortKey>,
    ) -> Result<(LogicalPlan, Vec<SortKey>)> {
        let mut columns = selected.expr.clone();
        let selected_values = columns.iter().cloned().map(Expr::unalias);
        let selected_values: Vec<Expr> = selected_values.collect();
        let mut sorted = Vec::with_capacity(keys.len());
        for key in keys {
            if !depends_on_row(&key.expr) {
                sorted.push(key);
                continue;
            }
            let value =
                with_values_of_columns(key.expr.clone(), &selected.schema, &selected_values)?;
            let table = TableReference::bare(self.name());
            columns.push(value.alias_qualified(Some(table.clone()), VALUE));
            let value = super::qualified_column(table.table(), VALUE);
            sorted.push(SortKey::new(value, key.asc, key.nulls_first));
        }
        let rows = LogicalPlanBuilder::new_from_arc(selected.input);
        let rows = rows.project(columns)?.build()?;
        Ok((self.node(rows)?.data, sorted))
    }
}
