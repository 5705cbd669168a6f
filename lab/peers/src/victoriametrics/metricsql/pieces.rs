//! The time windows of a question.

use super::{MILLISECOND_NS, Windows};
use crate::write_history::TableHistory;
use marigram_lab::question::Select;

/// The windows of `select`: one window without buckets; with buckets, those that are entirely
/// within its bounds, and the parts of the first and last bucket that are not.
///
/// Bounds beyond the data are moved to the data: a window that begins before 1970 finds nothing,
/// and empty buckets would be evaluated. A range without any data stays unchanged.
pub(super) fn pieces(select: &Select, history: Option<TableHistory>) -> Vec<Windows> {
    // The first whole millisecond at or after a time.
    let ceil = |ns: i64| -(-ns).div_euclid(MILLISECOND_NS);
    let (first_ms, end_ms) = history.map_or((0, 1), |history| {
        (
            ceil(history.first_ns),
            history.last_ns.div_euclid(MILLISECOND_NS) + 1,
        )
    });
    let from_bound = select.from_ns.map_or(i64::MIN, ceil);
    let to_bound = select.to_ns.map_or(i64::MAX, ceil);
    let mut from_ms = from_bound.max(first_ms);
    let mut to_ms = to_bound.min(end_ms);
    if from_ms >= to_ms {
        // There are no rows, so the database has to answer.
        from_ms = if from_bound >= end_ms { from_bound } else { 0 };
        to_ms = from_ms + 1;
        return vec![whole(from_ms, to_ms, from_ms)];
    }
    let Some(bucket_ns) = select.bucket_ns else {
        return vec![whole(from_ms, to_ms, from_ms)];
    };
    let bucket_ms = bucket_ns / MILLISECOND_NS;
    let start_of = |ms: i64| ms.div_euclid(bucket_ms) * bucket_ms;
    let (first, last) = (start_of(from_ms), start_of(to_ms - 1));
    // Only a bound cuts a bucket; the end of the data does not.
    let head_cut = first < from_bound;
    let tail_cut = last + bucket_ms > to_bound;
    if first == last {
        let begin = if head_cut { from_ms } else { first };
        let end = if tail_cut { to_ms } else { first + bucket_ms };
        return vec![whole(begin, end, first)];
    }
    let middle = if head_cut { first + bucket_ms } else { first };
    let middle_end = if tail_cut { last } else { last + bucket_ms };
    let mut pieces = Vec::new();
    if head_cut {
        pieces.push(whole(from_ms, middle, first));
    }
    if middle < middle_end {
        pieces.push(Windows {
            bucket_ms: middle,
            from_ms: middle,
            length_ms: bucket_ms,
            count: (middle_end - middle) / bucket_ms,
        });
    }
    if tail_cut {
        pieces.push(whole(last, to_ms, last));
    }
    pieces
}

/// The window from `from_ms` to before `to_ms`, of the bucket that starts at `bucket_ms`.
fn whole(from_ms: i64, to_ms: i64, bucket_ms: i64) -> Windows {
    Windows {
        bucket_ms,
        from_ms,
        length_ms: to_ms - from_ms,
        count: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::question::Selection;

    const SEEN: TableHistory = TableHistory {
        first_ns: 1_000_030 * MILLISECOND_NS,
        last_ns: 1_000_250 * MILLISECOND_NS,
        nulls: false,
    };

    /// Windows as (from, length, count), in milliseconds after a million; entire windows must begin
    /// with their bucket.
    fn windows(from: Option<i64>, to: Option<i64>, bucket: Option<i64>) -> Vec<(i64, i64, i64)> {
        let bound = |ms: Option<i64>| ms.map(|ms| (1_000_000 + ms) * MILLISECOND_NS);
        let select = Select {
            from_ns: bound(from),
            to_ns: bound(to),
            bucket_ns: bucket.map(|ms| ms * MILLISECOND_NS),
            ..Select::all(0, Selection::Rows(vec![0]))
        };
        let all = pieces(&select, Some(SEEN));
        let short = |windows: Windows| {
            if let Some(bucket) = bucket {
                assert_eq!(windows.bucket_ms % bucket, 0);
                assert!(windows.count == 1 || windows.bucket_ms == windows.from_ms);
                assert!(windows.bucket_ms + bucket >= windows.from_ms + windows.length_ms);
            }
            (
                windows.from_ms - 1_000_000,
                windows.length_ms,
                windows.count,
            )
        };
        all.into_iter().map(short).collect()
    }

    #[test]
    fn bounds_that_are_not_given_are_those_of_the_data() {
        assert_eq!(windows(None, None, None), [(30, 221, 1)]);
        assert_eq!(windows(Some(40), Some(60), None), [(40, 20, 1)]);
        assert_eq!(windows(Some(-5000), Some(9000), None), [(30, 221, 1)]);
        assert_eq!(windows(Some(300), None, None), [(300, 1, 1)]);
        assert_eq!(windows(None, Some(30), None), [(-1_000_000, 1, 1)]);
    }

    #[test]
    fn buckets_at_the_edges_are_cut_by_bounds_only() {
        assert_eq!(windows(None, None, Some(100)), [(0, 100, 3)]);
        assert_eq!(windows(Some(0), Some(300), Some(100)), [(0, 100, 3)]);
        assert_eq!(
            windows(Some(40), Some(240), Some(100)),
            [(40, 60, 1), (100, 100, 1), (200, 40, 1)]
        );
        assert_eq!(
            windows(Some(40), Some(140), Some(100)),
            [(40, 60, 1), (100, 40, 1)]
        );
        assert_eq!(windows(Some(40), Some(60), Some(100)), [(40, 20, 1)]);
        assert_eq!(
            windows(Some(110), None, Some(100)),
            [(110, 90, 1), (200, 100, 1)]
        );
        assert_eq!(windows(Some(210), Some(300), Some(100)), [(210, 90, 1)]);
        assert_eq!(windows(Some(300), Some(400), Some(100)), [(300, 1, 1)]);
    }

    #[test]
    fn times_between_milliseconds_are_rounded_inwards() {
        let select = Select {
            from_ns: Some(1_000_100 * MILLISECOND_NS + 1),
            to_ns: Some(1_000_200 * MILLISECOND_NS + 1),
            ..Select::all(0, Selection::Rows(vec![0]))
        };
        let found = pieces(&select, Some(SEEN));
        assert_eq!(found, [whole(1_000_101, 1_000_201, 1_000_101)]);
    }
}
