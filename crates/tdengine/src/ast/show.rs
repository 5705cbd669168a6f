//! SHOW.

use super::TaosName;

/// Which tables SHOW TABLES lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaosTableKind {
    /// All but super tables.
    All,
    /// Those without a super table.
    Normal,
    /// Those with one.
    Child,
}

/// What SHOW shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaosShow {
    /// DATABASES
    Databases,
    /// TABLES
    Tables {
        /// The database; that of the request if `None`.
        database: Option<String>,
        /// Which ones.
        kind: TaosTableKind,
        /// LIKE.
        pattern: Option<String>,
    },
    /// STABLES
    Stables {
        /// The database; that of the request if `None`.
        database: Option<String>,
        /// LIKE.
        pattern: Option<String>,
    },
    /// TAGS FROM table
    Tags(TaosName),
    /// TABLE TAGS FROM super table
    TableTags {
        /// The super table.
        stable: TaosName,
        /// The tags; all if empty.
        tags: Vec<String>,
    },
    /// CREATE DATABASE
    CreateDatabase(String),
    /// CREATE TABLE and CREATE STABLE
    CreateTable(TaosName),
    /// VARIABLES and LOCAL VARIABLES
    Variables {
        /// LIKE.
        pattern: Option<String>,
    },
    /// Something of a cluster: its name, in lower case.
    System(String),
}
