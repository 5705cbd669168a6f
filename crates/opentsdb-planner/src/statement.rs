//! What a statement runs with, and its errors in OpenTSDB's words.

use marigram_influx::Budget;
use marigram_opentsdb::QueryFault;
use marigram_service::ServiceError;
use marigram_sql::front_end::{StatementContext, ViewTables};
use marigram_sql::{SqlError, SqlResult};

/// What a statement runs with.
pub(crate) struct OpenTsdbRun<'a> {
    pub(crate) context: &'a StatementContext,
    /// The materialized views as tables.
    pub(crate) views: ViewTables,
    /// The memory of the statement.
    pub(crate) budget: Budget,
}

impl<'a> OpenTsdbRun<'a> {
    /// What a statement of this context runs with.
    ///
    /// # Errors
    /// If the queries of views cannot be read.
    pub(crate) async fn new(context: &'a StatementContext) -> SqlResult<Self> {
        Ok(Self {
            context,
            views: context.views_as_tables().await?,
            budget: Budget::new(context.memory_pool()),
        })
    }

    /// The database of the request.
    pub(crate) fn database(&self) -> &'a str {
        &self.context.session().database
    }
}

/// The error of a fault.
pub(crate) fn invalid(fault: QueryFault) -> ServiceError {
    let message = match fault.details {
        Some(details) => format!("{}: {details}", fault.message),
        None => fault.message,
    };
    ServiceError::Invalid {
        message,
        position: None,
        sqlstate: "42601",
    }
}

/// The error of a name that nothing has.
pub(crate) fn no_such_name(kind: &str, name: &str) -> SqlError {
    SqlError::invalid("42P01", format!("No such name for '{kind}': '{name}'"))
}
