//! Keeps rollups up to date: recomputes touched times, then advances the watermark, in atomic
//! steps.

use super::rollup_definition::RollupDefinition;
use super::table_provider::time_between;
use super::time_split::{ceil, floor, whole_buckets};
use crate::error::{SqlError, SqlResult};
use crate::tables::sink::to_write_batch;
use crate::tables::table::SeriesTable;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::common::TableReference;
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::execution::session_state::SessionState;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::{collect, execute_stream};
use futures::StreamExt;
use marigram_engine::Engine;
use marigram_functions::TimeBuckets;
use marigram_model::{RollupProgress, TableId, TableSchema, TimeRange, TimeSet};
use marigram_service::{WriteStep, write_blocking};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of touched ranges that one step recomputes.
const STEP_RANGES_MAX: usize = 64;
/// A step is at most this many times as wide as the source's partitions, if the steps before it
/// found no rows.
const STEP_PARTITIONS_MAX: i64 = 1 << 12;
/// Rows that will exceed their time to live within this time are not computed.
const TTL_MARGIN_NS: i64 = 60_000_000_000;

/// What one step changes in a rollup.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RefreshStep {
    /// The touched times that it resolves.
    taken: TimeSet,
    /// The times of the source whose buckets it computes.
    made: TimeSet,
    /// The watermark after it.
    through_ns: i64,
}

/// The input for planning a step.
struct RefreshInput<'a> {
    progress: &'a RollupProgress,
    /// The times of the source's rows.
    held: TimeRange,
    /// The watermark may advance up to here, ns.
    newest_ns: i64,
    /// Rows of the source before this time may have exceeded their time to live, ns.
    kept_from: Option<i64>,
    /// The rollup's own rows before this time would have exceeded theirs, ns.
    stays_from: Option<i64>,
    /// The approximate time that a step may cover, ns.
    width_ns: i64,
}

/// The next step; `None` if the rollup covers everything that it can.
fn next_step(
    given: &RefreshInput<'_>,
    buckets: &mut TimeBuckets,
) -> Result<Option<RefreshStep>, String> {
    let RollupProgress {
        through_ns,
        touched,
    } = given.progress;
    let mut step = if let Some(first) = touched.ranges().first() {
        let end = first.min.saturating_add(given.width_ns);
        let ranges = touched.ranges().iter().take(STEP_RANGES_MAX);
        let near = ranges.take_while(|range| range.min <= end);
        let most = given.width_ns.saturating_mul(2);
        let near = near.map(|range| TimeRange {
            max: range.max.min(range.min.saturating_add(most)),
            ..*range
        });
        let taken = TimeSet::from_ranges(near);
        let before = TimeSet::from_range(TimeRange {
            min: i64::MIN,
            max: through_ns.saturating_sub(1),
        });
        let mut made = whole_buckets(&taken, buckets)?.intersect(&before);
        if let Some(kept_from) = given.kept_from {
            // The rest of a bucket whose rows are partly gone would give a different result.
            made = made.intersect(&from(ceil(kept_from, buckets)?));
        }
        RefreshStep {
            taken: whole_buckets(&taken, buckets)?,
            made,
            through_ns: *through_ns,
        }
    } else {
        let target = floor(given.newest_ns, buckets)?;
        let first = floor(given.held.min, buckets)?;
        let start = first.max(*through_ns);
        if given.held.is_empty() || start >= target {
            return Ok(None);
        }
        let next = buckets.next(start)?.unwrap_or(target);
        let end = floor(start.saturating_add(given.width_ns), buckets)?;
        let through_ns = end.max(next).min(target);
        RefreshStep {
            taken: TimeSet::default(),
            made: TimeSet::from_range(TimeRange {
                min: start,
                max: through_ns - 1,
            }),
            through_ns,
        }
    };
    if let Some(stays_from) = given.stays_from {
        step.made = step.made.intersect(&from(ceil(stays_from, buckets)?));
    }
    Ok(Some(step))
}

fn from(min: i64) -> TimeSet {
    TimeSet::from_range(TimeRange { min, max: i64::MAX })
}

/// The record of a rollup's refreshes since start.
#[derive(Clone, Debug, Default)]
struct RefreshRecord {
    steps: u64,
    rows: u64,
    failures: u64,
    /// When the rollup was last known to be up to date, ns since the epoch.
    at_ns: Option<i64>,
    error: Option<String>,
    /// When the next refresh is due, on the monotonic clock.
    due_ns: Option<u64>,
}

/// The figures of a rollup.
#[derive(Clone, Debug)]
pub struct RollupStatus {
    /// Its table.
    pub table: Arc<TableSchema>,
    /// Name of its source.
    pub source: String,
    /// Its progress.
    pub progress: RollupProgress,
    /// How far it lags behind the newest row of its source, ns.
    pub behind_ns: i64,
    /// Completed steps of refreshes since start.
    pub steps: u64,
    /// Rows that these steps wrote.
    pub rows: u64,
    /// Refreshes that failed since start.
    pub failures: u64,
    /// When the rollup was last known to be up to date, ns since the epoch.
    pub refreshed_ns: Option<i64>,
    /// Why the last refresh failed, if it did.
    pub error: Option<String>,
}

/// Refreshes rollups; only one task at a time refreshes each rollup.
#[derive(Debug)]
pub(crate) struct RollupRefresher {
    engine: Engine,
    told: Mutex<HashMap<TableId, RefreshRecord>>,
    turns: Mutex<HashMap<TableId, Arc<tokio::sync::Mutex<i64>>>>,
}

impl RollupRefresher {
    /// Creates the refresher for the rollups of an engine.
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            told: Mutex::default(),
            turns: Mutex::default(),
        }
    }

    /// The rollups whose refresh is due.
    pub(crate) fn due(&self) -> Vec<Arc<TableSchema>> {
        let all = self.engine.rollups();
        let is_there = |id: &TableId| all.iter().any(|table| table.id == *id);
        self.turns.lock().retain(|id, _| is_there(id));
        let (mut told, now) = (self.told.lock(), self.engine.monotonic_ns());
        told.retain(|id, _| is_there(id));
        let is_due = |table: &Arc<TableSchema>| {
            let due_ns = told.get(&table.id).and_then(|told| told.due_ns);
            due_ns.is_none_or(|due_ns| due_ns <= now)
        };
        all.iter().filter(|table| is_due(table)).cloned().collect()
    }

    /// Runs one step; returns whether there was one to run.
    ///
    /// # Errors
    /// If the source cannot be read or the rollup cannot be written; nothing has changed then.
    pub(crate) async fn step(
        &self,
        state: &SessionState,
        shape: &RollupDefinition,
        table: &Arc<TableSchema>,
    ) -> SqlResult<bool> {
        let turn = Arc::clone(self.turns.lock().entry(table.id).or_default());
        let mut partitions = turn.lock().await;
        let done = self.one_step(state, shape, table, &mut partitions).await;
        let now_ns = self.engine.now_ns();
        let mut all = self.told.lock();
        let told = all.entry(table.id).or_default();
        let pause = table.rollup.as_ref().map_or(0, |rollup| rollup.refresh_ns);
        match &done {
            Ok(Some(rows)) => {
                told.steps += 1;
                told.rows += rows;
                told.error = None;
            }
            Ok(None) => {
                told.at_ns = Some(now_ns);
                told.error = None;
            }
            Err(error) => {
                told.failures += 1;
                told.error = Some(error.to_string());
            }
        }
        if !matches!(done, Ok(Some(_))) {
            let pause = u64::try_from(pause).unwrap_or_default();
            told.due_ns = Some(self.engine.monotonic_ns().saturating_add(pause));
        }
        done.map(|rows| rows.is_some())
    }

    /// Runs one step; returns the number of rows that it wrote. `partitions` limits its width.
    async fn one_step(
        &self,
        state: &SessionState,
        shape: &RollupDefinition,
        table: &Arc<TableSchema>,
        partitions: &mut i64,
    ) -> SqlResult<Option<u64>> {
        let engine = &self.engine;
        let source = engine.snapshot(&shape.source.database, &shape.source.name)?;
        let held = source.estimate().1;
        drop(source);
        let progress = engine.rollup_state(table.id)?.progress;
        let now_ns = engine.now_ns();
        let lag_ns = table.rollup.as_ref().map_or(0, |rollup| rollup.lag_ns);
        let before = |ttl_ns: i64| now_ns.saturating_sub(ttl_ns);
        let given = RefreshInput {
            progress: &progress,
            held,
            newest_ns: held.max.min(now_ns).saturating_sub(lag_ns),
            kept_from: shape.source.options.ttl_ns.map(before),
            stays_from: (table.options.ttl_ns)
                .map(|ttl_ns| before(ttl_ns).saturating_add(TTL_MARGIN_NS)),
            width_ns: (shape.source.options.partition_ns)
                .saturating_mul((*partitions).clamp(1, STEP_PARTITIONS_MAX)),
        };
        let step = next_step(&given, &mut shape.buckets.clone());
        let Some(step) = step.map_err(|reason| SqlError::invalid("22008", reason))? else {
            return Ok(None);
        };
        engine.begin_refresh(table.id, &step.taken, step.through_ns)?;
        let mut rows = 0;
        for range in step.made.ranges() {
            match self.make(state, shape, table, *range).await {
                Ok(made) => rows += made,
                Err(error) => {
                    engine.abort_refresh(table.id);
                    return Err(error);
                }
            }
        }
        let (engine, id) = (engine.clone(), table.id);
        // A later refresh must not overtake a write of this one that was stopped.
        write_blocking(false, move |_| {
            Ok::<_, SqlError>(engine.finish_refresh(id)?)
        })
        .await?;
        *partitions = if rows > 0 {
            1
        } else {
            (*partitions).max(1) * 2
        }
        .min(STEP_PARTITIONS_MAX);
        Ok(Some(rows))
    }

    /// Recomputes the buckets of a range of the source's times; returns the number of rows.
    async fn make(
        &self,
        state: &SessionState,
        shape: &RollupDefinition,
        table: &Arc<TableSchema>,
        range: TimeRange,
    ) -> SqlResult<u64> {
        let rows = self.write(state, shape, table, range).await?;
        if self.stored_rows(state, table, range).await? == rows {
            return Ok(rows);
        }
        // A group that existed before has no rows any more.
        let (engine, id) = (self.engine.clone(), table.id);
        let delete =
            move |_: &mut WriteStep| Ok::<_, SqlError>(engine.delete_refreshed(id, range)?);
        write_blocking(false, delete).await?;
        self.write(state, shape, table, range).await
    }

    /// Writes the parts of the source's rows in a range of time; returns their number.
    async fn write(
        &self,
        state: &SessionState,
        shape: &RollupDefinition,
        table: &Arc<TableSchema>,
        range: TimeRange,
    ) -> SqlResult<u64> {
        let plan = shape.partials(
            self.plain(&shape.source),
            [time_between(&shape.source, range)],
        )?;
        let physical = state.create_physical_plan(&plan).await?;
        let mut batches = execute_stream(physical, state.task_ctx())?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            let batch = to_write_batch(&batch?, table)?;
            rows += batch.times.len() as u64;
            let (engine, database) = (self.engine.clone(), table.database.clone());
            let write = move |_: &mut WriteStep| {
                Ok::<_, SqlError>(engine.write_refreshed(&database, &batch)?)
            };
            let report = write_blocking(false, write).await?;
            if let Some(rejected) = report.rejected.first() {
                let reason = format!("a row of '{}': {}", table.name, rejected.reason);
                return Err(SqlError::invalid("22000", reason));
            }
        }
        Ok(rows)
    }

    /// The number of the rollup's rows in a range of time.
    async fn stored_rows(
        &self,
        state: &SessionState,
        table: &Arc<TableSchema>,
        range: TimeRange,
    ) -> SqlResult<u64> {
        let plan = self.counting(table, range)?;
        let physical = state.create_physical_plan(&plan).await?;
        let answer = collect(physical, state.task_ctx()).await?;
        let counts = answer.iter().filter(|batch| batch.num_rows() > 0);
        let mut counts = counts.map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0));
        Ok(counts.next().map_or(0, i64::unsigned_abs))
    }

    fn counting(
        &self,
        table: &Arc<TableSchema>,
        range: TimeRange,
    ) -> datafusion::common::Result<LogicalPlan> {
        let name = TableReference::bare(table.name.as_str());
        LogicalPlanBuilder::scan(name, self.plain(table), None)?
            .filter(time_between(table, range))?
            .aggregate(Vec::<Expr>::new(), [count(lit(1_i64))])?
            .build()
    }

    fn plain(&self, table: &Arc<TableSchema>) -> Arc<dyn datafusion::logical_expr::TableSource> {
        let table = SeriesTable::new(self.engine.clone(), Arc::clone(table)).without_rollups();
        provider_as_source(Arc::new(table) as Arc<dyn TableProvider>)
    }

    /// The figures of every rollup.
    pub(crate) fn status(&self) -> Vec<RollupStatus> {
        let tables = self.engine.rollups();
        let status = tables.into_iter().filter_map(|table| {
            let progress = self.engine.rollup_state(table.id).ok()?.progress;
            let rollup = table.rollup.as_ref()?;
            let in_database = self.engine.tables(&table.database).ok()?;
            let source = in_database.iter().find(|of| of.id == rollup.source)?;
            let snapshot = self.engine.snapshot(&source.database, &source.name).ok()?;
            let held = snapshot.estimate().1;
            let behind_ns = if held.is_empty() {
                0
            } else {
                held.max
                    .saturating_sub(progress.through_ns.max(held.min))
                    .max(0)
            };
            let told = self.told.lock().get(&table.id).cloned().unwrap_or_default();
            Some(RollupStatus {
                source: source.name.clone(),
                progress,
                behind_ns,
                steps: told.steps,
                rows: told.rows,
                failures: told.failures,
                refreshed_ns: told.at_ns,
                error: told.error,
                table,
            })
        });
        status.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::testing::{buckets, progress, set};

    fn refresh_input(progress: &RollupProgress) -> RefreshInput<'_> {
        RefreshInput {
            progress,
            held: TimeRange { min: 3, max: 257 },
            newest_ns: 257,
            kept_from: None,
            stays_from: None,
            width_ns: 100,
        }
    }

    #[test]
    fn the_watermark_moves_by_steps_up_to_the_newest_bucket() {
        let mut now = progress(i64::MIN, &[]);
        let (mut all, mut steps) = (TimeSet::default(), 0);
        while let Some(step) = next_step(&refresh_input(&now), &mut buckets(10)).unwrap() {
            assert!(step.taken.is_empty() && step.made.intersect(&all).is_empty());
            assert!(step.through_ns > now.through_ns);
            all = all.union(&step.made);
            now.through_ns = step.through_ns;
            steps += 1;
        }
        assert_eq!((all, now.through_ns, steps), (set(&[(0, 249)]), 250, 3));
        let far = progress(i64::MIN, &[]);
        assert_eq!(
            next_step(&refresh_input(&far), &mut buckets(1000)).unwrap(),
            None
        );
    }

    #[test]
    fn what_was_touched_comes_first() {
        let now = progress(200, &[(15, 22), (60, 61), (190, 191)]);
        let step = next_step(&refresh_input(&now), &mut buckets(10))
            .unwrap()
            .unwrap();
        let expected = RefreshStep {
            taken: set(&[(10, 29), (60, 69)]),
            made: set(&[(10, 29), (60, 69)]),
            through_ns: 200,
        };
        assert_eq!(step, expected);
    }

    #[test]
    fn what_was_or_will_be_outlived_is_not_made() {
        let now = progress(200, &[(15, 22), (60, 61)]);
        let ttl = RefreshInput {
            kept_from: Some(12),
            stays_from: Some(55),
            ..refresh_input(&now)
        };
        let step = next_step(&ttl, &mut buckets(10)).unwrap().unwrap();
        assert_eq!(step.taken, set(&[(10, 29), (60, 69)]));
        assert_eq!(step.made, set(&[(60, 69)]));
    }
}
