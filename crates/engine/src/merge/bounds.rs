//! Skips pages by the statistics of their values, where that is allowed.
//!
//! A page whose values are all outside a filter's bounds may be skipped only if no other source can
//! have rows with the same (series, time). Otherwise, an older version of a row that the filter
//! refuses would reappear, or a newer version would lose fields from the skipped one.

use super::source::MergeSource;
use marigram_manifest::SegmentSpace;
use marigram_model::{ColumnId, FieldValue, SeriesId, TimeRange};
use marigram_segment::PageStats;
use std::cmp::Ordering;

/// Bounds (both inclusive) on a field's value. They only prune pages by statistics: rows outside
/// the bounds may still be returned.
#[derive(Clone, Debug)]
pub struct ColumnBounds {
    /// The field.
    pub column: ColumnId,
    /// Minimum; `None` means no bound on this side.
    pub min: Option<FieldValue>,
    /// Maximum; `None` means no bound on this side.
    pub max: Option<FieldValue>,
}

impl ColumnBounds {
    /// Whether no row of a page can meet the bounds. A null meets none.
    pub(super) fn exclude(&self, stats: &PageStats, rows: u32) -> bool {
        if self.min.is_none() && self.max.is_none() {
            return false;
        }
        if stats.nulls == rows {
            return true;
        }
        let less = |a: &Option<FieldValue>, b: &Option<FieldValue>| match (a, b) {
            (Some(a), Some(b)) => compare(a, b) == Some(Ordering::Less),
            _ => false,
        };
        // A NaN with a sign is the minimum in the statistics; in SQL it is greater than every
        // number.
        let is_nan = match stats.min {
            Some(FieldValue::F32(least)) => least.is_nan(),
            Some(FieldValue::F64(least)) => least.is_nan(),
            _ => false,
        };
        (!is_nan && less(&stats.max, &self.min)) || less(&self.max, &stats.min)
    }
}

/// Compares two values of one type; `None` for different types. Floats are in total order, except
/// that the two zeros are equal, so that the result serves both kinds of filters.
fn compare(a: &FieldValue, b: &FieldValue) -> Option<Ordering> {
    use FieldValue as V;
    Some(match (a, b) {
        (V::F32(a), V::F32(b)) if a == b => Ordering::Equal,
        (V::F64(a), V::F64(b)) if a == b => Ordering::Equal,
        _ => return a.total_cmp(b),
    })
}

/// The extents of every source's rows.
#[derive(Debug, Default)]
pub(super) struct SourceExtents(Vec<SourceExtent>);

#[derive(Debug)]
struct SourceExtent {
    source: u32,
    space: SegmentSpace,
    series_min: SeriesId,
    series_max: SeriesId,
    range: TimeRange,
}

impl SourceExtents {
    pub(super) fn from_sources(sources: &[MergeSource]) -> Self {
        let extents = sources.iter().enumerate().flat_map(|(at, source)| {
            let space = source.space();
            source
                .extents()
                .into_iter()
                .map(move |(series_min, series_max, range)| SourceExtent {
                    source: at as u32,
                    space,
                    series_min,
                    series_max,
                    range,
                })
        });
        Self(extents.collect())
    }

    /// Whether a source other than `source` may have a row with a series and time in these ranges,
    /// which a segment of `source` in `space` also has. Two sources of the sequence space never
    /// share rows if one is a segment: a series' rows go there only if they are after everything
    /// that was flushed.
    fn shared(
        &self,
        source: u32,
        space: SegmentSpace,
        series: (SeriesId, SeriesId),
        range: TimeRange,
    ) -> bool {
        self.0.iter().any(|other| {
            other.source != source
                && (other.space, space) != (SegmentSpace::Sequence, SegmentSpace::Sequence)
                && other.series_min <= series.1
                && series.0 <= other.series_max
                && other.range.overlaps(range)
        })
    }
}

/// Which pages may be skipped by their values.
#[derive(Debug)]
pub(super) struct PagePruning {
    pub(super) bounds: Vec<ColumnBounds>,
    pub(super) extents: SourceExtents,
}

impl PagePruning {
    /// Whether a page of a segment with these series and times may be skipped if its values allow
    /// it.
    pub(super) fn allowed(
        &self,
        source: u32,
        space: SegmentSpace,
        series: (SeriesId, SeriesId),
        range: TimeRange,
    ) -> bool {
        !self.bounds.is_empty() && !self.extents.shared(source, space, series, range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(min: f64, max: f64, nulls: u32) -> PageStats {
        let (min, max) = (Some(FieldValue::F64(min)), Some(FieldValue::F64(max)));
        PageStats {
            nulls,
            min,
            max,
            ..PageStats::default()
        }
    }

    #[test]
    fn bounds_exclude_pages_that_lie_outside_and_no_others() {
        let bound = |min: Option<f64>, max: Option<f64>| ColumnBounds {
            column: ColumnId(1),
            min: min.map(FieldValue::F64),
            max: max.map(FieldValue::F64),
        };
        assert!(bound(Some(5.0), None).exclude(&stats(1.0, 4.0, 0), 10));
        assert!(bound(None, Some(0.5)).exclude(&stats(1.0, 4.0, 0), 10));
        assert!(!bound(Some(4.0), None).exclude(&stats(1.0, 4.0, 0), 10));
        assert!(!bound(Some(2.0), Some(3.0)).exclude(&stats(1.0, 4.0, 0), 10));
        assert!(!bound(None, None).exclude(&stats(1.0, 4.0, 10), 10));
        assert!(
            bound(Some(2.0), None).exclude(&stats(1.0, 4.0, 10), 10),
            "only nulls"
        );
        assert!(
            !bound(Some(0.0), None).exclude(&stats(-1.0, -0.0, 0), 10),
            "both zeros are one"
        );
        assert!(
            !bound(Some(5.0), None).exclude(&stats(-f64::NAN, 3.0, 0), 10),
            "a NaN is greater than every number"
        );
        let text = ColumnBounds {
            min: Some(FieldValue::I64(9)),
            ..bound(None, None)
        };
        assert!(
            !text.exclude(&stats(1.0, 4.0, 0), 10),
            "other types are not compared"
        );
        let unknown = PageStats::default();
        assert!(
            !bound(Some(5.0), None).exclude(&unknown, 10),
            "no statistics"
        );
    }
}
