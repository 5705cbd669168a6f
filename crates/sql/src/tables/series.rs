//! The series of a table as a separate table: one row per series, one column per tag.

use crate::dialect::types::tag_fields;
use crate::error::SqlError;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use marigram_engine::{Engine, TagFilter};
use marigram_model::{SeriesId, TableSchema};
use marigram_operators::predicate::{PredicateClass, classify};
use marigram_operators::rows::tag_array;
use std::sync::Arc;

/// The number of series in a batch.
const BATCH_SERIES: usize = 8192;

/// The series of a table.
#[derive(Debug)]
pub(crate) struct SeriesList {
    engine: Engine,
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
}

impl SeriesList {
    /// The series of the table with this schema.
    pub(crate) fn new(engine: Engine, schema: Arc<TableSchema>) -> Self {
        let arrow = Arc::new(Schema::new(tag_fields(&schema)));
        Self {
            engine,
            schema,
            arrow,
        }
    }

    /// The table.
    pub(crate) fn table_schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }
}

#[async_trait]
impl TableProvider for SeriesList {
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
        let answers = filters
            .iter()
            .map(|filter| match classify(filter, &self.schema) {
                PredicateClass::Exact(_) => TableProviderFilterPushDown::Exact,
                PredicateClass::Inexact(_) => TableProviderFilterPushDown::Inexact,
                _ => TableProviderFilterPushDown::Unsupported,
            });
        Ok(answers.collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let snapshot = self
            .engine
            .snapshot(&self.schema.database, &self.schema.name)
            .map_err(|error| DataFusionError::External(Box::new(SqlError::Engine(error))))?;
        let parts = filters
            .iter()
            .filter_map(|filter| match classify(filter, &self.schema) {
                PredicateClass::Exact(part) | PredicateClass::Inexact(part) => Some(part.tags),
                _ => None,
            });
        let selection = snapshot.list(&TagFilter::And(parts.collect()));
        let mut left = limit.unwrap_or(usize::MAX);
        let mut batches = Vec::new();
        for (shard, series) in selection.shards.iter().enumerate() {
            let mut rest = series.iter().map(SeriesId);
            loop {
                let series: Vec<SeriesId> = rest.by_ref().take(BATCH_SERIES.min(left)).collect();
                if series.is_empty() {
                    break;
                }
                left -= series.len();
                let tags = self.schema.tags.iter().enumerate();
                let columns = tags.map(|(ordinal, tag)| {
                    tag_array(
                        &snapshot.tag_values(shard, &series, ordinal as u16),
                        tag.kind,
                    )
                });
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                let options = RecordBatchOptions::new().with_row_count(Some(series.len()));
                batches.push(RecordBatch::try_new_with_options(
                    Arc::clone(&self.arrow),
                    columns,
                    &options,
                )?);
            }
        }
        Ok(MemorySourceConfig::try_new_exec(
            &[batches],
            Arc::clone(&self.arrow),
            projection.cloned(),
        )?)
    }
}
