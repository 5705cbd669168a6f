//! Detects rows that share their tags and time with an earlier row, of the same statement or stored
//! before: the later row replaces the earlier one, and the client is told.
//!
//! Rows mostly arrive in order of time, so the times of a series are a sorted list to which the next
//! time is appended; late times go into a set. Beyond [`KEYS_MAX`] rows, only the last time of each
//! series is known: it suffices to compare rows in order, and the others are counted as not
//! compared. The engine finds the rows that replace stored ones; beyond [`SCANNED_MAX`] stored rows
//! of a statement it reads no more, and the notice says "at least".

use marigram_engine::ReplacedCount;
use marigram_model::TableSchema;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};

/// The number of rows whose keys are remembered: about 16 MiB.
const KEYS_MAX: usize = 1 << 20;
/// The largest number of series to compare; rows of others count as not compared.
const SERIES_MAX: usize = 1 << 18;

/// The largest number of stored rows to read for one statement.
const SCANNED_MAX: u64 = 1 << 20;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct ReplacedRows {
    /// The key of a series consists of two hashes, so that no two series share one.
    hashers: [RandomState; 2],
    series: HashMap<(u64, u64), SeriesNumber>,
    times: Vec<SeriesTimes>,
    keys: usize,
    rows: u64,
    replaced: u64,
    not_compared: u64,
    /// How many of `replaced` were stored before their part of the statement.
    stored: u64,
    scanned: u64,
    /// Whether some rows were not compared with stored ones.
    is_partial: bool,
}

/// Number of a series of a statement, in the order of their first rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeriesNumber(u32);

#[derive(Debug)]
struct SeriesTimes {
    /// The last time; nothing before the first row.
    last: Option<i64>,
    /// Ascending.
    in_order: Vec<i64>,
    late: HashSet<i64>,
    /// Whether these two fields contain all times.
    is_complete: bool,
}

impl ReplacedRows {
    /// How many stored rows may still be read.
    pub(crate) fn scanned_max(&self) -> u64 {
        SCANNED_MAX.saturating_sub(self.scanned)
    }

    /// Records what was read for some rows; `None` if reading failed.
    pub(crate) fn note_scan(&mut self, stored: Option<&ReplacedCount>) {
        match stored {
            Some(stored) => {
                self.scanned += stored.scanned;
                self.is_partial |= stored.is_partial;
            }
            None => self.is_partial = true,
        }
    }

    /// The series with the key of its tags; `None` beyond the number of series that are compared.
    pub(crate) fn series(&mut self, tags: &[u8]) -> Option<SeriesNumber> {
        let key = self.hashers.each_ref().map(|hasher| hasher.hash_one(tags));
        let known = self.series.len();
        match self.series.entry((key[0], key[1])) {
            Entry::Occupied(entry) => Some(*entry.get()),
            Entry::Vacant(_) if known >= SERIES_MAX => None,
            Entry::Vacant(entry) => {
                self.times.push(SeriesTimes {
                    last: None,
                    in_order: Vec::new(),
                    late: HashSet::new(),
                    is_complete: true,
                });
                Some(*entry.insert(SeriesNumber(known as u32)))
            }
        }
    }

    /// Records a row by its series and its time, ns, and whether it met a stored one.
    pub(crate) fn note(&mut self, series: Option<SeriesNumber>, time: i64, is_stored: bool) {
        self.rows += 1;
        let before = (self.replaced, self.not_compared);
        match series {
            Some(series) => self.compare(series, time),
            None => self.not_compared += 1,
        }
        if is_stored {
            // Rows of earlier parts of the statement are stored as well: each row counts once.
            let in_statement = self.replaced > before.0;
            (self.replaced, self.not_compared) = (before.0 + 1, before.1);
            self.stored += u64::from(!in_statement);
        }
    }

    /// Compares a row with the earlier ones of the statement.
    fn compare(&mut self, series: SeriesNumber, time: i64) {
        let remembers = self.keys < KEYS_MAX;
        let times = &mut self.times[series.0 as usize];
        if times.last.is_none_or(|last| time > last) {
            times.last = Some(time);
            if remembers {
                times.in_order.push(time);
                self.keys += 1;
            } else {
                times.is_complete = false;
            }
        } else if Some(time) == times.last
            || times.in_order.binary_search(&time).is_ok()
            || times.late.contains(&time)
        {
            self.replaced += 1;
        } else if times.is_complete && remembers {
            times.late.insert(time);
            self.keys += 1;
        } else {
            self.not_compared += 1;
        }
    }

    /// The notice for the client; `None` if no row was replaced.
    pub(crate) fn notice(&self, schema: &TableSchema) -> Option<String> {
        if self.replaced == 0 && self.not_compared == 0 && !self.is_partial {
            return None;
        }
        let (rows, replaced) = (self.rows, self.replaced);
        let key = if schema.tags.is_empty() {
            format!(
                "time; table '{}' has no TAG column, so that it keeps one row for each time",
                schema.name
            )
        } else {
            let tags: Vec<&str> = schema.tags.iter().map(|tag| tag.name.as_str()).collect();
            format!("time and the same tags ({})", tags.join(", "))
        };
        let of = if self.stored > 0 {
            ""
        } else {
            " of this statement"
        };
        let least = if self.is_partial { "at least " } else { "" };
        let mut notice = match replaced {
            0 => String::new(),
            1 => format!("{least}1 of {rows} rows replaced an earlier one{of} with the same {key}"),
            _ => format!(
                "{least}{replaced} of {rows} rows replaced earlier ones{of} with the same {key}"
            ),
        };
        if self.is_partial && replaced == 0 {
            notice = format!(
                "some of {rows} rows may have replaced earlier ones with the same {key}: they were \
                 not compared with all stored rows"
            );
        }
        if self.not_compared > 0 {
            if !notice.is_empty() {
                notice.push_str("; ");
            }
            let _ = write!(
                notice,
                "{} of {rows} rows arrived too late to be compared with all earlier ones, and \
                 may have replaced some",
                self.not_compared
            );
        }
        Some(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_series_and_time_are_counted_in_any_order() {
        let mut rows = ReplacedRows::default();
        for (tags, time) in [
            ("a", 5),
            ("b", 5),
            ("a", 7),
            ("a", 7),
            ("a", 5),
            ("a", 6),
            ("a", 6),
            ("b", 4),
            ("b", 4),
            ("", 5),
        ] {
            let series = rows.series(tags.as_bytes());
            rows.note(series, time, false);
        }
        assert_eq!((rows.rows, rows.replaced, rows.not_compared), (10, 4, 0));
    }

    #[test]
    fn what_is_not_remembered_is_said_not_to_be_compared() {
        let mut rows = ReplacedRows::default();
        let many = KEYS_MAX as i64 + 10;
        let (a, b) = (rows.series(b"a"), rows.series(b"b"));
        (0..many).for_each(|time| rows.note(a, 10 * time, false));
        assert_eq!((rows.replaced, rows.not_compared), (0, 0));
        rows.note(a, 10 * (many - 1), false);
        rows.note(a, 10, false);
        rows.note(a, 10 * (many - 3), false);
        rows.note(a, 11, false);
        assert_eq!((rows.replaced, rows.not_compared), (2, 2));
        (0..10).for_each(|_| rows.note(b, 3, false));
        assert_eq!((rows.replaced, rows.not_compared), (11, 2));
        assert!(rows.keys <= KEYS_MAX + 2);
    }

    #[test]
    fn a_row_that_met_a_stored_one_counts_once() {
        let mut rows = ReplacedRows::default();
        for (time, is_stored) in [(1, false), (2, true), (2, true), (2, false), (3, true)] {
            let series = rows.series(b"a");
            rows.note(series, time, is_stored);
        }
        assert_eq!((rows.rows, rows.replaced, rows.stored), (5, 4, 2));
        assert_eq!(rows.scanned_max(), SCANNED_MAX);
        rows.note_scan(Some(&ReplacedCount {
            rows: vec![],
            is_partial: false,
            scanned: SCANNED_MAX + 1,
        }));
        assert_eq!((rows.scanned_max(), rows.is_partial), (0, false));
        rows.note_scan(None);
        assert!(rows.is_partial);
    }
}
