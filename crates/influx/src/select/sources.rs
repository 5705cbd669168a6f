//! Combines the sources of a SELECT into one, in the order of its rows.

use super::reading::{Reduction, TableReading};
use super::{EnclosingScope, Running, build};
use crate::listing::series_keys;
use crate::prepare::{PreparedSelect, PreparedSource};
use crate::schema::StoredMeasurement;
use crate::series::{SeriesKey, sorted_keys};
use crate::source::{
    Concatenated, ExtremeRows, FirstRows, LimitedRows, MeasurementRequest, MeasurementRows, Merged,
    NeededFields, Nothing, ReducedFallback, ReducedRequest, ReducedRows, RowOrder, RowSource,
    ShownSeries, SourceColumn, SubqueryRows,
};
use marigram_sql::SqlResult;
use std::collections::HashSet;
use std::sync::Arc;

/// A measurement's name and the sources of its rows.
type MeasurementSources = (Arc<str>, Vec<Box<dyn RowSource>>);

/// What a SELECT requires of its sources.
pub(super) struct SourceRequest<'a> {
    pub(super) columns: &'a [SourceColumn],
    pub(super) inner: &'a EnclosingScope,
    pub(super) is_raw: bool,
    pub(super) fetch: Option<usize>,
    /// LIMIT and OFFSET, where they count the rows of each stored series first; those of each group,
    /// if rows are in the order of the groups.
    pub(super) series_rows: Option<(u64, u64)>,
    /// What to read of tables.
    pub(super) reading: &'a TableReading,
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
                let rows = Box::new(SubqueryRows::new(
                    inner,
                    rows,
                    request.columns,
                    prepared.condition.as_ref(),
                    Arc::clone(&request.inner.keys),
                ));
                others.push(match (request.reading, inner.sources.as_slice()) {
                    (
                        TableReading::Groups(reduction),
                        [PreparedSource::Measurement(measurement)],
                    ) => {
                        let groups = reduction.request(inner, measurement, None);
                        reduced(running, reduction, groups, rows)
                    }
                    _ => rows,
                });
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

/// The groups of a request, or else made of rows.
fn reduced(
    running: &Running,
    reduction: &Reduction,
    groups: ReducedRequest,
    rows: Box<dyn RowSource>,
) -> Box<dyn RowSource> {
    let places = reduction.places.clone();
    Box::new(ReducedRows::new(
        Arc::clone(&running.state),
        groups,
        running.budget.clone(),
        Some(ReducedFallback { rows, places }),
    ))
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
        limits => Some(ShownSeries {
            keys: Arc::clone(&inner.keys),
            series: limited_series(prepared, running, measurement, inner, limits)?,
        }),
    };
    let reads_edges = matches!(request.reading, TableReading::Edges { .. });
    let by_series = reads_edges || (request.series_rows.is_some() && inner.keys != inner.order);
    let keys = if by_series {
        let tags = measurement.table.tags.iter().map(|tag| tag.name.clone());
        sorted_keys(tags.chain(inner.keys.iter().map(ToString::to_string)))
    } else {
        Arc::clone(&inner.keys)
    };
    let alone = prepared.sources.len() == 1 && series.is_none();
    let mut rows = MeasurementRequest {
        measurement: measurement.clone(),
        columns: request.columns.to_vec(),
        condition: prepared.condition.clone(),
        range: inner.range,
        order: Arc::clone(&inner.order),
        keys,
        ascending: prepared.ascending,
        series: series.clone(),
        fetch: request.fetch.filter(|_| alone),
        needs: if request.is_raw || request.columns.len() == 1 {
            NeededFields::Any
        } else {
            NeededFields::None
        },
        filters: Vec::new(),
    };
    let order = RowOrder {
        keys: Arc::clone(&inner.order),
        ascending: prepared.ascending,
    };
    let parts = (&running.engine, &running.state, &running.budget);
    let state = Arc::clone(&running.state);
    let source: Box<dyn RowSource> = match request.reading {
        TableReading::FirstRows(rows_max) => {
            Box::new(FirstRows::new(parts, rows, order, *rows_max))
        }
        TableReading::Edges { driver, is_first } => {
            rows.needs = NeededFields::One(*driver);
            rows.ascending = *is_first;
            rows.fetch = None;
            Box::new(FirstRows::new(parts, rows, order, 1))
        }
        TableReading::Extremes(reduction) => {
            let extremes = reduction.request(prepared, measurement, series);
            let budget = running.budget.clone();
            Box::new(ExtremeRows::new(state, budget, extremes, rows))
        }
        TableReading::Groups(reduction) => {
            let groups = reduction.request(prepared, measurement, series);
            let rows = Box::new(MeasurementRows::new(Arc::clone(&state), rows));
            reduced(running, reduction, groups, rows)
        }
        TableReading::Rows => Box::new(MeasurementRows::new(state, rows)),
    };
    let limit = if reads_edges {
        Some((0, 0))
    } else {
        request.series_rows
    };
    Ok(match limit {
        Some(limit) => {
            let (keys, budget) = (Arc::clone(&inner.keys), running.budget.clone());
            Box::new(LimitedRows::new(source, limit, keys, budget))
        }
        None => source,
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
    inner: &EnclosingScope,
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
