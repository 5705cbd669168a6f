//! SHOW statements about stored data, from the catalog and the series index.

mod cardinality;
mod tags;

use crate::expression::Expression;
use crate::listing::{
    each_series, fulfils, fulfils_with_tags, listed_bytes, number_of_series, tag_condition,
};
use crate::output::Listing;
use crate::schema::{StoredMeasurement, compile_regex, refused, stored_measurements};
use crate::statement_run::StatementRun;
use crate::value::{InfluxValueType, Value};
use marigram_influxql::ast::{
    BinaryOp, Expr, Measurement, ShowFieldKeys, ShowMeasurements, ShowSeries, Source, Statement,
    TagKeyFilter,
};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The answer of a SHOW statement; `None` for other statements. Does not wait for the disk.
///
/// # Errors
/// Why the statement failed, in InfluxDB's words.
pub(crate) fn answer(
    run: &StatementRun<'_>,
    statement: &Statement,
) -> SqlResult<Option<StatementRows>> {
    let listing = match statement {
        Statement::ShowMeasurements(show) => measurements(run, show)?,
        Statement::ShowSeries(show) => series(run, show)?,
        Statement::ShowFieldKeys(show) => field_keys(run, show)?,
        Statement::ShowTagKeys(show) => tags::keys(run, show)?,
        Statement::ShowTagValues(show) => tags::values(run, show)?,
        Statement::ShowCardinality(show) => cardinality::answer(run, show)?,
        _ => return Ok(None),
    };
    listing.answer().map(Some)
}

/// The rows after OFFSET and within LIMIT; 0 means no limit.
fn limited<T>(rows: Vec<T>, limit: u64, offset: u64) -> impl Iterator<Item = T> {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let limit = if limit == 0 { usize::MAX } else { count(limit) };
    rows.into_iter().skip(count(offset)).take(limit)
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// Refuses a database that does not exist.
pub(crate) fn check_database(run: &StatementRun<'_>, database: &str) -> SqlResult<()> {
    if database.is_empty() {
        return Err(refused("database name required"));
    }
    let known = run.policies.default_policy(run.context.engine(), database);
    known
        .map(|_| ())
        .ok_or_else(|| refused(format!("database not found: {database}")))
}

/// A condition of SHOW, in which names are tags.
fn condition(condition: Option<&Expr>) -> SqlResult<Option<Expression>> {
    let Some(condition) = condition else {
        return Ok(None);
    };
    let expression = Expression::new(condition)?;
    check_operators(&expression)?;
    Ok(Some(expression))
}

/// Refuses comparisons of tags other than for equality.
fn check_operators(expression: &Expression) -> SqlResult<()> {
    match expression {
        Expression::Paren(inner) => check_operators(inner),
        Expression::Chain(first, links) => {
            check_operators(first)?;
            for (op, rhs) in links {
                let is_known = matches!(
                    op,
                    BinaryOp::And
                        | BinaryOp::Or
                        | BinaryOp::Eq
                        | BinaryOp::Neq
                        | BinaryOp::EqRegex
                        | BinaryOp::NeqRegex
                );
                if !is_known {
                    return Err(refused("invalid tag comparison operator"));
                }
                check_operators(rhs)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The source of all measurements.
fn every_measurement() -> Option<Source> {
    let every = marigram_influxql::parse_query("SELECT v FROM /.*/").ok()?;
    match every.statements.into_iter().next()? {
        Statement::Select(select) => select.sources.into_iter().next(),
        _ => None,
    }
}

/// The sources of a list in which, as in InfluxDB, a measurement whose policy is not named is that of
/// the default policy.
pub(crate) fn of_default_policies(
    run: &StatementRun<'_>,
    database: &str,
    sources: &[Source],
) -> Vec<Source> {
    let mut sources = sources.to_vec();
    if sources.is_empty() {
        sources.extend(every_measurement());
    }
    for source in &mut sources {
        let Source::Measurement(measurement) = source else {
            continue;
        };
        let database = match measurement.database.as_str() {
            "" => database,
            database => database,
        };
        if measurement.retention_policy.is_empty() {
            let engine = run.context.engine();
            let default = run.policies.default_policy(engine, database);
            measurement.retention_policy = default.unwrap_or_default();
        }
    }
    sources
}

/// The measurements of a database in all its policies, or those that FROM names; sorted by name.
pub(crate) fn sources(
    run: &StatementRun<'_>,
    database: &str,
    sources: &[Source],
) -> SqlResult<Vec<StoredMeasurement>> {
    let engine = run.context.engine();
    let every = every_measurement();
    let named: Vec<&Source> = if sources.is_empty() {
        every.iter().collect()
    } else {
        sources.iter().collect()
    };
    let mut found: Vec<StoredMeasurement> = Vec::new();
    for source in named {
        let Source::Measurement(measurement) = source else {
            continue;
        };
        let database = match measurement.database.as_str() {
            "" => database,
            database => database,
        };
        let policies = match measurement.retention_policy.as_str() {
            "" => run.policies.policies(engine, database),
            policy => vec![policy.to_owned()],
        };
        for policy in policies {
            let full = Measurement {
                database: database.to_owned(),
                retention_policy: policy,
                name: measurement.name.clone(),
            };
            found.extend(stored_measurements(&run.catalog(), &full)?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.dedup_by(|a, b| a.table.id == b.table.id);
    Ok(found)
}

fn measurements(run: &StatementRun<'_>, show: &ShowMeasurements) -> SqlResult<Listing> {
    if show.database.is_empty() {
        return Err(refused("database name required"));
    }
    if check_database(run, &show.database).is_err() {
        return Ok(Listing::new(vec![("name", InfluxValueType::String)]));
    }
    let condition = condition(show.condition.as_ref())?;
    let from: Vec<Source> = show
        .measurement
        .iter()
        .cloned()
        .map(Source::Measurement)
        .collect();
    let mut names: Vec<Arc<str>> = Vec::new();
    for measurement in sources(run, &show.database, &from)? {
        if is_shown(run, &measurement, condition.as_ref())? {
            names.push(measurement.name);
        }
    }
    names.dedup();
    let mut listing = Listing::new(vec![("name", InfluxValueType::String)]);
    let series: Arc<str> = "measurements".into();
    for name in limited(names, show.limit, show.offset) {
        listing.push(Some(&series), vec![Value::String(name)]);
    }
    Ok(listing)
}

/// Whether SHOW MEASUREMENTS shows a table. Each comparison is one with all values of a tag: `!=` and
/// `!~` hold where no series has such a value.
fn is_shown(
    run: &StatementRun<'_>,
    measurement: &StoredMeasurement,
    condition: Option<&Expression>,
) -> SqlResult<bool> {
    let Some(condition) = condition else {
        return has_series(run, measurement, None, fulfils);
    };
    match condition {
        Expression::Paren(inner) => is_shown(run, measurement, Some(inner)),
        Expression::Chain(first, links) => {
            let (mut all, rest) = match links.split_first() {
                Some(((op, rhs), rest)) if op.precedence() == 3 => {
                    (compares(run, measurement, (first, *op, rhs))?, rest)
                }
                _ => (is_shown(run, measurement, Some(first))?, links.as_slice()),
            };
            for (op, rhs) in rest {
                let rhs = is_shown(run, measurement, Some(rhs))?;
                all = match op {
                    BinaryOp::Or => all || rhs,
                    _ => all && rhs,
                };
            }
            Ok(all)
        }
        other => has_series(run, measurement, Some(other), fulfils),
    }
}

/// Whether a comparison holds for all values of a tag that a table has.
fn compares(
    run: &StatementRun<'_>,
    measurement: &StoredMeasurement,
    (left, op, right): (&Expression, BinaryOp, &Expression),
) -> SqlResult<bool> {
    let (positive, is_negated) = match op {
        BinaryOp::Neq => (BinaryOp::Eq, true),
        BinaryOp::NeqRegex => (BinaryOp::EqRegex, true),
        op => (op, false),
    };
    let Expression::Name(var) = left else {
        let sign = op.sign();
        return Err(refused(format!("left side of '{sign}' must be a tag key")));
    };
    let wanted = match (positive, right) {
        (BinaryOp::Eq, Expression::Value(Value::String(_)))
        | (BinaryOp::EqRegex, Expression::Regex(_)) => None,
        (BinaryOp::Eq, _) => Some("tag value string"),
        _ => Some("regular expression"),
    };
    if let Some(wanted) = wanted {
        let sign = op.sign();
        return Err(refused(format!(
            "right side of '{sign}' must be a {wanted}"
        )));
    }
    // Without the tag there is nothing to compare with; fields are not compared.
    if measurement.table.tag(&var.name).is_none() {
        return Ok(false);
    }
    let link = vec![(positive, right.clone())];
    let comparison = Expression::Chain(Box::new(left.clone()), link);
    let found = has_series(run, measurement, Some(&comparison), fulfils_with_tags)?;
    Ok(found != is_negated)
}

/// Whether a table has series that fulfil a condition, as `fulfils` sees it.
fn has_series(
    run: &StatementRun<'_>,
    measurement: &StoredMeasurement,
    condition: Option<&Expression>,
    fulfils: fn(Option<&Expression>, &[Arc<str>]) -> bool,
) -> SqlResult<bool> {
    let condition = condition.and_then(|condition| tag_condition(condition, measurement));
    let mut found = false;
    each_series((run.context.engine(), &run.budget), measurement, |tags| {
        found = fulfils(condition.as_ref(), tags);
        Ok(if found {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(found)
}

/// The measurements of each name: there is one in each retention policy that has it.
fn by_name(all: &[StoredMeasurement]) -> impl Iterator<Item = &[StoredMeasurement]> {
    all.chunk_by(|a, b| a.name == b.name)
}

/// The keys of series as line protocol writes them.
fn series(run: &StatementRun<'_>, show: &ShowSeries) -> SqlResult<Listing> {
    check_database(run, &show.database)?;
    let condition = condition(without_time(show.condition.as_ref()).as_ref())?;
    let mut keys: Vec<String> = Vec::new();
    for measurement in sources(run, &show.database, &show.sources)? {
        add_keys(run, &measurement, condition.as_ref(), &mut keys)?;
    }
    keys.sort();
    keys.dedup();
    let mut listing = Listing::new(vec![("key", InfluxValueType::String)]);
    for key in limited(keys, show.limit, show.offset) {
        listing.push(None, vec![text(&key)]);
    }
    Ok(listing)
}

/// Adds the keys of the series that fulfil a condition.
fn add_keys(
    run: &StatementRun<'_>,
    measurement: &StoredMeasurement,
    condition: Option<&Expression>,
    keys: &mut Vec<String>,
) -> SqlResult<()> {
    let condition = condition.and_then(|condition| tag_condition(condition, measurement));
    let name = escaped(&measurement.name, &[',', ' ']);
    let mut order: Vec<usize> = (0..measurement.table.tags.len()).collect();
    order.sort_by_key(|place| &measurement.table.tags[*place].name);
    each_series((run.context.engine(), &run.budget), measurement, |tags| {
        if !fulfils(condition.as_ref(), tags) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut key = name.clone();
        for place in order.iter().filter(|place| !tags[**place].is_empty()) {
            key.push(',');
            key.push_str(&escaped(
                &measurement.table.tags[*place].name,
                &[',', '=', ' '],
            ));
            key.push('=');
            key.push_str(&escaped(&tags[*place], &[',', '=', ' ']));
        }
        run.budget.keep(listed_bytes(&key))?;
        keys.push(key);
        Ok(ControlFlow::Continue(()))
    })
}

fn escaped(text: &str, special: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for ch in text.chars() {
        if special.contains(&ch) {
            escaped.push('\\');
        }
        escaped.push(ch);
    }
    escaped
}

/// A condition without its times: lists do not depend on them.
fn without_time(condition: Option<&Expr>) -> Option<Expr> {
    let context = marigram_influxql::time_range::TimeContext {
        now_ns: 0,
        time_zone: None,
        zones: &crate::window::BundledZones,
    };
    let split = marigram_influxql::time_range::split_condition(condition, &context);
    split.map_or_else(|_| condition.cloned(), |split| split.condition)
}

fn field_keys(run: &StatementRun<'_>, show: &ShowFieldKeys) -> SqlResult<Listing> {
    check_database(run, &show.database)?;
    let columns = vec![
        ("fieldKey", InfluxValueType::String),
        ("fieldType", InfluxValueType::String),
    ];
    let mut listing = Listing::new(columns);
    let from = of_default_policies(run, &show.database, &show.sources);
    let mut known = Vec::new();
    for measurement in sources(run, &show.database, &from)? {
        // As in InfluxDB, a measurement without series is none.
        let is_view = measurement.table.rollup.is_some();
        if is_view || number_of_series(run.context.engine(), &measurement)? > 0 {
            known.push(measurement);
        }
    }
    for named in by_name(&known) {
        for (name, kind) in limited(fields_of(named), show.limit, show.offset) {
            listing.push(Some(&named[0].name), vec![text(name), text(kind.name())]);
        }
    }
    Ok(listing)
}

/// The fields of measurements of one name, each once.
fn fields_of(named: &[StoredMeasurement]) -> Vec<(&str, InfluxValueType)> {
    let fields = named.iter().flat_map(StoredMeasurement::fields);
    let mut fields: Vec<(&str, InfluxValueType)> = fields.collect();
    fields.sort();
    fields.dedup();
    fields
}

/// Whether a key of a tag is meant.
type IsTagKeyMeant<'a> = Box<dyn Fn(&str) -> bool + 'a>;

/// Which keys of tags a filter keeps.
fn tag_key_filter(filter: Option<&TagKeyFilter>) -> SqlResult<IsTagKeyMeant<'_>> {
    Ok(match filter {
        None => Box::new(|_| true),
        Some(TagKeyFilter::Eq(name)) => Box::new(move |key| key == name),
        Some(TagKeyFilter::Neq(name)) => Box::new(move |key| key != name),
        Some(TagKeyFilter::Matches(regex)) => {
            let regex = compile_regex(regex)?;
            Box::new(move |key| regex.is_match(key))
        }
        Some(TagKeyFilter::MatchesNot(regex)) => {
            let regex = compile_regex(regex)?;
            Box::new(move |key| !regex.is_match(key))
        }
        Some(TagKeyFilter::In(names)) => Box::new(move |key| names.iter().any(|name| name == key)),
    })
}
