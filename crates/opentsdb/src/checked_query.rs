//! A part of a query as it is computed: its times, intervals and filters.

use crate::aggregator::Aggregator;
use crate::downsample::{Downsample, DownsampleInterval, FillPolicy};
use crate::error::QueryFault;
use crate::filter::TagValueFilter;

/// Buckets of a series that a fill policy adds.
const FILLED_MAX: i64 = 1_000_000;
/// OpenTSDB reads rows of an hour: what surrounds the range of a query helps to interpolate.
const ROW_MS: i64 = 3_600_000;
const SECOND_MS: i64 = 1000;
/// The last time of a query: stored times are nanoseconds in 64 bits.
pub(crate) const TIME_MAX_MS: i64 = 9_223_372_036_854;

/// Options of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateOptions {
    /// Whether a value less than the one before is a counter that began again.
    pub is_counter: bool,
    /// Where the counter begins again.
    pub counter_max: f64,
    /// A rate beyond this one, after the counter began again, is 0; no rate is, if this is 0.
    pub reset_value: f64,
    /// Whether the rate is left out where the counter began again.
    pub drops_resets: bool,
}

/// A part of a query that can be computed.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedQuery {
    /// The metric.
    pub metric: String,
    /// How the series of a group become one.
    pub aggregator: Aggregator,
    /// How the points of a series become buckets.
    pub downsample: Option<Downsample>,
    /// Whether the values are changes by seconds, and how.
    pub rate: Option<RateOptions>,
    /// What the tags of a series must be.
    pub filters: Vec<TagValueFilter>,
    /// Whether a series may have no other tags.
    pub explicit_tags: bool,
    /// The first time of the answer, ms.
    pub start_ms: i64,
    /// The last time of the answer, ms.
    pub end_ms: i64,
    /// Whether times of the answer are milliseconds.
    pub has_milliseconds: bool,
}

impl CheckedQuery {
    /// The tags by whose values series are grouped, sorted.
    pub fn group_keys(&self) -> Vec<&str> {
        let grouped = self.filters.iter().filter(|filter| filter.group_by);
        let mut keys: Vec<&str> = grouped.map(|filter| filter.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The times whose points take part, ms: the first one included, the last one excluded. As
    /// OpenTSDB does it, whole hours around the query, and around its buckets.
    pub fn read_range_ms(&self) -> (i64, i64) {
        // OpenTSDB takes the second after the end for the end.
        let second_after = (self.end_ms.div_euclid(SECOND_MS) + 1) * SECOND_MS;
        let interval = self.downsample.as_ref();
        let (mut from, mut to) = match interval.map(|downsample| &downsample.interval) {
            None | Some(DownsampleInterval::All) => (self.start_ms, second_after.saturating_add(1)),
            Some(interval @ DownsampleInterval::Fixed(_)) => (
                interval.bucket(self.start_ms).0,
                interval.bucket(second_after).1,
            ),
            // The last bucket of a calendar is complete.
            Some(interval @ DownsampleInterval::Calendar(..)) => (
                interval.bucket(self.start_ms).0,
                interval.bucket(self.end_ms).1,
            ),
        };
        from -= from.rem_euclid(ROW_MS);
        if to.rem_euclid(ROW_MS) > 0 {
            to = to.saturating_add(ROW_MS - to.rem_euclid(ROW_MS));
        }
        (from.max(0), to.min(TIME_MAX_MS))
    }

    /// Whether values are computed, so that OpenTSDB shows them as floats.
    pub const fn has_floats(&self) -> bool {
        self.downsample.is_some() || self.rate.is_some()
    }

    /// Whether the answer has `null` for missing values.
    pub fn shows_null(&self) -> bool {
        let downsample = self.downsample.as_ref();
        downsample.is_some_and(|downsample| downsample.fill == FillPolicy::Null)
    }

    /// Refuses a fill policy that would make too many buckets.
    pub(crate) fn check_fill(&self) -> Result<(), QueryFault> {
        let Some(downsample) = &self.downsample else {
            return Ok(());
        };
        let filled = (self.end_ms - self.read_range_ms().0) / downsample.interval.length_min_ms();
        if downsample.fill == FillPolicy::None || filled <= FILLED_MAX {
            return Ok(());
        }
        Err(QueryFault::new(format!(
            "The query would fill {filled} buckets of each series; at most {FILLED_MAX}"
        ))
        .with_details("Ask for longer buckets, or for a shorter time"))
    }
}

#[cfg(test)]
mod tests {
    use crate::query::tests::checked;

    #[test]
    fn hours_around_a_query_are_read() {
        let hour = 3_600_000;
        let range = |m: &str, start, end| checked(m, start, end).read_range_ms();
        assert_eq!(
            range("sum:m", 10 * hour + 5, 11 * hour - 1005),
            (10 * hour, 11 * hour)
        );
        // OpenTSDB 2.4.1 reads a row more where the query ends in the last second of an hour.
        assert_eq!(
            range("sum:m", 10 * hour + 5, 11 * hour - 5),
            (10 * hour, 12 * hour)
        );
        assert_eq!(
            range("sum:1m-avg:m", 10 * hour + 5, 11 * hour - 1000),
            (10 * hour, 12 * hour)
        );
        assert_eq!(range("sum:m", 10 * hour, 11 * hour), (10 * hour, 12 * hour));
        assert_eq!(
            range("sum:1m-avg:m", 10 * hour, 11 * hour),
            (10 * hour, 12 * hour)
        );
        assert_eq!(
            range("sum:7h-avg:m", 10 * hour, 11 * hour),
            (7 * hour, 14 * hour)
        );
        assert_eq!(
            range("sum:0all-sum:m", 10 * hour, 11 * hour),
            (10 * hour, 12 * hour)
        );
    }
}
