//! What the cells of a column have in common, collected one by one over a whole file.

use crate::cell::{DecimalMark, is_nan, is_null, numeral, read_bool, with_ascii_minus};
use crate::missing_codes::MissingCodes;
use crate::numerals::NumeralEvidence;
use crate::record::RecordCell;
use crate::time::TimeEvidence;
use marigram_model::FieldType;
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64;

/// Distinct values that are counted; a column with more does not have low cardinality.
pub const DISTINCT_MAX: usize = 10_000;

/// Distinct values that are counted of all columns of a file together, 16 bytes each, and of a column in any
/// case.
const DISTINCT_TOTAL: usize = 4_000_000;
const DISTINCT_MIN: usize = 100;

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
    /// Numbers with a point, and with a comma, that are other numbers if the mark is one of thousands.
    differs: [u64; 2],
    /// The first of them.
    differs_first: Option<String>,
    /// The texts that stand for a missing value, and how often.
    marker_texts: Vec<(String, u64)>,
    /// Markers for "not a number".
    nans: u64,
    /// Numbers with only one possible reading.
    marked: [u64; 2],
    exact_integers: u64,
    /// Whole numbers that are not negative.
    exact_unsigned: u64,
    truths: u64,
    distinct: HashSet<u64>,
    /// How many distinct values are counted, if fewer than usual.
    distinct_max: Option<usize>,
    is_many: bool,
    /// Cells that are not numbers, with a point and with a comma as decimal mark.
    exceptions: [Vec<(u64, String)>; 2],
    exceptions_count: [u64; 2],
    /// The first lines without a value, or with a marker instead of one.
    lines_missing: Vec<u64>,
    /// What its numbers look like.
    numerals: NumeralEvidence,
    /// Numbers such as -9999.
    codes: MissingCodes,
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
    /// One of so many columns: the more there are, the fewer distinct values of each are counted.
    pub fn one_of(columns: usize) -> Self {
        let most = DISTINCT_TOTAL / columns.max(1);
        Self {
            distinct_max: Some(most.clamp(DISTINCT_MIN, DISTINCT_MAX)),
            ..Self::default()
        }
    }

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
            if self.distinct.len() > self.distinct_max.unwrap_or(DISTINCT_MAX) {
                self.is_many = true;
                self.distinct = HashSet::new();
            }
        }
        if is_null(text, nulls) {
            self.add_marker(text, line);
            return;
        }
        let number = numeral(text);
        self.numbers[0] += u64::from(number.point);
        self.numbers[1] += u64::from(number.comma);
        if number.differs {
            self.differs[usize::from(text.contains(','))] += 1;
            self.differs_first.get_or_insert_with(|| text.to_owned());
        }
        if number.point != number.comma {
            self.marked[usize::from(number.comma)] += 1;
        }
        if with_ascii_minus(text).parse::<i64>().is_ok() {
            self.exact_integers += 1;
        }
        if text.parse::<u64>().is_ok() {
            self.exact_unsigned += 1;
        }
        self.numerals.add(text, number, line);
        if number.point || number.comma {
            self.codes.add(text);
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

    fn add_marker(&mut self, text: &str, line: u64) {
        self.markers += 1;
        self.nans += u64::from(is_nan(text));
        self.lack(line);
        let has_room = self.marker_texts.len() < EXCEPTIONS_NAMED;
        let mut known = self.marker_texts.iter_mut();
        if let Some((_, count)) = known.find(|(known, _)| known == text) {
            *count += 1;
        } else if has_room {
            self.marker_texts.push((text.to_owned(), 1));
        }
    }

    /// The first texts that stand for a missing value, and how often each does.
    pub fn marker_texts(&self) -> &[(String, u64)] {
        &self.marker_texts
    }

    /// A number that may mean a missing value, such as -9999, and how often it occurs.
    pub fn missing_code(&self) -> Option<(&str, u64)> {
        self.codes.found()
    }

    /// A number whose mark may be one of thousands.
    pub fn ambiguous_number(&self) -> Option<&str> {
        self.differs_first.as_deref()
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

    /// Whether none of its cells has a text: a column of texts such as `NA` has some.
    pub fn has_no_text(&self) -> bool {
        self.real() == 0 && self.markers == self.nans
    }

    /// A cell that a number would change, if its whole numbers look like identifiers.
    pub fn identifier(&self, refused: &HashSet<u64>) -> Option<&str> {
        let numbers = self.numbers[0].max(self.numbers[1]);
        let others = self.exceptions_count[0].min(self.exceptions_count[1]);
        let is_number = numbers > 0 && numbers + others >= self.real();
        self.numerals.identifier(refused).filter(|_| is_number)
    }

    /// Why it is text, if most of its cells look like numbers: what stands against each kind of them.
    pub fn obstacles(&self) -> Vec<String> {
        if self.numerals.count() * 2 <= self.real() {
            return Vec::new();
        }
        self.numerals.obstacles()
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

    /// Whether its numbers have different values with a comma and with a point as decimal mark. In a file
    /// whose delimiter is a comma, a point is no mark of thousands.
    pub fn is_ambiguous(&self, delimiter: u8) -> bool {
        let [points, commas] = self.differs;
        let differs = commas > 0 || (points > 0 && delimiter != b',');
        differs && self.numbers == [self.real(); 2]
    }

    /// The decimal mark of this column in a file that otherwise uses `decimal`.
    pub fn decimal(&self, decimal: DecimalMark) -> DecimalMark {
        let other = match decimal {
            DecimalMark::Point => DecimalMark::Comma,
            DecimalMark::Comma => DecimalMark::Point,
        };
        if self.proves(other) { other } else { decimal }
    }

    /// The type that holds all values: BOOLEAN, DOUBLE, BIGINT, BIGINT UNSIGNED, or else STRING.
    /// Integers are DOUBLE, as in line protocol (a sensor that shows 3 today may show 3.5 tomorrow),
    /// unless one of them is too large for an exact DOUBLE. Identifiers such as 01067 are STRING.
    pub fn kind(&self, decimal: DecimalMark) -> FieldType {
        self.kind_without(decimal, &HashSet::new())
    }

    /// The type that holds all values except those in `refused` lines, whose rows are not stored.
    pub fn kind_without(&self, decimal: DecimalMark, refused: &HashSet<u64>) -> FieldType {
        let mark = usize::from(self.decimal(decimal) == DecimalMark::Comma);
        if self.identifier(refused).is_some() {
            return FieldType::String;
        }
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
            return if self.markers > self.nans {
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
        } else if self.exact_unsigned == real {
            FieldType::U64
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
    let unclear = || {
        profiles
            .iter()
            .position(|profile| profile.is_ambiguous(delimiter))
    };
    match (proves(DecimalMark::Point), proves(DecimalMark::Comma)) {
        (false, true) => Ok(DecimalMark::Comma),
        (true, false) => Ok(DecimalMark::Point),
        // The columns use different marks, or no mark that says something.
        (both, _) => match unclear() {
            Some(at) => Err(at),
            None if both && delimiter == b';' => Ok(DecimalMark::Comma),
            None => Ok(DecimalMark::Point),
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
        assert_eq!(kind(&["1", "18446744073709551615"]), FieldType::U64);
        assert_eq!(kind(&["-1", "18446744073709551615"]), FieldType::String);
        assert_eq!(kind(&["18446744073709551616"]), FieldType::String);
        assert_eq!(kind(&["80331", "01067"]), FieldType::String);
        assert_eq!(kind(&["-03", "05"]), FieldType::F64);
        assert_eq!(kind(&["1", "2.5", "n/a", "-", ""]), FieldType::F64);
        assert_eq!(kind(&["true", "no"]), FieldType::Bool);
        assert_eq!(kind(&["1", "x"]), FieldType::String);
        assert_eq!(kind(&[]), FieldType::F64);
        assert_eq!(kind(&["NA", "NA"]), FieldType::String);
    }

    #[test]
    fn of_many_columns_fewer_values_are_counted() {
        let distinct = |columns: usize| {
            let mut profile = ColumnProfile::one_of(columns);
            for number in 0..1000_u64 {
                let text = &number.to_string();
                let quoted = false;
                profile.add(RecordCell { text, quoted }, number, &[]);
            }
            profile.distinct()
        };
        assert_eq!(distinct(10), Some(1000));
        assert_eq!(distinct(10_000), None);
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
        // A German file has points between thousands, and an English one may have semicolons.
        for cells in [["1,234", "12"], ["1.234", "12.345"]] {
            assert_eq!(decimal(&[&cells], b';'), Err(0));
            assert_eq!(decimal(&[&cells, &["1,5"]], b';'), Ok(DecimalMark::Comma));
            assert_eq!(decimal(&[&cells, &["0.5"]], b';'), Ok(DecimalMark::Point));
            assert_eq!(decimal(&[&cells, &["0.5"], &["1,5"]], b';'), Err(0));
        }
        assert_eq!(
            decimal(&[&["1.234", "0.125"]], b';'),
            Ok(DecimalMark::Point)
        );
        assert_eq!(
            decimal(&[&["1.234", "1.000.000"]], b';'),
            Ok(DecimalMark::Comma)
        );
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
        let marks = profile(&["1,5", "2.25"]).obstacles();
        assert_eq!(marks, ["'1,5' and '2.25' have different decimal marks"]);
        assert_eq!(profile(&["3 pumps failed", "ok"]).obstacles(), [""; 0]);
        let names = profile(&["a", "b", "1"]);
        assert_eq!(names.few_exceptions(DecimalMark::Point), None);
    }
}
