//! TimescaleDB's additions to SQL: the calls that change tables and views ([`calls`]) and
//! their [`arguments`], the settings in
//! `WITH (…)` and `SET (…)` ([`settings`]), the functions that describe tables ([`readings`]), and the
//! accessors of summaries ([`accessors`]).
//!
//! A hypertable is a table here: all tables are divided by time. What these additions say about
//! devices decides which columns are tags.

pub(crate) mod accessors;
pub(crate) mod arguments;
pub(crate) mod calls;
pub(crate) mod readings;
pub(crate) mod settings;

/// The version of TimescaleDB whose SQL is read.
pub(crate) const VERSION: &str = "2.20.0";
/// The version of its toolkit whose functions are known.
pub(crate) const TOOLKIT_VERSION: &str = "1.21.0";

/// The extensions that every database has, and their versions.
pub(crate) const EXTENSIONS: [(&str, &str); 2] = [
    ("timescaledb", VERSION),
    ("timescaledb_toolkit", TOOLKIT_VERSION),
];

/// Whether every database has an extension.
pub(crate) fn is_built_in(extension: &str) -> bool {
    EXTENSIONS.iter().any(|(name, _)| *name == extension)
}
