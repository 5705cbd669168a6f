//! Detects rows of one statement that share their tags and time: the later row replaces the earlier
//! one, and the client is told.
//!
//! Rows mostly arrive in order of time, so the times of a series are a sorted list to which the next
//! time is appended; late times go into a set. Beyond [`KEYS_MAX`] rows, only the last time of each
//! series is known: it suffices to compare rows in order, and the others are counted as not
//! compared.

use marigram_model::TableSchema;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};

/// The number of rows whose keys are remembered: about 16 MiB.
const KEYS_MAX: usize = 1 << 20;
/// The largest number of series to compare; rows of others count as not compared.
const SERIES_MAX: usize = 1 << 18;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct ReplacedRows {
    /// The key of a series consists of two hashes, so that no two series share one.
    hashers: [RandomState; 2],
    series: HashMap<(u64, u64), SeriesTimes>,
    keys: usize,
    rows: u64,
    replaced: u64,
    not_compared: u64,
}

#[derive(Debug)]
struct SeriesTimes {
    last: i64,
    /// Ascending.
    in_order: Vec<i64>,
    late: HashSet<i64>,
    /// Whether these two fields contain all times.
    is_complete: bool,
}

impl ReplacedRows {
    /// Records a row by the key of its tags and its time, ns.
    pub fn note(&mut self, tags: &[u8], time: i64) {
        self.rows += 1;
        let key = self.hashers.each_ref().map(|hasher| hasher.hash_one(tags));
        let known = self.series.len();
        let remembers = self.keys < KEYS_MAX;
        let times = match self.series.entry((key[0], key[1])) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                if known >= SERIES_MAX {
                    self.not_compared += 1;
                    return;
                }
                entry.insert(SeriesTimes {
                    last: time,
                    in_order: if remembers { vec![time] } else { Vec::new() },
                    late: HashSet::new(),
                    is_complete: remembers,
                });
                self.keys += 1;
                return;
            }
        };
        if time > times.last {
            times.last = time;
            if remembers {
                times.in_order.push(time);
                self.keys += 1;
            } else {
                times.is_complete = false;
            }
        } else if time == times.last
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
    pub fn notice(&self, schema: &TableSchema) -> Option<String> {
        if self.replaced == 0 && self.not_compared == 0 {
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
        let mut notice = match replaced {
            0 => String::new(),
            1 => format!(
                "1 of {rows} rows replaced an earlier one of this statement with the same {key}"
            ),
            _ => format!(
                "{replaced} of {rows} rows replaced earlier ones of this statement with the same {key}"
            ),
        };
        if self.not_compared > 0 {
            if replaced > 0 {
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
            rows.note(tags.as_bytes(), time);
        }
        assert_eq!((rows.rows, rows.replaced, rows.not_compared), (10, 4, 0));
    }

    #[test]
    fn what_is_not_remembered_is_said_not_to_be_compared() {
        let mut rows = ReplacedRows::default();
        let many = KEYS_MAX as i64 + 10;
        (0..many).for_each(|time| rows.note(b"a", 10 * time));
        assert_eq!((rows.replaced, rows.not_compared), (0, 0));
        rows.note(b"a", 10 * (many - 1));
        rows.note(b"a", 10);
        rows.note(b"a", 10 * (many - 3));
        rows.note(b"a", 11);
        assert_eq!((rows.replaced, rows.not_compared), (2, 2));
        (0..10).for_each(|_| rows.note(b"b", 3));
        assert_eq!((rows.replaced, rows.not_compared), (11, 2));
        assert!(rows.keys <= KEYS_MAX + 2);
    }
}
