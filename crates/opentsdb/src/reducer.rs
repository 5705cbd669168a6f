//! One series: its points become buckets, and these become rates.

use crate::aggregator::AggregatorState;
use crate::checked_query::CheckedQuery;
use crate::downsample::{DownsampleInterval, FillPolicy};

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// The time, ms since 1970.
    pub time_ms: i64,
    /// The value; NaN for a bucket without points.
    pub value: f64,
}

/// Reduces the points of one series after another. Points come in the order of their times.
#[derive(Debug)]
pub struct SeriesReducer<'a> {
    query: &'a CheckedQuery,
    /// The bucket that is being filled: its begin and its end.
    bucket: Option<(i64, i64)>,
    state: AggregatorState,
    /// The next bucket that must not be left out.
    fill_from: i64,
    /// The first time at which a bucket begins whose points are all read.
    whole_from: i64,
    /// The last point where there are no buckets: a later one of the same millisecond replaces it.
    held: Option<SeriesPoint>,
    /// The point before, for a rate.
    before: Option<SeriesPoint>,
}

impl<'a> SeriesReducer<'a> {
    /// The reducer for the series of a query.
    pub fn new(query: &'a CheckedQuery) -> Self {
        let aggregator = query
            .downsample
            .as_ref()
            .map_or(query.aggregator, |downsample| downsample.aggregator);
        let mut new = Self {
            query,
            bucket: None,
            state: AggregatorState::new(aggregator),
            fill_from: 0,
            whole_from: 0,
            held: None,
            before: None,
        };
        new.reset();
        new
    }

    fn reset(&mut self) {
        self.bucket = None;
        self.state.clear();
        self.held = None;
        self.before = None;
        let from = self.query.read_range_ms().0;
        (self.fill_from, self.whole_from) = match &self.query.downsample {
            Some(downsample) => {
                let (begin, end) = downsample.interval.bucket(from);
                (begin, if begin < from { end } else { begin })
            }
            None => (0, 0),
        };
    }

    /// Bytes that the values of the current bucket hold.
    pub fn held_bytes(&self) -> usize {
        self.state.held_bytes()
    }

    /// Takes the next point of the series; what becomes complete is added to `out`.
    pub fn push(&mut self, time_ms: i64, value: f64, out: &mut Vec<SeriesPoint>) {
        let query = self.query;
        let Some(downsample) = &query.downsample else {
            if let Some(held) = self.held.filter(|held| held.time_ms != time_ms) {
                self.emit(held, out);
            }
            self.held = Some(SeriesPoint { time_ms, value });
            return;
        };
        if downsample.interval == DownsampleInterval::All {
            if (query.start_ms..query.end_ms).contains(&time_ms) {
                self.bucket = Some((query.start_ms, query.end_ms));
                self.state.push(value);
            }
            return;
        }
        if time_ms < self.whole_from {
            // Of a bucket that began before what is read.
            return;
        }
        if self.bucket.is_none_or(|(_, end)| time_ms >= end) {
            let least = self.bucket.map_or(i64::MIN, |(_, end)| end);
            self.end_bucket(out);
            let (begin, end) = downsample.interval.bucket(time_ms);
            self.bucket = Some((begin.max(least), end));
        }
        self.state.push(value);
    }

    /// Ends the series; the reducer is ready for the next one.
    pub fn finish(&mut self, out: &mut Vec<SeriesPoint>) {
        if let Some(held) = self.held.take() {
            self.emit(held, out);
        }
        self.end_bucket(out);
        self.fill_before(self.query.end_ms.saturating_add(1), out);
        self.reset();
    }

    fn end_bucket(&mut self, out: &mut Vec<SeriesPoint>) {
        let Some((begin, end)) = self.bucket.take() else {
            return;
        };
        self.fill_before(begin, out);
        self.fill_from = self.fill_from.max(end);
        let value = self.state.result();
        self.state.clear();
        let time_ms = begin;
        self.emit(SeriesPoint { time_ms, value }, out);
    }

    /// Adds the missing buckets that begin before a time.
    fn fill_before(&mut self, until_ms: i64, out: &mut Vec<SeriesPoint>) {
        let query = self.query;
        let Some(downsample) = &query.downsample else {
            return;
        };
        let value = match downsample.fill {
            FillPolicy::None => return,
            FillPolicy::Nan | FillPolicy::Null => f64::NAN,
            FillPolicy::Zero => 0.0,
        };
        if downsample.interval == DownsampleInterval::All {
            return;
        }
        while self.fill_from < until_ms {
            let time_ms = self.fill_from;
            self.fill_from = downsample.interval.bucket(time_ms).1;
            self.emit(SeriesPoint { time_ms, value }, out);
        }
    }

    /// Adds a point, or the rate since the point before.
    fn emit(&mut self, point: SeriesPoint, out: &mut Vec<SeriesPoint>) {
        let query = self.query;
        let Some(options) = &query.rate else {
            out.push(point);
            return;
        };
        let Some(before) = self.before.replace(point) else {
            return;
        };
        let seconds = (point.time_ms - before.time_ms) as f64 / 1000.0;
        let mut difference = point.value - before.value;
        let is_reset = options.is_counter && difference < 0.0;
        if is_reset && options.drops_resets {
            return;
        }
        if is_reset {
            difference += options.counter_max;
        }
        let mut value = difference / seconds;
        if is_reset && options.reset_value > 0.0 && value > options.reset_value {
            value = 0.0;
        }
        out.push(SeriesPoint { value, ..point });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::tests::checked;

    /// The points of a series as a query of `m` makes them, in seconds.
    fn reduced(m: &str, (start, end): (i64, i64), points: &[(i64, f64)]) -> Vec<(i64, f64)> {
        let query = checked(m, start * 1000, end * 1000);
        let mut reducer = SeriesReducer::new(&query);
        let mut out = Vec::new();
        // The reducer serves one series after another.
        for _ in 0..2 {
            out.clear();
            for (time, value) in points {
                reducer.push(time * 1000, *value, &mut out);
            }
            reducer.finish(&mut out);
        }
        out.iter()
            .map(|point| (point.time_ms / 1000, point.value))
            .collect()
    }

    const POINTS: [(i64, f64); 5] = [
        (3600, 1.0),
        (3610, 3.0),
        (3660, 5.0),
        (3670, 8.0),
        (3800, 2.0),
    ];

    #[test]
    fn buckets_begin_at_multiples_of_their_length() {
        let all = (3600, 3900);
        assert_eq!(reduced("sum:m", all, &POINTS), POINTS);
        let minutes = [(3600, 2.0), (3660, 6.5), (3780, 2.0)];
        assert_eq!(reduced("sum:1m-avg:m", all, &POINTS), minutes);
        let counts = [(3605, 3.0)];
        assert_eq!(reduced("sum:0all-count:m", (3605, 3800), &POINTS), counts);
        assert!(reduced("sum:0all-count:m", (9000, 9100), &POINTS).is_empty());
    }

    /// OpenTSDB 2.4.1 reads from 3600 on, and answers no bucket that begins before.
    #[test]
    fn a_bucket_that_began_before_the_hour_is_no_bucket() {
        let points = [(3605, 1.0), (3800, 3.0), (4100, 9.0)];
        // Buckets of 7 minutes begin at 3360, 3780 and 4200.
        let found = reduced("sum:7m-sum:m", (3900, 4300), &points);
        assert_eq!(found, [(3780, 12.0)]);
        assert!(reduced("sum:7m-sum:rate:m", (3900, 4300), &points).is_empty());
        let filled = reduced("sum:7m-sum-zero:m", (3900, 4300), &points);
        assert_eq!(filled, [(3360, 0.0), (3780, 12.0), (4200, 0.0)]);
    }

    #[test]
    fn missing_buckets_are_filled_to_the_end_of_the_query() {
        let filled = reduced("sum:1m-sum-zero:m", (3600, 3840), &POINTS);
        let expected = [
            (3600, 4.0),
            (3660, 13.0),
            (3720, 0.0),
            (3780, 2.0),
            (3840, 0.0),
        ];
        assert_eq!(filled, expected);
        let missing = reduced("sum:1m-sum-nan:m", (3600, 3840), &POINTS);
        let is_nan: Vec<bool> = missing.iter().map(|(_, value)| value.is_nan()).collect();
        assert_eq!(is_nan, [false, false, true, false, true]);
    }

    #[test]
    fn rates_are_differences_by_seconds() {
        let all = (3600, 3900);
        let rates = [(3610, 0.2), (3660, 0.04), (3670, 0.3)];
        let found = reduced("sum:rate:m", all, &POINTS);
        assert_eq!(found[..3], rates);
        assert_eq!(found[3], (3800, -6.0 / 130.0));
        // The counter overflows at 100: 2 - 8 + 100 in 130 s.
        let counter = reduced("sum:rate{counter,100}:m", all, &POINTS);
        assert_eq!(counter[3], (3800, 94.0 / 130.0));
        let reset = reduced("sum:rate{counter,100,0.5}:m", all, &POINTS);
        assert_eq!(reset[3], (3800, 0.0));
        assert_eq!(reduced("sum:rate{dropcounter}:m", all, &POINTS), rates);
        // Of buckets: 2 at 3600, 6.5 at 3660, 2 at 3780.
        let of_buckets = reduced("sum:1m-avg:rate:m", all, &POINTS);
        assert_eq!(of_buckets, [(3660, 0.075), (3780, -0.0375)]);
    }
}
