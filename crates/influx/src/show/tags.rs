//! SHOW TAG KEYS and SHOW TAG VALUES.

use super::{
    by_name, check_database, condition, limited, sources, tag_key_filter, text, without_time,
};
use crate::expression::Expression;
use crate::listing::{each_series, fulfils, listed_bytes, tag_condition};
use crate::output::Listing;
use crate::schema::StoredMeasurement;
use crate::statement_run::StatementRun;
use crate::value::{InfluxValueType, Value};
use marigram_influxql::ast::{Expr, ShowTagKeys, ShowTagValues, TagKeyFilter};
use marigram_sql::SqlResult;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Keys and values of the tags of series.
type KeyValues = BTreeSet<(Arc<str>, Arc<str>)>;

/// The tags of the series that fulfil a condition, as `fulfils` sees it, of measurements of one name.
pub(super) fn tags_of(
    run: &StatementRun<'_>,
    named: &[StoredMeasurement],
    filter: Option<&TagKeyFilter>,
    only: Option<&Expr>,
    fulfils: fn(Option<&Expression>, &[Arc<str>]) -> bool,
) -> SqlResult<KeyValues> {
    let only = condition(without_time(only).as_ref())?;
    let is_meant = tag_key_filter(filter)?;
    let mut found = KeyValues::new();
    for measurement in named {
        let only = only
            .as_ref()
            .and_then(|only| tag_condition(only, measurement));
        let tags = measurement.table.tags.iter().enumerate();
        let meant = tags.filter(|(_, tag)| is_meant(&tag.name));
        let meant: Vec<(usize, Arc<str>)> = meant
            .map(|(place, tag)| (place, tag.name.as_str().into()))
            .collect();
        each_series((run.context.engine(), &run.budget), measurement, |tags| {
            if !fulfils(only.as_ref(), tags) {
                return Ok(ControlFlow::Continue(()));
            }
            for (place, key) in &meant {
                if let Some(value) = tags.get(*place)
                    && !value.is_empty()
                {
                    let pair = (Arc::clone(key), Arc::clone(value));
                    if !found.contains(&pair) {
                        run.budget.keep(listed_bytes(value))?;
                        found.insert(pair);
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(found)
}

/// SHOW TAG KEYS
pub(super) fn keys(run: &StatementRun<'_>, show: &ShowTagKeys) -> SqlResult<Listing> {
    check_database(run, &show.database)?;
    let mut listing = Listing::new(vec![("tagKey", InfluxValueType::String)]);
    for named in by_name(&sources(run, &show.database, &show.sources)?) {
        let (filter, only) = (show.with_key.as_ref(), show.condition.as_ref());
        let mut keys: Vec<Arc<str>> = tags_of(run, named, filter, only, fulfils)?
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        keys.dedup();
        for key in limited(keys, show.limit, show.offset) {
            listing.push(Some(&named[0].name), vec![text(&key)]);
        }
    }
    Ok(listing)
}

/// SHOW TAG VALUES
pub(super) fn values(run: &StatementRun<'_>, show: &ShowTagValues) -> SqlResult<Listing> {
    check_database(run, &show.database)?;
    let columns = vec![
        ("key", InfluxValueType::String),
        ("value", InfluxValueType::String),
    ];
    let mut listing = Listing::new(columns);
    for named in by_name(&sources(run, &show.database, &show.sources)?) {
        let (filter, only) = (Some(&show.with_key), show.condition.as_ref());
        let found = tags_of(run, named, filter, only, fulfils)?;
        let found: Vec<_> = found.into_iter().collect();
        for (key, value) in limited(found, show.limit, show.offset) {
            let row = vec![Value::String(key), Value::String(value)];
            listing.push(Some(&named[0].name), row);
        }
    }
    Ok(listing)
}
