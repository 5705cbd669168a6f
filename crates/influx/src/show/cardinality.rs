//! SHOW … CARDINALITY. All counts are exact, even if the column's name says that InfluxDB
//! estimates.

use super::{check_database, condition, has_series, limited, sources, tags};
use crate::listing::{each_series, fulfils, tag_condition};
use crate::output::Listing;
use crate::schema::refused;
use crate::statement::StatementRun;
use crate::value::{Value, ValueType};
use marigram_influxql::ast::{Cardinality, ShowCardinality};
use marigram_sql::SqlResult;
use std::collections::BTreeSet;
use std::sync::Arc;

fn count(count: usize) -> Vec<Value> {
    vec![Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))]
}

/// The answer of a SHOW … CARDINALITY.
pub(super) fn answer(run: &StatementRun<'_>, show: &ShowCardinality) -> SqlResult<Listing> {
    check_database(run, &show.database)?;
    if !show.dimensions.is_empty() {
        return Err(refused("GROUP BY is not supported with CARDINALITY"));
    }
    let only = condition(show.condition.as_ref())?;
    let estimated = !show.exact
        && matches!(show.of, Cardinality::Series | Cardinality::Measurement)
        && show.sources.is_empty()
        && only.is_none();
    let column = if estimated {
        "cardinality estimation"
    } else {
        "count"
    };
    let mut listing = Listing::new(vec![(column, ValueType::Integer)]);
    let mut all = 0;
    let mut counts: Vec<(Arc<str>, usize)> = Vec::new();
    for measurement in sources(run, &show.database, &show.sources)? {
        let found = match &show.of {
            Cardinality::Series => {
                let only = only
                    .as_ref()
                    .and_then(|only| tag_condition(only, &measurement));
                let mut found = 0;
                each_series(run.context.engine(), &measurement, |tags| {
                    found += usize::from(fulfils(only.as_ref(), tags));
                })?;
                found
            }
            Cardinality::Measurement => usize::from(has_series(run, &measurement, only.as_ref())?),
            Cardinality::TagKey => {
                let found = tags::tags_of(run, &measurement, None, show.condition.as_ref())?;
                let keys: BTreeSet<_> = found.into_iter().map(|(key, _)| key).collect();
                keys.len()
            }
            Cardinality::TagValues(filter) => {
                let only = show.condition.as_ref();
                tags::tags_of(run, &measurement, Some(filter), only)?.len()
            }
            Cardinality::FieldKey => measurement.fields().count(),
        };
        all += found;
        if found > 0 {
            counts.push((measurement.name, found));
        }
    }
    if estimated || show.of == Cardinality::Measurement {
        if estimated || all > 0 {
            listing.push(None, count(all));
        }
        return Ok(listing);
    }
    let one_row = |limit: u64, offset: u64| limited(vec![()], limit, offset).next().is_some();
    for (name, found) in counts {
        if one_row(show.limit, show.offset) {
            listing.push(Some(&name), count(found));
        }
    }
    Ok(listing)
}
