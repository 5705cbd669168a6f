//! The best candidate of each kind of compaction, if one is due.

use super::plan::{Kind, PickInput, PickOptions, Plan};
use super::spent::covers;
use marigram_manifest::{Partition, SegmentId, SegmentMeta, Space};
use std::collections::BTreeMap;

/// A version with the settings to judge it by.
pub(super) struct Candidates<'a> {
    pub(super) input: &'a PickInput<'a>,
    pub(super) options: &'a PickOptions,
}

/// Segments that may become one: of one partition, and of tables that are kept equally long, so
/// that retention can drop them together. Order of time to live: for ever is longest.
type Group = (Partition, (bool, i64));

impl<'a> Candidates<'a> {
    /// A segment with rows of a table that was dropped.
    pub(super) fn dropped_tables(&self) -> Option<Plan> {
        let dropped = |segment: &&SegmentMeta| {
            segment
                .tables
                .iter()
                .any(|table| !self.input.tables.contains_key(table))
        };
        let segment = self.readable().find(dropped)?;
        Some(self.plan(Kind::Rewrite, segment.space, &[segment]))
    }

    /// The segment to which most tombstones apply, among those whose rewriting spends them.
    pub(super) fn tombstones(&self) -> Option<Plan> {
        let counted = self.readable().filter_map(|segment| {
            let applying = self.input.tombstones.iter().filter(|t| covers(t, segment));
            let (count, newest) = applying.fold((0, 0), |(n, max), t| (n + 1, t.sequence.max(max)));
            let spent = newest <= self.spends_up_to(segment.space, &[segment]);
            (count > 0 && spent).then_some((count, segment))
        });
        let (_, segment) = counted.max_by_key(|(count, segment)| (*count, segment.id))?;
        Some(self.plan(Kind::Rewrite, segment.space, &[segment]))
    }

    /// Neighbours of about one size in a space: the smallest size first.
    pub(super) fn inner(&self, space: Space) -> Option<Plan> {
        let mut best: Option<(u32, Vec<&SegmentMeta>)> = None;
        for mut segments in self.groups(space).into_values() {
            segments.sort_by_key(|segment| (segment.sequence_max, segment.id));
            let small = |segment: &&SegmentMeta| segment.bytes < self.options.segment_bytes_max;
            for neighbours in segments.split(|segment| !small(segment)) {
                let Some((tier, window)) = self.window(space, neighbours) else {
                    continue;
                };
                if best.as_ref().is_none_or(|(least, _)| tier < *least) {
                    best = Some((tier, window.to_vec()));
                }
            }
        }
        let (_, window) = best?;
        Some(self.plan(Kind::Inner(space), space, &window))
    }

    /// The window of enough neighbours whose largest one is of the smallest size.
    fn window<'s>(
        &self,
        space: Space,
        segments: &'s [&'a SegmentMeta],
    ) -> Option<(u32, &'s [&'a SegmentMeta])> {
        let min = self.options.inner_segments_min.max(2);
        let max = self.options.inner_segments_max.max(min);
        let mut best: Option<(u32, &[&SegmentMeta])> = None;
        for start in 0..segments.len() {
            let mut tier = 0;
            let longest = segments.len().min(start + max);
            for end in start + 1..=longest {
                tier = tier.max(self.tier(segments[end - 1]));
                let window = &segments[start..end];
                let better = best.is_none_or(|(least, longest)| {
                    tier < least || (tier == least && window.len() > longest.len())
                });
                if window.len() >= min && better && self.neighbours(space, window) {
                    best = Some((tier, window));
                }
            }
        }
        best
    }

    /// Unsequence segments of a partition with the sequence segments that they overlap.
    pub(super) fn cross(&self) -> Option<Plan> {
        let mut best: Option<(u64, Vec<&SegmentMeta>)> = None;
        for mut late in self.groups(Space::Unsequence).into_values() {
            late.sort_by_key(|segment| (segment.sequence_max, segment.id));
            // As many of the oldest as may be read at once.
            let prefixes = (1..=late.len()).rev();
            let chosen = prefixes.into_iter().find_map(|len| {
                let inputs = self.cross_inputs(&late[..len])?;
                let bytes: u64 = inputs.iter().map(|segment| segment.bytes).sum();
                (len == 1 || bytes <= self.options.cross_bytes_max).then_some((len, inputs))
            });
            let Some((len, inputs)) = chosen else {
                continue;
            };
            let bytes = |segments: &[&SegmentMeta]| segments.iter().map(|s| s.bytes).sum::<u64>();
            let (late_bytes, old_bytes) = (bytes(&late[..len]), bytes(&inputs[len..]));
            let many = late.len() >= self.options.unsequence_segments_max;
            if !many && late_bytes.saturating_mul(self.options.cross_ratio) < old_bytes {
                continue;
            }
            // The most late bytes for each byte that must be rewritten.
            let gain = late_bytes.saturating_mul(1 << 20) / (old_bytes + 1);
            if best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, inputs));
            }
        }
        let (_, inputs) = best?;
        Some(self.plan(Kind::Cross, Space::Sequence, &inputs))
    }

    /// `late` and the sequence segments that may hold the same rows; `None` where that is not
    /// possible: something older stays behind, something is unreadable or of another partition.
    fn cross_inputs(&self, late: &[&'a SegmentMeta]) -> Option<Vec<&'a SegmentMeta>> {
        let mut inputs = late.to_vec();
        let newest = late.iter().map(|segment| segment.sequence_max).max()?;
        for other in self.input.segments.values() {
            if late.iter().any(|chosen| chosen.id == other.id) {
                continue;
            }
            if !late.iter().any(|chosen| self.share_rows(chosen, other)) {
                continue;
            }
            match other.space {
                Space::Sequence => {
                    let movable = other.partition == late[0].partition && self.is_readable(other);
                    inputs.push(movable.then_some(other)?);
                }
                Space::Unsequence if other.sequence_max < newest => return None,
                Space::Unsequence => {}
            }
        }
        Some(inputs)
    }

    /// Whether no segment outside of `window`, which is sorted by age, is between its members in
    /// age and may hold rows of theirs.
    fn neighbours(&self, space: Space, window: &[&SegmentMeta]) -> bool {
        let (Some(oldest), Some(newest)) = (window.first(), window.last()) else {
            return false;
        };
        let between = oldest.sequence_max..newest.sequence_max;
        space == Space::Sequence
            || !self.input.segments.values().any(|other| {
                other.space == space
                    && between.contains(&other.sequence_max)
                    && window.iter().all(|member| member.id != other.id)
                    && window.iter().any(|member| self.share_rows(member, other))
            })
    }

    /// Up to which sequence the result of compacting `inputs` may claim to be.
    ///
    /// In the sequence space no two segments hold the same rows, so that age decides nothing but
    /// which tombstones apply. In the unsequence space the result must stay older than what is
    /// newer now: other segments, and rows not yet in segments.
    fn spends_up_to(&self, space: Space, inputs: &[&SegmentMeta]) -> u64 {
        if space == Space::Sequence {
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

    /// Whether two segments may hold rows of the same (series, time), of tables that are there.
    fn share_rows(&self, a: &SegmentMeta, b: &SegmentMeta) -> bool {
        a.range.overlaps(b.range)
            && a.series_min <= b.series_max
            && b.series_min <= a.series_max
            && a.tables
                .iter()
                .any(|table| self.input.tables.contains_key(table) && b.tables.contains(table))
    }

    fn groups(&self, space: Space) -> BTreeMap<Group, Vec<&'a SegmentMeta>> {
        let mut groups: BTreeMap<Group, Vec<&SegmentMeta>> = BTreeMap::new();
        for segment in self.readable().filter(|segment| segment.space == space) {
            let kept = |table| {
                let options = self.input.tables.get(table)?;
                Some((options.ttl_ns.is_none(), options.ttl_ns.unwrap_or(0)))
            };
            let longest = segment.tables.iter().filter_map(kept).max();
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

    /// Size class: 0 up to `tier_bytes`, 1 up to four times as much, and so on.
    fn tier(&self, segment: &SegmentMeta) -> u32 {
        (segment.bytes / self.options.tier_bytes.max(1))
            .checked_ilog(4)
            .map_or(0, |tier| tier + 1)
    }

    fn plan(&self, kind: Kind, space: Space, inputs: &[&SegmentMeta]) -> Plan {
        let mut ids: Vec<SegmentId> = inputs.iter().map(|segment| segment.id).collect();
        ids.sort_unstable();
        Plan {
            kind,
            inputs: ids,
            space,
            spends_up_to: self.spends_up_to(space, inputs),
            segment_bytes_max: self.options.segment_bytes_max,
        }
    }
}
