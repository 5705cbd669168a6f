//! Rows of parts as a table: from the rollup as far as it covers them, otherwise from the source.

use super::exec::RollupScan;
use super::grouped_aggregate::without_qualifiers;
use super::rollup_definition::RollupDefinition;
use super::time_split::{RollupTimeRequest, RollupTimeSplit, split, times_of_starts};
use crate::dialect::types::arrow_schema;
use crate::error::SqlError;
use crate::tables::table::{SeriesTable, narrow};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::utils::disjunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use marigram_engine::{Engine, RollupState, TableSnapshot};
use marigram_functions::zoned::UTC;
use marigram_model::{ColumnId, TableSchema, TimeRange, TimeSet};
use marigram_operators::predicate::is_of_tags;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// The number of attempts to find a moment between two refreshes.
const ATTEMPTS: usize = 64;

/// The state of a rollup that belongs to a snapshot of its table.
type SeenRollupState = (Weak<TableSnapshot>, RollupState);

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct RollupTableProvider {
    engine: Engine,
    shape: Arc<RollupDefinition>,
    table: Arc<TableSchema>,
    /// The rollup's table.
    rollup_table: Arc<SeriesTable>,
    /// Its source.
    source: Arc<SeriesTable>,
    arrow: SchemaRef,
    /// The requested times of the source.
    times: TimeRange,
    /// Whether buckets remain after their rows have exceeded their time to live.
    outlives: bool,
    /// The states that statements in progress have seen.
    seen: Mutex<Vec<SeenRollupState>>,
}

/// A consistent view of a rollup and its source, as one query sees them.
struct RollupMoment {
    state: RollupState,
    source: Arc<TableSnapshot>,
    /// Keeps the snapshot alive until the scans hold it.
    _kept: Arc<TableSnapshot>,
}

impl RollupTableProvider {
    /// All buckets that the rollup has, including those whose rows are gone.
    pub(crate) fn for_view(
        engine: Engine,
        shape: Arc<RollupDefinition>,
        table: Arc<TableSchema>,
    ) -> Self {
        Self::new(engine, shape, table, TimeRange::ALL, true)
    }

    /// The parts of exactly the source's rows in a range of time.
    pub(crate) fn for_times(
        engine: Engine,
        shape: Arc<RollupDefinition>,
        table: Arc<TableSchema>,
        times: TimeRange,
    ) -> Self {
        Self::new(engine, shape, table, times, false)
    }

    fn new(
        engine: Engine,
        shape: Arc<RollupDefinition>,
        table: Arc<TableSchema>,
        times: TimeRange,
        outlives: bool,
    ) -> Self {
        let plain = |table| Arc::new(SeriesTable::new(engine.clone(), table).without_rollups());
        Self {
            rollup_table: plain(Arc::clone(&table)),
            source: plain(Arc::clone(&shape.source)),
            arrow: arrow_schema(&table),
            engine,
            shape,
            table,
            times,
            outlives,
            seen: Mutex::default(),
        }
    }

    /// The rollup's table.
    pub(crate) fn table_schema(&self) -> &Arc<TableSchema> {
        &self.table
    }

    /// A state of the rollup and snapshots between the same two refreshes; within a statement, it
    /// is always the same for one version of the rollup's table.
    fn moment(&self, start: Option<DateTime<Utc>>) -> Result<RollupMoment> {
        let external = |error| DataFusionError::External(Box::new(SqlError::Engine(error)));
        for _ in 0..ATTEMPTS {
            let now = || self.engine.rollup_state(self.table.id).map_err(external);
            let epoch = now()?.epoch;
            // Taken before the state, which then includes everything that the snapshot lacks.
            let source = self.source.snapshot(start)?;
            let state = now()?;
            let kept = self.rollup_table.snapshot(start)?;
            let mut seen = self.seen.lock();
            seen.retain(|(snapshot, _)| snapshot.strong_count() > 0);
            let same = |(snapshot, _): &&SeenRollupState| snapshot.as_ptr() == Arc::as_ptr(&kept);
            if let Some((_, state)) = seen.iter().find(same) {
                let state = state.clone();
                return Ok(RollupMoment {
                    state,
                    source,
                    _kept: kept,
                });
            }
            if epoch == state.epoch && epoch == now()?.epoch {
                seen.push((Arc::downgrade(&kept), state.clone()));
                return Ok(RollupMoment {
                    state,
                    source,
                    _kept: kept,
                });
            }
        }
        let name = &self.table.name;
        let message = format!("materialized view '{name}' is being refreshed; try again");
        Err(DataFusionError::External(Box::new(SqlError::invalid(
            "55006", message,
        ))))
    }

    fn split(&self, moment: &RollupMoment, starts: TimeRange) -> Result<RollupTimeSplit> {
        let wrong = |reason| DataFusionError::Execution(format!("time_bucket: {reason}"));
        let mut buckets = self.shape.buckets.clone();
        let ttls = [&self.shape.source, &self.table]
            .map(|table| table.options.ttl_ns)
            .into_iter()
            .take(if self.outlives { 1 } else { 2 });
        let now_ns = self.engine.now_ns();
        let asked = RollupTimeRequest {
            times: self
                .times
                .intersect(times_of_starts(starts, &mut buckets).map_err(wrong)?),
            held: moment.source.estimate().1,
            kept_from: ttls.flatten().map(|ttl| now_ns.saturating_sub(ttl)).max(),
            outlives: self.outlives,
        };
        split(&moment.state.progress, &asked, &mut buckets).map_err(wrong)
    }

    /// The rollup's rows for these buckets.
    fn rollup_rows(&self, buckets: &TimeSet, filters: &[Expr]) -> Result<LogicalPlan> {
        let name = TableReference::bare(self.table.name.as_str());
        let source = provider_as_source(Arc::clone(&self.rollup_table) as Arc<dyn TableProvider>);
        let mut plan = LogicalPlanBuilder::scan(name, source, None)?;
        let ranges = buckets.ranges().iter();
        let among = disjunction(ranges.map(|range| time_between(&self.table, *range)));
        for filter in filters.iter().cloned().chain(among) {
            plan = plan.filter(filter)?;
        }
        plan.build()
    }

    /// The parts of the source's rows in a range of time.
    fn made(&self, range: TimeRange, filters: &[Expr]) -> Result<LogicalPlan> {
        let source = provider_as_source(Arc::clone(&self.source) as Arc<dyn TableProvider>);
        let conditions = filters
            .iter()
            .cloned()
            .chain([time_between(&self.shape.source, range)]);
        self.shape.partials(source, conditions)
    }
}

/// Whether the time of a table's row is in a range.
pub(super) fn time_between(table: &TableSchema, range: TimeRange) -> Expr {
    // A time without a zone would be one of the session's clocks beside a time with one.
    let is_zoned = table.options.zoned.contains(&ColumnId::TIME);
    let zone = is_zoned.then(|| Arc::from(UTC));
    let at = |ns| {
        Expr::Literal(
            ScalarValue::TimestampNanosecond(Some(ns), zone.clone()),
            None,
        )
    };
    let time = Expr::Column(Column::new_unqualified(&table.time_name));
    time.between(at(range.min), at(range.max))
}

#[async_trait]
impl TableProvider for RollupTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let answers = filters.iter().map(|filter| {
            if is_of_tags(filter, &self.table) {
                TableProviderFilterPushDown::Exact
            } else {
                TableProviderFilterPushDown::Inexact
            }
        });
        Ok(answers.collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let moment = self.moment(state.execution_props().query_execution_start_time)?;
        let split = self.split(&moment, narrow(filters, &self.table).range)?;
        let over_tags = filters
            .iter()
            .filter(|filter| is_of_tags(filter, &self.table));
        let over_tags: Vec<Expr> = over_tags.map(without_qualifiers).collect::<Result<_>>()?;
        let mut plans = Vec::new();
        if !split.told.is_empty() {
            plans.push(self.rollup_rows(&split.told, &over_tags)?);
        }
        for range in split.source.ranges() {
            plans.push(self.made(*range, &over_tags)?);
        }
        let places: Vec<usize> = match projection {
            Some(places) => places.clone(),
            None => (0..self.arrow.fields().len()).collect(),
        };
        let mut inputs = Vec::new();
        for plan in plans {
            let columns = places.iter().map(|at| {
                let column = Column::from(plan.schema().qualified_field(*at));
                Expr::Column(column)
            });
            let columns: Vec<Expr> = columns.collect();
            let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
            inputs.push(state.create_physical_plan(&plan).await?);
        }
        let schema = Arc::new(self.arrow.project(&places)?);
        let name = format!("{}.{}", self.table.database, self.table.name);
        Ok(Arc::new(RollupScan::new(name, split, schema, inputs)?))
    }
}
