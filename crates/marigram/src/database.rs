//! An open database: the embedded API.

use crate::arrow_rows::{self, Roles};
use crate::error::{Error, Result};
use crate::memory_watch::MemoryWatch;
use crate::options::OpenOptions;
use crate::password_checks::PasswordChecks;
use crate::reference;
use crate::runtime::{BlockingRuntime, wait};
use crate::statements::StatementRegistry;
use arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use marigram_engine::backup::{self, BackupOptions, BackupReport, RestoreReport};
use marigram_engine::{
    Engine, EngineError, MemoryAccountant, RejectedRow, TableGrowth, TableSpec, WriteOptions,
    WriteReport,
};
use marigram_env::Env;
use marigram_flux_interpreter::FluxLanguage;
use marigram_influx::InfluxQl;
use marigram_iotdb_planner::IotDbStatements;
use marigram_model::{TableSchema, WriteBatch};
use marigram_opentsdb_planner::OpenTsdbQueries;
use marigram_pgtext::split_script;
use marigram_reference::ReferenceStore;
use marigram_service::{Answer, DEFAULT_DATABASE, Identity, RowStream, Session};
use marigram_sql::front_end::FrontEnd;
use marigram_sql::{SqlOptions, SqlService};
use marigram_tdengine_planner::TDengineStatements;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Directory in the data directory to which queries spill. Emptied when the database is opened.
const SPILL_DIR: &str = "spill";

/// The user of statements from the embedded API.
const USER: &str = "embedded";

/// An open database. Cheap to clone; all clones are the same database. [`close`](Self::close)
/// closes it; acknowledged writes are safe without it, too.
///
/// The methods here block and may be called from any thread. Servers use the async traits
/// [`Ingest`](crate::Ingest), `Query` and [`Status`](crate::Status), which this type implements.
#[derive(Clone, Debug)]
pub struct Marigram {
    pub(crate) engine: Engine,
    pub(crate) reference: ReferenceStore,
    pub(crate) sql: SqlService,
    pub(crate) runtime: Arc<BlockingRuntime>,
    /// Statements of servers.
    pub(crate) statements: Arc<StatementRegistry>,
    pub(crate) watch: Option<Arc<MemoryWatch>>,
    pub(crate) password_checks: Arc<PasswordChecks>,
    /// Number of statements that named files as tables.
    pub(crate) file_tables: Arc<AtomicU64>,
}

impl Marigram {
    /// Opens or creates the database in `dir` with settings that fit the machine.
    ///
    /// # Errors
    /// If another process has the directory open, or it cannot be read or is damaged.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(dir)
    }

    /// Settings, to change some of them before [`OpenOptions::open`].
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// Opens or creates the database in `dir` of any environment; for tests that simulate a disk.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if a setting is out of its range.
    pub fn open_in(env: Env, dir: &Path, options: &OpenOptions) -> Result<Self> {
        Self::open_with(env, dir, options, None)
    }

    /// Queries spill to `spill_dir`, or to the system's directory for temporary files.
    fn open_with(
        env: Env,
        dir: &Path,
        options: &OpenOptions,
        spill_dir: Option<PathBuf>,
    ) -> Result<Self> {
        let query_threads = options.threads_for_queries()?;
        let engine_options = options.engine()?;
        let memory = Arc::new(MemoryAccountant::new(engine_options.memory_limit_bytes));
        let statements = Arc::<StatementRegistry>::default();
        // Before recovery, which must keep the limit as well.
        let watch = if options.whole_process == Some(true) {
            Some(Arc::new(MemoryWatch::start(&memory, &statements)?))
        } else {
            None
        };
        let engine = Engine::open_on(memory, env.clone(), dir, engine_options)?;
        engine.create_database(DEFAULT_DATABASE, true)?;
        let reference = if env.fs.is_of_machine() {
            reference::open(&env, &engine, dir, options.limit_bytes())?
        } else {
            // SQLite knows no simulated disk.
            ReferenceStore::in_memory()?
        };
        // Only now is it certain that the directory is ours.
        if let Some(dir) = &spill_dir {
            match empty(dir) {
                // Queries that fit in memory still work on a full disk.
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    tracing::warn!(%error, "no query can spill to {}", dir.display());
                }
                emptied => emptied.map_err(Error::Spill)?,
            }
        }
        let runtime = Arc::new(BlockingRuntime::new(options.threads_for_waiting())?);
        let sql = {
            let _entered = runtime.handle().enter();
            let settings = SqlOptions {
                target_partitions: query_threads,
                spill_dir,
                allow_files: options.any_file,
                copy_dir: options.copy_dir.clone(),
                ..SqlOptions::default()
            };
            let languages: Vec<Arc<dyn FrontEnd>> = vec![
                Arc::new(InfluxQl::default()),
                Arc::new(FluxLanguage::default()),
                Arc::new(OpenTsdbQueries),
                Arc::new(TDengineStatements::default()),
                Arc::new(IotDbStatements),
            ];
            SqlService::with_front_ends(engine.clone(), reference.clone(), settings, languages)?
        };
        Ok(Self {
            engine,
            reference,
            sql,
            runtime,
            statements,
            watch,
            password_checks: Arc::default(),
            file_tables: Arc::default(),
        })
    }

    /// Writes everything to segments and releases the directory. Every later call on any clone
    /// fails.
    ///
    /// # Errors
    /// If the last flush fails; the log then holds what was acknowledged.
    pub fn close(&self) -> Result<()> {
        Ok(self.engine.close()?)
    }

    /// Copies the database, as it is at one moment, into a folder of backups, which is created if
    /// it does not exist; only what the folder does not have yet is copied. Keeps the newest `keep`
    /// backups (`None`: all). Reads and writes continue. [`restore`](crate::restore) turns a backup
    /// into a data directory.
    ///
    /// # Errors
    /// If the folder is something else, another backup into it runs, a segment is damaged, or the
    /// disk fails. Earlier backups are then untouched.
    pub fn backup(&self, folder: impl AsRef<Path>, keep: Option<usize>) -> Result<BackupReport> {
        let options = BackupOptions { keep };
        let copy = |file: &Path| {
            let copied = self.reference.backup_to(file);
            copied.map_err(|error| error.to_string())
        };
        let report = self
            .engine
            .backup_with(folder.as_ref(), options, Some(&copy))?;
        Ok(report)
    }

    /// The storage engine, for tools that look inside.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Creates a database if it does not exist.
    ///
    /// # Errors
    /// If the name is invalid, or the disk fails.
    pub fn create_database(&self, name: &str) -> Result<()> {
        Ok(self.engine.create_database(name, true)?)
    }

    /// Stores a batch; creates its table and columns if they are missing. The rows are durable when
    /// it returns (see [`OpenOptions::durability`]). The report names rows that conflict with the
    /// table's types; the others are stored.
    ///
    /// # Errors
    /// If the database does not exist, the batch is inconsistent, or nothing can be written.
    pub fn write(&self, database: &str, batch: &WriteBatch) -> Result<WriteReport> {
        batch.check()?;
        Ok(self
            .engine
            .write(database, batch, WriteOptions { grow: true })?)
    }

    /// Stores Arrow rows: columns by name, missing ones null, new ones added. With `roles`, a table
    /// that does not exist is created; without, it must exist.
    ///
    /// # Errors
    /// As [`write`](Self::write), and if a column has a type that no tag or field can have.
    pub fn write_arrow(
        &self,
        database: &str,
        table: &str,
        rows: &RecordBatch,
        roles: Option<&Roles>,
    ) -> Result<WriteReport> {
        let (schema, growth) = self.table_for(database, table, rows, roles)?;
        let converted = arrow_rows::convert(table, &Roles::of(&schema), Some(&schema), rows)?;
        let mut report = self.write(database, &converted.batch)?;
        for row in &mut report.rejected {
            row.row = converted.source_row(row.row);
        }
        report.rejected.extend(converted.rejected);
        report
            .rejected
            .sort_by_key(|rejected: &RejectedRow| rejected.row);
        if let Some(mut growth) = growth {
            let of_rows = report.growth.take().unwrap_or_default();
            growth.tags.extend(of_rows.tags);
            growth.fields.extend(of_rows.fields);
            report.growth = Some(growth);
        }
        Ok(report)
    }

    /// The table, created from `roles` if it is missing, and what it lacked.
    fn table_for(
        &self,
        database: &str,
        table: &str,
        rows: &RecordBatch,
        roles: Option<&Roles>,
    ) -> Result<(Arc<TableSchema>, Option<TableGrowth>)> {
        let (missing, roles) = match (self.engine.table(database, table), roles) {
            (Err(EngineError::NotFound { kind: "table", .. }), Some(roles)) => (true, roles),
            (found, None) => return Ok((found?, None)),
            (found, Some(roles)) => {
                let schema = found?;
                if schema.time_name != roles.time {
                    return Err(Error::Arrow(format!(
                        "the time column of table '{table}' is '{}', not '{}'",
                        schema.time_name, roles.time
                    )));
                }
                let stray = roles.tags.iter().find(|tag| schema.field(tag).is_some());
                if let Some(stray) = stray {
                    return Err(Error::Arrow(format!(
                        "column '{stray}' is a field of table '{table}', not a tag"
                    )));
                }
                if roles.tags.iter().all(|tag| schema.tag(tag).is_some()) {
                    return Ok((schema, None));
                }
                (false, roles)
            }
        };
        let (tags, fields) = arrow_rows::table_columns(roles, rows)?;
        if missing {
            let spec = TableSpec {
                name: table.to_owned(),
                time_name: Some(roles.time.clone()),
                tags,
                fields,
                ..TableSpec::default()
            };
            let schema = self.engine.create_table(database, &spec, true)?;
            let growth = TableGrowth {
                is_new: true,
                tags: spec.tags,
                fields: spec.fields,
            };
            return Ok((schema, Some(growth)));
        }
        let mut growth = TableGrowth::default();
        for (name, kind) in tags {
            let schema = self.engine.table(database, table)?;
            if schema.tag(&name).is_none() {
                let change = marigram_engine::TableChange::AddTag(name.clone(), kind);
                self.engine.alter_table(database, table, &change)?;
                growth.tags.push((name, kind));
            }
        }
        let has_grown = !growth.tags.is_empty();
        let schema = self.engine.table(database, table)?;
        Ok((schema, has_grown.then_some(growth)))
    }

    /// Runs the statements of `script` one after another in the default database, and returns the
    /// rows of the last one (none if it has no rows).
    ///
    /// # Errors
    /// The first statement that fails; those before it have taken effect.
    pub fn sql(&self, script: &str) -> Result<Vec<RecordBatch>> {
        self.sql_in(DEFAULT_DATABASE, script)
    }

    /// Like [`sql`](Self::sql), in another database.
    ///
    /// # Errors
    /// As [`sql`](Self::sql).
    pub fn sql_in(&self, database: &str, script: &str) -> Result<Vec<RecordBatch>> {
        let mut session = Session::new(database, Identity::owner(USER));
        wait(async {
            let mut last = Vec::new();
            for statement in split_script(script) {
                let text = statement.text;
                last = match self.execute_with_files(&mut session, text).await? {
                    Answer::Rows(rows) => rows.batches.try_collect().await?,
                    Answer::Done { .. } => Vec::new(),
                };
            }
            Ok(last)
        })
    }

    /// Runs one query in the default database and streams its rows, for async callers. The query
    /// stops when the stream is dropped.
    ///
    /// # Errors
    /// If the statement is invalid, or returns no rows.
    pub async fn sql_stream(&self, statement: &str) -> Result<RowStream> {
        let mut session = Session::new(DEFAULT_DATABASE, Identity::owner(USER));
        match self.execute_with_files(&mut session, statement).await? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Done { tag, .. } => Err(Error::Option(format!(
                "{tag}: the statement has no rows to stream; use sql()"
            ))),
        }
    }
}

/// Creates a directory, or removes what a dead process left in it.
fn empty(dir: &Path) -> std::io::Result<()> {
    // Spilled rows do not belong to the database: DataFusion writes and reads them on the real
    // disk, and they are useless after the query.
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir_all(dir)
}

/// Restores the backup `number` (`None`: the newest one) in the folder `from` as a data directory.
/// `into` must be empty, missing, or left over from an interrupted restore. Every file is checked
/// on the way.
///
/// # Errors
/// If there is no such backup, `into` contains something, the backup is damaged, or the disk fails.
pub fn restore(
    from: impl AsRef<Path>,
    number: Option<u64>,
    into: impl AsRef<Path>,
) -> Result<RestoreReport> {
    let (env, from, into) = (Env::real(), from.as_ref(), into.as_ref());
    Ok(backup::restore(&env, from, number, into)?)
}

impl OpenOptions {
    /// Opens or creates the database in `dir`, on the machine's own disk and clock.
    ///
    /// # Errors
    /// If a setting is out of its range, another process has the directory open, or the directory
    /// cannot be read or is damaged.
    pub fn open(&self, dir: impl AsRef<Path>) -> Result<Marigram> {
        let dir = dir.as_ref();
        Marigram::open_with(Env::real(), dir, self, Some(dir.join(SPILL_DIR)))
    }
}
