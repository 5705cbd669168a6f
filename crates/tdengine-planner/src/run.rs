//! What a statement runs with: its context, database, times and rights, and errors with TDengine's
//! numbers.

pub(crate) mod catalog;

use crate::run::catalog::TaosCatalog;
use datafusion::execution::session_state::SessionState;
use marigram_access::DatabasePrivileges;
use marigram_engine::Engine;
use marigram_influx::Budget;
use marigram_service::ServiceError;
use marigram_sql::front_end::{StatementContext, StatementRows, ViewTables};
use marigram_sql::{SqlError, SqlResult};
use marigram_tdengine::ast::TaosName;
use marigram_tdengine::{TaosCode, TaosError, TaosPrecision, TimeSetting};
use std::sync::Arc;

/// Databases of the server that hold no rows of users.
pub(crate) const SYSTEM_DATABASES: [&str; 2] = ["information_schema", "performance_schema"];

/// What a statement runs with.
pub(crate) struct TaosRun<'a> {
    pub(crate) context: &'a StatementContext,
    pub(crate) catalog: Arc<TaosCatalog>,
    /// The text of the statement.
    pub(crate) sql: &'a str,
    /// The materialized views as tables.
    pub(crate) views: ViewTables,
    /// The memory of the statement.
    pub(crate) budget: Budget,
    /// The time at which it began, ns.
    pub(crate) now_ns: i64,
}

impl<'a> TaosRun<'a> {
    /// What a statement of this context runs with.
    ///
    /// # Errors
    /// If DataFusion's own parts cannot be set up.
    pub(crate) async fn new(
        context: &'a StatementContext,
        catalog: Arc<TaosCatalog>,
        sql: &'a str,
    ) -> SqlResult<Self> {
        let state = context.state(&context.session().database)?;
        let start = state.execution_props().query_execution_start_time;
        Ok(Self {
            context,
            catalog,
            sql,
            views: context.views_as_tables().await?,
            budget: Budget::new(context.memory_pool()),
            now_ns: start
                .and_then(|start| start.timestamp_nanos_opt())
                .unwrap_or_default(),
        })
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        self.context.engine()
    }

    /// DataFusion's state.
    ///
    /// # Errors
    /// If DataFusion's own parts cannot be set up.
    pub(crate) fn state(&self, database: &str) -> SqlResult<SessionState> {
        self.context.state(database)
    }

    /// The database of the request; it may be empty.
    pub(crate) fn current_database(&self) -> &str {
        &self.context.session().database
    }

    /// The database of a name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn database_of<'n>(&'n self, name: &'n TaosName) -> SqlResult<&'n str> {
        self.database_or_current(name.database.as_deref())
    }

    /// The named database, or that of the request.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn database_or_current<'n>(&'n self, name: Option<&'n str>) -> SqlResult<&'n str> {
        let database = name.unwrap_or_else(|| self.current_database());
        if database.is_empty() {
            return Err(fault(TaosCode::DatabaseNotSpecified));
        }
        self.check_database(database)?;
        Ok(database)
    }

    /// Fails unless there is such a database.
    ///
    /// # Errors
    /// TDengine's.
    pub(crate) fn check_database(&self, database: &str) -> SqlResult<()> {
        let is_system = SYSTEM_DATABASES.contains(&database);
        if is_system
            || self
                .engine()
                .databases()
                .iter()
                .any(|name| name == database)
        {
            return Ok(());
        }
        Err(fault(TaosCode::NoSuchDatabase))
    }

    /// Fails unless the client may read a database.
    ///
    /// # Errors
    /// [`ServiceError::Forbidden`].
    pub(crate) fn check_read(&self, database: &str) -> SqlResult<()> {
        self.check(database, DatabasePrivileges::READ)
    }

    /// Fails unless the client may write to a database.
    ///
    /// # Errors
    /// [`ServiceError::Forbidden`], and others if only reading is allowed.
    pub(crate) fn check_write(&self, database: &str) -> SqlResult<()> {
        self.check_changes()?;
        self.check(database, DatabasePrivileges::WRITE)
    }

    /// Fails unless the client may change the definitions of a database.
    ///
    /// # Errors
    /// [`ServiceError::Forbidden`], and others if only reading is allowed.
    pub(crate) fn check_define(&self, database: &str) -> SqlResult<()> {
        self.check_changes()?;
        self.check(database, DatabasePrivileges::ALL)
    }

    fn check_changes(&self) -> SqlResult<()> {
        if self.context.session().read_only {
            let message = "the session only reads".to_owned();
            return Err(ServiceError::ChangesRefused(message).into());
        }
        Ok(())
    }

    fn check(&self, database: &str, wanted: DatabasePrivileges) -> SqlResult<()> {
        let session = self.context.session();
        if session.rights.allow(database, wanted) {
            return Ok(());
        }
        let user = &session.identity.user;
        let message = format!("Permission denied: '{user}' needs {wanted} on '{database}'");
        Err(ServiceError::Forbidden(message).into())
    }

    /// How times of a database are read.
    pub(crate) fn setting(&self, precision: TaosPrecision) -> TimeSetting {
        let zone = &self.context.session().time_zone;
        TimeSetting::in_zone(self.now_ns, precision, zone)
    }
}

/// An error with the usual words of its number.
pub(crate) fn fault(code: TaosCode) -> SqlError {
    taos(TaosError::new(code))
}

/// An error about something.
pub(crate) fn fault_about(code: TaosCode, subject: &str) -> SqlError {
    taos(TaosError::about(code, subject))
}

/// The error for what this server does not have.
pub(crate) fn unsupported(what: &str) -> SqlError {
    taos(TaosError::unsupported(what))
}

/// An error of the language as one of the service.
pub(crate) fn taos(error: TaosError) -> SqlError {
    SqlError::invalid(error.code.sqlstate(), error.message)
}

/// The answer of a statement without rows.
pub(crate) fn done(tag: &str, rows: u64) -> StatementRows {
    StatementRows::Done {
        tag: tag.to_owned(),
        rows,
        notices: Vec::new(),
    }
}

/// For errors of DataFusion.
pub(crate) fn internal(message: impl Into<String>) -> SqlError {
    ServiceError::Internal(message.into()).into()
}
