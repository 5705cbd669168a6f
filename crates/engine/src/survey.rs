//! Examines a data directory before anything in it is changed: is it complete, and is each log the
//! latest one?
//!
//! Three files decide what counts: the catalog, each shard's manifest, and its log of series. If
//! one of them is missing, truncated, or an older version of itself, then the content of the others
//! looks like garbage. So nothing is created, moved or removed before all of them are known to be
//! intact. If that cannot be known (for a directory from before witnesses, or one whose witness is
//! lost), the directory still opens, but everything stays in place.

use crate::directory::{DirectoryIdentity, shard_dir, text_of};
use crate::error::{EngineError, Result};
use crate::reference_file;
use marigram_env::Env;
use marigram_manifest::{
    Catalog, CatalogState, LogProof, Manifest, ManifestError, ManifestState, WitnessFile,
    WitnessOwner, WitnessedState,
};
use marigram_model::{LogOwner, TableId};
use std::path::Path;

/// What is known about some logs before they are opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownLogs {
    pub witnessed: WitnessedState,
    /// Whether what the logs do not name is certainly garbage: the witness beside them is whole.
    pub is_certain: bool,
    /// The owner of a shard's logs; `None` for the catalog, and for a shard that is missing.
    pub owner: Option<LogOwner>,
    /// Whether a log must exist.
    pub must_exist: bool,
    /// Whether there is no witness beside the logs.
    pub lacks_witness: bool,
    /// Why the content of the logs is uncertain although they are intact: what is wrong with the
    /// witness. That all witnesses are missing is no reason for doubt: a restored directory has none.
    pub doubt: Option<String>,
}

impl KnownLogs {
    /// The proof with which the manifest or the catalog is compared.
    pub(crate) fn proof(&self) -> LogProof {
        LogProof {
            exists: self.must_exist,
            durable: self.witnessed.log,
            owner: self.owner,
        }
    }
}

/// What the witness in `dir` says.
pub(crate) fn known_logs(
    env: &Env,
    dir: &Path,
    of: WitnessOwner,
    must_exist: bool,
) -> Result<KnownLogs> {
    let path = dir.join(WitnessFile::FILE);
    let owner = of.shard.map(|shard| LogOwner {
        lineage: of.lineage,
        shard,
    });
    let doubted = |reason: String| KnownLogs {
        owner,
        must_exist,
        doubt: Some(reason),
        ..KnownLogs::default()
    };
    Ok(match WitnessFile::read(env.fs.as_ref(), dir) {
        Ok(Some((found, witnessed))) if found == of => KnownLogs {
            is_certain: witnessed.log.is_some(),
            witnessed,
            owner,
            must_exist,
            ..KnownLogs::default()
        },
        Ok(Some(_)) => doubted(format!(
            "{} is the witness of another directory or shard",
            path.display()
        )),
        Ok(None) => KnownLogs {
            owner,
            must_exist,
            lacks_witness: true,
            ..KnownLogs::default()
        },
        Err(error @ ManifestError::Io { .. }) => return Err(error.into()),
        Err(error) => doubted(error.to_string()),
    })
}

/// A data directory that was examined and found intact.
#[derive(Debug)]
pub(crate) struct DirectorySurvey {
    pub catalog: KnownLogs,
    /// By shard.
    pub shards: Vec<KnownLogs>,
}

/// Examines a directory with a `MARIGRAM`, without changing anything.
///
/// # Errors
/// What is missing or has changed, and what to do.
pub(crate) fn survey(
    env: &Env,
    dir: &Path,
    identity: DirectoryIdentity,
) -> Result<DirectorySurvey> {
    let look = || {
        refuse_more_shards(env, dir, identity.shards)?;
        let (catalog, state, changes) = look_at_catalog(env, dir, identity.lineage)?;
        reference_file::check(env, dir, &state)?;
        let owner = |shard: usize| LogOwner {
            lineage: identity.lineage,
            shard: shard as u32,
        };
        let shards = (0..identity.shards).map(|shard| {
            let (known, manifest) = look_at_shard(env, dir, owner(shard), &catalog, changes > 0)?;
            if let Some(manifest) = manifest {
                check_tables(dir, shard, &manifest, &state)?;
            }
            Ok(known)
        });
        let shards = shards.collect::<Result<Vec<_>>>()?;
        Ok(DirectorySurvey { catalog, shards })
    };
    look().map_err(|error| advised(error, dir))
}

/// Examines the catalog, and how many changes it has ever had. It exists before `MARIGRAM` does. Besides
/// its own witness, those of the shards count.
pub(crate) fn look_at_catalog(
    env: &Env,
    dir: &Path,
    lineage: u64,
) -> Result<(KnownLogs, CatalogState, u64)> {
    let of = WitnessOwner {
        lineage,
        shard: None,
    };
    let mut known = known_logs(env, dir, of, true)?;
    for shard in shards_there(env, dir)? {
        let of = WitnessOwner {
            lineage,
            shard: Some(shard as u32),
        };
        // What is wrong with a shard's witness is said when the shard is examined.
        let path = shard_dir(dir, shard);
        if let Ok(Some((found, witnessed))) = WitnessFile::read(env.fs.as_ref(), &path)
            && found == of
            && let Some(catalog) = witnessed.catalog
            // At the same change, the catalog's own witness is the newer one: it is written first.
            && (known.witnessed.log).is_none_or(|own| own.number < catalog.number)
        {
            known.witnessed.take_log(catalog);
        }
    }
    let read = Catalog::read_proved(env.fs.as_ref(), dir, &known.proof())?;
    let (state, changes) = read.unwrap_or_default();
    Ok((known, state, changes))
}

/// Examines a shard's manifest; `None` if there is none yet. Besides the shard's own witness, that of
/// the data directory counts, which stands in `catalog`. `must_exist` because every shard was created
/// before the first change to the catalog.
pub(crate) fn look_at_shard(
    env: &Env,
    dir: &Path,
    owner: LogOwner,
    catalog: &KnownLogs,
    must_exist: bool,
) -> Result<(KnownLogs, Option<ManifestState>)> {
    let path = shard_dir(dir, owner.shard as usize);
    let exists = env.fs.exists(&path);
    if !exists.map_err(|error| EngineError::io(&path, error))? {
        if must_exist {
            return Err(EngineError::Corrupt {
                path,
                offset: 0,
                reason: "the directory of the shard is missing".to_owned(),
            });
        }
        return Ok((KnownLogs::default(), None));
    }
    let mut known = known_logs(env, &path, owner.into(), must_exist)?;
    if must_exist && known.lacks_witness != catalog.lacks_witness {
        let (missing, other) = if known.lacks_witness {
            (&*path, dir)
        } else {
            (dir, &*path)
        };
        known.is_certain = false;
        known.doubt = Some(format!(
            "{} is missing, although {} exists",
            missing.join(WitnessFile::FILE).display(),
            other.join(WitnessFile::FILE).display()
        ));
    }
    if let Some(shard) = catalog.witnessed.shards.get(&owner.shard) {
        known.witnessed.take_shard(shard);
    }
    let state = Manifest::read_proved(env.fs.as_ref(), &path, &known.proof())?;
    Ok((known, state))
}

/// An error if a shard has rows of a table that the catalog has never known: it also knows the
/// dropped ones.
pub(crate) fn check_tables(
    dir: &Path,
    shard: usize,
    manifest: &ManifestState,
    catalog: &CatalogState,
) -> Result<()> {
    let in_segments = manifest.segments.values().flat_map(|meta| &meta.tables);
    let in_deletes = manifest.tombstones.iter().map(|delete| &delete.table);
    match in_segments.chain(in_deletes).max() {
        Some(table) if table.0 > catalog.table_max => {
            Err(unknown_table(dir, shard, *table, catalog.table_max))
        }
        _ => Ok(()),
    }
}

/// The error for a shard with rows of a table that the catalog has never known.
pub(crate) fn unknown_table(dir: &Path, shard: usize, table: TableId, max: u32) -> EngineError {
    EngineError::Corrupt {
        path: dir.join("CATALOG"),
        offset: 0,
        reason: format!(
            "it knows tables up to number {max}, and shard {shard} holds rows of table {table}: its \
             end is lost, or it was replaced by an older version"
        ),
    }
}

/// An error if there are more shards than `MARIGRAM` counts.
pub(crate) fn refuse_more_shards(env: &Env, dir: &Path, shards: usize) -> Result<()> {
    match shards_there(env, dir)?.last() {
        Some(last) if *last >= shards => Err(EngineError::Corrupt {
            path: dir.join("MARIGRAM"),
            offset: 0,
            reason: format!("it counts {shards} shards, but shards/{last:04} exists"),
        }),
        _ => Ok(()),
    }
}

/// The numbers of the shards that have a directory, ascending.
fn shards_there(env: &Env, dir: &Path) -> Result<Vec<usize>> {
    let path = dir.join("shards");
    let io = |error| EngineError::io(&path, error);
    if !env.fs.exists(&path).map_err(io)? {
        return Ok(Vec::new());
    }
    let names = env.fs.list(&path).map_err(io)?;
    let mut numbers: Vec<usize> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// An error if a directory without `MARIGRAM` contains what only a directory with it can contain.
pub(crate) fn refuse_remains(env: &Env, dir: &Path) -> Result<()> {
    let exists = |name: &str| {
        let path = dir.join(name);
        env.fs
            .exists(&path)
            .map_err(|error| EngineError::io(&path, error))
    };
    let shards = shards_there(env, dir)?;
    let remains = if let Some(last) = shards.last() {
        Some(format!("shards/{last:04}"))
    } else if exists(WitnessFile::FILE)? {
        Some(WitnessFile::FILE.to_owned())
    } else if exists("CATALOG")? {
        // An interrupted creation leaves an empty one.
        let read = Catalog::read_proved(env.fs.as_ref(), dir, &LogProof::default());
        let (_, changes) = read
            .map_err(|error| advised(error.into(), dir))?
            .unwrap_or_default();
        (changes > 0).then(|| "CATALOG".to_owned())
    } else if exists("CATALOG.copy")? {
        Some("CATALOG.copy".to_owned())
    } else if reference_file::exists(env, dir)? {
        Some(reference_file::NAME.to_owned())
    } else {
        None
    };
    let Some(remains) = remains else {
        return Ok(());
    };
    let lineage = match WitnessFile::read(env.fs.as_ref(), dir) {
        Ok(Some((of, _))) => of.lineage,
        _ => 0,
    };
    let text = text_of(DirectoryIdentity {
        shards: shards.last().map_or(1, |last| last + 1),
        lineage,
    });
    let path = dir.join("MARIGRAM");
    let reason = format!(
        "the file is missing, although {remains} exists; if all shards exist, this restores it: printf \
         '{}' > {}",
        text.replace('\n', "\\n"),
        path.display()
    );
    let offset = 0;
    Err(advised(
        EngineError::Corrupt {
            path,
            offset,
            reason,
        },
        dir,
    ))
}

/// Adds the advice for every kind of damage that keeps a directory from opening.
fn advised(error: EngineError, dir: &Path) -> EngineError {
    match error {
        EngineError::Corrupt {
            path,
            offset,
            reason,
        } => EngineError::Corrupt {
            path,
            offset,
            reason: format!(
                "{reason}. Nothing in {} was changed: put the file back, or restore a backup \
                 (marigram restore BACKUPS NEW_DIR)",
                dir.display()
            ),
        },
        other => other,
    }
}
