//! Tests of the picker on versions that exist only in memory.

use super::*;
use crate::compaction::plan::CompactionKind;
use marigram_manifest::{Partition, SegmentId, SegmentMeta, Tombstone};
use marigram_model::{DAY_NS, DeletedRows, SeriesId, TableId, TableOptions, TimeRange};
use std::collections::{BTreeMap, BTreeSet};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A version under construction; segments are numbered, with ascending age.
#[derive(Default)]
struct VersionBuilder {
    segments: BTreeMap<SegmentId, SegmentMeta>,
    tombstones: Vec<Tombstone>,
    tables: BTreeMap<TableId, TableOptions>,
    unreadable: BTreeSet<SegmentId>,
}

impl VersionBuilder {
    fn new() -> Self {
        let tables = [(TableId(1), TableOptions::default())].into();
        Self {
            tables,
            ..Self::default()
        }
    }

    fn add(&mut self, space: SegmentSpace, bytes: u64, min: i64, max: i64) -> &mut SegmentMeta {
        let id = SegmentId(self.segments.len() as u64);
        let meta = SegmentMeta {
            id,
            space,
            partition: Partition {
                start_ns: 0,
                width_ns: DAY_NS,
            },
            range: TimeRange { min, max },
            rows: 100,
            bytes,
            sequence_max: 10 * (id.0 + 1),
            tables: vec![TableId(1)],
            series_min: SeriesId(0),
            series_max: SeriesId(9),
            level: 0,
            pin: None,
        };
        self.segments.entry(id).or_insert(meta)
    }

    fn pick(&self, policy: Policy, turn: u64) -> Option<(CompactionKind, Vec<u64>)> {
        let plan = self.plan(policy, turn)?;
        Some((plan.kind, plan.inputs.iter().map(|id| id.0).collect()))
    }

    fn plan(&self, policy: Policy, turn: u64) -> Option<CompactionPlan> {
        let input = PickInput {
            segments: &self.segments,
            tombstones: &self.tombstones,
            tables: &self.tables,
            unreadable: &self.unreadable,
            flushed_sequence: 1000,
        };
        pick(&input, &PickOptions::for_policy(policy), turn)
    }

    fn table(&self, table: u32) -> Option<(CompactionKind, Vec<u64>)> {
        let input = PickInput {
            segments: &self.segments,
            tombstones: &self.tombstones,
            tables: &self.tables,
            unreadable: &self.unreadable,
            flushed_sequence: 1000,
        };
        let partition = Partition {
            start_ns: 0,
            width_ns: DAY_NS,
        };
        let plan = pick_table(
            &input,
            &PickOptions::for_policy(Policy::Balance),
            TableId(table),
            partition,
            false,
        )?;
        Some((plan.kind, plan.inputs.iter().map(|id| id.0).collect()))
    }
}

/// The result of [`VersionBuilder::pick`] for an inner compaction of sequence segments.
#[expect(
    clippy::unnecessary_wraps,
    reason = "compared with the result of the picker"
)]
fn inner(inputs: &[u64]) -> Option<(CompactionKind, Vec<u64>)> {
    Some((
        CompactionKind::Inner(SegmentSpace::Sequence),
        inputs.to_vec(),
    ))
}

#[test]
fn few_segments_are_left_alone() {
    let mut version = VersionBuilder::new();
    for at in 0..3 {
        version.add(SegmentSpace::Sequence, KIB, at * 10, at * 10 + 9);
    }
    assert_eq!(version.pick(Policy::Balance, 0), None);
}

#[test]
fn segments_are_merged_when_the_result_is_several_times_the_largest() {
    let mut version = VersionBuilder::new();
    for (at, bytes) in [40, 40, 40, 40, 1, 1, 2, 1].iter().enumerate() {
        let at = at as i64 * 10;
        version.add(SegmentSpace::Sequence, *bytes * MIB, at, at + 9);
    }
    // The small ones do not suffice for the one of 2 MiB among them.
    assert_eq!(
        version.pick(Policy::Balance, 0),
        inner(&[0, 1, 2, 3, 4, 5, 6, 7])
    );
    version.segments.get_mut(&SegmentId(6)).unwrap().bytes = MIB;
    assert_eq!(version.pick(Policy::Balance, 0), inner(&[4, 5, 6, 7]));
    for id in 4..8 {
        version.segments.remove(&SegmentId(id));
    }
    version.segments.get_mut(&SegmentId(3)).unwrap().bytes = 30 * MIB;
    assert_eq!(
        version.pick(Policy::Balance, 0),
        None,
        "less than four times 40 MiB"
    );
}

#[test]
fn segments_of_the_largest_size_are_not_merged() {
    let mut version = VersionBuilder::new();
    for at in 0..9 {
        version.add(SegmentSpace::Sequence, 600 * MIB, at * 10, at * 10 + 9);
    }
    assert_eq!(version.pick(Policy::Balance, 0), None);
}

#[test]
fn partitions_and_times_to_live_are_kept_apart() {
    let mut version = VersionBuilder::new();
    version.tables.insert(
        TableId(2),
        TableOptions {
            ttl_ns: Some(1),
            ..TableOptions::default()
        },
    );
    for at in 0..6 {
        version
            .add(SegmentSpace::Sequence, KIB, at, at)
            .partition
            .start_ns = (at % 2) * DAY_NS;
    }
    for at in 0..3 {
        version.add(SegmentSpace::Sequence, KIB, at, at).tables = vec![TableId(2)];
    }
    assert_eq!(version.pick(Policy::Balance, 0), None);
    version.add(SegmentSpace::Sequence, KIB, 9, 9).tables = vec![TableId(2)];
    assert_eq!(version.pick(Policy::Balance, 0), inner(&[6, 7, 8, 9]));
}

#[test]
fn late_rows_go_where_they_belong_when_they_are_worth_it() {
    let mut version = VersionBuilder::new();
    version.add(SegmentSpace::Sequence, 90 * MIB, 0, 9);
    version.add(SegmentSpace::Sequence, 90 * MIB, 10, 19);
    version.add(SegmentSpace::Unsequence, MIB, 5, 6);
    assert_eq!(
        version.pick(Policy::Balance, 0),
        None,
        "too few bytes for the rewriting"
    );
    version.add(SegmentSpace::Unsequence, 20 * MIB, 4, 8);
    let crossed = |ids: &[u64]| Some((CompactionKind::Cross, ids.to_vec()));
    assert_eq!(version.pick(Policy::CrossInner, 0), crossed(&[0, 2, 3]));
    assert_eq!(
        version.pick(Policy::Balance, 0),
        None,
        "it waits for a quarter"
    );
    version.segments.get_mut(&SegmentId(3)).unwrap().bytes = 22 * MIB;
    assert_eq!(version.pick(Policy::Balance, 0), crossed(&[0, 2, 3]));
    assert_eq!(
        version.pick(Policy::InnerCross, 0),
        None,
        "it waits for a half"
    );
    version.segments.get_mut(&SegmentId(3)).unwrap().range.max = 12;
    version.segments.get_mut(&SegmentId(3)).unwrap().bytes = 90 * MIB;
    for policy in Policy::ALL {
        assert_eq!(version.pick(policy, 0), crossed(&[0, 1, 2, 3]));
    }
}

#[test]
fn late_rows_go_across_apart_where_they_overlap_different_segments() {
    let mut version = VersionBuilder::new();
    version.add(SegmentSpace::Sequence, 90 * MIB, 0, 9);
    version.add(SegmentSpace::Sequence, MIB, 10, 19);
    version.add(SegmentSpace::Unsequence, MIB, 5, 6);
    version.add(SegmentSpace::Unsequence, MIB, 15, 16);
    let picked = version.pick(Policy::Balance, 0);
    assert_eq!(picked, Some((CompactionKind::Cross, vec![1, 3])));
}

#[test]
fn late_segments_that_overlap_nothing_are_moved() {
    let mut version = VersionBuilder::new();
    version.add(SegmentSpace::Sequence, 90 * MIB, 0, 9);
    version.add(SegmentSpace::Unsequence, MIB, 5, 6);
    version.add(SegmentSpace::Unsequence, MIB, 10, 16);
    version.add(SegmentSpace::Unsequence, MIB, 20, 30);
    version.add(SegmentSpace::Unsequence, MIB, 25, 35);
    version.add(SegmentSpace::Unsequence, MIB, 5, 6).series_min = SeriesId(8);
    version.segments.get_mut(&SegmentId(0)).unwrap().series_max = SeriesId(7);
    version.segments.get_mut(&SegmentId(1)).unwrap().series_max = SeriesId(7);
    let plan = version.plan(Policy::Balance, 0).unwrap();
    assert_eq!(
        (plan.kind, plan.space),
        (CompactionKind::Move, SegmentSpace::Sequence)
    );
    assert_eq!(plan.inputs, [SegmentId(2), SegmentId(5)]);
}

#[test]
fn late_rows_wait_for_older_ones_that_cannot_go() {
    let mut version = VersionBuilder::new();
    version.add(SegmentSpace::Sequence, 10 * MIB, 0, 99);
    version
        .add(SegmentSpace::Unsequence, 10 * MIB, 0, 50)
        .partition
        .width_ns = 2 * DAY_NS;
    version.add(SegmentSpace::Unsequence, 10 * MIB, 0, 50);
    assert_eq!(version.pick(Policy::Balance, 0), None);
    version.segments.get_mut(&SegmentId(1)).unwrap().range.min = 51;
    version.segments.get_mut(&SegmentId(1)).unwrap().range.max = 60;
    assert_eq!(
        version.pick(Policy::Balance, 0),
        Some((CompactionKind::Cross, vec![0, 2]))
    );
}

#[test]
fn late_segments_are_merged_only_with_their_neighbours_in_age() {
    let mut version = VersionBuilder::new();
    for at in 0..5 {
        version.add(SegmentSpace::Unsequence, KIB, 0, 10);
        if at == 2 {
            version
                .add(SegmentSpace::Unsequence, KIB, 0, 10)
                .partition
                .width_ns = 2 * DAY_NS;
        }
    }
    version.add(SegmentSpace::Sequence, 500 * MIB, 0, 10);
    let merged = version.pick(Policy::InnerCross, 0);
    assert_eq!(
        merged, None,
        "{merged:?} would carry rows over a newer segment"
    );
    version
        .segments
        .get_mut(&SegmentId(3))
        .unwrap()
        .partition
        .width_ns = DAY_NS;
    let all = Some((
        CompactionKind::Inner(SegmentSpace::Unsequence),
        (0..6).collect(),
    ));
    assert_eq!(version.pick(Policy::InnerCross, 0), all);
}

#[test]
fn a_table_becomes_one_segment_in_order() {
    let mut version = VersionBuilder::new();
    version.tables.insert(TableId(2), TableOptions::default());
    version.add(SegmentSpace::Sequence, 90 * MIB, 0, 9);
    assert_eq!(version.table(1), None, "it is that already");
    version.tombstones.push(Tombstone {
        sequence: 500,
        table: TableId(1),
        rows: DeletedRows::Table,
        range: TimeRange { min: 3, max: 4 },
    });
    assert_eq!(
        version.table(1),
        Some((CompactionKind::Table, vec![0])),
        "but for a delete"
    );
    version.add(SegmentSpace::Sequence, KIB, 10, 19);
    version.add(SegmentSpace::Unsequence, KIB, 5, 6);
    version.add(SegmentSpace::Sequence, KIB, 10, 19).tables = vec![TableId(2)];
    version
        .add(SegmentSpace::Sequence, KIB, 10, 19)
        .partition
        .start_ns = DAY_NS;
    version.add(SegmentSpace::Sequence, KIB, 20, 29).tables = vec![TableId(1), TableId(2)];
    version.unreadable.insert(SegmentId(1));
    assert_eq!(
        version.table(1),
        Some((CompactionKind::Table, vec![0, 2, 5]))
    );
    assert_eq!(version.table(2), Some((CompactionKind::Table, vec![3, 5])));
    assert_eq!(version.table(7), None);
}

#[test]
fn a_table_of_the_largest_segments_is_left_alone_unless_there_are_late_rows() {
    let mut version = VersionBuilder::new();
    for at in 0..3 {
        version.add(SegmentSpace::Sequence, 512 * MIB, at * 10, at * 10 + 9);
    }
    version.add(SegmentSpace::Sequence, MIB, 30, 39);
    assert_eq!(version.table(1), None);
    version.add(SegmentSpace::Unsequence, MIB, 30, 39);
    assert_eq!(
        version.table(1),
        Some((CompactionKind::Table, (0..5).collect()))
    );
}

#[test]
fn older_partitions_are_cold() {
    let mut version = VersionBuilder::new();
    for at in 0..4 {
        version.add(SegmentSpace::Sequence, KIB, at * 10, at * 10 + 9);
    }
    assert!(!version.plan(Policy::Balance, 0).unwrap().cold);
    version
        .add(SegmentSpace::Sequence, KIB, 0, 9)
        .partition
        .start_ns = DAY_NS;
    assert!(version.plan(Policy::Balance, 0).unwrap().cold);
}

#[test]
fn policies_put_the_kinds_in_their_order() {
    let mut version = VersionBuilder::new();
    for at in 0..4 {
        version.add(SegmentSpace::Sequence, KIB, at * 10, at * 10 + 9);
    }
    for _ in 0..4 {
        version.add(SegmentSpace::Unsequence, KIB, 0, 39);
    }
    let kind = |policy, turn| version.pick(policy, turn).unwrap().0;
    let turns: Vec<CompactionKind> = (0..3).map(|turn| kind(Policy::Balance, turn)).collect();
    assert_eq!(
        turns,
        [
            CompactionKind::Inner(SegmentSpace::Sequence),
            CompactionKind::Inner(SegmentSpace::Unsequence),
            CompactionKind::Cross
        ]
    );
    assert_eq!(
        kind(Policy::InnerCross, 2),
        CompactionKind::Inner(SegmentSpace::Sequence)
    );
    assert_eq!(kind(Policy::CrossInner, 0), CompactionKind::Cross);
}

#[test]
fn segments_lose_tables_that_were_dropped() {
    let mut version = VersionBuilder::new();
    version.add(SegmentSpace::Sequence, KIB, 0, 9);
    version.add(SegmentSpace::Unsequence, KIB, 0, 9).tables = vec![TableId(1), TableId(7)];
    assert_eq!(
        version.pick(Policy::Balance, 0),
        Some((CompactionKind::Rewrite, vec![1]))
    );
    version.unreadable.insert(SegmentId(1));
    assert_eq!(
        version.pick(Policy::Balance, 0),
        None,
        "a damaged segment is left alone"
    );
}

#[test]
fn many_tombstones_are_spent() {
    let mut version = VersionBuilder::new();
    version.add(SegmentSpace::Sequence, KIB, 0, 9);
    version.add(SegmentSpace::Unsequence, KIB, 0, 99);
    version.add(SegmentSpace::Unsequence, KIB, 0, 99);
    version
        .segments
        .values_mut()
        .for_each(|segment| segment.bytes = 1);
    version.segments.get_mut(&SegmentId(0)).unwrap().bytes = 100 * MIB;
    for at in 0..65 {
        version.tombstones.push(Tombstone {
            sequence: 100 + at,
            table: TableId(1),
            rows: DeletedRows::Table,
            range: TimeRange { min: 50, max: 99 },
        });
    }
    let plan = version.plan(Policy::Balance, 0).unwrap();
    assert_eq!(
        (plan.kind, plan.inputs),
        (CompactionKind::Rewrite, vec![SegmentId(2)]),
        "the newest one"
    );
    assert_eq!(plan.spends_up_to, 1000, "as far as everything is flushed");
    version
        .segments
        .get_mut(&SegmentId(2))
        .unwrap()
        .sequence_max = 164;
    let plan = version.plan(Policy::Balance, 0);
    assert_eq!(
        plan, None,
        "the older one must not become newer than its neighbour"
    );
}
