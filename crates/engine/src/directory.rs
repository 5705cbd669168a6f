//! The data directory: its lock, and the file `MARIGRAM` that identifies it.
//!
//! `MARIGRAM` is written once, as text, so that a person who finds the directory can read it. It
//! has the lines `marigram data directory`, `format 1`, `shards N` and `lineage X`, and a line
//! `checksum Y` over the lines before it.
//!
//! The *lineage* distinguishes directories that were once the same. It is the time of creation, and
//! restoring a backup creates a new one. Within a lineage, a shard's segment with a given number is
//! always the same file. Directories older than lineages have 0.
//!
//! A directory that is being restored has the file `RESTORING` from before its first file until
//! after its last one, and is not opened.

use crate::error::{EngineError, Result};
use marigram_codec::crc32c;
use marigram_env::{Env, Lock};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Version of the layout of a data directory.
pub(crate) const FORMAT_VERSION: u32 = 1;
const TITLE: &str = "marigram data directory";
/// The file that marks an incomplete directory.
pub(crate) const RESTORING: &str = "RESTORING";
/// Most shards that a directory may have.
const SHARDS_MAX: usize = 4096;

/// Takes the directory's lock, and creates the directory if it does not exist.
pub(crate) fn lock(env: &Env, dir: &Path) -> Result<Box<dyn Lock>> {
    env.fs
        .create_dir_all(dir)
        .map_err(|error| EngineError::io(dir, error))?;
    let io = |error| EngineError::io(dir, error);
    if !env.fs.exists(&dir.join("MARIGRAM")).map_err(io)? {
        sync_names_of(env, dir)?;
    }
    let path = dir.join("LOCK");
    env.fs.lock(&path).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => EngineError::Invalid(format!(
            "{} is open in another process (or twice in this one); close it there first",
            dir.display()
        )),
        _ => EngineError::io(&path, error),
    })
}

/// Makes the names on the path to a new directory durable, as far as the process may: names in
/// directories of other users existed before.
pub(crate) fn sync_names_of(env: &Env, dir: &Path) -> Result<()> {
    for parent in dir.ancestors().skip(1) {
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        match env.fs.sync_dir(parent) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            outcome => outcome.map_err(|error| EngineError::io(parent, error))?,
        }
    }
    Ok(())
}

/// The content of `MARIGRAM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryIdentity {
    pub shards: usize,
    /// 0 for a directory that is older than lineages.
    pub lineage: u64,
}

/// Refuses an invalid number of shards.
pub(crate) fn check_shards(shards: usize) -> Result<()> {
    if (1..=SHARDS_MAX).contains(&shards) {
        return Ok(());
    }
    let reason = format!("{shards} shards were requested; give 1 to {SHARDS_MAX}");
    Err(EngineError::Invalid(reason))
}

/// The content of the directory's `MARIGRAM`; `None` if it has none.
pub(crate) fn identity(env: &Env, dir: &Path) -> Result<Option<DirectoryIdentity>> {
    refuse_unfinished(env, dir)?;
    read(env, dir)
}

/// The lineage of a directory; 0 if it is older than lineages.
pub(crate) fn lineage(env: &Env, dir: &Path) -> Result<u64> {
    Ok(read(env, dir)?.map_or(0, |identity| identity.lineage))
}

/// An error if a restore was begun and not finished.
fn refuse_unfinished(env: &Env, dir: &Path) -> Result<()> {
    let path = dir.join(RESTORING);
    if !env
        .fs
        .exists(&path)
        .map_err(|error| EngineError::io(&path, error))?
    {
        return Ok(());
    }
    Err(EngineError::Invalid(format!(
        "{} is only partly restored from a backup: restore into it once more",
        dir.display()
    )))
}

/// The content of `MARIGRAM`; `None` if it is missing.
fn read(env: &Env, dir: &Path) -> Result<Option<DirectoryIdentity>> {
    let path = dir.join("MARIGRAM");
    let io = |error| EngineError::io(&path, error);
    if !env.fs.exists(&path).map_err(io)? {
        return Ok(None);
    }
    let file = env.fs.open(&path).map_err(io)?;
    let len = file.len().map_err(io)?.min(4096);
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    let corrupt = |reason: String| EngineError::Corrupt {
        path: path.clone(),
        offset: 0,
        reason,
    };
    let text = String::from_utf8(bytes).map_err(|_| corrupt("it is not text".to_owned()))?;
    if !text.ends_with('\n') {
        return Err(corrupt("its last line is cut off".to_owned()));
    }
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(corrupt(format!("its first line is not '{TITLE}'")));
    }
    let number = |line: Option<&str>, word: &str| {
        line.and_then(|line| line.strip_prefix(word)?.trim().parse::<usize>().ok())
            .ok_or_else(|| corrupt(format!("the line '{word} …' is missing or not a number")))
    };
    let format = number(lines.next(), "format")?;
    if format != FORMAT_VERSION as usize {
        return Err(EngineError::Invalid(format!(
            "{} has format {format}; this Marigram reads format {FORMAT_VERSION}",
            dir.display()
        )));
    }
    let shards = number(lines.next(), "shards")?;
    if !(1..=SHARDS_MAX).contains(&shards) {
        return Err(corrupt(format!(
            "{shards} shards are not between 1 and {SHARDS_MAX}"
        )));
    }
    let lineage = match lines.next() {
        None => 0,
        Some(line) => line
            .strip_prefix("lineage ")
            .and_then(|text| u64::from_str_radix(text, 16).ok())
            .ok_or_else(|| corrupt("its fourth line is not 'lineage …'".to_owned()))?,
    };
    if let Some(line) = lines.next() {
        let said = line
            .strip_prefix("checksum ")
            .and_then(|text| u32::from_str_radix(text, 16).ok())
            .ok_or_else(|| corrupt("its fifth line is not 'checksum …'".to_owned()))?;
        let before = text.find("checksum ").unwrap_or_default();
        if crc32c([&text.as_bytes()[..before]]) != said {
            return Err(corrupt("its checksum is wrong".to_owned()));
        }
    }
    Ok(Some(DirectoryIdentity { shards, lineage }))
}

/// The text of `MARIGRAM` for an identity.
pub(crate) fn text_of(identity: DirectoryIdentity) -> String {
    let DirectoryIdentity { shards, lineage } = identity;
    let text =
        format!("{TITLE}\nformat {FORMAT_VERSION}\nshards {shards}\nlineage {lineage:016x}\n");
    let checksum = crc32c([text.as_bytes()]);
    format!("{text}checksum {checksum:08x}\n")
}

impl DirectoryIdentity {
    /// The identity of a new directory: it begins a lineage.
    pub(crate) fn new(env: &Env, shards: usize) -> Self {
        Self {
            shards,
            lineage: env.clock.now_ns() as u64,
        }
    }
}

/// Writes `MARIGRAM`, which makes the directory a data directory.
pub(crate) fn write_identity(env: &Env, dir: &Path, identity: DirectoryIdentity) -> Result<()> {
    let (path, new) = (dir.join("MARIGRAM"), dir.join("MARIGRAM.new"));
    let write = || {
        let file = env.fs.create(&new)?;
        file.append(text_of(identity).as_bytes())?;
        file.sync()?;
        env.fs.rename(&new, &path)?;
        env.fs.sync_dir(dir)
    };
    write().map_err(|error| EngineError::io(&path, error))
}

/// Returns a shard's directory, which it creates if it does not exist.
pub(crate) fn make_shard_dir(env: &Env, dir: &Path, shard: usize) -> Result<PathBuf> {
    let path = shard_dir(dir, shard);
    let make = || {
        env.fs.create_dir_all(&path)?;
        env.fs.sync_dir(&dir.join("shards"))?;
        env.fs.sync_dir(dir)
    };
    make().map_err(|error| EngineError::io(&path, error))?;
    Ok(path)
}

/// A shard's directory.
pub(crate) fn shard_dir(dir: &Path, shard: usize) -> PathBuf {
    dir.join("shards").join(format!("{shard:04}"))
}
