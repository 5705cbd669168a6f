//! Cells that contain numbers, truth values or nothing.

use std::borrow::Cow;

/// Markers for a missing value in columns of numbers, truth values and times. In text columns, only
/// an empty cell is missing: `NA` may be Namibia.
pub const NULLS: [&str; 43] = [
    "",
    "-",
    "--",
    "---",
    "\u{2013}",
    "\u{2014}",
    "#N/A",
    "#NA",
    "N/A",
    "n/a",
    "NA",
    "n.a.",
    "null",
    "NULL",
    "Null",
    "nil",
    "None",
    "none",
    "\\N",
    "?",
    // Spreadsheets in German and French.
    "#NV",
    "k.A.",
    "#DIV/0!",
    "#VALUE!",
    "#WERT!",
    "#VALEUR!",
    "#NUM!",
    "#ZAHL!",
    "#NOMBRE!",
    "#REF!",
    "#BEZUG!",
    "#NAME?",
    // Columns that are too narrow for their numbers.
    "#####",
    "########",
    // Home Assistant.
    "unavailable",
    "unknown",
    // Loggers.
    "undefined",
    "No Data",
    "no data",
    "***",
    // Historians of control systems.
    "Bad",
    "Bad Input",
    "I/O Timeout",
];

/// Texts for "not a number", in lower case and without a sign. Loggers and statistics programs write
/// them for a missing value, and an average over one of them is one of them.
const NANS: [&str; 4] = ["nan", "nan(ind)", "1.#qnan", "1.#ind"];

/// Whether `cell` stands for a missing value; `told` has further markers.
pub fn is_null(cell: &str, told: &[String]) -> bool {
    NULLS.contains(&cell) || is_nan(cell) || told.iter().any(|marker| marker == cell)
}

/// Whether `cell` is a text for "not a number".
pub fn is_nan(cell: &str) -> bool {
    let bare = cell.trim_start_matches(['-', '+']);
    bare.len() <= 8 && NANS.iter().any(|nan| nan.eq_ignore_ascii_case(bare))
}

/// Whether `cell` is a number beyond those of a DOUBLE, or an infinity by its name.
pub fn is_infinite(cell: &str) -> bool {
    let text = cell.replace(',', ".");
    text.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// How fractions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1234.5`, `1,234.5`
    Point,
    /// `1234,5`, `1.234,5`
    Comma,
}

/// How a cell's number may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberStyle {
    /// It is a number with a decimal point, or without any decimal mark.
    pub point: bool,
    /// It is a number with a decimal comma, or without any decimal mark.
    pub comma: bool,
    /// It contains a point or comma, and the two readings differ.
    pub differs: bool,
}

/// How `cell` can be read as a number.
pub fn numeral(cell: &str) -> NumberStyle {
    let (point, comma) = (
        read_f64(cell, DecimalMark::Point),
        read_f64(cell, DecimalMark::Comma),
    );
    if point.is_none() && comma.is_none() && is_infinite(cell) {
        // It makes its column no text: its row is refused.
        return NumberStyle {
            point: true,
            comma: true,
            differs: false,
        };
    }
    NumberStyle {
        point: point.is_some(),
        comma: comma.is_some(),
        differs: point.is_some() && comma.is_some() && point != comma && has_mark(cell),
    }
}

fn has_mark(cell: &str) -> bool {
    cell.bytes().any(|byte| matches!(byte, b',' | b'.'))
}

/// Parses a finite number, unless it is an integer that a DOUBLE cannot hold exactly.
pub fn read_f64(cell: &str, decimal: DecimalMark) -> Option<f64> {
    let cell = &*ungrouped(cell);
    let number: f64 = match plain(cell, decimal)? {
        ParsedNumber::AsIs => cell.parse().ok()?,
        ParsedNumber::Text(text) => text.parse().ok()?,
    };
    let is_exact = number.abs() < DOUBLE_EXACT || cell.contains(['.', ',', 'e', 'E']);
    (is_exact && number.is_finite()).then_some(number)
}

/// Parses a whole number, however it is written: `5`, `5.0`, `1e3`, `1 234`. `None` if the number is not
/// whole, or has more than 38 digits: it is never rounded.
pub fn read_integer(cell: &str, decimal: DecimalMark) -> Option<i128> {
    let cell = &*ungrouped(cell);
    let text = match plain(cell, decimal)? {
        ParsedNumber::AsIs => Cow::Borrowed(cell),
        ParsedNumber::Text(text) => Cow::Owned(text),
    };
    let (negative, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, &*text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let power = i64::from(exponent) - i64::try_from(fraction.len()).ok()? + zeros;
    let power = u32::try_from(power).ok()?;
    if significant.len() + power as usize > DIGITS_MAX {
        return None;
    }
    let number = significant.parse::<i128>().ok()? * 10_i128.pow(power);
    Some(if negative { -number } else { number })
}

/// Digits of the largest whole number that is read; the largest integer of a table has 20.
const DIGITS_MAX: usize = 38;

/// The minus of typography, and the dashes and wide signs that programs put in its place.
pub const MINUSES: [char; 5] = ['\u{2212}', '\u{2012}', '\u{2013}', '\u{fe63}', '\u{ff0d}'];

/// A number whose sign is one of [`MINUSES`], with that of ASCII.
pub fn with_ascii_minus(cell: &str) -> Cow<'_, str> {
    match cell.strip_prefix(MINUSES) {
        Some(rest)
            if rest.starts_with(|char: char| char.is_ascii_digit() || ",.".contains(char)) =>
        {
            Cow::Owned(format!("-{rest}"))
        }
        _ => Cow::Borrowed(cell),
    }
}

/// Marks between groups of three digits that are no decimal marks: blanks and apostrophes.
const GROUP_MARKS: [char; 5] = [' ', '\u{a0}', '\u{202f}', '\'', '\u{2019}'];

/// A number without marks between groups of three digits (`1 234,5`, `1'234.5`), and with an ASCII
/// minus; other texts unchanged.
fn ungrouped(cell: &str) -> Cow<'_, str> {
    if cell.is_ascii() && !cell.contains([' ', '\'']) {
        return Cow::Borrowed(cell);
    }
    let signed = with_ascii_minus(cell);
    let Some(mark) = signed.chars().find(|char| GROUP_MARKS.contains(char)) else {
        return signed;
    };
    let end = signed.find([',', '.']).unwrap_or(signed.len());
    let (whole, rest) = signed.split_at(end);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.trim_start_matches(['-', '+']).split(mark);
    let first = groups.next().unwrap_or_default();
    let is_first = (1..=3).contains(&first.len()) && is_digits(first) && !first.starts_with('0');
    if is_first && groups.all(|group| group.len() == 3 && is_digits(group)) && !rest.contains(mark)
    {
        return Cow::Owned(signed.replace(mark, ""));
    }
    signed
}

/// 2^53: a DOUBLE holds every integer below it.
const DOUBLE_EXACT: f64 = 9_007_199_254_740_992.0;

enum ParsedNumber {
    AsIs,
    Text(String),
}

/// The number in standard notation; `None` if its marks are misplaced.
fn plain(cell: &str, decimal: DecimalMark) -> Option<ParsedNumber> {
    let (mark, group) = match decimal {
        DecimalMark::Point => (b'.', b','),
        DecimalMark::Comma => (b',', b'.'),
    };
    let bytes = cell.as_bytes();
    let is_plain = |byte: &u8| *byte != b',' && (decimal == DecimalMark::Point || *byte != b'.');
    if bytes.iter().all(is_plain) {
        return Some(ParsedNumber::AsIs);
    }
    let unsigned = bytes
        .strip_prefix(b"-")
        .or_else(|| bytes.strip_prefix(b"+"))
        .unwrap_or(bytes);
    let whole_end = unsigned
        .iter()
        .position(|byte| *byte == mark || matches!(byte, b'e' | b'E'))
        .unwrap_or(unsigned.len());
    let (whole, rest) = unsigned.split_at(whole_end);
    if rest.contains(&group) || rest.iter().filter(|byte| **byte == mark).count() > 1 {
        return None;
    }
    // Every group has three digits, except the first, which does not begin with a zero: "0.123" is
    // a fraction.
    let mut groups = whole.split(|byte| *byte == group);
    let first = groups.next()?;
    let mut is_grouped = false;
    for part in groups {
        is_grouped = true;
        if part.len() != 3 || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
    }
    if is_grouped && (!(1..=3).contains(&first.len()) || first.starts_with(b"0")) {
        return None;
    }
    let text = cell
        .chars()
        .filter(|char| !char.is_ascii() || *char as u8 != group)
        .map(|char| {
            if char.is_ascii() && char as u8 == mark {
                '.'
            } else {
                char
            }
        });
    Some(ParsedNumber::Text(text.collect()))
}

/// Parses a truth value as files contain it. 0 and 1 are numbers.
pub fn read_bool(cell: &str) -> Option<bool> {
    match cell {
        "true" | "True" | "TRUE" | "t" | "yes" => Some(true),
        "false" | "False" | "FALSE" | "f" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_none() {
        for (cell, point, comma) in [
            ("5", Some(5), Some(5)),
            ("5.0", Some(5), None),
            ("5,0", None, Some(5)),
            ("-5.00e0", Some(-5), None),
            ("1e3", Some(1000), Some(1000)),
            ("1.5e1", Some(15), None),
            ("1200e-2", Some(12), Some(12)),
            ("1e-1", None, None),
            ("5.5", None, None),
            ("0.0", Some(0), None),
            ("0e999", Some(0), Some(0)),
            ("1e999999999", None, None),
            ("1e99999999999999", None, None),
            ("1 234", Some(1234), Some(1234)),
            ("1,234", Some(1234), None),
            ("\u{2212}7", Some(-7), Some(-7)),
            (
                "9007199254740993",
                Some(9_007_199_254_740_993),
                Some(9_007_199_254_740_993),
            ),
            (
                "18446744073709551615.0",
                Some(18_446_744_073_709_551_615),
                None,
            ),
            ("", None, None),
            (".", None, None),
            ("+", None, None),
            ("e3", None, None),
            ("5x", None, None),
            ("--5", None, None),
            ("NaN", None, None),
        ] {
            assert_eq!(read_integer(cell, DecimalMark::Point), point, "{cell}");
            assert_eq!(read_integer(cell, DecimalMark::Comma), comma, "{cell}");
        }
    }

    #[test]
    fn numbers_are_read_in_both_notations() {
        for (cell, point, comma) in [
            ("1", Some(1.0), Some(1.0)),
            ("-2.5", Some(-2.5), None),
            ("2,5", None, Some(2.5)),
            ("1.234", Some(1.234), Some(1234.0)),
            ("1,234", Some(1234.0), Some(1.234)),
            ("1.234,5", None, Some(1234.5)),
            ("1,234.5", Some(1234.5), None),
            ("-1,5e3", None, Some(-1500.0)),
            ("1,5,5", None, None),
            ("0.123", Some(0.123), None),
            ("-0,750", None, Some(-0.75)),
            (",5", None, Some(0.5)),
            ("9007199254740993", None, None),
            ("x", None, None),
            ("1 234,5", None, Some(1234.5)),
            ("1\u{202f}234", Some(1234.0), Some(1234.0)),
            ("12'345'678.5", Some(12_345_678.5), None),
            ("\u{2212}3,6", None, Some(-3.6)),
            ("\u{2013}3.6", Some(-3.6), None),
            ("\u{2013}", None, None),
            ("\u{2013}\u{2013}3", None, None),
            ("030 123", None, None),
            ("1 2", None, None),
        ] {
            assert_eq!(read_f64(cell, DecimalMark::Point), point, "{cell}");
            assert_eq!(read_f64(cell, DecimalMark::Comma), comma, "{cell}");
        }
        assert!(numeral("1,234").differs && !numeral("12").differs);
        for cell in ["NaN", "inf", "-Infinity", "1e999"] {
            assert_eq!(read_f64(cell, DecimalMark::Point), None, "{cell}");
        }
        assert!(is_infinite("1e999") && is_infinite("-INF") && !is_infinite("1e99"));
        assert!(is_null("NAN", &[]) && is_null("-nan", &[]) && !is_null("nano", &[]));
    }
}
