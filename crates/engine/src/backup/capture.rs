//! Captures the moment that a backup contains.
//!
//! For that moment, the catalog, every shard's log and every shard's manifest are locked at once.
//! No change is half done, so the files together are what a power loss at that moment would leave,
//! and opening them is ordinary recovery. Files that may grow are captured up to their length.
//! Files that a compaction or a flush may remove stay open, so they stay readable.
//!
//! The reference tables are copied right after that, while the catalog is still locked: no database
//! comes or goes in between. The copy has no name, so that nothing of it remains.

use crate::catalog::LiveCatalog;
use crate::error::{EngineError, Result};
use crate::reference_file::{self, CopyReference};
use crate::shard::{Shard, ShardLog, segment_name};
use crate::view::OpenSegment;
use marigram_env::{Env, File};
use marigram_series_index::LogPosition;
use parking_lot::MutexGuard;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file as it was at that moment.
pub(super) struct CapturedFile {
    /// Its path in the data directory, with `/` between the parts.
    pub name: String,
    /// Its path, for messages.
    pub path: PathBuf,
    pub contents: CapturedContents,
    pub bytes: u64,
}

/// The source of a file's bytes.
pub(super) enum CapturedContents {
    /// The start of an open file that is only appended to.
    Appended(Arc<dyn File>),
    /// A segment, which never changes.
    Segment(Arc<OpenSegment>),
}

/// The data directory at one moment.
pub(super) struct CapturedDirectory {
    pub taken_ns: i64,
    /// Rows in segments.
    pub rows: u64,
    pub sources: Vec<CapturedFile>,
}

/// Captures the current moment.
pub(super) fn capture(
    env: &Env,
    dir: &Path,
    schemas: &LiveCatalog,
    shards: &[Shard],
    reference: Option<CopyReference<'_>>,
) -> Result<CapturedDirectory> {
    let catalog = schemas.hold();
    let logs: Vec<_> = shards.iter().map(Shard::log).collect();
    for shard in shards {
        // After a failed sync, the content of the disk is unknown until the directory is reopened.
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
    // Rows need not wait for the copy.
    drop(logs);
    let is_noted = catalog.state().has_reference_tables;
    if is_noted || reference_file::exists(env, dir)? {
        let copied = capture_reference(env, dir, reference)?;
        if copied.is_none() && is_noted {
            return Err(not_copied(dir, "nothing was copied"));
        }
        moment.sources.extend(copied);
    }
    drop(catalog);
    Ok(moment)
}

/// The error for a backup that lacks a copy of the reference tables.
fn not_copied(dir: &Path, reason: &str) -> EngineError {
    EngineError::Invalid(format!(
        "the reference tables in {} cannot be copied: {reason}",
        dir.join(reference_file::NAME).display()
    ))
}

/// Captures a copy of the reference tables; `None` if there are none in the file yet.
fn capture_reference(
    env: &Env,
    dir: &Path,
    copy: Option<CopyReference<'_>>,
) -> Result<Option<CapturedFile>> {
    let Some(copy) = copy else {
        return Err(not_copied(dir, "the engine alone cannot do it"));
    };
    let temporary = dir.join(reference_file::COPY);
    let io = |error| EngineError::io(&temporary, error);
    if env.fs.exists(&temporary).map_err(io)? {
        env.fs.remove(&temporary).map_err(io)?;
    }
    let copied = copy(&temporary).map_err(|reason| not_copied(dir, &reason));
    if !env.fs.exists(&temporary).map_err(io)? {
        return copied.map(|()| None);
    }
    // Whoever has it open can go on reading.
    let opened = copied.and_then(|()| env.fs.open(&temporary).map_err(io));
    env.fs.remove(&temporary).map_err(io)?;
    let file = opened?;
    Ok(Some(CapturedFile {
        name: reference_file::NAME.to_owned(),
        path: dir.join(reference_file::NAME),
        bytes: file.len().map_err(io)?,
        contents: CapturedContents::Appended(file),
    }))
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

/// Captures a file with its current length.
fn capture_whole_file(env: &Env, dir: &Path, name: String) -> Result<CapturedFile> {
    let mut source = part(env, dir, name, 0)?;
    if let CapturedContents::Appended(file) = &source.contents {
        source.bytes = file
            .len()
            .map_err(|error| EngineError::io(&source.path, error))?;
    }
    Ok(source)
}

/// Captures the first bytes of a file.
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
