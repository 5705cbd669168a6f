//! Shows one segment: its row groups, the size of each column, and its pages.

use super::CatalogNames;
use crate::terminal::{self, TextStyle, styled};
use anyhow::Result;
use marigram_env::LogStore;
use marigram_model::{ColumnId, FieldValue, TableId};
use marigram_segment::{PageMeta, PageStats, Segment};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The size of a column, over pages.
#[derive(Debug, Default)]
pub(super) struct ColumnSize {
    /// Pages.
    pub pages: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes of the values before encoding.
    pub raw_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Rows that are null.
    pub nulls: u64,
    /// Minimum and maximum; `None` if a page does not record them.
    pub extremes: MinMaxValues,
    /// Encodings and compressors in use.
    pub encodings: BTreeSet<String>,
}

/// Minimum and maximum over pages.
#[derive(Debug, Default)]
pub(super) struct MinMaxValues {
    range: Option<(FieldValue, FieldValue)>,
    /// Whether a page with values omits its extremes, as pages with long texts do.
    is_open: bool,
}

impl MinMaxValues {
    fn add(&mut self, page: &PageMeta) {
        let stats = &page.stats;
        let Some((min, max)) = stats.min.as_ref().zip(stats.max.as_ref()) else {
            self.is_open |= stats.nulls < page.rows;
            return;
        };
        let (low, high) = self.range.get_or_insert_with(|| (min.clone(), max.clone()));
        if compare(min, low) == Ordering::Less {
            *low = min.clone();
        }
        if compare(max, high) == Ordering::Greater {
            *high = max.clone();
        }
    }

    fn show(&self, is_time: bool) -> String {
        match &self.range {
            Some((min, max)) if !self.is_open => {
                let (min, max) = (shown(min, is_time), shown(max, is_time));
                format!("{min} to {max}")
            }
            _ => String::new(),
        }
    }
}

/// The order of values of one type in page statistics.
fn compare(a: &FieldValue, b: &FieldValue) -> Ordering {
    match (a, b) {
        (FieldValue::Bool(a), FieldValue::Bool(b)) => a.cmp(b),
        (FieldValue::I32(a), FieldValue::I32(b)) => a.cmp(b),
        (FieldValue::I64(a), FieldValue::I64(b))
        | (FieldValue::Timestamp(a), FieldValue::Timestamp(b)) => a.cmp(b),
        (FieldValue::U64(a), FieldValue::U64(b)) => a.cmp(b),
        (FieldValue::F32(a), FieldValue::F32(b)) => a.total_cmp(b),
        (FieldValue::F64(a), FieldValue::F64(b)) => a.total_cmp(b),
        (FieldValue::String(a), FieldValue::String(b)) => a.cmp(b),
        (FieldValue::Bytes(a), FieldValue::Bytes(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}

/// Adds the sizes of a segment's columns.
pub(super) fn add_sizes(
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
                size.nulls += u64::from(page.stats.nulls);
                size.extremes.add(page);
                let info = segment.page_info(at, column, number)?;
                size.raw_bytes += u64::from(info.raw_bytes);
                size.encodings.insert(info.form());
            }
        }
    }
    Ok(())
}

/// Prints the sizes of columns.
pub(super) fn print_sizes(sizes: &BTreeMap<(TableId, ColumnId), ColumnSize>, names: &CatalogNames) {
    let mut last = None;
    for ((table, column), size) in sizes {
        if last != Some(*table) {
            outln!("  {}", styled(TextStyle::Bold, &names.table(*table)));
            last = Some(*table);
        }
        let encodings: Vec<&str> = size.encodings.iter().map(String::as_str).collect();
        let mut values = size.extremes.show(*column == ColumnId::TIME);
        if size.nulls > 0 {
            let nulls = terminal::counted(size.nulls, "null");
            let separator = if values.is_empty() { "" } else { ", " };
            values = [&values, separator, &nulls].concat();
        }
        outln!(
            "    {:<24} {:>12} {:>10}  {:>6.2} bytes a row ({:.1} raw)  {}  {values}",
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
pub(super) fn show(
    fs: &Arc<dyn LogStore>,
    path: &Path,
    names: &CatalogNames,
    with_pages: bool,
) -> Result<()> {
    let segment = super::open_segment(fs, path)?;
    let summary = segment.summary();
    outln!("{}", styled(TextStyle::Bold, &path.display().to_string()));
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

fn print_pages(segment: &Segment, names: &CatalogNames) -> Result<()> {
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
                    "    {number:>4}: byte {:>10} +{:<7} rows {:>8} +{:<6} {:<24} {:>7} raw  {}",
                    page.offset,
                    page.bytes,
                    page.first_row,
                    page.rows,
                    info.form(),
                    info.raw_bytes,
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
        first,
        last,
    } = &page.stats;
    let value = |value: &Option<FieldValue>| match value {
        Some(value) => shown(value, is_time),
        None => "?".to_owned(),
    };
    let mut text = format!("{} to {}", value(min), value(max));
    if *nulls > 0 {
        text += ", ";
        text += &terminal::counted(u64::from(*nulls), "null");
    }
    if let Some(sum) = sum.as_ref().filter(|_| !is_time) {
        text += ", sum ";
        text += &terminal::field_value(sum);
    }
    for (name, end) in [("first", first), ("last", last)] {
        if let Some((time, value)) = end.as_ref().filter(|_| !is_time) {
            let (value, time) = (terminal::field_value(value), terminal::time(*time));
            text += &[", ", name, " ", &value, " at ", &time].concat();
        }
    }
    text
}

fn shown(value: &FieldValue, is_time: bool) -> String {
    match value {
        FieldValue::I64(ns) if is_time => terminal::time(*ns),
        value => terminal::field_value(value),
    }
}
