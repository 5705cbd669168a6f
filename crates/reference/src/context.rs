//! What the operations of a transaction work with.

use crate::catalog::ReferenceCatalog;
use crate::error::Result;
use crate::identity::Identities;
use rusqlite::Connection;

/// A transaction's connection, its tables, and the numbers of identity columns.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) catalog: &'a ReferenceCatalog,
    pub(crate) identities: &'a Identities,
}

/// Runs changes so that all of them happen or none.
pub(crate) fn atomically<T>(
    connection: &Connection,
    changes: impl FnOnce() -> Result<T>,
) -> Result<T> {
    run(connection, "SAVEPOINT call")?;
    let outcome = changes();
    if outcome.is_ok() {
        run(connection, "RELEASE call")?;
    } else if !connection.is_autocommit() {
        // A full disk ends the whole transaction; then there is nothing to go back to.
        run(connection, "ROLLBACK TO call")?;
        run(connection, "RELEASE call")?;
    }
    outcome
}

/// Runs a statement without rows from the cache of statements.
pub(crate) fn run(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.raw_execute()?;
    Ok(())
}
