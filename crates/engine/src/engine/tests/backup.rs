//! Backups: their content, their cost, and their behaviour on failures.

use super::support::{Contents, DIR, GROW, World, batch, options, read, store};
use crate::backup::{self, BackupOptions, RestoreSelection};
use crate::{Engine, EngineError};
use marigram_env::{Env, FaultRepeat, LogStore as _, OpKind, PlannedFault, SimClock};
use marigram_model::{DAY_NS, FieldValueRef as V, TimeRange};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

const BACKUPS: &str = "/backups";
const RESTORED: &str = "/restored";

fn take(engine: &Engine) -> backup::BackupReport {
    let report = engine.backup(Path::new(BACKUPS), BackupOptions::default());
    let report = report.unwrap();
    assert_eq!(report.warnings, [""; 0]);
    report
}

fn keep(count: usize) -> BackupOptions {
    BackupOptions { keep: Some(count) }
}

/// The table `t` of a backup after restoring and opening it.
fn restored(world: &World, number: Option<u64>) -> Contents {
    let into = Path::new(RESTORED);
    if world.fs.exists(into).unwrap() {
        world.fs.remove_dir_all(into).unwrap();
    }
    world.clock.advance(1);
    backup::restore(&world.env(), Path::new(BACKUPS), number, into).unwrap();
    let engine = Engine::open(world.env(), into, options()).unwrap();
    let contents = read(&engine, "t");
    engine.close().unwrap();
    contents
}

fn numbers(world: &World) -> Vec<u64> {
    let listed = backup::list(&world.env(), Path::new(BACKUPS)).unwrap();
    listed.into_iter().map(|(number, _)| number).collect()
}

fn damage(world: &World) -> Vec<String> {
    let mut damage = Vec::new();
    let dir = Path::new(BACKUPS);
    Engine::verify(&world.env(), dir, &mut |place| damage.push(place)).unwrap();
    damage
}

/// The rows of twenty devices for one day.
fn fill(engine: &Engine, day: i64, value: f64) {
    let devices: Vec<String> = (0..20).map(|device| format!("d{device}")).collect();
    for hour in 0..24 {
        let time = day * DAY_NS + hour * 3_600_000_000_000;
        let fields = [("x", V::F64(value + hour as f64))];
        let rows: Vec<_> = devices
            .iter()
            .map(|device| (device.as_str(), time, &fields[..]))
            .collect();
        store(engine, "t", &rows);
    }
}

#[test]
fn each_backup_shows_its_moment_and_copies_only_what_is_new() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    let first = read(&engine, "t");
    let taken = take(&engine);
    assert_eq!((taken.info.number, taken.info.shards), (1, 2));
    assert_eq!(taken.info.rows, 480);
    // Both shards begin with the same empty piece: a few bytes may exist already.
    assert!(taken.info.bytes_new > taken.info.bytes / 2);

    fill(&engine, 2, 7.0);
    store(&engine, "t", &[("d1", DAY_NS, &[("x", V::F64(-1.0))])]);
    let second = read(&engine, "t");
    let taken = take(&engine);
    assert_eq!(taken.info.number, 2);
    assert!(taken.info.bytes_new < taken.info.bytes * 3 / 4, "{taken:?}");
    engine.compact().unwrap();
    engine.drop_table("db", "t", false).unwrap();
    engine.maintain().unwrap();

    assert_eq!(restored(&world, Some(1)), first);
    assert_eq!(restored(&world, Some(2)), second);
    assert_eq!(restored(&world, None), second);
    assert_eq!(damage(&world), [""; 0]);
    let idle = take(&engine);
    let again = take(&engine);
    assert_eq!(again.info.rows, idle.info.rows);
    // Manifests and logs are small; no segment is copied twice.
    assert!(again.info.bytes_new < 2_000, "{again:?}");
}

#[test]
fn rows_that_cannot_be_flushed_are_backed_up_with_the_log() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    let before = read(&engine, "t");
    // The first new file is the marker of the backup folder; a later one is a segment.
    take(&engine);
    store(&engine, "t", &[("d1", DAY_NS + 5, &[("x", V::F64(3.0))])]);
    let now = read(&engine, "t");
    assert_ne!(before, now);
    world.fs.fail(PlannedFault {
        kind: Some(OpKind::Create),
        after: 1,
        repeat: FaultRepeat::Once,
    });
    let report = engine.backup(Path::new(BACKUPS), BackupOptions::default());
    let report = report.unwrap();
    assert!(report.warnings[0].contains("flushed"), "{report:?}");
    assert_eq!(restored(&world, None), now);
}

#[test]
fn old_backups_are_pruned_with_what_they_alone_name() {
    let world = World::new(1);
    let engine = world.open_db();
    for day in 0..5 {
        fill(&engine, day, 0.25);
        engine.compact().unwrap();
        take(&engine);
    }
    let objects = || world.fs.list(&Path::new(BACKUPS).join("objects")).unwrap();
    let before = objects().len();
    let report = engine.backup(Path::new(BACKUPS), keep(2)).unwrap();
    assert_eq!(report.pruned, [1, 2, 3, 4]);
    assert_eq!(numbers(&world), [5, 6]);
    assert!(objects().len() < before);
    assert_eq!(damage(&world), [""; 0]);
    let now = read(&engine, "t");
    assert_eq!(restored(&world, Some(5)), now);
    let nothing = engine.backup(Path::new(BACKUPS), keep(0));
    assert!(matches!(nothing, Err(EngineError::Invalid(_))));
}

#[test]
fn backups_of_another_database_in_the_folder_are_not_pruned() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    take(&engine);
    take(&engine);
    let mine = read(&engine, "t");
    world.clock.advance(1);
    let other = Engine::open(world.env(), Path::new("/other"), options()).unwrap();
    for _ in 0..3 {
        let report = other.backup(Path::new(BACKUPS), keep(1)).unwrap();
        assert_eq!(report.warnings, [""; 0]);
    }
    assert_eq!(numbers(&world), [1, 2, 5]);
    assert_eq!(restored(&world, Some(2)), mine);
    let report = engine.backup(Path::new(BACKUPS), keep(2)).unwrap();
    assert_eq!(report.pruned, [1]);
    assert_eq!(numbers(&world), [2, 5, 6]);
    assert_eq!(damage(&world), [""; 0]);
    other.close().unwrap();
}

#[test]
fn damage_in_a_backup_is_found_and_never_restored() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    take(&engine);
    engine.close().unwrap();
    let whole = world.fs.snapshot(Path::new(BACKUPS)).unwrap();
    let kinds = ["objects", "backups"];
    let files = whole
        .iter()
        .filter(|(path, _)| kinds.iter().any(|kind| path.starts_with(kind)));
    for (path, bytes) in files {
        world
            .fs
            .flip_bit(&Path::new(BACKUPS).join(path), bytes.len() as u64 * 4)
            .unwrap();
        assert_eq!(damage(&world).len(), 1, "{}", path.display());
        let into = Path::new(RESTORED);
        let refused = backup::restore(&world.env(), Path::new(BACKUPS), None, into);
        assert!(
            matches!(refused, Err(EngineError::Corrupt { .. })),
            "{}: {refused:?}",
            path.display()
        );
        if world.fs.exists(into).unwrap() {
            assert_eq!(world.fs.list(into).unwrap(), ["LOCK"]);
        }
        world.fs.restore(Path::new(BACKUPS), &whole).unwrap();
    }
    assert_eq!(damage(&world), [""; 0]);
}

#[test]
fn a_restore_that_was_cut_short_is_no_database_and_can_be_done_again() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    let contents = read(&engine, "t");
    take(&engine);
    engine.close().unwrap();
    let into = Path::new(RESTORED);
    let (mut unfinished, mut after) = (0, 0);
    loop {
        world.fs.crash_at(world.fs.ops() + after);
        let done = backup::restore(&world.env(), Path::new(BACKUPS), None, into);
        let crashed = world.fs.is_crashed();
        world.fs.cancel_crash();
        if !crashed {
            done.unwrap();
            break;
        }
        world.fs.crash();
        if world.fs.exists(&into.join("RESTORING")).unwrap() {
            unfinished += 1;
            let opened = Engine::open(world.env(), into, options());
            let refused = opened.unwrap_err().to_string();
            assert!(refused.contains("restore into it once more"), "{refused}");
            let verified = Engine::verify(&world.env(), into, &mut |_| {});
            assert!(verified.is_err());
        } else if world.fs.exists(&into.join("MARIGRAM")).unwrap() {
            break;
        }
        after += 1;
    }
    assert!(unfinished > 20);
    let engine = Engine::open(world.env(), into, options()).unwrap();
    assert_eq!(read(&engine, "t"), contents);
}

#[test]
fn folders_that_hold_something_else_are_left_alone() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    let refused = |dir: &str| {
        let refused = engine.backup(Path::new(dir), BackupOptions::default());
        refused.unwrap_err().to_string()
    };
    assert!(refused("/data/backups").contains("is inside the data directory"));
    world.fs.create_dir_all(Path::new("/other")).unwrap();
    world.fs.create(Path::new("/other/letter")).unwrap();
    assert!(refused("/other").contains("not empty"));
    take(&engine);
    let lock = world.fs.lock(&Path::new(BACKUPS).join("LOCK")).unwrap();
    assert!(refused(BACKUPS).contains("is running"));
    drop(lock);
    let restore = |number, into: &str| {
        backup::restore(&world.env(), Path::new(BACKUPS), number, Path::new(into))
            .unwrap_err()
            .to_string()
    };
    assert!(restore(None, "/other").contains("not empty"));
    assert!(restore(None, DIR).contains("not empty"));
    assert!(restore(Some(9), "/new").contains("there are 1"));
    let list = backup::list(&world.env(), Path::new("/other"));
    assert!(
        list.unwrap_err()
            .to_string()
            .contains("not a folder of backups")
    );
}

#[test]
fn a_full_disk_ends_a_backup_and_harms_nothing() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    take(&engine);
    let first = read(&engine, "t");
    let kept = world.fs.snapshot(Path::new(BACKUPS)).unwrap();
    fill(&engine, 2, 0.75);
    engine.flush().unwrap();
    for space in (0..2_000).step_by(125) {
        world.fs.set_space(Some(space));
        let failed = engine.backup(Path::new(BACKUPS), BackupOptions::default());
        world.fs.set_space(None);
        assert!(matches!(failed, Err(EngineError::Io { .. })), "{failed:?}");
        assert_eq!(world.fs.snapshot(Path::new(BACKUPS)).unwrap(), kept);
    }
    assert_eq!(restored(&world, None), first);
    store(&engine, "t", &[("d1", 5, &[("x", V::F64(1.0))])]);
    let now = read(&engine, "t");
    assert_eq!(take(&engine).info.number, 2);
    assert_eq!(restored(&world, Some(2)), now);
}

#[test]
fn a_damaged_segment_is_named_and_not_backed_up() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    engine.flush().unwrap();
    let segment = engine.segments().remove(0);
    world.fs.flip_bit(&segment.path, 8 * 40).unwrap();
    let failed = engine.backup(Path::new(BACKUPS), BackupOptions::default());
    match failed {
        Err(EngineError::Corrupt { path, .. }) => assert_eq!(path, segment.path),
        other => panic!("{other:?}"),
    }
    assert_eq!(numbers(&world), [0; 0]);
    let objects = world.fs.list(&Path::new(BACKUPS).join("objects"));
    assert_eq!(objects.unwrap(), [""; 0]);
}

#[test]
fn a_restored_directory_and_its_origin_share_a_folder_without_mixing() {
    let world = World::new(1);
    let engine = world.open_db();
    fill(&engine, 1, 0.5);
    take(&engine);
    // From here on, both directories give their segments the same numbers and sizes.
    fill(&engine, 2, 1.5);
    let origin = read(&engine, "t");
    take(&engine);
    restored(&world, Some(1));
    let copy = Engine::open(world.env(), Path::new(RESTORED), options()).unwrap();
    fill(&copy, 2, 2.5);
    let copied = read(&copy, "t");
    take(&copy);
    copy.close().unwrap();
    assert_eq!(restored(&world, Some(2)), origin);
    assert_eq!(restored(&world, Some(3)), copied);
}

#[test]
fn a_part_brings_the_segments_of_its_times_alone() {
    let world = World::new(1);
    let engine = world.open_db();
    for day in 1..6 {
        fill(&engine, day, day as f64);
        engine.flush().unwrap();
    }
    let range = TimeRange {
        min: 3 * DAY_NS,
        max: 4 * DAY_NS - 1,
    };
    let mut expected = read(&engine, "t");
    expected.retain(|(_, time), _| range.contains(*time));
    take(&engine);
    let from = Path::new(BACKUPS);
    let schemas = backup::schemas(&world.env(), from, None).unwrap();
    assert_eq!(schemas.len(), 1);
    let wanted = [RestoreSelection {
        table: schemas[0].id,
        range,
    }];
    let into = Path::new("/part");
    backup::restore_part(&world.env(), from, None, into, &wanted).unwrap();
    let part = Engine::open(world.env(), into, options()).unwrap();
    assert_eq!(read(&part, "t"), expected);
    let mut damage = Vec::new();
    Engine::verify(&world.env(), into, &mut |place| damage.push(place)).unwrap();
    assert_eq!(damage, [""; 0]);
}

#[test]
fn a_backup_under_writes_shows_one_moment_of_all_shards() {
    let world = World::new(1);
    let engine = world.open_db();
    // Two devices in different shards: each row of one is written after a row of the other.
    let spec = crate::TableSpec {
        name: "t".to_owned(),
        ..Default::default()
    };
    engine.create_table("db", &spec, false).unwrap();
    let series = || {
        let snapshot = engine.snapshot("db", "t").unwrap();
        snapshot.select(&crate::TagFilter::All).shards
    };
    let shard_of = |device: &str| {
        let before = series();
        store(&engine, "t", &[(device, 0, &[("x", V::F64(0.0))])]);
        series().iter().zip(&before).position(|(a, b)| a != b)
    };
    let names: Vec<String> = (0..20).map(|device| format!("d{device}")).collect();
    let homes: Vec<_> = names.iter().map(|name| shard_of(name)).collect();
    let other = homes.iter().position(|home| *home != homes[0]).unwrap();
    let pair = [names[0].as_str(), names[other].as_str()];
    let (written, stop) = (AtomicI64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for time in 1..i64::MAX {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                for device in pair {
                    let rows = batch("t", &[(device, time, &[("x", V::F64(1.0))])]);
                    engine.write("db", &rows, GROW).unwrap();
                }
                written.store(time, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                engine.flush().unwrap();
                engine.compact().unwrap();
            }
        });
        for number in 1..6 {
            while written.load(Ordering::Acquire) < number * 10 {
                std::thread::yield_now();
            }
            let least = written.load(Ordering::Acquire);
            assert_eq!(take(&engine).info.number, number as u64);
            let contents = restored(&world, None);
            let last = pair.map(|device| {
                let times = contents.keys().filter(|(name, _)| name == device);
                let times: Vec<i64> = times.map(|(_, time)| *time).collect();
                assert_eq!(times, (0..times.len() as i64).collect::<Vec<_>>());
                times.len() as i64 - 1
            });
            assert!(last[0] >= least && last[1] >= least, "{last:?} < {least}");
            assert!((0..=1).contains(&(last[0] - last[1])), "{last:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn on_a_real_disk_a_backup_is_restored_too() {
    let dir = std::env::temp_dir().join(format!("marigram-backup-{}", std::process::id()));
    let env = Env {
        clock: std::sync::Arc::new(SimClock::new(5)),
        ..Env::real()
    };
    let at = |name: &str| -> PathBuf { dir.join(name) };
    let engine = Engine::open(env.clone(), &at("data"), options()).unwrap();
    engine.create_database("db", true).unwrap();
    fill(&engine, 1, 0.5);
    let contents = read(&engine, "t");
    engine.backup(&at("b"), BackupOptions::default()).unwrap();
    backup::restore(&env, &at("b"), None, &at("again")).unwrap();
    let again = Engine::open(env, &at("again"), options()).unwrap();
    assert_eq!(read(&again, "t"), contents);
    drop((engine, again));
    Env::real().fs.remove_dir_all(&dir).unwrap();
}

#[test]
fn a_folder_whose_way_was_not_durable_at_first_stays_after_a_loss_of_power() {
    for seed in 0..60 {
        let world = World::new(seed);
        let engine = world.open_db();
        store(&engine, "t", &[("a", 1, &[("x", V::F64(1.0))])]);
        world.fs.fail(PlannedFault {
            kind: Some(OpKind::SyncDir),
            after: seed % 12,
            repeat: FaultRepeat::Once,
        });
        let _ = engine.backup(Path::new(BACKUPS), BackupOptions::default());
        world.fs.clear_faults();
        drop(engine);
        let engine = world.open_db();
        take(&engine);
        world.fs.crash();
        assert!(!numbers(&world).is_empty());
        assert_eq!(restored(&world, None).len(), 1);
    }
}
