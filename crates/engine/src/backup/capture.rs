//! The moment that a backup shows.
//!
//! For that moment the catalog, every shard's log and every shard's manifest are held at once: no
//! change is half made, so the files together are what a loss of power at that moment would have
//! left, and opening them is recovery as always. What may grow is taken up to its length, and what
//! compaction or a flush may remove stays open, hence readable.

use crate::catalog::LiveCatalog;
use crate::error::{EngineError, Result};
use crate::shard::{Shard, ShardLog, segment_name};
use crate::view::OpenSegment;
use marigram_env::{Env, File};
use marigram_series_index::LogPosition;
use parking_lot::MutexGuard;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file as it was at the moment.
pub(super) struct CapturedFile {
    /// Its path in the data directory, with `/` between the parts.
    pub name: String,
    /// Its path, for messages.
    pub path: PathBuf,
    pub contents: CapturedContents,
    pub bytes: u64,
}

/// Where the bytes of a source are.
pub(super) enum CapturedContents {
    /// At the start of an open file that is only appended to.
    Appended(Arc<dyn File>),
    /// In a segment, which never changes.
    Segment(Arc<OpenSegment>),
}

/// The data directory at a moment.
pub(super) struct CapturedDirectory {
    pub taken_ns: i64,
    /// Rows in segments.
    pub rows: u64,
    pub sources: Vec<CapturedFile>,
}

/// Captures the present moment.
pub(super) fn capture(
    env: &Env,
    dir: &Path,
    schemas: &LiveCatalog,
    shards: &[Shard],
) -> Result<CapturedDirectory> {
    let _catalog = schemas.hold();
    let logs: Vec<_> = shards.iter().map(Shard::log).collect();
    for shard in shards {
        // After a failed sync nobody knows what the disk holds, until it is opened again.
        if shard.context.health.is_final() {
            shard.context.health.check()?;
        }
    }
    let mut moment = CapturedDirectory {
        taken_ns: env.clock.now_ns(),
        rows: 0,
        sources: vec![capture_whole_file(env, dir, "CATALOG".to_owned())?],
    };
    for (shard, log) in shards.iter().zip(&logs) {
        capture_shard(env, dir, (shard, log), &mut moment)?;
    }
    Ok(moment)
}

fn capture_shard(
    env: &Env,
    dir: &Path,
    (shard, log): (&Shard, &MutexGuard<'_, ShardLog>),
    moment: &mut CapturedDirectory,
) -> Result<()> {
    let named = |name: &str| format!("shards/{:04}/{name}", shard.number);
    let durable = shard.durable.lock();
    let state = durable.manifest.state();
    moment
        .sources
        .push(capture_whole_file(env, dir, named("MANIFEST"))?);
    let log_of_series = LogPosition(state.series_log_bytes);
    if log_of_series.bytes() > 0 {
        let name = named(&log_of_series.file_name());
        let series = part(env, dir, name, log_of_series.bytes())?;
        moment.sources.push(series);
    }
    for (name, bytes) in log.wal.files_from(state.wal_floor) {
        let source = part(env, dir, named(&format!("wal/{name}")), bytes)?;
        moment.sources.push(source);
    }
    for segment in &shard.state.read().segments {
        let name = segment_name(shard.number, segment.meta.id);
        moment.rows += segment.meta.rows;
        moment.sources.push(CapturedFile {
            path: dir.join(&name),
            name,
            contents: CapturedContents::Segment(segment.clone()),
            bytes: segment.meta.bytes,
        });
    }
    Ok(())
}

/// A file as long as it is.
fn capture_whole_file(env: &Env, dir: &Path, name: String) -> Result<CapturedFile> {
    let mut source = part(env, dir, name, 0)?;
    if let CapturedContents::Appended(file) = &source.contents {
        source.bytes = file
            .len()
            .map_err(|error| EngineError::io(&source.path, error))?;
    }
    Ok(source)
}

/// The first bytes of a file.
fn part(env: &Env, dir: &Path, name: String, bytes: u64) -> Result<CapturedFile> {
    let path = dir.join(&name);
    let file = env
        .fs
        .open(&path)
        .map_err(|error| EngineError::io(&path, error))?;
    Ok(CapturedFile {
        name,
        path,
        contents: CapturedContents::Appended(file),
        bytes,
    })
}
