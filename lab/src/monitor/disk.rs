//! Disk space that a database occupies.

use anyhow::{Context, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of all files under `dir`, without their holes. Files and folders that disappear meanwhile
/// count nothing.
pub fn folder_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        bytes += if metadata.is_dir() {
            match folder_bytes(&entry.path()) {
                Err(_) if !entry.path().exists() => 0,
                counted => counted?,
            }
        } else {
            // Files that are allocated ahead have holes, which occupy no space.
            metadata.len().min(metadata.blocks() * 512)
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_folder_is_as_large_as_what_was_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        std::fs::write(inner.join("three"), b"abc").expect("a file");
        let hole = File::create(dir.path().join("hole")).expect("a file");
        hole.set_len(1 << 20).expect("a length");
        assert_eq!(folder_bytes(dir.path()).expect("a size"), 3);
        folder_bytes(&dir.path().join("nothing")).expect_err("no folder");
    }
}
