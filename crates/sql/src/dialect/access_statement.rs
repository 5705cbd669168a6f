//! Parsed statements about users, roles, grants and tokens.

use marigram_access::DatabasePrivileges;
use std::fmt;

/// A password in a statement. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StatementPassword(pub String);

impl fmt::Debug for StatementPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatementPassword")
    }
}

/// What `CREATE USER` and `ALTER USER` set; `None` leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserOptions {
    /// The password.
    pub password: Option<StatementPassword>,
    /// Whether the user may do everything.
    pub is_administrator: Option<bool>,
    /// Whether the user can log in.
    pub can_log_in: Option<bool>,
    /// Roles of a new user.
    pub roles: Vec<String>,
}

/// When a new token ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenEnd {
    /// At a time, as it is written.
    At(String),
    /// After a time, ns.
    After(i64),
}

/// A parsed statement about access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessStatement {
    /// `CREATE USER`, `CREATE ROLE`
    CreateUser {
        /// Name.
        name: String,
        /// Its settings; whether it can log in is set.
        options: UserOptions,
        /// Whether it may exist.
        if_not_exists: bool,
    },
    /// `ALTER USER`, `ALTER ROLE`
    AlterUser {
        /// Name.
        name: String,
        /// What changes.
        options: UserOptions,
    },
    /// `DROP USER`, `DROP ROLE`
    DropUser {
        /// Names.
        names: Vec<String>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `GRANT … ON`, or `REVOKE`.
    Privileges {
        /// Whether they are given, not taken.
        is_grant: bool,
        /// What.
        privileges: DatabasePrivileges,
        /// The databases; the session's if there is none.
        databases: Vec<String>,
        /// Users and roles.
        users: Vec<String>,
    },
    /// `GRANT role TO`, or `REVOKE`.
    Membership {
        /// Whether it is given, not taken.
        is_grant: bool,
        /// Roles.
        roles: Vec<String>,
        /// Who gets their rights, or loses them.
        users: Vec<String>,
    },
    /// `CREATE TOKEN`
    CreateToken {
        /// Its owner; the session's user if there is none.
        owner: Option<String>,
        /// What it may do; whatever its owner may do if there is nothing.
        scope: Vec<(String, DatabasePrivileges)>,
        /// When it ends.
        end: Option<TokenEnd>,
        /// What it is for.
        comment: String,
    },
    /// `DROP TOKEN`
    DropToken(u64),
    /// `SHOW USERS`
    ShowUsers,
    /// `SHOW GRANTS [FOR user]`
    ShowGrants(Option<String>),
    /// `SHOW TOKENS`
    ShowTokens,
}
