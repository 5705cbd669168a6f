//! `to_number(text, pattern)`: numbers read with the patterns of `to_char`.
//!
//! As in PostgreSQL, the marks of a pattern take the characters of the text in turn. Texts that do not suit
//! the pattern exactly are read as far as they do.

use crate::number_pattern::{NumberMark, NumberPattern};

/// Why a text is no number (SQLSTATE `22P02` or `0A000`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternReadError {
    /// The text has no digit (`22P02`).
    #[error("invalid input syntax for type numeric: \"{0}\"")]
    Number(String),
    /// A mark that only `to_char` knows (`0A000`).
    #[error("\"{0}\" not supported for input")]
    OnlyWritten(&'static str),
}

impl PatternReadError {
    /// Its SQLSTATE.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Number(_) => "22P02",
            Self::OnlyWritten(_) => "0A000",
        }
    }
}

impl NumberPattern {
    /// The most digits that a number of this pattern has before and after its point.
    #[must_use]
    pub fn digits_max(&self) -> (usize, usize) {
        (self.before, self.after)
    }

    /// Reads a number: a sign, digits and a point.
    ///
    /// # Errors
    /// If there is no digit, or the pattern is only for writing.
    pub fn read(&self, text: &str) -> Result<String, PatternReadError> {
        if self.is_scientific {
            return Err(PatternReadError::OnlyWritten("EEEE"));
        }
        if self.roman.is_some() {
            return Err(PatternReadError::OnlyWritten("RN"));
        }
        let mut reader = NumberReader {
            pattern: self,
            text: text.chars().collect(),
            place: 0,
            sign: None,
            digits: String::new(),
            before: 0,
            after: 0,
            has_point: false,
        };
        for mark in &self.marks {
            if reader.place >= reader.text.len() {
                break;
            }
            reader.take(mark);
        }
        let digits = reader.digits.trim_end_matches('.');
        if reader.before + reader.after == 0 {
            return Err(PatternReadError::Number(text.to_owned()));
        }
        let sign = if reader.sign == Some('-') { "-" } else { "" };
        Ok(format!("{sign}{digits}"))
    }
}

struct NumberReader<'a> {
    pattern: &'a NumberPattern,
    text: Vec<char>,
    place: usize,
    sign: Option<char>,
    digits: String,
    before: usize,
    after: usize,
    has_point: bool,
}

impl NumberReader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.place).copied()
    }

    fn has_digit_at(&self, place: usize) -> bool {
        self.text.get(place).is_some_and(char::is_ascii_digit)
    }

    /// Passes characters that are no part of a number.
    fn pass_others(&mut self, count: usize) {
        for _ in 0..count {
            if self.peek().is_none_or(|c| "0123456789.,+-".contains(c)) {
                break;
            }
            self.place += 1;
        }
    }

    fn take(&mut self, mark: &NumberMark) {
        let found = self.peek();
        match mark {
            NumberMark::Digit(_) | NumberMark::Point => {
                self.number(matches!(mark, NumberMark::Digit(_)));
                self.place += 1;
            }
            NumberMark::Comma => self.place += usize::from(found == Some(',')),
            NumberMark::Currency => self.pass_others(1),
            NumberMark::Ordinal(_) => self.pass_others(2),
            NumberMark::Text(_) => self.place += 1,
            NumberMark::Minus | NumberMark::Plus | NumberMark::Either => {
                let is_sign = match mark {
                    NumberMark::Minus => found == Some('-'),
                    NumberMark::Plus => found == Some('+'),
                    _ => matches!(found, Some('-' | '+')),
                };
                if is_sign {
                    self.sign = found;
                    self.place += 1;
                } else {
                    self.pass_others(1);
                }
            }
        }
    }

    /// Reads what a digit or the point takes, up to its last character.
    fn number(&mut self, is_digit: bool) {
        if self.peek() == Some(' ') {
            self.place += 1;
        }
        if self.sign.is_none() && is_digit && self.before + self.after == 0 {
            match self.peek() {
                Some(sign @ ('-' | '+')) => {
                    self.sign = Some(sign);
                    self.place += 1;
                }
                Some('<') if self.pattern.has_brackets => {
                    self.sign = Some('-');
                    self.place += 1;
                }
                _ => {}
            }
        }
        let Some(c) = self.peek() else { return };
        let mut is_read = false;
        if c.is_ascii_digit() {
            if self.has_point && self.after == self.pattern.after {
                return;
            }
            self.digits.push(c);
            if self.has_point {
                self.after += 1;
            } else {
                self.before += 1;
            }
            is_read = true;
        } else if self.pattern.has_point && !self.has_point && c == '.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        if self.sign.is_some() || self.before + self.after == 0 {
            return;
        }
        // The sign behind the last digit, wherever that is.
        if self.pattern.sign.is_some() {
            let behind = self.text.get(self.place + 1).copied();
            if is_read
                && !self.has_digit_at(self.place + 1)
                && let Some(sign @ ('-' | '+')) = behind
            {
                self.sign = Some(sign);
                self.place += 1;
            }
        } else if !is_read
            && (self.pattern.has_minus || self.pattern.has_plus)
            && matches!(c, '-' | '+')
        {
            self.sign = Some(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's.
    #[test]
    fn numbers_are_read_as_postgresql_reads_them() {
        for (text, pattern, expected) in [
            ("12,454.8-", "99G999D9S", "-12454.8"),
            ("1234", "9999", "1234"),
            ("$1,234.56", "L9,999.99", "1234.56"),
            ("-34,338,492", "99G999G999", "-34338492"),
            ("<564646.654564>", "999999.999999PR", "-564646.654564"),
            ("0.00001-", "9.999999S", "-0.00001"),
            ("5.01-", "FM9.999999S", "-5.01"),
            ("1 2 3 4 5", "9 9 9 9 9", "12345"),
            ("42nd", "99th", "42"),
            ("  12", "9999", "12"),
            ("+12", "S99", "12"),
            ("-12", "MI99", "-12"),
            ("-12", "99S", "-12"),
            ("12.345", "99.99", "12.34"),
            ("1234.5", "99", "12"),
        ] {
            let found = NumberPattern::parse(pattern).unwrap().read(text);
            assert_eq!(found.as_deref(), Ok(expected), "{text} as {pattern}");
        }
        for text in ["", "abc"] {
            let found = NumberPattern::parse("999").unwrap().read(text);
            assert!(found.is_err(), "{text}");
        }
    }
}
