//! Executes the calls of TimescaleDB that change tables and views.
//!
//! Each becomes a change of the table's settings or of its columns' roles, a delete, or nothing:
//! a notice then says what Marigram does by itself.

mod jobs;
mod policies;

use crate::dialect::hypertable_functions::HypertableFunction as Function;
use crate::dialect::statement::HypertableCall;
use crate::dialect::timescale::arguments::CallArguments;
use crate::error::{SqlError, SqlResult};
use crate::statements::roles::{self, RoleRequest};
use crate::tables::table_partitions::{TablePartition, chosen, clock, partitions};
use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use marigram_engine::{Engine, TableChange, TagFilter};
use marigram_model::{TableOptions, TableSchema, TimeRange};
use std::sync::Arc;

/// The result of a call.
#[derive(Debug, Default)]
pub(crate) struct CallOutcome {
    /// Its rows, with the columns of [`fields`].
    pub rows: Vec<Vec<ScalarValue>>,
    /// What the client is told.
    pub notices: Vec<String>,
    /// A view to refresh before the call is answered.
    pub refresh: Option<Arc<TableSchema>>,
}

impl CallOutcome {
    /// One row.
    fn row(values: Vec<ScalarValue>) -> Self {
        Self {
            rows: vec![values],
            ..Self::default()
        }
    }

    /// What a function without a result returns.
    fn void() -> Self {
        Self::row(vec![text("")])
    }

    /// The number of a job.
    fn job(id: i32) -> Self {
        Self::row(vec![ScalarValue::Int32(Some(id))])
    }

    /// The same, with a notice.
    fn telling(mut self, notice: impl Into<String>) -> Self {
        self.notices.push(notice.into());
        self
    }
}

/// A text.
fn text(value: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(value.to_owned()))
}

/// The columns of a call's answer.
pub(crate) fn fields(call: &HypertableCall) -> Vec<Field> {
    let column = |name: &str, kind| Field::new(name, kind, true);
    let name = call.description.name;
    let table = [
        column("schema_name", DataType::Utf8),
        column("table_name", DataType::Utf8),
    ];
    let record = |id: &str, rest: &[Field]| {
        let id = column(id, DataType::Int32);
        let created = column("created", DataType::Boolean);
        let all = std::iter::once(id).chain(rest.iter().cloned());
        all.chain([created]).collect()
    };
    match call.description.function {
        Function::CreateHypertable if call.is_by_dimension => record("hypertable_id", &[]),
        Function::CreateHypertable => record("hypertable_id", &table),
        Function::AddDimension if call.is_by_dimension => record("dimension_id", &[]),
        Function::AddDimension => {
            let [schema, table] = table;
            record(
                "dimension_id",
                &[schema, table, column("column_name", DataType::Utf8)],
            )
        }
        Function::AlterJob => vec![
            column("job_id", DataType::Int32),
            column("schedule_interval", DataType::Utf8),
            column("scheduled", DataType::Boolean),
            column("config", DataType::Utf8),
        ],
        Function::AddRetention | Function::AddColumnstore | Function::AddRefresh => {
            vec![column(name, DataType::Int32)]
        }
        Function::Restore => vec![column(name, DataType::Boolean)],
        _ => vec![column(name, DataType::Utf8)],
    }
}

/// Where a call comes from.
#[derive(Debug)]
pub(crate) struct CallPlace {
    /// The session's database.
    pub database: String,
    /// The session's zone.
    pub time_zone: String,
}

/// Executes a call. Blocks.
///
/// # Errors
/// If what it names does not exist, its arguments are wrong, or the engine refuses.
pub(crate) fn execute(
    engine: &Engine,
    place: &CallPlace,
    call: &HypertableCall,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    let database = &*place.database;
    match call.description.function {
        Function::AlterJob => return jobs::alter(engine, database, arguments),
        Function::DeleteJob => return jobs::delete(engine, database, arguments),
        Function::RunJob => return jobs::run(engine, database, arguments),
        Function::Restore => {
            let notice = "a restore needs no preparation: COPY and INSERT store rows at any time";
            let done = CallOutcome::row(vec![ScalarValue::Boolean(Some(true))]);
            return Ok(done.telling(notice));
        }
        Function::ChunkStorage => {
            let chunk = arguments.text("chunk")?.unwrap_or_default();
            return Ok(CallOutcome::row(vec![text(&chunk)]).telling(STORED));
        }
        _ => {}
    }
    let Some(target) = &call.target else {
        let name = call.description.name;
        let message = format!("{name} needs the name of a table or view");
        return Err(SqlError::named("42883", name, message));
    };
    let database = target.database.as_deref().unwrap_or(database);
    let table = engine.table(database, &target.table)?;
    match call.description.function {
        Function::CreateHypertable => create(engine, &table, call, arguments),
        Function::AddDimension => add_dimension(engine, &table, call, arguments),
        Function::SetChunkInterval => {
            let width = arguments.partition_ns("chunk_time_interval")?;
            let width = width.or(arguments.partition_ns("partition_interval")?);
            set_partition(engine, &table, width)?;
            Ok(CallOutcome::void())
        }
        Function::AddRetention => policies::add_retention(engine, &table, arguments),
        Function::RemoveRetention => policies::remove_retention(engine, &table, arguments),
        Function::AddColumnstore => policies::add_columnstore(engine, &table, arguments),
        Function::RemoveColumnstore => policies::remove_columnstore(engine, &table, arguments),
        Function::AddRefresh => policies::add_refresh(engine, &table, arguments),
        Function::RemoveRefresh => policies::remove_refresh(&table),
        Function::Refresh => {
            policies::check_view(&table)?;
            Ok(CallOutcome {
                refresh: Some(table),
                ..CallOutcome::void()
            })
        }
        Function::DropChunks => drop_chunks(engine, &table, arguments, &place.time_zone),
        _ => Ok(CallOutcome::void().telling(table_storage(call.description.name))),
    }
}

/// What is true of every chunk.
const STORED: &str = "rows are always stored in columns and compressed, sorted by series and time; \
                      compaction does it, and COMPACT TABLE t does it now";

/// What is done without a statement.
fn table_storage(function: &str) -> &'static str {
    match function {
        "add_reorder_policy" | "remove_reorder_policy" => {
            "rows are always sorted by series and time; compaction keeps them so"
        }
        "set_number_partitions" => {
            "rows are divided by series among the shards, whose number `marigram serve --shards` sets"
        }
        _ => "statistics of pages always leave out what cannot match",
    }
}

/// The error for a view in the place of a table.
fn check_table(table: &TableSchema, function: &str) -> SqlResult<()> {
    if table.rollup.is_none() && table.view.is_none() {
        return Ok(());
    }
    let message = format!("'{}' is a view; {function} takes a table", table.name);
    Err(SqlError::named("42809", &table.name, message))
}

/// Sets the width of a table's partitions.
fn set_partition(engine: &Engine, table: &TableSchema, width: Option<i64>) -> SqlResult<()> {
    let Some(partition_ns) = width else {
        return Ok(());
    };
    set_options(engine, table, |options| options.partition_ns = partition_ns)
}

/// Changes the settings of a table.
fn set_options(
    engine: &Engine,
    table: &TableSchema,
    change: impl FnOnce(&mut TableOptions),
) -> SqlResult<()> {
    let mut options = table.options.clone();
    change(&mut options);
    if options != table.options {
        let change = TableChange::SetOptions(options);
        engine.alter_table(&table.database, &table.name, &change)?;
    }
    Ok(())
}

/// The number of a table, as TimescaleDB numbers hypertables.
fn number(table: &TableSchema) -> ScalarValue {
    ScalarValue::Int32(i32::try_from(table.id.0).ok())
}

fn refuse_functions(arguments: &CallArguments) -> SqlResult<()> {
    const REFUSED: [&str; 3] = [
        "partitioning_func",
        "time_partitioning_func",
        "chunk_sizing_func",
    ];
    match REFUSED.iter().find(|name| arguments.has(name)) {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("{name} is not supported: tables are divided by their time column");
            Err(SqlError::named("0A000", name, message))
        }
    }
}

/// `create_hypertable`: names the time column, and may name tags and the width of partitions.
fn create(
    engine: &Engine,
    table: &Arc<TableSchema>,
    call: &HypertableCall,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_table(table, "create_hypertable")?;
    refuse_functions(arguments)?;
    let time = arguments.text("time_column_name")?;
    let tags: Vec<String> = arguments.text("partitioning_column")?.into_iter().collect();
    if time.is_none() && tags.is_empty() {
        let message = "create_hypertable needs the name of the time column";
        return Err(SqlError::named("42883", "create_hypertable", message));
    }
    let width = arguments.partition_ns("chunk_time_interval")?;
    let request = RoleRequest {
        time: time.as_deref(),
        tags: &tags,
    };
    let table = roles::assign(engine, table, &request)?;
    set_partition(engine, &table, width)?;
    let created = ScalarValue::Boolean(Some(true));
    let mut outcome = CallOutcome::row(if call.is_by_dimension {
        vec![number(&table), created]
    } else {
        vec![number(&table), text("public"), text(&table.name), created]
    });
    if table.tags.is_empty() {
        outcome = outcome.telling(untagged(&table));
    }
    Ok(outcome)
}

/// What a client is told of a table that has no tags yet.
fn untagged(table: &TableSchema) -> String {
    format!(
        "'{name}' has no tags yet, so it keeps one row for each time; before the first row, say which \
         columns identify devices: CREATE INDEX ON {name} (device, {time} DESC), or ALTER TABLE {name} \
         SET (timescaledb.compress_segmentby = 'device')",
        name = table.name,
        time = table.time_name
    )
}

/// `add_dimension`: by hash of a column, which becomes a tag.
fn add_dimension(
    engine: &Engine,
    table: &Arc<TableSchema>,
    call: &HypertableCall,
    arguments: &CallArguments,
) -> SqlResult<CallOutcome> {
    check_table(table, "add_dimension")?;
    refuse_functions(arguments)?;
    let by_hash = match arguments.text("partitioning_column")? {
        Some(column) => Some(column),
        None if arguments.has("number_partitions") => arguments.text("column_name")?,
        None => None,
    };
    let tags: Vec<String> = by_hash.into_iter().collect();
    let request = RoleRequest {
        time: None,
        tags: &tags,
    };
    let table = roles::assign(engine, table, &request)?;
    let column = match tags.into_iter().next() {
        Some(tag) => tag,
        None => {
            let column = arguments.text("time_column_name")?;
            let column = column
                .or(arguments.text("column_name")?)
                .unwrap_or_default();
            if !table.has_column(&column) {
                let names = table.column_names();
                return Err(SqlError::unknown("42703", "column", &column, names));
            }
            column
        }
    };
    let created = ScalarValue::Boolean(Some(true));
    let outcome = CallOutcome::row(if call.is_by_dimension {
        vec![number(&table), created]
    } else {
        vec![
            number(&table),
            text("public"),
            text(&table.name),
            text(&column),
            created,
        ]
    });
    Ok(if table.tag(&column).is_some() {
        outcome
    } else {
        outcome.telling(format!(
            "tables are divided by their time alone; conditions on '{column}' use statistics of pages"
        ))
    })
}

/// `drop_chunks`: deletes the rows of whole partitions.
fn drop_chunks(
    engine: &Engine,
    table: &TableSchema,
    arguments: &CallArguments,
    time_zone: &str,
) -> SqlResult<CallOutcome> {
    if table.rollup.is_some() {
        let message = format!(
            "'{name}' is a materialized view: ALTER MATERIALIZED VIEW {name} SET (retention = '30d') \
             drops its old buckets",
            name = table.name
        );
        return Err(SqlError::named("0A000", &table.name, message));
    }
    check_table(table, "drop_chunks")?;
    let views = engine.tables(&table.database)?;
    let reads = |view: &&Arc<TableSchema>| {
        let rollup = view.rollup.as_ref();
        rollup.is_some_and(|rollup| rollup.source == table.id)
    };
    if let Some(view) = views.iter().find(reads) {
        let message = format!(
            "the buckets of '{view}' would be dropped with these rows; add_retention_policy('{table}', …) \
             drops rows and keeps buckets",
            view = view.name,
            table = table.name
        );
        return Err(SqlError::named("55000", &table.name, message));
    }
    let clock = clock(table, engine.now_ns(), time_zone)?;
    let dropped = chosen(partitions(engine, table)?, arguments, &clock, true)?;
    for range in joined(&dropped) {
        engine.delete(&table.database, &table.name, &TagFilter::All, range)?;
    }
    let rows = dropped
        .iter()
        .map(|partition| vec![text(&partition.qualified())]);
    Ok(CallOutcome {
        rows: rows.collect(),
        ..CallOutcome::default()
    })
}

/// The times of partitions, with neighbours in one range.
fn joined(partitions: &[TablePartition]) -> Vec<TimeRange> {
    let mut ranges: Vec<TimeRange> = Vec::new();
    for range in partitions.iter().map(TablePartition::range) {
        match ranges.last_mut() {
            Some(last) if last.max.saturating_add(1) >= range.min => {
                last.max = last.max.max(range.max);
            }
            _ => ranges.push(range),
        }
    }
    ranges
}
