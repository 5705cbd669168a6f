//! What may be done in a database.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{BitAnd, BitOr};

/// A set of: read rows, write and delete rows, define tables and policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatabasePrivileges(u8);

impl DatabasePrivileges {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Read rows and schemas.
    pub const READ: Self = Self(1);
    /// Write and delete rows; writing may create tables and columns.
    pub const WRITE: Self = Self(2);
    /// All of it, and define: create, alter and drop tables, views and retention policies.
    pub const ALL: Self = Self(7);

    /// Whether everything in `other` is here, too.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is here and not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether no bit is set that this version does not know.
    pub(crate) const fn is_known(self) -> bool {
        self.0 & !Self::ALL.0 == 0
    }
}

impl BitOr for DatabasePrivileges {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for DatabasePrivileges {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Display for DatabasePrivileges {
    /// As InfluxQL's `SHOW GRANTS` has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            match (self.contains(Self::READ), self.contains(Self::WRITE)) {
                _ if self.contains(Self::ALL) => "ALL PRIVILEGES",
                (true, true) => "READ, WRITE",
                (true, false) => "READ",
                (false, true) => "WRITE",
                (false, false) => "NO PRIVILEGES",
            },
        )
    }
}

/// What a client may do, whoever it is and however it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessRights {
    /// Whether it may do everything, in every database and to the server.
    pub is_administrator: bool,
    /// Privileges by database; none in others.
    pub databases: BTreeMap<String, DatabasePrivileges>,
}

impl AccessRights {
    /// The rights of an administrator, and of everyone where there are no users.
    #[must_use]
    pub fn of_administrator() -> Self {
        Self {
            is_administrator: true,
            databases: BTreeMap::new(),
        }
    }

    /// What may be done in a database.
    #[must_use]
    pub fn within(&self, database: &str) -> DatabasePrivileges {
        if self.is_administrator {
            return DatabasePrivileges::ALL;
        }
        self.databases.get(database).copied().unwrap_or_default()
    }

    /// Whether anything may be done in a database, so that its tables may be known.
    #[must_use]
    pub fn see(&self, database: &str) -> bool {
        !self.within(database).is_empty()
    }

    /// Whether all of `wanted` may be done in a database.
    #[must_use]
    pub fn allow(&self, database: &str, wanted: DatabasePrivileges) -> bool {
        self.within(database).contains(wanted)
    }

    /// Adds privileges in a database.
    pub(crate) fn add(&mut self, database: &str, privileges: DatabasePrivileges) {
        let held = self.databases.entry(database.to_owned()).or_default();
        *held = *held | privileges;
    }
}
