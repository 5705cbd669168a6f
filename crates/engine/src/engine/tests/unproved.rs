//! A directory with a missing file does not open, and files that nothing names wait in the trash.

use super::support::{DIR, World, options, read, store};
use crate::backup::BackupOptions;
use crate::{Engine, EngineError};
use marigram_env::LogStore;
use marigram_model::FieldValueRef as V;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// A closed directory with a table of one row.
fn filled() -> World {
    let world = World::new(1);
    let engine = world.open_db();
    store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
    engine.flush().unwrap();
    engine.close().unwrap();
    world
}

/// Opens a directory that must not open; returns the error.
fn refused(world: &World) -> String {
    let before = world.fs.snapshot(Path::new(DIR)).unwrap();
    let error = Engine::open(world.env(), Path::new(DIR), options()).unwrap_err();
    assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
    assert!(
        world.fs.snapshot(Path::new(DIR)).unwrap() == before,
        "nothing changes"
    );
    let damage = world.damage();
    assert!(!damage.is_empty(), "verify tells it too");
    error.to_string()
}

#[test]
fn a_directory_does_not_open_without_its_catalog_and_says_how_to_restore_it() {
    let world = filled();
    world.fs.remove(&path("CATALOG")).unwrap();
    let error = refused(&world);
    for part in [
        "/data/CATALOG",
        "missing",
        "cp /data/CATALOG.copy /data/CATALOG",
    ] {
        assert!(error.contains(part), "{error}");
    }
    world
        .fs
        .rename(&path("CATALOG.copy"), &path("CATALOG"))
        .unwrap();
    assert_eq!(read(&world.open(), "t").len(), 1);
}

#[test]
fn a_catalog_cut_at_the_end_of_a_record_is_refused_with_and_without_its_copy() {
    for with_copy in [true, false] {
        let world = filled();
        let whole = world.fs.snapshot(Path::new(DIR)).unwrap()[Path::new("CATALOG")].clone();
        let mut cut = 0;
        while let marigram_codec::frame::FrameRead::Frame { len, .. } =
            marigram_codec::frame::read(&whole[cut..])
        {
            cut += len;
            let is_last_edit_there = cut + 40 > whole.len();
            if is_last_edit_there {
                break;
            }
            world
                .fs
                .create(&path("CATALOG"))
                .unwrap()
                .append(&whole[..cut])
                .unwrap();
            if !with_copy && world.fs.exists(&path("CATALOG.copy")).unwrap() {
                world.fs.remove(&path("CATALOG.copy")).unwrap();
            }
            let error = refused(&world);
            assert!(error.contains("/data/CATALOG at byte"), "{error}");
        }
        assert!(cut > 0);
    }
}

#[test]
fn a_directory_does_not_open_without_its_marigram_and_says_what_it_was() {
    let world = filled();
    let name = path("MARIGRAM");
    let whole = world.fs.snapshot(Path::new(DIR)).unwrap()[Path::new("MARIGRAM")].clone();
    world.fs.remove(&name).unwrap();
    let error = refused(&world);
    let text = String::from_utf8(whole).unwrap().replace('\n', "\\n");
    let command = format!("printf '{text}' > /data/MARIGRAM");
    assert!(error.contains(&command), "{error}");
}

/// A file of a segment that no manifest names.
fn leave_over(world: &World, bytes: &[u8]) -> PathBuf {
    let left_over = path("shards/0001/segments/0000000009.seg");
    let file = world.fs.create(&left_over).unwrap();
    file.append(bytes).unwrap();
    left_over
}

fn trash(world: &World) -> Vec<String> {
    world.fs.list(&path("trash")).unwrap_or_default()
}

#[test]
fn what_no_manifest_names_waits_in_the_trash_for_a_day() {
    let world = filled();
    let left_over = leave_over(&world, b"half a segment");
    drop(world.open());
    assert!(!world.fs.exists(&left_over).unwrap());
    let names = trash(&world);
    assert_eq!(names.len(), 1);
    assert!(names[0].ends_with("-0001-0000000009.seg"), "{names:?}");
    world.clock.advance(23 * 3_600_000_000_000);
    let engine = world.open();
    engine.maintain().unwrap();
    assert_eq!(trash(&world), names);
    world.clock.advance(3_600_000_000_000);
    engine.maintain().unwrap();
    assert_eq!(trash(&world), [""; 0]);
    assert_eq!(read(&engine, "t").len(), 1);
}

#[test]
fn without_a_witness_nothing_is_moved_and_no_name_is_taken_until_the_next_start() {
    for witness in ["WITNESS", "shards/0001/WITNESS"] {
        check_without(witness);
    }
}

fn check_without(witness: &str) {
    let world = filled();
    let left_over = leave_over(&world, b"somebody's rows");
    world.fs.remove(&path(witness)).unwrap();
    let engine = world.open();
    for at in 0..4 {
        store(
            &engine,
            "t",
            &[
                ("a", at, &[("x", V::F64(1.0))]),
                ("b", at, &[("x", V::F64(1.0))]),
            ],
        );
        engine.flush().unwrap();
    }
    engine.compact().unwrap();
    engine.close().unwrap();
    let files = world.fs.snapshot(Path::new(DIR)).unwrap();
    assert_eq!(
        files[left_over.strip_prefix(DIR).unwrap()],
        b"somebody's rows"
    );
    assert_eq!(trash(&world), [""; 0]);
    drop(world.open());
    assert_eq!(trash(&world).len(), 1);
}

#[test]
fn a_full_disk_empties_the_trash_before_a_flush_fails() {
    let world = filled();
    let left_over = path("shards/0001/segments/0000000009.seg");
    world
        .fs
        .create(&left_over)
        .unwrap()
        .append(&vec![7; 50_000])
        .unwrap();
    let engine = world.open();
    store(&engine, "t", &[("a", 2, &[("x", V::F64(1.0))])]);
    assert_eq!(trash(&world).len(), 1);
    world.fs.set_space(Some(60));
    assert!(
        engine.flush().is_err(),
        "removing frees nothing on the simulated disk"
    );
    assert_eq!(trash(&world), [""; 0]);
    world.fs.set_space(None);
    engine.flush().unwrap();
    assert_eq!(read(&engine, "t").len(), 2);
}

#[test]
fn a_segment_in_the_place_of_another_one_is_an_error_that_names_it() {
    let world = World::new(1);
    let engine = world.open_db();
    for (at, x) in [(1, 1.0), (2, 2.0)] {
        store(&engine, "t", &[("a", at, &[("x", V::F64(x))])]);
        engine.flush().unwrap();
    }
    let mut segments: Vec<PathBuf> = engine.segments().into_iter().map(|s| s.path).collect();
    segments.sort();
    engine.close().unwrap();
    let files = world.fs.snapshot(Path::new(DIR)).unwrap();
    let bytes = &files[segments[0].strip_prefix(DIR).unwrap()];
    world
        .fs
        .create(&segments[1])
        .unwrap()
        .append(bytes)
        .unwrap();
    let engine = world.open();
    let error = super::support::try_read(&engine, "t", marigram_model::TimeRange::ALL).unwrap_err();
    let EngineError::Corrupt { path, reason, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(path, segments[1]);
    assert!(reason.contains("another segment"), "{reason}");
    // It is not backed up, either.
    let taken = engine.backup(Path::new("/backups"), BackupOptions::default());
    let Err(EngineError::Corrupt { path, .. }) = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(path, segments[1]);
    let damage = world.damage();
    let name = segments[1].display().to_string();
    assert!(
        damage.iter().any(|place| place.contains(&name)),
        "{damage:?}"
    );
}
