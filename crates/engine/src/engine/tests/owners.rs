//! Manifests and logs name the directory and shard for which they were written. One of another
//! directory or shard is refused, even if no witness tells the difference.

use super::support::{Contents, DIR, World, options, read, store};
use crate::backup::{self, BackupOptions};
use crate::{Engine, EngineError};
use marigram_codec::{crc32c, frame};
use marigram_env::{FaultRepeat, LogStore, OpKind, PlannedFault};
use marigram_model::FieldValueRef as V;
use std::path::Path;

/// The files of shards that name an owner.
const OWNED: [&str; 4] = [
    "shards/0000/MANIFEST",
    "shards/0001/MANIFEST",
    "shards/0000/wal/0000000001.wal",
    "shards/0001/wal/0000000001.wal",
];

/// A directory with rows in the logs of both shards, made at a time of its own, and its rows.
fn filled(seed: i64) -> (World, Contents) {
    let world = World::new(seed as u64);
    world.clock.advance(seed as u64 * 1_000);
    let engine = world.open_db();
    let fields = [("x", V::F64(seed as f64))];
    let devices: Vec<String> = (0..20).map(|device| format!("d{device}")).collect();
    let rows: Vec<_> = devices
        .iter()
        .map(|device| (device.as_str(), seed, &fields[..]))
        .collect();
    store(&engine, "t", &rows);
    let contents = read(&engine, "t");
    drop(engine);
    (world, contents)
}

fn bytes(world: &World, dir: &str, name: &str) -> Vec<u8> {
    world.fs.snapshot(Path::new(dir)).unwrap()[Path::new(name)].clone()
}

fn put(world: &World, dir: &str, name: &str, bytes: &[u8]) {
    let file = world.fs.create(&Path::new(dir).join(name)).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
}

/// Opens a directory with a file that has another owner: it is refused and unchanged.
fn refused(world: &World, dir: &str, name: &str) {
    let before = world.fs.snapshot(Path::new(dir)).unwrap();
    let error = Engine::open(world.env(), Path::new(dir), options()).unwrap_err();
    assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
    let after = world.fs.snapshot(Path::new(dir)).unwrap();
    if name.ends_with("MANIFEST") {
        assert!(after == before, "nothing changes");
    }
    // Logs are read shard by shard, so that new files may begin beside them.
    for (path, bytes) in before {
        let is_witness = path.ends_with("WITNESS");
        assert!(is_witness || after.get(&path) == Some(&bytes), "{path:?}");
    }
    let error = error.to_string();
    assert!(error.contains(&format!("{dir}/{name}")), "{error}");
    assert!(error.contains("it was written for shard"), "{error}");
    let mut damage = Vec::new();
    Engine::verify(&world.env(), Path::new(dir), &mut |place| {
        damage.push(place);
    })
    .unwrap();
    let told = |place: &String| place.contains("it was written for shard");
    assert!(damage.iter().any(told), "verify tells it: {damage:?}");
}

/// Removes the witnesses, which would tell that a file is another one.
fn forget_witnesses(world: &World, dir: &str) {
    for parent in ["", "shards/0000", "shards/0001"] {
        let path = Path::new(dir).join(parent).join("WITNESS");
        if world.fs.exists(&path).unwrap() {
            world.fs.remove(&path).unwrap();
        }
    }
}

#[test]
fn a_manifest_or_log_of_another_directory_is_refused_by_its_header() {
    let ((world, rows), (stranger, _)) = (filled(1), filled(2));
    forget_witnesses(&world, DIR);
    for name in OWNED {
        let own = bytes(&world, DIR, name);
        put(&world, DIR, name, &bytes(&stranger, DIR, name));
        refused(&world, DIR, name);
        put(&world, DIR, name, &own);
    }
    assert_eq!(read(&world.open(), "t"), rows);
}

#[test]
fn a_manifest_or_log_of_another_shard_is_refused_by_its_header() {
    let (world, rows) = filled(1);
    forget_witnesses(&world, DIR);
    for (name, other) in [
        (OWNED[0], OWNED[1]),
        (OWNED[1], OWNED[0]),
        (OWNED[2], OWNED[3]),
        (OWNED[3], OWNED[2]),
    ] {
        let own = bytes(&world, DIR, name);
        put(&world, DIR, name, &bytes(&world, DIR, other));
        refused(&world, DIR, name);
        put(&world, DIR, name, &own);
    }
    assert_eq!(read(&world.open(), "t"), rows);
}

#[test]
fn a_restored_directory_owns_its_files_and_takes_none_of_the_backed_up_one() {
    const RESTORED: &str = "/restored";
    let (world, _) = filled(1);
    let engine = world.open();
    let backups = Path::new("/backups");
    let take = || engine.backup(backups, BackupOptions::default()).unwrap();
    take();
    // A flush that fails leaves rows in the log, which is backed up then.
    store(&engine, "t", &[("d1", 7, &[("x", V::F64(0.5))])]);
    let rows = read(&engine, "t");
    world.fs.fail(PlannedFault {
        kind: Some(OpKind::Create),
        after: 1,
        repeat: FaultRepeat::Once,
    });
    assert!(take().warnings[0].contains("flushed"));
    drop(engine);
    world.clock.advance(1);
    let into = Path::new(RESTORED);
    backup::restore(&world.env(), backups, None, into).unwrap();
    let source = world.fs.snapshot(Path::new(DIR)).unwrap();
    let (mut manifests, mut logs) = (0, 0);
    for (name, own) in world.fs.snapshot(into).unwrap() {
        let Some(theirs) = source.get(&name) else {
            continue;
        };
        match name.extension() {
            Some(extension) if extension == "wal" => logs += 1,
            None if name.ends_with("MANIFEST") => manifests += 1,
            _ => continue,
        }
        let name = name.to_str().unwrap();
        assert!(own != *theirs, "{name}");
        put(&world, RESTORED, name, theirs);
        refused(&world, RESTORED, name);
        put(&world, RESTORED, name, &own);
    }
    assert!(manifests == 2 && logs > 0, "{manifests} and {logs}");
    let engine = Engine::open(world.env(), into, options()).unwrap();
    assert_eq!(read(&engine, "t"), rows);
}

/// A manifest as version 2 wrote it: no owner in the header, and no seals that count it.
fn manifest_of_version_2(bytes: &[u8]) -> Vec<u8> {
    let (mut old, mut at, mut is_header) = (Vec::new(), 0, true);
    while let frame::FrameRead::Frame { payload, len } = frame::read(&bytes[at..]) {
        if is_header {
            frame::write(b"MARIMANI\x02\0\0\0", &mut old);
        } else if payload[8] != 3 {
            frame::write(payload, &mut old);
        }
        (at, is_header) = (at + len, false);
    }
    old
}

/// A file of the log as version 1 wrote it.
fn log_of_version_1(bytes: &[u8]) -> Vec<u8> {
    let mut old = b"MARIGWAL\x01\0\0\0".to_vec();
    old.extend_from_slice(&bytes[12..20]);
    let checksum = crc32c([&old[..]]);
    old.extend_from_slice(&checksum.to_le_bytes());
    old.extend_from_slice(&bytes[36..]);
    old
}

#[test]
fn files_from_before_owners_are_read_and_a_manifest_gets_its_owner() {
    let ((world, rows), (stranger, _)) = (filled(1), filled(2));
    forget_witnesses(&world, DIR);
    for name in OWNED {
        let bytes = bytes(&world, DIR, name);
        let old = if name.ends_with("MANIFEST") {
            manifest_of_version_2(&bytes)
        } else {
            log_of_version_1(&bytes)
        };
        assert!(old.len() < bytes.len());
        put(&world, DIR, name, &old);
    }
    let engine = world.open();
    assert_eq!(read(&engine, "t"), rows);
    // New rows go to a file of the current version, beside that of the old one.
    store(&engine, "t", &[("d1", 9, &[("x", V::F64(0.5))])]);
    let rows = read(&engine, "t");
    drop(engine);
    let engine = world.open();
    assert_eq!(read(&engine, "t"), rows);
    engine.close().unwrap();
    forget_witnesses(&world, DIR);
    for name in &OWNED[..2] {
        assert!(
            bytes(&world, DIR, name)[..40]
                .windows(12)
                .any(|part| part == b"MARIMANI\x04\0\0\0")
        );
        let own = bytes(&world, DIR, name);
        put(&world, DIR, name, &bytes(&stranger, DIR, name));
        refused(&world, DIR, name);
        put(&world, DIR, name, &own);
    }
    assert_eq!(read(&world.open(), "t"), rows);
}
