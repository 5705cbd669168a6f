//! Continuous queries: each is a materialized view of the name of its target, where it fits into one.
//!
//! The view's query begins with a comment that holds the statement, by which SHOW finds it. The rows
//! of the target are the view's, so a continuous query ends with its measurement, not before.

mod view_query;

use crate::databases::shown_databases;
use crate::output::Listing;
use crate::policies::Policies;
use crate::schema::refused;
use crate::statement_run::StatementRun;
use crate::value::{InfluxValueType, Value};
use marigram_access::DatabasePrivileges;
use marigram_engine::{Engine, EngineError};
use marigram_influxql::ast::{CreateContinuousQuery, Statement, Target};
use marigram_model::TableSchema;
use marigram_service::Session;
use marigram_sql::front_end::{NewMaterializedView, StatementRows};
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;
use view_query::{has_wildcard, view_query};

/// The beginning of the query of a view that is a continuous query.
const MARK: &str = "-- InfluxQL: ";

/// A statement as the first line of a view's query.
fn marked(statement: &str, query: &str) -> String {
    let line = statement.replace('\\', "\\\\");
    let line = line.replace('\n', "\\n").replace('\r', "\\r");
    format!("{MARK}{line}\n{query}")
}

/// The continuous query that a view is, if any.
pub(crate) fn continuous_query(table: &TableSchema) -> Option<CreateContinuousQuery> {
    let line = table.rollup.as_ref()?.query.strip_prefix(MARK)?;
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(char) = chars.next().filter(|char| *char != '\n') {
        match char {
            '\\' => text.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                other => other,
            }),
            char => text.push(char),
        }
    }
    let parsed = marigram_influxql::parse_query(&text).ok()?;
    match parsed.statements.into_iter().next()? {
        Statement::CreateContinuousQuery(create) => Some(create),
        _ => None,
    }
}

/// The continuous queries of a database in the order of their creation, with their views.
fn continuous_queries(
    engine: &Engine,
    database: &str,
) -> Vec<(CreateContinuousQuery, Arc<TableSchema>)> {
    let views = engine.rollups().into_iter();
    let views = views.filter(|table| table.database == database);
    let found = views.filter_map(|table| Some((continuous_query(&table)?, table)));
    found.collect()
}

/// The table of the target, and how long its policy keeps rows.
fn target_table(run: &StatementRun<'_>, target: &Target) -> SqlResult<(String, Option<i64>)> {
    let (engine, policies): (_, &dyn Policies) = (run.context.engine(), &*run.policies);
    let (database, policy) = (&target.database, &target.retention_policy);
    let Some(measurement) = &target.measurement else {
        return Err(unfit("INTO names no measurement"));
    };
    let table = policies.table_name(engine, database, policy, measurement);
    let table = table.ok_or_else(|| refused(format!("retention policy not found: {policy}")))?;
    let kept = engine.retention_policies(database)?;
    let kept = kept.find(policy).and_then(|policy| policy.duration_ns);
    Ok((table, kept))
}

/// The error for a continuous query that no view can be.
fn unfit(reason: &str) -> SqlError {
    refused(format!(
        "continuous query does not fit into a materialized view: {reason}; a query of the form SELECT \
         mean(field) INTO target FROM measurement GROUP BY time(1h), tag does, and SELECT … INTO run \
         by cron writes everything else"
    ))
}

/// CREATE CONTINUOUS QUERY.
pub(crate) async fn create(
    run: &StatementRun<'_>,
    create: &CreateContinuousQuery,
) -> SqlResult<StatementRows> {
    let (engine, database) = (run.context.engine(), &create.database);
    crate::show::check_database(run, database)?;
    let known = continuous_queries(engine, database);
    if let Some((known, _)) = known.iter().find(|(known, _)| known.name == create.name) {
        if known.to_string() == create.to_string() {
            return Ok(done());
        }
        return Err(refused("continuous query already exists"));
    }
    let Some(target) = &create.select.target else {
        return Err(unfit("there is no INTO"));
    };
    if target.database != *database {
        return Err(unfit("its target is in another database"));
    }
    let (name, ttl_ns) = target_table(run, target)?;
    let query = view_query(run, database, &create.select).map_err(|reason| unfit(&reason))?;
    let view = NewMaterializedView {
        database: database.clone(),
        name,
        query: marked(&create.to_string(), &query),
        ttl_ns,
    };
    let created = run.context.create_materialized_view(view).await;
    created.map_err(|error| match error {
        SqlError::Engine(EngineError::AlreadyExists { name, .. }) => {
            unfit(&format!("the measurement {name} has rows of its own"))
        }
        other => other,
    })?;
    let notice = "* stands for the fields and tags that the measurement has now: those that come later are \
                  not in the target";
    let notices = has_wildcard(&create.select).then(|| notice.to_owned());
    Ok(StatementRows::Done {
        tag: String::new(),
        rows: 0,
        notices: notices.into_iter().collect(),
    })
}

/// DROP CONTINUOUS QUERY. As in InfluxDB, one that is not there is dropped without a word.
pub(crate) fn drop(engine: &Engine, database: &str, name: &str) -> SqlResult<StatementRows> {
    let known = continuous_queries(engine, database);
    let Some((known, _)) = known.iter().find(|(known, _)| known.name == name) else {
        return Ok(done());
    };
    let target = known.select.target.as_ref();
    let target = target.and_then(|target| target.measurement.as_deref());
    let target = target.unwrap_or_default();
    Err(refused(format!(
        "the rows of measurement {target} are those of continuous query {name}: DROP MEASUREMENT removes \
         both"
    )))
}

/// SHOW CONTINUOUS QUERIES.
pub(crate) fn show(engine: &Engine, session: &Session) -> SqlResult<StatementRows> {
    let columns = ["name", "query"].map(|name| (name, InfluxValueType::String));
    let mut listing = Listing::new(columns.to_vec());
    for database in shown_databases(engine, &session.rights) {
        let may_read = session.rights.allow(&database, DatabasePrivileges::READ);
        let known = if may_read {
            continuous_queries(engine, &database)
        } else {
            Vec::new()
        };
        let series: Arc<str> = database.into();
        for (create, _) in &known {
            let texts = [create.name.clone(), create.to_string()];
            let values = texts.map(|text| Value::String(text.into()));
            listing.push(Some(&series), values.to_vec());
        }
        if known.is_empty() {
            listing.push(Some(&series), vec![Value::Null; columns.len()]);
        }
    }
    listing.answer()
}

fn done() -> StatementRows {
    StatementRows::Done {
        tag: String::new(),
        rows: 0,
        notices: Vec::new(),
    }
}
