//! Infers which columns are tags if the user does not say: those that distinguish rows of the same
//! time.

use std::collections::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Names of identity columns, as the whole name or its last word.
const IDENTITIES: [&str; 37] = [
    "id",
    "device",
    "sensor",
    "station",
    "site",
    "unit",
    "host",
    "hostname",
    "machine",
    "meter",
    "plant",
    "truck",
    "vehicle",
    "serial",
    "node",
    "tag",
    "channel",
    "location",
    "room",
    "line",
    "metric",
    "measurement",
    "point",
    "asset",
    "dev",
    "name",
    "uuid",
    "mac",
    "imei",
    "symbol",
    "ticker",
    "server",
    "instance",
    "pump",
    "gerät",
    "anlage",
    "key",
];

/// Whether a column's name is that of a channel, which whole numbers may count. It is a weaker sign than an
/// identity's: a column with such a name is proposed as a tag, and not made one.
pub fn is_channel(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    [
        "ch", "chan", "channel", "kanal", "canal", "canale", "kanaal",
    ]
    .contains(&name.as_str())
}

/// Whether a column's name suggests an identity: `device`, `Device ID`, `sensor_id`, `deviceId`.
pub fn is_identity(name: &str) -> bool {
    let lower = name.trim().to_lowercase();
    let last = lower
        .rsplit(['_', ' ', '-', '.', '/'])
        .next()
        .unwrap_or(&lower);
    IDENTITIES.contains(&last) || name.trim().ends_with("Id") || name.trim().ends_with("ID")
}

/// A column that could be a tag.
#[derive(Clone, Debug)]
pub struct TagCandidate {
    /// Its name.
    pub name: String,
    /// Whether it is text.
    pub is_text: bool,
    /// Distinct values in the whole file; `None` if there are many.
    pub distinct: Option<usize>,
}

impl TagCandidate {
    /// Whether it can be a tag: it is text or an identity, and has few values compared with the
    /// number of `rows`.
    pub fn is_likely(&self, rows: u64) -> bool {
        let few = |distinct: usize| distinct <= 20 || (distinct as u64) <= rows / 2;
        (self.is_text || is_identity(&self.name)) && self.distinct.is_some_and(few)
    }
}

/// A row of the sample: its time, and a hash of each candidate's cell.
pub type SampleRow = (i64, Vec<u64>);

/// Rows from which tags are inferred: all rows of some times, or none of a time. Files are often sorted by
/// device, so their first rows would not do.
#[derive(Debug, Default)]
pub struct RowSample {
    rows: Vec<SampleRow>,
    mask: u64,
}

/// Rows of a sample.
const SAMPLE_ROWS: usize = 50_000;

impl RowSample {
    /// Whether rows of this time belong to the sample.
    pub fn takes(&self, time: i64) -> bool {
        xxh3_64(&time.to_le_bytes()) & self.mask == 0
    }

    /// Adds a row that the sample takes.
    pub fn add(&mut self, time: i64, cells: Vec<u64>) {
        self.rows.push((time, cells));
        while self.rows.len() > SAMPLE_ROWS {
            self.mask = self.mask * 2 + 1;
            let (before, mask) = (self.rows.len(), self.mask);
            self.rows
                .retain(|(time, _)| xxh3_64(&time.to_le_bytes()) & mask == 0);
            // A single time has very many rows; they suffice as a sample.
            if self.rows.len() == before {
                self.rows.truncate(SAMPLE_ROWS / 2);
            }
        }
    }

    /// The rows.
    pub fn rows(&self) -> &[SampleRow] {
        &self.rows
    }
}

/// The candidates that are tags, as ascending indexes.
///
/// Candidates are taken, those with identity names first, as long as some rows of the same time are
/// not distinguished and the candidate distinguishes some of them. Text columns with identity names
/// are always taken. A text that is constant within every series, but not across all of them, is
/// also a tag: it describes the series.
pub fn infer(candidates: &[TagCandidate], rows: &[SampleRow]) -> Vec<usize> {
    let all_rows = rows.len() as u64;
    let likely: Vec<usize> = (0..candidates.len())
        .filter(|at| candidates[*at].is_likely(all_rows))
        .collect();
    let mut chosen: Vec<usize> = likely
        .iter()
        .copied()
        .filter(|at| candidates[*at].is_text && is_identity(&candidates[*at].name))
        .collect();
    let mut repeated = repeats(rows, &chosen);
    while repeated > 0 {
        let rest = likely.iter().copied().filter(|at| !chosen.contains(at));
        let gain = |at: usize| {
            let mut with = chosen.clone();
            with.push(at);
            repeats(rows, &with)
        };
        let rated = rest.map(|at| {
            let candidate = &candidates[at];
            let rank = u8::from(!is_identity(&candidate.name)) + u8::from(!candidate.is_text);
            (gain(at), rank, at)
        });
        // Prefer the candidate that leaves the fewest duplicates, then the one that looks most like
        // an identity.
        let Some((left, _, at)) = rated.min() else {
            break;
        };
        if left >= repeated {
            break;
        }
        repeated = left;
        chosen.push(at);
    }
    if !chosen.is_empty() {
        let describing = likely.iter().copied().filter(|at| {
            !chosen.contains(at) && candidates[*at].is_text && describes(rows, &chosen, *at)
        });
        let describing: Vec<usize> = describing.collect();
        chosen.extend(describing);
    }
    chosen.sort_unstable();
    chosen
}

/// Number of rows with the time and tags of an earlier row.
pub fn repeats(rows: &[SampleRow], tags: &[usize]) -> usize {
    let mut seen = HashSet::with_capacity(rows.len());
    let is_new = |(time, cells): &&SampleRow| {
        seen.insert((*time, tags.iter().map(|at| cells[*at]).collect::<Vec<_>>()))
    };
    rows.len() - rows.iter().filter(is_new).count()
}

/// Whether column `at` is constant within each series but not across all of them, and the series
/// have enough rows to show it.
fn describes(rows: &[SampleRow], tags: &[usize], at: usize) -> bool {
    let mut values: HashMap<Vec<u64>, u64> = HashMap::new();
    for (_, cells) in rows {
        let key = tags.iter().map(|tag| cells[*tag]).collect();
        let value = *values.entry(key).or_insert(cells[at]);
        if value != cells[at] {
            return false;
        }
    }
    let distinct: HashSet<_> = values.values().collect();
    distinct.len() > 1 && rows.len() >= 3 * values.len()
}

/// Columns (of those with an index in `tellers`) that distinguish all rows of each group, alone or
/// in pairs. A group is a list of rows, and a row has a hash of each column's cell.
pub fn tell_apart(groups: &[Vec<Vec<u64>>], tellers: &[usize]) -> Vec<Vec<usize>> {
    let works = |columns: &[usize]| {
        groups.iter().all(|rows| {
            let mut seen = HashSet::new();
            rows.iter()
                .all(|row| seen.insert(columns.iter().map(|at| row[*at]).collect::<Vec<_>>()))
        })
    };
    let alone: Vec<Vec<usize>> = tellers
        .iter()
        .map(|at| vec![*at])
        .filter(|c| works(c))
        .collect();
    if !alone.is_empty() {
        return alone;
    }
    let pairs = tellers.iter().enumerate().flat_map(|(place, one)| {
        tellers[place + 1..]
            .iter()
            .map(move |other| vec![*one, *other])
    });
    pairs.filter(|pair| works(pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, is_text: bool, distinct: usize) -> TagCandidate {
        TagCandidate {
            name: name.into(),
            is_text,
            distinct: Some(distinct),
        }
    }

    #[test]
    fn columns_that_tell_rows_of_one_time_apart_are_tags() {
        let candidates = [
            candidate("status", true, 2),
            candidate("where", true, 2),
            candidate("count", false, 2),
            candidate("country", true, 2),
        ];
        let mut rows = Vec::new();
        for time in 0..10 {
            for place in 0..2u64 {
                rows.push((time, vec![u64::from(time == 3), place, place, place + 7]));
            }
        }
        // Both texts would do; the first one is taken, and the other describes it.
        assert_eq!(infer(&candidates, &rows), [1, 3]);
    }

    #[test]
    fn a_single_series_needs_no_tag_but_an_identity() {
        let candidates = [candidate("status", true, 2), candidate("unit_id", true, 2)];
        let rows: Vec<SampleRow> = (0..10).map(|t| (t, vec![t as u64 % 2, 1])).collect();
        assert_eq!(infer(&candidates, &rows), [1]);
        assert_eq!(infer(&candidates[..1], &rows), Vec::<usize>::new());
    }

    #[test]
    fn long_tables_need_device_and_metric() {
        let candidates = [candidate("truck", false, 3), candidate("kind", true, 2)];
        let mut rows = Vec::new();
        for time in 0..5 {
            for truck in 0..3 {
                rows.extend((0..2).map(|kind| (time, vec![truck, kind])));
            }
        }
        assert_eq!(infer(&candidates, &rows), [0, 1]);
        let many = TagCandidate {
            distinct: None,
            ..candidate("text", true, 0)
        };
        assert!(!many.is_likely(1_000_000));
    }

    #[test]
    fn what_would_tell_rows_apart_is_found() {
        let groups = [
            vec![vec![1, 1, 1], vec![1, 2, 2]],
            vec![vec![1, 1, 2], vec![2, 1, 3]],
        ];
        assert_eq!(tell_apart(&groups, &[0, 1]), [[0, 1]]);
        assert_eq!(tell_apart(&groups, &[0, 1, 2]), [[2]]);
        assert_eq!(
            tell_apart(&[vec![vec![1], vec![1]]], &[0]),
            Vec::<Vec<usize>>::new()
        );
    }
}
