//! The tokens of a statement, one after the other; no token is stored.
//!
//! Invariant: the bounds of a token are boundaries of characters.

use crate::error::{TaosCode, TaosError, TaosResult};
use std::borrow::Cow;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlTokenKind {
    /// A name or a keyword.
    Word,
    /// A name in backquotes.
    QuotedName,
    /// A text in single or double quotes.
    Text,
    /// An integer: decimal, `0x…` or `0b…`.
    Integer,
    /// A number with a point or an exponent.
    Float,
    /// A number with a unit: `10s`.
    Duration,
    /// An operator or a punctuation mark.
    Symbol,
    /// The end of the text.
    End,
}

/// A token, as a part of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqlToken {
    pub(crate) kind: SqlTokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Symbols of two characters.
const PAIRS: [&str; 8] = ["<=", ">=", "<>", "!=", "||", "->", "<<", ">>"];

/// Symbols of one character.
const SINGLES: &[u8] = b"+-*/%(),;.=<>&|?~@:[]{}!^#";

/// Finds the token that begins at or after a place.
///
/// # Errors
/// If a quote or a comment has no end, or a character begins no token.
pub(crate) fn next_token(sql: &str, from: usize) -> TaosResult<SqlToken> {
    let bytes = sql.as_bytes();
    let start = skip_blanks(bytes, from);
    let token = |kind, end| Ok(SqlToken { kind, start, end });
    let Some(&first) = bytes.get(start) else {
        return token(SqlTokenKind::End, start);
    };
    match first {
        b'\'' | b'"' => match quoted_end(bytes, start, true) {
            Some(end) => token(SqlTokenKind::Text, end),
            None => Err(error_near(sql, start)),
        },
        b'`' => match quoted_end(bytes, start, false) {
            Some(end) => token(SqlTokenKind::QuotedName, end),
            None => Err(error_near(sql, start)),
        },
        b'0'..=b'9' => {
            let (kind, end) = number(bytes, start);
            token(kind, end)
        }
        b'.' if bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => {
            let (kind, end) = number(bytes, start);
            token(kind, end)
        }
        first if is_word(first) => {
            let rest = bytes.get(start..).unwrap_or_default();
            let length = rest.iter().position(|byte| !is_word(*byte));
            token(SqlTokenKind::Word, start + length.unwrap_or(rest.len()))
        }
        first => {
            if let Some(two) = sql.get(start..start + 2)
                && PAIRS.contains(&two)
            {
                return token(SqlTokenKind::Symbol, start + 2);
            }
            if SINGLES.contains(&first) {
                return token(SqlTokenKind::Symbol, start + 1);
            }
            Err(error_near(sql, start))
        }
    }
}

/// Bytes of names; those of other characters than ASCII belong to names, too.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Skips white space and comments.
fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let mut at = from.min(bytes.len());
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.first().is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        } else if rest.starts_with(b"--") {
            let line = rest.iter().position(|byte| *byte == b'\n');
            at += line.unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|two| two == b"*/");
            at += end.map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
}

/// The end of what begins with a quote: after the same quote, unless that is doubled or escaped.
fn quoted_end(bytes: &[u8], start: usize, has_escapes: bool) -> Option<usize> {
    let quote = *bytes.get(start)?;
    let mut at = start + 1;
    loop {
        let byte = *bytes.get(at)?;
        if byte == b'\\' && has_escapes {
            at += 2;
        } else if byte != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
}

/// The number that begins at a place: its kind, and its end.
fn number(bytes: &[u8], start: usize) -> (SqlTokenKind, usize) {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        from + count
    };
    let at = |place: usize| bytes.get(place).copied().unwrap_or(b' ');
    if at(start) == b'0'
        && matches!(at(start + 1), b'x' | b'X')
        && at(start + 2).is_ascii_hexdigit()
    {
        let rest = bytes.get(start + 2..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_hexdigit());
        return (SqlTokenKind::Integer, start + 2 + count.count());
    }
    if at(start) == b'0'
        && matches!(at(start + 1), b'b' | b'B')
        && matches!(at(start + 2), b'0' | b'1')
    {
        let rest = bytes.get(start + 2..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| matches!(byte, b'0' | b'1'));
        return (SqlTokenKind::Integer, start + 2 + count.count());
    }
    let mut end = digits(start);
    let mut kind = SqlTokenKind::Integer;
    if at(end) == b'.' && at(end + 1).is_ascii_digit() {
        end = digits(end + 1);
        kind = SqlTokenKind::Float;
    } else if at(end) == b'.' && !is_word(at(end + 1)) && at(end + 1) != b'`' {
        end += 1;
        kind = SqlTokenKind::Float;
    }
    if matches!(at(end), b'e' | b'E') {
        let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
        if at(end + 1 + sign).is_ascii_digit() {
            return (SqlTokenKind::Float, digits(end + 1 + sign));
        }
    }
    let is_unit = matches!(
        at(end).to_ascii_lowercase(),
        b'b' | b'u' | b'a' | b's' | b'm' | b'h' | b'd' | b'w' | b'n' | b'y'
    );
    if kind == SqlTokenKind::Integer && is_unit && !is_word(at(end + 1)) {
        return (SqlTokenKind::Duration, end + 1);
    }
    // A table may be called 1st: a word, if letters follow the digits.
    if kind == SqlTokenKind::Integer && is_word(at(end)) {
        let rest = bytes.get(end..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| is_word(**byte)).count();
        return (SqlTokenKind::Word, end + count);
    }
    (kind, end)
}

/// Longest part of a statement that an error repeats, in characters.
const NEAR_CHARS: usize = 120;

/// The error of a text that goes wrong at a place.
pub(crate) fn error_near(sql: &str, at: usize) -> TaosError {
    let rest = sql.get(at..).unwrap_or_default().trim_end();
    if rest.is_empty() {
        return TaosError::new(TaosCode::IncompleteSql);
    }
    let shown: String = rest.chars().take(NEAR_CHARS).collect();
    let message = format!("{} \"{shown}\"", TaosCode::SyntaxError.message());
    TaosError::with_message(TaosCode::SyntaxError, message)
}

/// The content of a text in quotes: `\'`, `\n`, `\t`, `\r`, `\\` and doubled quotes are read; `\%`,
/// `\_` and `\x` stay, for LIKE and for bytes.
pub(crate) fn unquoted(token: &str) -> Cow<'_, str> {
    let inner = token.get(1..token.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    let quote = token.chars().next().unwrap_or('\'');
    if !inner.contains(['\\', quote]) {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        if char == quote {
            // It is doubled, for a single one would be the end.
            chars.next();
            out.push(char);
        } else if char == '\\' {
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(kept @ ('%' | '_' | 'x')) => {
                    out.push('\\');
                    out.push(kept);
                }
                Some(other) => out.push(other),
                None => {}
            }
        } else {
            out.push(char);
        }
    }
    Cow::Owned(out)
}

/// The name in backquotes.
pub(crate) fn unquoted_name(token: &str) -> String {
    let inner = token.get(1..token.len().saturating_sub(1));
    inner.unwrap_or_default().replace("``", "`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(sql: &str) -> Vec<(SqlTokenKind, &str)> {
        let mut found = Vec::new();
        let mut at = 0;
        loop {
            let token = next_token(sql, at).unwrap();
            if token.kind == SqlTokenKind::End {
                return found;
            }
            found.push((token.kind, &sql[token.start..token.end]));
            at = token.end;
        }
    }

    #[test]
    fn a_text_falls_into_tokens() {
        use SqlTokenKind::{Duration, Float, Integer, QuotedName, Symbol, Text, Word};
        let sql =
            "select a.b, 1.5e3 1. 10s 0x1F 0b01 'it''s' \"x\\\"y\" `T 1` <> 1st--end\n/* no */.5";
        let expected = [
            (Word, "select"),
            (Word, "a"),
            (Symbol, "."),
            (Word, "b"),
            (Symbol, ","),
            (Float, "1.5e3"),
            (Float, "1."),
            (Duration, "10s"),
            (Integer, "0x1F"),
            (Integer, "0b01"),
            (Text, "'it''s'"),
            (Text, "\"x\\\"y\""),
            (QuotedName, "`T 1`"),
            (Symbol, "<>"),
            (Word, "1st"),
            (Float, ".5"),
        ];
        assert_eq!(tokens(sql), expected);
        assert!(next_token("'open", 0).is_err());
        assert!(next_token("$", 0).is_err());
    }

    #[test]
    fn quotes_and_escapes_are_read() {
        assert_eq!(unquoted("'it''s'"), "it's");
        assert_eq!(unquoted(r"'a\'b\\\n\%\x61\q'"), "a'b\\\n\\%\\x61q");
        assert_eq!(unquoted("\"plain\""), "plain");
        assert_eq!(unquoted_name("`a``b`"), "a`b");
    }

    proptest! {
        #[test]
        fn any_text_ends(sql in "\\PC{0,80}") {
            let mut at = 0;
            while let Ok(token) = next_token(&sql, at) {
                if token.kind == SqlTokenKind::End {
                    break;
                }
                prop_assert!(token.end > token.start && token.start >= at);
                let text = &sql[token.start..token.end];
                let _ = (unquoted(text), unquoted_name(text));
                at = token.end;
            }
        }
    }
}
