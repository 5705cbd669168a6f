//! What a script runs with: the engine, what the client may read, memory, and the time.

use crate::access::BucketAccess;
use crate::evaluate::FluxEvaluator;
use crate::value::FluxBucket;
use datafusion::execution::session_state::SessionState;
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_engine::Engine;
use marigram_flux::FluxPosition;
use marigram_influx::{Budget, Policies, StoredMeasurement, readable_table};
use marigram_service::ServiceError;
use marigram_sql::SqlResult;
use marigram_sql::front_end::ViewTables;
use std::sync::Arc;

/// Finds buckets in the catalog.
pub(crate) struct CatalogBuckets {
    /// The engine.
    pub engine: Engine,
    /// The retention policies.
    pub policies: Arc<dyn Policies>,
    /// What the client may do.
    pub rights: Arc<AccessRights>,
    /// The client's name.
    pub user: String,
}

impl BucketAccess for CatalogBuckets {
    fn bucket(&self, at: FluxPosition, name: &str) -> SqlResult<FluxBucket> {
        let (database, policy) = match name.split_once('/') {
            Some((database, policy)) => (database, Some(policy).filter(|name| !name.is_empty())),
            None => (name, None),
        };
        if !self.rights.allow(database, DatabasePrivileges::READ) {
            let user = &self.user;
            let message = format!("error @{at}: {user} is not authorized to read bucket {name:?}");
            return Err(ServiceError::Forbidden(message).into());
        }
        let default = self.policies.default_policy(&self.engine, database);
        let policy = policy.map(str::to_owned).or(default);
        let found = policy
            .filter(|policy| self.policies.has_policy(&self.engine, database, policy))
            .ok_or_else(|| {
                let message = format!(
                    "failed to initialize execute state: error @{at}: could not find bucket {name:?}"
                );
                ServiceError::NotFound(message, "3D000")
            })?;
        Ok(FluxBucket {
            name: name.into(),
            database: database.to_owned(),
            policy: found,
        })
    }
}

/// What the streams of a script run with.
pub(crate) struct FluxRun {
    /// The buckets.
    pub buckets: Arc<CatalogBuckets>,
    /// The materialized views as tables.
    pub views: ViewTables,
    /// DataFusion's state.
    pub state: Arc<SessionState>,
    /// The memory of the statement.
    pub budget: Budget,
    /// What `now()` is.
    pub now_ns: i64,
}

impl FluxRun {
    /// An evaluator of functions of rows.
    pub(crate) fn row_evaluator(&self) -> FluxEvaluator {
        FluxEvaluator::for_rows(self.now_ns, &self.budget)
    }

    /// The measurements of a bucket, by name.
    pub(crate) fn measurements(&self, bucket: &FluxBucket) -> Vec<StoredMeasurement> {
        let (engine, policies) = (&self.buckets.engine, &self.buckets.policies);
        let (database, policy) = (&bucket.database, &bucket.policy);
        let mut names = policies.measurements(engine, database, policy);
        names.sort();
        let stored = names.into_iter().filter_map(|name| {
            let table = policies.table_name(engine, database, policy, &name)?;
            let table = readable_table(engine, &self.views, database, &table)?;
            let name = name.into();
            Some(StoredMeasurement { name, table })
        });
        stored.collect()
    }
}
