//! Parses field values and times.

use super::text::shown;
use super::{LineFault, Precision, fault};
use marigram_model::{FieldType, Limits};
use memchr::{memchr, memchr2};

/// A value of a field. Text is the raw text between its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineValue<'a> {
    F64(f64),
    I64(i64),
    U64(u64),
    Bool(bool),
    Text(&'a str),
    /// Text that contains a backslash.
    Escaped(&'a str),
}

/// Number of field types that lines can have.
pub(super) const KINDS: usize = 5;

impl LineValue<'_> {
    /// Number of the value's type, below [`KINDS`].
    pub(super) fn kind(&self) -> usize {
        match self {
            Self::F64(_) => 0,
            Self::I64(_) => 1,
            Self::U64(_) => 2,
            Self::Bool(_) => 3,
            Self::Text(_) | Self::Escaped(_) => 4,
        }
    }

    pub(super) fn field_type(&self) -> FieldType {
        match self {
            Self::F64(_) => FieldType::F64,
            Self::I64(_) => FieldType::I64,
            Self::U64(_) => FieldType::U64,
            Self::Bool(_) => FieldType::Bool,
            Self::Text(_) | Self::Escaped(_) => FieldType::String,
        }
    }
}

/// Parses the value at byte `at`; returns it and its end.
#[inline]
pub(super) fn parse_value(text: &str, at: usize) -> Result<(LineValue<'_>, usize), LineFault> {
    match text.as_bytes().get(at) {
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => parse_number(text, at),
        Some(b'"') => parse_text(text, at),
        Some(_) => parse_word(text, at),
        None => fault(at, "a field has no value"),
    }
}

/// Whether a value can end before this byte.
#[inline]
fn is_end(byte: Option<&u8>) -> bool {
    matches!(byte, None | Some(b',' | b' ' | b'\n' | b'\r'))
}

/// The end of the value that begins at `at`, if it is not text.
fn word_end(bytes: &[u8], at: usize) -> usize {
    (at..bytes.len())
        .find(|at| is_end(bytes.get(*at)))
        .unwrap_or(bytes.len())
}

/// Powers of ten that f64 holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Parses a number. The digits are read as one integer. If the digits and the power of ten of a
/// float are both exact in f64, the float is their quotient, correctly rounded (Clinger, 1990). The
/// standard library parses all others.
#[inline]
fn parse_number(text: &str, start: usize) -> Result<(LineValue<'_>, usize), LineFault> {
    let bytes = text.as_bytes();
    let negative = bytes[start] == b'-';
    let mut at = start + usize::from(negative);
    let first = at;
    let mut digits: u64 = 0;
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        digits = digits
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    // Up to 19 digits, the integer has not wrapped around.
    let whole = at - first;
    if (1..=19).contains(&whole) {
        match bytes.get(at) {
            Some(b'i') if is_end(bytes.get(at + 1)) => {
                let value = if negative {
                    0i64.checked_sub_unsigned(digits)
                } else {
                    digits.try_into().ok()
                };
                if let Some(value) = value {
                    return Ok((LineValue::I64(value), at + 1));
                }
            }
            Some(b'u') if is_end(bytes.get(at + 1)) && !negative => {
                return Ok((LineValue::U64(digits), at + 1));
            }
            Some(b'.') => {
                at += 1;
                let point = at;
                while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
                    digits = digits
                        .wrapping_mul(10)
                        .wrapping_add(u64::from(digit - b'0'));
                    at += 1;
                }
                let decimals = at - point;
                if is_end(bytes.get(at)) && whole + decimals <= 19 && digits <= 1 << 53 {
                    let value = digits as f64 / TENS[decimals];
                    return Ok((LineValue::F64(if negative { -value } else { value }), at));
                }
            }
            next if is_end(next) && digits <= 1 << 53 => {
                let value = digits as f64;
                return Ok((LineValue::F64(if negative { -value } else { value }), at));
            }
            _ => {}
        }
    }
    let end = word_end(bytes, start);
    parse_rare_number(&text[start..end], start).map(|value| (value, end))
}

/// Parses any number.
#[cold]
fn parse_rare_number(word: &str, at: usize) -> Result<LineValue<'_>, LineFault> {
    let is_digits = |digits: &str| {
        let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some(digits) = word.strip_suffix('i').filter(|digits| is_digits(digits)) {
        return match digits.parse() {
            Ok(value) => Ok(LineValue::I64(value)),
            Err(_) => fault(at, format!("{} does not fit into 64 bits", shown(word))),
        };
    }
    if let Some(digits) = word.strip_suffix('u').filter(|digits| is_digits(digits)) {
        return match digits.parse() {
            Ok(value) => Ok(LineValue::U64(value)),
            Err(_) => fault(
                at,
                format!("{} does not fit into 64 bits without a sign", shown(word)),
            ),
        };
    }
    // The standard library also accepts words (inf, nan, infinity), which are not numbers here.
    let is_number = word
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match word.parse::<f64>() {
        Ok(value) if is_number && value.is_finite() => Ok(LineValue::F64(value)),
        Ok(_) if is_number => fault(at, format!("{} is too large for a float", shown(word))),
        Ok(_) => fault(
            at,
            format!("{}: NaN and infinity are not allowed", shown(word)),
        ),
        Err(_) => fault(at, format!("'{}' is not a number", shown(word))),
    }
}

/// Parses a truth value, or explains what the word is not.
fn parse_word(text: &str, at: usize) -> Result<(LineValue<'_>, usize), LineFault> {
    let end = word_end(text.as_bytes(), at);
    let value = match &text[at..end] {
        "t" | "T" | "true" | "True" | "TRUE" => true,
        "f" | "F" | "false" | "False" | "FALSE" => false,
        "" => return fault(at, "a field has no value"),
        word if word.parse::<f64>().is_ok() => {
            return fault(at, format!("{word}: NaN and infinity are not allowed"));
        }
        word => {
            let word = shown(word);
            let reason =
                format!("'{word}' is neither a number nor a truth value; text needs quotes");
            return fault(at, reason);
        }
    };
    Ok((LineValue::Bool(value), end))
}

/// Parses quoted text.
fn parse_text(text: &str, start: usize) -> Result<(LineValue<'_>, usize), LineFault> {
    let bytes = text.as_bytes();
    let first = start + 1;
    let mut at = first;
    let mut escapes = 0;
    let mut backslash = false;
    loop {
        let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) else {
            return fault(start, "a text has no closing quote");
        };
        at += found;
        if bytes[at] == b'"' {
            break;
        }
        backslash = true;
        let escape = matches!(bytes.get(at + 1), Some(b'"' | b'\\'));
        escapes += usize::from(escape);
        at += 1 + usize::from(escape);
    }
    let (len, max) = (at - first - escapes, Limits::VALUE_BYTES_MAX);
    if len > max {
        return fault(
            start,
            format!("a text has {len} bytes; at most {max} are allowed"),
        );
    }
    let raw = &text[first..at];
    Ok((
        if backslash {
            LineValue::Escaped(raw)
        } else {
            LineValue::Text(raw)
        },
        at + 1,
    ))
}

/// Number of line breaks in a value.
pub(super) fn line_breaks(raw: &str) -> u32 {
    match memchr(b'\n', raw.as_bytes()) {
        None => 0,
        Some(_) => memchr::memchr_iter(b'\n', raw.as_bytes()).count() as u32,
    }
}

/// Parses the time (ns) at byte `at`; returns it and its end.
#[inline]
pub(super) fn parse_time(
    text: &str,
    at: usize,
    precision: Precision,
) -> Result<(i64, usize), LineFault> {
    let end = word_end(text.as_bytes(), at);
    let word = &text[at..end];
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let reason = format!("'{}' is not a time: an integer is expected", shown(word));
        return fault(at, reason);
    }
    let time = word
        .parse()
        .ok()
        .and_then(|time: i64| time.checked_mul(precision.unit_ns()));
    if let Some(time) = time {
        return Ok((time, end));
    }
    let reason = format!(
        "the time {} is out of range (years 1677 to 2262); is the precision right?",
        shown(word)
    );
    fault(at, reason)
}
