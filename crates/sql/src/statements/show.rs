//! The results of `SHOW`, as one batch.

use crate::dialect::statement::{ShowStatement, TableReferenceName};
use crate::error::{SqlError, SqlResult};
use crate::statements::compactions;
use crate::statements::session;
use crate::statements::show_reference;
use crate::statements::storage;
use crate::tables::batches::{batch, text, texts};
use crate::tables::written_settings::{settings, ttl};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use marigram_engine::{Engine, TableCompaction};
use marigram_functions::duration::format_ns;
use marigram_model::quoted;
use marigram_model::{
    ColumnCodec, ColumnId, Compressor, Encoding, FieldColumn, TableColumn, TableSchema,
};
use marigram_reference::ReferenceStore;
use marigram_service::{ServiceError, Session};
use std::sync::Arc;

/// Answers a `SHOW`.
///
/// # Errors
/// If what it names does not exist.
pub(crate) fn show(
    (engine, reference): (&Engine, &ReferenceStore),
    session: &Session,
    what: &ShowStatement,
) -> SqlResult<RecordBatch> {
    if let Some(shown) = show_reference::show(reference, session, what)? {
        return Ok(shown);
    }
    let database =
        |target: &TableReferenceName| target.database.clone().unwrap_or(session.database.clone());
    match what {
        ShowStatement::Databases => {
            let mut names = engine.databases();
            names.retain(|name| session.rights.see(name));
            texts(vec![("database_name", names)])
        }
        ShowStatement::Tables(database) => {
            let database = database.as_ref().unwrap_or(&session.database);
            let names = reference.tables(database).into_iter();
            let names = names.map(|table| table.name.clone());
            tables(&engine.tables(database)?, names)
        }
        ShowStatement::Columns(target) => {
            columns(&*engine.table(&database(target), &target.table)?)
        }
        ShowStatement::CreateTable(target) => {
            let schema = engine.table(&database(target), &target.table)?;
            let statement = create_table(&schema);
            texts(vec![
                ("table_name", vec![schema.name.clone()]),
                ("statement", vec![statement]),
            ])
        }
        ShowStatement::Segments(target) => {
            let schema = match target {
                Some(target) => Some(engine.table(&database(target), &target.table)?),
                None => None,
            };
            let mut all = engine.segments();
            if let Some(schema) = &schema {
                all.retain(|segment| segment.meta.tables.contains(&schema.id));
            }
            storage::segments(&all, schema.map(|schema| schema.id))
        }
        ShowStatement::Views(_) => {
            let reason = "the service shows materialized views";
            Err(ServiceError::Internal(reason.into()).into())
        }
        ShowStatement::Pages { .. } => {
            let reason = "the pages of a table are streamed, not shown at once";
            Err(ServiceError::Internal(reason.into()).into())
        }
        ShowStatement::Compactions => batch(compactions::shown(&engine.compactions())),
        ShowStatement::Variable(variable) => {
            batch(vec![(variable, text([session::get(session, variable)?]))])
        }
        ShowStatement::All => {
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

/// The result of a table's compaction.
///
/// # Errors
/// None that can occur.
pub(crate) fn compacted(done: &TableCompaction) -> SqlResult<RecordBatch> {
    batch(compactions::done(done))
}

/// Tables of series with their figures, and reference tables by name alone.
fn tables(
    tables: &[Arc<TableSchema>],
    reference: impl Iterator<Item = String>,
) -> SqlResult<RecordBatch> {
    let series = tables.iter().map(|table| (table.name.clone(), Some(table)));
    let mut rows: Vec<_> = series.chain(reference.map(|name| (name, None))).collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    let count = |count: fn(&TableSchema) -> usize| -> ArrayRef {
        let counts = rows.iter().map(|(_, table)| Some(count((*table)?) as i64));
        Arc::new(counts.collect::<Int64Array>())
    };
    let setting = |setting: fn(&TableSchema) -> String| -> ArrayRef {
        let settings = rows.iter().map(|(_, table)| Some(setting((*table)?)));
        Arc::new(settings.collect::<StringArray>())
    };
    batch(vec![
        (
            "table_name",
            text(rows.iter().map(|(name, _)| name.clone())),
        ),
        ("tags", count(|table| table.tags.len())),
        ("fields", count(|table| table.fields.len())),
        ("ttl", setting(ttl)),
        (
            "partition",
            setting(|table| format_ns(table.options.partition_ns)),
        ),
    ])
}

fn columns(schema: &TableSchema) -> SqlResult<RecordBatch> {
    let rows: Vec<ColumnDescription<'_>> = described_columns(schema).collect();
    let optional = |name: fn(&ColumnCodec) -> Option<&'static str>| -> ArrayRef {
        let names = rows.iter().map(|row| name(&row.effective_codec(schema)));
        Arc::new(names.collect::<StringArray>())
    };
    // Nullable, whatever the table's columns are.
    let fields = [
        Field::new("column_name", DataType::Utf8, false),
        Field::new("data_type", DataType::Utf8, false),
        Field::new("role", DataType::Utf8, false),
        Field::new("encoding", DataType::Utf8, true),
        Field::new("compression", DataType::Utf8, true),
    ];
    let columns = vec![
        text(rows.iter().map(|row| row.name.to_owned())),
        text(rows.iter().map(|row| row.kind.clone())),
        text(rows.iter().map(|row| row.role.to_owned())),
        optional(|codec| codec.encoding.map(Encoding::name)),
        optional(|codec| codec.compressor.map(Compressor::name)),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns)
        .map_err(|error| SqlError::DataFusion(error.into()))
}

/// The type of the time column as users write it.
fn time_type(schema: &TableSchema) -> &'static str {
    if schema.options.zoned.contains(&ColumnId::TIME) {
        "TIMESTAMPTZ"
    } else {
        "TIMESTAMP"
    }
}

/// The type of a field as users write it.
fn field_kind(schema: &TableSchema, field: &FieldColumn) -> String {
    if schema.options.zoned.contains(&field.id) {
        "TIMESTAMPTZ".to_owned()
    } else {
        field.kind.to_string()
    }
}

/// A column as users write it.
struct ColumnDescription<'a> {
    name: &'a str,
    kind: String,
    role: &'static str,
    /// The field, if it is one.
    field: Option<&'a FieldColumn>,
}

impl ColumnDescription<'_> {
    /// How its values are stored; a codec that is chosen automatically has no name.
    fn effective_codec(&self, schema: &TableSchema) -> ColumnCodec {
        self.field.map_or_else(ColumnCodec::default, |field| {
            schema.options.codec_of(field.kind, field.codec)
        })
    }
}

/// The columns of a table in their order.
fn described_columns(schema: &TableSchema) -> impl Iterator<Item = ColumnDescription<'_>> {
    schema.columns().filter_map(|column| {
        let field = match column {
            TableColumn::Field(id) => Some(schema.field_by_id(id)?),
            _ => None,
        };
        let (kind, role) = match (column, field) {
            (TableColumn::Tag(ordinal), _) => {
                let tag = schema.tags.get(usize::from(ordinal))?;
                (tag.kind.to_string(), "tag")
            }
            (_, Some(field)) => (field_kind(schema, field), "field"),
            (_, None) => (time_type(schema).to_owned(), "time"),
        };
        let name = schema.name_of(column)?;
        Some(ColumnDescription {
            name,
            kind,
            role,
            field,
        })
    })
}

/// The statement that would create a table.
fn create_table(schema: &TableSchema) -> String {
    let lines = described_columns(schema).map(|column| {
        let role = match column.role {
            "time" => String::new(),
            role => format!(" {}", role.to_uppercase()),
        };
        let codec = column.field.map(|field| written(field.codec));
        format!(
            "  {} {}{role}{}",
            quoted(column.name),
            column.kind,
            codec.unwrap_or_default()
        )
    });
    format!(
        "CREATE TABLE {} (\n{}\n) WITH ({})",
        quoted(&schema.name),
        lines.collect::<Vec<_>>().join(",\n"),
        settings(schema).join(", ")
    )
}

/// A field's codec as users write it after its role; empty if all is automatic.
fn written(codec: ColumnCodec) -> String {
    let encoding = codec
        .encoding
        .map(|name| format!(" ENCODING {}", name.name()));
    let compressor = codec
        .compressor
        .map(|name| format!(" COMPRESSION {}", name.name()));
    encoding.unwrap_or_default() + &compressor.unwrap_or_default()
}
