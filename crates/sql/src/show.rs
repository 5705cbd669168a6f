//! What `SHOW` answers, as one batch.

use crate::compactions;
use crate::duration::format_ns;
use crate::error::{SqlError, SqlResult};
use crate::session;
use crate::statement::{Show, Target};
use crate::types::time_data_type;
use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampNanosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use marigram_engine::{Engine, SegmentInfo, TableCompaction};
use marigram_model::TableSchema;
use marigram_service::Session;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Answers a `SHOW`.
///
/// # Errors
/// If what it names does not exist.
pub fn show(engine: &Engine, session: &Session, what: &Show) -> SqlResult<RecordBatch> {
    let database = |target: &Target| target.database.clone().unwrap_or(session.database.clone());
    match what {
        Show::Databases => texts(vec![("database_name", engine.databases())]),
        Show::Tables(database) => {
            tables(&engine.tables(database.as_ref().unwrap_or(&session.database))?)
        }
        Show::Columns(target) => columns(&*engine.table(&database(target), &target.table)?),
        Show::CreateTable(target) => {
            let schema = engine.table(&database(target), &target.table)?;
            let statement = create_table(&schema);
            texts(vec![
                ("table_name", vec![schema.name.clone()]),
                ("statement", vec![statement]),
            ])
        }
        Show::Segments(target) => {
            let schema = match target {
                Some(target) => Some(engine.table(&database(target), &target.table)?),
                None => None,
            };
            let mut all = engine.segments();
            if let Some(schema) = schema {
                all.retain(|segment| segment.meta.tables.contains(&schema.id));
            }
            segments(&all)
        }
        Show::Compactions => batch(compactions::shown(&engine.compactions())),
        Show::Variable(variable) => {
            batch(vec![(variable, text([session::get(session, variable)?]))])
        }
        Show::All => {
            let all = session::all(session);
            texts(vec![
                (
                    "name",
                    all.iter().map(|(name, _)| (*name).to_owned()).collect(),
                ),
                ("setting", all.into_iter().map(|(_, value)| value).collect()),
            ])
        }
    }
}

/// What the compaction of a table did.
///
/// # Errors
/// None that can occur.
pub fn compacted(done: &TableCompaction) -> SqlResult<RecordBatch> {
    batch(compactions::done(done))
}

fn text(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn texts(columns: Vec<(&str, Vec<String>)>) -> SqlResult<RecordBatch> {
    batch(
        columns
            .into_iter()
            .map(|(name, values)| (name, text(values)))
            .collect(),
    )
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> SqlResult<RecordBatch> {
    let fields = columns.iter().map(|(name, values)| {
        Field::new(*name, values.data_type().clone(), values.null_count() > 0)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(
        schema,
        columns.into_iter().map(|(_, values)| values).collect(),
    )
    .map_err(|error| SqlError::DataFusion(error.into()))
}

fn tables(tables: &[Arc<TableSchema>]) -> SqlResult<RecordBatch> {
    let count = |count: fn(&TableSchema) -> usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            tables.iter().map(|table| count(table) as i64),
        ))
    };
    batch(vec![
        (
            "table_name",
            text(tables.iter().map(|table| table.name.clone())),
        ),
        ("tags", count(|table| table.tags.len())),
        ("fields", count(|table| table.fields.len())),
        ("ttl", text(tables.iter().map(|table| ttl(table)))),
        (
            "partition",
            text(
                tables
                    .iter()
                    .map(|table| format_ns(table.options.partition_ns)),
            ),
        ),
    ])
}

fn ttl(table: &TableSchema) -> String {
    table
        .options
        .ttl_ns
        .map_or_else(|| "none".to_owned(), format_ns)
}

fn columns(schema: &TableSchema) -> SqlResult<RecordBatch> {
    let mut rows = vec![(schema.time_name.clone(), "TIMESTAMP".to_owned(), "time")];
    rows.extend(
        schema
            .tags
            .iter()
            .map(|tag| (tag.name.clone(), tag.kind.to_string(), "tag")),
    );
    let fields = schema.fields.iter();
    rows.extend(fields.map(|field| (field.name.clone(), field.kind.to_string(), "field")));
    texts(vec![
        (
            "column_name",
            rows.iter().map(|row| row.0.clone()).collect(),
        ),
        ("data_type", rows.iter().map(|row| row.1.clone()).collect()),
        ("role", rows.iter().map(|row| row.2.to_owned()).collect()),
    ])
}

/// The statement that would create a table.
fn create_table(schema: &TableSchema) -> String {
    let mut lines = vec![format!("  {} TIMESTAMP", quoted(&schema.time_name))];
    let tags = schema.tags.iter();
    lines.extend(tags.map(|tag| format!("  {} {} TAG", quoted(&tag.name), tag.kind)));
    let fields = schema.fields.iter();
    lines.extend(fields.map(|field| format!("  {} {} FIELD", quoted(&field.name), field.kind)));
    let mut statement = format!(
        "CREATE TABLE {} (\n{}\n)",
        quoted(&schema.name),
        lines.join(",\n")
    );
    let _ = write!(
        statement,
        " WITH (ttl = '{}', partition = '{}')",
        ttl(schema),
        format_ns(schema.options.partition_ns)
    );
    statement
}

/// A name as it must be written: plain where it may be, otherwise in quotes.
fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn segments(all: &[SegmentInfo]) -> SqlResult<RecordBatch> {
    let times = |time: fn(&SegmentInfo) -> i64| -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from_iter_values(
            all.iter().map(time),
        ))
    };
    let counts = |count: fn(&SegmentInfo) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(all.iter().map(count)))
    };
    let file = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let space = |segment: &SegmentInfo| format!("{:?}", segment.meta.space).to_lowercase();
    let made = batch(vec![
        ("shard", counts(|segment| segment.shard as u64)),
        (
            "file",
            text(
                all.iter()
                    .map(|segment| file(&segment.path).unwrap_or_default()),
            ),
        ),
        ("space", text(all.iter().map(space))),
        ("level", counts(|segment| u64::from(segment.meta.level))),
        (
            "partition",
            times(|segment| segment.meta.partition.start_ns),
        ),
        ("first_time", times(|segment| segment.meta.range.min)),
        ("last_time", times(|segment| segment.meta.range.max)),
        ("rows", counts(|segment| segment.meta.rows)),
        ("bytes", counts(|segment| segment.meta.bytes)),
        ("tables", counts(|segment| segment.meta.tables.len() as u64)),
    ])?;
    debug_assert_eq!(*made.schema().field(4).data_type(), time_data_type());
    debug_assert_eq!(*made.schema().field(7).data_type(), DataType::UInt64);
    Ok(made)
}
