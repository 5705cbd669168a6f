//! The rule that automatically answers aggregates over a table from one of its rollups.
//!
//! It runs before DataFusion's logical rules, when a query still has the form in which it was
//! written. The replacement of an aggregate gives the same result, except for the last digits of
//! sums of floats: times that the rollup does not cover, and parts of buckets, are read from the
//! source ([`RollupTableProvider`]).

use super::grouped_aggregate::{GroupedAggregate, GroupedAggregateKey, without_qualifiers};
use super::part::{RollupFinish, RollupPartMerge};
use super::rollup_definition::RollupDefinition;
use super::rollup_definitions::RollupDefinitions;
use super::table_provider::RollupTableProvider;
use crate::tables::table::narrow;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use marigram_engine::{Engine, TagFilter};
use marigram_model::{TableSchema, TimeRange};
use marigram_operators::gapfill::ConstantEvaluator;
use marigram_operators::predicate::{PredicateClass, classify};
use marigram_operators::scan::share;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A rollup is used only if reading the source costs more than this many times as much: statistics
/// answer many queries of the source, and its rows are stored more densely.
const ROWS_FACTOR: u64 = 4;
/// A row of the source counts this many times if it must be evaluated by itself: for a function
/// that neither statistics nor parts can compute, or for a condition on fields.
const LOOK: u64 = 16;
/// Reading a rollup, and the rest from its source, takes this many additional operators. Each takes
/// as long to begin as reading the rows below which a scan is not divided into partitions.
const OPERATORS: u64 = 8;
/// The number of pages that are read in that time. The newest bucket needs the last page of each
/// series of the source.
const PAGES: u64 = 32;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct RollupRewriteRule {
    engine: Engine,
    rollup_definitions: RollupDefinitions,
    /// The number of rows that are read in the time that an operator takes to begin.
    operator_rows: u64,
}

/// An estimate of what a query reads from a table.
#[derive(Clone, Copy, Debug)]
struct ReadEstimate {
    /// The approximate number of rows.
    rows: u64,
    /// The number of series that contain them.
    series: u64,
    /// The times of all rows of the table.
    held: TimeRange,
}

/// A rollup that can answer an aggregate.
struct RollupCandidate {
    shape: Arc<RollupDefinition>,
    table: Arc<TableSchema>,
    /// How to compute each call from parts.
    calls: Vec<RollupFinish>,
    times: TimeRange,
    filters: Vec<Expr>,
    /// Whether its groups are those of the query.
    same_groups: bool,
    /// Its cost, in rows.
    cost: u64,
}

impl RollupRewriteRule {
    /// Creates the rule for an engine's tables. An operator takes as long to begin as reading
    /// `operator_rows` rows.
    pub(crate) fn new(
        engine: Engine,
        rollup_definitions: RollupDefinitions,
        operator_rows: usize,
    ) -> Self {
        let operator_rows = operator_rows as u64;
        Self {
            engine,
            rollup_definitions,
            operator_rows,
        }
    }

    /// Estimates what conditions and times read from a table. The index says which series have such
    /// tags; rows are assumed to be evenly distributed over series and times.
    fn reading(&self, table: &TableSchema, conditions: &[Expr], times: TimeRange) -> ReadEstimate {
        let Ok(snapshot) = self.engine.snapshot(&table.database, &table.name) else {
            return ReadEstimate {
                rows: 0,
                series: 0,
                held: times,
            };
        };
        let (rows, held) = snapshot.estimate();
        let series = snapshot.select(narrow(conditions, table).tags()).len();
        let total = snapshot.series_total().max(series).max(1);
        let of_series = u128::from(rows) * u128::from(series) / u128::from(total);
        ReadEstimate {
            rows: share(of_series as u64, held.intersect(times), held),
            series,
            held,
        }
    }

    /// The cost of reading the rows of a rollup and the rest from its source, in rows.
    fn cost(&self, kept: &ReadEstimate, source: &ReadEstimate, times: TimeRange) -> u64 {
        // The newest bucket is never stored.
        let newest = if times.max >= kept.held.max {
            source.series.saturating_mul(self.operator_rows / PAGES)
        } else {
            0
        };
        let begin = self.operator_rows.saturating_mul(OPERATORS);
        kept.rows.saturating_add(newest).saturating_add(begin)
    }

    fn answered(
        &self,
        aggregate: &Aggregate,
        constants: &ConstantEvaluator,
    ) -> Result<Option<LogicalPlan>> {
        let Some(grouped) = GroupedAggregate::from_aggregate(aggregate, constants)? else {
            return Ok(None);
        };
        if grouped.bucket.is_none() {
            // Statistics of pages answer these.
            return Ok(None);
        }
        let mut best: Option<RollupCandidate> = None;
        for table in self.engine.rollups() {
            let is_of = table.rollup.as_ref().map(|rollup| rollup.source);
            if is_of != Some(grouped.table.id) {
                continue;
            }
            let Some(shape) = self.rollup_definitions.for_table(&table) else {
                continue;
            };
            let Some(fit) = self.fit(&grouped, shape, table)? else {
                continue;
            };
            if best.as_ref().is_none_or(|best| fit.cost < best.cost) {
                best = Some(fit);
            }
        }
        match best {
            Some(fit) => self.plan(aggregate, &grouped, fit).map(Some),
            None => Ok(None),
        }
    }

    /// How a rollup answers an aggregate, if it can and if that is worthwhile.
    fn fit(
        &self,
        grouped: &GroupedAggregate,
        shape: Arc<RollupDefinition>,
        table: Arc<TableSchema>,
    ) -> Result<Option<RollupCandidate>> {
        let Some((_, buckets)) = &grouped.bucket else {
            return Ok(None);
        };
        let has = |tag: &str| shape.tags.iter().any(|(known, _)| known == tag);
        if !shape.buckets.nests_in(buckets) || !grouped.tags().all(has) {
            return Ok(None);
        }
        let mut needed = shape.conditions.clone();
        let (mut times, mut filters) = (TimeRange::ALL, Vec::new());
        for condition in &grouped.conditions {
            if let Some(at) = needed.iter().position(|known| known == condition) {
                needed.swap_remove(at);
                continue;
            }
            match classify(condition, &grouped.table) {
                PredicateClass::Exact(part) if matches!(part.tags, TagFilter::All) => {
                    times = times.intersect(part.range);
                }
                PredicateClass::Exact(part)
                    if part.range == TimeRange::ALL && all_columns_satisfy(condition, &has) =>
                {
                    filters.push(condition.clone());
                }
                PredicateClass::PerSeries if all_columns_satisfy(condition, &has) => {
                    filters.push(condition.clone());
                }
                _ => return Ok(None),
            }
        }
        if !needed.is_empty() {
            return Ok(None);
        }
        let same_groups = buckets.nests_in(&shape.buckets)
            && grouped.tags().collect::<BTreeSet<_>>().len() == shape.tags.len();
        let mut calls = Vec::new();
        for call in &grouped.calls {
            let known = shape.calls.iter().find(|(known, ..)| known == call);
            let finish = match known {
                Some((_, finish, _)) => finish.clone(),
                None => match shape.made_of(call)? {
                    Some(finish) => finish,
                    None => return Ok(None),
                },
            };
            // Rows of the source give the exact mean.
            if matches!(finish, RollupFinish::RoundedMean { .. }) {
                return Ok(None);
            }
            let merges = |part: &usize| shape.parts.list[*part].merge != RollupPartMerge::Never;
            if !same_groups && !finish.parts().iter().all(merges) {
                return Ok(None);
            }
            calls.push(finish);
        }
        let kept = self.reading(&table, &filters, times);
        let source = self.reading(&grouped.table, &grouped.conditions, times);
        let cost = self.cost(&kept, &source, times);
        let parts = calls.iter().flat_map(RollupFinish::parts);
        let looks = parts
            .into_iter()
            .any(|part| shape.parts.list[part].merge == RollupPartMerge::Never);
        let look = if looks || !shape.conditions.is_empty() {
            LOOK
        } else {
            1
        };
        let rows = source.rows.saturating_mul(look);
        let is_worth_it = kept.rows > 0 && cost.saturating_mul(ROWS_FACTOR) <= rows;
        Ok(is_worth_it.then_some(RollupCandidate {
            shape,
            table,
            calls,
            times,
            filters,
            same_groups,
            cost,
        }))
    }

    /// The aggregate over parts, with the columns of the original aggregate.
    fn plan(
        &self,
        aggregate: &Aggregate,
        grouped: &GroupedAggregate,
        fit: RollupCandidate,
    ) -> Result<LogicalPlan> {
        let RollupCandidate {
            shape,
            table,
            calls,
            times,
            filters,
            same_groups,
            cost: _,
        } = fit;
        let name = TableReference::bare(table.name.as_str());
        let (engine, bucket) = (self.engine.clone(), shape.key(&GroupedAggregateKey::Bucket));
        let partials = RollupTableProvider::for_times(engine, Arc::clone(&shape), table, times);
        let source = provider_as_source(Arc::new(partials));
        let mut plan = LogicalPlanBuilder::scan(name, source, None)?;
        for filter in filters {
            plan = plan.filter(filter)?;
        }
        let time = grouped.table.time_name.as_str();
        let keys = aggregate.group_expr.iter().zip(&grouped.keys);
        let keys = keys.map(|(expr, key)| match key {
            GroupedAggregateKey::Tag(_) => Ok(shape.key(key)),
            GroupedAggregateKey::Bucket => {
                bucket_over_rollup(&without_qualifiers(expr)?, time, &bucket)
            }
        });
        let mut columns = keys.collect::<Result<Vec<_>>>()?;
        let kind = |at: usize| aggregate.schema.field(at).data_type();
        let first = columns.len();
        if same_groups {
            for (call, at) in calls.iter().zip(first..) {
                columns.push(call.to_expr(|part| shape.parts.value(part), kind(at))?);
            }
            return plan.project(named(columns, aggregate))?.build();
        }
        let needed: BTreeSet<usize> = calls.iter().flat_map(RollupFinish::parts).collect();
        let needed: Vec<usize> = needed.into_iter().collect();
        let merged = needed.iter().map(|part| shape.parts.merged(*part));
        let merged: Vec<Option<Expr>> = merged.collect::<Result<_>>()?;
        let merged: Vec<Expr> = merged.into_iter().flatten().collect();
        let plan = plan.aggregate(columns, merged)?;
        let schema = Arc::clone(plan.schema());
        let output = |at: usize| Expr::Column(Column::from(schema.qualified_field(at)));
        let mut columns: Vec<Expr> = (0..first).map(output).collect();
        for (call, at) in calls.iter().zip(first..) {
            let part = |part: usize| {
                let place = needed.iter().position(|known| *known == part);
                Ok(output(first + place.unwrap_or_default()))
            };
            columns.push(call.to_expr(part, kind(at))?);
        }
        plan.project(named(columns, aggregate))?.build()
    }
}

/// Gives columns the names of an aggregate's columns.
fn named(columns: Vec<Expr>, aggregate: &Aggregate) -> Vec<Expr> {
    let columns = columns.into_iter().enumerate().map(|(at, column)| {
        let (relation, field) = aggregate.schema.qualified_field(at);
        column.alias_qualified(relation.cloned(), field.name().as_str())
    });
    columns.collect()
}

/// Whether all columns of a condition are tags of a rollup.
fn all_columns_satisfy(condition: &Expr, has: &impl Fn(&str) -> bool) -> bool {
    let columns = condition.column_refs();
    !columns.is_empty() && columns.iter().all(|column| has(&column.name))
}

/// Rewrites a bucket's expression to use a rollup's buckets instead of times.
fn bucket_over_rollup(bucket: &Expr, time: &str, buckets: &Expr) -> Result<Expr> {
    let over = bucket.clone().transform(|expr| {
        Ok(match &expr {
            Expr::Column(column) if column.name == time => Transformed::yes(buckets.clone()),
            _ => Transformed::no(expr),
        })
    })?;
    Ok(over.data)
}

impl OptimizerRule for RollupRewriteRule {
    fn name(&self) -> &'static str {
        "use_rollups"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if self.engine.rollups().is_empty() {
            return Ok(Transformed::no(plan));
        }
        let constants = ConstantEvaluator::new(config);
        plan.transform_down_with_subqueries(|node| {
            let LogicalPlan::Aggregate(aggregate) = &node else {
                return Ok(Transformed::no(node));
            };
            Ok(match self.answered(aggregate, &constants)? {
                Some(answered) => Transformed::yes(answered),
                None => Transformed::no(node),
            })
        })
    }
}
