//! The file of the reference tables, of which the engine knows only that it exists.
//!
//! SQLite keeps it (`docs/formats/reference.md`). The catalog notes, before the first table in it is
//! committed, that there are such tables. A directory whose catalog says so is not opened without
//! the file, which SQLite would simply create anew.
//!
//! Nothing here opens the file: closing it again would release the locks that SQLite holds on it in
//! this process.

use crate::error::{EngineError, Result};
use marigram_env::Env;
use marigram_manifest::{Catalog, CatalogState};
use std::path::Path;

/// The folder of the file, and of what SQLite keeps beside it.
pub const FOLDER: &str = "reference";
/// The file, in the data directory.
pub(crate) const NAME: &str = "reference/tables.db";
/// A copy that is being made for a backup, in the data directory.
pub(crate) const COPY: &str = "reference/backup.new";

/// Copies the reference tables, as they are at one moment, into a new file; an error is the reason.
pub type CopyReference<'a> = &'a dyn Fn(&Path) -> std::result::Result<(), String>;

/// The length of the file; `None` if there is none.
fn length(env: &Env, dir: &Path) -> Result<Option<u64>> {
    let path = dir.join(NAME);
    let io = |error| EngineError::io(&path, error);
    if !env.fs.exists(&path).map_err(io)? {
        return Ok(None);
    }
    let files = env.fs.list_lengths(&dir.join(FOLDER)).map_err(io)?;
    let own = |(name, _): &&(String, u64)| path.file_name().is_some_and(|own| own == name.as_str());
    Ok(files.iter().find(own).map(|(_, bytes)| *bytes))
}

/// Whether the file exists.
pub(crate) fn exists(env: &Env, dir: &Path) -> Result<bool> {
    Ok(length(env, dir)?.is_some())
}

/// Makes the names on the path from the data directory to the file durable.
pub(crate) fn sync_names(env: &Env, dir: &Path) -> Result<()> {
    for dir in [&dir.join(FOLDER), dir] {
        env.fs
            .sync_dir(dir)
            .map_err(|error| EngineError::io(dir, error))?;
    }
    Ok(())
}

/// Whether the catalog of a data directory, which may be open, knows of reference tables.
///
/// # Errors
/// If the catalog cannot be read.
pub fn has_reference_tables(env: &Env, dir: &Path) -> Result<bool> {
    Ok(Catalog::read(env.fs.as_ref(), dir)?.has_reference_tables)
}

/// An error if the catalog knows of reference tables, and their file is missing or empty.
pub(crate) fn check(env: &Env, dir: &Path, catalog: &CatalogState) -> Result<()> {
    if !catalog.has_reference_tables {
        return Ok(());
    }
    let lost = match length(env, dir)? {
        None => "the file is missing",
        Some(0) => "the file is empty",
        Some(_) => return Ok(()),
    };
    Err(EngineError::Corrupt {
        path: dir.join(NAME),
        offset: 0,
        reason: format!("{lost}, although the catalog knows of reference tables"),
    })
}
