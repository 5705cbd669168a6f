//! The request as JSON has it. What is not known in it is passed over, as OpenTSDB does it.

use crate::error::{QueryFault, missing_content};
use crate::filter::FilterSpec;
use crate::query::TsQuery;
use crate::scalar::{Flag, Scalar};
use serde::{Deserialize, Serialize};

/// A request of `/api/query/exp`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ExpressionQuery {
    pub(super) name: Option<String>,
    pub(super) time: Option<TimeSpec>,
    pub(super) filters: Option<Vec<FilterSetSpec>>,
    pub(super) metrics: Option<Vec<MetricSpec>>,
    pub(super) expressions: Option<Vec<ExpressionSpec>>,
    pub(super) outputs: Option<Vec<OutputSpec>>,
}

/// The times, and what is done with all metrics.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct TimeSpec {
    pub start: Option<Scalar>,
    pub end: Option<Scalar>,
    pub timezone: Option<String>,
    pub downsampler: Option<DownsamplerSpec>,
    pub aggregator: Option<String>,
    pub rate: Flag,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DownsamplerSpec {
    pub interval: Option<String>,
    pub aggregator: Option<String>,
    pub fill_policy: Option<FillSpec>,
}

/// What stands for a missing value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct FillSpec {
    pub policy: Option<String>,
    pub value: Option<Scalar>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FilterSetSpec {
    pub id: Option<String>,
    pub tags: Option<Vec<FilterSpec>>,
    pub explicit_tags: Flag,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MetricSpec {
    pub metric: Option<String>,
    pub id: Option<String>,
    pub filter: Option<String>,
    pub aggregator: Option<String>,
    pub time_offset: Option<String>,
    pub fill_policy: Option<FillSpec>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ExpressionSpec {
    pub id: Option<String>,
    pub expr: Option<String>,
    pub join: Option<JoinSpec>,
    pub fill_policy: Option<FillSpec>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct JoinSpec {
    pub operator: Option<String>,
    pub use_query_tags: Flag,
    pub include_agg_tags: Flag,
}

impl Default for JoinSpec {
    fn default() -> Self {
        Self {
            operator: None,
            use_query_tags: Flag(false),
            include_agg_tags: Flag(true),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct OutputSpec {
    pub id: Option<String>,
    pub alias: Option<String>,
}

impl ExpressionQuery {
    /// Reads a body.
    ///
    /// # Errors
    /// If it is no request.
    pub fn from_json(body: &[u8]) -> Result<Self, QueryFault> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(missing_content());
        }
        serde_json::from_slice(body).map_err(|error| {
            QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
        })
    }

    /// The request as the answer repeats it: with the default of each key that it lacks.
    pub fn description(&self) -> serde_json::Value {
        let mut shown = self.clone();
        for expression in shown.expressions.iter_mut().flatten() {
            let join = expression.join.get_or_insert_default();
            join.operator
                .get_or_insert_with(|| "union".to_owned())
                .make_ascii_lowercase();
        }
        serde_json::to_value(shown).unwrap_or_default()
    }

    /// The same request with its times as numbers, so that it means the same later.
    ///
    /// # Errors
    /// As [`ExpressionQuery::check`].
    pub fn checked(self, now_ms: i64) -> Result<Self, QueryFault> {
        self.check(now_ms)?;
        self.resolved(now_ms)
    }

    fn resolved(mut self, now_ms: i64) -> Result<Self, QueryFault> {
        if let Some(time) = &mut self.time {
            let span = TsQuery {
                start: time.start.take(),
                end: time.end.take(),
                timezone: time.timezone.clone(),
                ..TsQuery::default()
            };
            let span = span.resolved(now_ms)?;
            (time.start, time.end) = (span.start, span.end);
        }
        Ok(self)
    }
}
