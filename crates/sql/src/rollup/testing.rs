//! Shared by the tests of rollups: buckets of ten, sets of times, progress.

use marigram_functions::TimeBuckets;
use marigram_functions::duration::CalendarInterval;
use marigram_model::{RollupProgress, TimeRange, TimeSet};

/// Buckets of `width` ns from 0 on.
pub(super) fn buckets(width: i64) -> TimeBuckets {
    let width = CalendarInterval {
        months: 0,
        days: 0,
        nanos: width,
    };
    TimeBuckets::new(width, Some(0), None).unwrap()
}

pub(super) fn set(ranges: &[(i64, i64)]) -> TimeSet {
    TimeSet::from_ranges(ranges.iter().map(|(min, max)| TimeRange {
        min: *min,
        max: *max,
    }))
}

pub(super) fn progress(through_ns: i64, touched: &[(i64, i64)]) -> RollupProgress {
    RollupProgress {
        through_ns,
        touched: set(touched),
    }
}
