//! Numbers and strings as `jsonb` writes them.

use crate::error::{ReferenceError, Result};
use std::fmt::Write;

/// Digits of a number before and behind its point, as in PostgreSQL's numeric.
const INTEGER_DIGITS_MAX: i64 = 131_072;
const FRACTION_DIGITS_MAX: i64 = 16_383;

/// Writes a number without exponent.
pub(crate) fn write_number(
    out: &mut String,
    is_negative: bool,
    integer: &str,
    fraction: &str,
    exponent: i64,
) -> Result<()> {
    let digits = format!("{integer}{fraction}");
    let point = (integer.len() as i64).saturating_add(exponent);
    let scale = (fraction.len() as i64).saturating_sub(exponent).max(0);
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    if (point > INTEGER_DIGITS_MAX && !is_zero) || scale > FRACTION_DIGITS_MAX {
        return Err(ReferenceError::new(
            "22003",
            "value overflows numeric format",
        ));
    }
    if is_negative && !is_zero {
        out.push('-');
    }
    let scale = scale as usize;
    if is_zero || point <= 0 {
        out.push('0');
    } else {
        let whole: String = digits
            .chars()
            .chain(std::iter::repeat('0'))
            .take(point as usize)
            .collect();
        let trimmed = whole.trim_start_matches('0');
        out.push_str(if trimmed.is_empty() { "0" } else { trimmed });
    }
    if scale > 0 {
        out.push('.');
        let behind = if is_zero {
            "0".repeat(scale)
        } else if point <= 0 {
            format!("{}{digits}", "0".repeat(point.unsigned_abs() as usize))
        } else {
            digits.chars().skip(point as usize).collect()
        };
        out.push_str(&behind);
    }
    Ok(())
}

/// Writes a string with its quotes.
pub(crate) fn write_string(out: &mut String, value: &str) {
    out.push('"');
    for next in value.chars() {
        match next {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => drop(write!(out, "\\u{:04x}", u32::from(next))),
            _ => out.push(next),
        }
    }
    out.push('"');
}
