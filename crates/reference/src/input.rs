//! Checks of values on their way in, as PostgreSQL checks them on assignment.

use crate::definition::ReferenceType;
use crate::error::{ReferenceError, Result};
use crate::json;
use std::borrow::Cow;

/// A text as its type stores it.
pub(crate) fn text(kind: ReferenceType, value: &str) -> Result<Cow<'_, str>> {
    if value.as_bytes().contains(&0) {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(ReferenceError::new("22021", message));
    }
    match kind {
        ReferenceType::Varchar(most) => Ok(Cow::Borrowed(cut(kind, value, most)?)),
        ReferenceType::Char(length) => Ok(filled(cut(kind, value, length)?, length)),
        ReferenceType::Uuid => uuid(value),
        ReferenceType::Json => {
            json::check_json(value)?;
            Ok(Cow::Borrowed(value))
        }
        ReferenceType::Jsonb => Ok(Cow::Owned(json::canonical_jsonb(value)?)),
        _ => Ok(Cow::Borrowed(value)),
    }
}

/// A text as a filter compares it: of a `char(n)`, spaces at the end do not count, and one that is too long is no
/// error.
pub(crate) fn compared_text(kind: ReferenceType, value: &str) -> Result<Cow<'_, str>> {
    match kind {
        ReferenceType::Varchar(_) => text(ReferenceType::Text, value),
        ReferenceType::Char(length) => Ok(filled(value.trim_end_matches(' '), length)),
        _ => text(kind, value),
    }
}

/// A text of at most `most` characters; spaces at the end are cut.
fn cut(kind: ReferenceType, value: &str, most: u32) -> Result<&str> {
    let most = most as usize;
    if value.len() <= most {
        return Ok(value);
    }
    let Some((end, _)) = value.char_indices().nth(most) else {
        return Ok(value);
    };
    let (start, rest) = value.split_at(end);
    if rest.bytes().all(|byte| byte == b' ') {
        return Ok(start);
    }
    Err(ReferenceError::new(
        "22001",
        format!("value too long for type {kind}"),
    ))
}

fn filled(value: &str, length: u32) -> Cow<'_, str> {
    let missing = (length as usize).saturating_sub(value.chars().count());
    if missing == 0 {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{value}{}", " ".repeat(missing)))
}

/// A UUID in lower case with its four hyphens. PostgreSQL also reads braces around it and a hyphen, or none, after
/// every four digits.
fn uuid(value: &str) -> Result<Cow<'_, str>> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let bytes = value.as_bytes();
    let is_canonical = bytes.len() == 36
        && bytes.iter().enumerate().all(|(position, byte)| {
            if HYPHENS.contains(&position) {
                *byte == b'-'
            } else {
                matches!(byte, b'0'..=b'9' | b'a'..=b'f')
            }
        });
    if is_canonical {
        return Ok(Cow::Borrowed(value));
    }
    let invalid = || {
        let message = format!("invalid input syntax for type uuid: \"{value}\"");
        ReferenceError::new("22P02", message)
    };
    let inner = value
        .strip_prefix('{')
        .map_or(Some(value), |rest| rest.strip_suffix('}'));
    let inner = inner.ok_or_else(invalid)?;
    let (mut canonical, mut digits, mut was_hyphen) = (String::with_capacity(36), 0, false);
    for byte in inner.bytes() {
        if byte == b'-' {
            if was_hyphen || digits % 4 != 0 || digits == 0 || digits == 32 {
                return Err(invalid());
            }
            was_hyphen = true;
            continue;
        }
        if !byte.is_ascii_hexdigit() || digits == 32 {
            return Err(invalid());
        }
        if matches!(digits, 8 | 12 | 16 | 20) {
            canonical.push('-');
        }
        canonical.push(char::from(byte.to_ascii_lowercase()));
        digits += 1;
        was_hyphen = false;
    }
    if digits != 32 {
        return Err(invalid());
    }
    Ok(Cow::Owned(canonical))
}

/// Checks that a number has no more digits than its type.
pub(crate) fn check_digits(value: i128, precision: u8, scale: i8) -> Result<()> {
    let fits = 10_u128
        .checked_pow(precision.into())
        .is_none_or(|end| value.unsigned_abs() < end);
    if fits {
        return Ok(());
    }
    let detail = format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}.",
        i32::from(precision) - i32::from(scale)
    );
    Err(ReferenceError::new("22003", "numeric field overflow").with_detail(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_too_long_are_refused_unless_spaces_make_them_so() {
        let three = ReferenceType::Varchar(3);
        assert_eq!(text(three, "äöü").unwrap(), "äöü");
        assert_eq!(text(three, "ab     ").unwrap(), "ab ");
        let error = text(three, "abcd").unwrap_err();
        assert_eq!(error.sqlstate, "22001");
        assert_eq!(
            error.message,
            "value too long for type character varying(3)"
        );
        let error = text(ReferenceType::Char(2), "abc").unwrap_err();
        assert_eq!(error.message, "value too long for type character(2)");
        assert_eq!(text(ReferenceType::Char(3), "ä").unwrap(), "ä  ");
        assert_eq!(
            text(ReferenceType::Text, "a\0").unwrap_err().sqlstate,
            "22021"
        );
        assert_eq!(compared_text(three, "abcd").unwrap(), "abcd");
        assert_eq!(
            compared_text(ReferenceType::Char(3), "a    ").unwrap(),
            "a  "
        );
    }

    #[test]
    fn uuids_are_read_as_postgresql_reads_them() {
        let expected = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for value in [
            expected,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(text(ReferenceType::Uuid, value).unwrap(), expected);
        }
        for value in [
            "",
            "a",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a1g",
            "a0eebc999c0b4ef8bb6d6bb9bd380a110",
            "a0e-ebc999c0b4ef8bb6d6bb9bd380a11",
            "ä",
        ] {
            let error = text(ReferenceType::Uuid, value).unwrap_err();
            assert_eq!(
                error.message,
                format!("invalid input syntax for type uuid: \"{value}\"")
            );
        }
    }

    #[test]
    fn numbers_with_too_many_digits_are_refused() {
        check_digits(99_999, 5, 2).unwrap();
        let error = check_digits(-100_000, 5, 2).unwrap_err();
        assert!(error.detail.unwrap().ends_with("less than 10^3."));
        check_digits(i128::from(i64::MAX), 38, 0).unwrap();
    }
}
