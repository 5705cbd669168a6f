//! [`SqlService`]: statements from parsing to their results.
//!
//! `query` takes a statement in, `direct` answers what needs no plan, `planned` runs the rest.

mod changes;
mod create_as;
mod direct;
mod explain_analyze;
pub mod front_end;
mod hypertables;
mod materialized_views;
mod plain_views;
mod planned;
mod query;
mod reference;

use crate::SqlOptions;
use crate::access::{AccessControl, check_sight};
use crate::error::{SqlError, SqlResult};
use crate::execution::context::SessionStates;
use crate::execution::thread_pool::StatementThreadPool;
use crate::plan_cache::{PlanCache, PlanCacheStats};
use crate::rollup::{RollupRefresher, RollupStatus};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use front_end::FrontEnd;
use marigram_access::AccessRights;
use marigram_engine::{Engine, OtherTables};
use marigram_reference::ReferenceStore;
use marigram_service::{DEFAULT_DATABASE, Identity, Result, ServiceError, Session};
use materialized_views::{RollupScheduler, ServiceHandle};
use std::fmt;
use std::sync::Arc;

/// Executes SQL over an engine. Cheap to clone.
#[derive(Clone)]
pub struct SqlService {
    /// Dropped with the last clone, before that clone releases the rest.
    _handle: Arc<ServiceHandle>,
    inner: Arc<SqlServiceInner>,
}

/// What the engine knows of reference tables.
#[derive(Debug)]
struct ReferenceNames(ReferenceStore);

impl OtherTables for ReferenceNames {
    fn is_taken(&self, database: &str, name: &str) -> bool {
        self.0.is_taken(database, name)
    }

    fn drop_database(&self, database: &str) -> std::result::Result<(), String> {
        let dropped = self.0.drop_database(database);
        dropped.map_err(|error| format!("reference tables of '{database}' remain: {error}"))
    }
}

struct SqlServiceInner {
    engine: Engine,
    /// Tables without times.
    reference: ReferenceStore,
    access: Arc<AccessControl>,
    options: SqlOptions,
    contexts: SessionStates,
    plans: PlanCache,
    refresher: RollupRefresher,
    workers: StatementThreadPool,
    front_ends: Vec<Arc<dyn FrontEnd>>,
}

impl fmt::Debug for SqlService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlService")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

impl SqlService {
    /// Creates a service over an open engine, with reference tables that stay in memory and go with
    /// it; for tests.
    ///
    /// # Errors
    /// If the spill directory cannot be used, or the operating system cannot create threads.
    pub fn new(engine: Engine, options: SqlOptions) -> Result<Self> {
        let reference = ReferenceStore::in_memory()
            .map_err(|error| ServiceError::Internal(error.to_string()))?;
        Self::with_front_ends(engine, reference, options, Vec::new())
    }

    /// Creates a service over an open engine and the reference tables of its data directory, with
    /// front ends for other languages besides SQL.
    ///
    /// # Errors
    /// Those of [`SqlService::new`].
    pub fn with_front_ends(
        engine: Engine,
        reference: ReferenceStore,
        options: SqlOptions,
        front_ends: Vec<Arc<dyn FrontEnd>>,
    ) -> Result<Self> {
        let workers = StatementThreadPool::new(options.target_partitions)
            .map_err(|error| ServiceError::Internal(format!("no threads for queries: {error}")))?;
        workers.start(crate::execution::context::warm);
        let access = Arc::new(AccessControl::open(engine.clone())?);
        engine
            .set_other_tables(Box::new(ReferenceNames(reference.clone())))
            .map_err(|error| SqlError::from(error).into_service(""))?;
        let tables = (engine.clone(), reference.clone());
        let contexts = SessionStates::new(tables, Arc::clone(&access), options.clone())
            .map_err(|error| error.into_service(""))?;
        let inner = Arc::new(SqlServiceInner {
            access,
            refresher: RollupRefresher::new(engine.clone()),
            engine,
            reference,
            options,
            contexts,
            plans: PlanCache::default(),
            workers,
            front_ends,
        });
        let keeper = Arc::new(RollupScheduler::default());
        if inner.options.refreshes_views {
            let (service, keeper) = (Arc::downgrade(&inner), Arc::clone(&keeper));
            inner
                .workers
                .keep(materialized_views::keep(service, keeper));
        }
        Ok(Self {
            _handle: Arc::new(ServiceHandle(keeper)),
            inner,
        })
    }

    pub(crate) fn front_ends(&self) -> &[Arc<dyn FrontEnd>] {
        &self.inner.front_ends
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Users, roles and tokens.
    pub fn access(&self) -> &AccessControl {
        &self.inner.access
    }

    /// The session with what its client may do now.
    pub(crate) fn refreshed(&self, session: &Session) -> Result<Session> {
        Ok(Session {
            rights: self.inner.access.rights(&session.identity)?,
            ..session.clone()
        })
    }

    pub(crate) fn options(&self) -> &SqlOptions {
        &self.inner.options
    }

    pub(crate) fn memory_pool(&self) -> &Arc<dyn MemoryPool> {
        self.inner.contexts.memory_pool()
    }

    pub(crate) fn session_state(&self, session: &Session) -> SqlResult<SessionState> {
        self.inner.contexts.state(session)
    }

    pub(crate) fn workers(&self) -> &StatementThreadPool {
        &self.inner.workers
    }

    /// The figures of the materialized views of all databases.
    pub fn views(&self) -> Vec<RollupStatus> {
        self.inner.views()
    }

    /// How often the plan cache was used.
    pub fn plan_cache(&self) -> PlanCacheStats {
        self.inner
            .plans
            .usage(self.inner.workers.inline_statements())
    }

    /// Creates a session in `database`, or in the default one.
    async fn begin(
        &self,
        database: Option<&str>,
        identity: &Identity,
        read_only: bool,
    ) -> Result<Session> {
        let rights = self.inner.access.rights(identity)?;
        let engine = self.inner.engine.clone();
        let named = database.map(str::to_owned);
        let found = self.inner.workers.block(move || {
            let name = match named {
                Some(name) => name,
                None if rights.see(DEFAULT_DATABASE) => DEFAULT_DATABASE.to_owned(),
                None => {
                    let first = engine.databases().into_iter().find(|name| rights.see(name));
                    first.unwrap_or_else(|| DEFAULT_DATABASE.to_owned())
                }
            };
            check_sight(&rights, &name)?;
            // The default database exists from the start; a read-only engine cannot create it.
            if !read_only && name == DEFAULT_DATABASE && !engine.databases().contains(&name) {
                engine.create_database(&name, true)?;
            }
            Ok((find_database(&engine, &rights, &name)?, rights))
        });
        match found.await.map_err(|error| error.into_service("")) {
            Ok((name, rights)) => Ok(Session {
                read_only,
                rights,
                ..Session::new(&name, identity.clone())
            }),
            Err(ServiceError::Invalid {
                message,
                sqlstate: "3D000",
                ..
            }) => Err(ServiceError::NotFound(message, "3D000")),
            Err(error) => Err(error),
        }
    }
}

/// Finds a database by name.
fn find_database(engine: &Engine, rights: &AccessRights, name: &str) -> SqlResult<String> {
    let mut databases = engine.databases();
    databases.retain(|name| rights.see(name));
    if databases.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    Err(SqlError::unknown(
        "3D000",
        "database",
        name,
        databases.iter().map(String::as_str),
    ))
}
