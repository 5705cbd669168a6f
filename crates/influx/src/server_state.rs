//! SHOW statements about the server: shards, subscriptions, running statements, statistics.

use crate::continuous_query;
use crate::databases::shown_databases;
use crate::output::Listing;
use crate::running_queries::RunningQueries;
use crate::schema::refused;
use crate::value::{InfluxValueType, Value};
use arrow::datatypes::Schema;
use marigram_engine::Engine;
use marigram_influxql::GoDuration;
use marigram_influxql::ast::Statement;
use marigram_service::Session;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::sync::Arc;
use std::time::Duration;

/// A metadata key of a schema whose series have different columns: the columns of a series are
/// those that are not null in its first row.
const SPARSE_KEY: &str = "marigram.sparse";

/// Answers a statement; `None` for statements of other kinds.
///
/// # Errors
/// Why the statement failed, in InfluxDB's words.
pub(crate) fn answer(
    engine: &Engine,
    queries: &RunningQueries,
    session: &Session,
    statement: &Statement,
) -> SqlResult<Option<StatementRows>> {
    let answer = match statement {
        Statement::ShowSubscriptions | Statement::DropShard(_) => done(),
        Statement::DropContinuousQuery { name, database } => {
            continuous_query::drop(engine, database, name)?
        }
        Statement::ShowContinuousQueries => continuous_query::show(engine, session)?,
        Statement::ShowShards => of_each_database(
            engine,
            session,
            &[
                "id",
                "database",
                "retention_policy",
                "shard_group",
                "start_time",
                "end_time",
                "expiry_time",
                "owners",
            ],
        )?,
        Statement::ShowShardGroups => shard_groups()?,
        Statement::ShowQueries => show_queries(queries, session)?,
        Statement::KillQuery { id, .. } => {
            queries.kill(*id)?;
            done()
        }
        Statement::ShowDiagnostics(module) => diagnostics(module)?,
        Statement::ShowStats(module) => stats(engine, module)?,
        Statement::CreateSubscription(_) => {
            return Err(refused(
                "subscriptions are not supported: Marigram forwards no writes to other servers",
            ));
        }
        Statement::DropSubscription { database, .. } => {
            let is_known = engine.databases().contains(database);
            return Err(refused(if is_known {
                "subscription not found".to_owned()
            } else {
                format!("database not found: {database}")
            }));
        }
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

fn done() -> StatementRows {
    StatementRows::Done {
        tag: String::new(),
        rows: 0,
        notices: Vec::new(),
    }
}

fn texts(columns: &[&'static str]) -> Listing {
    let columns = columns.iter().map(|name| (*name, InfluxValueType::String));
    Listing::new(columns.collect())
}

/// A series without rows for each database.
fn of_each_database(
    engine: &Engine,
    session: &Session,
    columns: &[&'static str],
) -> SqlResult<StatementRows> {
    let mut listing = texts(columns);
    for database in shown_databases(engine, &session.rights) {
        listing.push(Some(&database.into()), vec![Value::Null; columns.len()]);
    }
    listing.answer()
}

fn shard_groups() -> SqlResult<StatementRows> {
    let columns = [
        "id",
        "database",
        "retention_policy",
        "start_time",
        "end_time",
        "expiry_time",
    ];
    let mut listing = texts(&columns);
    listing.push(
        Some(&"shard groups".into()),
        vec![Value::Null; columns.len()],
    );
    listing.answer()
}

/// The running statements: everyone's for administrators, the client's own for others.
fn show_queries(queries: &RunningQueries, session: &Session) -> SqlResult<StatementRows> {
    let mut listing = Listing::new(vec![
        ("qid", InfluxValueType::Integer),
        ("query", InfluxValueType::String),
        ("database", InfluxValueType::String),
        ("duration", InfluxValueType::String),
        ("status", InfluxValueType::String),
    ]);
    for query in queries.list() {
        if !session.rights.is_administrator && query.user != session.identity.user {
            continue;
        }
        let status = if query.is_killed { "killed" } else { "running" };
        listing.push(
            None,
            vec![
                Value::Integer(query.id as i64),
                text(&query.text),
                text(&query.database),
                text(&rounded(query.elapsed).to_string()),
                text(status),
            ],
        );
    }
    listing.answer()
}

/// A duration, rounded as InfluxDB does.
fn rounded(elapsed: Duration) -> GoDuration {
    let ns = i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX);
    let unit = match ns {
        1_000_000_000.. => 1_000_000_000,
        1_000_000.. => 1_000_000,
        1_000.. => 1_000,
        _ => 1,
    };
    GoDuration(ns / unit * unit)
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// Series of one row each: name, and columns with their values.
type Modules = Vec<(&'static str, Vec<(&'static str, Value)>)>;

fn diagnostics(module: &str) -> SqlResult<StatementRows> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let modules = vec![
        (
            "build",
            vec![
                ("Branch", text("")),
                ("Build Time", text("")),
                ("Commit", text("")),
                (
                    "Version",
                    text(concat!("marigram-", env!("CARGO_PKG_VERSION"))),
                ),
            ],
        ),
        (
            "runtime",
            vec![
                ("GOARCH", text(std::env::consts::ARCH)),
                ("GOMAXPROCS", Value::Integer(threads as i64)),
                ("GOOS", text(std::env::consts::OS)),
            ],
        ),
        (
            "system",
            vec![("PID", Value::Integer(i64::from(std::process::id())))],
        ),
    ];
    sparse(modules, module)
}

fn stats(engine: &Engine, module: &str) -> SqlResult<StatementRows> {
    let status = engine.status();
    let count = |value: u64| Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let modules = vec![
        (
            "database",
            vec![
                ("numDatabases", Value::Integer(status.databases as i64)),
                ("numMeasurements", Value::Integer(status.tables as i64)),
                ("numSeries", count(status.series)),
            ],
        ),
        (
            "write",
            vec![
                ("pointReq", count(status.rows_written)),
                ("pointsRejected", count(status.rows_rejected)),
            ],
        ),
        (
            "storage",
            vec![
                ("segments", count(status.segments)),
                ("segmentBytes", count(status.segment_bytes)),
                ("memtableBytes", count(status.memtable_bytes)),
                ("walBytes", count(status.wal_bytes)),
                ("flushes", count(status.flushes)),
                ("compactions", count(status.compactions)),
            ],
        ),
    ];
    sparse(modules, module)
}

/// The series of one module, or of all.
fn sparse(mut modules: Modules, module: &str) -> SqlResult<StatementRows> {
    if !module.is_empty() {
        modules.retain(|(name, _)| *name == module);
    }
    if modules.is_empty() {
        return Ok(done());
    }
    let mut columns: Vec<(&'static str, InfluxValueType)> = Vec::new();
    for (_, values) in &modules {
        columns.extend(values.iter().map(|(name, value)| match value {
            Value::Integer(_) => (*name, InfluxValueType::Integer),
            _ => (*name, InfluxValueType::String),
        }));
    }
    let mut listing = Listing::new(columns);
    let mut before = 0;
    let all: usize = modules.iter().map(|(_, values)| values.len()).sum();
    for (name, values) in modules {
        let mut row = vec![Value::Null; before];
        before += values.len();
        row.extend(values.into_iter().map(|(_, value)| value));
        row.resize(all, Value::Null);
        listing.push(Some(&name.into()), row);
    }
    Ok(match listing.answer()? {
        StatementRows::Rows { schema, batches } => {
            let mark = [(SPARSE_KEY.to_owned(), String::new())];
            let schema = Arc::new(Schema::clone(&schema).with_metadata(mark.into()));
            StatementRows::Rows { schema, batches }
        }
        done @ StatementRows::Done { .. } => done,
    })
}
