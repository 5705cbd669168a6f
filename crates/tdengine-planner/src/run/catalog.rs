//! What TDengine knows of tables and the engine does not: declared types, options of databases, and
//! sub-tables.
//!
//! Each database has a table `_tdengine` with the tags `kind` and `name` and the text `text`, one row for
//! each thing, at the time 0. A row of a table carries the number of the table of the engine, so that a
//! table that somebody else dropped leaves nothing behind.

pub(crate) mod objects;

use crate::run::catalog::objects::{ChildRecord, DatabaseRecord, StableRecord};
use crate::run::{TaosRun, fault_about};
use arrow::array::AsArray;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_engine::{Engine, TableSpec, TagFilter, WriteOptions};
use marigram_influx::scan_of;
use marigram_model::{
    BatchBuilder, FieldType, FieldValueRef, TableSchema, TagType, TagValue, TagValueRef, TimeRange,
};
use marigram_service::ServiceError;
use marigram_sql::{SqlError, SqlResult};
use marigram_tdengine::{TaosCode, TaosPrecision};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The table of a database that holds what the engine does not.
pub(crate) const META_TABLE: &str = "_tdengine";

/// The tag that holds the name of a sub-table.
pub(crate) const TBNAME: &str = "tbname";

/// The field of rows that have no value in any other: the engine stores no row without one.
pub(crate) const ROW_FIELD: &str = "_tdengine_row";

/// The kinds of rows.
pub(crate) const KIND_DATABASE: &str = "database";
pub(crate) const KIND_STABLE: &str = "stable";
pub(crate) const KIND_CHILD: &str = "table";

/// Objects that are remembered.
const CACHE_MAX: usize = 200_000;

/// What is known of tables, shared by all statements.
#[derive(Debug, Default)]
pub(crate) struct TaosCatalog {
    known: Mutex<RecordCache>,
    /// Held while definitions change.
    changes: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct RecordCache {
    /// Counts forgettings, so that what was read before one is not remembered after it.
    generation: u64,
    databases: HashMap<String, DatabaseRecord>,
    stables: HashMap<(String, String), Arc<StableRecord>>,
    children: HashMap<(String, String), Arc<ChildRecord>>,
}

/// A table of TDengine.
#[derive(Clone, Debug)]
pub(crate) enum TaosTable {
    /// A super table, or a table without sub-tables.
    Whole(Arc<StableRecord>),
    /// A sub-table of one.
    Child(Arc<StableRecord>, Arc<ChildRecord>),
}

impl TaosTable {
    /// The table of the engine and its declared columns.
    pub(crate) fn stable(&self) -> &Arc<StableRecord> {
        match self {
            Self::Whole(stable) | Self::Child(stable, _) => stable,
        }
    }
}

/// A lock, whatever happened to who held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TaosCatalog {
    /// Runs a change of definitions, and forgets what was known. Changes run one after the other.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        run: &TaosRun<'_>,
        work: impl FnOnce(&Engine) -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        let made = self.add(run, work).await;
        self.forget();
        made
    }

    /// Runs a change that only adds to what is known.
    pub(crate) async fn add<T: Send + 'static>(
        &self,
        run: &TaosRun<'_>,
        work: impl FnOnce(&Engine) -> SqlResult<T> + Send + 'static,
    ) -> SqlResult<T> {
        let engine = run.engine().clone();
        let changes = Arc::clone(&self.changes);
        run.context
            .commit(move || {
                let _alone = lock(&changes);
                work(&engine)
            })
            .await
    }

    /// Forgets everything.
    pub(crate) fn forget(&self) {
        let mut known = lock(&self.known);
        known.generation += 1;
        known.databases.clear();
        known.stables.clear();
        known.children.clear();
    }

    /// Remembers a sub-table that was just stored.
    pub(crate) fn remember_child(&self, database: &str, name: &str, child: ChildRecord) {
        let mut known = lock(&self.known);
        if known.children.len() >= CACHE_MAX {
            known.children.clear();
        }
        let key = (database.to_owned(), name.to_owned());
        known.children.insert(key, Arc::new(child));
    }

    /// The options of a database.
    pub(crate) async fn database(
        &self,
        run: &TaosRun<'_>,
        database: &str,
    ) -> SqlResult<DatabaseRecord> {
        let generation = {
            let known = lock(&self.known);
            if let Some(record) = known.databases.get(database) {
                return Ok(record.clone());
            }
            known.generation
        };
        let text = read_one(run, database, KIND_DATABASE, database).await?;
        let record = text.map_or_else(DatabaseRecord::default, |text| DatabaseRecord::read(&text));
        let mut known = lock(&self.known);
        if known.generation == generation {
            known.databases.insert(database.to_owned(), record.clone());
        }
        Ok(record)
    }

    /// The precision of a database.
    pub(crate) async fn precision(
        &self,
        run: &TaosRun<'_>,
        database: &str,
    ) -> SqlResult<TaosPrecision> {
        Ok(self.database(run, database).await?.precision())
    }

    /// A super table or a table without sub-tables; `None` if the engine has no such table.
    pub(crate) async fn stable(
        &self,
        run: &TaosRun<'_>,
        database: &str,
        name: &str,
    ) -> SqlResult<Option<Arc<StableRecord>>> {
        let Some(table) = readable(run, database, name) else {
            return Ok(None);
        };
        let key = (database.to_owned(), name.to_owned());
        let generation = {
            let known = lock(&self.known);
            if let Some(record) = known.stables.get(&key)
                && (Arc::ptr_eq(&record.table, &table) || *record.table == *table)
            {
                return Ok(Some(Arc::clone(record)));
            }
            known.generation
        };
        let text = read_one(run, database, KIND_STABLE, name).await?;
        let record = Arc::new(StableRecord::read(text.as_deref(), table));
        let mut known = lock(&self.known);
        if known.generation == generation {
            if known.stables.len() >= CACHE_MAX {
                known.stables.clear();
            }
            known.stables.insert(key, Arc::clone(&record));
        }
        Ok(Some(record))
    }

    /// A sub-table; `None` if there is no such one.
    pub(crate) async fn child(
        &self,
        run: &TaosRun<'_>,
        database: &str,
        name: &str,
    ) -> SqlResult<Option<(Arc<StableRecord>, Arc<ChildRecord>)>> {
        let key = (database.to_owned(), name.to_owned());
        let (held, generation) = {
            let known = lock(&self.known);
            (known.children.get(&key).cloned(), known.generation)
        };
        let record = match held {
            Some(record) => record,
            None => {
                let Some(text) = read_one(run, database, KIND_CHILD, name).await? else {
                    return Ok(None);
                };
                let Some(record) = ChildRecord::read(&text) else {
                    return Ok(None);
                };
                let record = Arc::new(record);
                let mut known = lock(&self.known);
                if known.generation == generation {
                    if known.children.len() >= CACHE_MAX {
                        known.children.clear();
                    }
                    known.children.insert(key, Arc::clone(&record));
                }
                record
            }
        };
        let stable = self.stable(run, database, &record.stable).await?;
        let stable = stable.filter(|stable| stable.table.id.0 == record.table_id);
        Ok(stable.map(|stable| (stable, record)))
    }

    /// The table of a name.
    pub(crate) async fn find(
        &self,
        run: &TaosRun<'_>,
        database: &str,
        name: &str,
    ) -> SqlResult<Option<TaosTable>> {
        if name == META_TABLE {
            return Ok(None);
        }
        if let Some(stable) = self.stable(run, database, name).await? {
            return Ok(Some(TaosTable::Whole(stable)));
        }
        let child = self.child(run, database, name).await?;
        Ok(child.map(|(stable, child)| TaosTable::Child(stable, child)))
    }

    /// The table of a name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn table(
        &self,
        run: &TaosRun<'_>,
        database: &str,
        name: &str,
    ) -> SqlResult<TaosTable> {
        let found = self.find(run, database, name).await?;
        found.ok_or_else(|| fault_about(TaosCode::NoSuchTable, name))
    }
}

/// A table of the engine that can be read, with the columns that it shows.
fn readable(run: &TaosRun<'_>, database: &str, name: &str) -> Option<Arc<TableSchema>> {
    marigram_influx::readable_table(run.engine(), &run.views, database, name)
}

async fn read_one(
    run: &TaosRun<'_>,
    database: &str,
    kind: &str,
    name: &str,
) -> SqlResult<Option<String>> {
    let mut found = None;
    let named = Expr::Column(Column::from_name("name")).eq(lit(name));
    read(run, database, (kind, Some(named)), |_, text| {
        found = Some(text.to_owned());
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Calls `visit` with the name and text of each row of a kind.
///
/// # Errors
/// Those of `visit`, and of reading.
pub(crate) async fn read(
    run: &TaosRun<'_>,
    database: &str,
    (kind, condition): (&str, Option<Expr>),
    mut visit: impl FnMut(&str, &str) -> SqlResult<()>,
) -> SqlResult<()> {
    let Ok(table) = run.engine().table(database, META_TABLE) else {
        return Ok(());
    };
    let state = run.state(database)?;
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let mut filter = column("kind").eq(lit(kind));
    if let Some(condition) = condition {
        filter = filter.and(condition);
    }
    let utf8 = |name: &str| {
        let text = datafusion::logical_expr::cast(column(name), arrow::datatypes::DataType::Utf8);
        text.alias(format!("_{name}"))
    };
    let plan = scan_of(&state, &table).await?.filter(filter)?;
    let plan = plan.project(vec![utf8("name"), utf8("text")])?.build()?;
    let plan = state.create_physical_plan(&plan).await?;
    let mut rows = execute_stream(plan, state.task_ctx())?;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        run.budget.check_interrupt()?;
        let names = batch.column(0).as_string::<i32>();
        let texts = batch.column(1).as_string::<i32>();
        for (name, text) in names.iter().zip(texts) {
            if let (Some(name), Some(text)) = (name, text) {
                visit(name, text)?;
            }
        }
    }
    Ok(())
}

/// Stores rows of a kind: names and texts.
///
/// # Errors
/// The engine's.
pub(crate) fn put(
    engine: &Engine,
    database: &str,
    kind: &str,
    rows: &[(String, String)],
) -> SqlResult<()> {
    let spec = TableSpec {
        name: META_TABLE.to_owned(),
        tags: vec![
            ("kind".to_owned(), TagType::String),
            ("name".to_owned(), TagType::String),
        ],
        fields: vec![("text".to_owned(), FieldType::String)],
        ..TableSpec::default()
    };
    engine.create_table(database, &spec, true)?;
    let mut batch = BatchBuilder::new(META_TABLE);
    for (name, text) in rows {
        let slot = batch.slot([
            ("kind", TagValueRef::String(kind)),
            ("name", TagValueRef::String(name)),
        ]);
        batch.row(slot, 0);
        batch.field("text", FieldValueRef::String(text));
    }
    write(engine, database, batch)
}

/// Writes a batch.
///
/// # Errors
/// The engine's, and why it rejected the first row.
pub(crate) fn write(engine: &Engine, database: &str, batch: BatchBuilder) -> SqlResult<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let report = engine.write(database, &batch.finish(), WriteOptions { grow: false })?;
    match report.rejected.into_iter().next() {
        None => Ok(()),
        Some(row) => Err(SqlError::Service(ServiceError::Invalid {
            message: row.reason,
            position: None,
            sqlstate: TaosCode::InvalidParameter.sqlstate(),
        })),
    }
}

/// Removes a row of a kind.
///
/// # Errors
/// The engine's.
pub(crate) fn remove(engine: &Engine, database: &str, kind: &str, name: &str) -> SqlResult<()> {
    if engine.table(database, META_TABLE).is_err() {
        return Ok(());
    }
    let is = |tag, text: &str| TagFilter::In(tag, vec![TagValue::String(text.to_owned())]);
    let filter = TagFilter::And(vec![is(0, kind), is(1, name)]);
    engine.delete(database, META_TABLE, &filter, TimeRange::ALL)?;
    Ok(())
}
