//! InfluxQL as one of the service's query languages.

use crate::budget::Budget;
use crate::catalog_policies::CatalogPolicies;
use crate::policies::Policies;
use crate::running_queries::RunningQueries;
use crate::schema::refused;
use crate::statement_run::StatementRun;
use crate::users;
use crate::window::BundledZones;
use async_trait::async_trait;
use marigram_influxql::ast::InfluxQlQuery;
use marigram_influxql::{ParamJson, Params, ParseOptions, parse_query_with};
use marigram_service::{Language, LanguageRequest, ParameterValue, Result, ServiceError, Session};
use marigram_sql::SqlResult;
use marigram_sql::front_end::{AfterError, FrontEnd, Script, StatementContext, StatementRows};
use std::sync::Arc;

/// The front end for InfluxQL.
#[derive(Clone, Debug)]
pub struct InfluxQl {
    policies: Arc<dyn Policies>,
    queries: Arc<RunningQueries>,
    takes_fast_paths: bool,
}

impl InfluxQl {
    /// Creates the front end with these retention policies.
    pub fn new(policies: Arc<dyn Policies>) -> Self {
        Self {
            policies,
            queries: Arc::default(),
            takes_fast_paths: true,
        }
    }

    /// The same front end, where every SELECT reads all rows of its tables: what its fast paths are
    /// compared with.
    #[must_use]
    pub fn without_fast_paths(mut self) -> Self {
        self.takes_fast_paths = false;
        self
    }
}

impl Default for InfluxQl {
    fn default() -> Self {
        Self::new(Arc::new(CatalogPolicies))
    }
}

fn invalid(message: String) -> ServiceError {
    ServiceError::Invalid {
        message,
        position: None,
        sqlstate: "42601",
    }
}

fn param_json(value: &ParameterValue) -> ParamJson {
    match value {
        ParameterValue::Null => ParamJson::Null,
        ParameterValue::Boolean(value) => ParamJson::Boolean(*value),
        ParameterValue::Number(text) => ParamJson::Number(text.clone()),
        ParameterValue::String(text) => ParamJson::String(text.clone()),
        ParameterValue::Array => ParamJson::Array,
        ParameterValue::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.clone(), param_json(value)));
            ParamJson::Object(entries.collect())
        }
    }
}

impl FrontEnd for InfluxQl {
    fn language(&self) -> Language {
        Language::InfluxQl
    }

    fn parse(&self, session: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>> {
        let mut params = Params::default();
        for (name, value) in &request.parameters {
            params
                .bind(name.clone(), &param_json(value))
                .map_err(|error| invalid(error.to_string()))?;
        }
        let options = ParseOptions {
            params: Some(&params),
            time_zones: Some(&BundledZones),
        };
        let query =
            parse_query_with(&request.text, options).map_err(|error| invalid(error.to_wire()))?;
        for statement in &query.statements {
            users::check(session, statement)?;
        }
        Ok(Arc::new(InfluxScript {
            query,
            retention_policy: request.retention_policy.clone().unwrap_or_default(),
            policies: Arc::clone(&self.policies),
            queries: Arc::clone(&self.queries),
            takes_fast_paths: self.takes_fast_paths,
        }))
    }
}

/// The statements of a request.
struct InfluxScript {
    query: InfluxQlQuery,
    retention_policy: String,
    policies: Arc<dyn Policies>,
    queries: Arc<RunningQueries>,
    takes_fast_paths: bool,
}

/// InfluxDB's error for the statements after one that failed.
const NOT_EXECUTED: &str = "not executed";

#[async_trait]
impl Script for InfluxScript {
    fn len(&self) -> usize {
        self.query.statements.len()
    }

    async fn execute(
        &self,
        statement: usize,
        context: &StatementContext,
    ) -> SqlResult<StatementRows> {
        let Some(parsed) = self.query.statements.get(statement) else {
            return Err(refused(NOT_EXECUTED));
        };
        let run = StatementRun {
            context,
            policies: Arc::clone(&self.policies),
            queries: Arc::clone(&self.queries),
            views: context.views_as_tables().await?,
            retention_policy: &self.retention_policy,
            budget: Budget::new(context.memory_pool()),
            takes_fast_paths: self.takes_fast_paths,
        };
        run.execute(parsed.clone()).await
    }

    /// InfluxDB stops at a statement that fails. Unless it is the last one, InfluxDB reports that
    /// the statement was not executed, and not why.
    fn failed(&self, statement: usize, error: ServiceError) -> (ServiceError, AfterError) {
        if statement + 1 >= self.len() {
            return (error, AfterError::Stop);
        }
        (invalid(NOT_EXECUTED.to_owned()), AfterError::Stop)
    }
}
