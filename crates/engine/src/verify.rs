//! Verification: reads every byte of a data directory and checks every checksum.
//!
//! Nothing is changed. An open directory can be verified too: what is appended meanwhile is taken
//! as far as it is there, and a segment that compaction removes meanwhile is passed over.

mod read_only;

use crate::backup;
use crate::directory::{read_shards, shard_dir};
use crate::error::{EngineError, Result};
use crate::shard::segment_path;
use marigram_env::Env;
use marigram_manifest::{Catalog, Manifest};
use marigram_segment::Segment;
use marigram_series_index::{LogPosition, SeriesLog};
use marigram_wal::Wal;
use read_only::ReadOnlyFs;
use std::path::Path;
use std::sync::Arc;

/// Verifies a data directory or a folder of backups; calls `damage` with one message for each
/// damaged place.
pub(crate) fn verify(env: &Env, dir: &Path, damage: &mut dyn FnMut(String)) -> Result<()> {
    if backup::is_backup(env, dir)? {
        return backup::verify(env, dir, damage);
    }
    let shards = match read_shards(env, dir) {
        Ok(Some(shards)) => shards,
        Ok(None) => {
            let reason = format!("{} is no data directory of Marigram", dir.display());
            return Err(EngineError::Invalid(reason));
        }
        Err(error @ EngineError::Corrupt { .. }) => {
            damage(error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if let Err(error) = Catalog::read(env.fs.as_ref(), dir) {
        damage(error.to_string());
    }
    for shard in 0..shards {
        let dir = shard_dir(dir, shard);
        match env.fs.exists(&dir) {
            Ok(true) => verify_shard(env, &dir, damage),
            // Only a directory that was made and never opened to the end lacks a shard.
            Ok(false) => {}
            Err(error) => damage(EngineError::io(&dir, error).to_string()),
        }
    }
    Ok(())
}

fn verify_shard(env: &Env, dir: &Path, damage: &mut dyn FnMut(String)) {
    let state = match Manifest::read(env.fs.as_ref(), dir) {
        Ok(state) => state,
        Err(error) => return damage(error.to_string()),
    };
    if let Err(error) = verify_series(env, dir, state.series_log_bytes) {
        damage(error.to_string());
    }
    for meta in state.segments.values() {
        let mut found = Vec::new();
        let path = segment_path(&dir.join("segments"), meta.id);
        Segment::verify(&env.fs, &path, &mut |error| found.push(error.to_string()));
        if found.is_empty() || removed_meanwhile(env, dir, meta.id) {
            continue;
        }
        found.into_iter().for_each(&mut *damage);
    }
    verify_wal(env, &dir.join("wal"), state.wal_floor, damage);
}

/// Replays the log to nowhere. A torn tail is told too, though opening would only cut it off: what
/// is damaged there could also be the disk's fault.
fn verify_wal(env: &Env, dir: &Path, floor: u64, damage: &mut dyn FnMut(String)) {
    let fs = Arc::new(ReadOnlyFs(env.fs.clone()));
    match Wal::open(fs, dir, floor, &mut |_, _| Ok(())) {
        Err(error) => damage(error.to_string()),
        Ok((_, report)) => {
            if let Some((path, offset, reason)) = report.torn {
                let path = path.display();
                damage(format!(
                    "{path} at byte {offset}: the log ends here: {reason}"
                ));
            }
        }
    }
}

fn verify_series(env: &Env, dir: &Path, position: u64) -> Result<()> {
    SeriesLog::read(env.fs.as_ref(), dir, LogPosition(position))?;
    Ok(())
}

fn removed_meanwhile(env: &Env, dir: &Path, id: marigram_manifest::SegmentId) -> bool {
    Manifest::read(env.fs.as_ref(), dir).is_ok_and(|state| !state.segments.contains_key(&id))
}
