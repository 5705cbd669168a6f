//! Decides which buckets come from a rollup, and which times from its source.

use marigram_functions::TimeBuckets;
use marigram_model::{RollupProgress, TimeRange, TimeSet};

/// The largest number of separate ranges to read from the source; more are joined.
const PIECES_MAX: usize = 8;

/// The sources of the rows in a range of time. No time is in both, and every bucket is in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RollupTimeSplit {
    /// Buckets that are read from the rollup.
    pub told: TimeSet,
    /// Times that are read from the source.
    pub source: TimeSet,
}

/// A request for rows of a rollup.
#[derive(Clone, Copy, Debug)]
pub(super) struct RollupTimeRequest {
    /// The requested times of the source.
    pub times: TimeRange,
    /// The times for which the source has rows.
    pub held: TimeRange,
    /// Rows of the source before this time, ns, may have exceeded their time to live.
    pub kept_from: Option<i64>,
    /// Whether buckets remain after their rows have exceeded their time to live.
    pub outlives: bool,
}

/// Splits a request.
///
/// # Errors
/// If a bucket is outside the range of time.
pub(super) fn split(
    progress: &RollupProgress,
    asked: &RollupTimeRequest,
    buckets: &mut TimeBuckets,
) -> Result<RollupTimeSplit, String> {
    let Some(last) = progress.through_ns.checked_sub(1) else {
        return Ok(RollupTimeSplit {
            told: TimeSet::default(),
            source: TimeSet::from_range(asked.times.intersect(asked.held)),
        });
    };
    let before = |max| TimeSet::from_range(TimeRange { min: i64::MIN, max });
    let mut told = before(last).minus(&whole_buckets(&progress.touched, buckets)?);
    if let Some(kept_from) = asked.kept_from {
        told = if asked.outlives {
            // Rows that were written since to a bucket that is partly gone cannot be included any
            // more.
            let gone = floor(kept_from, buckets)?.saturating_sub(1);
            told.union(&before(gone.min(last)))
        } else {
            told.minus(&before(ceil(kept_from, buckets)?.saturating_sub(1)))
        };
    }
    let inner = TimeRange {
        min: ceil(asked.times.min, buckets)?,
        max: match asked.times.max.checked_add(1) {
            Some(end) => floor(end, buckets)?.saturating_sub(1),
            None => i64::MAX,
        },
    };
    let told = told.intersect(&TimeSet::from_range(inner));
    let mut source = TimeSet::from_range(asked.times)
        .minus(&told)
        .intersect(&TimeSet::from_range(asked.held));
    source.coarsen(PIECES_MAX);
    Ok(RollupTimeSplit {
        told: told.minus(&source),
        source,
    })
}

/// The times of all buckets that hold a time of the set.
///
/// # Errors
/// If one is outside the range of time.
pub(super) fn whole_buckets(times: &TimeSet, buckets: &mut TimeBuckets) -> Result<TimeSet, String> {
    let ranges = times.ranges().iter().map(|range| {
        Ok(TimeRange {
            min: floor(range.min, buckets)?,
            max: end(range.max, buckets)?,
        })
    });
    Ok(TimeSet::from_ranges(
        ranges.collect::<Result<Vec<_>, String>>()?,
    ))
}

/// The times of the buckets whose first times are in a range.
///
/// # Errors
/// If one is outside the range of time.
pub(super) fn times_of_starts(
    starts: TimeRange,
    buckets: &mut TimeBuckets,
) -> Result<TimeRange, String> {
    Ok(TimeRange {
        min: ceil(starts.min, buckets)?,
        max: end(starts.max, buckets)?,
    })
}

/// The first time of the bucket that holds `time`.
///
/// # Errors
/// If it is outside the range of time.
pub(super) fn floor(time: i64, buckets: &mut TimeBuckets) -> Result<i64, String> {
    match time {
        i64::MIN => Ok(time),
        time => buckets.floor(time),
    }
}

/// The last time of the bucket that holds `time`.
fn end(time: i64, buckets: &mut TimeBuckets) -> Result<i64, String> {
    match time {
        i64::MIN | i64::MAX => Ok(time),
        time => Ok(buckets.next(time)?.map_or(i64::MAX, |next| next - 1)),
    }
}

/// The first time of the first bucket that does not begin before `time`.
///
/// # Errors
/// If it is outside the range of time.
pub(super) fn ceil(time: i64, buckets: &mut TimeBuckets) -> Result<i64, String> {
    match time {
        i64::MIN => Ok(time),
        time if buckets.floor(time)? == time => Ok(time),
        time => Ok(buckets.next(time)?.unwrap_or(i64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::testing::{buckets, progress, set};

    fn asked(min: i64, max: i64) -> RollupTimeRequest {
        RollupTimeRequest {
            times: TimeRange { min, max },
            held: TimeRange { min: 0, max: 1000 },
            kept_from: None,
            outlives: false,
        }
    }

    fn check(
        progress: &RollupProgress,
        asked: &RollupTimeRequest,
        told: &[(i64, i64)],
        source: &[(i64, i64)],
    ) {
        let split = split(progress, asked, &mut buckets(10)).unwrap();
        assert_eq!((split.told, split.source), (set(told), set(source)));
    }

    #[test]
    fn whole_buckets_that_are_not_touched_come_from_the_rollup() {
        let all = asked(i64::MIN, i64::MAX);
        check(&progress(i64::MIN, &[]), &all, &[], &[(0, 1000)]);
        check(&progress(50, &[]), &all, &[(i64::MIN, 49)], &[(50, 1000)]);
        let touched = progress(50, &[(12, 13)]);
        let told = [(i64::MIN, 9), (20, 49)];
        check(&touched, &all, &told, &[(10, 19), (50, 1000)]);
        check(
            &progress(50, &[]),
            &asked(5, 34),
            &[(10, 29)],
            &[(5, 9), (30, 34)],
        );
        check(&progress(50, &[]), &asked(12, 18), &[], &[(12, 18)]);
        check(&progress(50, &[]), &asked(10, 19), &[(10, 19)], &[]);
    }

    #[test]
    fn what_the_source_may_have_outlived_is_taken_as_it_is_asked() {
        let touched = progress(50, &[(0, 9), (30, 39)]);
        let exact = RollupTimeRequest {
            kept_from: Some(15),
            ..asked(i64::MIN, i64::MAX)
        };
        check(
            &touched,
            &exact,
            &[(20, 29), (40, 49)],
            &[(0, 19), (30, 39), (50, 1000)],
        );
        let view = RollupTimeRequest {
            outlives: true,
            ..exact
        };
        let told = [(i64::MIN, 29), (40, 49)];
        check(&touched, &view, &told, &[(30, 39), (50, 1000)]);
    }

    #[test]
    fn many_pieces_are_joined_and_no_bucket_is_in_both() {
        let touched: Vec<(i64, i64)> = (0..40).map(|at| (at * 20, at * 20)).collect();
        let split = split(
            &progress(900, &touched),
            &asked(i64::MIN, i64::MAX),
            &mut buckets(10),
        )
        .unwrap();
        assert_eq!(split.source.ranges().len(), PIECES_MAX);
        assert!(split.told.intersect(&split.source).is_empty());
        assert!((0..1000).all(|t| split.told.contains(t) || split.source.contains(t)));
        for range in split.told.ranges() {
            assert!(range.min == i64::MIN || range.min % 10 == 0);
            assert_eq!(range.max.rem_euclid(10), 9);
        }
    }
}
