//! The best candidate of each kind of compaction, if one is due.

mod late;

use super::plan::{CompactionKind, CompactionPlan, PickInput, PickOptions};
use super::spent::{cost, covers};
use marigram_manifest::{Partition, SegmentId, SegmentMeta, SegmentSpace};
use marigram_model::TableId;
use std::collections::BTreeMap;

/// A version, and the settings for judging it.
pub(super) struct CompactionCandidates<'a> {
    pub(super) input: &'a PickInput<'a>,
    pub(super) options: &'a PickOptions,
}

/// How long rows are kept; for ever is the longest.
type RetentionKey = (bool, i64);

/// Segments that may be merged into one: they belong to one partition, and to tables with the same
/// retention, so that retention can drop them together.
type SegmentGroup = (Partition, RetentionKey);

impl<'a> CompactionCandidates<'a> {
    /// A segment with rows of a table that was dropped.
    pub(super) fn dropped_tables(&self) -> Option<CompactionPlan> {
        let segment = self
            .readable()
            .find(|segment| self.holds_dropped(segment))?;
        Some(self.plan(CompactionKind::Rewrite, segment.space, &[segment]))
    }

    fn holds_dropped(&self, segment: &SegmentMeta) -> bool {
        let mut tables = segment.tables.iter();
        tables.any(|table| !self.input.tables.contains_key(table))
    }

    /// How long a table's rows are kept.
    fn kept(&self, table: TableId) -> Option<RetentionKey> {
        let options = self.input.tables.get(&table)?;
        Some((options.ttl_ns.is_none(), options.ttl_ns.unwrap_or(0)))
    }

    /// The segment to which the costliest tombstones apply, among those whose rewriting spends them.
    pub(super) fn tombstones(&self) -> Option<CompactionPlan> {
        let counted = self.readable().filter_map(|segment| {
            let applying = self.input.tombstones.iter().filter(|t| covers(t, segment));
            let (count, newest) =
                applying.fold((0, 0), |(n, max), t| (n + cost(t), t.sequence.max(max)));
            let spent = newest <= self.spends_up_to(segment.space, &[segment]);
            (count > 0 && spent).then_some((count, segment))
        });
        let (_, segment) = counted.max_by_key(|(count, segment)| (*count, segment.id))?;
        Some(self.plan(CompactionKind::Rewrite, segment.space, &[segment]))
    }

    /// Adjacent segments (by age) that form a segment several times as large as each of them, so
    /// that a byte is rewritten a logarithmic number of times. The smallest ones come first.
    pub(super) fn inner(&self, space: SegmentSpace) -> Option<CompactionPlan> {
        let mut best: Option<(u64, Vec<&SegmentMeta>)> = None;
        for mut segments in self.groups(space).into_values() {
            segments.retain(|segment| segment.bytes < self.options.segment_bytes_max);
            segments.sort_by_key(|segment| (segment.sequence_max, segment.id));
            let Some((largest, window)) = self.window(space, &segments) else {
                continue;
            };
            if best.as_ref().is_none_or(|(least, _)| largest < *least) {
                best = Some((largest, window.to_vec()));
            }
        }
        let (_, window) = best?;
        Some(self.plan(CompactionKind::Inner(space), space, &window))
    }

    /// The window that is worth merging and whose largest segment is the smallest; of several such
    /// windows, the longest.
    fn window<'s>(
        &self,
        space: SegmentSpace,
        segments: &'s [&'a SegmentMeta],
    ) -> Option<(u64, &'s [&'a SegmentMeta])> {
        let growth = self.options.inner_growth.max(2);
        let mut best: Option<(u64, &[&SegmentMeta])> = None;
        for start in 0..segments.len() {
            let (mut largest, mut total) = (0u64, 0u64);
            let longest = segments.len().min(start + self.options.inner_segments_max);
            for end in start + 1..=longest {
                let bytes = segments[end - 1].bytes.max(self.options.small_bytes);
                (largest, total) = (largest.max(bytes), total.saturating_add(bytes));
                let window = &segments[start..end];
                let better = best.is_none_or(|(least, longest)| {
                    largest < least || (largest == least && window.len() > longest.len())
                });
                if total / growth >= largest && better && self.neighbours(space, window) {
                    best = Some((largest, window));
                }
            }
        }
        best
    }

    /// Whether no segment outside of `window`, which is sorted by age, has an age between its
    /// members and may contain rows of theirs.
    fn neighbours(&self, space: SegmentSpace, window: &[&SegmentMeta]) -> bool {
        let (Some(oldest), Some(newest)) = (window.first(), window.last()) else {
            return false;
        };
        let between = oldest.sequence_max..newest.sequence_max;
        space == SegmentSpace::Sequence
            || !self.input.segments.values().any(|other| {
                other.space == space
                    && between.contains(&other.sequence_max)
                    && window.iter().all(|member| member.id != other.id)
                    && window.iter().any(|member| self.share_rows(member, other))
            })
    }

    /// The highest sequence that the result of compacting `inputs` may claim.
    ///
    /// In the sequence space, no two segments contain the same rows, so age only decides which
    /// tombstones apply. In the unsequence space, the result must stay older than what is newer
    /// now: other segments, and rows not yet in segments.
    fn spends_up_to(&self, space: SegmentSpace, inputs: &[&SegmentMeta]) -> u64 {
        if space == SegmentSpace::Sequence {
            return u64::MAX;
        }
        let newest = inputs
            .iter()
            .map(|segment| segment.sequence_max)
            .max()
            .unwrap_or(0);
        let newer = self.input.segments.values().filter(|other| {
            other.space == space
                && other.sequence_max > newest
                && inputs.iter().any(|input| self.share_rows(input, other))
        });
        let bound = newer
            .map(|other| other.sequence_max - 1)
            .min()
            .unwrap_or(u64::MAX);
        bound.min(self.input.flushed_sequence)
    }

    /// Whether two segments may contain rows with the same (series, time), of tables that exist.
    fn share_rows(&self, a: &SegmentMeta, b: &SegmentMeta) -> bool {
        a.range.overlaps(b.range)
            && a.series_min <= b.series_max
            && b.series_min <= a.series_max
            && a.tables
                .iter()
                .any(|table| self.input.tables.contains_key(table) && b.tables.contains(table))
    }

    fn groups(&self, space: SegmentSpace) -> BTreeMap<SegmentGroup, Vec<&'a SegmentMeta>> {
        let mut groups: BTreeMap<SegmentGroup, Vec<&SegmentMeta>> = BTreeMap::new();
        for segment in self.readable().filter(|segment| segment.space == space) {
            let longest = segment
                .tables
                .iter()
                .filter_map(|table| self.kept(*table))
                .max();
            let group = (segment.partition, longest.unwrap_or_default());
            groups.entry(group).or_default().push(segment);
        }
        groups
    }

    fn readable(&self) -> impl Iterator<Item = &'a SegmentMeta> {
        self.input
            .segments
            .values()
            .filter(|segment| self.is_readable(segment))
    }

    fn is_readable(&self, segment: &SegmentMeta) -> bool {
        !self.input.unreadable.contains(&segment.id)
    }

    fn plan(
        &self,
        kind: CompactionKind,
        space: SegmentSpace,
        inputs: &[&SegmentMeta],
    ) -> CompactionPlan {
        let mut ids: Vec<SegmentId> = inputs.iter().map(|segment| segment.id).collect();
        ids.sort_unstable();
        let segments = self.input.segments.values();
        let newest = segments.map(|segment| segment.partition.start_ns).max();
        let cold = |input: &&SegmentMeta| Some(input.partition.start_ns) < newest;
        CompactionPlan {
            kind,
            cold: inputs.iter().all(cold),
            inputs: ids,
            space,
            spends_up_to: self.spends_up_to(space, inputs),
            segment_bytes_max: self.options.segment_bytes_max,
        }
    }
}
