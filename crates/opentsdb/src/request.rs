//! What a server asks the database for, as one text: the request of a query language.

use crate::annotation::AnnotationQuery;
use crate::error::{QueryFault, missing_content, missing_parameter};
use crate::expression::ExpressionQuery;
use crate::filter::{TagValueFilter, check_filter_count};
use crate::m_parameter::{parse_m, split_outside};
use crate::query::TsQuery;
use crate::scalar::{Flag, Scalar};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that `/api/suggest` gives where nothing else is said, and at most.
const SUGGESTED: usize = 25;
const SUGGESTED_MAX: usize = 100_000;
/// Hours that `/api/query/last` looks back at most.
const HOURS_MAX: u32 = 24 * 365 * 100;
/// Series that one request may ask for.
const SERIES_MAX: usize = 1000;

/// A request.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "operation", rename_all = "lowercase")]
pub enum ReadRequest {
    /// `/api/query`
    Query(TsQuery),
    /// `/api/query/last`
    Last(LastQuery),
    /// `/api/suggest`
    Suggest(SuggestQuery),
    /// `/api/search/lookup`
    Lookup(LookupQuery),
    /// `/api/query/exp`
    Expressions(ExpressionQuery),
    /// Annotations that are stored.
    Annotations(AnnotationQuery),
}

impl ReadRequest {
    /// The request as text.
    pub fn to_text(&self) -> String {
        // Nothing in it can fail: keys are texts.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads [`ReadRequest::to_text`].
    ///
    /// # Errors
    /// If the text is none.
    pub fn from_text(text: &str) -> Result<Self, QueryFault> {
        serde_json::from_str(text).map_err(|error| {
            QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
        })
    }
}

/// A metric, and what the tags of its series must be.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct NamedSeries {
    /// The metric.
    pub metric: String,
    /// Values of tags, as in the braces of an `m`.
    pub tags: BTreeMap<String, String>,
}

impl NamedSeries {
    /// Reads `metric{tag=value,…}`.
    fn parse(text: &str) -> Result<Self, QueryFault> {
        let (metric, braces) = text.split_at(text.find('{').unwrap_or(text.len()));
        if metric.is_empty() && braces.is_empty() {
            return Err(QueryFault::new("Metric cannot be null or empty"));
        }
        // The same forms as in a query, checked in the same way.
        parse_m(&format!("none:{text}"))?;
        let inside = braces
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let pairs = split_outside(inside.unwrap_or_default(), ',').into_iter();
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        let tags = pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
        Ok(Self {
            metric: metric.to_owned(),
            tags: tags.collect(),
        })
    }

    /// The filters of its tags.
    ///
    /// # Errors
    /// If one cannot be read, or there are too many.
    pub fn filters(&self) -> Result<Vec<TagValueFilter>, QueryFault> {
        check_filter_count(self.tags.len())?;
        let tags = self.tags.iter();
        tags.map(|(key, value)| TagValueFilter::from_value(key, value, false))
            .collect()
    }
}

/// A request for the newest point of each series.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct LastQuery {
    /// The series.
    pub series: Vec<NamedSeries>,
    /// Points before this time do not count, ms.
    pub since_ms: i64,
}

impl LastQuery {
    /// Reads the parameters of a URL.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_parameters(
        parameters: &[(String, String)],
        now_ms: i64,
    ) -> Result<Self, QueryFault> {
        let mut query = Self::default();
        let mut hours = 0;
        for (name, value) in parameters {
            match name.as_str() {
                "timeseries" => query.series.push(NamedSeries::parse(value)?),
                "back_scan" => {
                    let invalid = |_| QueryFault::new("Unable to parse back_scan parameter");
                    hours = parse_hours(value).map_err(invalid)?;
                }
                "tsuids" => {
                    return Err(QueryFault::new("Queries by TSUID are not supported"));
                }
                _ => {}
            }
        }
        query.checked(hours, now_ms)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_json(body: &[u8], now_ms: i64) -> Result<Self, QueryFault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct LastRequestBody {
            #[serde(default)]
            queries: Vec<LastSeriesBody>,
            #[serde(default)]
            back_scan: Option<Scalar>,
        }
        #[derive(Deserialize)]
        struct LastSeriesBody {
            metric: Option<String>,
            #[serde(default)]
            tags: Option<BTreeMap<String, Scalar>>,
            #[serde(default)]
            tsuids: Option<Vec<String>>,
        }
        if body.is_empty() {
            return Err(missing_content());
        }
        let body: LastRequestBody = serde_json::from_slice(body).map_err(|error| {
            QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
        })?;
        let mut query = Self::default();
        for asked in body.queries {
            let Some(metric) = asked.metric.filter(|metric| !metric.is_empty()) else {
                return Err(QueryFault::new(match asked.tsuids {
                    Some(tsuids) if !tsuids.is_empty() => "Queries by TSUID are not supported",
                    _ => "Metric cannot be null or empty",
                }));
            };
            let tags = asked.tags.unwrap_or_default().into_iter();
            let tags = tags.map(|(key, value)| (key, value.to_string()));
            let tags = tags.collect();
            query.series.push(NamedSeries { metric, tags });
        }
        let hours = body.back_scan.map(|hours| parse_hours(&hours.to_string()));
        query.checked(hours.transpose()?.unwrap_or(0), now_ms)
    }

    fn checked(mut self, hours: u32, now_ms: i64) -> Result<Self, QueryFault> {
        if self.series.is_empty() {
            return Err(QueryFault::new("Missing sub queries"));
        }
        if self.series.len() > SERIES_MAX {
            return Err(QueryFault::new(format!(
                "There are more than {SERIES_MAX} queries"
            )));
        }
        for series in &self.series {
            series.filters()?;
        }
        if hours > 0 {
            self.since_ms = now_ms.saturating_sub(i64::from(hours) * 3_600_000).max(0);
        }
        Ok(self)
    }
}

fn parse_hours(text: &str) -> Result<u32, QueryFault> {
    let hours = text.parse::<u32>().ok();
    let hours = hours.filter(|hours| *hours <= HOURS_MAX);
    hours.ok_or_else(|| QueryFault::new(format!("Invalid number of hours: {text:.20}")))
}

/// What names are suggested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuggestedNames {
    /// Metrics.
    #[default]
    Metrics,
    /// Names of tags.
    Tagk,
    /// Values of tags.
    Tagv,
}

/// A request for names that begin in a way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SuggestQuery {
    /// Of what.
    pub names: SuggestedNames,
    /// How they begin.
    pub prefix: String,
    /// How many at most.
    pub max: usize,
}

impl SuggestQuery {
    /// Reads parameters: those of a URL, or those of a JSON object.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_parameters(parameters: &[(String, String)]) -> Result<Self, QueryFault> {
        let mut query = Self {
            max: SUGGESTED,
            ..Self::default()
        };
        let mut has_type = false;
        for (name, value) in parameters {
            match name.as_str() {
                "type" if value.is_empty() => {}
                "type" => {
                    has_type = true;
                    query.names = match value.as_str() {
                        "metrics" => SuggestedNames::Metrics,
                        "tagk" => SuggestedNames::Tagk,
                        "tagv" => SuggestedNames::Tagv,
                        other => {
                            return Err(QueryFault::new(format!(
                                "Invalid 'type' parameter:{other:.50}"
                            )));
                        }
                    };
                }
                "q" => query.prefix.clone_from(value),
                "max" => {
                    let invalid = |_| QueryFault::new("Unable to parse 'max' as a number");
                    let max = value.parse::<i32>().map_err(invalid)?;
                    // As in OpenTSDB, a number below 1 is no limit.
                    let max = usize::try_from(max).unwrap_or(0);
                    query.max = if max > 0 { max } else { SUGGESTED_MAX };
                }
                _ => {}
            }
        }
        if !has_type {
            return Err(missing_parameter("type"));
        }
        query.max = query.max.min(SUGGESTED_MAX);
        Ok(query)
    }
}

/// A request for the series of a metric.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct LookupQuery {
    /// The metric; any if it is empty or `*`.
    pub series: NamedSeries,
    /// How many at most.
    pub limit: usize,
}

impl LookupQuery {
    /// Reads the parameters of a URL.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_parameters(parameters: &[(String, String)]) -> Result<Self, QueryFault> {
        let mut query = Self {
            limit: SUGGESTED,
            ..Self::default()
        };
        let mut has_metric = false;
        for (name, value) in parameters {
            match name.as_str() {
                "m" if !value.is_empty() => {
                    has_metric = true;
                    let parsed = NamedSeries::parse(value);
                    let unable = |fault: QueryFault| {
                        QueryFault::new("Unable to parse query").with_details(fault.message)
                    };
                    query.series = parsed.map_err(unable)?;
                }
                "limit" => query.limit = parse_limit(value)?,
                _ => {}
            }
        }
        if !has_metric {
            return Err(missing_parameter("m"));
        }
        query.checked()
    }

    /// Reads a body.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_json(body: &[u8]) -> Result<Self, QueryFault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct LookupBody {
            #[serde(default)]
            metric: Option<String>,
            #[serde(default)]
            tags: Vec<LookupTag>,
            #[serde(default)]
            limit: Option<Scalar>,
            #[serde(default, rename = "useMeta")]
            _use_meta: Flag,
        }
        #[derive(Deserialize)]
        struct LookupTag {
            key: Option<String>,
            value: Option<String>,
        }
        if body.is_empty() {
            return Err(missing_parameter("m"));
        }
        let body: LookupBody = serde_json::from_slice(body).map_err(|error| {
            QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
        })?;
        let any = || "*".to_owned();
        let tags = body.tags.into_iter().filter_map(|pair| {
            let key = pair.key.filter(|key| key != "*")?;
            Some((
                key,
                pair.value
                    .filter(|value| !value.is_empty())
                    .unwrap_or_else(any),
            ))
        });
        let limit = body.limit.map(|limit| parse_limit(&limit.to_string()));
        Self {
            series: NamedSeries {
                metric: body.metric.unwrap_or_default(),
                tags: tags.collect(),
            },
            limit: limit.transpose()?.unwrap_or(SUGGESTED),
        }
        .checked()
    }

    fn checked(mut self) -> Result<Self, QueryFault> {
        // 0 stands for no limit.
        if self.limit == 0 || self.limit > SUGGESTED_MAX {
            self.limit = SUGGESTED_MAX;
        }
        if self.series.metric == "*" {
            self.series.metric.clear();
        }
        self.series.filters()?;
        Ok(self)
    }
}

fn parse_limit(text: &str) -> Result<usize, QueryFault> {
    let invalid = |_| QueryFault::new("Unable to convert 'limit' to a valid number");
    text.parse().map_err(invalid)
}

#[cfg(test)]
mod tests;
