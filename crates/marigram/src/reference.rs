//! The reference tables of a data directory: opening and verifying them.
//!
//! Invariant: no reference table is committed before the catalog notes that there are any, so that the
//! directory never opens without their file.

use crate::error::{Error, Result};
use marigram_engine::{Engine, REFERENCE_FOLDER, has_reference_tables};
use marigram_env::Env;
use marigram_reference::{ReferenceError, ReferenceOptions, ReferenceStore};
use std::path::{Path, PathBuf};

/// Most connections that read at the same time.
const READERS_MAX: usize = 16;
/// Memory of the limit for each of them.
const READER_BYTES: usize = 8 << 20;
/// All caches together take at most this part of the memory limit.
const CACHE_SHARE: usize = 32;
/// Least and most cache of a connection.
const CACHE_BYTES_MIN: usize = 64 << 10;
const CACHE_BYTES_MAX: usize = 2 << 20;

/// Settings that keep the caches of all connections, the writer's included, within their part of the
/// memory limit.
fn options(limit_bytes: usize) -> ReferenceOptions {
    let readers_max = (limit_bytes / READER_BYTES).clamp(1, READERS_MAX);
    let cache_bytes = limit_bytes / CACHE_SHARE / (readers_max + 1);
    ReferenceOptions {
        cache_bytes: cache_bytes.clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX),
        readers_max,
    }
}

/// The file in the data directory `dir`.
fn file(dir: &Path) -> PathBuf {
    dir.join(REFERENCE_FOLDER).join("tables.db")
}

/// What is wrong with a file in which nothing stands, although the catalog knows of tables in it.
const NOTHING_THERE: &str = "the file has no tables, although the catalog knows of reference tables: \
                             tables.db-wal beside it is lost";

/// An error with the file, and what to do.
fn advised(error: ReferenceError, dir: &Path) -> Error {
    Error::Reference(ReferenceError {
        message: format!(
            "{}: {}. Nothing in {} was changed: put the file back, or restore a backup (marigram \
             restore BACKUPS NEW_DIR)",
            file(dir).display(),
            error.message.trim_end_matches('.'),
            dir.display()
        ),
        ..error
    })
}

/// Opens the reference tables of the open data directory `dir`.
///
/// # Errors
/// If their file is damaged, or of a newer format.
pub(crate) fn open(
    env: &Env,
    engine: &Engine,
    dir: &Path,
    limit_bytes: usize,
) -> Result<ReferenceStore> {
    let store = ReferenceStore::open(&dir.join(REFERENCE_FOLDER), options(limit_bytes))
        .map_err(|error| advised(error, dir))?;
    if !store.exists() && has_reference_tables(env, dir)? {
        let error = ReferenceError {
            sqlstate: "XX001",
            message: NOTHING_THERE.to_owned(),
            detail: None,
            constraint: None,
            table: None,
            column: None,
        };
        return Err(advised(error, dir));
    }
    // A file that somebody has put there counts, too.
    let databases = engine.databases();
    let has_tables = |database: &String| !store.tables(database).is_empty();
    if databases.iter().any(has_tables) {
        engine.note_reference_tables()?;
    }
    // What a crash within DROP DATABASE left.
    for database in store.databases() {
        if !databases.contains(&database) {
            store
                .drop_database(&database)
                .map_err(|error| advised(error, dir))?;
        }
    }
    Ok(store)
}

/// Reads everything in the data directory, or folder of backups, `dir` and checks every checksum, and
/// the reference tables; calls `damage` with one message for each damaged place. Works on an open or
/// a closed directory. Changes nothing, except that SQLite tidies up after a crash.
///
/// # Errors
/// If `dir` is neither, or cannot be read at all.
pub fn verify(dir: impl AsRef<Path>, damage: &mut dyn FnMut(String)) -> Result<()> {
    let (dir, env) = (dir.as_ref(), Env::real());
    Engine::verify(&env, dir, damage)?;
    let path = file(dir);
    // A folder of backups has none: the copy there is checked like every other object. The engine has
    // told of one that is missing or empty, if it must exist.
    if std::fs::metadata(&path).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(());
    }
    let store = ReferenceStore::open(&dir.join(REFERENCE_FOLDER), ReferenceOptions::default());
    let found = match store {
        Ok(store) if store.exists() => store.verify(),
        // The engine has told of a damaged catalog.
        Ok(_) if has_reference_tables(&env, dir).unwrap_or_default() => {
            Ok(vec![NOTHING_THERE.to_owned()])
        }
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let places = found.unwrap_or_else(|error| vec![error.to_string()]);
    for place in places {
        damage(format!("{}: {place}", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_stay_within_their_part_of_the_memory_limit() {
        for limit in [32 << 20, 64 << 20, 512 << 20, 8_usize << 30] {
            let options = options(limit);
            let all = options.cache_bytes * (options.readers_max + 1);
            assert!(all <= (limit / 32).max(1 << 20), "{limit}: {all}");
            assert!((1..=16).contains(&options.readers_max));
        }
        assert_eq!(options(8 << 30).cache_bytes, 2 << 20);
    }
}
