//! The sink of DELETE and UPDATE by any condition: it takes the rows that the statement's query
//! finds, and deletes or overwrites them when all are there.
//!
//! The engine deletes and writes the rows of one statement at once, so they have to fit into the
//! statement's memory, and there is a limit to their number.

use crate::error::SqlError;
use crate::tables::sink::{SinkRefusals, write_batch};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{and, cast, concat_batches, filter_record_batch, is_not_null, or};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;
use marigram_engine::{Engine, WriteOptions};
use marigram_model::{ColumnId, FieldColumn, TableSchema};
use marigram_service::{CommitPoint, run_blocking};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// What happens to the rows.
#[derive(Clone, Debug)]
pub(crate) enum ListedRowChange {
    /// They are deleted. The query's columns: time, tags.
    Delete,
    /// They get other values in these fields. The query's columns: time, tags, the new values, the
    /// old values.
    Update(Vec<ColumnId>),
}

/// A table whose rows a statement changes; an INSERT into it changes the rows.
#[derive(Debug)]
pub(crate) struct ChangeTarget {
    engine: Engine,
    table: Arc<TableSchema>,
    change: ListedRowChange,
    arrow: SchemaRef,
}

impl ChangeTarget {
    /// The target for a query with the columns `arrow`.
    pub(crate) fn new(
        engine: Engine,
        table: Arc<TableSchema>,
        change: ListedRowChange,
        arrow: SchemaRef,
    ) -> Self {
        Self {
            engine,
            table,
            change,
            arrow,
        }
    }
}

#[async_trait]
impl TableProvider for ChangeTarget {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(DataFusionError::Internal(
            "the target of a change is not read".to_owned(),
        ))
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sink = ChangeSink {
            engine: self.engine.clone(),
            table: Arc::clone(&self.table),
            change: self.change.clone(),
            arrow: Arc::clone(&self.arrow),
        };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }
}

#[derive(Debug)]
struct ChangeSink {
    engine: Engine,
    table: Arc<TableSchema>,
    change: ListedRowChange,
    arrow: SchemaRef,
}

impl DisplayAs for ChangeSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, table) = (&self.table.database, &self.table.name);
        write!(f, "ChangeSink: {database}.{table}")
    }
}

#[async_trait]
impl DataSink for ChangeSink {
    fn schema(&self) -> &SchemaRef {
        &self.arrow
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let held = MemoryConsumer::new("ChangedRows").register(context.memory_pool());
        let (mut batches, mut count) = (Vec::new(), 0);
        while let Some(batch) = data.next().await {
            let batch = self.plain(&batch?)?;
            count += batch.num_rows();
            if count > Engine::DELETED_ROWS_MAX {
                return Err(external(self.too_many()));
            }
            // Twice: all batches become one.
            held.try_grow(2 * batch.get_array_memory_size())?;
            batches.push(batch);
        }
        let Some(schema) = batches.first().map(RecordBatch::schema) else {
            return Ok(0);
        };
        let rows = concat_batches(&schema, &batches)?;
        drop(batches);
        let (engine, table) = (self.engine.clone(), Arc::clone(&self.table));
        let change = self.change.clone();
        let commit = CommitPoint::of_task();
        let changed = run_blocking(move || {
            let _step = commit
                .begin_write(true)
                .map_err(|error| external(error.into()))?;
            match change {
                ListedRowChange::Delete => delete(&engine, &table, &rows),
                ListedRowChange::Update(fields) => update(&engine, &table, &fields, &rows),
            }
        });
        changed.await.map_err(|error| external(error.into()))?
    }
}

impl ChangeSink {
    /// The rows with tags as plain values: batches share dictionaries, and tables do not.
    fn plain(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        let tags = self.table.tags.iter();
        for (column, tag) in columns.iter_mut().skip(1).zip(tags) {
            *column = cast(column, &tag.kind.data_type())?;
        }
        let named = columns.iter().enumerate().map(|(at, column)| {
            let kind: &DataType = column.data_type();
            Field::new(at.to_string(), kind.clone(), true)
        });
        let schema = Arc::new(Schema::new(named.collect::<Vec<_>>()));
        Ok(RecordBatch::try_new(schema, columns)?)
    }

    fn too_many(&self) -> SqlError {
        let statement = match self.change {
            ListedRowChange::Delete => "DELETE by this condition",
            ListedRowChange::Update(_) => "UPDATE",
        };
        SqlError::invalid(
            "54000",
            format!(
                "{statement} takes at most {} rows at a time; add a condition on time, and repeat the \
                 statement for the other times",
                Engine::DELETED_ROWS_MAX
            ),
        )
    }
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// An error if the table is no longer the one for which the statement was planned.
pub(crate) fn check_unreplaced(
    engine: &Engine,
    table: &TableSchema,
) -> std::result::Result<(), SqlError> {
    if engine.table(&table.database, &table.name)?.id == table.id {
        return Ok(());
    }
    let message = format!(
        "table '{}' was replaced by another one in the meantime",
        table.name
    );
    Err(SqlError::named("0A000", &table.name, message))
}

/// The columns of time and tags.
fn keys<'a>(
    table: &TableSchema,
    rows: &'a RecordBatch,
) -> Result<(&'a ArrayRef, Vec<&'a ArrayRef>)> {
    let lacking = || DataFusionError::Internal("the rows to change lack their keys".to_owned());
    let (time, rest) = rows.columns().split_first().ok_or_else(lacking)?;
    let tags = rest.get(..table.tags.len()).ok_or_else(lacking)?;
    Ok((time, tags.iter().collect()))
}

fn delete(engine: &Engine, table: &TableSchema, rows: &RecordBatch) -> Result<u64> {
    check_unreplaced(engine, table).map_err(external)?;
    let (time, tags) = keys(table, rows)?;
    let listed = write_batch(table, time, tags, Vec::new())?;
    let deleted = engine.delete_rows(&table.database, &listed);
    deleted.map_err(|error| external(error.into()))?;
    Ok(rows.num_rows() as u64)
}

fn update(
    engine: &Engine,
    table: &TableSchema,
    fields: &[ColumnId],
    rows: &RecordBatch,
) -> Result<u64> {
    check_unreplaced(engine, table).map_err(external)?;
    let rows = once_each(table, rows)?;
    let count = rows.num_rows() as u64;
    let first = 1 + table.tags.len();
    let mut has_value = BooleanArray::from(vec![false; rows.num_rows()]);
    for (at, id) in fields.iter().enumerate() {
        let new = is_not_null(rows.column(first + at))?;
        let old = is_not_null(rows.column(first + fields.len() + at))?;
        let is_erased = new
            .iter()
            .zip(&old)
            .any(|it| it == (Some(false), Some(true)));
        if is_erased {
            return Err(external(erased(column(table, *id)?)));
        }
        has_value = or(&has_value, &new)?;
    }
    let has_value = and(&has_value, &unexpired(engine, table, &rows)?)?;
    let written = filter_record_batch(&rows, &has_value)?;
    let (time, tags) = keys(table, &written)?;
    let values = fields.iter().zip(written.columns().iter().skip(first));
    let values = values
        .map(|(id, values)| Ok((column(table, *id)?, values)))
        .collect::<Result<Vec<_>>>()?;
    let batch = write_batch(table, time, tags, values)?;
    let report = engine
        .write(&table.database, &batch, WriteOptions { grow: false })
        .map_err(|error| external(error.into()))?;
    if report.rejected.is_empty() {
        return Ok(count);
    }
    let mut refused = SinkRefusals::default();
    refused.add(&report, 0);
    Err(external(refused.into_error(report.stored as u64, true)))
}

/// Which rows are not past the table's `ttl`: the others only wait to be dropped, and the engine would
/// refuse them and store the rest.
fn unexpired(engine: &Engine, table: &TableSchema, rows: &RecordBatch) -> Result<BooleanArray> {
    let current = engine.table(&table.database, &table.name);
    let ttl_ns = current
        .map_err(|error| external(error.into()))?
        .options
        .ttl_ns;
    let Some(ttl_ns) = ttl_ns else {
        return Ok(BooleanArray::from(vec![true; rows.num_rows()]));
    };
    // A second of margin: the engine looks at its clock later.
    let oldest = engine
        .now_ns()
        .saturating_sub(ttl_ns)
        .saturating_add(1_000_000_000);
    let times = rows.column(0).as_primitive::<TimestampNanosecondType>();
    Ok(times
        .values()
        .iter()
        .map(|time| Some(*time >= oldest))
        .collect())
}

/// The rows, each (time and tags) once: a join with other tables may find one several times.
fn once_each(table: &TableSchema, rows: &RecordBatch) -> Result<RecordBatch> {
    let (time, tags) = keys(table, rows)?;
    let listed = write_batch(table, time, tags, Vec::new())?;
    let mut known = HashSet::with_capacity(rows.num_rows());
    let identities = listed.slots.iter().zip(listed.times.iter());
    let is_first: BooleanArray = identities.map(|row| Some(known.insert(row))).collect();
    Ok(filter_record_batch(rows, &is_first)?)
}

fn column(table: &TableSchema, id: ColumnId) -> Result<&FieldColumn> {
    let lacking = || DataFusionError::Internal(format!("there is no field {}", id.0));
    table.field_by_id(id).ok_or_else(lacking)
}

fn erased(field: &FieldColumn) -> SqlError {
    SqlError::named(
        "0A000",
        &field.name,
        format!(
            "UPDATE cannot replace a value of '{}' by NULL; DELETE the row, and INSERT it without this \
             field",
            field.name
        ),
    )
}
