//! Annotations of a range of times, to list or to delete.

use super::checked_tsuid;
use crate::error::{QueryFault, missing_parameter};
use crate::scalar::{Flag, Scalar};
use crate::time_text::{parse_time, zone};
use serde::{Deserialize, Serialize};

/// Series that one request may name.
const SERIES_MAX: usize = 1000;

/// The annotations that begin in a range of times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AnnotationRange {
    /// Of these series.
    pub tsuids: Vec<String>,
    /// And of all series.
    pub global: bool,
    /// The first time, ms.
    pub start_ms: i64,
    /// The last time, ms.
    pub end_ms: i64,
}

/// A request to delete annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationDeletion {
    /// What is deleted.
    pub range: AnnotationRange,
    /// The series as the answer names them; `None` if the request named none.
    pub named: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeletionBody {
    start_time: Option<Scalar>,
    end_time: Option<Scalar>,
    tsuids: Option<Vec<String>>,
    global: Flag,
}

impl AnnotationRange {
    /// Reads a request for annotations of all series.
    ///
    /// # Errors
    /// If a time is missing or wrong.
    pub fn from_parameters(
        parameters: &[(String, String)],
        now_ms: i64,
    ) -> Result<Self, QueryFault> {
        let start = named(parameters, "start_time");
        let start = start.ok_or_else(|| QueryFault::new("Missing start time"))?;
        Self::new(
            start,
            named(parameters, "end_time"),
            Vec::new(),
            true,
            now_ms,
        )
    }

    fn new(
        start: &str,
        end: Option<&str>,
        tsuids: Vec<String>,
        global: bool,
        now_ms: i64,
    ) -> Result<Self, QueryFault> {
        let zone = zone(None)?;
        let start_ms = parse_time(start, now_ms, &zone)?;
        let end_ms = end.map_or(Ok(now_ms), |end| parse_time(end, now_ms, &zone))?;
        if end_ms < 1 {
            return Err(QueryFault::new("The end timestamp has not been set"));
        }
        if end_ms < start_ms {
            return Err(QueryFault::new(
                "The end timestamp cannot be less than the start timestamp",
            ));
        }
        Ok(Self {
            tsuids,
            global,
            start_ms,
            end_ms,
        })
    }
}

impl AnnotationDeletion {
    /// Reads the parameters of a URL.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_parameters(
        parameters: &[(String, String)],
        now_ms: i64,
    ) -> Result<Self, QueryFault> {
        let start = named(parameters, "start_time");
        let start = start.ok_or_else(|| missing_parameter("start_time"))?;
        let tsuids = named(parameters, "tsuids").map(|tsuids| {
            let tsuids = tsuids.split(',');
            tsuids.map(|tsuid| tsuid.trim().to_owned()).collect()
        });
        let mut flags = parameters.iter().filter(|(name, _)| name == "global");
        let global = flags.any(|(_, value)| !value.eq_ignore_ascii_case("false"));
        Self::new(start, named(parameters, "end_time"), tsuids, global, now_ms)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn from_json(body: &[u8], now_ms: i64) -> Result<Self, QueryFault> {
        let body: DeletionBody = serde_json::from_slice(body).map_err(|error| {
            QueryFault::new("Unable to parse the given JSON").with_details(error.to_string())
        })?;
        let text = |time: Option<Scalar>| {
            let text = time.map(|time| time.to_string());
            text.filter(|text| !text.is_empty())
        };
        let start = text(body.start_time);
        let start = start.ok_or_else(|| QueryFault::new("Missing the start time value"))?;
        let end = text(body.end_time);
        Self::new(&start, end.as_deref(), body.tsuids, body.global.0, now_ms)
    }

    fn new(
        start: &str,
        end: Option<&str>,
        named: Option<Vec<String>>,
        global: bool,
        now_ms: i64,
    ) -> Result<Self, QueryFault> {
        let series = named.as_deref().unwrap_or_default();
        if series.is_empty() && !global {
            return Err(QueryFault::new(
                "Missing the TSUIDs or global annotations flag",
            ));
        }
        if series.len() > SERIES_MAX {
            return Err(QueryFault::new(format!(
                "There are more than {SERIES_MAX} TSUIDs"
            )));
        }
        let tsuids: Result<Vec<String>, _> = series
            .iter()
            .filter(|tsuid| !tsuid.is_empty())
            .map(|tsuid| checked_tsuid(tsuid))
            .collect();
        Ok(Self {
            range: AnnotationRange::new(start, end, tsuids?, global, now_ms)?,
            named,
        })
    }

    /// The answer, after so many were deleted.
    pub fn answer(&self, deleted: usize) -> serde_json::Value {
        serde_json::json!({
            "tsuids": self.named,
            "global": self.range.global,
            "startTime": self.range.start_ms,
            "endTime": self.range.end_ms,
            "totalDeleted": deleted,
        })
    }
}

/// The value of a parameter that is not empty.
fn named<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut named = parameters.iter();
    let (_, value) = named.find(|(known, value)| known == name && !value.is_empty())?;
    Some(value)
}
