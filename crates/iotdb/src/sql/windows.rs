//! The windows of time of GROUP BY. Times are milliseconds, months follow a time zone.

use super::ast::{TreeSpan, TreeWindows};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// The windows of a query in a time zone. A window has the times from [`begin`](Self::begin) on that are
/// before [`end`](Self::end); where windows have their ends, from behind the begin up to the end.
#[derive(Clone, Debug)]
pub struct WindowSequence {
    windows: TreeWindows,
    zone: TimeZone,
}

impl WindowSequence {
    /// The windows of a query.
    pub fn new(windows: TreeWindows, zone: &TimeZone) -> Self {
        Self {
            windows,
            zone: zone.clone(),
        }
    }

    /// The windows themselves.
    pub fn windows(&self) -> &TreeWindows {
        &self.windows
    }

    /// Whether all have one length and one distance, and no time is in two of them.
    pub fn is_regular(&self) -> bool {
        let (length, step) = (self.windows.length, self.windows.step);
        length.months == 0 && step.months == 0 && length.ms <= step.ms
    }

    /// A time with a number of spans added.
    fn add(&self, start_ms: i64, span: TreeSpan, count: u64) -> i64 {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let ms = span.ms.saturating_mul(count);
        if span.months == 0 {
            return start_ms.saturating_add(ms);
        }
        let months = span.months.saturating_mul(count);
        let moved = self.add_months(start_ms, months);
        moved.unwrap_or(i64::MAX).saturating_add(ms)
    }

    fn add_months(&self, start_ms: i64, months: i64) -> Option<i64> {
        let local: DateTime = self
            .zone
            .to_datetime(Timestamp::from_millisecond(start_ms).ok()?);
        let moved = local
            .checked_add(Span::new().try_months(months).ok()?)
            .ok()?;
        let moved = self.zone.to_ambiguous_timestamp(moved).compatible().ok()?;
        Some(moved.as_millisecond())
    }

    /// The begin of a window.
    pub fn begin(&self, number: u64) -> i64 {
        self.add(self.windows.start_ms, self.windows.step, number)
    }

    /// The end of a window: the last one is cut at the end of all.
    pub fn end(&self, number: u64) -> i64 {
        let end = self.add(self.begin(number), self.windows.length, 1);
        end.min(self.windows.end_ms)
    }

    /// The time that an answer shows for a window.
    pub fn shown(&self, number: u64) -> i64 {
        if self.windows.has_ends {
            self.end(number)
        } else {
            self.begin(number)
        }
    }

    /// The number of windows.
    pub fn count(&self) -> u64 {
        let (start, end) = (self.windows.start_ms, self.windows.end_ms);
        if start >= end {
            return 0;
        }
        let step = self.windows.step;
        if step.months == 0 {
            let length = (i128::from(end) - i128::from(start)).unsigned_abs();
            let step = u128::from(step.ms.unsigned_abs().max(1));
            return u64::try_from(length.div_ceil(step)).unwrap_or(u64::MAX);
        }
        // Times are bounded, so there are few months.
        let (mut low, mut high) = (0, 1_u64 << 32);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.begin(middle) < end {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The first window that may have a time, and the one behind the last: those between have it.
    pub fn of_time(&self, time_ms: i64) -> std::ops::Range<u64> {
        let count = self.count();
        let is_before = |begin: i64| {
            if self.windows.has_ends {
                begin < time_ms
            } else {
                begin <= time_ms
            }
        };
        let is_over = |end: i64| {
            if self.windows.has_ends {
                end < time_ms
            } else {
                end <= time_ms
            }
        };
        let after = partition(count, |number| is_before(self.begin(number)));
        let first = partition(after, |number| is_over(self.end(number)));
        first..after
    }
}

/// How many of the first `count` numbers fulfil a condition that holds for the first ones.
fn partition(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sequence(
        start_ms: i64,
        end_ms: i64,
        length: i64,
        step: i64,
        has_ends: bool,
    ) -> WindowSequence {
        let span = |ms| TreeSpan { months: 0, ms };
        let windows = TreeWindows {
            start_ms,
            end_ms,
            has_ends,
            length: span(length),
            step: span(step),
        };
        WindowSequence::new(windows, &TimeZone::UTC)
    }

    #[test]
    fn months_follow_the_calendar() {
        let month = TreeSpan { months: 1, ms: 0 };
        let windows = TreeWindows {
            start_ms: 1_706_659_200_000,
            end_ms: 1_714_608_000_000,
            has_ends: false,
            length: month,
            step: month,
        };
        let months = WindowSequence::new(windows, &TimeZone::UTC);
        // 2024-01-31, 02-29, 03-31, 04-30, up to 05-02.
        let begins: Vec<i64> = (0..months.count()).map(|it| months.begin(it)).collect();
        assert_eq!(
            begins,
            [
                1_706_659_200_000,
                1_709_164_800_000,
                1_711_843_200_000,
                1_714_435_200_000
            ]
        );
        assert_eq!(months.end(3), 1_714_608_000_000);
        assert!(!months.is_regular());
        assert_eq!(months.of_time(1_709_164_799_999), 0..1);
        assert_eq!(months.of_time(1_709_164_800_000), 1..2);
    }

    proptest! {
        #[test]
        fn windows_have_the_times_between_their_bounds(
            start in -20_i64..20, width in 1_i64..40, length in 1_i64..15, step in 1_i64..15,
            has_ends: bool, time in -30_i64..70,
        ) {
            let all = sequence(start, start + width, length, step, has_ends);
            let mut expected = Vec::new();
            let mut begin = start;
            let mut count = 0_u64;
            while begin < start + width {
                let end = (begin + length).min(start + width);
                let is_in = if has_ends {
                    begin < time && time <= end
                } else {
                    begin <= time && time < end
                };
                if is_in {
                    expected.push(count);
                }
                begin += step;
                count += 1;
            }
            prop_assert_eq!(all.count(), count);
            let found: Vec<u64> = all.of_time(time).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
