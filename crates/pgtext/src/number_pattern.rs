//! `to_char` of numbers, with PostgreSQL's patterns.
//!
//! A pattern is a list of marks. Digits (`9`, `0`) and the decimal point take the characters of the number in
//! turn, after as many blanks (or zeros, from the first `0` on) as the number has fewer digits than the
//! pattern. The sign stands before the first digit unless a mark says where it stands.

use std::fmt;

/// The value that a pattern formats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PatternNumber<'a> {
    /// A float of 4 or 8 bytes, and how many of its digits are shown (6 or 15).
    Float(f64, usize),
    /// An exact number as text: digits with a sign and a point, without an exponent.
    Exact(&'a str),
}

/// Why a pattern is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberPatternError(String);

impl fmt::Display for NumberPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NumberPatternError {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NumberMark {
    /// `9`, or `0` (true).
    Digit(bool),
    Point,
    Comma,
    /// `MI`: a minus, or a blank.
    Minus,
    /// `PL`: a plus, or a blank.
    Plus,
    /// `SG`
    Either,
    /// `L`: in the C locale a blank.
    Currency,
    /// `TH`, or `th` (false).
    Ordinal(bool),
    Text(char),
}

/// Where `S` puts the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignPlace {
    Before,
    After,
}

/// A parsed pattern.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the pattern that stands there or does not"
)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberPattern {
    pub(crate) marks: Vec<NumberMark>,
    /// Digits before and after the point.
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// The place of the first `0` among the digits before the point.
    zero_start: Option<usize>,
    /// The number of digits up to the last `0`.
    zero_end: usize,
    pub(crate) has_point: bool,
    /// `FM`
    is_short: bool,
    /// `EEEE`
    pub(crate) is_scientific: bool,
    /// `RN` or `rn` (false).
    pub(crate) roman: Option<bool>,
    /// `S`
    pub(crate) sign: Option<SignPlace>,
    /// `PR`
    pub(crate) has_brackets: bool,
    pub(crate) has_minus: bool,
    pub(crate) has_plus: bool,
}

/// The marks with more than one letter, and those that are known and ignored.
const WORDS: [&str; 13] = [
    "EEEE", "FM", "MI", "PL", "SG", "PR", "RN", "TH", "L", "S", "B", "C", "V",
];

impl NumberPattern {
    /// Parses a pattern. Text that is not a mark stands for itself.
    ///
    /// # Errors
    /// If marks contradict one another, or the pattern needs one that is not supported.
    pub fn parse(pattern: &str) -> Result<Self, NumberPatternError> {
        let mut read = Self::default();
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            if read.is_scientific {
                return wrong("\"EEEE\" must be the last pattern used");
            }
            if first == '"' {
                rest = read.quoted(&rest[1..]);
                continue;
            }
            let escaped = rest.strip_prefix("\\\"");
            if let Some(after) = escaped {
                read.marks.push(NumberMark::Text('"'));
                rest = after;
                continue;
            }
            let known = WORDS.iter().find(|word| {
                let head = rest.get(..word.len());
                head.is_some_and(|head| head == **word || head == word.to_ascii_lowercase())
            });
            if let Some(word) = known {
                let is_upper = rest.starts_with(word);
                rest = &rest[word.len()..];
                read.word(word, is_upper)?;
                continue;
            }
            rest = &rest[first.len_utf8()..];
            match first {
                '9' | '0' => read.digit(first == '0')?,
                '.' | 'D' | 'd' => {
                    if read.has_point {
                        return wrong("multiple decimal points");
                    }
                    read.has_point = true;
                    read.marks.push(NumberMark::Point);
                }
                ',' | 'G' | 'g' => read.marks.push(NumberMark::Comma),
                other => read.marks.push(NumberMark::Text(other)),
            }
        }
        Ok(read)
    }

    /// Takes the text up to the closing quote; returns what follows.
    fn quoted<'a>(&mut self, text: &'a str) -> &'a str {
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return &text[at + 1..],
                '\\' => {
                    if let Some((_, escaped)) = chars.next() {
                        self.marks.push(NumberMark::Text(escaped));
                    }
                }
                other => self.marks.push(NumberMark::Text(other)),
            }
        }
        ""
    }

    fn digit(&mut self, is_zero: bool) -> Result<(), NumberPatternError> {
        if self.has_brackets {
            return wrong("\"9\" and \"0\" must be ahead of \"PR\"");
        }
        if self.has_point {
            self.after += 1;
        } else {
            if is_zero && self.zero_start.is_none() {
                self.zero_start = Some(self.before);
            }
            self.before += 1;
        }
        if is_zero {
            self.zero_end = self.before + self.after;
        }
        if self.sign == Some(SignPlace::After) {
            self.sign = Some(SignPlace::Before);
        }
        self.marks.push(NumberMark::Digit(is_zero));
        Ok(())
    }

    fn word(&mut self, word: &str, is_upper: bool) -> Result<(), NumberPatternError> {
        let has_words = self.has_minus || self.has_plus;
        match word {
            "FM" => self.is_short = true,
            "EEEE" if has_words || self.sign.is_some() || self.has_brackets => {
                return wrong("\"EEEE\" can only be used with digits and a decimal point");
            }
            "EEEE" => self.is_scientific = true,
            "S" if self.sign.is_some() => return wrong("cannot use \"S\" twice"),
            "S" if has_words || self.has_brackets => {
                return wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
            }
            "MI" | "PL" | "SG" | "PR" if self.sign.is_some() => {
                return wrong(&format!("cannot use \"S\" and \"{word}\" together"));
            }
            // A digit that follows puts the sign before the number.
            "S" => self.sign = Some(SignPlace::After),
            "MI" => {
                self.has_minus = true;
                self.marks.push(NumberMark::Minus);
            }
            "PL" => {
                self.has_plus = true;
                self.marks.push(NumberMark::Plus);
            }
            "SG" => {
                (self.has_minus, self.has_plus) = (true, true);
                self.marks.push(NumberMark::Either);
            }
            "PR" if has_words => {
                return wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
            }
            "PR" => self.has_brackets = true,
            "RN" => self.roman = Some(is_upper),
            "TH" => self.marks.push(NumberMark::Ordinal(is_upper)),
            "L" => self.marks.push(NumberMark::Currency),
            "V" => return wrong("\"V\" is not supported; multiply the number"),
            _ => {}
        }
        Ok(())
    }

    /// The number as text.
    #[must_use]
    pub fn format(&self, number: PatternNumber<'_>) -> String {
        if let Some(is_upper) = self.roman {
            return roman(number, is_upper, self.is_short);
        }
        if self.is_scientific {
            return self.scientific(number);
        }
        let (is_negative, digits) = self.digits(number);
        NumberWriter::new(self, is_negative, &digits).write()
    }

    /// Whether the number is negative, and its digits as this pattern rounds them.
    fn digits(&self, number: PatternNumber<'_>) -> (bool, String) {
        let (is_negative, digits) = match number {
            PatternNumber::Float(float, _) if float.is_nan() => (false, "NaN".to_owned()),
            PatternNumber::Float(float, _) if float.is_infinite() => (float < 0.0, self.overflow()),
            PatternNumber::Float(float, shown) => {
                let whole = format!("{:.0}", float.abs()).len();
                let after = self.after.min(shown.saturating_sub(whole));
                (
                    float.is_sign_negative() && float != 0.0,
                    format!("{:.after$}", float.abs()),
                )
            }
            PatternNumber::Exact(text) => {
                let (is_negative, text) = match text.strip_prefix('-') {
                    Some(text) => (true, text),
                    None => (false, text),
                };
                let digits = rounded(text, self.after);
                // There is no negative zero.
                let is_zero = digits.bytes().all(|c| matches!(c, b'0' | b'.'));
                (is_negative && !is_zero, digits)
            }
        };
        let whole = digits.split('.').next().unwrap_or_default();
        if whole.len() > self.before {
            return (is_negative, self.overflow());
        }
        (is_negative, digits)
    }

    fn overflow(&self) -> String {
        let mut out = "#".repeat(self.before);
        if self.has_point {
            out.push('.');
            out.extend(std::iter::repeat_n('#', self.after));
        }
        out
    }

    fn scientific(&self, number: PatternNumber<'_>) -> String {
        let (is_negative, mantissa, exponent) = match number {
            PatternNumber::Float(float, _) if !float.is_finite() => {
                return format!(" #.{}", "#".repeat(self.after + 4));
            }
            PatternNumber::Float(float, _) => {
                let text = format!("{:.*e}", self.after, float.abs());
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent = exponent.parse().unwrap_or(0);
                (float < 0.0, mantissa.to_owned(), exponent)
            }
            PatternNumber::Exact(text) => {
                let (mantissa, exponent) = normalized(text.trim_start_matches('-'), self.after);
                (text.starts_with('-'), mantissa, exponent)
            }
        };
        let minus = if is_negative { '-' } else { ' ' };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{minus}{mantissa}e{sign}{:02}", exponent.unsigned_abs())
    }
}

fn wrong<T>(message: &str) -> Result<T, NumberPatternError> {
    Err(NumberPatternError(message.to_owned()))
}

/// A number without a sign with this many digits after its point; half of the last one goes away from zero.
fn rounded(text: &str, after: usize) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut digits: Vec<u8> = whole.bytes().collect();
    let point = digits.len();
    digits.extend(fraction.bytes());
    let cut = point + after;
    let goes_up = digits.get(cut).is_some_and(|digit| *digit >= b'5');
    digits.resize(cut, b'0');
    if goes_up {
        let mut at = cut;
        loop {
            if at == 0 {
                digits.insert(0, b'1');
                break;
            }
            at -= 1;
            if digits[at] < b'9' {
                digits[at] += 1;
                break;
            }
            digits[at] = b'0';
        }
    }
    let point = digits.len() - after;
    let zeros = digits[..point].iter().take_while(|digit| **digit == b'0');
    let leading = zeros.count().min(point.saturating_sub(1));
    let mut out: String = digits[leading..point]
        .iter()
        .map(|d| char::from(*d))
        .collect();
    if out.is_empty() {
        out.push('0');
    }
    if after > 0 {
        out.push('.');
        out.extend(digits[point..].iter().map(|digit| char::from(*digit)));
    }
    out
}

/// A number without a sign as a mantissa with this many digits after its point, and an exponent.
fn normalized(text: &str, after: usize) -> (String, i64) {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = [whole, fraction].concat();
    let Some(first) = digits.find(|digit| digit != '0') else {
        return (rounded("0", after), 0);
    };
    let exponent = whole.len() as i64 - 1 - first as i64;
    let mantissa = format!("{}.{}", &digits[first..=first], &digits[first + 1..]);
    let mantissa = rounded(&mantissa, after);
    if mantissa.starts_with("10") {
        return (rounded("1", after), exponent + 1);
    }
    (mantissa, exponent)
}

/// The marks of a pattern written for one number.
struct NumberWriter<'a> {
    pattern: &'a NumberPattern,
    is_negative: bool,
    digits: Vec<char>,
    /// Digits of the pattern that stand before those of the number.
    blanks: usize,
    /// With `FM`: the place of the last character of the number that is written.
    last_shown: Option<usize>,
    out: String,
    /// Digits and points of the pattern that were passed.
    passed: usize,
    /// Characters of the number that were passed.
    taken: usize,
    is_sign_done: bool,
    has_begun: bool,
}

impl<'a> NumberWriter<'a> {
    fn new(pattern: &'a NumberPattern, is_negative: bool, digits: &str) -> Self {
        let digits: Vec<char> = digits.chars().collect();
        let point = digits.iter().position(|c| *c == '.');
        let whole = point.unwrap_or(digits.len());
        let blanks = pattern.before.saturating_sub(whole);
        let last_shown = point.filter(|_| pattern.is_short).map(|point| {
            let zeros = digits.iter().rev().take_while(|c| **c == '0').count();
            let last = (digits.len() - 1 - zeros).max(point);
            // Digits that the pattern demands by `0` stay.
            let demanded = pattern.zero_end.saturating_sub(blanks);
            last.max(demanded.min(digits.len() - 1))
        });
        let is_sign_done = if pattern.has_minus || pattern.has_plus {
            pattern.has_minus
        } else {
            !is_negative && pattern.is_short && pattern.sign.is_none()
        };
        Self {
            pattern,
            is_negative,
            digits,
            blanks,
            last_shown,
            out: String::new(),
            passed: 0,
            taken: 0,
            is_sign_done,
            has_begun: false,
        }
    }

    fn sign(&self) -> char {
        if self.is_negative { '-' } else { '+' }
    }

    fn write(mut self) -> String {
        let is_digit = |mark: &NumberMark| matches!(mark, NumberMark::Digit(_) | NumberMark::Point);
        let last = self.pattern.marks.iter().rposition(is_digit);
        let is_short = self.pattern.is_short;
        for (at, mark) in self.pattern.marks.iter().enumerate() {
            let signed = |shown: bool, sign: char| match (shown, is_short) {
                (true, _) => Some(sign),
                (false, true) => None,
                (false, false) => Some(' '),
            };
            match mark {
                NumberMark::Digit(_) | NumberMark::Point => self.number_mark(mark),
                NumberMark::Comma if self.has_begun => self.out.push(','),
                NumberMark::Comma => self.out.extend((!is_short).then_some(' ')),
                NumberMark::Minus => self.out.extend(signed(self.is_negative, '-')),
                NumberMark::Plus => self.out.extend(signed(!self.is_negative, '+')),
                NumberMark::Either => self.out.push(self.sign()),
                NumberMark::Currency => self.out.push(' '),
                NumberMark::Ordinal(is_upper) => self.ordinal(*is_upper),
                NumberMark::Text(c) => self.out.push(*c),
            }
            if Some(at) == last {
                self.close();
            }
        }
        self.out
    }

    /// Whether the number is below one, and its zero is not shown.
    fn hides_zero(&self) -> bool {
        self.pattern.zero_start.is_none()
            && self.taken == 0
            && self.digits.first() == Some(&'0')
            && self.pattern.after > 0
    }

    fn number_mark(&mut self, mark: &NumberMark) {
        let is_short = self.pattern.is_short;
        let demands_zero = self
            .pattern
            .zero_start
            .is_some_and(|zero| zero <= self.passed);
        let shows_only_point = self
            .last_shown
            .is_some_and(|last| self.digits.get(last) == Some(&'.'));
        let begins = self.passed >= self.blanks || self.pattern.zero_start == Some(self.passed);
        if !self.is_sign_done && begins && (!self.hides_zero() || shows_only_point) {
            self.open();
        }
        if self.passed < self.blanks {
            if demands_zero {
                self.out.push('0');
                self.has_begun = true;
            } else if !is_short {
                self.out.push(' ');
            }
        } else if let Some(c) = self.digits.get(self.taken).copied() {
            let is_zero_mark = *mark == NumberMark::Digit(true);
            if c == '.' {
                self.out.push('.');
            } else if self.last_shown.is_some_and(|last| self.taken > last) && !is_zero_mark {
                // FM leaves the zeros at the end out.
            } else if self.hides_zero() {
                if !is_short {
                    self.out.push(' ');
                } else if shows_only_point {
                    self.out.push('0');
                }
            } else {
                self.out.push(c);
                self.has_begun = true;
            }
            self.taken += 1;
        }
        self.passed += 1;
    }

    /// Writes the sign before the number.
    fn open(&mut self) {
        let sign = match (self.pattern.sign, self.pattern.has_brackets) {
            (Some(SignPlace::After), _) => return,
            (Some(SignPlace::Before), _) => Some(self.sign()),
            (None, true) if self.is_negative => Some('<'),
            (None, _) if self.is_negative => Some('-'),
            (None, _) => (!self.pattern.is_short).then_some(' '),
        };
        self.out.extend(sign);
        self.is_sign_done = true;
    }

    /// Writes the sign behind the number.
    fn close(&mut self) {
        let is_short = self.pattern.is_short;
        if self.pattern.sign == Some(SignPlace::After) {
            self.out.push(self.sign());
        } else if self.pattern.has_brackets && self.is_negative {
            self.out.push('>');
        } else if self.pattern.has_brackets && !is_short {
            self.out.push(' ');
        }
    }

    fn ordinal(&mut self, is_upper: bool) {
        if self.is_negative || self.pattern.has_point || self.digits.first() == Some(&'#') {
            return;
        }
        let (last, before) = (self.digits.last(), self.digits.iter().rev().nth(1));
        let letters = match (last, before) {
            (_, Some('1')) => "th",
            (Some('1'), _) => "st",
            (Some('2'), _) => "nd",
            (Some('3'), _) => "rd",
            _ => "th",
        };
        if is_upper {
            self.out.push_str(&letters.to_uppercase());
        } else {
            self.out.push_str(letters);
        }
    }
}

/// A number from 1 to 3999 in Roman digits.
fn roman(number: PatternNumber<'_>, is_upper: bool, is_short: bool) -> String {
    const DIGITS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    const WIDTH: usize = 15;
    let whole = match number {
        PatternNumber::Float(float, _) => format!("{float:.0}"),
        PatternNumber::Exact(text) => rounded(text.trim_start_matches('-'), 0),
    };
    let is_negative = matches!(number, PatternNumber::Exact(text) if text.starts_with('-'));
    let Some(mut left) = whole
        .parse::<u32>()
        .ok()
        .filter(|number| !is_negative && (1..=3999).contains(number))
    else {
        return "#".repeat(WIDTH);
    };
    let mut out = String::new();
    for (value, digits) in DIGITS {
        while left >= value {
            out.push_str(digits);
            left -= value;
        }
    }
    if !is_upper {
        out = out.to_lowercase();
    }
    if is_short {
        out
    } else {
        format!("{out:>WIDTH$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's: `f` for a double, `e` for a numeric.
    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        let mut wrong = Vec::new();
        for line in include_str!("../tests/golden/to_char_numbers.tsv").lines() {
            let [kind, number, pattern, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let number = match kind {
                "f" => PatternNumber::Float(number.parse().unwrap(), 15),
                _ => PatternNumber::Exact(number),
            };
            let found = NumberPattern::parse(pattern).unwrap().format(number);
            if found != expected {
                wrong.push(format!("{line}: {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn some_numbers_have_no_digits() {
        let format = |pattern: &str, number| NumberPattern::parse(pattern).unwrap().format(number);
        let float = |float| PatternNumber::Float(float, 15);
        assert_eq!(format("999.9", float(f64::NAN)), " NaN");
        assert_eq!(format("999.9", float(f64::INFINITY)), " ###.#");
        assert_eq!(format("RN", float(494.0)), "         CDXCIV");
        assert_eq!(format("FMrn", PatternNumber::Exact("3999")), "mmmcmxcix");
        assert_eq!(format("RN", PatternNumber::Exact("0")), "###############");
        assert_eq!(format("9.9EEEE", PatternNumber::Exact("99.96")), " 1.0e+02");
        assert_eq!(format("", float(1.0)), "");
        let huge = format!("{}99", "9".repeat(400));
        assert_eq!(format("999", PatternNumber::Exact(&huge)), " ###");
        assert_eq!(format(&"9".repeat(310), float(f64::MAX)).trim().len(), 309);
    }

    #[test]
    fn contradictions_are_refused() {
        for (pattern, message) in [
            ("9.9.9", "multiple decimal points"),
            ("9S9S", "cannot use \"S\" twice"),
            ("9SMI", "cannot use \"S\" and \"MI\" together"),
            ("9EEEE9", "\"EEEE\" must be the last pattern used"),
            ("99V9", "\"V\" is not supported"),
        ] {
            let error = NumberPattern::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(message), "{pattern}: {error}");
        }
    }
}
