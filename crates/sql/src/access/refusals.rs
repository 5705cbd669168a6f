//! What a client without a right is told. The sentence names the right, and is the same whether a
//! database exists or not.

use marigram_access::{AccessError, AccessRights, DatabasePrivileges};
use marigram_service::ServiceError;

/// Refuses a client that is no administrator; `what` begins the sentence.
///
/// # Errors
/// [`ServiceError::Forbidden`].
pub fn check_administrator(rights: &AccessRights, what: &str) -> Result<(), ServiceError> {
    if rights.is_administrator {
        return Ok(());
    }
    let message = format!("permission denied: {what} needs an administrator");
    Err(ServiceError::Forbidden(message))
}

/// Refuses a client that lacks one of `privileges` in a database.
///
/// # Errors
/// [`ServiceError::Forbidden`].
pub fn check_database(
    rights: &AccessRights,
    database: &str,
    privileges: DatabasePrivileges,
) -> Result<(), ServiceError> {
    if rights.allow(database, privileges) {
        return Ok(());
    }
    let message =
        format!("permission denied: this needs {privileges} on the database '{database}'");
    Err(ServiceError::Forbidden(message))
}

/// Refuses a client that may do nothing in a database.
///
/// # Errors
/// [`ServiceError::Forbidden`].
pub(crate) fn check_sight(rights: &AccessRights, database: &str) -> Result<(), ServiceError> {
    if rights.see(database) {
        return Ok(());
    }
    let message = format!(
        "permission denied: you have no privileges on the database '{database}', if it exists"
    );
    Err(ServiceError::Forbidden(message))
}

/// The error of a change that the catalog of users refuses.
pub(crate) fn refused(error: AccessError) -> ServiceError {
    let message = error.to_string();
    let invalid = |sqlstate| ServiceError::Invalid {
        message: message.clone(),
        position: None,
        sqlstate,
    };
    match error {
        AccessError::Exists(_) => ServiceError::AlreadyExists(message, "42710"),
        AccessError::NoUser(_) | AccessError::NoToken(_) => {
            ServiceError::NotFound(message, "42704")
        }
        AccessError::LastAdministrator(_) => invalid("2BP01"),
        AccessError::Circle { .. } => invalid("0LP01"),
        AccessError::Full { .. } => invalid("54000"),
        AccessError::Damaged(_) => ServiceError::Internal(message),
        _ => invalid("22023"),
    }
}
