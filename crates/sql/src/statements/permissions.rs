//! What a command needs, and whether the session's client may do it.
//!
//! Invariant: a command that is not named here needs an administrator. Queries are checked when they
//! are planned (`catalog::plan_rights`), statements about users when they run.

use crate::access::{check_administrator, check_database, check_sight};
use crate::dialect::hypertable_functions::HypertableFunction;
use crate::dialect::statement::{Command, ReferenceStatement, ShowStatement, TableReferenceName};
use marigram_access::DatabasePrivileges;
use marigram_service::{ServiceError, Session};

/// Refuses a command that the session's client may not run.
///
/// # Errors
/// [`ServiceError::Forbidden`].
pub(crate) fn check(session: &Session, command: &Command) -> Result<(), ServiceError> {
    let rights = &session.rights;
    if rights.is_administrator {
        return Ok(());
    }
    let within = |target: &TableReferenceName, privileges| {
        let database = target.database.as_ref().unwrap_or(&session.database);
        check_database(rights, database, privileges)
    };
    let define = |target| within(target, DatabasePrivileges::ALL);
    match command {
        Command::Plan(..)
        | Command::Summarize(_)
        | Command::Access(_)
        | Command::Nothing(_)
        | Command::Transaction(..)
        | Command::Skipped { .. }
        | Command::Set { .. } => Ok(()),
        Command::Use(database) => check_sight(rights, database),
        Command::Show(show) => check_show(session, show),
        Command::CreateTable { target, .. }
        | Command::AlterTable { target, .. }
        | Command::CreateIndex { target, .. }
        | Command::RenameView { target, .. }
        | Command::CreateView { target, .. }
        | Command::AlterView { target, .. }
        | Command::CompactTable(target) => define(target),
        Command::Hypertable(statement) => {
            statement
                .calls
                .iter()
                .try_for_each(|call| match &call.target {
                    Some(target) if call.description.function == HypertableFunction::Refresh => {
                        within(target, DatabasePrivileges::WRITE)
                    }
                    Some(target) => define(target),
                    None => check_database(rights, &session.database, DatabasePrivileges::ALL),
                })
        }
        Command::CreatePlainView(view) => define(&view.target),
        Command::Reference(statement) => check_reference(session, statement),
        Command::CreateTableAs(asked) => {
            let database = asked.database.as_ref().unwrap_or(&session.database);
            check_database(rights, database, DatabasePrivileges::ALL)
        }
        Command::DropTable { targets, .. }
        | Command::DropPlainView { targets, .. }
        | Command::DropView { targets, .. } => targets.iter().try_for_each(define),
        Command::RefreshView(target) => within(target, DatabasePrivileges::WRITE),
        Command::Maintain { targets, .. } => targets
            .iter()
            .try_for_each(|target| within(target, DatabasePrivileges::READ)),
        Command::Truncate { targets, .. } => targets
            .iter()
            .try_for_each(|target| within(target, DatabasePrivileges::WRITE)),
        Command::CreateDatabase { .. } => check_administrator(rights, "CREATE DATABASE"),
        Command::DropDatabase { .. } => check_administrator(rights, "DROP DATABASE"),
        Command::Flush => check_administrator(rights, "FLUSH"),
        Command::Compact => check_administrator(rights, "COMPACT"),
        Command::CopyFrom(_) => check_administrator(rights, "COPY with a file of the server"),
    }
}

/// Whoever may define tables of series may define reference tables.
fn check_reference(session: &Session, statement: &ReferenceStatement) -> Result<(), ServiceError> {
    let define = |database: Option<&String>| {
        let database = database.unwrap_or(&session.database);
        check_database(&session.rights, database, DatabasePrivileges::ALL)
    };
    match statement {
        ReferenceStatement::CreateTable { database, .. } => define(database.as_ref()),
        ReferenceStatement::Change { target, .. } => define(target.database.as_ref()),
        ReferenceStatement::DropIndex { names, .. } => names
            .iter()
            .try_for_each(|name| define(name.database.as_ref())),
    }
}

fn check_show(session: &Session, show: &ShowStatement) -> Result<(), ServiceError> {
    let rights = &session.rights;
    let read = |database: Option<&String>| {
        let database = database.unwrap_or(&session.database);
        check_database(rights, database, DatabasePrivileges::READ)
    };
    match show {
        // It shows the databases of which the client may know.
        ShowStatement::Databases | ShowStatement::Variable(_) | ShowStatement::All => Ok(()),
        ShowStatement::Tables(database) | ShowStatement::Views(database) => read(database.as_ref()),
        ShowStatement::Columns(target)
        | ShowStatement::CreateTable(target)
        | ShowStatement::Segments(Some(target))
        | ShowStatement::Pages { target, .. } => read(target.database.as_ref()),
        ShowStatement::Segments(None) => check_administrator(rights, "SHOW SEGMENTS of all tables"),
        ShowStatement::Compactions => check_administrator(rights, "SHOW COMPACTIONS"),
    }
}
