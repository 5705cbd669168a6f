//! All reference tables at one moment, in memory.
//!
//! Invariant: a catalog never changes; a change of tables makes a new one. So a transaction keeps its catalog,
//! and a savepoint goes back to it.

use crate::definition::{ForeignKey, ReferenceTable};
use crate::error::{ReferenceError, Result};
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tables of all databases.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReferenceCatalog {
    /// Grows with every committed change of tables.
    pub(crate) version: u64,
    databases: BTreeMap<String, BTreeMap<String, Arc<ReferenceTable>>>,
    by_id: HashMap<u64, Arc<ReferenceTable>>,
    /// By the id of the parent: ids of tables with foreign keys to it.
    children: HashMap<u64, Vec<u64>>,
}

impl ReferenceCatalog {
    /// A table by name.
    pub(crate) fn table(&self, database: &str, name: &str) -> Option<&Arc<ReferenceTable>> {
        self.databases.get(database)?.get(name)
    }

    /// A table by name, which must exist.
    pub(crate) fn existing(&self, database: &str, name: &str) -> Result<&Arc<ReferenceTable>> {
        self.table(database, name)
            .ok_or_else(|| ReferenceError::no_table(name))
    }

    /// A table by id.
    pub(crate) fn by_id(&self, id: u64) -> Option<&Arc<ReferenceTable>> {
        self.by_id.get(&id)
    }

    /// The tables of a database, by name.
    pub(crate) fn tables(&self, database: &str) -> impl Iterator<Item = &Arc<ReferenceTable>> {
        self.databases
            .get(database)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// All tables.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ReferenceTable>> {
        self.databases.values().flat_map(BTreeMap::values)
    }

    /// The foreign keys that refer to a table: their tables, and their positions there.
    pub(crate) fn referring(
        &self,
        parent: u64,
    ) -> impl Iterator<Item = (&Arc<ReferenceTable>, usize)> {
        let children = self.children.get(&parent).into_iter().flatten();
        children
            .filter_map(|id| self.by_id.get(id))
            .flat_map(move |child| {
                let keys = child.foreign_keys.iter().enumerate();
                keys.filter(move |(_, key)| key.parent == parent)
                    .map(move |(position, _)| (child, position))
            })
    }

    /// The foreign keys that refer to a table, with their tables.
    pub(crate) fn referring_keys(
        &self,
        parent: u64,
    ) -> impl Iterator<Item = (&Arc<ReferenceTable>, &ForeignKey)> {
        self.referring(parent).filter_map(|(child, position)| {
            child.foreign_keys.get(position).map(|key| (child, key))
        })
    }

    /// Whether a table or index of a database has a name.
    pub(crate) fn has_relation(&self, database: &str, name: &str) -> bool {
        self.table(database, name).is_some()
            || self.tables(database).any(|table| has_index(table, name))
    }

    /// The catalog with a table added or replaced.
    pub(crate) fn with(&self, table: Arc<ReferenceTable>) -> Self {
        let mut changed = self.without(table.id);
        changed.add(table);
        changed
    }

    /// The catalog without a table.
    pub(crate) fn without(&self, id: u64) -> Self {
        let mut changed = self.clone();
        let Some(table) = changed.by_id.remove(&id) else {
            return changed;
        };
        if let Some(tables) = changed.databases.get_mut(&table.database) {
            tables.remove(&table.name);
            if tables.is_empty() {
                changed.databases.remove(&table.database);
            }
        }
        changed.children.retain(|_, children| {
            children.retain(|child| *child != id);
            !children.is_empty()
        });
        changed
    }

    fn add(&mut self, table: Arc<ReferenceTable>) {
        for key in &table.foreign_keys {
            let children = self.children.entry(key.parent).or_default();
            if !children.contains(&table.id) {
                children.push(table.id);
            }
        }
        self.by_id.insert(table.id, table.clone());
        let tables = self.databases.entry(table.database.clone()).or_default();
        tables.insert(table.name.clone(), table);
    }

    /// Reads the tables as a connection sees them.
    pub(crate) fn load(connection: &Connection) -> Result<Self> {
        let mut catalog = Self {
            version: version(connection)?,
            ..Self::default()
        };
        let mut statement =
            connection.prepare_cached("SELECT id, database, name, json FROM definitions")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, database, name): (i64, String, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let table: ReferenceTable = serde_json::from_str(&row.get::<_, String>(3)?)
                .map_err(|error| ReferenceError::damaged(format!("table \"{name}\": {error}")))?;
            if table.id != id as u64 || table.database != database || table.name != name {
                let finding = format!("the definition of table \"{name}\" has another name");
                return Err(ReferenceError::damaged(finding));
            }
            catalog.add(Arc::new(table));
        }
        Ok(catalog)
    }
}

/// The version of the tables as a connection sees them. Reading it begins the snapshot of a transaction.
pub(crate) fn version(connection: &Connection) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT version FROM state")?;
    Ok(statement.query_row([], |row| row.get::<_, i64>(0))? as u64)
}

/// Whether a key or index of a table has a name.
pub(crate) fn has_index(table: &ReferenceTable, name: &str) -> bool {
    table.keys.iter().any(|key| key.name == name)
        || table.indexes.iter().any(|index| index.name == name)
}
