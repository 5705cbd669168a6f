//! Statements about reference tables that need no plan, and the steps of transaction blocks.

use super::changes::{StatementDone, missing_already};
use super::{SqlService, SqlServiceInner};
use crate::dialect::reference::missing_index;
use crate::dialect::statement::{Command, ReferenceChange, ReferenceStatement, TableReferenceName};
use crate::dialect::write_detection::only_reads;
use crate::error::{SqlError, SqlResult};
use crate::statements::ddl_execution::exists_already;
use crate::statements::reference::change_guard::ChangeGuard;
use crate::statements::reference::definitions;
use crate::statements::reference::planning::changed_table;
use crate::tables::reference::block::TransactionBlock;
use crate::tables::reference::reads::{StatementReads, seen_table};
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;
use marigram_reference::{NewReferenceTable, ReferenceTable, ReferenceTransaction};
use marigram_service::{
    Answer, ServiceError, Session, SessionTransaction, TransactionStep, run_blocking,
};
use std::collections::BTreeSet;
use std::sync::Arc;

impl SqlService {
    /// Begins, ends or divides the transaction block of a session.
    pub(super) async fn transaction_step(
        &self,
        session: &mut Session,
        step: TransactionStep,
    ) -> SqlResult<()> {
        let block = session.transaction.as_ref();
        let block: Option<Arc<TransactionBlock>> = block.and_then(SessionTransaction::downcast);
        let Some(block) = block else {
            if let TransactionStep::Begin { is_serializable } = step {
                let is_serializable = is_serializable.unwrap_or(session.default_serializable);
                let block = Arc::new(TransactionBlock::new(is_serializable));
                session.transaction = Some(SessionTransaction::new(block));
            }
            // Otherwise nothing has begun that could end.
            return Ok(());
        };
        match step {
            TransactionStep::Begin { .. } => Ok(()),
            TransactionStep::Commit => {
                session.transaction = None;
                self.inner.workers.commit(move || block.end(true)).await
            }
            TransactionStep::RollBack => {
                session.transaction = None;
                self.inner.workers.block(move || block.end(false)).await
            }
            TransactionStep::Savepoint(name) => {
                self.inner
                    .workers
                    .block(move || block.set_savepoint(&name))
                    .await
            }
            TransactionStep::Release(name) => {
                self.inner.workers.block(move || block.release(&name)).await
            }
            TransactionStep::RollBackTo(name) => {
                self.inner
                    .workers
                    .block(move || block.roll_back_to(&name))
                    .await
            }
        }
    }

    /// Executes a command that changes definitions or all rows of reference tables; `None` if it does not.
    pub(super) async fn change_reference_tables(
        &self,
        session: &Session,
        command: &Command,
    ) -> SqlResult<Option<Answer>> {
        if !self.inner.concerns_reference_tables(session, command) {
            return Ok(None);
        }
        let (inner, session, command) = (Arc::clone(&self.inner), session.clone(), command.clone());
        let timeout = session.statement_timeout;
        let work = async move { inner.change_references(&session, command).await };
        let done = self.inner.workers.run(timeout, work).await?;
        Ok(Some(done.into()))
    }

    /// Whether what a statement changes stays when its transaction block is rolled back.
    pub(super) fn keeps_its_changes(&self, session: &Session, command: &Command) -> bool {
        if matches!(command, Command::Set { .. } | Command::Use(_)) || only_reads(command) {
            return false;
        }
        match command {
            Command::Plan(statement, _) => {
                let Statement::Statement(statement) = &**statement else {
                    return true;
                };
                let target = changed_table(statement);
                target.is_none_or(|(it, _)| self.inner.reference_table(session, &it).is_none())
            }
            Command::DropTable { targets, .. } | Command::Truncate { targets, .. } => targets
                .iter()
                .any(|target| self.inner.reference_table(session, target).is_none()),
            other => !self.inner.concerns_reference_tables(session, other),
        }
    }
}

impl SqlServiceInner {
    /// The reference table that a name stands for in a session.
    pub(super) fn reference_table(
        &self,
        session: &Session,
        target: &TableReferenceName,
    ) -> Option<Arc<ReferenceTable>> {
        let database = target.database.as_ref().unwrap_or(&session.database);
        if !session.rights.see(database) {
            return None;
        }
        seen_table(&self.reference, database, &target.table)
    }

    fn concerns_reference_tables(&self, session: &Session, command: &Command) -> bool {
        let is_reference = |target| self.reference_table(session, target).is_some();
        match command {
            Command::Reference(ReferenceStatement::Change { target, .. }) => is_reference(target),
            Command::Reference(_) => true,
            Command::DropTable { targets, .. }
            | Command::Truncate { targets, .. }
            | Command::Maintain { targets, .. } => targets.iter().any(is_reference),
            _ => false,
        }
    }

    /// Changes reference tables; all of it, or nothing. Other tables that a DROP TABLE or TRUNCATE names follow.
    async fn change_references(
        self: Arc<Self>,
        session: &Session,
        command: Command,
    ) -> SqlResult<StatementDone> {
        if let Command::Maintain { tag, .. } = command {
            let notice = "reference tables need no maintenance".to_owned();
            return Ok(StatementDone::new(tag).telling(Some(notice)));
        }
        let reads = StatementReads::of_task()
            .ok_or_else(|| ServiceError::Internal("a change has no statement".to_owned()))?;
        let (state, session) = (self.contexts.state(session)?, session.clone());
        let guard = ChangeGuard::begin(&reads).await?;
        let (work, transaction) = (Arc::clone(&self), Arc::clone(&guard.transaction));
        let change = move || {
            let context = ReferenceContext {
                inner: &work,
                session: &session,
                state: &state,
                transaction: &transaction,
            };
            context.change(&command)
        };
        let (done, rest) = run_blocking(change).await??;
        guard.commit().await?;
        let Some((session, command)) = rest else {
            return Ok(done);
        };
        let work = Arc::clone(&self);
        let also = move || work.change(&session, &command);
        self.workers.block(also).await
    }
}

/// What a change of reference tables needs.
struct ReferenceContext<'a> {
    inner: &'a SqlServiceInner,
    session: &'a Session,
    state: &'a SessionState,
    transaction: &'a ReferenceTransaction,
}

/// What is done, and what is left to do to tables of series.
type ChangeAndRest = (StatementDone, Option<(Session, Command)>);

impl ReferenceContext<'_> {
    fn database(&self, target: &TableReferenceName) -> String {
        let database = target.database.as_ref();
        database.unwrap_or(&self.session.database).clone()
    }

    fn change(&self, command: &Command) -> SqlResult<ChangeAndRest> {
        match command {
            Command::Reference(statement) => Ok((self.define(statement)?, None)),
            Command::DropTable {
                targets,
                if_exists,
                cascades,
            } => {
                let mut rest = Vec::new();
                for target in targets {
                    let database = self.database(target);
                    let name = &target.table;
                    if !self.transaction.drop_table(&database, name, *cascades)? {
                        rest.push(target.clone());
                    }
                }
                self.check_rest(&rest, *if_exists)?;
                let rest = (!rest.is_empty()).then(|| {
                    let rest = Command::DropTable {
                        targets: rest,
                        if_exists: *if_exists,
                        cascades: *cascades,
                    };
                    (self.session.clone(), rest)
                });
                Ok((StatementDone::new("DROP TABLE"), rest))
            }
            Command::Truncate {
                targets,
                restarts_identity,
                cascades,
            } => self.truncate(targets, *restarts_identity, *cascades),
            other => Err(ServiceError::Internal(format!("{other:?} changes nothing")).into()),
        }
    }

    /// Refuses a statement before it changes anything, if it names other tables that do not exist, or views.
    fn check_rest(&self, rest: &[TableReferenceName], if_exists: bool) -> SqlResult<()> {
        for target in rest {
            match self
                .inner
                .engine
                .table(&self.database(target), &target.table)
            {
                Ok(table) if table.rollup.is_none() && table.view.is_none() => {}
                Ok(_) => {
                    let message = format!("'{}' is a view", target.table);
                    return Err(SqlError::named("42809", &target.table, message));
                }
                Err(_) if if_exists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn truncate(
        &self,
        targets: &[TableReferenceName],
        restarts_identity: bool,
        cascades: bool,
    ) -> SqlResult<ChangeAndRest> {
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        for target in targets {
            match self
                .transaction
                .table(&self.database(target), &target.table)
            {
                Some(table) => own.push(table),
                None => rest.push(target.clone()),
            }
        }
        self.check_rest(&rest, false)?;
        let mut notices = Vec::new();
        if cascades {
            for table in self.referring_tables(&own) {
                notices.push(format!("truncate cascades to table \"{}\"", table.name));
                own.push(table);
            }
        }
        // Tables that refer to others first: several may be emptied together.
        let mut left = own;
        while !left.is_empty() {
            let refers = |to: &ReferenceTable| {
                let others = left.iter().filter(|table| table.id != to.id);
                let mut keys = others.flat_map(|table| &table.foreign_keys);
                keys.any(|key| key.parent == to.id)
            };
            let next = left.iter().position(|table| !refers(table)).unwrap_or(0);
            let table = left.swap_remove(next);
            self.transaction.truncate(&table, restarts_identity)?;
        }
        let rest = (!rest.is_empty()).then(|| {
            let rest = Command::Truncate {
                targets: rest,
                restarts_identity,
                cascades,
            };
            (self.session.clone(), rest)
        });
        let done = StatementDone::new("TRUNCATE TABLE").telling(notices);
        Ok((done, rest))
    }

    /// The other tables that refer to some tables, and those that refer to them.
    fn referring_tables(&self, to: &[Arc<ReferenceTable>]) -> Vec<Arc<ReferenceTable>> {
        let databases: BTreeSet<&str> = to.iter().map(|table| table.database.as_str()).collect();
        let all = databases.into_iter();
        let all = all.flat_map(|database| self.transaction.tables(database));
        let all: Vec<Arc<ReferenceTable>> = all.collect();
        let mut known: BTreeSet<_> = to.iter().map(|table| table.id).collect();
        let mut found = Vec::new();
        loop {
            let next = all.iter().find(|table| {
                let mut keys = table.foreign_keys.iter();
                !known.contains(&table.id) && keys.any(|key| known.contains(&key.parent))
            });
            let Some(next) = next else {
                return found;
            };
            known.insert(next.id);
            found.push(Arc::clone(next));
        }
    }

    fn define(&self, statement: &ReferenceStatement) -> SqlResult<StatementDone> {
        match statement {
            ReferenceStatement::CreateTable {
                new,
                database,
                if_not_exists,
                is_temporary,
            } => {
                if *is_temporary {
                    let message = "temporary tables are not supported; CREATE TABLE within a transaction, \
                                   and ROLLBACK, or DROP TABLE it";
                    return Err(SqlError::unsupported(message));
                }
                let database = database.as_ref().unwrap_or(&self.session.database);
                self.create(new, database, *if_not_exists)
            }
            ReferenceStatement::Change {
                target, reference, ..
            } => {
                let change = reference.clone().map_err(SqlError::from)?;
                self.change_table(target, change)
            }
            ReferenceStatement::DropIndex { names, if_exists } => {
                let mut done = StatementDone::new("DROP INDEX");
                for name in names {
                    let database = self.database(name);
                    if self.transaction.drop_index(&database, &name.table)? {
                        continue;
                    }
                    if !*if_exists {
                        return Err(missing_index(&name.table));
                    }
                    done = done.telling([missing_already("index", &name.table)]);
                }
                Ok(done)
            }
        }
    }

    fn create(
        &self,
        new: &NewReferenceTable,
        database: &str,
        if_not_exists: bool,
    ) -> SqlResult<StatementDone> {
        let done = StatementDone::new("CREATE TABLE");
        let engine = &self.inner.engine;
        engine.tables(database)?;
        let exists = engine.table(database, &new.name).is_ok()
            || self.transaction.table(database, &new.name).is_some();
        if exists && if_not_exists {
            return Ok(done.telling(Some(exists_already(&new.name))));
        }
        if exists {
            let message = format!("relation \"{}\" already exists", new.name);
            return Err(SqlError::named("42P07", &new.name, message));
        }
        let new = NewReferenceTable {
            database: database.to_owned(),
            ..new.clone()
        };
        definitions::check_defaults(self.state, &new.columns)?;
        let table = self.transaction.create_table(&new)?;
        // Before the table is committed: from then on, the file must not be missing.
        engine.note_reference_tables()?;
        // From now on the name is this table's; somebody may have taken it just before.
        if engine.table(database, &new.name).is_ok() {
            let message = format!("relation \"{}\" already exists", new.name);
            return Err(SqlError::named("42P07", &new.name, message));
        }
        definitions::check_conditions(self.state, &table)?;
        Ok(done)
    }

    fn change_table(
        &self,
        target: &TableReferenceName,
        change: ReferenceChange,
    ) -> SqlResult<StatementDone> {
        let (database, mut name) = (self.database(target), target.table.clone());
        let changes = match change {
            ReferenceChange::Alter(changes) => changes,
            ReferenceChange::CreateIndex {
                name: index,
                columns,
                is_unique,
                if_not_exists,
            } => {
                let done = StatementDone::new("CREATE INDEX");
                if columns.is_empty() {
                    let notice =
                        "the index was not made: only columns are indexed, by their values";
                    return Ok(done.telling(Some(notice.to_owned())));
                }
                self.transaction.create_index(
                    &database,
                    &name,
                    index,
                    &columns,
                    is_unique,
                    if_not_exists,
                )?;
                return Ok(done);
            }
        };
        for change in &changes {
            let table = self.transaction.table(&database, &name).ok_or_else(|| {
                SqlError::named("42P01", &name, format!("table '{name}' does not exist"))
            })?;
            if let marigram_reference::ReferenceAlteration::Rename(to) = change {
                self.transaction.alter_table(&database, &name, change)?;
                if self.inner.engine.table(&database, to).is_ok() {
                    let message = format!("relation \"{to}\" already exists");
                    return Err(SqlError::named("42P07", to, message));
                }
                name.clone_from(to);
                continue;
            }
            definitions::alter(self.state, self.transaction, &table, change)?;
        }
        Ok(StatementDone::new("ALTER TABLE"))
    }
}
