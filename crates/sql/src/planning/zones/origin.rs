//! Whether a timestamp comes from a column of one of our tables.
//!
//! Such columns contain moments in UTC. So a session's zone never moves them: compared with a
//! `timestamptz` they keep their value, and `time > now() - INTERVAL '1 hour'` means the last hour
//! in every session.

use crate::tables::table::SeriesTable;
use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use marigram_functions::zone_functions::TIMEZONE;

/// After this many steps, the search stops and assumes that an expression does not come from a
/// column.
const STEPS_MAX: usize = 4096;

/// Whether an expression over the columns of some plans is computed from a stored time.
pub(super) fn is_stored(expr: &Expr, inputs: &[&LogicalPlan]) -> bool {
    ZoneOriginSearch { steps: 0 }.expr(expr, inputs)
}

struct ZoneOriginSearch {
    steps: usize,
}

impl ZoneOriginSearch {
    fn expr(&mut self, expr: &Expr, inputs: &[&LogicalPlan]) -> bool {
        let mut found = false;
        // The search never fails.
        let _ = expr.apply(|part| {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Ok(TreeNodeRecursion::Stop);
            }
            match part {
                // A wall time is not a moment any more.
                Expr::ScalarFunction(call) if call.name() == TIMEZONE => {
                    return Ok(TreeNodeRecursion::Jump);
                }
                Expr::ScalarFunction(call) if call.name() == "shown_in_zone" => {
                    return Ok(TreeNodeRecursion::Jump);
                }
                Expr::Column(column) if inputs.iter().any(|input| self.column(input, column)) => {
                    found = true;
                    return Ok(TreeNodeRecursion::Stop);
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        });
        found
    }

    fn column(&mut self, plan: &LogicalPlan, column: &Column) -> bool {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return false;
        }
        let schema = plan.schema();
        let Some(at) = schema.maybe_index_of_column(column) else {
            return false;
        };
        if !matches!(schema.field(at).data_type(), DataType::Timestamp(_, None)) {
            return false;
        }
        match plan {
            LogicalPlan::TableScan(scan) => is_ours(scan),
            LogicalPlan::SubqueryAlias(alias) => self.search_in(&alias.input, at),
            LogicalPlan::Projection(projection) => {
                let input = [projection.input.as_ref()];
                let made = projection.expr.get(at);
                made.is_some_and(|expr| self.expr(expr, &input))
            }
            LogicalPlan::Aggregate(aggregate) => {
                let input = [aggregate.input.as_ref()];
                let mut made = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
                match made.clone().nth(at) {
                    Some(expr) if !matches!(expr, Expr::GroupingSet(_)) => self.expr(expr, &input),
                    _ => made.any(|expr| self.expr(expr, &input)),
                }
            }
            LogicalPlan::Window(window) => {
                let before = window.input.schema().fields().len();
                match at
                    .checked_sub(before)
                    .and_then(|at| window.window_expr.get(at))
                {
                    Some(expr) => self.expr(expr, &[window.input.as_ref()]),
                    None => self.search_in(&window.input, at),
                }
            }
            LogicalPlan::Union(union) => union.inputs.iter().any(|input| self.search_in(input, at)),
            other => {
                let inputs = other.inputs();
                inputs.into_iter().any(|input| self.column(input, column))
            }
        }
    }

    /// Searches the column at an index.
    fn search_in(&mut self, plan: &LogicalPlan, at: usize) -> bool {
        let columns = plan.schema().columns();
        columns
            .get(at)
            .is_some_and(|column| self.column(plan, column))
    }
}

/// Whether a scan is of one of our tables.
pub(super) fn is_ours(scan: &TableScan) -> bool {
    let source = scan.source.downcast_ref::<DefaultTableSource>();
    source.is_some_and(|source| {
        source
            .table_provider
            .downcast_ref::<SeriesTable>()
            .is_some()
    })
}
