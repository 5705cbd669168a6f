//! Texts within JSON, and the escapes in them.

use super::columns::write_quoted;
use crate::refusal::refused;
use datafusion::common::{DataFusionError, Result};
use std::borrow::Cow;

/// The length of the text with which `json` begins, with its quotes; `None` if it begins with none.
pub(super) fn read_string(json: &str) -> Option<usize> {
    let bytes = json.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut place = 1;
    loop {
        match *bytes.get(place)? {
            b'"' => return Some(place + 1),
            b'\\' => match *bytes.get(place + 1)? {
                b'u' => {
                    let digits = bytes.get(place + 2..place + 6)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    place += 6;
                }
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => place += 2,
                _ => return None,
            },
            byte if byte < b' ' => return None,
            _ => place += 1,
        }
    }
}

/// The characters of a text that [`read_string`] accepted, with its quotes.
///
/// # Errors
/// 22P05 for a character with the number 0, and 22P02 for a half of a surrogate pair.
pub(super) fn characters(text: &str) -> Result<Cow<'_, str>> {
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let inner = inner.unwrap_or(text);
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escaped.chars();
        match chars.next() {
            Some('u') => {
                let (character, length) = unicode(escaped)?;
                out.push(character);
                chars = escaped.get(length..).unwrap_or_default().chars();
            }
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

/// The same text, with quotes, in which only characters that need it are escaped.
///
/// # Errors
/// Those of [`characters`].
pub(super) fn requoted(text: &str) -> Result<Cow<'_, str>> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    write_quoted(&characters(text)?, &mut out);
    Ok(Cow::Owned(out))
}

/// The character that a text after a backslash names, `u00e9` or `ud83d\ude00`, and the length of its name.
fn unicode(escaped: &str) -> Result<(char, usize)> {
    let unit = |from: usize| {
        let digits = escaped.get(from..from + 4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(1).ok_or_else(half_of_pair)?;
    if first == 0 {
        return Err(refused(
            "22P05",
            "unsupported Unicode escape sequence: \\u0000 cannot be converted to text",
        ));
    }
    if let Some(Ok(character)) = char::decode_utf16([first]).next() {
        return Ok((character, 5));
    }
    let second = escaped.get(5..7).filter(|begin| *begin == "\\u");
    let second = second.and_then(|_| unit(7)).ok_or_else(half_of_pair)?;
    match char::decode_utf16([first, second]).next() {
        Some(Ok(character)) => Ok((character, 11)),
        _ => Err(half_of_pair()),
    }
}

fn half_of_pair() -> DataFusionError {
    refused(
        "22P02",
        "invalid input syntax for type json: a half of a Unicode surrogate pair stands alone",
    )
}
