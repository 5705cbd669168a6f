//! Runs a change of a reference table.

use super::change_guard::ChangeGuard;
use super::change_node::ReferenceChangeNode;
use super::inserted::{RowInserter, nullable_schema};
use super::row_expressions::{CheckedRows, RowExpressions, table_schema};
use crate::error::{SqlError, SqlResult};
use crate::tables::reference::reads::StatementReads;
use crate::tables::reference::{ROW_ID, ReferenceTableProvider, changed};
use arrow::array::AsArray;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DataFusionError, TableReference};
use datafusion::datasource::{DefaultTableSource, TableProvider};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableScanBuilder, TableSource, WriteOp,
};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_reference::{ReferenceTable, ReferenceTransaction};
use marigram_service::{ServiceError, run_blocking};
use std::collections::HashSet;
use std::sync::Arc;

/// What a change remembers of each row, about.
const ROW_BYTES: usize = 128;
/// Rows that are read again, or changed, at a time.
const PART_ROWS: usize = 8192;

/// What a change did.
#[derive(Debug)]
pub(crate) struct ChangeOutcome {
    /// The command tag.
    pub tag: String,
    /// Rows changed.
    pub rows: u64,
    /// The answer of RETURNING.
    pub returned: Option<ReturnedRows>,
}

/// The answer of RETURNING, with the memory that it takes.
#[derive(Debug)]
pub(crate) struct ReturnedRows {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
    /// Their memory.
    pub held: MemoryReservation,
}

/// The reference table behind a source.
pub(crate) fn provider_of(source: &Arc<dyn TableSource>) -> Option<&ReferenceTableProvider> {
    let source = source.downcast_ref::<DefaultTableSource>()?;
    source
        .table_provider
        .downcast_ref::<ReferenceTableProvider>()
}

/// Runs a change, and commits it unless it is part of a transaction block.
///
/// # Errors
/// If it fails, nothing of it stays.
pub(crate) async fn run(
    state: &SessionState,
    node: &ReferenceChangeNode,
) -> SqlResult<ChangeOutcome> {
    let bug = |message: &str| SqlError::from(ServiceError::Internal(message.to_owned()));
    let LogicalPlan::Dml(dml) = &node.change else {
        return Err(bug("a change is no DML"));
    };
    let provider = provider_of(&dml.target).ok_or_else(|| bug("a change has no table"))?;
    let reads = StatementReads::of_task().ok_or_else(|| bug("a change has no statement"))?;
    let guard = ChangeGuard::begin(&reads).await?;
    // Its checks and defaults may have changed while this waited for another transaction.
    let planned = provider.table();
    let current = guard.transaction.table(&planned.database, &planned.name);
    if current.is_none_or(|current| *current != **planned) {
        return Err(changed(&planned.name));
    }
    let mut run = ChangeRun {
        state,
        table: Arc::clone(provider.table()),
        transaction: Arc::clone(&guard.transaction),
        returning: Returning::new(state, node, provider.table())?,
    };
    let (verb, rows) = match &dml.op {
        WriteOp::Insert(_) => ("INSERT 0", run.insert(node, dml).await?),
        WriteOp::Update => ("UPDATE", run.update(dml).await?),
        WriteOp::Delete => ("DELETE", run.delete(dml).await?),
        other => return Err(SqlError::unsupported(format!("{other} is not supported"))),
    };
    let returned = run.returning.map(|it| ReturnedRows {
        schema: it.schema,
        batches: it.batches,
        held: it.held,
    });
    guard.commit().await?;
    Ok(ChangeOutcome {
        tag: format!("{verb} {rows}"),
        rows,
        returned,
    })
}

struct ChangeRun<'a> {
    state: &'a SessionState,
    table: Arc<ReferenceTable>,
    transaction: Arc<ReferenceTransaction>,
    returning: Option<Returning>,
}

impl ChangeRun<'_> {
    async fn insert(&mut self, node: &ReferenceChangeNode, dml: &DmlStatement) -> SqlResult<u64> {
        let mut inserter = RowInserter::new(self.state, &self.table, &self.transaction, node)?;
        let mut count = 0;
        let keys = &self.table.foreign_keys;
        let refers_to_itself = keys.iter().any(|key| key.parent == self.table.id);
        // Rows that are read while others are added to their table would be read again and again; and rows that
        // refer to each other are checked together.
        let (mut rows, _held) = if refers_to_itself || reads_reference_tables(&dml.input)? {
            let (batches, held) = self.all_rows(&dml.input).await?;
            let rows = match batches.first().map(RecordBatch::schema) {
                Some(schema) => {
                    held.try_grow(held.size())?;
                    Some(concat_batches(&schema, &batches).map_err(DataFusionError::from)?)
                }
                None => None,
            };
            (futures::stream::iter(rows.map(Ok)).boxed(), Some(held))
        } else {
            (self.rows(&dml.input).await?.boxed(), None)
        };
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let plain = RecordBatch::try_new(nullable_schema(&batch), batch.columns().to_vec());
            let row_ids = inserter
                .insert(plain.map_err(DataFusionError::from)?)
                .await?;
            count += row_ids.len() as u64;
            self.return_rows(&row_ids).await?;
        }
        Ok(count)
    }

    async fn update(&mut self, dml: &DmlStatement) -> SqlResult<u64> {
        // The planner puts a projection of all columns, in the order of the table, on the rows.
        let LogicalPlan::Projection(columns) = &*dml.input else {
            return Err(ServiceError::Internal("an UPDATE has no columns".to_owned()).into());
        };
        let own = |name: &str, qualifier: &Option<TableReference>| {
            Expr::Column(Column::new(qualifier.clone(), name))
        };
        let (input, qualifier) = with_row_ids(&columns.input)?;
        let mut changed = Vec::new();
        let mut exprs = vec![own(ROW_ID, &qualifier)];
        for (at, (column, value)) in self.table.columns.iter().zip(&columns.expr).enumerate() {
            let value = value.clone().unalias();
            if value != own(&column.name, &qualifier) {
                changed.push(at);
            }
            exprs.push(value.alias(format!("new value {at}")));
        }
        let query = LogicalPlanBuilder::from(input).project(exprs)?.build()?;
        let (rows, _held) = self.rows_to_change(&query).await?;
        let Some(rows) = rows else {
            return Ok(0);
        };
        let row_ids = row_ids(&rows)?;
        let values: Vec<usize> = (1..rows.num_columns()).collect();
        let values = rows.project(&values).map_err(DataFusionError::from)?;
        CheckedRows::new(self.state, &self.table)?.check(&values)?;
        let values = values.project(&changed).map_err(DataFusionError::from)?;
        let (table, transaction) = (Arc::clone(&self.table), Arc::clone(&self.transaction));
        let ids = row_ids.clone();
        let count =
            run_blocking(move || transaction.update(&table, &ids, &changed, &values)).await??;
        self.return_rows(&row_ids).await?;
        Ok(count)
    }

    async fn delete(&mut self, dml: &DmlStatement) -> SqlResult<u64> {
        let (input, qualifier) = with_row_ids(&dml.input)?;
        let row_id = Expr::Column(Column::new(qualifier, ROW_ID));
        let query = LogicalPlanBuilder::from(input).project([row_id])?.build()?;
        let (rows, _held) = self.rows_to_change(&query).await?;
        let Some(rows) = rows else {
            return Ok(0);
        };
        let row_ids = row_ids(&rows)?;
        self.return_rows(&row_ids).await?;
        let (table, transaction) = (Arc::clone(&self.table), Arc::clone(&self.transaction));
        Ok(run_blocking(move || transaction.delete(&table, &row_ids)).await??)
    }

    /// The rows of a query that begins with their ids, each once: a join may find one several times. They are
    /// changed in one call, because foreign keys hold after it.
    async fn rows_to_change(
        &self,
        query: &LogicalPlan,
    ) -> SqlResult<(Option<RecordBatch>, MemoryReservation)> {
        let (batches, held) = self.all_rows(query).await?;
        let mut seen = HashSet::new();
        let batches = batches
            .iter()
            .map(|batch| first_of_each(batch, &mut seen))
            .collect::<SqlResult<Vec<_>>>()?;
        let Some(schema) = batches.first().map(RecordBatch::schema) else {
            return Ok((None, held));
        };
        // All batches become one, and each row has its id in several lists.
        held.try_grow(held.size() + seen.len() * ROW_BYTES)?;
        let rows = concat_batches(&schema, &batches).map_err(DataFusionError::from)?;
        Ok((Some(rows), held))
    }

    async fn rows(
        &self,
        plan: &LogicalPlan,
    ) -> SqlResult<impl futures::Stream<Item = SqlResult<RecordBatch>> + Send + Unpin + use<>> {
        let physical = self.state.create_physical_plan(plan).await?;
        let rows = execute_stream(physical, self.state.task_ctx())?;
        Ok(rows.map(|batch| batch.map_err(SqlError::from)))
    }

    /// All rows of a query, and their reservation of memory.
    async fn all_rows(
        &self,
        plan: &LogicalPlan,
    ) -> SqlResult<(Vec<RecordBatch>, MemoryReservation)> {
        let pool = &self.state.runtime_env().memory_pool;
        let held = MemoryConsumer::new("ReferenceChangeNode").register(pool);
        let mut rows = self.rows(plan).await?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            held.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        Ok((batches, held))
    }

    async fn return_rows(&mut self, row_ids: &[i64]) -> SqlResult<()> {
        let Some(returning) = &mut self.returning else {
            return Ok(());
        };
        for part in row_ids.chunks(PART_ROWS) {
            let (table, transaction) = (Arc::clone(&self.table), Arc::clone(&self.transaction));
            let part = part.to_vec();
            let rows = run_blocking(move || transaction.fetch(&table, &part)).await??;
            returning.add(&rows)?;
        }
        Ok(())
    }
}

/// The answer of RETURNING.
struct Returning {
    values: RowExpressions,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    held: MemoryReservation,
}

impl Returning {
    fn new(
        state: &SessionState,
        node: &ReferenceChangeNode,
        table: &ReferenceTable,
    ) -> SqlResult<Option<Self>> {
        let Some(exprs) = &node.returning else {
            return Ok(None);
        };
        let qualifiers = exprs.iter().flat_map(|expr| expr.column_refs());
        let qualifier = qualifiers
            .filter_map(|column| column.relation.as_ref())
            .map(|relation| relation.table().to_owned())
            .next();
        let name = qualifier.unwrap_or_else(|| table.name.clone());
        let own = table_schema(table, &name)?;
        let held = MemoryConsumer::new("Returning").register(&state.runtime_env().memory_pool);
        Ok(Some(Self {
            values: RowExpressions::new(state, exprs, &own)?,
            schema: Arc::clone(node.schema.inner()),
            batches: Vec::new(),
            held,
        }))
    }

    fn add(&mut self, rows: &RecordBatch) -> SqlResult<()> {
        let columns = self
            .values
            .evaluate(rows.columns().to_vec(), rows.num_rows())?;
        let fields = columns.iter().zip(self.schema.fields());
        // With values in the place of parameters, types may have become others.
        let columns = fields.map(|(column, field)| match field.data_type() {
            own if own == column.data_type() => Ok(Arc::clone(column)),
            own => cast(column, own),
        });
        let columns: Result<Vec<_>, _> = columns.collect();
        let columns = columns.map_err(DataFusionError::from)?;
        let options =
            arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        let batch = batch.map_err(DataFusionError::from)?;
        self.held.try_grow(batch.get_array_memory_size())?;
        self.batches.push(batch);
        Ok(())
    }
}

fn row_ids(batch: &RecordBatch) -> SqlResult<Vec<i64>> {
    let ids = batch.column(0).as_primitive_opt::<Int64Type>();
    let ids = ids.ok_or_else(|| ServiceError::Internal("rows have no ids".to_owned()))?;
    Ok(ids.values().to_vec())
}

/// The rows whose ids were not seen yet.
fn first_of_each(batch: &RecordBatch, seen: &mut HashSet<i64>) -> SqlResult<RecordBatch> {
    let is_first: Vec<bool> = row_ids(batch)?
        .into_iter()
        .map(|id| seen.insert(id))
        .collect();
    let filtered = arrow::compute::filter_record_batch(batch, &is_first.into());
    Ok(filtered.map_err(DataFusionError::from)?)
}

/// Whether a plan reads or changes reference tables.
///
/// # Errors
/// DataFusion's errors, for plans that cannot be traversed.
pub(crate) fn reads_reference_tables(plan: &LogicalPlan) -> SqlResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= match node {
            LogicalPlan::TableScan(scan) => provider_of(&scan.source).is_some(),
            LogicalPlan::Dml(dml) => provider_of(&dml.target).is_some(),
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// A plan whose first table, the one to change, gives the ids of its rows, and the name of that table in it.
fn with_row_ids(plan: &LogicalPlan) -> SqlResult<(LogicalPlan, Option<TableReference>)> {
    if let LogicalPlan::TableScan(scan) = plan
        && let Some(provider) = provider_of(&scan.source)
    {
        let provider: Arc<dyn TableProvider> = Arc::new(provider.with_row_id());
        let source = Arc::new(DefaultTableSource::new(provider));
        let name = scan.table_name.clone();
        let scan = TableScanBuilder::new(name.clone(), source)
            .with_filters(scan.filters.clone())
            .with_fetch(scan.fetch)
            .build()?;
        return Ok((LogicalPlan::TableScan(scan), Some(name)));
    }
    let inputs = plan.inputs();
    let Some((first, rest)) = inputs.split_first() else {
        return Err(ServiceError::Internal("a change has no table".to_owned()).into());
    };
    let (first, mut name) = with_row_ids(first)?;
    if let LogicalPlan::SubqueryAlias(alias) = plan {
        name = Some(alias.alias.clone());
    }
    let inputs = std::iter::once(first).chain(rest.iter().map(|input| (*input).clone()));
    let rebuilt = plan.with_new_exprs(plan.expressions(), inputs.collect())?;
    Ok((rebuilt, name))
}
