//! A query: as it comes, and as it was checked.

use crate::aggregator::Aggregator;
use crate::checked_query::{CheckedQuery, RateOptions, TIME_MAX_MS};
use crate::downsample::Downsample;
use crate::error::{QueryFault, missing_content, missing_parameter};
use crate::filter::{TagValueFilter, check_filter_count};
use crate::m_parameter::parse_m;
use crate::scalar::{Flag, Scalar};
use crate::sub_query::{RateSpec, SubQuery};
use crate::time_text::{parse_time, zone};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parts of one query.
const QUERIES_MAX: usize = 100;

/// A query of `/api/query`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TsQuery {
    pub(crate) start: Option<Scalar>,
    pub(crate) end: Option<Scalar>,
    pub(crate) timezone: Option<String>,
    pub(crate) queries: Vec<SubQuery>,
    /// The parts of a URL, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) m: Vec<String>,
    pub(crate) ms_resolution: Flag,
    #[serde(rename = "showTSUIDs")]
    pub(crate) show_tsuids: Flag,
    pub(crate) show_summary: Flag,
    pub(crate) show_query: Flag,
    pub(crate) use_calendar: Flag,
    pub(crate) delete: Flag,
    pub(crate) no_annotations: Flag,
    pub(crate) global_annotations: Flag,
}

impl TsQuery {
    /// Reads the JSON of a query.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(body: &[u8]) -> Result<Self, QueryFault> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(missing_content());
        }
        serde_json::from_slice(body).map_err(|error| {
            QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
        })
    }

    /// Reads the parameters of a URL.
    ///
    /// # Errors
    /// If a part cannot be read.
    pub fn from_parameters(parameters: &[(String, String)]) -> Result<Self, QueryFault> {
        let mut query = Self::default();
        for (name, value) in parameters {
            let is_on = || Flag(!value.eq_ignore_ascii_case("false"));
            match name.as_str() {
                "start" => query.start = Some(Scalar::Text(value.clone())),
                "end" => query.end = Some(Scalar::Text(value.clone())),
                "tz" | "timezone" => query.timezone = Some(value.clone()),
                "m" => query.m.push(value.clone()),
                "tsuid" | "tsuids" => return Err(no_tsuids()),
                "ms" | "ms_resolution" => query.ms_resolution = is_on(),
                "show_tsuids" => query.show_tsuids = is_on(),
                "show_summary" => query.show_summary = is_on(),
                "show_query" => query.show_query = is_on(),
                "use_calendar" => query.use_calendar = is_on(),
                "no_annotations" => query.no_annotations = is_on(),
                "global_annotations" => query.global_annotations = is_on(),
                _ => {}
            }
        }
        let start = query.start.as_ref().map(ToString::to_string);
        if start.is_none_or(|start| start.is_empty()) {
            return Err(missing_parameter("start"));
        }
        if query.m.is_empty() {
            return Err(QueryFault::new("Missing sub queries"));
        }
        for m in &query.m {
            parse_m(m)?;
        }
        Ok(query)
    }

    /// Whether the answer shows the numbers of series.
    pub fn shows_tsuids(&self) -> bool {
        self.show_tsuids.0
    }

    /// Whether the answer shows the annotations of its series.
    pub fn shows_annotations(&self) -> bool {
        !self.no_annotations.0
    }

    /// Whether the answer shows the annotations of all series, too.
    pub fn shows_global_annotations(&self) -> bool {
        self.global_annotations.0 && self.shows_annotations()
    }

    /// Whether the answer ends with a summary.
    pub fn shows_summary(&self) -> bool {
        self.show_summary.0
    }

    /// Whether the answer repeats the query.
    pub fn shows_query(&self) -> bool {
        self.show_query.0
    }

    /// The same query with its times as numbers, so that it means the same later.
    ///
    /// # Errors
    /// As [`TsQuery::check`].
    pub fn resolved(mut self, now_ms: i64) -> Result<Self, QueryFault> {
        let (start_ms, end_ms) = self.range(now_ms, &zone(self.timezone.as_deref())?)?;
        self.start = Some(Scalar::Text(millisecond_text(start_ms)));
        self.end = Some(Scalar::Text(millisecond_text(end_ms)));
        Ok(self)
    }

    fn range(&self, now_ms: i64, zone: &TimeZone) -> Result<(i64, i64), QueryFault> {
        let start = self.start.as_ref().map(ToString::to_string);
        let Some(start) = start.filter(|start| !start.is_empty()) else {
            return Err(QueryFault::new("Missing start time"));
        };
        let start_ms = parse_time(&start, now_ms, zone)?;
        let end = self.end.as_ref().map(ToString::to_string);
        let end_ms = match end.filter(|end| !end.is_empty()) {
            Some(end) => parse_time(&end, now_ms, zone)?,
            None => now_ms,
        };
        if end_ms <= start_ms {
            return Err(QueryFault::new(format!(
                "End time [{end_ms}] must be greater than the start time [{start_ms}]"
            )));
        }
        Ok((start_ms.min(TIME_MAX_MS - 1), end_ms.min(TIME_MAX_MS)))
    }

    /// The parts of the query, at the time `now_ms`.
    ///
    /// # Errors
    /// What is wrong with it, in OpenTSDB's words.
    pub fn check(&self, now_ms: i64) -> Result<Vec<CheckedQuery>, QueryFault> {
        if self.delete.0 {
            return Err(QueryFault::new("Deleting data is not enabled")
                .with_details("Delete rows with SQL: DELETE FROM metric WHERE …"));
        }
        let zone = zone(self.timezone.as_deref())?;
        let range = self.range(now_ms, &zone)?;
        if self.m.len() + self.queries.len() > QUERIES_MAX {
            return Err(QueryFault::new(format!(
                "There are more than {QUERIES_MAX} queries"
            )));
        }
        let parsed: Result<Vec<SubQuery>, _> = self.m.iter().map(|m| parse_m(m)).collect();
        let parsed = parsed?;
        let all: Vec<&SubQuery> = parsed.iter().chain(&self.queries).collect();
        if all.is_empty() {
            return Err(QueryFault::new("Missing queries"));
        }
        let checked = all
            .into_iter()
            .map(|query| self.checked(query, range, &zone));
        checked.collect()
    }

    /// The parts of the query as an answer repeats them.
    pub fn descriptions(&self) -> Vec<serde_json::Value> {
        let parsed = self.m.iter().filter_map(|m| {
            let query = parse_m(m).ok()?;
            let filters = query.parsed.iter().map(TagValueFilter::spec).collect();
            Some(SubQuery {
                filters: Some(filters),
                ..query
            })
        });
        let all = parsed.chain(self.queries.iter().cloned()).enumerate();
        let described = all.map(|(index, query)| {
            let mut value = serde_json::to_value(&query).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("index".to_owned(), index.into());
            }
            value
        });
        described.collect()
    }

    fn checked(
        &self,
        query: &SubQuery,
        (start_ms, end_ms): (i64, i64),
        zone: &TimeZone,
    ) -> Result<CheckedQuery, QueryFault> {
        let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let name = named(&query.aggregator);
        let name = name.ok_or_else(|| QueryFault::new("Missing the aggregation function"))?;
        let aggregator = Aggregator::from_name(&name).ok_or_else(|| {
            let names: Vec<_> = Aggregator::names().collect();
            QueryFault::new(format!("No such aggregation function: {name:.50}"))
                .with_details(format!("There are {}", names.join(", ")))
        })?;
        if query
            .tsuids
            .as_ref()
            .is_some_and(|tsuids| !tsuids.is_empty())
        {
            return Err(no_tsuids());
        }
        let missing = || QueryFault::new("Missing the metric or tsuids, provide at least one");
        let metric = named(&query.metric).ok_or_else(missing)?;
        let downsample = named(&query.downsample)
            .map(|text| Downsample::parse(&text, self.use_calendar.0, zone));
        let checked = CheckedQuery {
            metric,
            aggregator,
            downsample: downsample.transpose()?,
            rate: query.rate.0.then(|| rate(query.rate_options.as_ref())),
            filters: filters(query)?,
            explicit_tags: query.explicit_tags.0,
            start_ms,
            end_ms,
            has_milliseconds: self.ms_resolution.0,
        };
        checked.check_fill()?;
        Ok(checked)
    }
}

fn millisecond_text(ms: i64) -> String {
    // A number of few digits would be seconds.
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn no_tsuids() -> QueryFault {
    QueryFault::new("Queries by TSUID are not supported")
        .with_details("Name the metric and its tags instead")
}

fn rate(spec: Option<&RateSpec>) -> RateOptions {
    let spec = spec.cloned().unwrap_or_default();
    RateOptions {
        is_counter: spec.counter.0,
        counter_max: spec.counter_max.unwrap_or(i64::MAX as f64),
        reset_value: spec.reset_value.unwrap_or(0.0),
        drops_resets: spec.drop_resets.0,
    }
}

fn filters(query: &SubQuery) -> Result<Vec<TagValueFilter>, QueryFault> {
    let specs = query.filters.as_ref().map_or(0, Vec::len);
    let tags = query.tags.as_ref().map_or(0, BTreeMap::len);
    check_filter_count(query.parsed.len() + specs + tags)?;
    let mut filters = query.parsed.clone();
    for spec in query.filters.iter().flatten() {
        let group_by = spec.group_by.0;
        filters.push(TagValueFilter::from_name(
            &spec.tagk,
            &spec.kind,
            &spec.filter,
            group_by,
        )?);
    }
    for (key, value) in query.tags.iter().flatten() {
        filters.push(TagValueFilter::from_value(key, &value.to_string(), true)?);
    }
    Ok(filters)
}

#[cfg(test)]
pub(crate) mod tests;
