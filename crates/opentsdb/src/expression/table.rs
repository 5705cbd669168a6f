//! The series of a variable, and the values of an expression.

use crate::reducer::SeriesPoint;
use std::collections::{BTreeMap, BTreeSet};

/// What the answer says of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpressionHead {
    /// The metrics that it is computed of.
    pub metrics: BTreeSet<String>,
    /// The tags that its series share.
    pub tags: BTreeMap<String, String>,
    /// The names of the other tags.
    pub aggregate_tags: BTreeSet<String>,
}

impl ExpressionHead {
    /// Bytes that it holds, nearly.
    pub fn held_bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 64;
        let names = self.metrics.iter().chain(&self.aggregate_tags);
        let names: usize = names.map(|name| ENTRY_BYTES + name.len()).sum();
        let tags = self.tags.iter();
        let tags: usize = tags
            .map(|(key, value)| 2 * ENTRY_BYTES + key.len() + value.len())
            .sum();
        size_of::<Self>() + names + tags
    }
}

/// The series of a metric, in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct SeriesSet {
    /// The series.
    pub series: Vec<(ExpressionHead, Vec<SeriesPoint>)>,
    /// The tags that the filters of the metric name.
    pub query_keys: BTreeSet<String>,
}

/// The values of several series at the same times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinedSeries {
    /// The series.
    pub heads: Vec<ExpressionHead>,
    /// The times, ms, ascending.
    pub times: Vec<i64>,
    /// For each time the value of each series.
    pub values: Vec<f64>,
}

impl JoinedSeries {
    /// Bytes that the times and the values hold.
    pub fn held_bytes(&self) -> usize {
        (self.times.capacity() + self.values.capacity()) * size_of::<f64>()
    }

    /// The values at the time of this number.
    pub fn row(&self, number: usize) -> &[f64] {
        let width = self.heads.len();
        let from = number.saturating_mul(width);
        self.values.get(from..from + width).unwrap_or_default()
    }
}
