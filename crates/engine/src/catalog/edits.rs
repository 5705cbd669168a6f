//! Edits of the catalog: each checks under the lock, becomes durable, and is then visible.

use super::LiveCatalog;
use super::dependents::{check_not_needed, computed_by_query, retypable};
use super::table_changes::{
    SchemaGrowth, TableChange, TableSpec, drop_field, field_mut, push_field, push_tag,
    rename_column, set_options, set_refresh, set_view,
};
use crate::error::{EngineError, Result};
use marigram_manifest::CatalogEdit;
use marigram_model::{
    ColumnId, FieldColumn, Limits, RetentionPolicies, RollupProgress, SchemaError, TableColumn,
    TableId, TableSchema,
};
use std::sync::Arc;

impl LiveCatalog {
    /// Creates a database.
    pub(crate) fn create_database(&self, name: &str, if_not_exists: bool) -> Result<()> {
        Limits::check_name("database", name)?;
        let mut catalog = self.durable.lock();
        if self.visible.read().databases.contains_key(name) {
            if if_not_exists {
                return Ok(());
            }
            return Err(already_exists("database", name));
        }
        self.commit(&mut catalog, &CatalogEdit::CreateDatabase(name.to_owned()))
    }

    /// Removes a database; returns its tables, whose rows must be dropped.
    pub(crate) fn drop_database(&self, name: &str, if_exists: bool) -> Result<Vec<TableId>> {
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
    pub(crate) fn create_table(
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
            return Err(already_exists("table", &spec.name));
        }
        self.check_name(database, &spec.name)?;
        let schema = spec.schema(database, catalog.next_table())?;
        self.put(&mut catalog, schema)
    }

    /// Refuses a name that something else than a table of series has.
    fn check_name(&self, database: &str, name: &str) -> Result<()> {
        match self.other_tables.get() {
            Some(tables) if tables.is_taken(database, name) => Err(already_exists("table", name)),
            _ => Ok(()),
        }
    }

    /// Changes a table.
    pub(crate) fn alter_table(
        &self,
        database: &str,
        name: &str,
        change: &TableChange,
    ) -> Result<Arc<TableSchema>> {
        let mut catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        check_kind(&schema, change)?;
        match change {
            TableChange::AddTag(column, _) | TableChange::AddField(column, _)
                if schema.has_column(column) =>
            {
                return Err(already_exists("column", column));
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
            TableChange::SetOptions(options) => set_options(&mut schema, options)?,
            TableChange::SetRefresh(refresh_ns, lag_ns) => {
                set_refresh(&mut schema, *refresh_ns, *lag_ns)?;
            }
            TableChange::Rename(to) => {
                let what = format!("table '{name}' by this name");
                check_not_needed(&catalog, &schema, None, what)?;
                if self.find(database, to)?.is_some() {
                    return Err(already_exists("table", to));
                }
                self.check_name(database, to)?;
                schema.name.clone_from(to);
            }
            TableChange::RenameColumn(from, to) => {
                let what = format!("column '{from}' of table '{name}' by this name");
                rename_column(&mut schema, from, to)?;
                check_not_needed(&catalog, &schema, Some(from), what)?;
            }
            TableChange::DropField(column) => {
                let what = format!("column '{column}' of table '{name}'");
                drop_field(&mut schema, column)?;
                check_not_needed(&catalog, &schema, Some(column), what)?;
            }
            TableChange::SetView(view) => set_view(&mut schema, view)?,
        }
        self.put(&mut catalog, schema)
    }

    /// Sets aside a number for the values of a field in another type. Recovery takes it for that of
    /// a dropped field until [`finish_retype`](Self::finish_retype) gives it to the field.
    pub(crate) fn begin_retype(
        &self,
        database: &str,
        name: &str,
        column: &str,
    ) -> Result<ColumnId> {
        let mut catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        retypable(&catalog, &mut schema, column)?;
        let id = schema.next_column();
        schema.dropped_max = id.0;
        self.put(&mut catalog, schema)?;
        Ok(id)
    }

    /// Checks whether a field may get another type; returns it.
    pub(crate) fn check_retype(
        &self,
        database: &str,
        name: &str,
        column: &str,
    ) -> Result<FieldColumn> {
        let catalog = self.durable.lock();
        let mut schema = TableSchema::clone(&*self.table(database, name)?);
        retypable(&catalog, &mut schema, column).map(|field| field.clone())
    }

    /// Puts a field with another type in the place of the one of its name.
    pub(crate) fn finish_retype(
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
    pub(crate) fn grow(
        &self,
        database: &str,
        name: &str,
        growth: &SchemaGrowth,
    ) -> Result<Arc<TableSchema>> {
        let mut catalog = self.durable.lock();
        let existing = self.find(database, name)?;
        let mut schema = match &existing {
            Some(schema) => TableSchema::clone(schema),
            None => {
                self.check_name(database, name)?;
                self.blank(database, name, catalog.next_table())
            }
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
            return Err(computed_by_query(&schema));
        }
        match existing {
            Some(existing) if *existing == schema => Ok(existing),
            _ => self.put(&mut catalog, schema),
        }
    }

    /// Removes a table; returns `None` if there is none and `if_exists` is set.
    pub(crate) fn drop_table(
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

    /// Drops a table, and creates another one of its name; no other change comes in between. Returns
    /// the number of the dropped one.
    pub(crate) fn replace_table(
        &self,
        database: &str,
        spec: &TableSpec,
    ) -> Result<(TableId, Arc<TableSchema>)> {
        let mut catalog = self.durable.lock();
        let before = self.table(database, &spec.name)?;
        if before.rollup.is_some() || before.view.is_some() {
            return Err(computed_by_query(&before));
        }
        let what = format!("table '{}' with these columns", spec.name);
        check_not_needed(&catalog, &before, None, what)?;
        let schema = spec.schema(database, catalog.next_table())?;
        schema.check()?;
        self.commit(&mut catalog, &CatalogEdit::DropTable(before.id))?;
        let replaced = self.put(&mut catalog, schema);
        if replaced.is_err() {
            self.put(&mut catalog, TableSchema::clone(&before))?;
        }
        Ok((before.id, replaced?))
    }

    /// Makes the progress of a rollup durable if `progress` returns it, then calls `done`; no other
    /// change comes in between.
    pub(crate) fn put_progress(
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

    /// Changes the retention policies of a database as `change` says.
    pub(crate) fn change_retention_policies<E: From<EngineError>>(
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

    /// Puts and removes records of users and tokens, all of them or none.
    pub(crate) fn put_access(&self, records: Vec<(String, Option<Arc<[u8]>>)>) -> Result<()> {
        self.commit(&mut self.durable.lock(), &CatalogEdit::PutAccess(records))
    }

    /// Notes that there are reference tables.
    pub(crate) fn note_reference_tables(&self) -> Result<()> {
        let mut catalog = self.durable.lock();
        if catalog.state().has_reference_tables {
            return Ok(());
        }
        self.commit(&mut catalog, &CatalogEdit::NoteReferenceTables)
    }
}

/// Refuses changes that the kind of a table excludes: a query determines the columns of views and
/// materialized views.
fn check_kind(schema: &TableSchema, change: &TableChange) -> Result<()> {
    let is_excluded = match change {
        TableChange::AddTag(..)
        | TableChange::AddField(..)
        | TableChange::RenameColumn(..)
        | TableChange::DropField(..) => schema.rollup.is_some() || schema.view.is_some(),
        TableChange::SetCodec(..) | TableChange::SetOptions(..) => schema.view.is_some(),
        TableChange::SetRefresh(..) | TableChange::Rename(_) | TableChange::SetView(_) => false,
    };
    if is_excluded {
        return Err(computed_by_query(schema));
    }
    Ok(())
}

fn already_exists(kind: &'static str, name: &str) -> EngineError {
    EngineError::AlreadyExists {
        kind,
        name: name.to_owned(),
    }
}
