//! Which tombstones apply to a segment, and which are spent.

use marigram_manifest::{ManifestState, SegmentMeta, Tombstone};

/// Tombstones that no row in a segment needs any more. Those above the flushed sequence stay: rows
/// that they cover may still be about to enter a segment.
pub(crate) fn spent_tombstones(state: &ManifestState) -> Vec<u64> {
    let spent = |tombstone: &&Tombstone| {
        tombstone.sequence <= state.flushed_sequence
            && !state
                .segments
                .values()
                .any(|segment| covers(tombstone, segment))
    };
    state
        .tombstones
        .iter()
        .filter(spent)
        .map(|tombstone| tombstone.sequence)
        .collect()
}

/// What a tombstone costs readers, as a number of short ones: a list of rows counts by its memory.
pub(super) fn cost(tombstone: &Tombstone) -> usize {
    const LIST_BYTES: usize = 16 * 1024;
    1 + tombstone.rows.heap_bytes() / LIST_BYTES
}

/// Whether a tombstone may delete rows of a segment.
pub(super) fn covers(tombstone: &Tombstone, segment: &SegmentMeta) -> bool {
    let (first, last) = (segment.series_min, segment.series_max);
    tombstone.sequence > segment.sequence_max
        && tombstone.range.overlaps(segment.range)
        && segment.tables.contains(&tombstone.table)
        && tombstone.rows.names_between(first, last)
}
