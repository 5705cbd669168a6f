//! Merges that pass on whole pages return the same rows as those that do not.

use super::super::testing::{
    COLUMNS, TABLE, TestRows, TestSource, listed, naive, open_segment, tombstone,
    without_sequence_duplicates,
};
use super::super::{MergeOptions, MergeSource};
use super::*;
use marigram_env::{LogStore, SimFs};
use marigram_manifest::Tombstone;
use marigram_segment::SegmentOptions;
use proptest::prelude::*;

fn rows() -> impl Strategy<Value = TestRows> {
    let run = (0..4u32, 0..60i64, 1..30i64);
    proptest::collection::vec(run, 1..5).prop_map(|runs| {
        let times = runs
            .into_iter()
            .flat_map(|(series, first, count)| (first..first + count).map(move |t| (series, t)));
        times
            .map(|key| {
                (
                    key,
                    ((key.1 % 5 > 0).then_some(key.1), Some("a".to_owned())),
                )
            })
            .collect()
    })
}

fn test_sources() -> impl Strategy<Value = Vec<TestSource>> {
    proptest::collection::vec((proptest::bool::ANY, rows()), 1..5).prop_map(|sources| {
        let numbered = sources.into_iter().enumerate();
        let given = numbered.map(|(at, (late, rows))| TestSource {
            late,
            sequence_max: 10 * (at as u64 + 1),
            rows,
        });
        without_sequence_duplicates(given.collect())
    })
}

/// The rows of a merge that may copy pages, and how many of them came in pages.
fn pieces(given: &[TestSource], tombstones: &[Arc<Tombstone>]) -> (TestRows, usize) {
    let fs: Arc<dyn LogStore> = Arc::new(SimFs::new(3));
    let options = SegmentOptions { row_group_rows: 24 };
    let sources = given.iter().enumerate().map(|(id, given)| {
        let open = open_segment(&fs, id as u64, given, &options);
        MergeSource::segment(&open, TABLE, tombstones).unwrap()
    });
    let mut merge = MergeStream::new(sources.collect(), MergeOptions::all(COLUMNS.to_vec(), 10));
    let rule = CopyRule {
        rows: 4..=8,
        bytes_min: u32::MAX,
        codecs: Vec::new(),
    };
    let (mut all, mut copied) = (Vec::new(), 0);
    while let Some(piece) = merge.next_piece(&rule).unwrap() {
        let rows = match piece {
            MergedPiece::Rows(rows) => rows,
            MergedPiece::Page(page) => {
                assert!(rule.rows.contains(&page.rows()));
                copied += page.rows() as usize;
                page.read().unwrap().0
            }
        };
        all.extend(listed(&rows));
    }
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{all:?}");
    (all.into_iter().collect(), copied)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn pages_and_rows_are_what_a_merge_gives(
        given in test_sources(),
        deletes in proptest::collection::vec((0..50u64, 0..4u32, 0..80i64, 0..9i64), 0..3),
    ) {
        let deletes = deletes.into_iter().filter(|delete| delete.0 % 10 != 0);
        let tombstones: Vec<_> = deletes
            .map(|(sequence, series, min, width)| {
                tombstone(sequence, &[series], min, min + width)
            })
            .collect();
        let (rows, _) = pieces(&given, &tombstones);
        prop_assert_eq!(rows, naive(&given, &tombstones));
    }
}

#[test]
fn neighbours_in_time_and_series_are_handed_on_whole() {
    let rows = |series: u32, times: std::ops::Range<i64>| -> TestRows {
        times.map(|t| ((series, t), (Some(t), None))).collect()
    };
    let given = |late, sequence_max, rows| TestSource {
        late,
        sequence_max,
        rows,
    };
    let mut sources = vec![
        given(false, 10, rows(1, 0..16)),
        given(false, 20, rows(1, 16..32)),
        given(false, 30, rows(0, 0..8)),
    ];
    assert_eq!(pieces(&sources, &[]).1, 40, "one after the other");
    assert_eq!(
        pieces(&sources, &[tombstone(40, &[2], 0, 99)]).1,
        40,
        "of another series"
    );
    assert_eq!(
        pieces(&sources, &[tombstone(40, &[1], 9, 9)]).1,
        32,
        "one is cut"
    );
    sources.push(given(true, 40, rows(1, 20..21)));
    let (all, copied) = pieces(&sources, &[]);
    assert_eq!(copied, 32, "one is overlapped");
    assert_eq!(all, naive(&sources, &[]));
}
