//! SHOW … CARDINALITY. All counts are exact, even if the column's name says that InfluxDB
//! estimates.

use super::{
    add_keys, by_name, check_database, condition, fields_of, has_series, limited,
    of_default_policies, sources, tags,
};
use crate::expression::Expression;
use crate::listing::{each_series, fulfils, fulfils_with_tags, number_of_series, tag_condition};
use crate::output::Listing;
use crate::schema::{StoredMeasurement, refused};
use crate::statement_run::StatementRun;
use crate::value::{InfluxValueType, Value};
use marigram_influxql::ast::{Cardinality, ShowCardinality};
use marigram_sql::SqlResult;
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
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
    let mut listing = Listing::new(vec![(column, InfluxValueType::Integer)]);
    let mut all = 0;
    let mut counts: Vec<(Arc<str>, usize)> = Vec::new();
    let of_all_policies = estimated || show.of == Cardinality::Measurement;
    let measurements = if of_all_policies {
        sources(run, &show.database, &show.sources)?
    } else {
        let from = of_default_policies(run, &show.database, &show.sources);
        sources(run, &show.database, &from)?
    };
    for named in by_name(&measurements) {
        let tags_of = |filter, fulfils| {
            let only = show.condition.as_ref();
            tags::tags_of(run, named, filter, only, fulfils)
        };
        let found = match &show.of {
            Cardinality::Series => series_count(run, named, only.as_ref())?,
            Cardinality::Measurement => {
                let mut found = false;
                for measurement in named {
                    found = found || has_series(run, measurement, only.as_ref(), fulfils)?;
                }
                usize::from(found)
            }
            Cardinality::TagKey => {
                let keys = tags_of(None, fulfils)?.into_iter().map(|(key, _)| key);
                keys.collect::<BTreeSet<_>>().len()
            }
            Cardinality::TagValues(filter) => tags_of(Some(filter), fulfils_with_tags)?.len(),
            Cardinality::FieldKey => fields_of(named).len(),
        };
        all += found;
        if found > 0 {
            counts.push((Arc::clone(&named[0].name), found));
        }
    }
    if of_all_policies {
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

/// How many series measurements of one name have that fulfil a condition. One that several of them have
/// counts once.
fn series_count(
    run: &StatementRun<'_>,
    named: &[StoredMeasurement],
    only: Option<&Expression>,
) -> SqlResult<usize> {
    let [measurement] = named else {
        let mut keys = Vec::new();
        for measurement in named {
            add_keys(run, measurement, only, &mut keys)?;
        }
        return Ok(keys.into_iter().collect::<HashSet<String>>().len());
    };
    let only = only.and_then(|only| tag_condition(only, measurement));
    if only.is_none() && measurement.table.rollup.is_none() {
        return number_of_series(run.context.engine(), measurement);
    }
    let mut found = 0;
    each_series((run.context.engine(), &run.budget), measurement, |tags| {
        found += usize::from(fulfils(only.as_ref(), tags));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
