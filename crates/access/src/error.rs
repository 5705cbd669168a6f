//! Why the catalog of access refuses a change, or bytes.

/// Why the catalog of access refuses a change, or bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A user or role of the name exists.
    #[error("the user or role '{0}' exists already")]
    Exists(String),
    /// There is no user or role of the name.
    #[error("there is no user or role '{0}'")]
    NoUser(String),
    /// There is no token of the number.
    #[error("there is no token {0}")]
    NoToken(u64),
    /// A name, a password or a date is not usable; the sentence says why.
    #[error("{0}")]
    Unusable(String),
    /// The change would leave users, but none who may administer the server.
    #[error(
        "'{0}' is the only administrator who can log in: make another user an administrator first"
    )]
    LastAdministrator(String),
    /// A role would contain itself.
    #[error("'{role}' already has the rights of '{member}': it cannot be granted to it")]
    Circle {
        /// The role that was to be granted.
        role: String,
        /// Who was to get it.
        member: String,
    },
    /// The catalog is full.
    #[error("there can be at most {max} {what}: remove some")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The bytes are not a catalog of access, or are damaged; the sentence says how.
    #[error("the catalog's users and tokens are damaged: {0}; restore the database from a backup")]
    Damaged(String),
}
