//! Decides which statements are short enough to run on the calling thread, because they take less
//! time than handing them over and being woken at their end.
//!
//! Only cached plans may run inline, since parsing and optimizing take longer than that. They are
//! checked twice: before they are planned for the current data, by what planning may cost; and then
//! by the resulting operators. Counts decide, and not time, so that a statement behaves the same
//! each time.

use crate::plan_cache::plan_template::{is_plain, leaf_of_chain, table_of};
use crate::tables::table::{SeriesTable, narrow};
use datafusion::common::Result;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use marigram_engine::TableSnapshot;
use marigram_operators::reduce::SeriesAggregate;
use marigram_operators::scan::SeriesScan;
use std::sync::Arc;

/// For tables with up to this many series, any condition on tags may select series inline.
const SERIES_MAX: u64 = 4096;

/// The snapshot of its table with which a statement continues, so that it is not looked up again.
#[derive(Debug, Default)]
pub struct InlineSnapshot {
    _snapshot: Option<Arc<TableSnapshot>>,
}

/// Whether a statement may run inline: it reads at most one table, of not too many series, in a
/// chain of operators.
///
/// # Errors
/// If the table does not exist any more.
pub fn may_run_inline(
    plan: &LogicalPlan,
    props: &ExecutionProps,
) -> Result<Option<InlineSnapshot>> {
    let scan = match leaf_of_chain(plan)? {
        Some(LogicalPlan::EmptyRelation(_)) => return Ok(Some(InlineSnapshot::default())),
        Some(LogicalPlan::TableScan(scan)) => scan,
        _ => return Ok(None),
    };
    let Some(table) = table_of(scan) else {
        return Ok(None);
    };
    let snapshot = table.snapshot(props.query_execution_start_time)?;
    let is_small = snapshot.series_total() <= SERIES_MAX || has_cheap_series_lookup(scan, table);
    Ok(is_small.then_some(InlineSnapshot {
        _snapshot: Some(snapshot),
    }))
}

/// Whether the series of a scan are found immediately, however many the table has.
fn has_cheap_series_lookup(scan: &TableScan, table: &SeriesTable) -> bool {
    let filters = unnormalize_cols(scan.filters.iter().cloned());
    narrow(&filters, table.table_schema()).looks_series_up()
}

/// Whether a plan runs in a short time.
pub fn runs_inline(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut node = plan;
    loop {
        if let Some(scan) = node.downcast_ref::<SeriesScan>() {
            return scan.runs_inline();
        }
        if let Some(aggregate) = node.downcast_ref::<SeriesAggregate>() {
            return aggregate.runs_inline();
        }
        if node.is::<PlaceholderRowExec>() || node.is::<EmptyExec>() {
            return true;
        }
        match node.children()[..] {
            [input] if is_plain(node.as_ref()) => node = input,
            _ => return false,
        }
    }
}
