//! Databases and tables in memory, and their changes, which are first durable and then visible.
//!
//! One lock orders all changes, so that many writers may grow a schema at the same time: each
//! checks again under the lock, and adds only what is still missing. Readers get the current schema
//! by name.

use crate::error::{EngineError, Result};
use crate::health::EngineHealth;
use marigram_env::LogStore;
use marigram_manifest::{
    Catalog, CatalogEdit, LogProof, ManifestError, WitnessFile, WitnessOwner, Witnessed,
};
use marigram_model::nearest;
use marigram_model::{
    ColumnCodec, ColumnId, FieldColumn, FieldType, Limits, RetentionPolicies, Rollup,
    RollupProgress, SchemaError, TableColumn, TableId, TableOptions, TableSchema, TagColumn,
    TagType, View,
};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A table to create.
#[derive(Clone, Debug, Default)]
pub struct TableSpec {
    /// Name.
    pub name: String,
    /// Name of the time column; `time` by default.
    pub time_name: Option<String>,
    /// Tags in the order of their ordinals.
    pub tags: Vec<(String, TagType)>,
    /// Fields.
    pub fields: Vec<(String, FieldType)>,
    /// All columns by name in the order in which they are declared; empty for time, tags, fields.
    pub declared: Vec<String>,
    /// How the values of fields are stored, by field name; chosen by content for the others.
    pub codecs: BTreeMap<String, ColumnCodec>,
    /// Settings.
    pub options: TableOptions,
    /// Its source, if it is a rollup.
    pub rollup: Option<Rollup>,
    /// Its query, if it is a view.
    pub view: Option<View>,
}

/// A change of a table.
#[derive(Clone, Debug)]
pub enum TableChange {
    /// Adds a tag, after all other columns. It is null in existing series.
    AddTag(String, TagType),
    /// Adds a field. Existing rows have no value for it.
    AddField(String, FieldType),
    /// Sets the codec of a field. Existing pages keep theirs until they are compacted.
    SetCodec(String, ColumnCodec),
    /// Replaces the settings, from the next flush on. Rows in segments keep their partitions, and
    /// keep their pages until they are compacted. The identity of series stays the same.
    SetOptions(TableOptions),
    /// Sets how often a rollup is refreshed, and how far it stays behind; both in ns.
    SetRefresh(i64, i64),
    /// Renames the table. The rows stay in place: they refer to their table by number.
    Rename(String),
    /// Renames a column, from the first name to the second.
    RenameColumn(String, String),
    /// Drops a field. Its values are no longer read, and the next compaction removes them.
    DropField(String),
    /// Replaces the query of a view.
    SetView(View),
}

/// Columns that were missing for a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaGrowth {
    pub tags: Vec<(String, TagType)>,
    pub fields: Vec<(String, FieldType)>,
}

/// The catalog on disk and in memory.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    durable: Mutex<Catalog>,
    /// Set when the directory has its lineage.
    witness: OnceLock<Arc<Mutex<WitnessFile>>>,
    health: Arc<EngineHealth>,
    visible: RwLock<VisibleCatalog>,
}

#[derive(Debug, Default)]
struct VisibleCatalog {
    databases: BTreeMap<String, BTreeMap<String, Arc<TableSchema>>>,
    /// By database, where they are not the usual ones.
    policies: BTreeMap<String, Arc<RetentionPolicies>>,
    by_id: HashMap<TableId, Arc<TableSchema>>,
    /// The plain views in `by_id`.
    views: BTreeMap<TableId, Arc<TableSchema>>,
}

impl LiveCatalog {
    /// Opens the catalog of a data directory if `proof` confirms it; creates it only if it need not
    /// exist.
    pub fn open(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        proof: &LogProof,
        health: Arc<EngineHealth>,
    ) -> Result<Self> {
        let catalog = Catalog::open_proved(fs, dir, proof)?;
        if let Some(torn) = catalog.torn_tail() {
            tracing::warn!(
                ?torn,
                "the catalog ended in a change that was never acknowledged"
            );
        }
        let visible = RwLock::new(VisibleCatalog::from_catalog(&catalog));
        Ok(Self {
            durable: Mutex::new(catalog),
            witness: OnceLock::new(),
            health,
            visible,
        })
    }

    /// Writes down from here on, in the directory's witness, how far the catalog is durable. Returns
    /// the witness, in which the shards record their extents too.
    pub fn witness(
        &self,
        fs: Arc<dyn LogStore>,
        dir: &Path,
        lineage: u64,
    ) -> Result<Arc<Mutex<WitnessFile>>> {
        let catalog = self.durable.lock();
        let known = Witnessed {
            log: Some(catalog.extent()),
            ..Witnessed::default()
        };
        let of = WitnessOwner {
            lineage,
            shard: None,
        };
        let witness = Arc::new(Mutex::new(WitnessFile::open(fs, dir, of, known)?));
        Ok(self.witness.get_or_init(|| witness).clone())
    }

    /// Highest id that any table ever had.
    pub fn table_max(&self) -> u32 {
        self.durable.lock().state().table_max
    }

    /// Blocks every change until the guard is dropped.
    pub fn hold(&self) -> MutexGuard<'_, Catalog> {
        self.durable.lock()
    }

    /// The names of the databases, ascending.
    pub fn databases(&self) -> Vec<String> {
        self.visible.read().databases.keys().cloned().collect()
    }

    /// The tables of a database by name.
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<TableSchema>>> {
        Ok(self
            .visible
            .read()
            .database(database)?
            .values()
            .cloned()
            .collect())
    }

    /// The retention policies of a database.
    pub fn retention_policies(&self, database: &str) -> Result<Arc<RetentionPolicies>> {
        let visible = self.visible.read();
        visible.database(database)?;
        Ok(visible.policies.get(database).cloned().unwrap_or_default())
    }

    /// Changes the retention policies of a database as `change` says.
    pub fn change_retention_policies<E: From<EngineError>>(
        &self,
        database: &str,
        change: impl FnOnce(&mut RetentionPolicies) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut catalog = self.durable.lock();
        let before = self.retention_policies(database)?;
        let mut policies = RetentionPolicies::clone(&before);
        change(&mut policies)?;
        if policies == *before {
            return Ok(());
        }
        let (count, max) = (policies.policies.len(), Limits::RETENTION_POLICIES_MAX);
        if count > max && count > before.policies.len() {
            let reason = format!("a database has at most {max}");
            return Err(EngineError::from(SchemaError::RetentionPolicies { reason }).into());
        }
        policies.check().map_err(EngineError::from)?;
        let edit = CatalogEdit::PutPolicies(database.to_owned(), Arc::new(policies));
        Ok(self.commit(&mut catalog, &edit)?)
    }

    /// The records of users and tokens, by key.
    pub fn access_records(&self) -> BTreeMap<String, Arc<[u8]>> {
        self.durable.lock().state().access.clone()
    }

    /// Puts and removes records of users and tokens, all of them or none.
    pub fn put_access(&self, records: Vec<(String, Option<Arc<[u8]>>)>) -> Result<()> {
        self.commit(&mut self.durable.lock(), &CatalogEdit::PutAccess(records))
    }

    /// The form in which a table that is made for its first rows begins.
    pub fn blank(&self, database: &str, name: &str, id: TableId) -> TableSchema {
        let policies = self.retention_policies(database).unwrap_or_default();
        let mut schema = blank(database, name, id);
        if let Some((policy, _)) = policies.locate(name) {
            schema.options = policy.table_options(schema.options);
        }
        schema
    }

    /// Every table by id.
    pub fn all(&self) -> HashMap<TableId, Arc<TableSchema>> {
        self.visible.read().by_id.clone()
    }

    /// All plain views, ascending by id.
    pub fn views(&self) -> Vec<Arc<TableSchema>> {
        self.visible.read().views.values().cloned().collect()
    }

    /// A table by id, if it exists.
    pub fn by_id(&self, id: TableId) -> Option<Arc<TableSchema>> {
        self.visible.read().by_id.get(&id).cloned()
    }

    /// A table by name.
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<TableSchema>> {
        self.visible.read().table(database, name).cloned()
    }

    /// A table by name, if the database has it.
    pub fn find(&self, database: &str, name: &str) -> Result<Option<Arc<TableSchema>>> {
        Ok(self.visible.read().database(database)?.get(name).cloned())
    }

    /// Creates a database.
    pub fn create_database(&self, name: &str, if_not_exists: bool) -> Result<()> {
        Limits::check_name("database", name)?;
        let mut catalog = self.durable.lock();
        if self.visible.read().databases.contains_key(name) {
            if if_not_exists {
                return Ok(());
            }
            return Err(EngineError::AlreadyExists {
                kind: "database",
                name: name.to_owned(),
            });
        }
        self.commit(&mut catalog, &CatalogEdit::CreateDatabase(name.to_owned()))
    }

    /// Removes a database; returns its tables, whose rows must be dropped.
    pub fn drop_database(&self, name: &str, if_exists: bool) -> Result<Vec<TableId>> {
        let mut catalog = self.durable.lock();
        let tables: Vec<TableId> = match self.visible.read().database(name) {
            Ok(tables) => tables.values().map(|table| table.id).collect(),
            Err(_) if if_exists => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        self.commit(&mut catalog, &CatalogEdit::DropDatabase(name.to_owned()))?;
        Ok(tables)
    }

    /// Creates a table.
    pub fn create_table(
        &self,
        database: &str,
        spec: &TableSpec,
        if_not_exists: bool,
    ) -> Result<Arc<TableSchema>> {
        let mut catalog = self.durable.lock();
        if let Some(table) = self.find(database, &spec.name)? {
            if if_not_exists {
                return Ok(table);
            }
            return Err(EngineError::AlreadyExists {
                kind: "table",
                name: spec.name.clone(),
            });
        }
        let mut schema = TableSchema {
            id: catalog.next_table(),
            database: database.to_owned(),
            name: spec.name.clone(),
            time_name: spec.time_name.clone().unwrap_or_else(|| "time".to_owned()),
            tags: Vec::new(),
            fields: Vec::new(),
            options: spec.options.clone(),
            rollup: spec.rollup.clone().map(Arc::new),
            view: spec.view.clone().map(Arc::new),
            dropped_max: 0,
            declared: Vec::new(),
        };
        for (name, kind) in &spec.tags {
            schema.tags.push(TagColumn {
                name: name.clone(),
                kind: *kind,
            });
        }
        for (name, kind) in &spec.fields {
            push_field(&mut schema, name, *kind);
        }
        for (name, codec) in &spec.codecs {
            field_mut(&mut schema, name)?.codec = *codec;
        }
        schema.declared = declared(&schema, &spec.declared)?;
        self.put(&mut catalog, schema)
    }

    /// Changes a table.
    pub fn alter_table(
        &self,
        database: &str,
        name: &str,
        change: &TableChange,
    ) -> Result<Arc<TableSchema>> {
        let mut catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        match change {
            TableChange::AddTag(..)
            | TableChange::AddField(..)
            | TableChange::RenameColumn(..)
            | TableChange::DropField(..)
                if schema.rollup.is_some() || schema.view.is_some() =>
            {
                return Err(is_kept(&schema));
            }
            TableChange::SetCodec(..) | TableChange::SetOptions(..) if schema.view.is_some() => {
                return Err(is_kept(&schema));
            }
            TableChange::AddTag(column, _) | TableChange::AddField(column, _)
                if schema.has_column(column) =>
            {
                return Err(EngineError::AlreadyExists {
                    kind: "column",
                    name: column.clone(),
                });
            }
            TableChange::AddTag(column, kind) => {
                if schema.declared.is_empty() {
                    schema.declared = schema.columns_by_role().collect();
                }
                push_tag(&mut schema, column, *kind);
            }
            TableChange::AddField(column, kind) => push_field(&mut schema, column, *kind),
            TableChange::SetCodec(column, codec) => {
                field_mut(&mut schema, column)?.codec = *codec;
            }
            TableChange::SetOptions(options) => {
                if options.identity != schema.options.identity {
                    return Err(EngineError::Invalid(format!(
                        "table '{name}': series_identity is fixed when a table is created"
                    )));
                }
                schema.options = options.clone();
            }
            TableChange::SetRefresh(refresh_ns, lag_ns) => {
                let Some(rollup) = &schema.rollup else {
                    return Err(EngineError::Invalid(format!(
                        "table '{name}' is not a materialized view"
                    )));
                };
                schema.rollup = Some(Arc::new(Rollup {
                    refresh_ns: *refresh_ns,
                    lag_ns: *lag_ns,
                    ..Rollup::clone(rollup)
                }));
            }
            TableChange::Rename(to) => {
                let what = format!("table '{name}' by this name");
                not_needed(&catalog, &schema, None, what)?;
                if self.find(database, to)?.is_some() {
                    return Err(EngineError::AlreadyExists {
                        kind: "table",
                        name: to.clone(),
                    });
                }
                schema.name.clone_from(to);
            }
            TableChange::RenameColumn(from, to) => {
                let what = format!("column '{from}' of table '{name}' by this name");
                rename_column(&mut schema, from, to)?;
                not_needed(&catalog, &schema, Some(from), what)?;
            }
            TableChange::DropField(column) => {
                let id = field_mut(&mut schema, column)?.id;
                let what = format!("column '{column}' of table '{name}'");
                not_needed(&catalog, &schema, Some(column), what)?;
                schema.fields.retain(|field| field.id != id);
                schema
                    .declared
                    .retain(|column| *column != TableColumn::Field(id));
                schema.dropped_max = schema.dropped_max.max(id.0);
            }
            TableChange::SetView(view) => {
                if schema.view.is_none() {
                    return Err(EngineError::Invalid(format!("'{name}' is not a view")));
                }
                schema.view = Some(Arc::new(view.clone()));
            }
        }
        self.put(&mut catalog, schema)
    }

    /// Sets aside a number for the values of a field in another type. Recovery takes it for that of
    /// a dropped field until [`finish_retype`](Self::finish_retype) gives it to the field.
    pub fn begin_retype(&self, database: &str, name: &str, column: &str) -> Result<ColumnId> {
        let mut catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        retypable(&catalog, &mut schema, column)?;
        let id = schema.next_column();
        schema.dropped_max = id.0;
        self.put(&mut catalog, schema)?;
        Ok(id)
    }

    /// Checks whether a field may get another type; returns it.
    pub fn check_retype(&self, database: &str, name: &str, column: &str) -> Result<FieldColumn> {
        let catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        retypable(&catalog, &mut schema, column).map(|field| field.clone())
    }

    /// Puts a field with another type in the place of the one of its name.
    pub fn finish_retype(
        &self,
        database: &str,
        name: &str,
        field: FieldColumn,
        is_zoned: bool,
    ) -> Result<Arc<TableSchema>> {
        let mut catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        let id = field.id;
        let before = field_mut(&mut schema, &field.name)?;
        let replaced = std::mem::replace(before, field);
        let (was, is) = (TableColumn::Field(replaced.id), TableColumn::Field(id));
        if let Some(place) = schema.declared.iter_mut().find(|place| **place == was) {
            *place = is;
        }
        schema.options.zoned.retain(|zoned| *zoned != replaced.id);
        if is_zoned {
            schema.options.zoned.push(id);
            schema.options.zoned.sort_unstable();
        }
        self.put(&mut catalog, schema)
    }

    /// Adds what is still missing of `growth` to a table, which is created if it does not exist.
    pub fn grow(
        &self,
        database: &str,
        name: &str,
        growth: &SchemaGrowth,
    ) -> Result<Arc<TableSchema>> {
        let mut catalog = self.durable.lock();
        let existing = self.find(database, name)?;
        let mut schema = match &existing {
            Some(schema) => TableSchema::clone(schema),
            None => self.blank(database, name, catalog.next_table()),
        };
        for (column, kind) in &growth.tags {
            if !schema.has_column(column) {
                push_tag(&mut schema, column, *kind);
            }
        }
        for (column, kind) in &growth.fields {
            if !schema.has_column(column) {
                push_field(&mut schema, column, *kind);
            }
        }
        if schema.view.is_some() {
            return Err(is_kept(&schema));
        }
        match existing {
            Some(existing) if *existing == schema => Ok(existing),
            _ => self.put(&mut catalog, schema),
        }
    }

    /// Removes a table; returns `None` if there is none and `if_exists` is set.
    pub fn drop_table(
        &self,
        database: &str,
        name: &str,
        if_exists: bool,
    ) -> Result<Option<TableId>> {
        let mut catalog = self.durable.lock();
        let id = match self.table(database, name) {
            Ok(table) => table.id,
            Err(_) if if_exists => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(rollup) = catalog.state().rollups_of(id).next() {
            return Err(EngineError::Invalid(format!(
                "materialized view '{}' reads table '{name}'; drop it first",
                rollup.name
            )));
        }
        if let Some(view) = catalog.state().readers_of(id).next() {
            return Err(EngineError::Needed {
                what: format!("'{name}'"),
                by: format!("view '{}'", view.name),
            });
        }
        self.commit(&mut catalog, &CatalogEdit::DropTable(id))?;
        Ok(Some(id))
    }

    /// How far a rollup had come when its progress was last made durable.
    pub fn progress(&self, rollup: TableId) -> RollupProgress {
        let catalog = self.durable.lock();
        let progress = catalog.state().progress.get(&rollup);
        progress.cloned().unwrap_or_default()
    }

    /// Makes the progress of a rollup durable if `progress` returns it, then calls `done`; no other
    /// change comes in between.
    pub fn put_progress(
        &self,
        rollup: TableId,
        progress: impl FnOnce() -> Option<RollupProgress>,
        done: impl FnOnce(RollupProgress),
    ) -> Result<()> {
        let mut catalog = self.durable.lock();
        let Some(progress) = progress() else {
            return Ok(());
        };
        self.commit(
            &mut catalog,
            &CatalogEdit::PutProgress(rollup, progress.clone()),
        )?;
        done(progress);
        Ok(())
    }

    fn put(&self, catalog: &mut Catalog, schema: TableSchema) -> Result<Arc<TableSchema>> {
        schema.check()?;
        let schema = Arc::new(schema);
        self.commit(catalog, &CatalogEdit::PutTable(schema.clone()))?;
        Ok(schema)
    }

    fn commit(&self, catalog: &mut Catalog, edit: &CatalogEdit) -> Result<()> {
        if let Err(error) = catalog.commit(edit) {
            // A catalog that failed to write accepts nothing more. Writes that need no catalog
            // change stop as well, so that an operator notices.
            if matches!(
                error,
                ManifestError::Io { .. } | ManifestError::Poisoned { .. }
            ) {
                self.health.fail(&error.to_string());
            }
            return Err(error.into());
        }
        if let Some(witness) = self.witness.get() {
            witness.lock().note_log(catalog.extent());
        }
        self.visible.write().apply(edit);
        Ok(())
    }
}

impl VisibleCatalog {
    fn from_catalog(catalog: &Catalog) -> Self {
        let mut visible = Self {
            policies: catalog.state().policies.clone(),
            ..Self::default()
        };
        for database in catalog.databases() {
            visible
                .databases
                .insert(database.to_owned(), BTreeMap::new());
        }
        for table in catalog.tables() {
            visible.apply(&CatalogEdit::PutTable(table.clone()));
        }
        visible
    }

    fn apply(&mut self, edit: &CatalogEdit) {
        match edit {
            CatalogEdit::CreateDatabase(name) => {
                self.databases.insert(name.clone(), BTreeMap::new());
            }
            CatalogEdit::DropDatabase(name) => {
                self.policies.remove(name);
                for table in self.databases.remove(name).unwrap_or_default().values() {
                    self.by_id.remove(&table.id);
                    self.views.remove(&table.id);
                }
            }
            CatalogEdit::PutTable(table) => {
                let before = self.by_id.insert(table.id, table.clone());
                let tables = self.databases.entry(table.database.clone()).or_default();
                if let Some(before) = before {
                    tables.remove(&before.name);
                }
                if table.view.is_some() {
                    self.views.insert(table.id, table.clone());
                }
                tables.insert(table.name.clone(), table.clone());
            }
            CatalogEdit::DropTable(id) => {
                self.views.remove(id);
                if let Some(table) = self.by_id.remove(id)
                    && let Some(tables) = self.databases.get_mut(&table.database)
                {
                    tables.remove(&table.name);
                }
            }
            CatalogEdit::PutPolicies(database, policies) => {
                self.policies.insert(database.clone(), Arc::clone(policies));
            }
            CatalogEdit::PutProgress(..) | CatalogEdit::PutAccess(_) => {}
        }
    }

    fn database(&self, name: &str) -> Result<&BTreeMap<String, Arc<TableSchema>>> {
        self.databases
            .get(name)
            .ok_or_else(|| EngineError::NotFound {
                kind: "database",
                name: name.to_owned(),
                nearest: nearest(name, self.databases.keys().map(String::as_str)),
            })
    }

    fn table(&self, database: &str, name: &str) -> Result<&Arc<TableSchema>> {
        let tables = self.database(database)?;
        tables.get(name).ok_or_else(|| EngineError::NotFound {
            kind: "table",
            name: name.to_owned(),
            nearest: nearest(name, tables.keys().map(String::as_str)),
        })
    }
}

/// The error for a write to a rollup or a view.
pub(crate) fn is_kept(table: &TableSchema) -> EngineError {
    if table.view.is_some() {
        return EngineError::Invalid(format!(
            "'{}' is a view: only its query provides its rows",
            table.name
        ));
    }
    EngineError::Invalid(format!(
        "'{}' is a materialized view: only its source provides its rows",
        table.name
    ))
}

/// A table without columns, as a starting point for growth.
pub(crate) fn blank(database: &str, name: &str, id: TableId) -> TableSchema {
    TableSchema {
        id,
        database: database.to_owned(),
        name: name.to_owned(),
        time_name: "time".to_owned(),
        tags: Vec::new(),
        fields: Vec::new(),
        options: TableOptions::default(),
        rollup: None,
        view: None,
        dropped_max: 0,
        declared: Vec::new(),
    }
}

/// Refuses a change to `what` of a table that the queries of views use: by name, or by reading its
/// `column`.
fn not_needed(
    catalog: &Catalog,
    table: &TableSchema,
    column: Option<&str>,
    what: String,
) -> Result<()> {
    let state = catalog.state();
    let reads = |view: &&Arc<TableSchema>| match (&view.view, column) {
        (Some(view), Some(column)) => may_read_column(&view.query, column),
        _ => true,
    };
    let by = match (
        state.rollups_of(table.id).next(),
        state.readers_of(table.id).find(reads),
    ) {
        (Some(rollup), _) => format!("materialized view '{}'", rollup.name),
        (None, Some(view)) => format!("view '{}'", view.name),
        (None, None) => return Ok(()),
    };
    Err(EngineError::Needed { what, by })
}

/// Whether a query may read a column: it has a word of that name, or may mean all columns.
fn may_read_column(query: &str, column: &str) -> bool {
    let (query, column) = (query.to_lowercase(), column.to_lowercase());
    let means_all = query.contains('*')
        || query.contains("natural")
        || query.contains("table")
        // DuckDB's FROM without a SELECT.
        || query.matches("from").count() > query.matches("select").count();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    means_all
        || query.match_indices(&column).any(|(at, _)| {
            let before = query[..at].chars().next_back();
            let after = query[at + column.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

/// The field of this name, if its type may change: no view with stored rows reads it.
fn retypable<'a>(
    catalog: &Catalog,
    schema: &'a mut TableSchema,
    column: &str,
) -> Result<&'a mut FieldColumn> {
    if schema.rollup.is_some() || schema.view.is_some() {
        return Err(is_kept(schema));
    }
    let mut rollups = catalog.state().rollups_of(schema.id);
    let reader = rollups.find(|table| {
        let rollup = table.rollup.as_ref();
        rollup.is_none_or(|rollup| may_read_column(&rollup.query, column))
    });
    if let Some(rollup) = reader {
        return Err(EngineError::Needed {
            what: format!("column '{column}' of table '{}' in its type", schema.name),
            by: format!("materialized view '{}'", rollup.name),
        });
    }
    field_mut(schema, column)
}

fn rename_column(schema: &mut TableSchema, from: &str, to: &str) -> Result<()> {
    if schema.has_column(to) {
        return Err(EngineError::AlreadyExists {
            kind: "column",
            name: to.to_owned(),
        });
    }
    let tags = schema.tags.iter_mut().map(|tag| &mut tag.name);
    let fields = schema.fields.iter_mut().map(|field| &mut field.name);
    let mut names = std::iter::once(&mut schema.time_name)
        .chain(tags)
        .chain(fields);
    match names.find(|name| *name == from) {
        Some(name) => {
            to.clone_into(name);
            Ok(())
        }
        None => Err(EngineError::NotFound {
            kind: "column",
            name: from.to_owned(),
            nearest: nearest(from, schema.column_names()),
        }),
    }
}

/// The columns of these names, which are all that a table has.
fn declared(schema: &TableSchema, names: &[String]) -> Result<Vec<TableColumn>> {
    let named: HashMap<&str, TableColumn> = schema
        .columns_by_role()
        .filter_map(|column| Some((schema.name_of(column)?, column)))
        .collect();
    let column = |name: &String| {
        let found = named.get(name.as_str()).copied();
        found.ok_or_else(|| {
            let table = schema.name.clone();
            SchemaError::BadOrder { table }.into()
        })
    };
    names.iter().map(column).collect()
}

fn push_tag(schema: &mut TableSchema, name: &str, kind: TagType) {
    if !schema.declared.is_empty()
        && let Ok(ordinal) = u16::try_from(schema.tags.len())
    {
        schema.declared.push(TableColumn::Tag(ordinal));
    }
    schema.tags.push(TagColumn {
        name: name.to_owned(),
        kind,
    });
}

fn push_field(schema: &mut TableSchema, name: &str, kind: FieldType) {
    let id = schema.next_column();
    if !schema.declared.is_empty() {
        schema.declared.push(TableColumn::Field(id));
    }
    schema.fields.push(FieldColumn {
        id,
        name: name.to_owned(),
        kind,
        codec: ColumnCodec::default(),
    });
}

fn field_mut<'a>(schema: &'a mut TableSchema, name: &str) -> Result<&'a mut FieldColumn> {
    let Some(at) = schema.fields.iter().position(|field| field.name == name) else {
        return Err(EngineError::NotFound {
            kind: "field",
            name: name.to_owned(),
            nearest: nearest(name, schema.fields.iter().map(|field| field.name.as_str())),
        });
    };
    Ok(&mut schema.fields[at])
}

#[cfg(test)]
mod column_tests {
    use super::may_read_column;

    #[test]
    fn a_query_reads_the_columns_that_it_names() {
        for (query, is_read) in [
            ("SELECT dev, k FROM o", false),
            ("SELECT k FROM o WHERE k IN (SELECT n FROM p)", false),
            ("SELECT dev, X FROM o", true),
            ("SELECT \"x\" FROM o", true),
            ("SELECT max_x FROM o", false),
            ("SELECT * FROM o", true),
            ("FROM o", true),
            ("SELECT k FROM o NATURAL JOIN p", true),
            ("SELECT k FROM (FROM o)", true),
        ] {
            assert_eq!(may_read_column(query, "x"), is_read, "{query}");
        }
    }
}
