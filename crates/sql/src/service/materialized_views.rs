//! Materialized views: their statements, and their refreshes.

use super::{SqlService, SqlServiceInner, plain_views};
use crate::dialect::parse;
use crate::dialect::statement::{Command, ShowStatement, TableReferenceName, ViewOptions};
use crate::error::{SqlError, SqlResult};
use crate::rollup::{self, RollupStatus};
use arrow::record_batch::RecordBatch;
use marigram_access::AccessRights;
use marigram_engine::{EngineError, TableChange};
use marigram_model::{Rollup, TableSchema};
use marigram_service::{Identity, Session, WriteStep, write_blocking};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The interval between checks for views whose refresh is due.
const TICK: Duration = Duration::from_millis(500);
/// The user who refreshes views.
const USER: &str = "marigram";

/// A parsed `CREATE MATERIALIZED VIEW`.
pub(super) struct CreateMaterializedView {
    pub(super) database: String,
    pub(super) name: String,
    pub(super) if_not_exists: bool,
    pub(super) options: ViewOptions,
    pub(super) query: String,
    pub(super) with_data: bool,
    /// What the client may do.
    pub(super) rights: Arc<AccessRights>,
}

impl SqlService {
    /// The result of SHOW for a view; `None` for anything else.
    pub(super) async fn show_view(
        &self,
        session: &Session,
        what: &ShowStatement,
    ) -> SqlResult<Option<RecordBatch>> {
        let (ShowStatement::Columns(target) | ShowStatement::CreateTable(target)) = what else {
            return Ok(None);
        };
        let database = target.database.as_ref().unwrap_or(&session.database);
        let found = self.inner.engine.table(database, &target.table);
        let Some(table) = found
            .ok()
            .filter(|table| table.rollup.is_some() || table.view.is_some())
        else {
            return Ok(None);
        };
        if let Some(view) = &table.view {
            if matches!(what, ShowStatement::CreateTable(_)) {
                return plain_views::statement(&table, view).map(Some);
            }
            let inner = Arc::clone(&self.inner);
            let read = async move {
                inner.read_views().await?;
                let view = inner.contexts.views().provider(&table)?;
                rollup::columns(&view.schema())
            };
            return self.inner.workers.run(None, read).await.map(Some);
        }
        if matches!(what, ShowStatement::CreateTable(_)) {
            return rollup::statement(&table).map(Some);
        }
        let inner = Arc::clone(&self.inner);
        let read = async move {
            inner.read_views().await?;
            let view = inner
                .contexts
                .rollup_definitions()
                .view(&inner.engine, table)?;
            rollup::columns(&view.schema())
        };
        self.inner.workers.run(None, read).await.map(Some)
    }
}

impl SqlServiceInner {
    /// Reads the queries of views that have not been read yet, so that statements can use the
    /// views.
    pub(super) async fn read_views(&self) -> SqlResult<()> {
        let rollup_definitions = self.contexts.rollup_definitions();
        for table in rollup_definitions.missing(&self.engine) {
            let Some(rollup) = &table.rollup else {
                continue;
            };
            let state = self
                .contexts
                .state(&Session::new(&table.database, Identity::owner(USER)))?;
            let shape = match rollup::read_stored(&state, &rollup.query, &table).await {
                Ok(Some(shape)) => Some(shape),
                Ok(None) => {
                    tracing::error!(view = %table.name, "its columns are not those of its query");
                    None
                }
                Err(error) => {
                    tracing::error!(view = %table.name, %error, "its query cannot be read");
                    None
                }
            };
            rollup_definitions.put(table.id, shape);
        }
        self.read_plain_views().await
    }

    /// `CREATE MATERIALIZED VIEW`
    pub(super) async fn create_view(&self, asked: CreateMaterializedView) -> SqlResult<()> {
        let CreateMaterializedView {
            database,
            name,
            if_not_exists,
            options,
            query,
            with_data,
            rights,
        } = asked;
        if self.engine.table(&database, &name).is_ok() {
            if if_not_exists {
                return Ok(());
            }
            let kind = "table";
            return Err(EngineError::AlreadyExists { kind, name }.into());
        }
        // With the rights of the client, which errors must not tell more than it may know.
        let session = Session {
            rights,
            ..Session::new(&database, Identity::owner(USER))
        };
        let state = self.contexts.state(&session)?;
        if let Command::Plan(statement, _) = parse::parse(&query)?
            && let Some(view) = self.views_in(&state, &session, &statement)?.first()
        {
            let message = format!(
                "materialized view '{name}' must read a table, and '{}' is a view; write its \
                 query instead",
                view.name
            );
            return Err(SqlError::named("0A000", &view.name, message));
        }
        let shape = rollup::read(&state, &query).await?;
        if shape.source.database != database {
            let message = format!(
                "materialized view '{name}' is in database '{database}', and its table is not: \
                 create it in '{}'",
                shape.source.database
            );
            return Err(SqlError::named("0A000", &name, message));
        }
        if let Some(column) = shape.repeated_name() {
            return Err(plain_views::repeated_column(&column, &name));
        }
        let mut spec = shape.table(&name, &query);
        spec.options = options.table.apply(&spec.options);
        spec.rollup = spec.rollup.map(|rollup| set(&options, &rollup));
        let engine = self.engine.clone();
        let create = move |_: &mut WriteStep| {
            Ok::<_, SqlError>(engine.create_table(&database, &spec, if_not_exists)?)
        };
        // A view whose first refresh is stopped stays, and is refreshed in the background.
        let table = write_blocking(!with_data, create).await?;
        self.contexts
            .rollup_definitions()
            .put(table.id, Some(shape));
        self.plans.clear();
        if with_data {
            self.refresh_view(&table).await?;
        }
        Ok(())
    }

    /// Brings a view up to date.
    pub(super) async fn refresh_view(&self, table: &Arc<TableSchema>) -> SqlResult<()> {
        while self.step(table).await? {}
        Ok(())
    }

    /// Runs one step of a refresh; returns whether there was one to run.
    async fn step(&self, table: &Arc<TableSchema>) -> SqlResult<bool> {
        self.read_views().await?;
        let Some(shape) = self.contexts.rollup_definitions().for_table(table) else {
            return Ok(false);
        };
        let state = self
            .contexts
            .state(&Session::new(&table.database, Identity::owner(USER)))?;
        self.refresher.step(&state, &shape, table).await
    }

    /// `ALTER MATERIALIZED VIEW`
    pub(super) fn alter_view(
        &self,
        session: &Session,
        target: &TableReferenceName,
        options: &ViewOptions,
    ) -> SqlResult<()> {
        if options.continuous == Some(false) {
            return Err(SqlError::unsupported(
                "a materialized view stays continuous; drop it, or SET a long refresh",
            ));
        }
        let table = self.view(session, target)?;
        let (database, name) = (table.database.as_str(), table.name.as_str());
        let options_now = options.table.apply(&table.options);
        if options_now != table.options {
            let change = TableChange::SetOptions(options_now);
            self.engine.alter_table(database, name, &change)?;
        }
        if let Some(rollup) = &table.rollup {
            let Rollup {
                refresh_ns, lag_ns, ..
            } = set(options, rollup);
            let change = TableChange::SetRefresh(refresh_ns, lag_ns);
            self.engine.alter_table(database, name, &change)?;
        }
        Ok(())
    }

    /// `DROP MATERIALIZED VIEW`
    pub(super) fn drop_view(
        &self,
        session: &Session,
        target: &TableReferenceName,
        if_exists: bool,
    ) -> SqlResult<()> {
        let table = match self.view(session, target) {
            Err(SqlError::Engine(EngineError::NotFound { kind: "table", .. })) if if_exists => {
                return Ok(());
            }
            table => table?,
        };
        self.engine
            .drop_table(&table.database, &table.name, if_exists)?;
        Ok(())
    }

    /// A view by name.
    pub(super) fn view(
        &self,
        session: &Session,
        target: &TableReferenceName,
    ) -> SqlResult<Arc<TableSchema>> {
        let database = target.database.as_ref().unwrap_or(&session.database);
        let table = self.engine.table(database, &target.table)?;
        if table.rollup.is_none() {
            let name = &target.table;
            let message = format!("'{name}' is a table, not a materialized view");
            return Err(SqlError::named("42809", name, message));
        }
        Ok(table)
    }

    /// The figures of every view.
    pub(super) fn views(&self) -> Vec<RollupStatus> {
        self.refresher.status()
    }
}

/// The settings of a rollup after a change.
fn set(options: &ViewOptions, rollup: &Rollup) -> Rollup {
    Rollup {
        refresh_ns: options.refresh_ns.unwrap_or(rollup.refresh_ns),
        lag_ns: options.lag_ns.unwrap_or(rollup.lag_ns),
        ..rollup.clone()
    }
}

/// Schedules the refreshes of views. It holds the service for one step at a time, and dropping the
/// service waits for that step: the data directory is free afterwards.
#[derive(Default)]
pub(super) struct RollupScheduler {
    state: Mutex<RollupSchedulerState>,
    idle: Condvar,
}

#[derive(Default)]
struct RollupSchedulerState {
    stops: bool,
    holds: bool,
}

/// The right to hold the service.
struct ServiceHold(Arc<RollupScheduler>);

impl RollupScheduler {
    /// The right to hold the service until it is dropped; `None` if the service is shutting down.
    fn hold(self: &Arc<Self>) -> Option<ServiceHold> {
        let mut state = self.state.lock();
        if state.stops {
            return None;
        }
        state.holds = true;
        drop(state);
        Some(ServiceHold(Arc::clone(self)))
    }

    /// Withdraws the right, and waits for its holder.
    fn stop(&self) {
        let mut state = self.state.lock();
        state.stops = true;
        while state.holds {
            self.idle.wait(&mut state);
        }
    }
}

impl Drop for ServiceHold {
    fn drop(&mut self) {
        self.0.state.lock().holds = false;
        self.0.idle.notify_all();
    }
}

/// The state that the clones of a service share besides the service itself.
pub(super) struct ServiceHandle(pub(super) Arc<RollupScheduler>);

impl Drop for ServiceHandle {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Keeps views up to date until the service is dropped.
pub(super) async fn keep(service: Weak<SqlServiceInner>, keeper: Arc<RollupScheduler>) {
    loop {
        tokio::time::sleep(TICK).await;
        let due = {
            let Some(_held) = keeper.hold() else {
                return;
            };
            let Some(inner) = service.upgrade() else {
                return;
            };
            inner.refresher.due()
        };
        for table in due {
            loop {
                let Some(held) = keeper.hold() else {
                    return;
                };
                let Some(inner) = service.upgrade() else {
                    return;
                };
                let (stepping, of_table) = (Arc::clone(&inner), Arc::clone(&table));
                let step = async move { stepping.step(&of_table).await };
                let done = inner.workers.run(None, step).await;
                drop(inner);
                drop(held);
                match done {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(view = %table.name, %error, "a refresh failed and will be tried again");
                        break;
                    }
                }
            }
        }
    }
}
