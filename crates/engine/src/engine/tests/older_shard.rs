//! A shard that is replaced by an older copy of itself, together with its witness, is refused: the
//! witness of the data directory knows more of it. The same holds for the catalog, of which the witnesses
//! of the shards know.

use super::support::{DIR, World, options, read, store};
use crate::{Engine, EngineError};
use marigram_env::{DiskSnapshot, LogStore};
use marigram_model::FieldValueRef as V;
use std::path::Path;

fn write(world: &World, time: i64, flush: bool) {
    let engine = world.open_db();
    let devices: Vec<String> = (0..20).map(|device| format!("d{device}")).collect();
    let fields = [("x", V::F64(time as f64))];
    let rows: Vec<_> = devices
        .iter()
        .map(|device| (device.as_str(), time, &fields[..]))
        .collect();
    store(&engine, "t", &rows);
    if flush {
        engine.flush().unwrap();
    }
}

fn files(world: &World) -> DiskSnapshot {
    world.fs.snapshot(Path::new(DIR)).unwrap()
}

/// Replaces what stands in `shard` by what stood there in `older`.
fn put_back(world: &World, older: &DiskSnapshot, shard: &str) {
    for path in files(world).keys().filter(|path| path.starts_with(shard)) {
        world.fs.remove(&Path::new(DIR).join(path)).unwrap();
    }
    for (path, bytes) in older.iter().filter(|(path, _)| path.starts_with(shard)) {
        let file = world.fs.create(&Path::new(DIR).join(path)).unwrap();
        file.append(bytes).unwrap();
        file.sync().unwrap();
    }
}

/// Rows that came after the copy are in segments or in the log.
#[test]
fn an_older_copy_of_a_shard_is_refused_and_nothing_changes() {
    for (flush_before, flush_after) in [(true, true), (true, false), (false, true), (false, false)]
    {
        let world = World::new(1);
        write(&world, 1, flush_before);
        let older = files(&world);
        write(&world, 2, flush_after);
        let newest = files(&world);
        let rows = read(&world.open(), "t");
        for shard in ["shards/0000", "shards/0001"] {
            put_back(&world, &older, shard);
            let before = files(&world);
            let error = Engine::open(world.env(), Path::new(DIR), options()).unwrap_err();
            assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
            assert!(error.to_string().contains(shard), "{error}");
            assert!(
                world.damage().iter().any(|place| place.contains(shard)),
                "{:?}",
                world.damage()
            );
            let is_log = |path: &Path| path.starts_with(shard) && !path.ends_with("WITNESS");
            for (path, bytes) in &before {
                assert!(
                    !is_log(path) || files(&world).get(path) == Some(bytes),
                    "{path:?}"
                );
            }
            put_back(&world, &newest, shard);
            assert_eq!(read(&world.open(), "t"), rows);
        }
    }
}

/// An older catalog would give columns other values: the shards know columns by their numbers.
#[test]
fn older_copies_of_the_catalog_and_of_its_witness_are_refused() {
    for is_killed in [false, true] {
        let world = World::new(5);
        write(&world, 1, true);
        let older = files(&world);
        let engine = world.open_db();
        engine.create_database("later", false).unwrap();
        let killed = files(&world);
        drop(engine);
        if is_killed {
            put_back(&world, &killed, "");
        }
        let newest = files(&world);
        for name in ["CATALOG", "CATALOG.copy", "WITNESS"] {
            put_back(&world, &older, name);
        }
        let before = files(&world);
        let error = Engine::open(world.env(), Path::new(DIR), options()).unwrap_err();
        assert!(matches!(error, EngineError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains("an older version"), "{error}");
        assert_ne!(world.damage(), Vec::<String>::new());
        assert_eq!(files(&world), before);
        put_back(&world, &newest, "");
        assert_eq!(read(&world.open(), "t").len(), 20);
        // Who accepts the older catalog removes all witnesses.
        for name in ["CATALOG", "CATALOG.copy"] {
            put_back(&world, &older, name);
        }
        for witness in ["WITNESS", "shards/0000/WITNESS", "shards/0001/WITNESS"] {
            world.fs.remove(&Path::new(DIR).join(witness)).unwrap();
        }
        assert_eq!(read(&world.open(), "t").len(), 20);
    }
}

/// The witness of the data directory stays small, however many shards and edits there are.
#[test]
fn edits_of_many_shards_do_not_let_the_witness_grow() {
    let world = World::new(2);
    for time in 0..200 {
        write(&world, time, true);
    }
    let path = Path::new(DIR).join("WITNESS");
    let bytes = world.fs.open(&path).unwrap().len().unwrap();
    assert!(bytes <= 65 * 1024, "{bytes}");
    assert_eq!(read(&world.open(), "t").len(), 20 * 200);
}

/// After `kill -9` nothing was recorded at the end: the writes themselves record how far a log is.
#[test]
fn an_older_copy_is_refused_after_a_kill() {
    let world = World::new(3);
    write(&world, 1, false);
    let older = files(&world);
    let engine = world.open_db();
    let devices: Vec<String> = (0..20).map(|device| format!("d{device}")).collect();
    for time in 2..4 {
        world.clock.advance(1_000_000_000);
        let fields = [("x", V::F64(time as f64))];
        let rows = devices
            .iter()
            .map(|device| (device.as_str(), time, &fields[..]));
        store(&engine, "t", &rows.collect::<Vec<_>>());
    }
    let killed = files(&world);
    drop(engine);
    for shard in ["shards/0000", "shards/0001"] {
        put_back(&world, &killed, "");
        put_back(&world, &older, shard);
        let error = Engine::open(world.env(), Path::new(DIR), options()).unwrap_err();
        assert!(error.to_string().contains(shard), "{error}");
    }
    put_back(&world, &killed, "");
    assert_eq!(read(&world.open(), "t").len(), 60);
}

/// Without the data directory's witness, an older copy of a shard looks whole: the missing file is
/// reported. A directory without any witness is one that was restored.
#[test]
fn a_missing_witness_beside_others_is_reported() {
    let world = World::new(4);
    write(&world, 1, true);
    let before = files(&world);
    for missing in ["WITNESS", "shards/0000/WITNESS", "shards/0001/WITNESS"] {
        put_back(&world, &before, "");
        assert_eq!(world.damage(), Vec::<String>::new());
        world.fs.remove(&Path::new(DIR).join(missing)).unwrap();
        let damage = world.damage().join("\n");
        assert!(
            damage.contains(&format!("{DIR}/{missing} is missing")),
            "{damage}"
        );
        assert_eq!(read(&world.open(), "t").len(), 20);
        assert_eq!(world.damage(), Vec::<String>::new());
    }
    put_back(&world, &before, "");
    for witness in ["WITNESS", "shards/0000/WITNESS", "shards/0001/WITNESS"] {
        world.fs.remove(&Path::new(DIR).join(witness)).unwrap();
    }
    assert_eq!(world.damage(), Vec::<String>::new());
}
