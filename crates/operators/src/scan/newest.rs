//! The newest rows: `ORDER BY time DESC LIMIT n` reads windows of time from the newest back, each
//! wider than the one before, until there are enough rows.

use super::SeriesScan;
use crate::rows::OutputColumnSource;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ReplaceChildrenOptions};
use marigram_engine::{
    EngineError, ScanMetrics, ScanPartition, ScanRequest, SeriesSelection, TableSnapshot,
};
use marigram_model::{SortedRows, TimeRange};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Each window is this many times wider than the one before.
const GROWTH: u64 = 8;

const RECOMPUTED: ReplaceChildrenOptions =
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);

/// Windows of time, from the newest back.
pub(super) struct TimeWindows {
    snapshot: Arc<TableSnapshot>,
    counts: Arc<ScanMetrics>,
    request: ScanRequest,
    shard: usize,
    /// The times that were not read yet.
    left: TimeRange,
    width: u64,
    /// The number of rows that are still needed.
    rows: usize,
    current: Vec<ScanPartition>,
}

impl TimeWindows {
    /// Creates the windows for the `rows` newest rows of a partition, which has about `rows_max`
    /// rows within `range`.
    pub(super) fn new(
        snapshot: Arc<TableSnapshot>,
        counts: Arc<ScanMetrics>,
        request: &ScanRequest,
        partition: &ScanPartition,
        range: TimeRange,
        rows: usize,
        rows_max: u64,
    ) -> Self {
        let mut shards = vec![RoaringBitmap::new(); request.selection.shards.len()];
        if let Some(series) = shards.get_mut(partition.shard()) {
            series.clone_from(partition.series());
        }
        let request = ScanRequest {
            selection: SeriesSelection { shards },
            partitions: 1,
            limit: None,
            ..request.clone()
        };
        let all = u128::from(range.max.abs_diff(range.min));
        let width = all * 2 * rows as u128 / u128::from(rows_max) + 1;
        Self {
            snapshot,
            counts,
            request,
            shard: partition.shard(),
            left: range,
            width: u64::try_from(width).unwrap_or(u64::MAX),
            rows,
            current: Vec::new(),
        }
    }

    pub(super) fn shard(&self) -> usize {
        self.shard
    }

    /// The next rows, in the order of their window; `None` when there are enough.
    pub(super) fn next_rows(&mut self) -> Result<Option<SortedRows>, EngineError> {
        loop {
            if let Some(partition) = self.current.last_mut() {
                match partition.next_rows()? {
                    Some(rows) => {
                        self.rows = self.rows.saturating_sub(rows.len());
                        return Ok(Some(rows));
                    }
                    None => drop(self.current.pop()),
                }
                continue;
            }
            if self.rows == 0 || self.left.is_empty() {
                return Ok(None);
            }
            let min = self.left.max.saturating_sub_unsigned(self.width);
            let range = TimeRange {
                min: min.max(self.left.min),
                max: self.left.max,
            };
            self.request.range = range;
            self.current = self
                .snapshot
                .scan(&self.request, Arc::clone(&self.counts))?;
            self.width = self.width.saturating_mul(GROWTH);
            match range.min.checked_sub(1) {
                Some(max) => self.left.max = max,
                None => self.left = TimeRange { min: 0, max: -1 },
            }
        }
    }
}

/// The rule that finds sorts by descending time with a limit directly over a scan. It runs before
/// DataFusion's own rules.
#[derive(Debug)]
pub struct NewestRowsRule;

impl PhysicalOptimizerRule for NewestRowsRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = plan.transform_down(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(node));
            };
            let order = sort.expr().first();
            let newest = match sort.fetch() {
                Some(rows) if order.options.descending => {
                    newest(sort.input(), Arc::clone(&order.expr), rows)?
                }
                _ => None,
            };
            Ok(match newest {
                Some(input) => Transformed::yes(node.replace_children(vec![input], RECOMPUTED)?),
                None => Transformed::no(node),
            })
        })?;
        Ok(optimized.data)
    }

    fn name(&self) -> &'static str {
        "newest_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Makes the scan of `plan` return the newest rows, if there are only projections above it and
/// `order` is its time.
fn newest(
    plan: &Arc<dyn ExecutionPlan>,
    order: Arc<dyn PhysicalExpr>,
    rows: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(column) = order.downcast_ref::<Column>() else {
        return Ok(None);
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = Arc::clone(&projection.expr()[column.index()].expr);
        return match newest(projection.input(), below, rows)? {
            Some(input) => Ok(Some(
                Arc::clone(plan).replace_children(vec![input], RECOMPUTED)?,
            )),
            None => Ok(None),
        };
    }
    let Some(scan) = plan.downcast_ref::<SeriesScan>() else {
        return Ok(None);
    };
    let by_time = scan.sources().get(column.index()) == Some(&OutputColumnSource::Time);
    if !by_time || scan.request().limit.is_some() || scan.newest.is_some() {
        return Ok(None);
    }
    Ok(Some(Arc::new(scan.newest(rows))))
}
