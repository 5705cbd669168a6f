//! Verification: reads every byte of a data directory and checks every checksum.
//!
//! Nothing is changed. An open directory can be verified, too: bytes that are appended meanwhile
//! are checked as far as they exist, and a segment that compaction removes meanwhile is skipped.

mod read_only;

use crate::backup;
use crate::directory::{self, shard_dir};
use crate::error::{EngineError, Result};
use crate::reference_file;
use crate::shard::segment_name;
use crate::survey::{
    KnownLogs, check_tables, look_at_catalog, look_at_shard, refuse_more_shards, refuse_remains,
};
use marigram_env::Env;
use marigram_manifest::{Catalog, Manifest, ManifestState};
use marigram_model::LogOwner;
use marigram_segment::Segment;
use marigram_series_index::{LogPosition, SeriesLog};
use marigram_wal::{Wal, WalProof};
use read_only::ReadOnlyFs;
use std::path::Path;
use std::sync::Arc;

/// Verifies a data directory or a folder of backups; calls `damage` with one message for each
/// damaged place.
pub(crate) fn verify(env: &Env, dir: &Path, damage: &mut dyn FnMut(String)) -> Result<()> {
    if backup::is_backup(env, dir)? {
        return backup::verify(env, dir, damage);
    }
    let identity = match directory::identity(env, dir) {
        Ok(Some(identity)) => identity,
        Ok(None) => match refuse_remains(env, dir) {
            Err(error @ EngineError::Corrupt { .. }) => {
                damage(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
            Ok(()) => {
                let reason = format!(
                    "{} is neither a Marigram data directory (it has no file MARIGRAM) nor a folder of \
                     backups",
                    dir.display()
                );
                return Err(EngineError::Invalid(reason));
            }
        },
        Err(error @ EngineError::Corrupt { .. }) => {
            damage(error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if let Err(error) = refuse_more_shards(env, dir, identity.shards) {
        damage(error.to_string());
    }
    let catalog = look_at_catalog(env, dir, identity.lineage);
    let catalog = match catalog {
        Ok((known, state, changes)) => {
            doubt(&known, damage);
            verify_copy(env, dir, damage);
            if let Err(error) = reference_file::check(env, dir, &state) {
                damage(error.to_string());
            }
            Some((known, state, changes))
        }
        Err(error) => {
            damage(error.to_string());
            None
        }
    };
    let known = catalog.as_ref().map(|(known, ..)| known.clone());
    let known_catalog = known.unwrap_or_default();
    for shard in 0..identity.shards {
        // Only a directory whose creation was interrupted may lack a shard.
        let must_exist = catalog.as_ref().is_some_and(|(.., changes)| *changes > 0);
        let owner = LogOwner {
            lineage: identity.lineage,
            shard: shard as u32,
        };
        match look_at_shard(env, dir, owner, &known_catalog, must_exist) {
            Ok((known, Some(manifest))) => {
                doubt(&known, damage);
                if let Some((_, state, _)) = &catalog
                    && let Err(error) = check_tables(dir, shard, &manifest, state)
                {
                    damage(error.to_string());
                }
                verify_shard(env, (dir, shard), &manifest, &known, damage);
            }
            Ok((_, None)) => {}
            Err(error) => damage(error.to_string()),
        }
    }
    Ok(())
}

/// Reports an invalid witness, or one that is missing while another exists. A directory without any
/// is not reported: a restored one, or one from before witnesses, has none until it is opened.
fn doubt(known: &KnownLogs, damage: &mut dyn FnMut(String)) {
    if let Some(doubt) = &known.doubt {
        damage(format!(
            "{doubt}: it is not certain that the logs next to it are complete; it is \
             rewritten when the directory is opened"
        ));
    }
}

/// Reports a damaged copy of the catalog.
fn verify_copy(env: &Env, dir: &Path, damage: &mut dyn FnMut(String)) {
    if let Err(error) = Catalog::read_copy(env.fs.as_ref(), dir) {
        damage(format!(
            "{error}; it is rewritten when the directory is opened"
        ));
    }
}

fn verify_shard(
    env: &Env,
    (data_dir, shard): (&Path, usize),
    state: &ManifestState,
    known: &KnownLogs,
    damage: &mut dyn FnMut(String),
) {
    let dir = &shard_dir(data_dir, shard);
    let blobs = env.blob_store(data_dir);
    let position = LogPosition(state.series_log_bytes);
    let series = SeriesLog::read(env.fs.as_ref(), dir, position, state.series_log_checksum);
    if let Err(error) = series {
        damage(EngineError::from(error).to_string());
    }
    for meta in state.segments.values() {
        let mut found = Vec::new();
        let name = segment_name(shard, meta.id);
        Segment::verify(&*blobs, &name, &mut |error| found.push(error.to_string()));
        if found.is_empty()
            && let Err(error) = Segment::open(&*blobs, &name)
                .and_then(|segment| segment.check_pin(meta.bytes, meta.pin))
        {
            found.push(error.to_string());
        }
        if found.is_empty() || removed_meanwhile(env, dir, meta.id) {
            continue;
        }
        found.into_iter().for_each(&mut *damage);
    }
    verify_wal(env, &dir.join("wal"), state.wal_floor, known, damage);
}

/// Replays the log without effect. A torn tail is also reported, although opening would just cut it
/// off: the disk could have damaged it.
fn verify_wal(
    env: &Env,
    dir: &Path,
    floor: u64,
    known: &KnownLogs,
    damage: &mut dyn FnMut(String),
) {
    let fs = Arc::new(ReadOnlyFs(env.fs.clone()));
    let proof = WalProof {
        durable: known.witnessed.wal.clone(),
        owner: known.owner,
        remove_released: false,
    };
    match Wal::open_proved(fs, dir, floor, &proof, &mut |_, _| Ok(())) {
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

fn removed_meanwhile(env: &Env, dir: &Path, id: marigram_manifest::SegmentId) -> bool {
    Manifest::read(env.fs.as_ref(), dir).is_ok_and(|state| !state.segments.contains_key(&id))
}
