//! `/api/suggest` and `/api/search/lookup`: metrics, tags and series by their names.

use crate::json_rows::json_rows;
use crate::metric::{holds_values, metric_table};
use crate::statement::{OpenTsdbRun, invalid};
use marigram_influx::{StoredMeasurement, each_series, readable_table};
use marigram_model::TableSchema;
use marigram_opentsdb::{
    LookupQuery, SuggestQuery, SuggestedNames, TagTest, TagValueFilter, series_uid,
};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use regex::{Regex, RegexBuilder};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Bytes of a series in an answer beside its tags.
const SERIES_BYTES: usize = 256;

/// The tables that are metrics, by name. A database that is not there has none.
fn metrics(run: &OpenTsdbRun<'_>) -> Vec<Arc<TableSchema>> {
    let (engine, database) = (run.context.engine(), run.database());
    let all = engine.tables(database).unwrap_or_default();
    let mut tables: Vec<Arc<TableSchema>> = all
        .iter()
        .filter_map(|table| readable_table(engine, &run.views, database, &table.name))
        .filter(|table| holds_values(table))
        .collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    tables
}

fn measurement(table: &Arc<TableSchema>) -> StoredMeasurement {
    StoredMeasurement {
        name: table.name.as_str().into(),
        table: Arc::clone(table),
    }
}

/// The first names of a kind, at most as many as are wanted.
struct FirstNames<'a> {
    query: &'a SuggestQuery,
    names: BTreeSet<String>,
}

impl FirstNames<'_> {
    fn add(&mut self, name: &str) {
        let is_late = self.names.len() >= self.query.max
            && self.names.last().is_some_and(|last| last.as_str() <= name);
        if is_late || !name.starts_with(&self.query.prefix) || self.names.contains(name) {
            return;
        }
        self.names.insert(name.to_owned());
        if self.names.len() > self.query.max {
            self.names.pop_last();
        }
    }
}

/// Answers `/api/suggest`: a JSON text for each name.
///
/// # Errors
/// If the statement is to stop.
pub(crate) fn suggest(run: &OpenTsdbRun<'_>, query: &SuggestQuery) -> SqlResult<StatementRows> {
    let mut first = FirstNames {
        query,
        names: BTreeSet::new(),
    };
    for table in metrics(run) {
        match query.names {
            SuggestedNames::Metrics => first.add(&table.name),
            SuggestedNames::Tagk => table.tags.iter().for_each(|tag| first.add(&tag.name)),
            SuggestedNames::Tagv => {
                let engine = run.context.engine();
                each_series((engine, &run.budget), &measurement(&table), |tags| {
                    let values = tags.iter().filter(|value| !value.is_empty());
                    values.for_each(|value| first.add(value));
                    Ok(ControlFlow::Continue(()))
                })?;
            }
        }
    }
    let names = first.names.into_iter();
    json_rows(names.map(|name| json!(name).to_string()).collect())
}

/// Answers `/api/search/lookup`: a JSON text for each series, at most as many as are wanted, and
/// then the number of all as one more.
///
/// # Errors
/// If there is no such metric, a filter is wrong, or there is no memory for the answer.
pub(crate) fn lookup(run: &OpenTsdbRun<'_>, query: &LookupQuery) -> SqlResult<StatementRows> {
    let tables = if query.series.metric.is_empty() {
        metrics(run)
    } else {
        vec![metric_table(run, &query.series.metric)?]
    };
    let filters = query.series.filters().map_err(invalid)?;
    let tests: Vec<ValueTests> = filters
        .into_iter()
        .map(ValueTests::new)
        .collect::<SqlResult<_>>()?;
    let (mut texts, mut total) = (Vec::new(), 0_u64);
    for table in tables {
        let engine = run.context.engine();
        each_series((engine, &run.budget), &measurement(&table), |values| {
            let names = table.tags.iter().zip(values);
            let tags: BTreeMap<&str, &str> = names
                .filter(|(_, value)| !value.is_empty())
                .map(|(tag, value)| (tag.name.as_str(), &**value))
                .collect();
            if !tests.iter().all(|test| test.holds(&tags)) {
                return Ok(ControlFlow::Continue(()));
            }
            total += 1;
            if texts.len() < query.limit {
                let bytes: usize = tags
                    .iter()
                    .map(|(key, value)| key.len() + value.len())
                    .sum();
                run.budget.keep(SERIES_BYTES + 2 * bytes)?;
                let pairs = tags.iter().map(|(key, value)| (*key, *value));
                let tsuid = series_uid(&table.name, pairs);
                let series = json!({"tags": tags, "metric": table.name, "tsuid": tsuid});
                texts.push(series.to_string());
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    texts.push(total.to_string());
    json_rows(texts)
}

/// A filter, ready to judge values.
struct ValueTests {
    filter: TagValueFilter,
    pattern: Option<Regex>,
}

impl ValueTests {
    fn new(filter: TagValueFilter) -> SqlResult<Self> {
        let pattern = filter.pattern().map(|pattern| {
            let compiled = RegexBuilder::new(&pattern)
                .size_limit(REGEX_BYTES_MAX)
                .build();
            compiled.map_err(|error| {
                SqlError::invalid("2201B", format!("the regular expression is wrong: {error}"))
            })
        });
        Ok(Self {
            pattern: pattern.transpose()?,
            filter,
        })
    }

    fn holds(&self, tags: &BTreeMap<&str, &str>) -> bool {
        let value = tags.get(self.filter.key.as_str());
        let Some(value) = value else {
            return self.filter.test == TagTest::NoKey;
        };
        let is_one = |values: &[String]| values.iter().any(|known| known == value);
        let is_match = || {
            let pattern = self.pattern.as_ref();
            pattern.is_some_and(|pattern| pattern.is_match(value))
        };
        match &self.filter.test {
            TagTest::NoKey => false,
            TagTest::OneOf(values) => is_one(values),
            TagTest::NoneOf(values) => !is_one(values),
            TagTest::NoneOfAnyCase(_) => !is_match(),
            TagTest::OneOfAnyCase(_)
            | TagTest::Wildcard(_)
            | TagTest::WildcardAnyCase(_)
            | TagTest::Regexp(_) => is_match(),
        }
    }
}
