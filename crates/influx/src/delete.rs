//! DELETE, DROP SERIES and DROP MEASUREMENT.

use crate::continuous_query::continuous_query;
use crate::expression::Expression;
use crate::schema::{StoredMeasurement, refused};
use crate::show;
use crate::statement_run::{StatementRun, now_ns};
use crate::value::Value;
use crate::window::BundledZones;
use marigram_engine::{Engine, TagFilter, ValueTest};
use marigram_influxql::ast::{BinaryOp, Expr, Source};
use marigram_influxql::time_range::{TimeContext, split_condition};
use marigram_model::{TableSchema, TagValue, TimeRange};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;

/// Of more series, DELETE does not look for those that it emptied.
const SERIES_LOOKED_UP_MAX: u64 = 10_000;

/// The answer of a statement without rows.
fn done(tag: &str) -> StatementRows {
    StatementRows::Done {
        tag: tag.to_owned(),
        rows: 0,
        notices: Vec::new(),
    }
}

/// DELETE: removes rows of series within a range of times.
pub(crate) async fn delete(
    run: &StatementRun<'_>,
    sources: &[Source],
    condition: Option<&Expr>,
) -> SqlResult<StatementRows> {
    let now_ns = now_ns(&run.state()?);
    let split = {
        let context = TimeContext {
            now_ns,
            time_zone: None,
            zones: &BundledZones,
        };
        split_condition(condition, &context).map_err(|error| refused(error.to_string()))?
    };
    let range = TimeRange {
        min: split.time_range.min_ns.unwrap_or(TimeRange::ALL.min),
        max: split.time_range.max_ns.unwrap_or(TimeRange::ALL.max),
    };
    remove(run, sources, split.condition.as_ref(), range).await?;
    Ok(done("DELETE"))
}

/// DROP SERIES: removes series with all their rows.
pub(crate) async fn drop_series(
    run: &StatementRun<'_>,
    sources: &[Source],
    condition: Option<&Expr>,
) -> SqlResult<StatementRows> {
    remove(run, sources, condition, TimeRange::ALL).await?;
    Ok(done("DROP SERIES"))
}

/// DROP MEASUREMENT. Dropping a measurement that does not exist does nothing.
pub(crate) async fn drop_measurement(
    run: &StatementRun<'_>,
    name: &str,
) -> SqlResult<StatementRows> {
    let engine = run.context.engine();
    let database = run.database().to_owned();
    show::check_database(run, &database)?;
    for policy in run.policies.policies(engine, &database) {
        let table = run.policies.table_name(engine, &database, &policy, name);
        let stored = table.and_then(|table| engine.table(&database, &table).ok());
        let Some(stored) = stored else {
            continue;
        };
        let is_view = stored.view.is_some() || stored.rollup.is_some();
        if is_view && continuous_query(&stored).is_none() {
            let message = format!("'{name}' is a view; SQL's DROP VIEW removes it");
            return Err(refused(message));
        }
        let table = stored.name.clone();
        let (engine, database) = (engine.clone(), database.clone());
        let drop = move || Ok(engine.drop_table(&database, &table, true)?);
        run.context.commit(drop).await?;
    }
    Ok(done("DROP MEASUREMENT"))
}

async fn remove(
    run: &StatementRun<'_>,
    sources: &[Source],
    condition: Option<&Expr>,
    range: TimeRange,
) -> SqlResult<()> {
    let database = run.database();
    show::check_database(run, database)?;
    let condition = condition.map(Expression::new).transpose()?;
    let mut work = Vec::new();
    for measurement in show::sources(run, database, sources)? {
        // A materialized view follows its table.
        if sources.is_empty() && measurement.table.rollup.is_some() {
            continue;
        }
        let filter = match &condition {
            Some(condition) => filter(condition, &measurement)?,
            None => TagFilter::All,
        };
        work.push((measurement.table, filter));
    }
    let engine = run.context.engine().clone();
    let delete = move || {
        for (table, filter) in &work {
            engine.delete(&table.database, &table.name, filter, range)?;
            if range != TimeRange::ALL {
                find_empty(&engine, table, filter)?;
            }
        }
        Ok(())
    };
    run.context.commit(delete).await
}

/// Looks for series that have no row left, so that SHOW SERIES no longer lists them, as in InfluxDB.
fn find_empty(engine: &Engine, table: &TableSchema, filter: &TagFilter) -> SqlResult<()> {
    let snapshot = engine.snapshot(&table.database, &table.name)?;
    let selection = snapshot.list(filter);
    if selection.len() <= SERIES_LOOKED_UP_MAX {
        snapshot.last_rows(&selection, &[])?;
    }
    Ok(())
}

/// The series that a condition selects.
fn filter(condition: &Expression, measurement: &StoredMeasurement) -> SqlResult<TagFilter> {
    match condition {
        Expression::Paren(inner) => filter(inner, measurement),
        Expression::Value(Value::Boolean(true)) => Ok(TagFilter::All),
        Expression::Value(Value::Boolean(false)) => Ok(TagFilter::None),
        Expression::Chain(first, links) => {
            if let [(op, rhs)] = links.as_slice()
                && op.precedence() == 3
            {
                return comparison(first, *op, rhs, measurement);
            }
            let mut all = filter(first, measurement)?;
            for (op, rhs) in links {
                let rhs = filter(rhs, measurement)?;
                all = match op {
                    BinaryOp::And => TagFilter::And(vec![all, rhs]),
                    BinaryOp::Or => TagFilter::Or(vec![all, rhs]),
                    _ => return Err(refused("invalid tag comparison operator")),
                };
            }
            Ok(all)
        }
        _ => Err(refused("invalid tag comparison operator")),
    }
}

fn comparison(
    left: &Expression,
    op: BinaryOp,
    right: &Expression,
    measurement: &StoredMeasurement,
) -> SqlResult<TagFilter> {
    let (Expression::Name(var), constant) = (left, right) else {
        return Err(refused("invalid tag comparison operator"));
    };
    if measurement.field_column(&var.name).is_some() {
        let message = "fields not supported in WHERE clause during deletion";
        return Err(refused(format!("shard 1: {message}")));
    }
    let tag = measurement.table.tag(&var.name).map(|(ordinal, _)| ordinal);
    let missing = tag.map_or(TagFilter::All, TagFilter::IsNull);
    let equal = match (op, constant) {
        (BinaryOp::Eq | BinaryOp::Neq, Expression::Value(Value::String(text))) => {
            match (text.is_empty(), tag) {
                (true, _) => missing,
                (false, Some(tag)) => TagFilter::In(tag, vec![TagValue::String((&**text).into())]),
                (false, None) => TagFilter::None,
            }
        }
        (BinaryOp::EqRegex | BinaryOp::NeqRegex, Expression::Regex(regex)) => {
            let some = match tag {
                Some(tag) => TagFilter::Matches(tag, ValueTest::Regex(regex.regex().clone())),
                None => TagFilter::None,
            };
            if regex.is_match("") {
                TagFilter::Or(vec![some, missing])
            } else {
                some
            }
        }
        _ => return Err(refused("invalid tag comparison operator")),
    };
    Ok(match op {
        BinaryOp::Neq | BinaryOp::NeqRegex => TagFilter::Not(Box::new(equal)),
        _ => equal,
    })
}
