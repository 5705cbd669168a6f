//! Compactions on a simulated disk: whatever the picker picks, the rows stay the same.

use super::*;
use crate::compaction::history::CompactionHistory;
use crate::compaction::plan::{CompactionKind, PickInput, PickOptions};
use crate::compaction::{pick, pick_table, spent_tombstones};
use crate::merge::testing::{
    COLUMNS, TABLE, TestFields, TestRows, TestSource, blobs, merged, naive, open_segment,
    segment_files, sources_with, tombstone,
};
use crate::options::CompactionPolicy as Policy;
use marigram_env::{LogStore, SimFs};
use marigram_manifest::{ManifestState, SegmentSpace};
use proptest::prelude::*;
use std::cell::Cell;
use std::path::Path;

/// A shard's segments and tombstones, without a shard.
struct Files {
    fs: Arc<dyn LogStore>,
    next: Cell<u64>,
    /// Bytes of pages that were copied.
    copied: Cell<u64>,
    state: ManifestState,
    open: BTreeMap<SegmentId, Arc<OpenSegment>>,
    tables: BTreeMap<TableId, TableOptions>,
}

impl Files {
    fn new(given: &[TestSource], tombstones: &[Arc<Tombstone>]) -> Self {
        let fs: Arc<dyn LogStore> = Arc::new(SimFs::new(7));
        let options = options();
        let mut state = ManifestState {
            flushed_sequence: 1000,
            ..ManifestState::default()
        };
        let mut open = BTreeMap::new();
        for (id, given) in given.iter().enumerate() {
            let segment = open_segment(&fs, id as u64, given, &options);
            state.segments.insert(segment.meta.id, segment.meta.clone());
            open.insert(segment.meta.id, segment);
        }
        state.tombstones = tombstones
            .iter()
            .map(|tombstone| Tombstone::clone(tombstone))
            .collect();
        let tables = [(TABLE, TableOptions::default())].into();
        Self {
            fs,
            next: Cell::new(100),
            copied: Cell::new(0),
            state,
            open,
            tables,
        }
    }

    fn pick(&self, options: &PickOptions, turn: u64) -> Option<CompactionPlan> {
        let input = PickInput {
            segments: &self.state.segments,
            tombstones: &self.state.tombstones,
            tables: &self.tables,
            unreadable: &BTreeSet::new(),
            flushed_sequence: self.state.flushed_sequence,
        };
        pick(&input, options, turn)
    }

    fn tombstones(&self) -> Vec<Arc<Tombstone>> {
        self.state
            .tombstones
            .iter()
            .cloned()
            .map(Arc::new)
            .collect()
    }

    fn run(&self, plan: &CompactionPlan, stop: bool) -> Result<Option<ManifestEdit>> {
        let inputs: Vec<_> = plan.inputs.iter().map(|id| self.open[id].clone()).collect();
        let new_segment = || {
            let id = self.next.replace(self.next.get() + 1);
            (SegmentId(id), format!("{id:010}.seg"))
        };
        let memory = Arc::new(MemoryAccountant::new(1 << 30));
        let mut schema = crate::catalog::blank("d", "t", TABLE);
        schema.options.page_bytes = 64;
        let metas = inputs.iter().map(|input| &input.meta);
        let progress = CompactionHistory::default().begin(0, Policy::Balance, plan, metas, (0, 0));
        let context = RunContext {
            blobs: blobs(&self.fs),
            options: options(),
            memory: memory.clone(),
            schemas: &[(TABLE, Arc::new(schema))].into(),
            new_segment: &new_segment,
            stop: &|| stop,
            progress: &progress,
        };
        let edit = run(plan, &inputs, &self.tombstones(), &self.tables, &context);
        assert_eq!(memory.used(), 0);
        if let Ok(Some(edit)) = &edit
            && plan.kind != CompactionKind::Move
        {
            let written: u64 = edit.added.iter().map(|meta| meta.bytes).sum();
            assert_eq!(progress.bytes_written.load(Ordering::Relaxed), written);
            let rows: u64 = edit.added.iter().map(|meta| meta.rows).sum();
            assert_eq!(progress.rows.load(Ordering::Relaxed), rows);
            let copied = progress.bytes_copied.load(Ordering::Relaxed);
            let read = progress.bytes_read.load(Ordering::Relaxed);
            assert!(read >= copied && (read > 0 || rows == 0), "{read} {copied}");
            self.copied.set(self.copied.get() + copied);
        }
        edit
    }

    /// Applies an edit as a commit does.
    fn install(&mut self, mut edit: ManifestEdit) {
        for id in &edit.removed {
            self.open.remove(id);
        }
        for meta in &edit.added {
            let name = format!("{:010}.seg", meta.id.0);
            let segment = OpenSegment::open(&segment_files(&self.fs), &name, meta.clone());
            assert!(segment.segment().is_ok());
            let mut damage = Vec::new();
            let blobs = blobs(&self.fs);
            marigram_segment::Segment::verify(&*blobs, &name, &mut |place| damage.push(place));
            assert!(damage.is_empty(), "{damage:?}");
            self.open.insert(meta.id, Arc::new(segment));
        }
        let mut after = self.state.clone();
        after.apply(&edit);
        edit = ManifestEdit {
            tombstones_removed: spent_tombstones(&after),
            ..ManifestEdit::default()
        };
        after.apply(&edit);
        self.state = after;
    }

    fn rows(&self) -> TestRows {
        let tombstones = self.tombstones();
        let sources = self
            .open
            .values()
            .map(|open| MergeSource::segment(open, TABLE, &tombstones));
        let sources = sources.collect::<Result<_>>().unwrap();
        merged(sources, MergeOptions::all(COLUMNS.to_vec(), 16))
            .unwrap()
            .into_iter()
            .collect()
    }
}

fn options() -> SegmentOptions {
    SegmentOptions { row_group_rows: 32 }
}

/// Settings with which everything is due at once.
fn eager(policy: Policy) -> PickOptions {
    PickOptions {
        inner_growth: 2,
        small_bytes: 1 << 20,
        segment_bytes_max: 3000,
        cross_ratio: u64::MAX,
        tombstones_max: 0,
        ..PickOptions::for_policy(policy)
    }
}

fn test_sources() -> impl Strategy<Value = Vec<TestSource>> {
    let fields = (
        proptest::option::of(0..100i64),
        proptest::option::of("[a-c]{0,3}"),
    );
    let rows = proptest::collection::btree_map((0..5u32, 0..40i64), fields, 1..120);
    sources_with(rows, 1..6)
}

fn tombstones() -> impl Strategy<Value = Vec<Arc<Tombstone>>> {
    let one = (
        0..7u64,
        proptest::collection::vec(0..5u32, 0..3),
        0..40i64,
        0..15i64,
    );
    proptest::collection::btree_map(0..70u64, one, 0..3).prop_map(|all| {
        all.into_iter()
            .map(|(at, (_, mut series, min, width))| {
                series.sort_unstable();
                tombstone(at + at / 9 + 1, &series, min, min + width)
            })
            .filter(|tombstone| tombstone.sequence % 10 != 0)
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn compactions_keep_every_row_and_come_to_an_end(
        given in test_sources(),
        tombstones in tombstones(),
        policy in prop_oneof![
            Just(Policy::Balance),
            Just(Policy::InnerCross),
            Just(Policy::CrossInner)
        ],
    ) {
        let expected = naive(&given, &tombstones);
        let mut files = Files::new(&given, &tombstones);
        prop_assert_eq!(&files.rows(), &expected, "before");
        let mut turns = 0;
        // Each turn reduces the number of segments, or spends tombstones.
        while let Some(plan) = files.pick(&eager(policy), turns) {
            let edit = files.run(&plan, false).unwrap().unwrap();
            files.install(edit);
            turns += 1;
            prop_assert_eq!(&files.rows(), &expected, "after {:?}", plan);
            prop_assert!(turns < 60, "compaction does not end");
        }
        let late = files.state.segments.values().filter(|meta| meta.space == SegmentSpace::Unsequence);
        prop_assert_eq!(late.count(), 0, "late rows are in their place");
        let spent = spent_tombstones(&files.state);
        prop_assert_eq!(files.state.tombstones.len(), spent.len(), "deletes are spent");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_table_is_compacted_in_one_go(given in test_sources(), tombstones in tombstones()) {
        let expected = naive(&given, &tombstones);
        let mut files = Files::new(&given, &tombstones);
        let partition = files.state.segments.values().next().unwrap().partition;
        let picked = |files: &Files| {
            let input = PickInput {
                segments: &files.state.segments,
                tombstones: &files.state.tombstones,
                tables: &files.tables,
                unreadable: &BTreeSet::new(),
                flushed_sequence: files.state.flushed_sequence,
            };
            pick_table(&input, &PickOptions::for_policy(Policy::Balance), TABLE, partition, false)
        };
        if let Some(plan) = picked(&files) {
            let edit = files.run(&plan, false).unwrap().unwrap();
            files.install(edit);
        }
        prop_assert_eq!(&files.rows(), &expected);
        prop_assert_eq!(picked(&files), None, "nothing is left to do");
        prop_assert!(files.state.segments.len() <= 1);
        prop_assert!(files.state.segments.values().all(|meta| meta.space == SegmentSpace::Sequence));
        let spent = spent_tombstones(&files.state);
        prop_assert_eq!(files.state.tombstones.len(), spent.len(), "deletes are spent");
    }
}

fn numbers(times: impl Iterator<Item = i64>) -> TestRows {
    let fields = |time: i64| -> TestFields { (Some(time), None) };
    times.map(|time| ((1, time), fields(time))).collect()
}

fn plan(kind: CompactionKind, inputs: &[u64]) -> CompactionPlan {
    CompactionPlan {
        kind,
        inputs: inputs.iter().copied().map(SegmentId).collect(),
        space: SegmentSpace::Sequence,
        spends_up_to: u64::MAX,
        segment_bytes_max: 1 << 30,
        cold: false,
    }
}

#[test]
fn the_result_is_described_by_its_inputs() {
    let given = [
        TestSource {
            late: false,
            sequence_max: 10,
            rows: numbers(0..50),
        },
        TestSource {
            late: true,
            sequence_max: 30,
            rows: numbers(20..40),
        },
    ];
    let mut files = Files::new(&given, &[tombstone(20, &[], 0, 9)]);
    let edit = files
        .run(&plan(CompactionKind::Cross, &[0, 1]), false)
        .unwrap()
        .unwrap();
    assert_eq!(edit.removed, [SegmentId(0), SegmentId(1)]);
    let [meta] = &edit.added[..] else {
        panic!("{:?}", edit.added)
    };
    assert_eq!(
        (meta.space, meta.level, meta.sequence_max),
        (SegmentSpace::Sequence, 1, 30)
    );
    assert_eq!((meta.rows, meta.range.min, meta.range.max), (40, 10, 49));
    assert_eq!(meta.tables, [TABLE]);
    files.install(edit);
    assert_eq!(
        files.state.tombstones,
        [],
        "applied to the older input, and spent"
    );
}

#[test]
fn segments_of_dropped_tables_go_without_a_successor() {
    let given = [TestSource {
        late: false,
        sequence_max: 10,
        rows: numbers(0..50),
    }];
    let mut files = Files::new(&given, &[]);
    files.tables.clear();
    let plan = files
        .pick(&PickOptions::for_policy(Policy::Balance), 0)
        .unwrap();
    let edit = files.run(&plan, false).unwrap().unwrap();
    assert_eq!((edit.removed.len(), edit.added.len()), (1, 0));
}

#[test]
fn what_was_stopped_or_failed_leaves_no_files() {
    let given = [
        TestSource {
            late: false,
            sequence_max: 10,
            rows: numbers(0..50),
        },
        TestSource {
            late: false,
            sequence_max: 20,
            rows: numbers(50..90),
        },
    ];
    let files = Files::new(&given, &[]);
    let before = files.fs.list(Path::new("/")).unwrap();
    let stopped = files
        .run(
            &plan(CompactionKind::Inner(SegmentSpace::Sequence), &[0, 1]),
            true,
        )
        .unwrap();
    assert!(stopped.is_none());
    assert_eq!(files.fs.list(Path::new("/")).unwrap(), before);
}

#[test]
fn pages_that_nothing_overlaps_are_copied_and_others_are_not() {
    let given = |late, sequence_max, rows| TestSource {
        late,
        sequence_max,
        rows,
    };
    let even = |times: std::ops::Range<i64>| numbers(times.filter(|time| time % 2 == 0));
    // Pages of eight rows: 0..16, 16..32, …; late rows lengthen one of them.
    let sources = [
        given(false, 10, even(0..80)),
        given(false, 20, even(80..128)),
        given(true, 30, numbers([33, 37].into_iter())),
    ];
    // The copied pages as (segment, page): in a cold result, everything after the page that grew is
    // rewritten, so that pages are full.
    let hot = [(0, 0), (0, 1), (0, 3), (0, 4), (1, 0), (1, 1)];
    for (cold, pages) in [(false, &hot[..]), (true, &hot[..2])] {
        let mut files = Files::new(&sources, &[tombstone(40, &[], 120, 122)]);
        let plan = CompactionPlan {
            cold,
            ..plan(CompactionKind::Cross, &[0, 1, 2])
        };
        let page_bytes = |(id, page): &(u64, usize)| -> u64 {
            let segment = files.open[&SegmentId(*id)].segment().unwrap().clone();
            let ids = [marigram_model::ColumnId::TIME, COLUMNS[0].id, COLUMNS[1].id];
            let bytes = ids.map(|column| {
                // A row group has four pages.
                let metas = segment.pages(page / 4, column).unwrap().unwrap();
                u64::from(metas[page % 4].bytes)
            });
            bytes.iter().sum()
        };
        let copied: u64 = pages.iter().map(page_bytes).sum();
        let expected = files.rows();
        let edit = files.run(&plan, false).unwrap().unwrap();
        files.install(edit);
        assert_eq!(files.rows(), expected);
        assert_eq!(files.copied.get(), copied, "cold: {cold}");
    }
}

#[test]
fn a_moved_segment_keeps_its_file_and_its_age() {
    let given = [TestSource {
        late: true,
        sequence_max: 10,
        rows: numbers(0..50),
    }];
    let mut files = Files::new(&given, &[tombstone(20, &[], 0, 9)]);
    let before = files.fs.list(Path::new("/")).unwrap();
    let (options, expected) = (PickOptions::for_policy(Policy::InnerCross), files.rows());
    let plan = files.pick(&options, 0).unwrap();
    assert_eq!(plan.kind, CompactionKind::Move);
    let edit = files.run(&plan, false).unwrap().unwrap();
    let [meta] = &edit.added[..] else {
        panic!("{:?}", edit.added)
    };
    assert_eq!(
        (meta.space, meta.sequence_max),
        (SegmentSpace::Sequence, 10)
    );
    files.install(edit);
    assert_eq!(files.fs.list(Path::new("/")).unwrap(), before);
    assert_eq!(files.rows(), expected);
    assert_eq!(files.state.tombstones.len(), 1, "the delete still applies");
    assert_eq!(files.pick(&options, 1), None);
}
