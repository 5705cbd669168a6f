//! Retention policies: determine which table holds a measurement of a policy.

use marigram_engine::Engine;
use marigram_influxql::names::Databases;
use std::fmt::Debug;

/// The policy of a database whose statements name none.
pub const DEFAULT_POLICY: &str = "autogen";

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

/// One policy per database, [`DEFAULT_POLICY`], whose measurements are the database's tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnePolicy;

impl Policies for OnePolicy {
    fn default_policy(&self, engine: &Engine, database: &str) -> Option<String> {
        let known = engine.databases().iter().any(|name| name == database);
        known.then(|| DEFAULT_POLICY.to_owned())
    }

    fn has_policy(&self, _: &Engine, _: &str, policy: &str) -> bool {
        policy == DEFAULT_POLICY
    }

    fn table_name(&self, _: &Engine, _: &str, policy: &str, measurement: &str) -> Option<String> {
        (policy == DEFAULT_POLICY).then(|| measurement.to_owned())
    }

    fn measurements(&self, engine: &Engine, database: &str, policy: &str) -> Vec<String> {
        if policy != DEFAULT_POLICY {
            return Vec::new();
        }
        let tables = engine.tables(database).unwrap_or_default();
        let tables = tables.iter().filter(|table| table.view.is_none());
        tables.map(|table| table.name.clone()).collect()
    }

    fn policies(&self, _: &Engine, _: &str) -> Vec<String> {
        vec![DEFAULT_POLICY.to_owned()]
    }
}

/// Names of databases for the completion of statements.
pub struct KnownDatabases<'a> {
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
