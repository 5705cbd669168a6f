//! A table of series as a table provider of DataFusion.
//!
//! All scans of a table in one statement share one snapshot, so that a self-join sees one version.
//! The snapshot lives as long as the statement's plan, not as long as this provider, so that a
//! prepared statement keeps no files.

use crate::dialect::types::{arrow_schema, tag_fields};
use crate::error::SqlError;
use crate::tables::sink::TableSink;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use marigram_engine::{
    Engine, ScanMetrics, ScanRequest, SeriesSelection, TableSnapshot, TagFilter,
};
use marigram_model::{SeriesId, TableColumn, TableSchema, TimeRange};
use marigram_operators::predicate::{PredicateClass, bounds, classify};
use marigram_operators::rows::{OutputColumnSource, tag_array};
use marigram_operators::scan::{PartitionRows, SeriesScan};
use parking_lot::Mutex;
use roaring::RoaringBitmap;
use std::fmt::Write;
use std::sync::{Arc, Weak};

/// The number of series whose tags are evaluated at once.
const SERIES_BATCH: usize = 8192;

type StatementTime = Option<DateTime<Utc>>;

/// A table of an engine.
#[derive(Debug)]
pub(crate) struct SeriesTable {
    engine: Engine,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    now: Expr,
    /// Whether a rollup may answer queries of this table.
    may_be_rolled_up: bool,
    /// The snapshots of statements in progress.
    snapshots: Mutex<Vec<(StatementTime, Weak<TableSnapshot>)>>,
}

impl SeriesTable {
    /// The table with this schema.
    pub(crate) fn new(engine: Engine, schema: Arc<TableSchema>) -> Self {
        let arrow = arrow_schema(&schema);
        let now = datafusion::functions::datetime::expr_fn::now();
        Self {
            engine,
            schema,
            arrow,
            now,
            may_be_rolled_up: true,
            snapshots: Mutex::default(),
        }
    }

    /// The same table, without answers from rollups.
    pub(crate) fn without_rollups(mut self) -> Self {
        self.may_be_rolled_up = false;
        self
    }

    /// Whether a rollup may answer queries of this table.
    pub(crate) fn may_be_rolled_up(&self) -> bool {
        self.may_be_rolled_up
    }

    /// The table's schema when the statement was planned.
    pub(crate) fn table_schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The snapshot of the statement that began at `start`.
    ///
    /// # Errors
    /// If the table does not exist any more.
    pub(crate) fn snapshot(&self, start: StatementTime) -> Result<Arc<TableSnapshot>> {
        let mut held = self.snapshots.lock();
        held.retain(|(_, snapshot)| snapshot.strong_count() > 0);
        let known = held
            .iter()
            .find(|known| known.0 == start && start.is_some());
        if let Some(snapshot) = known.and_then(|(_, snapshot)| snapshot.upgrade()) {
            return Ok(snapshot);
        }
        let snapshot = self
            .engine
            .snapshot(&self.schema.database, &self.schema.name)
            .map_err(|error| DataFusionError::External(Box::new(SqlError::Engine(error))))?;
        if snapshot.schema().id != self.schema.id {
            let name = &self.schema.name;
            return Err(external(SqlError::invalid(
                "0A000",
                format!(
                    "table '{name}' was dropped and created again; prepare the statement again"
                ),
            )));
        }
        let snapshot = Arc::new(snapshot);
        held.push((start, Arc::downgrade(&snapshot)));
        Ok(snapshot)
    }
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What a scan's filters say about series and times.
pub(crate) struct NarrowedScan {
    tags: TagFilter,
    /// The times at which all filters may be true.
    pub range: TimeRange,
    per_series: Vec<Expr>,
}

impl NarrowedScan {
    /// The conditions on tags that the series index can evaluate.
    pub(crate) fn tags(&self) -> &TagFilter {
        &self.tags
    }

    /// Whether finding the series only requires looking up a few values of tags, however many
    /// series there are.
    pub(crate) fn looks_series_up(&self) -> bool {
        self.tags.is_looked_up() && self.per_series.is_empty()
    }
}

/// Determines what filters say about series and times.
pub(crate) fn narrow(filters: &[Expr], schema: &TableSchema) -> NarrowedScan {
    let (mut tags, mut range, mut per_series) = (Vec::new(), TimeRange::ALL, Vec::new());
    for filter in filters {
        match classify(filter, schema) {
            PredicateClass::Exact(part) | PredicateClass::Inexact(part) => {
                range = range.intersect(part.range);
                if !matches!(part.tags, TagFilter::All) {
                    tags.push(part.tags);
                }
            }
            PredicateClass::PerSeries => per_series.push(filter.clone()),
            PredicateClass::Unknown => {}
        }
    }
    let tags = match tags.len() {
        0 => TagFilter::All,
        1 => tags.swap_remove(0),
        _ => TagFilter::And(tags),
    };
    NarrowedScan {
        tags,
        range,
        per_series,
    }
}

/// The series of a selection for whose tags all `predicates` are true.
///
/// # Errors
/// If a predicate fails for the tags of a series.
pub(crate) fn select_by_tags(
    snapshot: &TableSnapshot,
    selection: &SeriesSelection,
    predicates: Vec<Expr>,
    state: &dyn Session,
) -> Result<SeriesSelection> {
    let Some(predicate) = conjunction(predicates) else {
        return Ok(selection.clone());
    };
    let schema = snapshot.schema();
    let named: Vec<String> = predicate
        .column_refs()
        .into_iter()
        .map(|column| column.name.clone())
        .collect();
    let tags: Vec<_> = schema
        .tags
        .iter()
        .enumerate()
        .filter(|(_, tag)| named.contains(&tag.name))
        .map(|(ordinal, tag)| (ordinal as u16, tag.kind))
        .collect();
    let fields: Vec<_> = tag_fields(schema)
        .into_iter()
        .filter(|field| named.contains(field.name()))
        .collect();
    let arrow = Arc::new(Schema::new(fields));
    let predicate =
        state.create_physical_expr(predicate, &DFSchema::try_from(Arc::clone(&arrow))?)?;
    let mut shards = Vec::with_capacity(selection.shards.len());
    for (shard, candidates) in selection.shards.iter().enumerate() {
        let mut kept = RoaringBitmap::new();
        let mut rest = candidates.iter().map(SeriesId);
        loop {
            let series: Vec<SeriesId> = rest.by_ref().take(SERIES_BATCH).collect();
            if series.is_empty() {
                break;
            }
            let columns = tags.iter().map(|(ordinal, kind)| {
                tag_array(&snapshot.tag_values(shard, &series, *ordinal), *kind)
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(series.len()));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&arrow), columns, &options)?;
            let truths = predicate.evaluate(&batch)?.into_array(series.len())?;
            let truths = truths.as_boolean_opt().ok_or_else(|| {
                DataFusionError::Plan("a condition in WHERE must be of type boolean".into())
            })?;
            let is_true = |at: &usize| truths.is_valid(*at) && truths.value(*at);
            kept.extend((0..series.len()).filter(is_true).map(|at| series[at].0));
        }
        shards.push(kept);
    }
    Ok(SeriesSelection { shards })
}

#[async_trait]
impl TableProvider for SeriesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        (column == self.schema.time_name).then_some(&self.now)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let answers = filters
            .iter()
            .map(|filter| match classify(filter, &self.schema) {
                PredicateClass::Exact(_) | PredicateClass::PerSeries => {
                    TableProviderFilterPushDown::Exact
                }
                PredicateClass::Inexact(_) => TableProviderFilterPushDown::Inexact,
                PredicateClass::Unknown => TableProviderFilterPushDown::Unsupported,
            });
        Ok(answers.collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = self.series_scan(state, projection, filters, limit)?;
        Ok(Arc::new(scan))
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if op != InsertOp::Append {
            return Err(external(SqlError::unsupported(
                "INSERT always replaces rows with the same key: write INSERT INTO without OVERWRITE",
            )));
        }
        let sink = TableSink::new(
            self.engine.clone(),
            Arc::clone(&self.schema),
            Arc::clone(&self.arrow),
        );
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }
}

impl SeriesTable {
    /// The scan of some columns, limited to the series and times that `filters` select.
    ///
    /// # Errors
    /// If the table does not exist any more, or a condition on tags fails.
    pub(crate) fn series_scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<SeriesScan> {
        let schema = match projection {
            Some(places) => Arc::new(self.arrow.project(places)?),
            None => Arc::clone(&self.arrow),
        };
        let snapshot = self.snapshot(state.execution_props().query_execution_start_time)?;
        let narrowed = narrow(filters, &self.schema);
        let tags = if narrowed.range.is_empty() {
            &TagFilter::None
        } else {
            &narrowed.tags
        };
        let (selection, selecting_ns) = ScanMetrics::timed(|| {
            let selection = snapshot.select(tags);
            select_by_tags(&snapshot, &selection, narrowed.per_series, state)
        });
        let selection = selection?;
        let (mut sources, mut columns) = (Vec::new(), Vec::new());
        let all: Vec<usize> = (0..self.arrow.fields().len()).collect();
        for place in projection.unwrap_or(&all) {
            let unknown = || DataFusionError::Internal(format!("there is no column {place}"));
            let column = self.schema.column_at(*place).ok_or_else(unknown)?;
            sources.push(match column {
                TableColumn::Time => OutputColumnSource::Time,
                TableColumn::Tag(tag) => {
                    OutputColumnSource::Tag(tag, self.schema.tags[usize::from(tag)].kind)
                }
                TableColumn::Field(id) => {
                    columns.push(id);
                    OutputColumnSource::Field(columns.len() - 1)
                }
            });
        }
        let request = ScanRequest {
            selection,
            range: narrowed.range,
            columns,
            bounds: filters
                .iter()
                .flat_map(|filter| bounds(filter, &self.schema))
                .collect(),
            batch_rows: state.config().batch_size(),
            partitions: state.config().target_partitions(),
            limit,
        };
        let description = self.describe(&snapshot, &request, filters);
        let partition_rows = state.config().get_extension::<PartitionRows>();
        let partition_rows = partition_rows.map_or(1, |rows| rows.0);
        let scan = SeriesScan::new(
            snapshot,
            request,
            schema,
            sources,
            description,
            partition_rows,
        )?;
        Ok(scan.selected_in(selecting_ns))
    }

    /// The description of a scan in EXPLAIN.
    fn describe(
        &self,
        snapshot: &TableSnapshot,
        request: &ScanRequest,
        filters: &[Expr],
    ) -> String {
        let total = snapshot.series_total();
        let mut text = format!(
            "{}.{}, series={} of {total}",
            self.schema.database,
            self.schema.name,
            request.selection.len(),
        );
        let time = |ns| DateTime::<Utc>::from_timestamp_nanos(ns).format("%Y-%m-%dT%H:%M:%S%.f");
        if request.range != TimeRange::ALL {
            let (min, max) = (request.range.min, request.range.max);
            text.push_str(", time=");
            if min != i64::MIN {
                let _ = write!(text, "{}", time(min));
            }
            text.push_str("..=");
            if max != i64::MAX {
                let _ = write!(text, "{}", time(max));
            }
        }
        if !filters.is_empty() {
            let filters: Vec<String> = filters
                .iter()
                .map(|filter| filter.human_display().to_string())
                .collect();
            let _ = write!(text, ", filters=[{}]", filters.join(", "));
        }
        if let Some(limit) = request.limit {
            let _ = write!(text, ", limit={limit}");
        }
        text
    }
}
