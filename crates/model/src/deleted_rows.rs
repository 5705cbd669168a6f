//! Which rows of a table a delete covers.

use crate::ids::SeriesId;
use crate::time::TimeRange;
use std::sync::Arc;

/// Rows of one series that a delete covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesTimeRange {
    /// The series.
    pub series: SeriesId,
    /// Its times that are deleted, ns.
    pub range: TimeRange,
}

/// Which rows of a table a delete covers. Beside it stands a range of times that bounds them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletedRows {
    /// Those of every series, within the bounding range.
    Table,
    /// Those of these series, within the bounding range. Ascending.
    Series(Arc<[SeriesId]>),
    /// Those of these ranges, which are within the bounding range. Ascending by series and time;
    /// the ranges of one series are disjoint, and none is empty.
    Ranges(Arc<[SeriesTimeRange]>),
}

/// What breaks the order of the series or ranges of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeletedRowsError {
    /// Series do not ascend.
    #[error("the series of a delete are not ascending")]
    Series,
    /// Ranges do not ascend, overlap, are empty, or leave the bounding range.
    #[error("the ranges of a delete are not ascending and within its times")]
    Ranges,
}

impl DeletedRows {
    /// The ranges that hold exactly these rows, with the range that bounds them; `None` without rows.
    /// Rows may come in any order and repeat; times that follow each other become one range.
    #[must_use]
    pub fn of_rows(mut rows: Vec<(SeriesId, i64)>) -> Option<(Self, TimeRange)> {
        rows.sort_unstable();
        let mut ranges: Vec<SeriesTimeRange> = Vec::new();
        let mut bounds = TimeRange {
            min: i64::MAX,
            max: i64::MIN,
        };
        for (series, time) in rows {
            bounds.min = bounds.min.min(time);
            bounds.max = bounds.max.max(time);
            match ranges.last_mut() {
                Some(last) if last.series == series && time <= last.range.max.saturating_add(1) => {
                    last.range.max = time;
                }
                _ => ranges.push(SeriesTimeRange {
                    series,
                    range: TimeRange {
                        min: time,
                        max: time,
                    },
                }),
            }
        }
        (!ranges.is_empty()).then(|| (Self::Ranges(ranges.into()), bounds))
    }

    /// Checks the order that lookups rely on; `bounds` is the range beside it.
    ///
    /// # Errors
    /// What is out of order.
    pub fn check(&self, bounds: TimeRange) -> Result<(), DeletedRowsError> {
        match self {
            Self::Table => Ok(()),
            Self::Series(series) if series.is_sorted_by(|a, b| a < b) => Ok(()),
            Self::Series(_) => Err(DeletedRowsError::Series),
            Self::Ranges(ranges) => {
                let follows = |a: &SeriesTimeRange, b: &SeriesTimeRange| {
                    (a.series, a.range.max) < (b.series, b.range.min)
                };
                let is_sound =
                    |it: &SeriesTimeRange| !it.range.is_empty() && bounds.covers(it.range);
                if ranges.iter().all(is_sound) && ranges.is_sorted_by(follows) {
                    Ok(())
                } else {
                    Err(DeletedRowsError::Ranges)
                }
            }
        }
    }

    /// The deleted times of a series that overlap `times`, ascending and disjoint; `bounds` is the
    /// range beside it.
    pub fn ranges_of(
        &self,
        series: SeriesId,
        bounds: TimeRange,
        times: TimeRange,
    ) -> impl Iterator<Item = TimeRange> + Clone + '_ {
        let (whole, listed) = match self {
            Self::Table => (true, &[][..]),
            Self::Series(named) => (named.binary_search(&series).is_ok(), &[][..]),
            Self::Ranges(ranges) => {
                let first =
                    ranges.partition_point(|it| (it.series, it.range.max) < (series, times.min));
                let behind =
                    ranges.partition_point(|it| (it.series, it.range.min) <= (series, times.max));
                (false, ranges.get(first..behind).unwrap_or_default())
            }
        };
        let whole = (whole && bounds.overlaps(times)).then_some(bounds);
        whole.into_iter().chain(listed.iter().map(|it| it.range))
    }

    /// Whether it covers a row; `bounds` is the range beside it.
    #[must_use]
    pub fn contains(&self, series: SeriesId, time: i64, bounds: TimeRange) -> bool {
        let at = TimeRange {
            min: time,
            max: time,
        };
        bounds.contains(time) && self.ranges_of(series, bounds, at).next().is_some()
    }

    /// Whether it names a series from `first` to `last`.
    #[must_use]
    pub fn names_between(&self, first: SeriesId, last: SeriesId) -> bool {
        match self {
            Self::Table => true,
            Self::Series(series) => {
                let at = series.partition_point(|id| *id < first);
                series.get(at).is_some_and(|id| *id <= last)
            }
            Self::Ranges(ranges) => {
                let at = ranges.partition_point(|it| it.series < first);
                ranges.get(at).is_some_and(|it| it.series <= last)
            }
        }
    }

    /// The series that it names, ascending, each once; `None` for all.
    #[must_use]
    pub fn series(&self) -> Option<Vec<SeriesId>> {
        match self {
            Self::Table => None,
            Self::Series(series) => Some(series.to_vec()),
            Self::Ranges(ranges) => {
                let mut series: Vec<_> = ranges.iter().map(|it| it.series).collect();
                series.dedup();
                Some(series)
            }
        }
    }

    /// The times of the rows, if each range holds one row.
    #[must_use]
    pub fn single_times(&self) -> Option<Vec<i64>> {
        let Self::Ranges(ranges) = self else {
            return None;
        };
        let ranges = ranges.iter().map(|one| one.range);
        ranges
            .map(|range| (range.min == range.max).then_some(range.min))
            .collect()
    }

    /// Memory of its lists, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Table => 0,
            Self::Series(series) => size_of_val(&**series),
            Self::Ranges(ranges) => size_of_val(&**ranges),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: i64, max: i64) -> TimeRange {
        TimeRange { min, max }
    }

    fn listed(rows: &[(u32, i64)]) -> (DeletedRows, TimeRange) {
        let rows = rows.iter().map(|(series, time)| (SeriesId(*series), *time));
        DeletedRows::of_rows(rows.collect()).unwrap()
    }

    #[test]
    fn rows_become_ranges_of_times_that_follow_each_other() {
        let rows = [(2, 5), (1, 7), (1, 6), (1, 9), (1, 7), (1, i64::MAX)];
        let (deleted, bounds) = listed(&rows);
        assert_eq!(bounds, range(5, i64::MAX));
        let of = |series| deleted.ranges_of(SeriesId(series), bounds, TimeRange::ALL);
        assert_eq!(
            of(1).collect::<Vec<_>>(),
            [range(6, 7), range(9, 9), range(i64::MAX, i64::MAX)]
        );
        assert_eq!(of(2).collect::<Vec<_>>(), [range(5, 5)]);
        assert_eq!(deleted.check(bounds), Ok(()));
        assert_eq!(DeletedRows::of_rows(Vec::new()), None);
    }

    #[test]
    fn exactly_the_listed_rows_are_covered() {
        let rows: Vec<(u32, i64)> = (0..40_i64)
            .flat_map(|at| [(1, at * at % 61), (3, at * 7 % 50), (4, -at)])
            .collect();
        let (deleted, bounds) = listed(&rows);
        for series in 0..6 {
            for time in -45..70 {
                let is_listed = rows.contains(&(series, time));
                let series = SeriesId(series);
                assert_eq!(deleted.contains(series, time, bounds), is_listed);
                let window = range(time, time + 3);
                let some = (time..=time + 3).any(|at| rows.contains(&(series.0, at)));
                assert_eq!(deleted.ranges_of(series, bounds, window).count() > 0, some);
            }
        }
        assert!(deleted.names_between(SeriesId(2), SeriesId(3)));
        assert!(!deleted.names_between(SeriesId(2), SeriesId(2)));
        assert!(!deleted.names_between(SeriesId(5), SeriesId(9)));
        let series: Vec<_> = [1, 3, 4].map(SeriesId).into();
        assert_eq!(deleted.series(), Some(series));
    }

    #[test]
    fn lists_out_of_order_are_refused() {
        let one = |series, min, max| SeriesTimeRange {
            series: SeriesId(series),
            range: range(min, max),
        };
        let check =
            |ranges: &[SeriesTimeRange]| DeletedRows::Ranges(ranges.into()).check(range(0, 100));
        assert_eq!(check(&[one(1, 0, 5), one(1, 6, 7), one(2, 0, 0)]), Ok(()));
        for wrong in [
            [one(1, 0, 5), one(1, 5, 7)],
            [one(2, 0, 5), one(1, 6, 7)],
            [one(1, 0, 5), one(1, 8, 7)],
            [one(1, 0, 5), one(1, 8, 101)],
        ] {
            assert_eq!(check(&wrong), Err(DeletedRowsError::Ranges));
        }
        let series = DeletedRows::Series([3, 3].map(SeriesId).into());
        assert_eq!(series.check(range(0, 1)), Err(DeletedRowsError::Series));
    }
}
