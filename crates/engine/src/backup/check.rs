//! Verifies a folder of backups: every record, and every byte that a record names.

use super::folder::BackupFolder;
use super::record::{ObjectDigest, ObjectPiece};
use crate::error::Result;
use marigram_env::Env;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads all backups of a folder, and calls `damage` with one message for each damaged place.
/// Changes nothing.
///
/// # Errors
/// If `dir` is not a folder of backups, or cannot be read at all.
pub(crate) fn verify(env: &Env, dir: &Path, damage: &mut dyn FnMut(String)) -> Result<()> {
    let folder = BackupFolder::open(env, dir)?;
    // Each object is read once, however many backups name it.
    let mut named: BTreeMap<ObjectDigest, (ObjectPiece, Vec<u64>)> = BTreeMap::new();
    for number in folder.numbers()? {
        match folder.record(number) {
            Err(error) => damage(format!("backup {number} is lost: {error}")),
            Ok(record) => {
                for piece in record.files.iter().flat_map(|file| &file.pieces) {
                    let (_, numbers) = named.entry(piece.digest).or_insert((*piece, Vec::new()));
                    if numbers.last() != Some(&number) {
                        numbers.push(number);
                    }
                }
            }
        }
    }
    for (piece, numbers) in named.into_values() {
        if let Err(error) = folder.fetch(piece, |_| Ok(())) {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            damage(format!(
                "{error}; backups that need it: {}",
                numbers.join(", ")
            ));
        }
    }
    Ok(())
}
