//! What the cells of a column have in common, collected one by one over a whole file.

use crate::cell::{DecimalMark, is_null, numeral, read_bool};
use crate::record::RecordCell;
use crate::time::TimeEvidence;
use marigram_model::FieldType;
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64;

/// Distinct values that are counted; a column with more does not have low cardinality.
pub const DISTINCT_MAX: usize = 10_000;

/// Cells to name if they rule out a type.
const EXCEPTIONS_NAMED: usize = 5;

/// Lines to remember of cells that rule out a type, or have no value.
const LINES_MAX: usize = 100;

/// Largest share of exceptions to report if only they make a column text.
const EXCEPTIONS_MAX: f64 = 0.1;

/// A column under observation.
#[derive(Clone, Debug, Default)]
pub struct ColumnProfile {
    /// Cells that are not empty.
    pub values: u64,
    /// Cells that are empty and have no quotation marks.
    pub missing: u64,
    /// Values that stand for a missing value in number and time columns.
    pub markers: u64,
    numbers: [u64; 2],
    /// Numbers with a comma that would be different numbers with a point instead.
    differs: u64,
    /// Numbers with only one possible reading.
    marked: [u64; 2],
    exact_integers: u64,
    truths: u64,
    distinct: HashSet<u64>,
    is_many: bool,
    /// Cells that are not numbers, with a point and with a comma as decimal mark.
    exceptions: [Vec<(u64, String)>; 2],
    exceptions_count: [u64; 2],
    /// The first lines without a value, or with a marker instead of one.
    lines_missing: Vec<u64>,
    /// What the cells reveal about times.
    pub times: TimeEvidence,
}

/// A column that is text only because of a few cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FewExceptions {
    /// Number of cells that are not numbers.
    pub count: u64,
    /// Number of cells that are numbers.
    pub numbers: u64,
    /// The first of the exceptions, with their lines.
    pub named: Vec<(u64, String)>,
}

impl ColumnProfile {
    /// Adds a cell; `nulls` are additional markers.
    pub fn add(&mut self, cell: RecordCell<'_>, line: u64, nulls: &[String]) {
        let text = cell.text.trim();
        if cell.is_missing() || (!text.is_empty() && nulls.iter().any(|null| null == text)) {
            self.missing += 1;
            self.lack(line);
            return;
        }
        self.values += 1;
        if !self.is_many {
            self.distinct.insert(xxh3_64(text.as_bytes()));
            if self.distinct.len() > DISTINCT_MAX {
                self.is_many = true;
                self.distinct = HashSet::new();
            }
        }
        if is_null(text, nulls) {
            self.markers += 1;
            self.lack(line);
            return;
        }
        let number = numeral(text);
        self.numbers[0] += u64::from(number.point);
        self.numbers[1] += u64::from(number.comma);
        self.differs += u64::from(number.differs && text.contains(','));
        if number.point != number.comma {
            self.marked[usize::from(number.comma)] += 1;
        }
        if text.parse::<i64>().is_ok() {
            self.exact_integers += 1;
        }
        if read_bool(text).is_some() {
            self.truths += 1;
        } else {
            for (at, is_one) in [number.point, number.comma].into_iter().enumerate() {
                if is_one {
                    continue;
                }
                self.exceptions_count[at] += 1;
                if self.exceptions[at].len() < LINES_MAX {
                    self.exceptions[at].push((line, text.to_owned()));
                }
            }
        }
        self.times.add(text, line);
    }

    fn lack(&mut self, line: u64) {
        if self.lines_missing.len() < LINES_MAX {
            self.lines_missing.push(line);
        }
    }

    /// The lines whose time is missing or cannot be read, if this column is the time and they are
    /// few: their rows are refused, whatever else they hold.
    pub fn lines_without_time(&self) -> HashSet<u64> {
        let missing = self.missing + self.markers;
        let known = (missing as usize <= LINES_MAX).then_some(&*self.lines_missing);
        let lines = known.unwrap_or_default().iter();
        lines.chain(self.times.stray_lines()).copied().collect()
    }

    /// Number of values that are not markers.
    fn real(&self) -> u64 {
        self.values - self.markers
    }

    /// Number of distinct values, if not many.
    pub fn distinct(&self) -> Option<usize> {
        (!self.is_many).then_some(self.distinct.len())
    }

    /// Whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.real() == 0
    }

    /// Whether all its values are integers.
    pub fn is_integer(&self) -> bool {
        self.real() > 0 && self.exact_integers == self.real()
    }

    /// Whether its numbers are only valid with this decimal mark. Lines that hold no rows, such as a
    /// sum at the end, may have other texts.
    pub fn proves(&self, decimal: DecimalMark) -> bool {
        let at = usize::from(decimal == DecimalMark::Comma);
        self.numbers[at] * 2 > self.real() && self.marked[at] > 0 && self.marked[1 - at] == 0
    }

    /// Whether its numbers have different values with a comma and with a point.
    pub fn is_ambiguous(&self) -> bool {
        self.differs > 0 && self.numbers == [self.real(); 2]
    }

    /// The decimal mark of this column in a file that otherwise uses `decimal`.
    pub fn decimal(&self, decimal: DecimalMark) -> DecimalMark {
        let other = match decimal {
            DecimalMark::Point => DecimalMark::Comma,
            DecimalMark::Comma => DecimalMark::Point,
        };
        if self.proves(other) { other } else { decimal }
    }

    /// The type that holds all values: BOOLEAN, DOUBLE, BIGINT, or else STRING. Integers are
    /// DOUBLE, as in line protocol (a sensor that shows 3 today may show 3.5 tomorrow), unless one
    /// of them is too large for an exact DOUBLE.
    pub fn kind(&self, decimal: DecimalMark) -> FieldType {
        self.kind_without(decimal, &HashSet::new())
    }

    /// The type that holds all values except those in `refused` lines, whose rows are not stored.
    pub fn kind_without(&self, decimal: DecimalMark, refused: &HashSet<u64>) -> FieldType {
        let mark = usize::from(self.decimal(decimal) == DecimalMark::Comma);
        let exceptions = &self.exceptions[mark];
        if self.numbers[mark] > 0
            && self.exceptions_count[mark] == exceptions.len() as u64
            && self.numbers[mark] + self.exceptions_count[mark] == self.real()
            && exceptions.iter().all(|(line, _)| refused.contains(line))
        {
            return FieldType::F64;
        }
        let real = self.real();
        if real == 0 {
            return if self.markers > 0 {
                FieldType::String
            } else {
                FieldType::F64
            };
        }
        if self.truths == real {
            FieldType::Bool
        } else if self.numbers[usize::from(self.decimal(decimal) == DecimalMark::Comma)] == real {
            FieldType::F64
        } else if self.exact_integers == real {
            FieldType::I64
        } else {
            FieldType::String
        }
    }

    /// The few cells that make it text.
    pub fn few_exceptions(&self, decimal: DecimalMark) -> Option<FewExceptions> {
        let mark = usize::from(self.decimal(decimal) == DecimalMark::Comma);
        let numbers = self.numbers[mark];
        let count = self.exceptions_count[mark];
        let few = count > 0 && count as f64 <= (numbers as f64 * EXCEPTIONS_MAX).max(1.0);
        (few && numbers > 1).then(|| FewExceptions {
            count,
            numbers,
            named: self.exceptions[mark]
                .iter()
                .take(EXCEPTIONS_NAMED)
                .cloned()
                .collect(),
        })
    }
}

/// The decimal mark of a file, from all its columns.
///
/// # Errors
/// The index of a column whose numbers are ambiguous, if nothing decides.
pub fn decimal_of(profiles: &[ColumnProfile], delimiter: u8) -> Result<DecimalMark, usize> {
    let proves = |decimal| profiles.iter().any(|profile| profile.proves(decimal));
    // A point followed by three digits is nearly always a decimal point; a comma is not.
    let unclear = profiles.iter().position(ColumnProfile::is_ambiguous);
    match (proves(DecimalMark::Point), proves(DecimalMark::Comma)) {
        (false, true) => Ok(DecimalMark::Comma),
        // The columns use different marks.
        (true, true) if delimiter == b';' => Ok(DecimalMark::Comma),
        (true, _) => Ok(DecimalMark::Point),
        (false, false) => match unclear {
            None => Ok(DecimalMark::Point),
            // If cells contain commas, the delimiter is a semicolon.
            Some(_) if delimiter == b';' => Ok(DecimalMark::Comma),
            Some(at) => Err(at),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(cells: &[&str]) -> ColumnProfile {
        let mut profile = ColumnProfile::default();
        for (at, text) in cells.iter().enumerate() {
            profile.add(
                RecordCell {
                    text,
                    quoted: false,
                },
                at as u64 + 2,
                &[],
            );
        }
        profile
    }

    #[test]
    fn types_hold_all_values() {
        let kind = |cells: &[&str]| profile(cells).kind(DecimalMark::Point);
        assert_eq!(kind(&["1", "-2"]), FieldType::F64);
        assert_eq!(kind(&["1", "9007199254740993"]), FieldType::I64);
        assert_eq!(kind(&["1", "2.5", "n/a", "-", ""]), FieldType::F64);
        assert_eq!(kind(&["true", "no"]), FieldType::Bool);
        assert_eq!(kind(&["1", "x"]), FieldType::String);
        assert_eq!(kind(&[]), FieldType::F64);
        assert_eq!(kind(&["NA", "NA"]), FieldType::String);
    }

    #[test]
    fn rows_that_are_refused_decide_no_type() {
        let mut time = ColumnProfile::default();
        let mut value = ColumnProfile::default();
        for (line, (at, text)) in [
            ("2026-01-01", "1.5"),
            ("2026-01-02", "2.5"),
            ("Sum", "n.b."),
            ("", "end"),
        ]
        .into_iter()
        .enumerate()
        {
            let cell = |text| RecordCell {
                text,
                quoted: false,
            };
            time.add(cell(at), line as u64, &[]);
            value.add(cell(text), line as u64, &[]);
        }
        assert_eq!(value.kind(DecimalMark::Point), FieldType::String);
        let refused = time.lines_without_time();
        assert_eq!(refused, HashSet::from([2, 3]));
        let kind = value.kind_without(DecimalMark::Point, &refused);
        assert_eq!(kind, FieldType::F64);
    }

    #[test]
    fn the_decimal_mark_is_one_of_the_file() {
        let decimal = |columns: &[&[&str]], delimiter| {
            let profiles: Vec<_> = columns.iter().map(|cells| profile(cells)).collect();
            decimal_of(&profiles, delimiter)
        };
        assert_eq!(decimal(&[&["1,5", "2"]], b';'), Ok(DecimalMark::Comma));
        assert_eq!(decimal(&[&["1.5", "2"]], b';'), Ok(DecimalMark::Point));
        assert_eq!(
            decimal(&[&["1,5"], &["1,234"]], b','),
            Ok(DecimalMark::Comma)
        );
        assert_eq!(
            decimal(&[&["1,234.5"], &["1,234"]], b','),
            Ok(DecimalMark::Point)
        );
        assert_eq!(
            decimal(&[&["1.234"], &["12"]], b','),
            Ok(DecimalMark::Point)
        );
        assert_eq!(decimal(&[&["x"], &["1,234", "12"]], b','), Err(1));
        assert_eq!(decimal(&[&["1,234", "12"]], b';'), Ok(DecimalMark::Comma));
    }

    #[test]
    fn a_few_cells_that_are_no_numbers_are_named() {
        let mut cells = vec!["1.5"; 30];
        cells[7] = "broken";
        let broken = profile(&cells);
        assert_eq!(broken.kind(DecimalMark::Point), FieldType::String);
        let few = broken.few_exceptions(DecimalMark::Point).unwrap();
        assert_eq!((few.count, few.numbers), (1, 29));
        assert_eq!(few.named, [(9, "broken".to_owned())]);
        let mixed = profile(&["1.5", "2,5", "1.000"]);
        assert_eq!(mixed.kind(DecimalMark::Point), FieldType::String);
        let few = mixed.few_exceptions(DecimalMark::Point).unwrap();
        assert_eq!(few.named, [(3, "2,5".to_owned())]);
        let names = profile(&["a", "b", "1"]);
        assert_eq!(names.few_exceptions(DecimalMark::Point), None);
    }
}
