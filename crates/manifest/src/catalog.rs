//! Databases and tables of a data directory: file `CATALOG`.

use crate::error::ManifestError;
use crate::log::{EditLog, LogOptions, io, read_file, read_proved};
use crate::proof::LogProof;
use crate::replay::{LogExtent, TornTail, replay};
use marigram_env::LogStore;
use marigram_model::{
    ColumnId, FieldColumn, Limits, RetentionPolicies, RollupProgress, TableId, TableSchema,
    TagColumn, View,
};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Databases and tables of a data directory: file `CATALOG`, the same kind of log as a manifest.
#[derive(Debug)]
pub struct Catalog {
    log: EditLog<CatalogState>,
}

/// A change of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogEdit {
    /// A new database.
    CreateDatabase(String),
    /// With all its tables.
    DropDatabase(String),
    /// A new table or view, or a new form of the one with the same id (tags are only ever added,
    /// the ids of fields never given twice; names and settings may change, but for the identity of
    /// series).
    PutTable(Arc<TableSchema>),
    /// A table, which is no rollup's source, and which no view reads.
    DropTable(TableId),
    /// How far a rollup has come.
    PutProgress(TableId, RollupProgress),
    /// The retention policies of a database.
    PutPolicies(String, Arc<RetentionPolicies>),
    /// New and removed records of access, by key.
    PutAccess(Vec<(String, Option<Arc<[u8]>>)>),
    /// From now on, the file of the reference tables must exist.
    NoteReferenceTables,
}

/// The contents of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogState {
    /// Databases by name, each with its tables by name.
    pub databases: BTreeMap<String, BTreeMap<String, TableId>>,
    /// Tables of all databases.
    pub tables: BTreeMap<TableId, Arc<TableSchema>>,
    /// How far rollups have come; one that is missing has not begun.
    pub progress: BTreeMap<TableId, RollupProgress>,
    /// Retention policies by database, where they are not the usual ones.
    pub policies: BTreeMap<String, Arc<RetentionPolicies>>,
    /// Users and tokens: records by key, whose meaning this crate does not know.
    pub access: BTreeMap<String, Arc<[u8]>>,
    /// Whether there have ever been reference tables, so that their file must exist.
    pub has_reference_tables: bool,
    /// Highest table id that was ever in the catalog; 0 where there was none.
    pub table_max: u32,
}

impl Catalog {
    /// The name of the copy that is kept beside the catalog.
    pub const COPY: &'static str = "CATALOG.copy";

    /// Opens or creates the catalog in `dir`, which must be there. A torn last edit was never
    /// acknowledged and is cut off.
    ///
    /// # Errors
    /// `Corrupt` for damage anywhere else.
    pub fn open(fs: Arc<dyn LogStore>, dir: &Path) -> Result<Self, ManifestError> {
        Self::open_with(fs, dir, LogOptions::default())
    }

    /// [`open`](Self::open) with other limits.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        options: LogOptions,
    ) -> Result<Self, ManifestError> {
        EditLog::open(fs, dir, options, &LogProof::default()).map(|log| Self { log })
    }

    /// Opens the catalog in `dir` if it agrees with `proof`, and creates it only if it need not
    /// exist.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Corrupt` where it is not; nothing was changed then, and the
    /// reason says whether the copy beside it can take its place.
    pub fn open_proved(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        proof: &LogProof,
    ) -> Result<Self, ManifestError> {
        EditLog::open(fs, dir, LogOptions::default(), proof).map(|log| Self { log })
    }

    /// Reads the catalog in `dir` and changes nothing; for tools.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(fs: &dyn LogStore, dir: &Path) -> Result<CatalogState, ManifestError> {
        let proof = LogProof {
            exists: true,
            ..LogProof::default()
        };
        let read = Self::read_proved(fs, dir, &proof)?;
        Ok(read.map(|(state, _)| state).unwrap_or_default())
    }

    /// As [`read`](Self::read), but checks the catalog against its proof; also returns the number of
    /// changes ever made. `None` if there is none and none is required.
    ///
    /// # Errors
    /// As [`open_proved`](Self::open_proved).
    pub fn read_proved(
        fs: &dyn LogStore,
        dir: &Path,
        proof: &LogProof,
    ) -> Result<Option<(CatalogState, u64)>, ManifestError> {
        let read = read_proved::<CatalogState>(fs, dir, proof)?;
        Ok(read.map(|(_, replayed)| (replayed.state, replayed.extent.number)))
    }

    /// Reads the copy that is kept beside the catalog in `dir`, if there is one, and changes nothing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read_copy(fs: &dyn LogStore, dir: &Path) -> Result<Option<CatalogState>, ManifestError> {
        let path = dir.join(Self::COPY);
        if !fs.exists(&path).map_err(io(&path))? {
            return Ok(None);
        }
        let file = fs.open(&path).map_err(io(&path))?;
        let bytes = read_file(&*file).map_err(io(&path))?;
        CatalogState::from_log(&path, &bytes).map(Some)
    }

    /// The durable extent of the catalog, for its witness.
    #[must_use]
    pub fn extent(&self) -> LogExtent {
        self.log.extent()
    }

    /// Commits a change: makes it durable, then applies it.
    ///
    /// # Errors
    /// `Refused` if the edit contradicts the state: nothing has changed. After any other error it
    /// is unknown whether the edit is on disk, and nothing more can be committed (`Poisoned`).
    pub fn commit(&mut self, edit: &CatalogEdit) -> Result<(), ManifestError> {
        self.log.commit(edit)
    }

    /// The state after the last commit.
    #[must_use]
    pub fn state(&self) -> &CatalogState {
        self.log.state()
    }

    /// Names of the databases, ascending.
    pub fn databases(&self) -> impl Iterator<Item = &str> {
        self.state().databases.keys().map(String::as_str)
    }

    /// Tables of all databases, ascending by id.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableSchema>> {
        self.state().tables.values()
    }

    /// The id for a new table, from 1: never given before, also not to a dropped one.
    #[must_use]
    pub fn next_table(&self) -> TableId {
        TableId(self.state().table_max.saturating_add(1))
    }

    /// The tail that was cut off on opening, for the operator's log.
    #[must_use]
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.log.torn()
    }
}

impl CatalogState {
    /// The state that the bytes of a catalog hold, without its torn tail; `path` is for messages.
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub fn from_log(path: &Path, bytes: &[u8]) -> Result<Self, ManifestError> {
        replay::<Self>(path, bytes).map(|replayed| replayed.state)
    }

    /// Why the edit contradicts the state, if it does.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check(&self, edit: &CatalogEdit) -> Result<(), String> {
        match edit {
            CatalogEdit::CreateDatabase(name) => {
                Limits::check_name("database", name).map_err(|error| error.to_string())?;
                if self.databases.contains_key(name) {
                    return Err(format!("there is a database '{name}' already"));
                }
            }
            CatalogEdit::DropDatabase(name) => {
                if !self.databases.contains_key(name) {
                    return Err(format!("there is no database '{name}'"));
                }
            }
            CatalogEdit::PutTable(table) => {
                self.check_table(table)?;
                self.check_reads(table)?;
                if table.view.is_some() {
                    return self.check_depth(Some(table));
                }
            }
            CatalogEdit::DropTable(id) => {
                if !self.tables.contains_key(id) {
                    return Err(format!("there is no table with the id {id}"));
                }
                if let Some(rollup) = self.rollups_of(*id).next() {
                    let name = &rollup.name;
                    return Err(format!("rollup '{name}' is kept from the table {id}"));
                }
                if let Some(view) = self.readers_of(*id).next() {
                    return Err(format!("view '{}' reads the table {id}", view.name));
                }
            }
            CatalogEdit::PutProgress(id, _) => {
                if self
                    .tables
                    .get(id)
                    .is_none_or(|table| table.rollup.is_none())
                {
                    return Err(format!("there is no rollup with the id {id}"));
                }
            }
            CatalogEdit::PutPolicies(database, policies) => {
                if !self.databases.contains_key(database) {
                    return Err(format!("there is no database '{database}'"));
                }
                policies.check().map_err(|error| error.to_string())?;
            }
            CatalogEdit::PutAccess(records) => {
                if records.iter().any(|(key, _)| key.is_empty()) {
                    return Err("a record of access has no key".to_owned());
                }
            }
            CatalogEdit::NoteReferenceTables => {}
        }
        Ok(())
    }

    /// The rollups of a table.
    pub fn rollups_of(&self, source: TableId) -> impl Iterator<Item = &Arc<TableSchema>> {
        let of_source = move |table: &&Arc<TableSchema>| {
            let rollup = table.rollup.as_ref();
            rollup.is_some_and(|rollup| rollup.source == source)
        };
        self.tables.values().filter(of_source)
    }

    /// The views that read a table or view directly.
    pub fn readers_of(&self, id: TableId) -> impl Iterator<Item = &Arc<TableSchema>> {
        let reads = move |table: &&Arc<TableSchema>| {
            let view = table.view.as_ref();
            view.is_some_and(|view| view.reads.contains(&id))
        };
        self.tables.values().filter(reads)
    }

    /// Whether everything that a view reads exists; does nothing for a table.
    pub(crate) fn check_reads(&self, table: &TableSchema) -> Result<(), String> {
        let Some(view) = &table.view else {
            return Ok(());
        };
        let name = &table.name;
        for id in &view.reads {
            let read = self.tables.get(id);
            if read.is_none_or(|read| read.database != table.database) {
                return Err(format!(
                    "view '{name}' reads the table {id}, which does not exist"
                ));
            }
        }
        Ok(())
    }

    /// Whether the views, with `changed` in place of the entry of its id, form a cycle or nest too
    /// deeply.
    pub(crate) fn check_depth(&self, changed: Option<&TableSchema>) -> Result<(), String> {
        let stored = self.tables.values().map(|table| &**table);
        let views: BTreeMap<TableId, (&str, &View)> = stored
            .chain(changed)
            .filter_map(|table| {
                let view = table.view.as_deref()?;
                Some((table.id, (table.name.as_str(), view)))
            })
            .collect();
        let mut depths: HashMap<TableId, usize> = views.keys().map(|id| (*id, 1)).collect();
        loop {
            let mut grows = false;
            for (id, (name, view)) in &views {
                let read = view.reads.iter().filter_map(|id| depths.get(id));
                let depth = 1 + read.max().copied().unwrap_or(0);
                if depth > View::DEPTH_MAX {
                    return Err(format!(
                        "view '{name}' would read itself, or more than {} views through one another",
                        View::DEPTH_MAX
                    ));
                }
                grows |= depths.insert(*id, depth) != Some(depth);
            }
            // Each round either changes nothing or makes a depth grow, up to the limit.
            if !grows {
                return Ok(());
            }
        }
    }

    pub(crate) fn check_table(&self, table: &TableSchema) -> Result<(), String> {
        table.check().map_err(|error| error.to_string())?;
        let (id, name, database) = (table.id, &table.name, &table.database);
        let Some(neighbours) = self.databases.get(database) else {
            return Err(format!(
                "there is no database '{database}' for table '{name}'"
            ));
        };
        // They ascend, except that of a field whose type was changed.
        let mut ids: Vec<_> = table.fields.iter().map(|field| field.id.0).collect();
        ids.sort_unstable();
        if ids.first() == Some(&0) || !ids.is_sorted_by(|a, b| a < b) {
            return Err(format!(
                "the field ids of table '{name}' are not distinct from 1 on"
            ));
        }
        if let Some(other) = neighbours.get(name).filter(|other| **other != id) {
            return Err(format!(
                "table '{name}' is there already, with the id {other}"
            ));
        }
        if self
            .tables
            .get(&id)
            .is_some_and(|old| old.database != *database)
        {
            return Err(format!("table '{name}' would move to another database"));
        }
        let source = table.rollup.as_ref().map(|rollup| rollup.source);
        let source_is_there = |source: &TableId| {
            let source = self.tables.get(source);
            source.is_some_and(|source| {
                source.database == *database && source.rollup.is_none() && source.view.is_none()
            })
        };
        if source.is_some_and(|source| !source_is_there(&source)) {
            return Err(format!("the source of rollup '{name}' does not exist"));
        }
        match self.tables.get(&id) {
            Some(old) => check_growth(old, table),
            // The highest number stands for "no table" in the series index.
            None if id.0 <= self.table_max || id.0 == u32::MAX => Err(format!(
                "the id {id} of the new table '{name}' was given before"
            )),
            None => Ok(()),
        }
    }

    /// Applies an edit that was checked.
    pub fn apply(&mut self, edit: &CatalogEdit) {
        match edit {
            CatalogEdit::CreateDatabase(name) => {
                self.databases.insert(name.clone(), BTreeMap::new());
            }
            CatalogEdit::DropDatabase(name) => {
                self.policies.remove(name);
                for id in self.databases.remove(name).unwrap_or_default().values() {
                    self.tables.remove(id);
                    self.progress.remove(id);
                }
            }
            CatalogEdit::PutTable(table) => {
                self.table_max = self.table_max.max(table.id.0);
                self.forget_name(table.id);
                let neighbours = self.databases.entry(table.database.clone()).or_default();
                neighbours.insert(table.name.clone(), table.id);
                self.tables.insert(table.id, Arc::clone(table));
            }
            CatalogEdit::DropTable(id) => {
                self.forget_name(*id);
                self.tables.remove(id);
                self.progress.remove(id);
            }
            CatalogEdit::PutProgress(id, progress) => {
                self.progress.insert(*id, progress.clone());
            }
            CatalogEdit::PutPolicies(database, policies) => {
                self.policies.insert(database.clone(), Arc::clone(policies));
            }
            CatalogEdit::PutAccess(records) => {
                for (key, record) in records {
                    match record {
                        Some(record) => self.access.insert(key.clone(), Arc::clone(record)),
                        None => self.access.remove(key),
                    };
                }
            }
            CatalogEdit::NoteReferenceTables => self.has_reference_tables = true,
        }
    }

    fn forget_name(&mut self, id: TableId) {
        let Some(table) = self.tables.get(&id) else {
            return;
        };
        if let Some(neighbours) = self.databases.get_mut(&table.database) {
            neighbours.remove(&table.name);
        }
    }

    /// The table of this name.
    #[must_use]
    pub fn table(&self, database: &str, name: &str) -> Option<&Arc<TableSchema>> {
        self.tables.get(self.databases.get(database)?.get(name)?)
    }
}

/// Segments and series keys name columns by number: what a number means must stay, and so must the
/// kind of the keys.
fn check_growth(old: &TableSchema, new: &TableSchema) -> Result<(), String> {
    let name = &new.name;
    let kept_from = |table: &TableSchema| {
        let rollup = table.rollup.as_deref()?;
        let cells = (rollup.cell_ns, rollup.cell_origin_ns);
        Some((rollup.source, rollup.query.clone(), cells))
    };
    if kept_from(new) != kept_from(old) {
        return Err(format!("table '{name}' would be kept from something else"));
    }
    if new.view.is_some() != old.view.is_some() {
        return Err(format!("'{name}' would be a view and a table in turn"));
    }
    if new.options.identity != old.options.identity {
        return Err(format!("table '{name}' would change its series identity"));
    }
    let same =
        |(at, tag): (usize, &TagColumn)| new.tags.get(at).is_some_and(|new| new.kind == tag.kind);
    if !old.tags.iter().enumerate().all(same) {
        return Err(format!(
            "table '{name}' would lose a tag or change its type"
        ));
    }
    let kept = |field: &FieldColumn| match new.field_by_id(field.id) {
        Some(new) => new.kind == field.kind,
        None => new.is_dropped(field.id),
    };
    if let Some(lost) = old.fields.iter().find(|field| !kept(field)) {
        return Err(format!(
            "table '{name}' would lose field '{}' or change its type",
            lost.name
        ));
    }
    // Fields of another type stand in old places, so ids need not ascend, but what stays stays in order.
    let staying = |fields: &[FieldColumn], other: &TableSchema| -> Vec<ColumnId> {
        let ids = fields.iter().map(|field| field.id);
        ids.filter(|id| other.field_by_id(*id).is_some()).collect()
    };
    if staying(&old.fields, new) != staying(&new.fields, old) {
        return Err(format!(
            "table '{name}' would change the order of its fields"
        ));
    }
    // A number beyond the others is set aside for a field that gets another type.
    let set_aside = old.field_max().saturating_add(1);
    if !(old.dropped_max..=set_aside).contains(&new.dropped_max) {
        return Err(format!(
            "table '{name}' would forget which fields were dropped"
        ));
    }
    let last = old.field_max();
    let is_retyped = |(at, field): (usize, &FieldColumn)| {
        field.id.0 == old.dropped_max
            && old.fields.get(at).is_some_and(|before| {
                before.name == field.name && new.field_by_id(before.id).is_none()
            })
    };
    let is_old = |(at, field): (usize, &FieldColumn)| {
        field.id.0 <= last && old.field_by_id(field.id).is_none() && !is_retyped((at, field))
    };
    if new.fields.iter().enumerate().any(is_old) {
        return Err(format!("table '{name}' would gain a field with an old id"));
    }
    Ok(())
}
