//! Segments in a bucket, everything else on the disk: nothing in the engine takes blobs for files.

use super::support::{DIR, World, options, read, rows_of, store};
use crate::backup::{self, BackupOptions};
use crate::{Engine, EngineOptions};
use marigram_env::{BlobMeta, Env, LogStore as _, PutMode, SimBucket};
use marigram_model::{DAY_NS, FieldValueRef as V};
use std::path::Path;
use std::sync::Arc;

const SEGMENTS: &str = "shards/0000/segments";

fn env(world: &World, bucket: &SimBucket) -> Env {
    Env {
        blobs: Arc::new(bucket.clone()),
        ..world.env()
    }
}

fn open(world: &World, bucket: &SimBucket) -> Engine {
    let options = EngineOptions {
        shards: 1,
        ..options()
    };
    Engine::open(env(world, bucket), Path::new(DIR), options).unwrap()
}

/// A row of each of three days, `shift` ns after its beginning.
fn fill(engine: &Engine, shift: i64) {
    let fields = [("x", V::I64(shift))];
    let rows = [1, 2, 3].map(|day| ("a", day * DAY_NS + shift, &fields[..]));
    store(engine, "t", &rows);
    engine.flush().unwrap();
}

/// The blobs of the data directory below a prefix.
fn list(world: &World, bucket: &SimBucket, prefix: &str) -> Vec<BlobMeta> {
    let blobs = env(world, bucket).blob_store(Path::new(DIR));
    blobs.list(prefix).unwrap()
}

#[test]
fn rows_are_flushed_compacted_and_read_where_no_segment_is_a_file() {
    let (world, bucket) = (World::new(1), SimBucket::default());
    let engine = open(&world, &bucket);
    engine.create_database("db", true).unwrap();
    fill(&engine, 10);
    let before = list(&world, &bucket, SEGMENTS).len();
    let old = engine.snapshot("db", "t").unwrap();
    fill(&engine, 5);
    assert!(list(&world, &bucket, SEGMENTS).len() > before);
    engine.compact_table("db", "t").unwrap();
    assert_eq!(rows_of(&old).unwrap().len(), 3);
    drop(old);
    assert_eq!(
        list(&world, &bucket, SEGMENTS).len(),
        engine.segments().len()
    );
    let expected = read(&engine, "t");
    assert_eq!(expected.len(), 6);
    drop(engine);
    let files = world.fs.list(&Path::new(DIR).join("shards/0000/segments"));
    assert_eq!(files.unwrap(), [""; 0]);
    let mut damage = Vec::new();
    let verify = |damage: &mut Vec<String>| {
        let found = &mut |place| damage.push(place);
        Engine::verify(&env(&world, &bucket), Path::new(DIR), found).unwrap();
    };
    verify(&mut damage);
    assert_eq!(damage, Vec::<String>::new());

    // What nothing names goes to the trash in the bucket, and from there when its time has come.
    let blobs = env(&world, &bucket).blob_store(Path::new(DIR));
    let garbage = "shards/0000/segments/0000000099.seg";
    blobs.put(garbage, b"?", PutMode::Create).unwrap();
    let engine = open(&world, &bucket);
    assert_eq!(read(&engine, "t"), expected);
    assert_eq!(blobs.head(garbage).unwrap(), None);
    assert_eq!(list(&world, &bucket, "trash").len(), 1);
    drop(engine);
    world.clock.advance(2 * DAY_NS as u64);
    let engine = open(&world, &bucket);
    assert_eq!(list(&world, &bucket, "trash"), []);

    // A segment that is missing is told, and its rows are refused, not left out.
    let lost = list(&world, &bucket, SEGMENTS)[0].name.clone();
    drop(engine);
    blobs.delete(&lost).unwrap();
    verify(&mut damage);
    assert!(
        damage[0].contains("bucket://data/shards/0000/segments/"),
        "{damage:?}"
    );
    let engine = open(&world, &bucket);
    assert!(rows_of(&engine.snapshot("db", "t").unwrap()).is_err());
}

#[test]
fn a_backup_goes_into_a_bucket_and_comes_back() {
    let (world, bucket) = (World::new(1), SimBucket::default());
    let engine = open(&world, &bucket);
    engine.create_database("db", true).unwrap();
    fill(&engine, 10);
    let expected = read(&engine, "t");
    let folder = Path::new("/backups");
    let report = engine.backup(folder, BackupOptions::default()).unwrap();
    assert_eq!(report.warnings, [""; 0]);
    let again = engine.backup(folder, BackupOptions { keep: Some(1) });
    assert_eq!(again.unwrap().pruned, [1]);
    drop(engine);

    let (env, restored) = (env(&world, &bucket), Path::new("/restored"));
    let stored = env.blob_store(folder);
    assert_eq!(stored.list("backups").unwrap().len(), 1);
    assert!(stored.list("objects").unwrap().len() >= 4);
    for prefix in ["objects", "backups"] {
        assert_eq!(world.fs.list(&folder.join(prefix)).unwrap(), [""; 0]);
    }
    let mut damage = Vec::new();
    Engine::verify(&env, folder, &mut |place| damage.push(place)).unwrap();
    assert_eq!(damage, Vec::<String>::new());
    backup::restore(&env, folder, None, restored).unwrap();
    let engine = Engine::open(env, restored, options()).unwrap();
    assert_eq!(read(&engine, "t"), expected);
}
