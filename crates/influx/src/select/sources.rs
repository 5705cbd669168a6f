//! Combines the sources of a SELECT into one, in the order of its rows.

use super::{Around, Running, build};
use crate::listing::series_keys;
use crate::prepare::{PreparedSelect, PreparedSource};
use crate::schema::StoredMeasurement;
use crate::series::{SeriesKey, sorted_keys};
use crate::source::{
    Concatenated, LimitedRows, MeasurementRequest, MeasurementRows, Merged, Nothing, RowOrder,
    RowSource, SourceColumn, SubqueryRows,
};
use marigram_sql::SqlResult;
use std::collections::HashSet;
use std::sync::Arc;

/// A measurement's name and the sources of its rows.
type MeasurementSources = (Arc<str>, Vec<Box<dyn RowSource>>);

/// What a SELECT requires of its sources.
pub(super) struct SourceRequest<'a> {
    pub(super) columns: &'a [SourceColumn],
    pub(super) inner: &'a Around,
    pub(super) is_raw: bool,
    pub(super) fetch: Option<usize>,
    /// LIMIT and OFFSET, where they count the rows of each stored series first; those of each group,
    /// if rows are in the order of the groups.
    pub(super) series_rows: Option<(u64, u64)>,
}

/// The sources of a SELECT as one.
pub(super) fn sources(
    prepared: &PreparedSelect,
    running: &Running,
    request: &SourceRequest<'_>,
) -> SqlResult<Box<dyn RowSource>> {
    let order = RowOrder {
        keys: Arc::clone(&request.inner.order),
        ascending: prepared.ascending,
    };
    let mut tables: Vec<(Arc<str>, Box<dyn RowSource>)> = Vec::new();
    let mut others: Vec<Box<dyn RowSource>> = Vec::new();
    for source in &prepared.sources {
        match source {
            PreparedSource::Measurement(measurement) => {
                let rows = table_rows(prepared, running, request, measurement)?;
                tables.push((Arc::clone(&measurement.name), rows));
            }
            PreparedSource::Subquery(inner) => {
                let rows = build(inner, running, Some(request.inner))?;
                others.push(Box::new(SubqueryRows::new(
                    inner,
                    rows,
                    request.columns,
                    prepared.condition.as_ref(),
                    Arc::clone(&request.inner.keys),
                )));
            }
        }
    }
    if !others.is_empty() {
        others.extend(tables.into_iter().map(|(_, rows)| rows));
        return Ok(match others.len() {
            1 => others.remove(0),
            _ => Box::new(Merged::new(order, others)),
        });
    }
    // Measurements are read one after the other, so that only one is open at a time.
    tables.sort_by(|(a, _), (b, _)| a.cmp(b));
    if !prepared.ascending {
        tables.reverse();
    }
    let mut groups: Vec<MeasurementSources> = Vec::new();
    for (name, rows) in tables {
        match groups.last_mut() {
            Some((known, group)) if *known == name => group.push(rows),
            _ => groups.push((name, vec![rows])),
        }
    }
    let one = |(_, mut group): MeasurementSources| match group.len() {
        1 => group.remove(0),
        _ => Box::new(Merged::new(order.clone(), group)),
    };
    let mut all: Vec<Box<dyn RowSource>> = groups.into_iter().map(one).collect();
    Ok(match all.len() {
        0 => Box::new(Nothing),
        1 => all.remove(0),
        _ => Box::new(Concatenated::new(all)),
    })
}

fn table_rows(
    prepared: &PreparedSelect,
    running: &Running,
    request: &SourceRequest<'_>,
    measurement: &StoredMeasurement,
) -> SqlResult<Box<dyn RowSource>> {
    let inner = request.inner;
    let series = match inner.series_limit {
        (0, 0) => None,
        limits => Some(limited_series(
            prepared,
            running,
            measurement,
            inner,
            limits,
        )?),
    };
    let keys = match request.series_rows {
        Some(_) if inner.keys != inner.order => {
            let tags = measurement.table.tags.iter().map(|tag| tag.name.clone());
            sorted_keys(tags.chain(inner.keys.iter().map(ToString::to_string)))
        }
        _ => Arc::clone(&inner.keys),
    };
    let alone = prepared.sources.len() == 1 && series.is_none();
    let rows = MeasurementRows::new(
        Arc::clone(&running.state),
        MeasurementRequest {
            measurement: measurement.clone(),
            columns: request.columns.to_vec(),
            condition: prepared.condition.clone(),
            range: inner.range,
            order: Arc::clone(&inner.order),
            keys,
            ascending: prepared.ascending,
            series,
            fetch: request.fetch.filter(|_| alone),
            needs_field: request.is_raw || request.columns.len() == 1,
        },
    );
    Ok(match request.series_rows {
        Some(limit) => {
            let (keys, budget) = (Arc::clone(&inner.keys), running.budget.clone());
            Box::new(LimitedRows::new(rows, limit, keys, budget))
        }
        None => Box::new(rows),
    })
}

/// What series are ordered by when SLIMIT counts them: the keys of the tags that they have, then the
/// values. Answers are ordered by the values alone.
fn counted_by(series: &SeriesKey) -> String {
    let tags = || series.tags.iter().filter(|(_, value)| !value.is_empty());
    let parts = tags()
        .map(|(key, _)| key)
        .chain(tags().map(|(_, value)| value));
    parts.map(|part| &**part).collect::<Vec<&str>>().join("|")
}

/// The series that SLIMIT and SOFFSET leave, counted from the smallest.
fn limited_series(
    prepared: &PreparedSelect,
    running: &Running,
    measurement: &StoredMeasurement,
    inner: &Around,
    (limit, offset): (u64, u64),
) -> SqlResult<HashSet<SeriesKey>> {
    let mut keys = series_keys(
        (&running.engine, &running.budget),
        measurement,
        &inner.keys,
        prepared.condition.as_ref(),
    )?;
    keys.sort_by_cached_key(counted_by);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let limit = match limit {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    Ok(keys.into_iter().skip(offset).take(limit).collect())
}
