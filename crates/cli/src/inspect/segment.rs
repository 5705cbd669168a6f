//! One segment: its row groups, what each column takes, and its pages.

use super::Names;
use crate::terminal::{self, Style, styled};
use anyhow::Result;
use marigram_env::FileSystem;
use marigram_model::{ColumnId, FieldValue, TableId};
use marigram_segment::{PageMeta, PageStats, Segment};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What a column takes, over pages.
#[derive(Debug, Default)]
pub struct ColumnSize {
    /// Pages.
    pub pages: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes of the values before encoding.
    pub raw_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Encodings and compressors in use.
    pub encodings: BTreeSet<String>,
}

/// Adds what the columns of a segment take.
pub fn add_sizes(
    segment: &Segment,
    sizes: &mut BTreeMap<(TableId, ColumnId), ColumnSize>,
) -> Result<()> {
    for (at, group) in segment.row_groups().iter().enumerate() {
        let fields = group.columns.iter().map(|column| column.id);
        for column in std::iter::once(ColumnId::TIME).chain(fields) {
            let Some(pages) = segment.pages(at, column)? else {
                continue;
            };
            let size = sizes.entry((group.table, column)).or_default();
            for (number, page) in pages.iter().enumerate() {
                size.pages += 1;
                size.bytes += u64::from(page.bytes);
                size.rows += u64::from(page.rows);
                let info = segment.page_info(at, column, number)?;
                size.raw_bytes += u64::from(info.raw_bytes);
                size.encodings
                    .insert(code(&info.encoding, &info.compressor));
            }
        }
    }
    Ok(())
}

fn code(encoding: &str, compressor: &str) -> String {
    let bare = compressor.eq_ignore_ascii_case("uncompressed") || compressor.is_empty();
    if bare {
        encoding.to_owned()
    } else {
        format!("{encoding}+{compressor}")
    }
}

/// Prints what columns take.
pub fn print_sizes(sizes: &BTreeMap<(TableId, ColumnId), ColumnSize>, names: &Names) {
    let mut last = None;
    for ((table, column), size) in sizes {
        if last != Some(*table) {
            outln!("  {}", styled(Style::Bold, &names.table(*table)));
            last = Some(*table);
        }
        let encodings: Vec<&str> = size.encodings.iter().map(String::as_str).collect();
        outln!(
            "    {:<24} {:>12} {:>10}  {:>6.2} bytes a row ({:.1} raw)  {}",
            names.column(*table, *column),
            terminal::counted(size.pages, "page"),
            terminal::bytes(size.bytes),
            size.bytes as f64 / size.rows.max(1) as f64,
            size.raw_bytes as f64 / size.rows.max(1) as f64,
            encodings.join(" ")
        );
    }
}

/// Prints a segment.
pub fn show(fs: &Arc<dyn FileSystem>, path: &Path, names: &Names, with_pages: bool) -> Result<()> {
    let segment = Segment::open(fs, path)?;
    let summary = segment.summary();
    outln!("{}", styled(Style::Bold, &path.display().to_string()));
    outln!(
        "  {}, {} ({:.2} bytes a row), {} to {}, series {} to {}",
        terminal::counted(summary.rows, "row"),
        terminal::bytes(summary.bytes),
        summary.bytes as f64 / summary.rows.max(1) as f64,
        terminal::time(summary.range.min),
        terminal::time(summary.range.max),
        summary.series_min,
        summary.series_max
    );
    for (at, group) in segment.row_groups().iter().enumerate() {
        outln!(
            "  row group {at}: {}, {}, {} series, {} to {}",
            names.table(group.table),
            terminal::counted(u64::from(group.rows), "row"),
            terminal::count(segment.directory(at)?.len() as u64),
            terminal::time(group.range.min),
            terminal::time(group.range.max)
        );
    }
    outln!("columns");
    let mut sizes = BTreeMap::new();
    add_sizes(&segment, &mut sizes)?;
    print_sizes(&sizes, names);
    if with_pages {
        outln!("pages");
        print_pages(&segment, names)?;
    }
    Ok(())
}

fn print_pages(segment: &Segment, names: &Names) -> Result<()> {
    for (at, group) in segment.row_groups().iter().enumerate() {
        let fields = group.columns.iter().map(|column| column.id);
        for column in std::iter::once(ColumnId::TIME).chain(fields) {
            let Some(pages) = segment.pages(at, column)? else {
                continue;
            };
            outln!("  row group {at}, {}", names.column(group.table, column));
            for (number, page) in pages.iter().enumerate() {
                let info = segment.page_info(at, column, number)?;
                outln!(
                    "    {number:>4}: byte {:>10} +{:<7} rows {:>8} +{:<6} {:<24} {} -> {}  {}",
                    page.offset,
                    page.bytes,
                    page.first_row,
                    page.rows,
                    code(&info.encoding, &info.compressor),
                    info.raw_bytes,
                    info.encoded_bytes,
                    describe(page, column == ColumnId::TIME)
                );
            }
        }
    }
    Ok(())
}

fn describe(page: &PageMeta, is_time: bool) -> String {
    let PageStats {
        nulls,
        min,
        max,
        sum,
        ..
    } = &page.stats;
    let value = |value: &Option<FieldValue>| match value {
        Some(FieldValue::I64(ns)) if is_time => terminal::time(*ns),
        Some(value) => show_value(value),
        None => "?".to_owned(),
    };
    let mut text = format!("{} to {}", value(min), value(max));
    if *nulls > 0 {
        text += ", ";
        text += &terminal::counted(u64::from(*nulls), "null");
    }
    if let Some(sum) = sum.as_ref().filter(|_| !is_time) {
        text += ", sum ";
        text += &show_value(sum);
    }
    text
}

fn show_value(value: &FieldValue) -> String {
    match value {
        FieldValue::Bool(v) => v.to_string(),
        FieldValue::I32(v) => v.to_string(),
        FieldValue::I64(v) => v.to_string(),
        FieldValue::U64(v) => v.to_string(),
        FieldValue::F32(v) => v.to_string(),
        FieldValue::F64(v) => v.to_string(),
        FieldValue::String(v) => format!("{v:?}"),
        FieldValue::Bytes(v) => format!("{} bytes", v.len()),
        FieldValue::Timestamp(v) => terminal::time(*v),
    }
}
