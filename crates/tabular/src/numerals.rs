//! What the cells of a column look like that are numbers, or nearly so: whole numbers that are rather
//! identifiers, and numbers that no reader understands without a guess.

use crate::cell::{DecimalMark, MINUSES, NumberStyle, read_f64};
use std::collections::HashSet;

/// Lines to remember of cells that look like identifiers.
const LINES_MAX: usize = 100;

/// Characters of the longest unit.
const UNIT_CHARS: usize = 10;

/// Bytes of the longest cell that may be a number with a unit.
const CELL_BYTES: usize = 64;

/// Characters of a cell that a message shows.
const SHOWN_CHARS: usize = 40;

/// Why a cell that looks like a number is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberLike {
    /// `21.5 °C`, `80 %`
    Unit,
    /// `(2,5)`: a negative number in accounting.
    Parentheses,
    /// `3,5-`: a negative number of old business programs.
    TrailingMinus,
    /// `<0,5`: a bound, as laboratories write what they cannot measure.
    Bound,
    /// `12,34,567.5`: marks between groups that have not three digits each.
    Grouping,
    /// A whole number that a DOUBLE cannot hold exactly.
    TooLarge,
}

impl NumberLike {
    const ALL: [Self; 6] = [
        Self::Unit,
        Self::Parentheses,
        Self::TrailingMinus,
        Self::Bound,
        Self::Grouping,
        Self::TooLarge,
    ];

    /// What `cell` looks like; `None` if it is a number, or looks like none.
    pub fn from_cell(cell: &str) -> Option<Self> {
        let is_number = |text: &str| {
            let is = |mark| read_f64(text, mark).is_some();
            text.contains(|char: char| char.is_ascii_digit())
                && (is(DecimalMark::Point) || is(DecimalMark::Comma))
        };
        let cell = cell.trim();
        if let Some(number) = cell.strip_prefix(['<', '>', '≤', '≥', '~']) {
            let number = number.trim_start_matches(['=', ' ']);
            return is_number(number).then_some(Self::Bound);
        }
        if let Some(amount) = without_currency(cell) {
            return is_number(amount).then_some(Self::Unit);
        }
        if !cell.starts_with(['(', '+', '-', '.', ','])
            && !cell.starts_with(MINUSES)
            && !cell.starts_with(|char: char| char.is_ascii_digit())
        {
            return None;
        }
        let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return (!is_number(cell)).then_some(Self::TooLarge);
        }
        if is_number(cell) {
            return None;
        }
        if let Some(inner) = cell
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
        {
            return is_number(inner.trim()).then_some(Self::Parentheses);
        }
        let before = cell.strip_suffix('-').or(cell.strip_suffix(MINUSES));
        if let Some(before) = before {
            return is_number(before.trim_end()).then_some(Self::TrailingMinus);
        }
        let is_grouped = |byte: u8| byte.is_ascii_digit() || byte == b',' || byte == b'.';
        if digits.contains(',') && digits.bytes().all(is_grouped) {
            return Some(Self::Grouping);
        }
        if cell.len() > CELL_BYTES {
            return None;
        }
        let mut ends = cell.char_indices().skip(1);
        let is_unit = ends
            .any(|(at, _)| is_unit(cell[at..].trim_start()) && is_number(cell[..at].trim_end()));
        is_unit.then_some(Self::Unit)
    }

    /// What is wrong with such a cell.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unit => "looks like a number with a unit",
            Self::Parentheses => "is a number in parentheses, which may mean a negative one",
            Self::TrailingMinus => "is a number with a minus behind it",
            Self::Bound => "is a bound, not a number",
            Self::Grouping => "has marks between groups that have not three digits each",
            Self::TooLarge => "is a whole number that no DOUBLE holds exactly",
        }
    }
}

/// A cell without the currency before its amount: `€ 12.50`, `-$5`, `EUR 3,20`.
fn without_currency(cell: &str) -> Option<&str> {
    let unsigned = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    if let Some(amount) = unsigned.strip_prefix(['€', '$', '£', '¥', '₹', '₽']) {
        return Some(amount.trim_start());
    }
    let (code, amount) = unsigned.split_at_checked(3)?;
    let is_code = code.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_code && amount.starts_with([' ', '\u{a0}', '\u{202f}'])).then(|| amount.trim_start())
}

/// Digits of the shortest number that a plus makes a telephone number.
const PHONE_DIGITS_MIN: usize = 8;

/// Whether a cell is a plus and many digits, as telephone numbers are written: `+4915112345678`. Measured
/// values have no plus, or have a fraction, fewer digits, or zeros before them.
fn is_phone(cell: &str) -> bool {
    let digits = cell.strip_prefix('+').unwrap_or_default();
    let is_long = digits.len() >= PHONE_DIGITS_MIN && !digits.starts_with('0');
    is_long && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a unit: `°C`, `%`, `kWh`, `m/s`, `µg/m³`, `m3`.
fn is_unit(text: &str) -> bool {
    let begins = text
        .chars()
        .next()
        .is_some_and(|char| char.is_alphabetic() || "°%‰€$£¥Ωµ²³".contains(char));
    let is_part = |char: char| char.is_alphanumeric() || "°%‰€$£¥Ωµ²³/·*^-. ".contains(char);
    let digits = text.chars().filter(char::is_ascii_digit).count();
    begins && text.chars().count() <= UNIT_CHARS && digits <= 1 && text.chars().all(is_part)
}

/// Whether a cell is a whole number with a zero before its other digits: `01067`.
fn is_padded(cell: &str) -> bool {
    cell.len() > 1 && cell.starts_with('0') && cell.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a cell is digits with an E between them: `1E5`.
fn is_bare_exponent(cell: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    cell.split_once(['e', 'E'])
        .is_some_and(|(one, other)| digits(one) && digits(other))
}

/// Cells of one kind.
#[derive(Clone, Debug, Default)]
struct AlikeCells {
    count: u64,
    first: Option<String>,
    lines: Vec<u64>,
}

impl AlikeCells {
    fn add(&mut self, cell: &str, line: u64) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(cell.chars().take(SHOWN_CHARS).collect());
        }
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        }
    }

    /// Whether some stand in lines that are not `refused`.
    fn counts_without(&self, refused: &HashSet<u64>) -> bool {
        self.count > self.lines.len() as u64 || self.lines.iter().any(|l| !refused.contains(l))
    }
}

/// What was seen of a column's numbers.
#[derive(Clone, Debug, Default)]
pub struct NumeralEvidence {
    /// Numbers, with either mark.
    numbers: u64,
    padded: AlikeCells,
    exponents: AlikeCells,
    /// Whole numbers without sign and exponent.
    whole: u64,
    /// Numbers with a sign or a decimal mark: measured values have them, identifiers do not.
    measured: u64,
    /// A plus and many digits.
    phones: AlikeCells,
    /// Numbers with a decimal point only, and with a decimal comma only.
    marked: [AlikeCells; 2],
    /// Cells that look like numbers, by kind.
    like: [AlikeCells; 6],
}

impl NumeralEvidence {
    /// Adds a cell that has a value.
    pub fn add(&mut self, cell: &str, style: NumberStyle, line: u64) {
        if style.point || style.comma {
            self.numbers += 1;
            if is_padded(cell) {
                self.padded.add(cell, line);
            } else if is_bare_exponent(cell) {
                self.exponents.add(cell, line);
            } else if is_phone(cell) {
                self.phones.add(cell, line);
            } else if cell.bytes().all(|byte| byte.is_ascii_digit()) {
                self.whole += 1;
            } else {
                self.measured += 1;
            }
        }
        if style.point != style.comma {
            self.marked[usize::from(style.comma)].add(cell, line);
        }
        if style.point || style.comma {
            return;
        }
        if let Some(kind) = NumberLike::from_cell(cell) {
            let at = NumberLike::ALL.iter().position(|known| *known == kind);
            self.like[at.unwrap_or(0)].add(cell, line);
        }
    }

    /// A cell that a number would change, if the cells look like identifiers: one begins with a zero
    /// (`01067`), has an E between whole numbers (`1E5`), or a plus before many digits (`+4915112345678`).
    pub fn identifier(&self, refused: &HashSet<u64>) -> Option<&str> {
        if self.measured > 0 {
            return None;
        }
        if self.padded.counts_without(refused) {
            return self.padded.first.as_deref();
        }
        if self.phones.counts_without(refused) {
            return self.phones.first.as_deref();
        }
        let has_whole = self.whole + self.padded.count > 0;
        let is_among = has_whole && self.exponents.counts_without(refused);
        is_among
            .then_some(self.exponents.first.as_deref())
            .flatten()
    }

    /// Number of cells that are numbers with some mark, or look like one.
    pub fn count(&self) -> u64 {
        self.numbers + self.like.iter().map(|cells| cells.count).sum::<u64>()
    }

    /// Why not all cells that look like numbers can be read as such, with examples.
    pub fn obstacles(&self) -> Vec<String> {
        let mut found = Vec::new();
        let [point, comma] = &self.marked;
        if let (Some(point), Some(comma)) = (&point.first, &comma.first) {
            found.push(format!(
                "'{comma}' and '{point}' have different decimal marks"
            ));
        }
        for (kind, cells) in NumberLike::ALL.into_iter().zip(&self.like) {
            if let Some(first) = &cells.first {
                found.push(format!("'{first}' {}", kind.words()));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::numeral;

    fn evidence(cells: &[&str]) -> NumeralEvidence {
        let mut evidence = NumeralEvidence::default();
        for (cell, line) in cells.iter().zip(2..) {
            evidence.add(cell, numeral(cell), line);
        }
        evidence
    }

    #[test]
    fn cells_that_look_like_numbers_are_known() {
        use NumberLike::{Bound, Grouping, Parentheses, TooLarge, TrailingMinus, Unit};
        for (cell, kind) in [
            ("21.5 °C", Some(Unit)),
            ("22°C", Some(Unit)),
            ("-80 %", Some(Unit)),
            ("1,5 m³/h", Some(Unit)),
            ("12 m3", Some(Unit)),
            ("5kWh", Some(Unit)),
            ("(2,5)", Some(Parentheses)),
            ("(1.234,5)", Some(Parentheses)),
            ("3,5-", Some(TrailingMinus)),
            ("<0,5", Some(Bound)),
            ("€ 12,50", Some(Unit)),
            ("-$5", Some(Unit)),
            ("EUR 3,20", Some(Unit)),
            ("USD", None),
            ("ABC 5 x", None),
            ("\u{2013}80 %", Some(Unit)),
            (">= 100", Some(Bound)),
            ("12,34,567.5", Some(Grouping)),
            ("13.01.2026", None),
            ("18446744073709551616", Some(TooLarge)),
            ("-9007199254740993", Some(TooLarge)),
            ("21.5", None),
            ("\u{2212}3,6", None),
            ("hot", None),
            ("", None),
            ("-", None),
            ("()", None),
            ("2026-01-01", None),
            ("12:30", None),
            ("10.0.0.1", None),
            ("(x)", None),
            ("5 pumps of the north hall", None),
            ("é5", None),
        ] {
            assert_eq!(NumberLike::from_cell(cell), kind, "{cell}");
        }
    }

    #[test]
    fn identifiers_are_no_measured_numbers() {
        let none = HashSet::new();
        let identifier = |cells: &[&str]| evidence(cells).identifier(&none).map(str::to_owned);
        assert_eq!(identifier(&["80331", "01067"]).as_deref(), Some("01067"));
        assert_eq!(identifier(&["0", "10", "7"]), None);
        assert_eq!(identifier(&["00"]).as_deref(), Some("00"));
        assert_eq!(identifier(&["0.5", "01"]), None);
        assert_eq!(identifier(&["-03", "05"]), None);
        assert_eq!(identifier(&["100", "1E5"]).as_deref(), Some("1E5"));
        assert_eq!(identifier(&["1E5", "2e6"]), None);
        let phone = "+4915112345678";
        assert_eq!(
            identifier(&[phone, "0301234567"]).as_deref(),
            Some("0301234567")
        );
        assert_eq!(identifier(&["110", phone]).as_deref(), Some(phone));
        assert_eq!(identifier(&["+12", "+3"]), None);
        assert_eq!(identifier(&["-5", "+12345678"]), None);
        assert_eq!(identifier(&["+00000012", "+12345678"]), None);
        assert_eq!(identifier(&["1.5E5", "100", "1E5"]), None);
        assert_eq!(identifier(&["1E-5", "100", "1E5"]), None);
        // Lines that are refused have no say.
        let refused = HashSet::from([3]);
        assert_eq!(evidence(&["5", "01067"]).identifier(&refused), None);
    }

    #[test]
    fn obstacles_are_named_with_cells() {
        let obstacles = |cells: &[&str]| evidence(cells).obstacles().join("; ");
        assert_eq!(
            obstacles(&["1,5", "2.25"]),
            "'1,5' and '2.25' have different decimal marks"
        );
        assert_eq!(
            obstacles(&["\u{2212}1,5", "(2,5)", "3,5-", "+4,5"]),
            "'(2,5)' is a number in parentheses, which may mean a negative one; \
             '3,5-' is a number with a minus behind it"
        );
        assert_eq!(obstacles(&["1,5", "2"]), "");
    }
}
