//! Decides which statements are short enough to run on the calling thread, because they take less
//! time than handing them over and being woken at their end.
//!
//! Only cached plans may run inline, since parsing and optimizing take longer than that. They are
//! checked twice: before they are planned for the current data, by what planning may cost; and then
//! by the resulting operators. [`InlinePolicy`] has the limits.

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
use marigram_service::{InlineDecision, InlinePolicy, InlineRefusal};
use std::sync::Arc;

/// The snapshot of its table with which a statement continues, so that it is not looked up again.
#[derive(Debug, Default)]
pub(crate) struct InlineSnapshot {
    _snapshot: Option<Arc<TableSnapshot>>,
}

/// Whether a statement may run inline: it reads at most one table, of not too many series, in a
/// chain of operators. The snapshot, or why not.
///
/// # Errors
/// If the table does not exist any more.
pub(crate) fn may_run_inline(
    plan: &LogicalPlan,
    props: &ExecutionProps,
) -> Result<std::result::Result<InlineSnapshot, InlineRefusal>> {
    const CHAIN: InlineRefusal = InlineRefusal::Kind("it does not read one table in a chain");
    let scan = match leaf_of_chain(plan)? {
        Some(LogicalPlan::EmptyRelation(_)) => return Ok(Ok(InlineSnapshot::default())),
        Some(LogicalPlan::TableScan(scan)) => scan,
        _ => return Ok(Err(CHAIN)),
    };
    let Some(table) = table_of(scan) else {
        return Ok(Err(InlineRefusal::Kind("its table is not one of series")));
    };
    let snapshot = table.snapshot(props.query_execution_start_time)?;
    let policy = InlinePolicy::DEFAULT;
    let series = snapshot.series_total();
    let mut decision = policy.selection(series, false);
    if decision.is_err() {
        decision = policy.selection(series, has_cheap_series_lookup(scan, table));
    }
    Ok(decision.map(|()| InlineSnapshot {
        _snapshot: Some(snapshot),
    }))
}

/// Whether the series of a scan are found immediately, however many the table has.
fn has_cheap_series_lookup(scan: &TableScan, table: &SeriesTable) -> bool {
    let filters = unnormalize_cols(scan.filters.iter().cloned());
    narrow(&filters, table.table_schema()).looks_series_up()
}

/// Whether a plan runs inline.
///
/// # Errors
/// Why not.
pub(crate) fn runs_inline(plan: &Arc<dyn ExecutionPlan>) -> InlineDecision {
    let leaf = plain_leaf(plan)?;
    if let Some(scan) = leaf.downcast_ref::<SeriesScan>() {
        return scan.runs_inline();
    }
    match leaf.downcast_ref::<SeriesAggregate>() {
        Some(aggregate) => aggregate.runs_inline(),
        None => Ok(()),
    }
}

/// Whether a plan that was executed stayed on the thread that polled it.
///
/// # Errors
/// Why not.
pub(crate) fn stayed_inline(plan: &Arc<dyn ExecutionPlan>) -> InlineDecision {
    let leaf = plain_leaf(plan)?;
    let scan = leaf.downcast_ref::<SeriesScan>();
    let aggregate = leaf.downcast_ref::<SeriesAggregate>();
    let left = scan.is_some_and(SeriesScan::was_handed_over)
        || aggregate.is_some_and(SeriesAggregate::was_handed_over);
    if left {
        return Err(InlineRefusal::Kind(
            "it has more to read than its plan shows",
        ));
    }
    Ok(())
}

/// The leaf of a chain of operators that do little work for each row.
fn plain_leaf(
    plan: &Arc<dyn ExecutionPlan>,
) -> std::result::Result<&dyn ExecutionPlan, InlineRefusal> {
    let mut node = plan;
    loop {
        let is_leaf = node.is::<SeriesScan>()
            || node.is::<SeriesAggregate>()
            || node.is::<PlaceholderRowExec>()
            || node.is::<EmptyExec>();
        if is_leaf {
            return Ok(node.as_ref());
        }
        match node.children()[..] {
            [input] if is_plain(node.as_ref()) => node = input,
            _ => return Err(InlineRefusal::Kind("it has an operator that may take long")),
        }
    }
}
