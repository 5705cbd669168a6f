//! What a statement runs with, and its errors in IoTDB's words and numbers.

use marigram_access::DatabasePrivileges;
use marigram_engine::Engine;
use marigram_influx::Budget;
use marigram_iotdb::{IotDbFault, TreeSqlContext};
use marigram_service::{ServiceError, Session};
use marigram_sql::front_end::{StatementContext, StatementRows};
use marigram_sql::{SqlError, SqlResult};

/// What a statement runs with.
pub(crate) struct TreeRun<'a> {
    pub(crate) context: &'a StatementContext,
    /// The memory of the statement.
    pub(crate) budget: Budget,
    /// The time and the zone of the statement.
    pub(crate) times: TreeSqlContext,
}

impl<'a> TreeRun<'a> {
    /// What a statement of this context runs with.
    ///
    /// # Errors
    /// If there is no such time zone.
    pub(crate) fn new(context: &'a StatementContext) -> SqlResult<Self> {
        let now_ms = context.engine().now_ns().div_euclid(1_000_000);
        let zone = &context.session().time_zone;
        Ok(Self {
            context,
            budget: Budget::new(context.memory_pool()),
            times: TreeSqlContext::for_zone(now_ms, zone).map_err(fault)?,
        })
    }

    pub(crate) fn engine(&self) -> &'a Engine {
        self.context.engine()
    }

    pub(crate) fn session(&self) -> &'a Session {
        self.context.session()
    }

    /// Whether the client may do that in a database.
    pub(crate) fn may(&self, database: &str, wanted: DatabasePrivileges) -> bool {
        self.session().rights.allow(database, wanted)
    }

    /// Refuses what the client may not do in a database.
    ///
    /// # Errors
    /// Forbidden.
    pub(crate) fn check(&self, database: &str, wanted: DatabasePrivileges) -> SqlResult<()> {
        if self.may(database, wanted) {
            return Ok(());
        }
        let message = format!(
            "No permissions for this operation, please add privilege {wanted} on {database}"
        );
        Err(ServiceError::Forbidden(message).into())
    }

    /// Refuses what only administrators may do.
    ///
    /// # Errors
    /// Forbidden.
    pub(crate) fn check_administrator(&self, what: &str) -> SqlResult<()> {
        if self.session().rights.is_administrator {
            return Ok(());
        }
        let message = format!(
            "No permissions for this operation, please add privilege MANAGE_DATABASE: only an \
             administrator {what}"
        );
        Err(ServiceError::Forbidden(message).into())
    }

    /// Refuses statements that change something where only reading is allowed.
    ///
    /// # Errors
    /// `ChangesRefused`.
    pub(crate) fn check_changes(&self) -> SqlResult<()> {
        if !self.session().read_only {
            return Ok(());
        }
        let message = "the statement changes what is stored; only reading is allowed here";
        Err(ServiceError::ChangesRefused(message.to_owned()).into())
    }
}

/// The error of a fault.
pub(crate) fn fault(fault: IotDbFault) -> SqlError {
    ServiceError::Invalid {
        message: fault.to_text(),
        position: None,
        sqlstate: fault.code.sqlstate(),
    }
    .into()
}

/// The error of a statement that means nothing.
pub(crate) fn semantic(message: impl Into<String>) -> SqlError {
    fault(IotDbFault::semantic(message))
}

/// The error of something that is not there.
pub(crate) fn unsupported(message: impl Into<String>) -> SqlError {
    fault(IotDbFault::unsupported(message))
}

/// An error of the server itself.
pub(crate) fn internal(message: &str) -> SqlError {
    ServiceError::Internal(message.to_owned()).into()
}

/// The answer of a statement without rows.
pub(crate) fn done(tag: &str, rows: u64) -> StatementRows {
    StatementRows::Done {
        tag: tag.to_owned(),
        rows,
        notices: Vec::new(),
    }
}
