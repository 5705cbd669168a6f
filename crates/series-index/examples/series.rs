//! Measures what series cost: adds N series with three tags to an index, logs them, loads them
//! again, and prints bytes per series and times.
//!
//! `cargo run --release -p marigram-series-index --example series -- 10000000 2`: ten million
//! series in two shards. A third argument is the identity, `plain` or `sha256`; a fourth, N,
//! replaces the three tags by one: a path of N levels. Tags are those of the standard set: `devid`
//! (an integer), `devname` (`device_0000123`), `devgroup` (devid mod 100).

#![expect(
    clippy::disallowed_methods,
    reason = "it measures time on this machine"
)]

use marigram_env::{LogStore, OsFs};
use marigram_model::{SeriesId, SeriesIdentity, TableId, TagKey, TagValueRef};
use marigram_series_index::{LogPosition, SeriesIndex, SeriesLog};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const TABLE: TableId = TableId(1);

fn device(number: u64, depth: usize, key: &mut TagKey) {
    key.clear();
    if depth > 0 {
        let node = |level: usize| number % 10_u64.pow((level % 5) as u32 + 1);
        let levels = (0..depth).map(|level| format!(".level_{level}_{:05}", node(level)));
        let path = format!("root{}.device_{number:07}", levels.collect::<String>());
        key.push(0, TagValueRef::String(&path));
        return;
    }
    key.push(0, TagValueRef::I64(number as i64));
    key.push(1, TagValueRef::String(&format!("device_{number:07}")));
    key.push(2, TagValueRef::I64((number % 100) as i64));
}

/// Resident memory of the process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4096
}

fn shard_of(hash: u64, shards: u64) -> u64 {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (mixed * shards) >> 32
}

#[expect(clippy::too_many_lines, reason = "a list of measurements")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise| {
        args.get(at)
            .map_or(otherwise, |arg| arg.parse().expect("a number"))
    };
    let (count, shards) = (number(0, 1_000_000), number(1, 2));
    let identity = match args.get(2).map(String::as_str) {
        Some("sha256") => SeriesIdentity::Sha256,
        _ => SeriesIdentity::Plain,
    };
    let depth = number(3, 0) as usize;
    let fs: Arc<dyn LogStore> = Arc::new(OsFs);
    let dirs: Vec<PathBuf> = (0..shards)
        .map(|shard| {
            std::env::temp_dir().join(format!("marigram-series-{}-{shard}", std::process::id()))
        })
        .collect();
    for dir in &dirs {
        fs.create_dir_all(dir).expect("a directory");
    }
    let before = resident();
    let start = Instant::now();
    let mut indexes: Vec<SeriesIndex> = (0..shards).map(|_| SeriesIndex::default()).collect();
    for index in &mut indexes {
        index.set_identity(TABLE, identity);
    }
    let mut key = TagKey::default();
    let mut worst = std::time::Duration::ZERO;
    for number in 0..count {
        device(number, depth, &mut key);
        let hash = SeriesIndex::hash(TABLE, key.as_bytes());
        let index = &mut indexes[shard_of(hash, shards) as usize];
        let at = Instant::now();
        assert!(index.get(TABLE, key.as_bytes(), hash).is_none());
        index
            .insert(index.next_id(), TABLE, key.as_bytes())
            .expect("a series");
        worst = worst.max(at.elapsed());
    }
    let inserted = start.elapsed();
    let held: usize = indexes.iter().map(SeriesIndex::memory_bytes).sum();
    println!(
        "inserted {count} in {inserted:.1?}, slowest insert {worst:.1?}; memory_bytes {:.1}, resident {:.1} bytes a series",
        held as f64 / count as f64,
        (resident() - before) as f64 / count as f64
    );
    let start = Instant::now();
    for number in 0..count {
        device(number, depth, &mut key);
        let hash = SeriesIndex::hash(TABLE, key.as_bytes());
        let index = &indexes[shard_of(hash, shards) as usize];
        assert!(index.get(TABLE, key.as_bytes(), hash).is_some());
    }
    println!(
        "looked up in {:.0?} ns a series (making the key included)",
        start.elapsed().as_nanos() as u64 / count
    );
    let mut bytes = Vec::new();
    for (index, dir) in indexes.iter().zip(&dirs) {
        let start = LogPosition(0);
        let (mut log, _) =
            SeriesLog::open(fs.clone(), dir, start, &|_| Some(identity)).expect("a log");
        let mut end = 0;
        let mut valid = start;
        while end < index.len() as u32 {
            end = (end + 100_000).min(index.len() as u32);
            valid = log.append(index, SeriesId(end), valid).expect("appended");
        }
        bytes.push(valid);
    }
    println!(
        "log: {:.1} bytes a series",
        bytes.iter().map(|valid| valid.bytes()).sum::<u64>() as f64 / count as f64
    );
    drop(indexes);
    let before = resident();
    let start = Instant::now();
    let loaded: Vec<SeriesIndex> = std::thread::scope(|scope| {
        let load = |(dir, valid): (&PathBuf, &LogPosition)| {
            let (fs, dir, valid) = (fs.clone(), dir.clone(), *valid);
            scope.spawn(move || {
                SeriesLog::open(fs, &dir, valid, &|_| Some(identity))
                    .expect("a log")
                    .1
            })
        };
        let threads: Vec<_> = dirs.iter().zip(&bytes).map(load).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("loaded"))
            .collect()
    });
    let took = start.elapsed();
    let held: usize = loaded.iter().map(SeriesIndex::memory_bytes).sum();
    println!(
        "loaded in {took:.2?}; memory_bytes {:.1}, resident +{:.1} bytes a series (beyond {:.1} left over)",
        held as f64 / count as f64,
        (resident() as f64 - before as f64) / count as f64,
        before as f64 / count as f64
    );
    println!("{:#?}", loaded[0].table_memory(TABLE));
    for dir in &dirs {
        fs.remove_dir_all(dir).expect("removed");
    }
}
