//! Executes statements about users, roles, grants and tokens.
//!
//! Only administrators may, with three exceptions: a user who logged in with the password may change
//! it, may see its own grants and tokens, and may make and drop its own tokens.

use crate::access::{AccessControl, check_administrator, refused};
use crate::dialect::access_statement::{AccessStatement, StatementPassword, TokenEnd, UserOptions};
use crate::error::{SqlError, SqlResult, nearest};
use crate::tables::batches::{batch, text, texts};
use arrow::array::{ArrayRef, TimestampNanosecondArray, UInt64Array};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use marigram_access::{
    AccessCatalog, AccessError, AccessToken, AccessUser, DatabasePrivileges, PasswordVerifiers,
    TokenScope,
};
use marigram_model::suggested;
use marigram_pgtext::{ReferenceClock, TimeText};
use marigram_service::{IdentityProof, ServiceError, Session};
use std::sync::Arc;

/// What a statement about access answers.
#[derive(Debug)]
pub(crate) enum AccessAnswer {
    /// Rows.
    Rows(RecordBatch),
    /// A command tag, and notices.
    Done(&'static str, Vec<String>),
}

/// The columns of a statement's answer; `None` if it has no rows.
pub(crate) fn schema(statement: &AccessStatement) -> Option<SchemaRef> {
    let catalog = AccessCatalog::default();
    let rows = match statement {
        AccessStatement::ShowUsers => show_users(&catalog, |_| true),
        AccessStatement::ShowGrants(_) => show_grants(&[]),
        AccessStatement::ShowTokens => show_tokens(&catalog, |_| true),
        AccessStatement::CreateToken { .. } => shown_token(0, ""),
        _ => return None,
    };
    rows.ok().map(|rows| rows.schema())
}

/// Executes a statement about access. Blocks. `now_ns` is the time, ns since the Unix epoch.
///
/// # Errors
/// If the session's client may not do it, or the catalog refuses.
pub(crate) fn execute(
    access: &AccessControl,
    session: &Session,
    statement: &AccessStatement,
    now_ns: i64,
) -> SqlResult<AccessAnswer> {
    check(access, session, statement)?;
    let own = &session.identity.user;
    let is_administrator = session.rights.is_administrator;
    let is_own = |user: &str| is_administrator || user == own;
    let done = |tag| Ok(AccessAnswer::Done(tag, Vec::new()));
    match statement {
        AccessStatement::CreateUser {
            name,
            options,
            if_not_exists,
        } => create_user(access, name, options, *if_not_exists),
        AccessStatement::AlterUser { name, options } => {
            alter_user(access, name, options)?;
            done("ALTER ROLE")
        }
        AccessStatement::DropUser { names, if_exists } => drop_users(access, names, *if_exists),
        AccessStatement::Privileges { .. } | AccessStatement::Membership { .. } => {
            done(change_grants(access, session, statement)?)
        }
        AccessStatement::CreateToken {
            owner,
            scope,
            end,
            comment,
        } => {
            let owner = owner.as_deref().unwrap_or(own);
            let end_ns = end.as_ref().map(|end| end_of(end, session, now_ns));
            let made = (now_ns, end_ns.transpose()?);
            let scope = scope_of(scope);
            let (number, secret) =
                access.change(|catalog| catalog.make_token(owner, comment, scope, made))?;
            Ok(AccessAnswer::Rows(shown_token(number, secret.text())?))
        }
        AccessStatement::DropToken(number) => {
            access.change(|catalog| {
                let found = catalog.tokens().find(|(known, _)| known == number);
                match found {
                    // Numbers of others' tokens are not told.
                    Some((_, token)) if is_own(&token.owner) => catalog.remove_token(*number),
                    _ => Err(AccessError::NoToken(*number)),
                }
            })?;
            done("DROP TOKEN")
        }
        AccessStatement::ShowUsers => Ok(AccessAnswer::Rows(
            access.read(|catalog| show_users(catalog, is_own))?,
        )),
        AccessStatement::ShowGrants(user) => {
            let grants = grants_of(access, user.as_deref(), is_own)?;
            Ok(AccessAnswer::Rows(show_grants(&grants)?))
        }
        AccessStatement::ShowTokens => Ok(AccessAnswer::Rows(
            access.read(|catalog| show_tokens(catalog, is_own))?,
        )),
    }
}

/// The notice for each database of a GRANT or REVOKE that does not exist: the rights hold once it does,
/// and a name that is misspelt gives none.
pub(crate) fn missing_databases(statement: &AccessStatement, known: &[String]) -> Vec<String> {
    let AccessStatement::Privileges { databases, .. } = statement else {
        return Vec::new();
    };
    let missing = databases.iter().filter(|name| !known.contains(name));
    missing
        .map(|name| {
            let near = nearest(name, known.iter().map(String::as_str));
            let near = near.map(|near| format!("; did you mean {}?", suggested(&near)));
            format!(
                "database '{name}' does not exist yet{}",
                near.unwrap_or_default()
            )
        })
        .collect()
}

/// `GRANT` and `REVOKE`; returns the command tag.
fn change_grants(
    access: &AccessControl,
    session: &Session,
    statement: &AccessStatement,
) -> SqlResult<&'static str> {
    match statement {
        AccessStatement::Privileges {
            is_grant,
            privileges,
            databases,
            users,
        } => {
            let own_database = [session.database.clone()];
            let databases = if databases.is_empty() {
                &own_database[..]
            } else {
                databases
            };
            access.change(|catalog| {
                for (user, database) in pairs(users, databases) {
                    if *is_grant {
                        catalog.grant(user, database, *privileges)?;
                    } else {
                        catalog.revoke(user, database, *privileges)?;
                    }
                }
                Ok(())
            })?;
            Ok(if *is_grant { "GRANT" } else { "REVOKE" })
        }
        AccessStatement::Membership {
            is_grant,
            roles,
            users,
        } => {
            access.change(|catalog| {
                for (user, role) in pairs(users, roles) {
                    if *is_grant {
                        catalog.grant_role(role, user)?;
                    } else {
                        catalog.revoke_role(role, user)?;
                    }
                }
                Ok(())
            })?;
            Ok(if *is_grant {
                "GRANT ROLE"
            } else {
                "REVOKE ROLE"
            })
        }
        _ => Err(ServiceError::Internal("the statement grants nothing".to_owned()).into()),
    }
}

/// Each of `users` with each of `others`.
fn pairs<'a>(
    users: &'a [String],
    others: &'a [String],
) -> impl Iterator<Item = (&'a String, &'a String)> {
    let with_others = move |user| others.iter().map(move |other| (user, other));
    users.iter().flat_map(with_others)
}

/// User, database and privileges, of one user or of all that are shown.
fn grants_of(
    access: &AccessControl,
    of: Option<&str>,
    is_shown: impl Fn(&str) -> bool,
) -> SqlResult<Vec<(String, String, String)>> {
    let grants = access.read(|catalog| {
        if of.is_some_and(|of| catalog.user(of).is_none()) {
            return None;
        }
        let users = catalog.users();
        let users = users.filter(|(name, _)| is_shown(name) && of.is_none_or(|of| of == *name));
        let mut grants = Vec::new();
        for (name, user) in users {
            for (database, held) in &user.grants {
                grants.push((name.to_owned(), database.clone(), held.to_string()));
            }
        }
        Some(grants)
    });
    let name = of.unwrap_or_default();
    grants.ok_or_else(|| refused(AccessError::NoUser(name.to_owned())).into())
}

/// Refuses a statement that the session's client may not run.
fn check(
    access: &AccessControl,
    session: &Session,
    statement: &AccessStatement,
) -> Result<(), ServiceError> {
    if session.rights.is_administrator {
        return Ok(());
    }
    let own = &session.identity.user;
    let is_in_person = matches!(session.identity.proof, IdentityProof::Password(_));
    let is_allowed = match statement {
        AccessStatement::AlterUser { name, options } => {
            let only_password = UserOptions {
                password: options.password.clone(),
                ..UserOptions::default()
            };
            is_in_person && name == own && *options == only_password
        }
        AccessStatement::CreateToken { owner, .. } => {
            is_in_person && owner.as_ref().is_none_or(|owner| owner == own)
        }
        // A token drops no others: whoever stole it could lock its owner's programs out.
        AccessStatement::DropToken(_) => is_in_person,
        AccessStatement::ShowUsers | AccessStatement::ShowTokens => true,
        AccessStatement::ShowGrants(user) => user.as_ref().is_none_or(|user| user == own),
        _ => false,
    };
    if is_allowed && !access.is_open() {
        return Ok(());
    }
    check_administrator(&session.rights, "this statement about users")
}

/// The verifiers of a password, which take some 30 ms.
fn verifiers(
    password: Option<&StatementPassword>,
) -> Result<Option<PasswordVerifiers>, ServiceError> {
    let made = password.map(|password| PasswordVerifiers::from_password(&password.0));
    made.transpose().map_err(refused)
}

fn create_user(
    access: &AccessControl,
    name: &str,
    options: &UserOptions,
    if_not_exists: bool,
) -> SqlResult<AccessAnswer> {
    const TAG: &str = "CREATE ROLE";
    let exists = access.read(|catalog| catalog.user(name).is_some());
    if exists && if_not_exists {
        let notice = format!("the user or role '{name}' exists already, and nothing was done");
        return Ok(AccessAnswer::Done(TAG, vec![notice]));
    }
    let was_open = access.is_open();
    let user = AccessUser {
        can_log_in: options.can_log_in.unwrap_or_default(),
        is_administrator: options.is_administrator.unwrap_or_default(),
        password: verifiers(options.password.as_ref())?,
        roles: options.roles.iter().cloned().collect(),
        ..AccessUser::default()
    };
    let is_closed = access.change(|catalog| {
        catalog.create_user(name, user)?;
        Ok(catalog.close())
    })?;
    let notices = was_open.then(|| said_of_opening(is_closed));
    Ok(AccessAnswer::Done(TAG, notices.into_iter().collect()))
}

/// What the creation of a user means for clients of a server that was open.
fn said_of_opening(is_closed: bool) -> String {
    if is_closed {
        "from now on, clients must log in, also those that are connected".to_owned()
    } else {
        "clients need not log in until there is an administrator with a password: CREATE USER name \
         WITH PASSWORD '…' SUPERUSER"
            .to_owned()
    }
}

fn alter_user(access: &AccessControl, name: &str, options: &UserOptions) -> SqlResult<()> {
    let password = verifiers(options.password.as_ref())?;
    access.change(|catalog| {
        if let Some(password) = password {
            catalog.set_password(name, password)?;
        }
        // First what gives rights: somebody must always be an administrator.
        if let Some(is_administrator) = options.is_administrator {
            catalog.set_administrator(name, is_administrator)?;
        }
        if let Some(can_log_in) = options.can_log_in {
            catalog.set_login(name, can_log_in)?;
        }
        catalog.close();
        Ok(())
    })?;
    Ok(())
}

fn drop_users(
    access: &AccessControl,
    names: &[String],
    if_exists: bool,
) -> SqlResult<AccessAnswer> {
    let mut notices = Vec::new();
    access.change(|catalog| {
        for name in names {
            if if_exists && catalog.user(name).is_none() {
                notices.push(format!("there is no user or role '{name}'"));
                continue;
            }
            catalog.remove_user(name)?;
        }
        Ok(())
    })?;
    if access.is_open() {
        notices.push(
            "there are no users any more: clients on this machine may do everything, and others \
             nothing"
                .to_owned(),
        );
    }
    Ok(AccessAnswer::Done("DROP ROLE", notices))
}

fn end_of(end: &TokenEnd, session: &Session, now_ns: i64) -> SqlResult<i64> {
    let invalid = |error: &dyn std::fmt::Display| SqlError::invalid("22007", error.to_string());
    match end {
        TokenEnd::After(ns) => now_ns
            .checked_add(*ns)
            .ok_or_else(|| invalid(&"the token would end after the year 2262")),
        TokenEnd::At(text) => {
            let clock = ReferenceClock::new(now_ns, &session.time_zone);
            let clock = clock.map_err(|error| invalid(&error))?;
            let time = TimeText::parse(text, &clock).map_err(|error| invalid(&error))?;
            time.utc_ns(&clock).map_err(|error| invalid(&error))
        }
    }
}

fn scope_of(scope: &[(String, DatabasePrivileges)]) -> TokenScope {
    if scope.is_empty() {
        return TokenScope::Owner;
    }
    let mut databases = std::collections::BTreeMap::new();
    for (database, privileges) in scope {
        let held: &mut DatabasePrivileges = databases.entry(database.clone()).or_default();
        *held = *held | *privileges;
    }
    TokenScope::Databases(databases)
}

fn shown_token(number: u64, secret: &str) -> SqlResult<RecordBatch> {
    let number: ArrayRef = Arc::new(UInt64Array::from(vec![number]));
    batch(vec![
        ("number", number),
        ("token", text([secret.to_owned()])),
    ])
}

fn show_users(catalog: &AccessCatalog, is_shown: impl Fn(&str) -> bool) -> SqlResult<RecordBatch> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let users: Vec<_> = catalog.users().filter(|(name, _)| is_shown(name)).collect();
    let column = |value: &dyn Fn(&str, &AccessUser) -> String| -> Vec<String> {
        users.iter().map(|(name, user)| value(name, user)).collect()
    };
    texts(vec![
        ("user_name", column(&|name, _| name.to_owned())),
        ("can_log_in", column(&|_, user| yes(user.can_log_in))),
        (
            "is_administrator",
            column(&|_, user| yes(user.is_administrator)),
        ),
        (
            "has_password",
            column(&|_, user| yes(user.password.is_some())),
        ),
        (
            "roles",
            column(&|_, user| {
                let roles: Vec<_> = user.roles.iter().map(String::as_str).collect();
                roles.join(", ")
            }),
        ),
    ])
}

fn show_grants(grants: &[(String, String, String)]) -> SqlResult<RecordBatch> {
    let column = |value: fn(&(String, String, String)) -> &String| -> Vec<String> {
        grants.iter().map(|grant| value(grant).clone()).collect()
    };
    texts(vec![
        ("user_name", column(|grant| &grant.0)),
        ("database_name", column(|grant| &grant.1)),
        ("privileges", column(|grant| &grant.2)),
    ])
}

fn show_tokens(catalog: &AccessCatalog, is_shown: impl Fn(&str) -> bool) -> SqlResult<RecordBatch> {
    let tokens: Vec<_> = catalog
        .tokens()
        .filter(|(_, token)| is_shown(&token.owner))
        .collect();
    let numbers: ArrayRef = Arc::new(
        tokens
            .iter()
            .map(|(number, _)| *number)
            .collect::<UInt64Array>(),
    );
    let scopes = tokens.iter().map(|(_, token)| match &token.scope {
        TokenScope::Databases(databases) => {
            let named = databases.iter();
            let named = named.map(|(database, held)| format!("{held} ON {database}"));
            named.collect::<Vec<_>>().join("; ")
        }
        _ => "as its owner".to_owned(),
    });
    let times = |time: &dyn Fn(&AccessToken) -> Option<i64>| -> ArrayRef {
        let times = tokens.iter().map(|(_, token)| time(token));
        Arc::new(
            times
                .collect::<TimestampNanosecondArray>()
                .with_timezone("UTC"),
        )
    };
    batch(vec![
        ("number", numbers),
        (
            "user_name",
            text(tokens.iter().map(|(_, token)| token.owner.clone())),
        ),
        ("scope", text(scopes)),
        (
            "comment",
            text(tokens.iter().map(|(_, token)| token.description.clone())),
        ),
        ("created", times(&|token| Some(token.created_ns))),
        ("expires", times(&|token| token.expires_ns)),
    ])
}
