//! Segments whose files are not what the manifest says, as far as a directory listing shows: a file
//! is missing, or has another length.
//!
//! It reads no file, so a directory of 100,000 segments opens as fast as before. Without this
//! check, the first query that needs such a segment would find out.

use crate::flush::LiveTables;
use marigram_manifest::{SegmentId, SegmentMeta};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Segments of a shard to report individually; of further ones, only the number is reported.
const TOLD_MAX: usize = 20;

/// The segments of `named` that have no file among `files` (number, length), or one with another
/// length. Logs each of them, up to a limit.
pub(crate) fn damaged<'a>(
    dir: &Path,
    named: impl Iterator<Item = &'a SegmentMeta>,
    files: &[(u64, u64)],
    live: &LiveTables,
) -> BTreeSet<SegmentId> {
    let lengths: HashMap<u64, u64> = files.iter().copied().collect();
    let mut damaged = BTreeSet::new();
    for meta in named {
        let found = lengths.get(&meta.id.0).copied();
        if found == Some(meta.bytes) {
            continue;
        }
        if damaged.len() < TOLD_MAX {
            tell(dir, meta, found, live);
        }
        damaged.insert(meta.id);
    }
    if damaged.len() > TOLD_MAX {
        let further = damaged.len() - TOLD_MAX;
        tracing::warn!(
            dir = %dir.display(),
            further,
            "more segments are missing or damaged"
        );
    }
    damaged
}

fn tell(dir: &Path, meta: &SegmentMeta, found: Option<u64>, live: &LiveTables) {
    let tables = meta.tables.iter().filter_map(|table| live.get(table));
    let tables: Vec<String> = tables
        .map(|schema| format!("{}.{}", schema.database, schema.name))
        .collect();
    let what = match found {
        None => "its file is missing".to_owned(),
        Some(length) => format!("its file has {length} bytes, not {}", meta.bytes),
    };
    tracing::warn!(
        segment = meta.id.0,
        dir = %dir.display(),
        tables = tables.join(", "),
        partition_start_ns = meta.partition.start_ns,
        partition_width_ns = meta.partition.width_ns,
        rows = meta.rows,
        "a segment is damaged: {what}; queries that need its rows will fail. Put the file back, or \
         restore a backup (marigram restore BACKUPS NEW_DIR); marigram verify DIR reports all damage"
    );
}
