//! Retention policies from the catalog.

use crate::policies::Policies;
use marigram_engine::Engine;
use marigram_model::RetentionPolicies;
use std::borrow::Cow;
use std::sync::Arc;

/// The policies of the catalog: those that InfluxQL's statements created, or only `autogen`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CatalogPolicies;

/// The policies of a database; `None` if there is no such database.
fn policies_of(engine: &Engine, database: &str) -> Option<Arc<RetentionPolicies>> {
    engine.retention_policies(database).ok()
}

impl Policies for CatalogPolicies {
    fn default_policy(&self, engine: &Engine, database: &str) -> Option<String> {
        Some(policies_of(engine, database)?.default.clone())
    }

    fn has_policy(&self, engine: &Engine, database: &str, policy: &str) -> bool {
        policies_of(engine, database).is_some_and(|policies| policies.find(policy).is_some())
    }

    fn table_name(
        &self,
        engine: &Engine,
        database: &str,
        policy: &str,
        measurement: &str,
    ) -> Option<String> {
        let policies = policies_of(engine, database)?;
        let policy = policies.find(policy)?;
        policies
            .table_name(policy, measurement)
            .map(Cow::into_owned)
    }

    fn measurements(&self, engine: &Engine, database: &str, policy: &str) -> Vec<String> {
        let Some(policies) = policies_of(engine, database) else {
            return Vec::new();
        };
        let tables = engine.tables(database).unwrap_or_default();
        let tables = tables.iter().filter(|table| table.view.is_none());
        let named = tables.filter_map(|table| {
            let (owner, measurement) = policies.locate(&table.name)?;
            (owner.name == policy).then(|| measurement.to_owned())
        });
        named.collect()
    }

    fn policies(&self, engine: &Engine, database: &str) -> Vec<String> {
        let policies = policies_of(engine, database).unwrap_or_default();
        let policies = policies.policies.iter();
        policies.map(|policy| policy.name.clone()).collect()
    }
}
