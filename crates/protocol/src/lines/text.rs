//! Escapes, and shortening of text for messages.

use std::borrow::Cow;

/// Removes the backslash before each byte of `special`, and keeps other backslashes.
pub(super) fn unescape<'a>(raw: &'a str, special: &[u8]) -> Cow<'a, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    unescape_into(raw, special, &mut text);
    Cow::Owned(text)
}

/// Like [`unescape`], but appends to `text`.
pub(super) fn unescape_into(raw: &str, special: &[u8], text: &mut String) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        // The special bytes are ASCII, so the slices below begin at character boundaries.
        match after.as_bytes().first() {
            Some(next) if special.contains(next) => {
                text.push(char::from(*next));
                rest = &after[1..];
            }
            _ => {
                text.push('\\');
                rest = after;
            }
        }
    }
    text.push_str(rest);
}

/// The first byte of `bytes` at or after `from` that is one of `stops` and is not escaped.
pub(super) fn find(bytes: &[u8], from: usize, stops: &[u8]) -> Option<usize> {
    (from..bytes.len())
        .find(|at| stops.contains(&bytes[*at]) && (*at == from || bytes[at - 1] != b'\\'))
}

/// A text in the form for messages.
pub(super) fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let mut shown: String = text
        .chars()
        .take(CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}
