//! `CREATE TABLE … AS`: creates a table with the columns and the rows of a query.
//!
//! The query runs once. Which of its columns are tags is decided before the table is created: by
//! the table from which the columns come, or, as in `marigram import`, by which columns distinguish
//! rows with the same time among the first rows.
//!
//! Invariant: a statement that fails or is stopped leaves no table behind.

use super::SqlServiceInner;
use super::changes::StatementDone;
use super::planned::PlannedStatementKind;
use crate::dialect::column_names::named_schema;
use crate::dialect::parse;
use crate::dialect::statement::{Command, CreateTableAs};
use crate::dialect::types::{ROLE_KEY, arrow_schema};
use crate::error::{SqlError, SqlResult};
use crate::stack::on_stack;
use crate::statements::ddl_execution::{exists_already, untagged, usual_options};
use crate::tables::notices::StatementNotices;
use crate::tables::sink::TableSink;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit, TimestampNanosecondType};
use datafusion::common::DataFusionError;
use datafusion::datasource::sink::DataSink;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use marigram_engine::{Engine, EngineError, TableSpec};
use marigram_model::{ColumnId, FieldType, TableId, TableOptions, TableSchema, TagType};
use marigram_service::{CommitPoint, Session};
use marigram_tabular::tags::{SampleRow, TagCandidate, infer};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The number of rows from which tags are inferred.
const SAMPLE_ROWS: usize = 10_000;
/// Distinct values of a column are counted up to this number.
const DISTINCT_MAX: usize = 5_000;

impl SqlServiceInner {
    /// `CREATE TABLE … AS`
    pub(super) async fn create_table_as(
        self: Arc<Self>,
        session: &Session,
        asked: CreateTableAs,
    ) -> SqlResult<StatementDone> {
        let Command::Plan(statement, names) = parse::parse(&asked.query)? else {
            return Err(SqlError::syntax("CREATE TABLE … AS needs a query"));
        };
        let need = statement.need();
        let work = async {
            let mut state = self.contexts.state(session)?;
            let notices = StatementNotices::for_statement(&mut state);
            let database = asked.database.as_ref().unwrap_or(&session.database);
            match self.engine.table(database, &asked.table) {
                Ok(_) if asked.if_not_exists => {
                    return Ok(StatementDone::new("CREATE TABLE AS")
                        .telling(Some(exists_already(&asked.table))));
                }
                Ok(_) => {
                    let (kind, name) = ("table", asked.table.clone());
                    return Err(EngineError::AlreadyExists { kind, name }.into());
                }
                Err(EngineError::NotFound { kind: "table", .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let plan = self.plan(&state, session, statement.into_inner()).await?;
            if !matches!(self.kind(&plan)?, PlannedStatementKind::Rows) {
                return Err(SqlError::syntax("CREATE TABLE … AS needs a query"));
            }
            let physical = state.create_physical_plan(&plan).await?;
            let named = named_schema(&names, Arc::clone(plan.schema().inner()));
            let fields = named.fields().iter().map(|f| Field::clone(f)).collect();
            let mut rows = execute_stream(physical, state.task_ctx())?;
            let mut columns = CreateAsColumns::from_fields(fields, &asked)?;
            let mut first: Vec<RecordBatch> = Vec::new();
            let mut told = Vec::new();
            if columns.tags.is_none() {
                let mut count = 0;
                while count < SAMPLE_ROWS
                    && let Some(batch) = rows.next().await.transpose()?
                {
                    count += batch.num_rows();
                    first.push(batch);
                }
                told.extend(columns.infer_tags(&first, &asked.table)?);
            }
            let usual = usual_options(&self.engine, database, &asked.table);
            let spec = columns.spec(&asked, &usual)?;
            let (engine, of) = (self.engine.clone(), database.clone());
            // The guard comes with the table: this work may be dropped while it waits for it.
            let create = move || {
                let table = engine.create_table(&of, &spec, false)?;
                Ok((CreatedTable::new(engine, &table), table))
            };
            if !asked.with_data {
                let create = move || {
                    let (mut created, table) = create()?;
                    created.keep();
                    Ok(table)
                };
                let table = self.workers.commit(create).await?;
                told.extend(untagged(&table));
                return Ok(StatementDone::new("CREATE TABLE AS").telling(told));
            }
            let (mut created, table) = self.workers.block(create).await?;
            told.extend(untagged(&table));
            let wanted = arrow_schema(&table);
            let places = columns.places(&wanted);
            let all = futures::stream::iter(first.into_iter().map(Ok)).chain(rows);
            let fitted = {
                let wanted = Arc::clone(&wanted);
                let time = columns.time;
                all.map(move |batch| fit(&batch?, &wanted, &places, time))
            };
            let stream = RecordBatchStreamAdapter::new(Arc::clone(&wanted), fitted.boxed());
            let stream: SendableRecordBatchStream = Box::pin(stream);
            let sink = TableSink::new(self.engine.clone(), Arc::clone(&table), wanted);
            let sink = sink.of_new_table();
            let written = sink.write_all(stream, &state.task_ctx()).await;
            let written = written.map_err(SqlError::from).and_then(|rows| {
                // A query without rows has written nothing yet.
                CommitPoint::of_task().begin_write(true)?;
                Ok(rows)
            });
            let rows = match written {
                Ok(rows) => rows,
                Err(error) => {
                    let dropped = move || Ok(created.drop_table()?);
                    self.workers.block(dropped).await?;
                    return Err(error);
                }
            };
            created.keep();
            told.extend(notices.take());
            Ok(StatementDone::with_rows(format!("SELECT {rows}"), rows).telling(told))
        };
        on_stack(need, work).await
    }
}

/// A table that is dropped unless its rows are complete: also if the statement is stopped by its
/// client or its timeout, whose work just ends.
struct CreatedTable {
    engine: Engine,
    id: TableId,
    name: String,
    is_complete: bool,
}

impl CreatedTable {
    fn new(engine: Engine, table: &TableSchema) -> Self {
        Self {
            engine,
            id: table.id,
            name: table.name.clone(),
            is_complete: false,
        }
    }

    /// The table stays.
    fn keep(&mut self) {
        self.is_complete = true;
    }

    /// Drops the table. Blocks.
    fn drop_table(&mut self) -> Result<(), EngineError> {
        self.is_complete = true;
        // By its number: another client may have dropped or renamed it, and created one of its name.
        match self.engine.table_by_id(self.id) {
            Some(table) => self.engine.drop_table(&table.database, &table.name, true),
            None => Ok(()),
        }
    }
}

impl Drop for CreatedTable {
    fn drop(&mut self) {
        if !self.is_complete
            && let Err(error) = self.drop_table()
        {
            tracing::warn!(%error, table = self.name, "the table of a stopped statement stays");
        }
    }
}

/// The columns of a query, and the roles that they get.
struct CreateAsColumns {
    fields: Vec<Field>,
    time: usize,
    /// `None` until they are inferred.
    tags: Option<Vec<usize>>,
}

fn role(field: &Field) -> Option<&str> {
    field.metadata().get(ROLE_KEY).map(String::as_str)
}

impl CreateAsColumns {
    fn from_fields(fields: Vec<Field>, asked: &CreateTableAs) -> SqlResult<Self> {
        let place = |name: &String| {
            let known = || fields.iter().map(|field| field.name().as_str());
            let found = known().position(|field| field == name);
            found.ok_or_else(|| SqlError::unknown("42703", "column", name, known()))
        };
        let is_time = |field: &&Field| matches!(field.data_type(), DataType::Timestamp(..));
        let time = match &asked.time {
            Some(name) => {
                let at = place(name)?;
                if !is_time(&&fields[at]) {
                    let message = format!("the time column '{name}' must be a TIMESTAMP");
                    return Err(SqlError::named("42P16", name, message));
                }
                at
            }
            None => {
                let of_role = fields.iter().position(|field| role(field) == Some("time"));
                let named = || {
                    fields
                        .iter()
                        .position(|field| is_time(&field) && field.name() == "time")
                };
                let first = || fields.iter().position(|field| is_time(&field));
                of_role.or_else(named).or_else(first).ok_or_else(|| {
                    let message = "a table needs a time column, and no column of the query is a \
                                   TIMESTAMP";
                    SqlError::invalid("42P16", message)
                })?
            }
        };
        let tags = match &asked.tags {
            Some(names) => Some(names.iter().map(place).collect::<SqlResult<Vec<_>>>()?),
            None => {
                let roles: Vec<usize> = (0..fields.len())
                    .filter(|at| role(&fields[*at]) == Some("tag"))
                    .collect();
                (!roles.is_empty()).then_some(roles)
            }
        };
        Ok(Self { fields, time, tags })
    }

    /// Infers tags from the first rows; returns a notice.
    fn infer_tags(&mut self, first: &[RecordBatch], table: &str) -> SqlResult<Option<String>> {
        let hasher = RandomState::new();
        let could_be =
            |at: &usize| *at != self.time && tag_type(self.fields[*at].data_type()).is_some();
        let places: Vec<usize> = (0..self.fields.len()).filter(could_be).collect();
        let mut rows: Vec<SampleRow> = Vec::new();
        for batch in first {
            let times = to_type(batch.column(self.time), &time_type())?;
            let times = times.as_primitive::<TimestampNanosecondType>().clone();
            let mut texts = Vec::with_capacity(places.len());
            for at in &places {
                texts.push(to_type(batch.column(*at), &DataType::Utf8)?);
            }
            rows.extend((0..batch.num_rows()).map(|row| {
                let hashes = texts.iter().map(|text| {
                    let text = text.as_string::<i32>();
                    hasher.hash_one(text.is_valid(row).then(|| text.value(row)))
                });
                (times.value(row), hashes.collect())
            }));
        }
        let candidates: Vec<TagCandidate> = places
            .iter()
            .enumerate()
            .map(|(nth, at)| {
                let values: HashSet<u64> = rows.iter().map(|(_, hashes)| hashes[nth]).collect();
                TagCandidate {
                    name: self.fields[*at].name().clone(),
                    is_text: tag_type(self.fields[*at].data_type()) == Some(TagType::String),
                    distinct: (values.len() <= DISTINCT_MAX).then_some(values.len()),
                }
            })
            .collect();
        let tags: Vec<usize> = infer(&candidates, &rows)
            .iter()
            .map(|nth| places[*nth])
            .collect();
        let names: Vec<&str> = tags
            .iter()
            .map(|at| self.fields[*at].name().as_str())
            .collect();
        let notice = (!names.is_empty()).then(|| {
            format!(
                "tags of '{table}', which distinguish rows with the same time: {}; CREATE TABLE … WITH \
                 (tags = '…') AS chooses others",
                names.join(", ")
            )
        });
        self.tags = Some(tags);
        Ok(notice)
    }

    /// The definition of the new table; `usual` has the settings that the statement does not give.
    fn spec(&self, asked: &CreateTableAs, usual: &TableOptions) -> SqlResult<TableSpec> {
        let tags = self.tags.as_deref().unwrap_or_default();
        let mut spec = TableSpec {
            name: asked.table.clone(),
            time_name: Some(self.fields[self.time].name().clone()),
            declared: self
                .fields
                .iter()
                .map(|field| field.name().clone())
                .collect(),
            options: asked.options.apply(usual),
            ..TableSpec::default()
        };
        for at in tags {
            let field = &self.fields[*at];
            let Some(kind) = tag_type(field.data_type()).filter(|_| *at != self.time) else {
                let name = field.name();
                let message = format!("column '{name}': a tag is STRING, BIGINT or BOOLEAN");
                return Err(SqlError::named("42804", name, message));
            };
            spec.tags.push((field.name().clone(), kind));
        }
        for (at, field) in self.fields.iter().enumerate() {
            let is_zoned = matches!(field.data_type(), DataType::Timestamp(_, Some(_)));
            if at == self.time && is_zoned {
                spec.options.zoned.push(ColumnId::TIME);
            }
            if at != self.time && !tags.contains(&at) {
                spec.fields.push((field.name().clone(), field_type(field)?));
                if is_zoned {
                    // Fields are numbered from 1 in order.
                    spec.options.zoned.push(ColumnId(spec.fields.len() as u32));
                }
            }
        }
        spec.options.zoned.sort_unstable();
        Ok(spec)
    }

    /// The indexes of the table's columns in the query.
    fn places(&self, table: &SchemaRef) -> Vec<usize> {
        let place = |name: &String| self.fields.iter().position(|field| field.name() == name);
        let columns = table.fields().iter();
        columns.filter_map(|field| place(field.name())).collect()
    }
}

fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, None)
}

/// The type of a tag that can hold values of an Arrow type.
fn tag_type(of: &DataType) -> Option<TagType> {
    match of {
        DataType::Dictionary(_, values) => tag_type(values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(TagType::String),
        DataType::Boolean => Some(TagType::Bool),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => Some(TagType::I64),
        _ => None,
    }
}

/// The type of a field that can hold values of an Arrow type without conversion.
fn field_type(field: &Field) -> SqlResult<FieldType> {
    let of = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    Ok(match of {
        DataType::Boolean => FieldType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            FieldType::I32
        }
        DataType::Int64 | DataType::UInt32 => FieldType::I64,
        DataType::UInt64 => FieldType::U64,
        DataType::Float16 | DataType::Float32 => FieldType::F32,
        DataType::Float64 => FieldType::F64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
            FieldType::String
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => FieldType::Bytes,
        DataType::Timestamp(..) => FieldType::Timestamp,
        _ => {
            let name = field.name();
            let message = format!(
                "column '{name}' of the query has a type that no table has; cast it to DOUBLE \
                 PRECISION, TIMESTAMP or TEXT"
            );
            return Err(SqlError::named("42804", name, message));
        }
    })
}

fn to_type(
    values: &arrow::array::ArrayRef,
    to: &DataType,
) -> Result<arrow::array::ArrayRef, DataFusionError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    Ok(cast_with_options(values, to, &options)?)
}

/// Converts a batch of the query, whose column `time` has the times, to one of the table.
fn fit(
    batch: &RecordBatch,
    table: &SchemaRef,
    places: &[usize],
    time: usize,
) -> Result<RecordBatch, DataFusionError> {
    let columns = table.fields().iter().zip(places);
    let columns = columns.map(|(field, at)| to_type(batch.column(*at), field.data_type()));
    let columns: Vec<_> = columns.collect::<Result<_, _>>()?;
    // The sink has a better error for a row without a time.
    if batch.column(time).null_count() > 0 {
        let message = "a row has no time: the time column of the query is NULL";
        return Err(DataFusionError::External(Box::new(SqlError::invalid(
            "23502", message,
        ))));
    }
    Ok(RecordBatch::try_new(Arc::clone(table), columns)?)
}
