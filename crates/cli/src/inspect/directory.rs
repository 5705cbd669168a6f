//! Shows a data directory: databases and tables, shards and their segments, and the size of
//! columns.

use super::{CatalogNames, segment};
use crate::terminal::{self, TextStyle, styled};
use anyhow::{Context, Result};
use marigram_env::LogStore;
use marigram_manifest::{Catalog, Manifest, SegmentMeta, SegmentSpace};
use marigram_model::{ColdCodec, ColumnCodec, SeriesIdentity, TableOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prints a data directory.
pub(super) fn show(fs: &Arc<dyn LogStore>, dir: &Path, all_segments: bool) -> Result<()> {
    let catalog = Catalog::read(fs.as_ref(), dir).context("the catalog cannot be read")?;
    let names = CatalogNames(Some(catalog));
    let (files, bytes) = crate::verify::size(dir);
    outln!(
        "{}: {} in {}",
        styled(TextStyle::Bold, &dir.display().to_string()),
        terminal::bytes(bytes),
        terminal::counted(files, "file")
    );
    print_tables(&names);
    outln!("{}", styled(TextStyle::Bold, "shards"));
    let mut sizes = BTreeMap::new();
    for shard in shards(dir)? {
        show_shard(fs, &shard, &names, all_segments, &mut sizes);
    }
    if !sizes.is_empty() {
        outln!("{}", styled(TextStyle::Bold, "columns in segments"));
        segment::print_sizes(&sizes, &names);
    }
    Ok(())
}

fn print_tables(names: &CatalogNames) {
    let Some(catalog) = &names.0 else { return };
    for database in catalog.databases.keys() {
        outln!("{} {database}", styled(TextStyle::Bold, "database"));
        for table in catalog
            .tables
            .values()
            .filter(|table| table.database == *database)
        {
            let ttl = table
                .options
                .ttl_ns
                .map_or_else(|| "for ever".to_owned(), span_ns);
            outln!(
                "  {} (table {}): partitions of {}, kept {ttl}{}",
                styled(TextStyle::Bold, &table.name),
                table.id,
                span_ns(table.options.partition_ns),
                storage(&table.options)
            );
            let time = format!("{} TIMESTAMP TIME", table.time_name);
            let tags = table
                .tags
                .iter()
                .map(|tag| format!("{} {} TAG", tag.name, tag.kind));
            let fields = table
                .fields
                .iter()
                .map(|field| format!("{} {}{}", field.name, field.kind, codec(field.codec)));
            let columns: Vec<String> = std::iter::once(time).chain(tags).chain(fields).collect();
            outln!("    {}", columns.join(", "));
        }
    }
}

/// Page size, and storage settings that are not the default.
fn storage(options: &TableOptions) -> String {
    let codec = codec(ColumnCodec {
        encoding: options.encoding,
        compressor: options.compressor,
    });
    let page = if options.page_bytes.is_multiple_of(1024) {
        format!("{} KiB", options.page_bytes / 1024)
    } else {
        terminal::counted(options.page_bytes.into(), "byte")
    };
    let mut text = format!(", pages of {page}{codec}");
    if options.cold_codec != ColdCodec::default() {
        text += ", cold codec ";
        text += options.cold_codec.name();
    }
    if options.identity != SeriesIdentity::default() {
        text += ", series identity ";
        text += options.identity.name();
    }
    text
}

/// The encoding and compressor that a column or table sets.
fn codec(codec: ColumnCodec) -> String {
    let encoding = codec.encoding.map(|name| format!(" {}", name.name()));
    let compressor = codec.compressor.map(|name| format!(" {}", name.name()));
    encoding.unwrap_or_default() + &compressor.unwrap_or_default()
}

fn span_ns(ns: i64) -> String {
    let ns = ns.unsigned_abs();
    for (unit, size) in [("day", 86_400_000_000_000), ("hour", 3_600_000_000_000)] {
        if ns.is_multiple_of(size) {
            return terminal::counted(ns / size, unit);
        }
    }
    terminal::counted(ns / 60_000_000_000, "minute")
}

fn shards(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut shards: Vec<PathBuf> = std::fs::read_dir(dir.join("shards"))
        .context("the shards cannot be listed")?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    shards.sort();
    Ok(shards)
}

type ColumnSizes =
    BTreeMap<(marigram_model::TableId, marigram_model::ColumnId), segment::ColumnSize>;

fn show_shard(
    fs: &Arc<dyn LogStore>,
    shard: &Path,
    names: &CatalogNames,
    all_segments: bool,
    sizes: &mut ColumnSizes,
) {
    let name = shard
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into());
    let state = match Manifest::read(fs.as_ref(), shard) {
        Ok(state) => state,
        Err(error) => {
            outln!("  {name}: {error}");
            return;
        }
    };
    let rows: u64 = state.segments.values().map(|segment| segment.rows).sum();
    let bytes: u64 = state.segments.values().map(|segment| segment.bytes).sum();
    let late = state
        .segments
        .values()
        .filter(|s| s.space == SegmentSpace::Unsequence)
        .count() as u64;
    let (wal_files, wal_bytes) = crate::verify::size(&shard.join("wal"));
    outln!(
        "  {name}: {} in {} ({late} of late rows), {}, {:.2} bytes a row; WAL {} in {}; {}",
        terminal::counted(rows, "row"),
        terminal::counted(state.segments.len() as u64, "segment"),
        terminal::bytes(bytes),
        bytes as f64 / rows.max(1) as f64,
        terminal::bytes(wal_bytes),
        terminal::counted(wal_files, "file"),
        terminal::counted(state.tombstones.len() as u64, "tombstone")
    );
    for meta in state.segments.values() {
        let path = shard
            .join("segments")
            .join(format!("{:010}.seg", meta.id.0));
        if all_segments {
            print_segment(meta, names);
        }
        let added =
            super::open_segment(fs, &path).and_then(|segment| segment::add_sizes(&segment, sizes));
        if let Err(error) = added {
            outln!("    {error:#}");
        }
    }
}

fn print_segment(meta: &SegmentMeta, names: &CatalogNames) {
    let space = match meta.space {
        SegmentSpace::Sequence => "sequence",
        SegmentSpace::Unsequence => "unsequence",
    };
    let tables: Vec<String> = meta
        .tables
        .iter()
        .map(|table| names.table(*table))
        .collect();
    outln!(
        "    {:010}.seg {space:<10} level {} {:>12} {:>9}  {} to {}  {}",
        meta.id.0,
        meta.level,
        terminal::counted(meta.rows, "row"),
        terminal::bytes(meta.bytes),
        terminal::time(meta.range.min),
        terminal::time(meta.range.max),
        tables.join(" ")
    );
}
