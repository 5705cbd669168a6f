//! The buckets that calls of `time_bucket`, `date_bin` and `date_trunc` define.

use super::bucket::TimeBuckets;
use super::time_bucket::buckets;
use crate::duration::CalendarInterval;
use datafusion::common::ScalarValue;

/// The buckets of `name(first, time, more…)`; `None` if the call defines no buckets.
pub fn buckets_of(name: &str, first: &ScalarValue, more: &[ScalarValue]) -> Option<TimeBuckets> {
    match (name, more) {
        ("time_bucket", more) => buckets(first, more).ok(),
        ("date_bin", _) => {
            let ScalarValue::IntervalMonthDayNano(Some(width)) = first else {
                return None;
            };
            let origin = match more {
                [] => 0,
                [ScalarValue::TimestampNanosecond(Some(origin), _)] => *origin,
                _ => return None,
            };
            let width = CalendarInterval {
                months: width.months,
                days: width.days,
                nanos: width.nanoseconds,
            };
            // `date_bin` counts months differently, from origins within a month.
            let fixed = width.months == 0;
            fixed.then(|| TimeBuckets::new(width, Some(origin), None).ok())?
        }
        ("date_trunc", []) => {
            let ScalarValue::Utf8(Some(unit)) = first else {
                return None;
            };
            truncated(&unit.to_lowercase())
        }
        _ => None,
    }
}

/// The buckets of `date_trunc`.
fn truncated(unit: &str) -> Option<TimeBuckets> {
    let months = |months| CalendarInterval {
        months,
        days: 0,
        nanos: 0,
    };
    let nanos = |seconds: i64| CalendarInterval {
        months: 0,
        days: 0,
        nanos: seconds * 1_000_000_000,
    };
    let width = match unit {
        "second" => nanos(1),
        "minute" => nanos(60),
        "hour" => nanos(3600),
        "day" => nanos(86_400),
        "week" => nanos(7 * 86_400),
        "month" => months(1),
        "quarter" => months(3),
        "year" => months(12),
        _ => return None,
    };
    TimeBuckets::new(width, None, None).ok()
}
