//! Databases and tables in memory, and their changes, which are first durable and then visible.
//!
//! One lock orders all changes, so that many writers may grow a schema at the same time: each
//! checks again under the lock, and adds only what is still missing. Readers get the current schema
//! by name. `edits` has the changes, `table_changes` what they make of a schema, `dependents` what
//! views need of a table, and `visible` what readers see.

mod dependents;
mod edits;
mod table_changes;
mod visible;

use crate::error::{EngineError, Result};
use crate::health::EngineHealth;
pub(crate) use dependents::computed_by_query;
use marigram_env::LogStore;
use marigram_manifest::{
    Catalog, CatalogEdit, LogProof, ManifestError, WitnessFile, WitnessOwner, WitnessedState,
};
use marigram_model::{RetentionPolicies, RollupProgress, TableId, TableSchema};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
pub(crate) use table_changes::{SchemaGrowth, blank};
pub use table_changes::{TableChange, TableSpec};
use visible::VisibleCatalog;

/// The tables of databases that are no tables of series.
pub trait OtherTables: fmt::Debug + Send + Sync {
    /// Whether one of them has this name, by database and name. It must not call the engine.
    fn is_taken(&self, database: &str, name: &str) -> bool;

    /// Drops those of a database that was dropped.
    ///
    /// # Errors
    /// Why they remain.
    fn drop_database(&self, database: &str) -> std::result::Result<(), String>;
}

/// The catalog on disk and in memory.
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    durable: Mutex<Catalog>,
    /// Set when the directory has its lineage.
    witness: OnceLock<Arc<Mutex<WitnessFile>>>,
    /// Set when the shards are open.
    shard_witnesses: OnceLock<Vec<Arc<Mutex<WitnessFile>>>>,
    health: Arc<EngineHealth>,
    visible: RwLock<VisibleCatalog>,
    other_tables: OnceLock<Box<dyn OtherTables>>,
}

impl LiveCatalog {
    /// Opens the catalog of a data directory if `proof` confirms it; creates it only if it need not
    /// exist.
    pub(crate) fn open(
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
            shard_witnesses: OnceLock::new(),
            health,
            visible,
            other_tables: OnceLock::new(),
        })
    }

    /// Writes down from here on, in the directory's witness, how far the catalog is durable. Returns
    /// the witness, in which the shards record their extents too.
    pub(crate) fn witness(
        &self,
        fs: Arc<dyn LogStore>,
        dir: &Path,
        lineage: u64,
    ) -> Result<Arc<Mutex<WitnessFile>>> {
        let catalog = self.durable.lock();
        let known = WitnessedState {
            log: Some(catalog.extent()),
            ..WitnessedState::default()
        };
        let of = WitnessOwner {
            lineage,
            shard: None,
        };
        let witness = Arc::new(Mutex::new(WitnessFile::open(fs, dir, of, known)?));
        Ok(self.witness.get_or_init(|| witness).clone())
    }

    /// Writes down from here on, in the shards' witnesses too, how far the catalog is durable.
    pub(crate) fn note_in_shards(&self, witnesses: Vec<Arc<Mutex<WitnessFile>>>) {
        let catalog = self.durable.lock();
        for witness in &witnesses {
            witness.lock().note_catalog(catalog.extent());
        }
        // It is set once, when the directory opens.
        let _ = self.shard_witnesses.set(witnesses);
    }

    /// Knows of these tables from here on.
    pub(crate) fn set_other_tables(&self, tables: Box<dyn OtherTables>) {
        // It is set once, when the directory opens.
        let _ = self.other_tables.set(tables);
    }

    /// Drops the other tables of a database.
    pub(crate) fn drop_other_tables(&self, database: &str) -> Result<()> {
        match self.other_tables.get() {
            Some(tables) => tables.drop_database(database).map_err(EngineError::Invalid),
            None => Ok(()),
        }
    }

    /// Highest id that any table ever had.
    pub(crate) fn table_max(&self) -> u32 {
        self.durable.lock().state().table_max
    }

    /// Blocks every change until the guard is dropped.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Catalog> {
        self.durable.lock()
    }

    /// The names of the databases, ascending.
    pub(crate) fn databases(&self) -> Vec<String> {
        self.visible.read().databases.keys().cloned().collect()
    }

    /// The tables of a database by name.
    pub(crate) fn tables(&self, database: &str) -> Result<Vec<Arc<TableSchema>>> {
        Ok(self
            .visible
            .read()
            .database(database)?
            .values()
            .cloned()
            .collect())
    }

    /// The retention policies of a database.
    pub(crate) fn retention_policies(&self, database: &str) -> Result<Arc<RetentionPolicies>> {
        let visible = self.visible.read();
        visible.database(database)?;
        Ok(visible.policies.get(database).cloned().unwrap_or_default())
    }

    /// The records of users and tokens, by key.
    pub(crate) fn access_records(&self) -> BTreeMap<String, Arc<[u8]>> {
        self.durable.lock().state().access.clone()
    }

    /// The form in which a table that is made for its first rows begins.
    pub(crate) fn blank(&self, database: &str, name: &str, id: TableId) -> TableSchema {
        let policies = self.retention_policies(database).unwrap_or_default();
        let mut schema = blank(database, name, id);
        if let Some((policy, _)) = policies.locate(name) {
            schema.options = policy.table_options(schema.options);
        }
        schema
    }

    /// Whether there have ever been reference tables.
    pub(crate) fn has_reference_tables(&self) -> bool {
        self.visible.read().has_reference_tables
    }

    /// Every table by id.
    pub(crate) fn all(&self) -> HashMap<TableId, Arc<TableSchema>> {
        self.visible.read().by_id.clone()
    }

    /// All plain views, ascending by id.
    pub(crate) fn views(&self) -> Vec<Arc<TableSchema>> {
        self.visible.read().views.values().cloned().collect()
    }

    /// A table by id, if it exists.
    pub(crate) fn by_id(&self, id: TableId) -> Option<Arc<TableSchema>> {
        self.visible.read().by_id.get(&id).cloned()
    }

    /// A table by name.
    pub(crate) fn table(&self, database: &str, name: &str) -> Result<Arc<TableSchema>> {
        self.visible.read().table(database, name).cloned()
    }

    /// A table by name, if the database has it.
    pub(crate) fn find(&self, database: &str, name: &str) -> Result<Option<Arc<TableSchema>>> {
        Ok(self.visible.read().database(database)?.get(name).cloned())
    }

    /// How far a rollup had come when its progress was last made durable.
    pub(crate) fn progress(&self, rollup: TableId) -> RollupProgress {
        let catalog = self.durable.lock();
        let progress = catalog.state().progress.get(&rollup);
        progress.cloned().unwrap_or_default()
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
        for witness in self.shard_witnesses.get().into_iter().flatten() {
            witness.lock().note_catalog(catalog.extent());
        }
        self.visible.write().apply(edit);
        Ok(())
    }
}
