//! What the rows of one file say as a whole: the range of their times, times that are hardly meant, and
//! tags that are missing. The plan alone does not know it, because it does not read the times.

use super::tables::NewTableColumns;
use crate::terminal;
use jiff::Timestamp;
use marigram_model::WriteBatch;
use std::collections::BTreeMap;
use std::fmt::Write;

/// 1980-01-01, in ns: clocks that were never set show times before it.
const EARLY_NS: i64 = 315_532_800_000_000_000;

/// Tables of a file that are shown one by one.
const TABLES_SHOWN: usize = 20;

/// The rows of one file, by their table.
#[derive(Debug)]
pub(crate) struct SeenRows {
    tables: BTreeMap<String, SeenTable>,
    now_ns: i64,
}

/// The rows of one file that go to one table.
#[derive(Debug)]
struct SeenTable {
    rows: u64,
    /// First and last time, ns.
    times: (i64, i64),
    /// The line of the first row.
    line: u64,
    early: SeenLines,
    future: SeenLines,
    tags: BTreeMap<String, SeenTag>,
}

/// How many rows have a tag.
#[derive(Debug, Default)]
struct SeenTag {
    rows: u64,
    /// The line of the first row without it.
    missing_line: Option<u64>,
}

/// Rows of a kind: their number, and the line and time of the first one.
#[derive(Debug, Default)]
struct SeenLines {
    rows: u64,
    first: Option<(u64, i64)>,
}

impl SeenLines {
    fn add(&mut self, line: u64, time: i64) {
        self.rows += 1;
        if self.first.is_none_or(|(first, _)| line < first) {
            self.first = Some((line, time));
        }
    }
}

impl SeenRows {
    /// Has seen no row yet. Times after `now_ns` are in the future.
    pub(crate) fn new(now_ns: i64) -> Self {
        Self {
            tables: BTreeMap::new(),
            now_ns,
        }
    }

    /// Adds the rows of a batch, and their lines; `known_tags` are those of the table, if it exists.
    pub(crate) fn add<'a>(
        &mut self,
        batch: &WriteBatch,
        lines: &[u64],
        known_tags: impl Iterator<Item = &'a str>,
    ) {
        let (Some(first), Some(last)) = (batch.times.iter().min(), batch.times.iter().max()) else {
            return;
        };
        let line = |row: usize| lines.get(row).copied().unwrap_or(0);
        let table = self
            .tables
            .entry(batch.table.clone())
            .or_insert_with(|| SeenTable {
                rows: 0,
                times: (*first, *last),
                line: line(0),
                early: SeenLines::default(),
                future: SeenLines::default(),
                tags: known_tags
                    .map(|tag| (tag.to_owned(), SeenTag::default()))
                    .collect(),
            });
        table.times = (table.times.0.min(*first), table.times.1.max(*last));
        for (row, time) in batch.times.iter().enumerate() {
            if *time < EARLY_NS {
                table.early.add(line(row), *time);
            } else if *time > self.now_ns {
                table.future.add(line(row), *time);
            }
        }
        table.add_tags(batch, &line);
        table.rows += batch.times.len() as u64;
    }

    /// What to show of the file: its times, or its tables if the plan did not name them.
    pub(super) fn describe(&self, name: Option<&str>, columns: Option<&NewTableColumns>) -> String {
        let mut text = String::new();
        for (at, (table, seen)) in self.tables.iter().enumerate() {
            if at == TABLES_SHOWN {
                let more = (self.tables.len() - TABLES_SHOWN) as u64;
                let _ = writeln!(text, "  … and {}", terminal::counted(more, "table"));
                break;
            }
            let times = format!("{} to {}", shown(seen.times.0), shown(seen.times.1));
            let of = name.map_or_else(String::new, |name| format!(" ({name})"));
            match columns.and_then(|columns| columns.get(table)) {
                None => {
                    let _ = writeln!(text, "  times   {times}{of}");
                }
                Some(columns) => {
                    let rows = terminal::counted(seen.rows, "row");
                    let _ = writeln!(text, "  table   {table}: {rows}, {times}{of}");
                    let _ = writeln!(text, "          {}", columns.describe());
                }
            }
        }
        text
    }

    /// What may be wrong: times that are hardly meant, and tags that are missing.
    pub(crate) fn notes(&self, name: Option<&str>) -> Vec<String> {
        let mut notes = Vec::new();
        for (table, seen) in &self.tables {
            let of = name.map_or_else(String::new, |name| format!(" of {name}"));
            let first = |lines: &SeenLines| {
                let (line, time) = lines.first.unwrap_or_default();
                format!("the first, in line {line}, is {}", shown(time))
            };
            let counted = |rows| terminal::counted(rows, "row");
            if seen.early.rows > 0 {
                notes.push(format!(
                    "{} of {}{of} have times before 1980: {}; clocks that were never set show such times",
                    terminal::count(seen.early.rows),
                    counted(seen.rows),
                    first(&seen.early)
                ));
            }
            if seen.future.rows > 0 {
                notes.push(format!(
                    "{} of {}{of} have times in the future: {}; check the unit, the zone and the order of \
                     the date",
                    terminal::count(seen.future.rows),
                    counted(seen.rows),
                    first(&seen.future)
                ));
            }
            for (tag, having) in &seen.tags {
                let missing = seen.rows - having.rows;
                if missing > 0 {
                    notes.push(format!(
                        "{} of {}{of} for table '{table}' have no value for the tag '{tag}' (the first is in \
                         line {}): they belong to a series without it",
                        terminal::count(missing),
                        counted(seen.rows),
                        having.missing_line.unwrap_or(seen.line)
                    ));
                }
            }
        }
        notes
    }
}

impl SeenTable {
    /// Counts the rows that have each tag.
    fn add_tags(&mut self, batch: &WriteBatch, line: &dyn Fn(usize) -> u64) {
        for tag in &batch.tags {
            let has_value: Vec<bool> = (0..batch.slot_count)
                .map(|slot| tag.value(slot).is_some())
                .collect();
            // Rows above that had no such column lack it.
            let missing_line = (self.rows > 0).then_some(self.line);
            let seen = self.tags.entry(tag.name.clone()).or_insert(SeenTag {
                rows: 0,
                missing_line,
            });
            for (row, slot) in batch.slots.iter().enumerate() {
                if has_value[*slot as usize] {
                    seen.rows += 1;
                } else {
                    let first = seen.missing_line.unwrap_or(u64::MAX);
                    seen.missing_line = Some(first.min(line(row)));
                }
            }
        }
        for (name, seen) in &mut self.tags {
            if !batch.tags.iter().any(|tag| tag.name == *name) {
                seen.missing_line.get_or_insert(line(0));
            }
        }
    }
}

/// A time, for people.
fn shown(ns: i64) -> String {
    Timestamp::from_nanosecond(i128::from(ns))
        .map_or_else(|_| ns.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use marigram_model::BatchTag;
    use std::sync::Arc;

    const NOW_NS: i64 = 1_700_000_000_000_000_000;

    fn batch(times: Vec<i64>, sites: Option<&[Option<&str>]>) -> WriteBatch {
        let tag = |values: &[Option<&str>]| BatchTag {
            name: "site".into(),
            values: Arc::new(StringArray::from(values.to_vec())) as ArrayRef,
        };
        let rows = u32::try_from(times.len()).unwrap();
        WriteBatch {
            table: "m".into(),
            tags: sites.map(tag).into_iter().collect(),
            slot_count: times.len(),
            slots: (0..rows).collect(),
            times: Int64Array::from(times).values().clone(),
            fields: Vec::new(),
        }
    }

    #[test]
    fn rows_without_a_tag_are_counted_over_all_batches() {
        let (mut seen, now) = (SeenRows::new(NOW_NS), NOW_NS);
        seen.add(
            &batch(vec![now - 5, now - 3], None),
            &[2, 3],
            std::iter::empty(),
        );
        let sites = [Some("a"), None];
        seen.add(
            &batch(vec![now - 2, now - 1], Some(&sites)),
            &[4, 5],
            std::iter::empty(),
        );
        let notes = seen.notes(None);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("3 of 4 rows"), "{}", notes[0]);
        assert!(
            notes[0].contains("'site' (the first is in line 2)"),
            "{}",
            notes[0]
        );
        let mut seen = SeenRows::new(NOW_NS);
        seen.add(&batch(vec![now], None), &[9], ["plant"].into_iter());
        let notes = seen.notes(Some("f.csv"));
        assert!(notes[0].starts_with("1 of 1 row of f.csv"), "{}", notes[0]);
        assert!(
            notes[0].contains("'plant' (the first is in line 9)"),
            "{}",
            notes[0]
        );
    }

    #[test]
    fn times_that_are_hardly_meant_are_noted() {
        let mut seen = SeenRows::new(NOW_NS);
        let times = vec![0, seen.now_ns - 1, seen.now_ns + 3_600_000_000_000];
        seen.add(&batch(times, None), &[7, 8, 9], std::iter::empty());
        let notes = seen.notes(None);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("before 1980: the first, in line 7, is 1970-01-01T00:00:00Z"));
        assert!(notes[1].contains("1 of 3 rows have times in the future: the first, in line 9"));
        assert!(
            seen.describe(None, None)
                .starts_with("  times   1970-01-01T00:00:00Z to 20")
        );
    }
}
