//! Which statements are short: carried out by the thread that asks, in less time than it takes to
//! hand them over and to be woken by their end.
//!
//! Known plans alone may be, for parsing and optimizing take longer than that. They are looked at twice: before
//! they are planned for the data of the moment, by what that may cost; and then by the operators
//! that came of it. What is short goes by counts and not by time, so that a statement does the same
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

/// Series of a table up to which those that any condition on tags selects are found here.
const SERIES_MAX: u64 = 4096;

/// The version of its table that a statement goes on with, so that it is not looked up again.
#[derive(Debug, Default)]
pub struct InlineSnapshot {
    _snapshot: Option<Arc<TableSnapshot>>,
}

/// Whether a statement may be short: at most one table is read, of not too many series, in a line of
/// operators.
///
/// # Errors
/// If the table is not there any more.
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

/// Whether the series of a scan are found at once, however many the table has.
fn has_cheap_series_lookup(scan: &TableScan, table: &SeriesTable) -> bool {
    let filters = unnormalize_cols(scan.filters.iter().cloned());
    narrow(&filters, table.table_schema()).looks_series_up()
}

/// Whether a plan is carried out in short time.
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
