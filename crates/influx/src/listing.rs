//! Lists the series of a table by their tags, from the series index.

use crate::budget::Budget;
use crate::evaluate::holds;
use crate::expression::Expression;
use crate::schema::StoredMeasurement;
use crate::series::SeriesKey;
use crate::value::Value;
use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use marigram_engine::{Engine, TagFilter};
use marigram_influxql::ast::BinaryOp;
use marigram_model::{SeriesId, TableSchema};
use marigram_sql::SqlResult;
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The number of series whose tags are read at once.
const SERIES_BATCH: usize = 8192;

/// Calls `visit` with the tags of each series of a table until it breaks: one value for each tag of
/// the table, in order; an empty one is missing.
///
/// A materialized view has the series of its table, too: its newest buckets are read from there.
///
/// # Errors
/// If the table does not exist any more, or the statement is to stop; errors of `visit`.
pub fn each_series(
    (engine, budget): (&Engine, &Budget),
    measurement: &StoredMeasurement,
    mut visit: impl FnMut(&[Arc<str>]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<()> {
    let (database, name) = (&measurement.table.database, &measurement.table.name);
    let stored = engine.table(database, name)?;
    let every_tag = |table: &TableSchema| -> Vec<Option<u16>> {
        let names = stored.tags.iter().map(|tag| &tag.name);
        names.map(|name| Some(table.tag(name)?.0)).collect()
    };
    let Some(rollup) = &stored.rollup else {
        let tags = every_tag(&stored);
        return each_stored_series((engine, budget), &stored, &tags, &mut visit).map(|_| ());
    };
    let mut seen: HashSet<Vec<Arc<str>>> = HashSet::new();
    let mut once = |tags: &[Arc<str>]| {
        if seen.contains(tags) {
            return Ok(ControlFlow::Continue(()));
        }
        budget.keep(tags.iter().map(|tag| listed_bytes(tag)).sum())?;
        seen.insert(tags.to_vec());
        visit(tags)
    };
    let source = engine.table_by_id(rollup.source);
    for table in [Some(&stored), source.as_ref()].into_iter().flatten() {
        let tags = every_tag(table);
        if each_stored_series((engine, budget), table, &tags, &mut once)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Calls `visit` with the values of some tags, by their places, of each series of a table.
fn each_stored_series(
    (engine, budget): (&Engine, &Budget),
    table: &TableSchema,
    tags_shown: &[Option<u16>],
    visit: &mut impl FnMut(&[Arc<str>]) -> SqlResult<ControlFlow<()>>,
) -> SqlResult<ControlFlow<()>> {
    let snapshot = engine.snapshot(&table.database, &table.name)?;
    let selection = snapshot.list(&TagFilter::All);
    for (shard, series) in selection.shards.iter().enumerate() {
        let all: Vec<SeriesId> = series.iter().map(SeriesId).collect();
        for some in all.chunks(SERIES_BATCH) {
            budget.check_interrupt()?;
            let mut columns = Vec::with_capacity(tags_shown.len());
            for ordinal in tags_shown {
                let values = snapshot.tag_values(shard, some, ordinal.unwrap_or(u16::MAX));
                columns.push(cast(&values, &DataType::Utf8).map_err(DataFusionError::from)?);
            }
            let mut tags: Vec<Arc<str>> = Vec::with_capacity(columns.len());
            for row in 0..some.len() {
                tags.clear();
                tags.extend(columns.iter().map(|column| -> Arc<str> {
                    let texts = column.as_string::<i32>();
                    if row >= column.len() || column.is_null(row) {
                        "".into()
                    } else {
                        texts.value(row).into()
                    }
                }));
                if visit(&tags)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The number of series of a table, without a look at their tags.
///
/// # Errors
/// If the table does not exist any more.
pub(crate) fn number_of_series(
    engine: &Engine,
    measurement: &StoredMeasurement,
) -> SqlResult<usize> {
    let table = &measurement.table;
    let snapshot = engine.snapshot(&table.database, &table.name)?;
    let selection = snapshot.list(&TagFilter::All);
    let counts = selection.shards.iter().map(|series| series.iter().count());
    Ok(counts.sum())
}

/// The memory that a list of texts needs for one of them, with its place in the answer.
pub(crate) const fn listed_bytes(text: &str) -> usize {
    2 * text.len() + 128
}

/// The part of a condition that is on tags alone, over the tags of the table in their order and one
/// that no series has. What is on fields holds.
pub(crate) fn tag_condition(
    condition: &Expression,
    measurement: &StoredMeasurement,
) -> Option<Expression> {
    match condition {
        Expression::Paren(inner) => tag_condition(inner, measurement),
        // A comparison before what AND and OR join it with.
        Expression::Chain(first, links)
            if links.len() > 1 && links.first().is_some_and(|(op, _)| op.precedence() == 3) =>
        {
            let (comparison, rest) = links.split_at(1);
            let first = Expression::Chain(first.clone(), comparison.to_vec());
            let joined = Expression::Chain(Box::new(first), rest.to_vec());
            tag_condition(&joined, measurement)
        }
        Expression::Chain(first, links)
            if links
                .iter()
                .all(|(op, _)| matches!(op, BinaryOp::And | BinaryOp::Or)) =>
        {
            let mut all = tag_condition(first, measurement);
            for (op, rhs) in links {
                let rhs = tag_condition(rhs, measurement);
                all = match (op, all, rhs) {
                    (BinaryOp::And, Some(all), Some(rhs)) => {
                        Some(Expression::Chain(Box::new(all), vec![(BinaryOp::And, rhs)]))
                    }
                    (BinaryOp::And, all, rhs) => all.or(rhs),
                    (_, Some(all), Some(rhs)) => {
                        Some(Expression::Chain(Box::new(all), vec![(BinaryOp::Or, rhs)]))
                    }
                    // A condition on a field makes one side true.
                    _ => None,
                };
            }
            all
        }
        other => {
            let names = other.names();
            let is_field = |name: &str| measurement.field_column(name).is_some();
            if names.iter().any(|var| is_field(&var.name)) {
                return None;
            }
            Some(other.replaced(&mut |part| match part {
                Expression::Name(var) => Some(match measurement.table.tag(&var.name) {
                    Some((ordinal, _)) => Expression::Column(usize::from(ordinal), None),
                    None => Expression::Column(measurement.table.tags.len(), None),
                }),
                _ => None,
            }))
        }
    }
}

/// Whether the tags of a series satisfy a [`tag_condition`].
pub(crate) fn fulfils(condition: Option<&Expression>, tags: &[Arc<str>]) -> bool {
    let Some(condition) = condition else {
        return true;
    };
    let mut values: Vec<Value> = tags
        .iter()
        .map(|tag| Value::String(Arc::clone(tag)))
        .collect();
    values.push(Value::String("".into()));
    holds(condition, &values)
}

/// Whether the tags of a series fulfil a [`tag_condition`] where a tag that is missing fulfils
/// nothing.
pub(crate) fn fulfils_with_tags(condition: Option<&Expression>, tags: &[Arc<str>]) -> bool {
    let value = |tag: &Arc<str>| {
        if tag.is_empty() {
            Value::Null
        } else {
            Value::String(Arc::clone(tag))
        }
    };
    let values: Vec<Value> = tags.iter().map(value).collect();
    condition.is_none_or(|condition| holds(condition, &values))
}

/// The series of a table by some of their tags, in the order of answers.
///
/// # Errors
/// If the table does not exist any more, or memory for the keys is not available.
pub(crate) fn series_keys(
    (engine, budget): (&Engine, &Budget),
    measurement: &StoredMeasurement,
    keys: &[Arc<str>],
    condition: Option<&Expression>,
) -> SqlResult<Vec<SeriesKey>> {
    let condition = condition.and_then(|condition| tag_condition(condition, measurement));
    let places: Vec<Option<u16>> = keys
        .iter()
        .map(|key| measurement.table.tag(key).map(|(ordinal, _)| ordinal))
        .collect();
    let mut found: BTreeSet<Vec<Arc<str>>> = BTreeSet::new();
    each_series((engine, budget), measurement, |tags| {
        if fulfils(condition.as_ref(), tags) {
            let values = places.iter().map(|place| match place {
                Some(ordinal) => Arc::clone(&tags[usize::from(*ordinal)]),
                None => "".into(),
            });
            let values: Vec<Arc<str>> = values.collect();
            let bytes = values.iter().map(|value| listed_bytes(value)).sum();
            if found.insert(values) {
                budget.keep(bytes)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let named = found.into_iter().map(|values| SeriesKey {
        name: Arc::clone(&measurement.name),
        tags: keys.iter().cloned().zip(values).collect(),
    });
    Ok(named.collect())
}
