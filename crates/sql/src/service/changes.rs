//! Changes without result rows: their answers, and the short changes of tables and views.

use super::SqlServiceInner;
use crate::dialect::statement::{ColumnKind, Command, OptionChanges, TableReferenceName};
use crate::error::{SqlError, SqlResult};
use crate::statements::{ddl_execution, roles};
use marigram_engine::{EngineError, TableChange, TagFilter};
use marigram_model::TimeRange;
use marigram_service::{Answer, ServiceError, Session};

/// The answer to a statement without rows.
#[derive(Debug)]
pub(super) struct StatementDone {
    tag: String,
    rows: u64,
    notices: Vec<String>,
}

impl StatementDone {
    /// A command tag without rows.
    pub(super) fn new(tag: &str) -> Self {
        Self::with_rows(tag.to_owned(), 0)
    }

    /// A command tag and the number of changed rows.
    pub(super) fn with_rows(tag: String, rows: u64) -> Self {
        Self {
            tag,
            rows,
            notices: Vec::new(),
        }
    }

    /// The same, with notices.
    pub(super) fn telling(mut self, notices: impl IntoIterator<Item = String>) -> Self {
        self.notices.extend(notices);
        self
    }
}

impl From<StatementDone> for Answer {
    fn from(done: StatementDone) -> Self {
        Self::Done {
            tag: done.tag,
            rows: done.rows,
            notices: done.notices,
        }
    }
}

/// The notice for a statement that does nothing because the name does not exist.
pub(super) fn missing_already(kind: &str, name: &str) -> String {
    format!("{kind} '{name}' does not exist, and nothing was done")
}

/// Tables by their databases and names.
fn named<'a>(
    session: &'a Session,
    targets: &'a [TableReferenceName],
) -> impl Iterator<Item = (String, &'a str)> + Clone {
    targets.iter().map(|target| {
        let database = target.database.as_ref().unwrap_or(&session.database);
        (database.clone(), target.table.as_str())
    })
}

impl SqlServiceInner {
    fn drop_database(
        &self,
        session: &Session,
        name: &str,
        if_exists: bool,
    ) -> SqlResult<StatementDone> {
        if session.transaction.is_some() {
            let message = "DROP DATABASE cannot run inside a transaction block";
            return Err(SqlError::invalid("25001", message));
        }
        if *name == session.database {
            let message = format!("database '{name}' is in use by this session; USE another");
            return Err(SqlError::named("55006", name, message));
        }
        if self.engine.databases().iter().any(|known| known == name) {
            // First, so that a later database of the name never has them.
            self.access.change(|catalog| {
                catalog.forget_database(name);
                Ok(())
            })?;
        }
        self.engine.drop_database(name, if_exists)?;
        self.contexts.forget(name);
        Ok(StatementDone::new("DROP DATABASE"))
    }

    /// A change of databases, tables or storage. Blocks.
    pub(super) fn change(&self, session: &Session, command: &Command) -> SqlResult<StatementDone> {
        let engine = &self.engine;
        let database = |target: &TableReferenceName| {
            target.database.clone().unwrap_or(session.database.clone())
        };
        match command {
            Command::CreateDatabase {
                name,
                if_not_exists,
            } => {
                engine.create_database(name, *if_not_exists)?;
                Ok(StatementDone::new("CREATE DATABASE"))
            }
            Command::DropDatabase { name, if_exists } => {
                self.drop_database(session, name, *if_exists)
            }
            Command::CreateTable {
                target,
                columns,
                options,
                if_not_exists,
                notices,
            } => {
                let database = database(target);
                let done =
                    self.create_table(&database, target, columns, options, *if_not_exists)?;
                Ok(done.telling(notices.iter().cloned()))
            }
            Command::AlterTable {
                target,
                changes,
                if_exists,
            } => {
                let database = database(target);
                let name = &target.table;
                let done = StatementDone::new("ALTER TABLE");
                if *if_exists && engine.table(&database, name).is_err() {
                    let notice = format!("table '{name}' does not exist, and was not changed");
                    return Ok(done.telling(Some(notice)));
                }
                ddl_execution::alter_table(engine, &database, name, changes)?;
                Ok(done.telling(ddl_execution::notices(changes)))
            }
            Command::CreateIndex {
                target,
                columns,
                is_unique,
            } => {
                let table = engine.table(&database(target), &target.table)?;
                let notices = roles::index(engine, &table, columns, *is_unique)?;
                Ok(StatementDone::new("CREATE INDEX").telling(notices))
            }
            Command::Maintain { tag, targets } => {
                for target in targets {
                    engine.table(&database(target), &target.table)?;
                }
                let notice = "Marigram compacts by itself; COMPACT TABLE t does it now";
                Ok(StatementDone::new(tag).telling(vec![notice.to_owned()]))
            }
            Command::RenameView { target, to } => {
                self.rename_view(&database(target), &target.table, to)
            }
            Command::DropPlainView { targets, if_exists } => {
                self.drop_plain_views(named(session, targets), *if_exists)
            }
            Command::Truncate { targets, .. } => self.truncate(named(session, targets)),
            Command::DropTable {
                targets, if_exists, ..
            } => self.drop_tables(named(session, targets), *if_exists),
            Command::AlterView { target, options } => {
                self.alter_view(session, target, options)?;
                let notices = options.notices.iter().cloned();
                Ok(StatementDone::new("ALTER MATERIALIZED VIEW").telling(notices))
            }
            Command::DropView { targets, if_exists } => {
                for target in targets {
                    self.drop_view(session, target, *if_exists)?;
                }
                Ok(StatementDone::new("DROP MATERIALIZED VIEW"))
            }
            Command::Flush => {
                engine.flush()?;
                Ok(StatementDone::new("FLUSH"))
            }
            Command::Compact => {
                engine.compact()?;
                Ok(StatementDone::new("COMPACT"))
            }
            other => Err(ServiceError::Internal(format!("{other:?} changes nothing")).into()),
        }
    }

    /// `CREATE TABLE`. Blocks.
    pub(super) fn create_table(
        &self,
        database: &str,
        target: &TableReferenceName,
        columns: &[(String, ColumnKind)],
        options: &OptionChanges,
        if_not_exists: bool,
    ) -> SqlResult<StatementDone> {
        let engine = &self.engine;
        let done = StatementDone::new("CREATE TABLE");
        if if_not_exists && engine.table(database, &target.table).is_ok() {
            return Ok(done.telling(Some(ddl_execution::exists_already(&target.table))));
        }
        let table =
            ddl_execution::create_table(engine, database, target, columns, options, if_not_exists)?;
        Ok(done.telling(ddl_execution::untagged(&table)))
    }

    /// `DROP TABLE`, by database and name. Blocks.
    pub(super) fn drop_tables<'a>(
        &self,
        tables: impl Iterator<Item = (String, &'a str)> + Clone,
        if_exists: bool,
    ) -> SqlResult<StatementDone> {
        // Drop nothing if one of the tables cannot be dropped.
        for (database, name) in tables.clone() {
            let table = self.engine.table(&database, name);
            let kind = match &table {
                Ok(table) if table.rollup.is_some() => Some("materialized view"),
                Ok(table) if table.view.is_some() => Some("view"),
                _ => None,
            };
            if let Some(kind) = kind {
                let message = format!("'{name}' is a {kind}; DROP {} {name}", kind.to_uppercase());
                return Err(SqlError::named("42809", name, message));
            }
            if !if_exists && !self.contexts.has_file_table(&database, name) {
                table?;
            }
        }
        let mut done = StatementDone::new("DROP TABLE");
        for (database, name) in tables {
            let is_missing = self.engine.table(&database, name).is_err();
            if !self.contexts.forget_file_table(&database, name) {
                self.engine.drop_table(&database, name, if_exists)?;
                let missing = is_missing.then(|| missing_already("table", name));
                done = done.telling(missing);
            }
        }
        Ok(done)
    }

    /// `TRUNCATE`: all rows of tables, by database and name. Blocks.
    pub(super) fn truncate<'a>(
        &self,
        tables: impl Iterator<Item = (String, &'a str)> + Clone,
    ) -> SqlResult<StatementDone> {
        // Truncate nothing if one of the tables cannot be truncated.
        for (database, name) in tables.clone() {
            let table = self.engine.table(&database, name)?;
            if table.rollup.is_some() || table.view.is_some() {
                let message = format!("'{name}' is a view: it has no rows of its own");
                return Err(SqlError::named("42809", name, message));
            }
        }
        for (database, name) in tables {
            let all = TimeRange::ALL;
            self.engine.delete(&database, name, &TagFilter::All, all)?;
        }
        Ok(StatementDone::new("TRUNCATE TABLE"))
    }

    /// `DROP VIEW`, by database and name. Blocks.
    pub(super) fn drop_plain_views<'a>(
        &self,
        views: impl Iterator<Item = (String, &'a str)>,
        if_exists: bool,
    ) -> SqlResult<StatementDone> {
        let mut done = StatementDone::new("DROP VIEW");
        for (database, name) in views {
            let table = match self.engine.table(&database, name) {
                Err(EngineError::NotFound { kind: "table", .. }) if if_exists => {
                    done = done.telling([missing_already("view", name)]);
                    continue;
                }
                table => table?,
            };
            if table.view.is_none() {
                let kind = match table.rollup {
                    Some(_) => "materialized view",
                    None => "table",
                };
                let message = format!("'{name}' is a {kind}; DROP {} {name}", kind.to_uppercase());
                return Err(SqlError::named("42809", name, message));
            }
            self.engine.drop_table(&database, name, if_exists)?;
        }
        Ok(done)
    }

    /// `ALTER [MATERIALIZED] VIEW … RENAME TO`. Blocks.
    pub(super) fn rename_view(
        &self,
        database: &str,
        name: &str,
        to: &str,
    ) -> SqlResult<StatementDone> {
        let table = self.engine.table(database, name)?;
        let tag = match (&table.rollup, &table.view) {
            (Some(_), _) => "ALTER MATERIALIZED VIEW",
            (None, Some(_)) => "ALTER VIEW",
            (None, None) => {
                let message = format!("'{name}' is a table; ALTER TABLE {name} RENAME TO {to}");
                return Err(SqlError::named("42809", name, message));
            }
        };
        let change = TableChange::Rename(to.to_owned());
        self.engine.alter_table(database, name, &change)?;
        Ok(StatementDone::new(tag))
    }
}
