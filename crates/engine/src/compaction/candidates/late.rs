//! Candidates that bring late rows into the sequence space: moves, cross compactions, and
//! compactions of whole tables.

use super::CompactionCandidates;
use crate::compaction::plan::{CompactionKind, CompactionPlan};
use crate::compaction::spent::covers;
use marigram_manifest::{Partition, SegmentMeta, SegmentSpace};
use marigram_model::TableId;

impl<'a> CompactionCandidates<'a> {
    /// Late segments whose rows no other segment can contain.
    pub(in crate::compaction) fn movable(&self) -> Option<CompactionPlan> {
        let late = |segment: &&SegmentMeta| segment.space == SegmentSpace::Unsequence;
        let alone = |segment: &&SegmentMeta| {
            let mut others = self.input.segments.values();
            !others.any(|other| other.id != segment.id && self.share_rows(other, segment))
        };
        let segments: Vec<_> = self.readable().filter(late).filter(alone).collect();
        (!segments.is_empty())
            .then(|| self.plan(CompactionKind::Move, SegmentSpace::Sequence, &segments))
    }

    /// Unsequence segments of a partition, with the sequence segments that they overlap.
    pub(in crate::compaction) fn cross(&self) -> Option<CompactionPlan> {
        let mut best: Option<(u64, Vec<&SegmentMeta>)> = None;
        let groups = self.groups(SegmentSpace::Unsequence);
        for late in groups.into_values().flat_map(|late| self.entangled(late)) {
            // As many of the oldest segments as may be read at once.
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
            if late_bytes.saturating_mul(self.options.cross_ratio) < old_bytes {
                continue;
            }
            // Maximize the late bytes per byte that must be rewritten.
            let gain = late_bytes.saturating_mul(1 << 20) / (old_bytes + 1);
            if best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, inputs));
            }
        }
        let (_, inputs) = best?;
        Some(self.plan(CompactionKind::Cross, SegmentSpace::Sequence, &inputs))
    }

    /// Groups late segments into parts that can go across separately, each oldest first. Two
    /// segments are in the same part if they may contain the same rows, or rows of the same
    /// sequence segment.
    fn entangled(&self, mut late: Vec<&'a SegmentMeta>) -> Vec<Vec<&'a SegmentMeta>> {
        late.sort_by_key(|segment| (segment.sequence_max, segment.id));
        let mut parts = Vec::new();
        while !late.is_empty() {
            let mut outside: Vec<&SegmentMeta> = late.clone();
            let sequence = |segment: &&SegmentMeta| segment.space == SegmentSpace::Sequence;
            outside.extend(self.input.segments.values().filter(sequence));
            let mut part = vec![outside.remove(0)];
            let mut at = 0;
            while at < part.len() {
                let member = part[at];
                let linked = |other: &&SegmentMeta| {
                    // Only late segments link sequence segments.
                    (member.space, other.space) != (SegmentSpace::Sequence, SegmentSpace::Sequence)
                        && self.share_rows(member, other)
                };
                let (found, rest) = outside.into_iter().partition(linked);
                part.extend::<Vec<_>>(found);
                outside = rest;
                at += 1;
            }
            let is_in = |segment: &&SegmentMeta| part.iter().any(|member| member.id == segment.id);
            let (of_part, rest) = late.into_iter().partition(is_in);
            parts.push(of_part);
            late = rest;
        }
        parts
    }

    /// `late` and the sequence segments that may contain the same rows. `None` if that is
    /// impossible, because something older stays behind, is unreadable, or belongs to another
    /// partition.
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
                SegmentSpace::Sequence => {
                    let movable = other.partition == late[0].partition && self.is_readable(other);
                    inputs.push(movable.then_some(other)?);
                }
                SegmentSpace::Unsequence if other.sequence_max < newest => return None,
                SegmentSpace::Unsequence => {}
            }
        }
        Some(inputs)
    }

    /// All segments of a table in a partition, if they are not a single sorted segment already:
    /// late segments that can go across, and sequence segments.
    pub(in crate::compaction) fn table(
        &self,
        table: TableId,
        partition: Partition,
        anew: bool,
    ) -> Option<CompactionPlan> {
        let holds = |segment: &&SegmentMeta| {
            segment.partition == partition && segment.tables.contains(&table)
        };
        let mut late = Vec::new();
        let mut ordered = Vec::new();
        for segment in self.readable().filter(holds) {
            match segment.space {
                SegmentSpace::Unsequence => late.push(segment),
                SegmentSpace::Sequence => ordered.push(segment),
            }
        }
        late.sort_by_key(|segment| (segment.sequence_max, segment.id));
        let mut prefixes = (1..=late.len()).rev();
        let across = prefixes.find_map(|len| self.cross_inputs(&late[..len]));
        let mut inputs = across.unwrap_or_default();
        let kept = self.kept(table);
        for segment in ordered {
            let longest = segment.tables.iter().filter_map(|table| self.kept(*table));
            let known = inputs.iter().any(|input| input.id == segment.id);
            if !known && longest.max() == kept {
                inputs.push(segment);
            }
        }
        let bytes: u64 = inputs.iter().map(|segment| segment.bytes).sum();
        let fewest = bytes.div_ceil(self.options.segment_bytes_max.max(1)).max(1);
        let due = (anew && !inputs.is_empty())
            || inputs.len() as u64 > fewest
            || inputs.iter().any(|segment| {
                let tombstones = &self.input.tombstones;
                segment.space == SegmentSpace::Unsequence
                    || self.holds_dropped(segment)
                    || tombstones
                        .iter()
                        .any(|tombstone| covers(tombstone, segment))
            });
        due.then(|| {
            let plan = self.plan(CompactionKind::Table, SegmentSpace::Sequence, &inputs);
            CompactionPlan { cold: true, ..plan }
        })
    }
}
