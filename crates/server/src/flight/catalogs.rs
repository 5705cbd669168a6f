//! What `GetCatalogs`, `GetDbSchemas`, `GetTables`, `GetPrimaryKeys` and the like answer.
//!
//! A database is a catalog with the one schema `public`. Lists come from SQL in the client's own
//! session, so that they show what the client may read, and nothing else.

use super::call::FlightCall;
use super::fault::FlightFault;
use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTableTypes,
    CommandGetTables,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use marigram_access::DatabasePrivileges;
use marigram_service::{Answer, ROLE_KEY, RowStream, ServiceError, Session};
use std::sync::Arc;

/// The schema of every database.
const SCHEMA: &str = "public";

/// The kinds of tables.
const TABLE_TYPES: [&str; 2] = ["BASE TABLE", "VIEW"];

fn internal(error: FlightError) -> FlightFault {
    ServiceError::Internal(error.to_string()).into()
}

/// The rows of one batch.
pub(super) fn rows_of(batch: RecordBatch) -> RowStream {
    let schema = batch.schema();
    RowStream::new(schema, futures::stream::iter([Ok(batch)]).boxed())
}

/// The databases.
///
/// # Errors
/// If they cannot be listed.
pub(super) async fn catalogs(call: &FlightCall) -> Result<RowStream, FlightFault> {
    let mut builder = CommandGetCatalogs {}.into_builder();
    for name in databases(call).await? {
        builder.append(name);
    }
    Ok(rows_of(builder.build().map_err(internal)?))
}

/// The schemas of the databases.
///
/// # Errors
/// If the databases cannot be listed.
pub(super) async fn schemas(
    call: &FlightCall,
    asked: CommandGetDbSchemas,
) -> Result<RowStream, FlightFault> {
    let mut builder = asked.into_builder();
    for name in databases(call).await? {
        builder.append(name, SCHEMA);
    }
    Ok(rows_of(builder.build().map_err(internal)?))
}

/// The kinds of tables.
///
/// # Errors
/// Never for a client's fault.
pub(super) fn table_types() -> Result<RowStream, FlightFault> {
    let mut builder = CommandGetTableTypes {}.into_builder();
    for name in TABLE_TYPES {
        builder.append(name);
    }
    Ok(rows_of(builder.build().map_err(internal)?))
}

/// The columns of the answer to `GetTables`.
pub(super) fn tables_schema(asked: &CommandGetTables) -> SchemaRef {
    asked.clone().into_builder().schema()
}

/// The tables, database by database.
///
/// # Errors
/// If the databases cannot be listed.
pub(super) async fn tables(
    call: &FlightCall,
    asked: CommandGetTables,
) -> Result<RowStream, FlightFault> {
    let schema = tables_schema(&asked);
    let names = match asked.catalog.as_deref() {
        Some(name) if !name.is_empty() => {
            let all = databases(call).await?;
            all.into_iter().filter(|known| known == name).collect()
        }
        _ => databases(call).await?,
    };
    let mut sessions = Vec::with_capacity(names.len());
    for name in names {
        // A database may be dropped, or be closed to the client, at any time.
        if let Ok(session) = call.session(&name).await {
            sessions.push(session);
        }
    }
    let lister = Arc::new(TableLister {
        query: Arc::clone(&call.shared.server.services.query),
        asked,
    });
    let batches = futures::stream::iter(sessions)
        .then(move |session| {
            let lister = Arc::clone(&lister);
            async move { lister.tables_of(session).await }
        })
        .try_flatten();
    Ok(RowStream::new(schema, batches.boxed()))
}

struct TableLister {
    query: Arc<dyn marigram_service::Query>,
    asked: CommandGetTables,
}

type TableBatches = BoxStream<'static, marigram_service::Result<RecordBatch>>;

impl TableLister {
    /// The tables of a session's database.
    async fn tables_of(
        self: Arc<Self>,
        mut session: Session,
    ) -> marigram_service::Result<TableBatches> {
        const SQL: &str = "SELECT table_name, table_type FROM information_schema.tables \
                           WHERE table_schema = 'public' ORDER BY table_name";
        let Answer::Rows(rows) = self.query.execute(&mut session, SQL).await? else {
            return Ok(futures::stream::empty().boxed());
        };
        let listed = rows.batches.and_then(move |batch| {
            let (lister, session) = (Arc::clone(&self), session.clone());
            async move { lister.describe(&session, &batch).await }
        });
        Ok(listed.boxed())
    }

    /// Describes the tables that a batch names, as far as the client asked for them.
    async fn describe(
        &self,
        session: &Session,
        names: &RecordBatch,
    ) -> marigram_service::Result<RecordBatch> {
        let internal = |error: String| ServiceError::Internal(error);
        let names_and_kinds = text_columns(names).map_err(|fault| internal(fault.message))?;
        let mut builder = self.asked.clone().into_builder();
        let empty = Schema::empty();
        for (name, kind) in names_and_kinds {
            let schema = if self.asked.include_schema {
                let sql = format!("SELECT * FROM \"{}\"", name.replace('"', "\"\""));
                // The table may be dropped at any time.
                let prepared = self.query.prepare(session, &sql).await.ok();
                prepared.and_then(|prepared| prepared.schema())
            } else {
                None
            };
            let schema = schema.as_deref().unwrap_or(&empty);
            builder
                .append(&session.database, SCHEMA, name, kind, schema)
                .map_err(|error| internal(error.to_string()))?;
        }
        builder.build().map_err(|error| internal(error.to_string()))
    }
}

/// The first two columns of a batch, as texts.
fn text_columns(batch: &RecordBatch) -> Result<Vec<(String, String)>, FlightFault> {
    let column = |at: usize| {
        cast(batch.column(at), &DataType::Utf8)
            .map_err(|error| FlightFault::from(ServiceError::Internal(error.to_string())))
    };
    let (first, second) = (column(0)?, column(batch.num_columns() - 1)?);
    let (first, second) = (first.as_string::<i32>(), second.as_string::<i32>());
    let rows = (0..batch.num_rows()).filter(|row| first.is_valid(*row) && second.is_valid(*row));
    Ok(rows
        .map(|row| (first.value(row).to_owned(), second.value(row).to_owned()))
        .collect())
}

/// The databases that the client may see, by name.
async fn databases(call: &FlightCall) -> Result<Vec<String>, FlightFault> {
    const SQL: &str = "SELECT datname FROM pg_catalog.pg_database ORDER BY datname";
    let mut session = call.session("").await?;
    let query = &call.shared.server.services.query;
    let mut names = Vec::new();
    if let Answer::Rows(mut rows) = query.execute(&mut session, SQL).await? {
        while let Some(batch) = rows.batches.try_next().await? {
            names.extend(text_columns(&batch)?.into_iter().map(|(name, _)| name));
        }
    }
    Ok(names)
}

/// The columns of the answer to `GetPrimaryKeys`.
pub(super) fn primary_keys_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// The columns of the answers to `GetExportedKeys`, `GetImportedKeys` and `GetCrossReference`, which
/// have no rows: there are no foreign keys.
pub(super) fn foreign_keys_schema() -> SchemaRef {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

/// What identifies a row of a table: its tags and its time.
///
/// # Errors
/// If there is no such table, or the client may not read it.
pub(super) async fn primary_keys(
    call: &FlightCall,
    asked: CommandGetPrimaryKeys,
) -> Result<RowStream, FlightFault> {
    let session = call.session(&asked.catalog.unwrap_or_default()).await?;
    call.check_database(&session.database, DatabasePrivileges::READ)?;
    let ingest = &call.shared.server.services.ingest;
    let table = ingest.table_schema(&session.database, &asked.table).await?;
    let of_role = |role: &'static str| {
        let fields = table.fields().iter();
        let fields = fields.filter(move |field| {
            field
                .metadata()
                .get(ROLE_KEY)
                .is_some_and(|found| found == role)
        });
        fields.map(|field| field.name().clone())
    };
    let columns: Vec<String> = of_role("tag").chain(of_role("time")).collect();
    let same = |text: &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(columns.iter().map(|_| text)))
    };
    let arrays: Vec<ArrayRef> = vec![
        same(&session.database),
        same(SCHEMA),
        same(&asked.table),
        Arc::new(StringArray::from_iter_values(&columns)),
        same(&format!("{}_pkey", asked.table)),
        Arc::new(Int32Array::from_iter_values(1..=columns.len() as i32)),
    ];
    let batch = RecordBatch::try_new(primary_keys_schema(), arrays);
    let batch = batch.map_err(|error| ServiceError::Internal(error.to_string()))?;
    Ok(rows_of(batch))
}

/// Columns without rows.
pub(super) fn nothing(schema: SchemaRef) -> RowStream {
    RowStream::new(schema, futures::stream::empty().boxed())
}
