//! Parses and plans a SELECT without running it: what a statement costs before it reads.

use crate::budget::Budget;
use crate::catalog_policies::CatalogPolicies;
use crate::output::SeriesSchema;
use crate::policies::KnownDatabases;
use crate::prepare::Preparation;
use crate::schema::{StoredCatalog, refused};
use crate::select::{Running, rows};
use crate::window::BundledZones;
use datafusion::execution::session_state::SessionState;
use marigram_engine::Engine;
use marigram_influxql::ast::Statement;
use marigram_influxql::names::{NameContext, complete_names};
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::validate::{analyze, check_statement};
use marigram_sql::SqlResult;
use marigram_sql::front_end::ViewTables;
use std::sync::Arc;

/// Parses a SELECT and plans its rows, as far as that is done before the first one is read.
///
/// # Errors
/// What InfluxDB refuses, and a text that is not one SELECT.
pub fn plan_select(
    engine: &Engine,
    state: &Arc<SessionState>,
    database: &str,
    text: &str,
) -> SqlResult<()> {
    let policies = CatalogPolicies;
    let query = marigram_influxql::parse_query(text);
    let query = query.map_err(|error| refused(error.to_string()))?;
    let [mut statement] = <[Statement; 1]>::try_from(query.statements)
        .map_err(|_| refused("one statement is planned at a time"))?;
    let databases = KnownDatabases {
        engine,
        policies: &policies,
    };
    let names = NameContext {
        database,
        retention_policy: "",
        databases: &databases,
    };
    complete_names(&mut statement, &names).map_err(|error| refused(error.to_string()))?;
    check_statement(&statement).map_err(|error| refused(error.to_string()))?;
    let Statement::Select(select) = statement else {
        return Err(refused("only a SELECT has a plan"));
    };
    let time = TimeContext {
        now_ns: 0,
        time_zone: None,
        zones: &BundledZones,
    };
    let analysis = analyze(&select, &time).map_err(|error| refused(error.to_string()))?;
    let catalog = StoredCatalog {
        engine,
        policies: &policies,
        views: &ViewTables::new(),
    };
    let prepared = Preparation { catalog }.select(&select, &analysis, None)?;
    let running = Running {
        engine: engine.clone(),
        state: Arc::clone(state),
        budget: Budget::new(&state.runtime_env().memory_pool),
        takes_fast_paths: true,
    };
    rows(&prepared, &running)?;
    let _ = SeriesSchema::new(&prepared);
    Ok(())
}
