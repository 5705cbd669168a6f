//! Tests of manifest and catalog over the simulated file system.

mod catalog;
mod damage;
mod golden;
mod power;
mod proof;

use crate::{
    Manifest, ManifestEdit, ManifestState, Partition, SegmentId, SegmentMeta, SegmentSpace,
    Tombstone,
};
use marigram_env::{LogStore, SimFs};
use marigram_model::{DAY_NS, DeletedRows, SeriesId, TableId, TimeRange};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn disk(seed: u64) -> (SimFs, Arc<dyn LogStore>, PathBuf) {
    let sim = SimFs::new(seed);
    let dir = Path::new("/shard").to_owned();
    sim.create_dir_all(&dir).unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    (sim.clone(), Arc::new(sim), dir)
}

pub(crate) fn segment(id: u64) -> SegmentMeta {
    SegmentMeta {
        id: SegmentId(id),
        space: if id.is_multiple_of(2) {
            SegmentSpace::Sequence
        } else {
            SegmentSpace::Unsequence
        },
        partition: Partition {
            start_ns: -DAY_NS,
            width_ns: DAY_NS,
        },
        range: TimeRange {
            min: -7 - id as i64,
            max: -7,
        },
        rows: 10 * id,
        bytes: 1000 * id,
        sequence_max: 3 * id,
        tables: vec![TableId(1), TableId(7)],
        series_min: SeriesId(2),
        series_max: SeriesId(u32::MAX),
        level: 4,
        pin: None,
    }
}

pub(crate) fn tombstone(sequence: u64, series: Option<&[u32]>) -> Tombstone {
    Tombstone {
        sequence,
        table: TableId(7),
        rows: series.map_or(DeletedRows::Table, |ids| {
            DeletedRows::Series(ids.iter().copied().map(SeriesId).collect())
        }),
        range: TimeRange {
            min: i64::MIN,
            max: 5,
        },
    }
}

/// The nth edit of a history in which segments come and go.
pub(crate) fn edit(nth: u64) -> ManifestEdit {
    let mut edit = ManifestEdit {
        added: vec![segment(nth)],
        ..ManifestEdit::default()
    };
    if nth > 3 {
        edit.removed = vec![SegmentId(nth - 3)];
    }
    if nth % 4 == 1 {
        edit.tombstones_added = vec![tombstone(nth, Some(&[0, 5, 9])), tombstone(nth + 1, None)];
    }
    if nth % 4 == 3 {
        edit.tombstones_removed = vec![nth - 2, 1_000_000];
    }
    edit.wal_floor = Some(nth / 2);
    edit.flushed_sequence = nth.is_multiple_of(2).then_some(nth * 10);
    edit.series_log_bytes = Some(nth * 100);
    edit
}

/// [`edit`] with the checksums of the files that it names.
pub(crate) fn pinned_edit(nth: u64) -> ManifestEdit {
    let mut edit = edit(nth);
    edit.added
        .iter_mut()
        .for_each(|meta| meta.pin = Some(7 * nth as u32));
    edit.series_log_checksum = Some(nth as u32);
    edit
}

/// [`pinned_edit`], where one tombstone lists rows.
pub(crate) fn listed_edit(nth: u64) -> ManifestEdit {
    let mut edit = pinned_edit(nth);
    if let Some(tombstone) = edit.tombstones_added.first_mut() {
        let rows = [(5, -7), (9, 1), (5, -6), (9, 2 + nth as i64)];
        let rows = rows.map(|(series, time)| (SeriesId(series), time));
        (tombstone.rows, tombstone.range) = DeletedRows::of_rows(rows.into()).unwrap();
    }
    edit
}

#[test]
fn edits_are_applied_and_found_again() {
    let (_, fs, dir) = disk(1);
    let (mut manifest, state) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    assert_eq!(state, ManifestState::default());
    assert_eq!(state.next_segment(), SegmentId(1));
    let mut expected = ManifestState::default();
    for nth in 1..=9 {
        expected.apply(&edit(nth));
        manifest.commit(&edit(nth)).unwrap();
        assert_eq!(manifest.state(), &expected);
    }
    let ids: Vec<_> = expected.segments.keys().map(|id| id.0).collect();
    assert_eq!(ids, [7, 8, 9]);
    let deletes: Vec<_> = expected.tombstones.iter().map(|t| t.sequence).collect();
    assert_eq!(deletes, [2, 6, 9, 10]);
    assert_eq!((expected.wal_floor, expected.flushed_sequence), (4, 80));
    drop(manifest);
    let (manifest, state) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    assert_eq!(state, expected);
    assert_eq!(manifest.torn_tail(), None);
    assert_eq!(Manifest::read(&*fs, &dir).unwrap(), expected);
}

#[test]
fn the_ids_of_removed_segments_are_not_given_again() {
    let (_, fs, dir) = disk(1);
    let options = crate::LogOptions {
        rewrite_bytes_min: 0,
    };
    let (mut manifest, _) = Manifest::open_with(Arc::clone(&fs), &dir, options).unwrap();
    manifest
        .commit(&ManifestEdit {
            added: vec![segment(41)],
            ..ManifestEdit::default()
        })
        .unwrap();
    manifest
        .commit(&ManifestEdit {
            removed: vec![SegmentId(41)],
            ..ManifestEdit::default()
        })
        .unwrap();
    for _ in 0..20 {
        manifest.commit(&ManifestEdit::default()).unwrap();
    }
    let (_, state) = Manifest::open(fs, &dir).unwrap();
    assert_eq!(state.next_segment(), SegmentId(42));
}

#[test]
fn marks_never_fall() {
    let mut state = ManifestState::default();
    state.apply(&ManifestEdit {
        wal_floor: Some(5),
        flushed_sequence: Some(9),
        ..ManifestEdit::default()
    });
    state.apply(&ManifestEdit {
        wal_floor: Some(4),
        flushed_sequence: Some(8),
        ..ManifestEdit::default()
    });
    assert_eq!((state.wal_floor, state.flushed_sequence), (5, 9));
}

#[test]
fn an_edit_that_contradicts_the_state_is_refused_and_harms_nothing() {
    let (_, fs, dir) = disk(1);
    let (mut manifest, _) = Manifest::open(Arc::clone(&fs), &dir).unwrap();
    manifest.commit(&edit(1)).unwrap();
    let bad = [
        ManifestEdit {
            added: vec![segment(1)],
            ..ManifestEdit::default()
        },
        ManifestEdit {
            added: vec![segment(5), segment(5)],
            ..ManifestEdit::default()
        },
        ManifestEdit {
            added: vec![segment(0)],
            ..ManifestEdit::default()
        },
        ManifestEdit {
            removed: vec![SegmentId(2)],
            ..ManifestEdit::default()
        },
        ManifestEdit {
            removed: vec![SegmentId(1), SegmentId(1)],
            ..ManifestEdit::default()
        },
    ];
    for edit in bad {
        let error = manifest.commit(&edit).unwrap_err();
        assert!(
            matches!(error, crate::ManifestError::Refused { .. }),
            "{error}"
        );
    }
    // Into another space, with the same file.
    let moved = SegmentMeta {
        space: SegmentSpace::Sequence,
        ..segment(1)
    };
    let edit = ManifestEdit {
        removed: vec![SegmentId(1)],
        added: vec![moved],
        ..ManifestEdit::default()
    };
    manifest.commit(&edit).unwrap();
    assert_eq!(&Manifest::open(fs, &dir).unwrap().1, manifest.state());
}

#[test]
fn a_long_log_is_rewritten() {
    let (_, fs, dir) = disk(1);
    let options = crate::LogOptions {
        rewrite_bytes_min: 4096,
    };
    let (mut manifest, _) = Manifest::open_with(Arc::clone(&fs), &dir, options).unwrap();
    for nth in 1..=500 {
        // No tombstone is left behind, so that the state stays small.
        manifest
            .commit(&ManifestEdit {
                tombstones_added: Vec::new(),
                ..edit(nth)
            })
            .unwrap();
        let len = fs.open(&dir.join("MANIFEST")).unwrap().len().unwrap();
        assert!(len < 10_000, "{len} bytes after {nth} edits");
    }
    assert_eq!(
        &Manifest::open(Arc::clone(&fs), &dir).unwrap().1,
        manifest.state()
    );
    assert_eq!(fs.list(&dir).unwrap(), ["MANIFEST"]);
}
