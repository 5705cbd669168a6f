//! The sources of a shard with rows of some series and times, and limits on their output.

use crate::error::Result;
use crate::merge::MergeSource;
use crate::view::ShardView;
use marigram_manifest::SegmentMeta;
use marigram_model::{SortedRows, TableId, TimeRange};
use roaring::RoaringBitmap;

/// The segments with rows of these series and times, as sources.
pub(super) fn sources_of(
    view: &ShardView,
    table: TableId,
    series: &RoaringBitmap,
    range: TimeRange,
) -> Result<Vec<MergeSource>> {
    view.segments
        .iter()
        .filter(|open| {
            let SegmentMeta {
                series_min,
                series_max,
                ..
            } = &open.meta;
            open.meta.range.overlaps(range)
                && series.range_cardinality(series_min.0..=series_max.0) > 0
        })
        .map(|open| MergeSource::segment(open, table, &view.tombstones))
        .collect()
}

/// The chunks with rows of these times, as sources.
pub(super) fn chunks_of(view: &ShardView, range: TimeRange) -> impl Iterator<Item = MergeSource> {
    let chunks = view
        .chunks
        .iter()
        .filter(move |chunk| chunk.range().overlaps(range));
    chunks.map(|chunk| MergeSource::chunk(chunk.clone(), &view.tombstones))
}

/// Keeps the first `len` rows.
pub(super) fn truncate(rows: &mut SortedRows, len: usize) {
    if rows.len() <= len {
        return;
    }
    let mut left = len as u32;
    rows.runs.retain_mut(|run| {
        run.rows = run.rows.min(left);
        left -= run.rows;
        run.rows > 0
    });
    rows.times = rows.times.slice(0, len);
    for column in &mut rows.columns {
        *column = column.slice(0, len);
    }
}
