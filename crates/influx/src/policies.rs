//! Retention policies: determine which table holds a measurement of a policy.

use marigram_engine::Engine;
use marigram_influxql::names::Databases;
use std::fmt::Debug;

/// Access to retention policies.
pub trait Policies: Debug + Send + Sync {
    /// The policy that applies if none is named; `None` if there is no such database.
    fn default_policy(&self, engine: &Engine, database: &str) -> Option<String>;

    /// Whether a database has a policy.
    fn has_policy(&self, engine: &Engine, database: &str, policy: &str) -> bool;

    /// The table of a measurement; `None` if it cannot have one.
    fn table_name(
        &self,
        engine: &Engine,
        database: &str,
        policy: &str,
        measurement: &str,
    ) -> Option<String>;

    /// The measurements of a policy.
    fn measurements(&self, engine: &Engine, database: &str, policy: &str) -> Vec<String>;

    /// The policies of a database.
    fn policies(&self, engine: &Engine, database: &str) -> Vec<String>;
}

/// Names of databases for the completion of statements.
pub(crate) struct KnownDatabases<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The policies.
    pub policies: &'a dyn Policies,
}

impl Databases for KnownDatabases<'_> {
    fn default_policy(&self, database: &str) -> Option<String> {
        self.policies.default_policy(self.engine, database)
    }
}
