//! The catalog as readers see it: tables by name and by id.
//!
//! Invariant: it holds exactly what the durable catalog holds, because the same edits make both.

use crate::error::{EngineError, Result};
use marigram_manifest::{Catalog, CatalogEdit};
use marigram_model::{RetentionPolicies, TableId, TableSchema, nearest};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Databases and tables, for readers.
#[derive(Debug, Default)]
pub(super) struct VisibleCatalog {
    /// Tables by database and name.
    pub databases: BTreeMap<String, BTreeMap<String, Arc<TableSchema>>>,
    /// By database, where they are not the usual ones.
    pub policies: BTreeMap<String, Arc<RetentionPolicies>>,
    /// Every table.
    pub by_id: HashMap<TableId, Arc<TableSchema>>,
    /// The plain views in `by_id`.
    pub views: BTreeMap<TableId, Arc<TableSchema>>,
    /// Whether there have ever been reference tables.
    pub has_reference_tables: bool,
}

impl VisibleCatalog {
    /// The state of a catalog that was read.
    pub(super) fn from_catalog(catalog: &Catalog) -> Self {
        let mut visible = Self {
            policies: catalog.state().policies.clone(),
            has_reference_tables: catalog.state().has_reference_tables,
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

    /// Makes an edit that is durable visible.
    pub(super) fn apply(&mut self, edit: &CatalogEdit) {
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
            CatalogEdit::NoteReferenceTables => self.has_reference_tables = true,
            CatalogEdit::PutProgress(..) | CatalogEdit::PutAccess(_) => {}
        }
    }

    /// The tables of a database by name.
    pub(super) fn database(&self, name: &str) -> Result<&BTreeMap<String, Arc<TableSchema>>> {
        self.databases
            .get(name)
            .ok_or_else(|| EngineError::NotFound {
                kind: "database",
                name: name.to_owned(),
                nearest: nearest(name, self.databases.keys().map(String::as_str)),
            })
    }

    /// A table by name.
    pub(super) fn table(&self, database: &str, name: &str) -> Result<&Arc<TableSchema>> {
        let tables = self.database(database)?;
        tables.get(name).ok_or_else(|| EngineError::NotFound {
            kind: "table",
            name: name.to_owned(),
            nearest: nearest(name, tables.keys().map(String::as_str)),
        })
    }
}
