//! Statements about users and grants, and what a client needs for the statements of a request.

use crate::output::Listing;
use crate::schema::refused;
use crate::value::{InfluxValueType, Value};
use marigram_access::{
    AccessCatalog, AccessError, AccessRights, AccessUser, DatabasePrivileges, PasswordVerifiers,
};
use marigram_engine::Engine;
use marigram_influxql::ast::{Privilege, Statement};
use marigram_influxql::privileges::{Required, required_privileges};
use marigram_service::{ServiceError, Session};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{AccessControl, SqlResult};
use std::sync::Arc;

fn privileges_of(privilege: Privilege) -> DatabasePrivileges {
    match privilege {
        Privilege::Read => DatabasePrivileges::READ,
        Privilege::Write => DatabasePrivileges::WRITE,
        Privilege::All => DatabasePrivileges::ALL,
    }
}

/// Refuses a statement that the session's client may not run.
///
/// # Errors
/// [`ServiceError::Forbidden`], in InfluxDB's words.
pub(crate) fn check(session: &Session, statement: &Statement) -> Result<(), ServiceError> {
    let rights: &AccessRights = &session.rights;
    if rights.is_administrator {
        return Ok(());
    }
    for required in required_privileges(statement) {
        let missing = match required {
            Required::Admin => "admin privilege".to_owned(),
            Required::Database { name, privilege } => {
                let database = if name.is_empty() {
                    &session.database
                } else {
                    &name
                };
                // Without a database, the statement shows what the client may see, or fails.
                if database.is_empty() || rights.allow(database, privileges_of(privilege)) {
                    continue;
                }
                format!("{privilege} on {database}")
            }
        };
        return Err(ServiceError::Forbidden(format!(
            "error authorizing query: {} not authorized to execute statement '{statement}', \
             requires {missing}",
            session.identity.user
        )));
    }
    Ok(())
}

/// Executes a statement about users, waiting for the disk; `None` for other statements.
///
/// # Errors
/// Why the statement failed, in InfluxDB's words.
pub(crate) fn execute(
    access: &AccessControl,
    engine: &Engine,
    statement: &Statement,
) -> SqlResult<Option<StatementRows>> {
    match statement {
        Statement::CreateUser {
            name,
            password,
            admin,
        } => create_user(access, name, password.expose(), *admin)?,
        Statement::DropUser(name) => change(access, |catalog| catalog.remove_user(name))?,
        Statement::SetPassword { name, password } => {
            let verifiers = PasswordVerifiers::from_password(password.expose());
            let verifiers = verifiers.map_err(in_influxdbs_words)?;
            change(access, |catalog| catalog.set_password(name, verifiers))?;
        }
        Statement::Grant {
            privilege,
            database,
            user,
        } => match database {
            Some(database) => {
                check_database(access, engine, user, database)?;
                let privileges = privileges_of(*privilege);
                change(access, |catalog| catalog.grant(user, database, privileges))?;
            }
            None => change(access, |catalog| catalog.set_administrator(user, true))?,
        },
        Statement::Revoke {
            privilege,
            database,
            user,
        } => match database {
            Some(database) => {
                check_database(access, engine, user, database)?;
                let privileges = privileges_of(*privilege);
                change(access, |catalog| catalog.revoke(user, database, privileges))?;
            }
            None => change(access, |catalog| catalog.set_administrator(user, false))?,
        },
        Statement::ShowUsers => return show_users(access).map(Some),
        Statement::ShowGrants(user) => return show_grants(access, user).map(Some),
        _ => return Ok(None),
    }
    Ok(Some(StatementRows::Done {
        tag: String::new(),
        rows: 0,
        notices: Vec::new(),
    }))
}

/// Removes what users and tokens may do in a database that will be dropped.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn forget_database(
    access: &AccessControl,
    engine: &Engine,
    name: &str,
) -> SqlResult<()> {
    if !engine.databases().iter().any(|known| known == name) {
        return Ok(());
    }
    change(access, |catalog| {
        catalog.forget_database(name);
        Ok(())
    })
}

fn in_influxdbs_words(error: AccessError) -> marigram_sql::SqlError {
    match error {
        AccessError::NoUser(_) => refused("user not found"),
        AccessError::Exists(_) => refused("user already exists"),
        error => refused(error.to_string()),
    }
}

fn change(
    access: &AccessControl,
    change: impl FnOnce(&mut AccessCatalog) -> Result<(), AccessError>,
) -> SqlResult<()> {
    let mut why = None;
    let done =
        access.change(|catalog| change(catalog).inspect_err(|error| why = Some(error.clone())));
    match (done, why) {
        (Err(_), Some(error)) => Err(in_influxdbs_words(error)),
        (done, _) => Ok(done?),
    }
}

fn check_database(
    access: &AccessControl,
    engine: &Engine,
    user: &str,
    database: &str,
) -> SqlResult<()> {
    if access.read(|catalog| catalog.user(user).is_none()) {
        return Err(refused("user not found"));
    }
    if engine.databases().iter().any(|known| known == database) {
        return Ok(());
    }
    Err(refused(format!("database not found: {database}")))
}

/// As InfluxDB does, the same user with the same password may be created again.
fn create_user(
    access: &AccessControl,
    name: &str,
    password: &str,
    is_administrator: bool,
) -> SqlResult<()> {
    let known = access.read(|catalog| catalog.user(name).cloned());
    if let Some(known) = known {
        let verifiers = known.password.as_ref();
        let is_same = known.is_administrator == is_administrator
            && verifiers.is_some_and(|verifiers| verifiers.verify(password));
        return if is_same {
            Ok(())
        } else {
            Err(refused("user already exists"))
        };
    }
    let user = AccessUser {
        can_log_in: true,
        is_administrator,
        password: Some(PasswordVerifiers::from_password(password).map_err(in_influxdbs_words)?),
        ..AccessUser::default()
    };
    change(access, |catalog| {
        catalog.create_user(name, user)?;
        // As in InfluxDB, only the creation of an administrator says that clients must log in.
        if is_administrator {
            catalog.close();
        }
        Ok(())
    })
}

fn text(text: &str) -> Value {
    Value::String(Arc::from(text))
}

fn show_users(access: &AccessControl) -> SqlResult<StatementRows> {
    let mut listing = Listing::new(vec![
        ("user", InfluxValueType::String),
        ("admin", InfluxValueType::Boolean),
    ]);
    let users = access.read(|catalog| {
        let users = catalog.users().filter(|(_, user)| user.can_log_in);
        let users = users.map(|(name, user)| (name.to_owned(), user.is_administrator));
        users.collect::<Vec<_>>()
    });
    if users.is_empty() {
        listing.push(None, vec![Value::Null; 2]);
    }
    for (name, is_administrator) in users {
        listing.push(None, vec![text(&name), Value::Boolean(is_administrator)]);
    }
    listing.answer()
}

fn show_grants(access: &AccessControl, user: &str) -> SqlResult<StatementRows> {
    let grants = access.read(|catalog| catalog.user(user).map(|user| user.grants.clone()));
    let grants = grants.ok_or_else(|| refused("user not found"))?;
    let mut listing = Listing::new(vec![
        ("database", InfluxValueType::String),
        ("privilege", InfluxValueType::String),
    ]);
    if grants.is_empty() {
        listing.push(None, vec![Value::Null; 2]);
    }
    for (database, privileges) in grants {
        let privileges = match privileges.to_string() {
            // InfluxDB knows no more than both.
            both if both == "READ, WRITE" => "ALL PRIVILEGES".to_owned(),
            other => other,
        };
        listing.push(None, vec![text(&database), text(&privileges)]);
    }
    listing.answer()
}
