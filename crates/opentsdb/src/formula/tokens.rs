//! The words, numbers and signs of a formula.

use super::FormulaValue;
use crate::error::QueryFault;

/// A part of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FormulaToken<'a> {
    /// A number.
    Number(FormulaValue),
    /// A name, or a word that stands for a sign.
    Name(&'a str),
    /// A sign.
    Sign(&'static str),
}

/// The signs; one that begins another comes behind it.
const SIGNS: [&str; 19] = [
    "?:", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "(", ")", "?", ":", "<",
    ">", "!",
];

/// Words that mean a sign.
const WORDS: [(&str, &str); 11] = [
    ("and", "&&"),
    ("or", "||"),
    ("not", "!"),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("div", "/"),
    ("mod", "%"),
];

/// The fault of a formula that is wrong at a place.
pub(super) fn fault_at(text: &str, at: usize, what: &str) -> QueryFault {
    let column = text.get(..at).map_or(0, |before| before.chars().count()) + 1;
    let shown: String = text.chars().take(100).collect();
    QueryFault::new(format!(
        "parsing error in '{shown}' at column {column}: {what}"
    ))
    .with_details(
        "An expression has numbers, variables, + - * / %, comparisons, && || ! and condition ? a : b",
    )
}

/// The parts of a formula, each with the place at which it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, FormulaToken<'_>)>, QueryFault> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or_default();
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, bytes) = if first.is_ascii_digit() || is_fraction(rest) {
            let (value, bytes) =
                number(rest).ok_or_else(|| fault_at(text, at, "it is no number"))?;
            (FormulaToken::Number(value), bytes)
        } else if is_name_start(first) {
            let bytes = rest
                .find(|char: char| !is_name_start(char) && !char.is_numeric())
                .unwrap_or(rest.len());
            let name = rest.get(..bytes).unwrap_or_default();
            let word = WORDS.iter().find(|(word, _)| *word == name);
            let token = word.map_or(FormulaToken::Name(name), |(_, sign)| {
                FormulaToken::Sign(sign)
            });
            (token, bytes)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(*sign));
            let sign =
                sign.ok_or_else(|| fault_at(text, at, &format!("'{first}' is not supported")))?;
            (FormulaToken::Sign(sign), sign.len())
        };
        found.push((at, token));
        at += bytes;
    }
    Ok(found)
}

fn is_name_start(char: char) -> bool {
    char.is_alphabetic() || matches!(char, '_' | '$' | '@')
}

fn is_fraction(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|char| char.is_ascii_digit())
}

/// The number at the head of a text, and its length: `10`, `0x1F`, `017`, `1.5`, `2.5e-3`. A letter
/// for its type in Java may follow.
fn number(rest: &str) -> Option<(FormulaValue, usize)> {
    let run = |from: usize, is_digit: fn(&u8) -> bool| {
        let bytes = rest.as_bytes().get(from..).unwrap_or_default();
        from + bytes.iter().take_while(|byte| is_digit(byte)).count()
    };
    let byte = |at: usize| rest.as_bytes().get(at).copied().unwrap_or(0);
    if rest.starts_with("0x") || rest.starts_with("0X") {
        let end = run(2, u8::is_ascii_hexdigit);
        let value = i64::from_str_radix(rest.get(2..end)?, 16).ok()?;
        return ended(rest, FormulaValue::Integer(value), end, b"lLhH");
    }
    let mut end = run(0, u8::is_ascii_digit);
    let mut is_whole = true;
    if byte(end) == b'.' && byte(end + 1).is_ascii_digit() {
        end = run(end + 1, u8::is_ascii_digit);
        is_whole = false;
    }
    if matches!(byte(end), b'e' | b'E') {
        let signed = end + 1 + usize::from(matches!(byte(end + 1), b'+' | b'-'));
        if byte(signed).is_ascii_digit() {
            end = run(signed, u8::is_ascii_digit);
            is_whole = false;
        }
    }
    let digits = rest.get(..end)?;
    if !is_whole {
        return ended(
            rest,
            FormulaValue::Float(digits.parse().ok()?),
            end,
            b"fFdDbB",
        );
    }
    let whole = if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()
    } else {
        digits.parse().ok()
    };
    let value = match whole {
        Some(number) => FormulaValue::Integer(number),
        // Beyond 64 bits, or no octal number.
        None => FormulaValue::Float(digits.parse().ok()?),
    };
    ended(rest, value, end, b"lLhH")
}

/// The number, if its end is the end of a word.
fn ended(
    rest: &str,
    value: FormulaValue,
    mut end: usize,
    types: &[u8],
) -> Option<(FormulaValue, usize)> {
    if rest
        .as_bytes()
        .get(end)
        .is_some_and(|byte| types.contains(byte))
    {
        end += 1;
    }
    let next = rest.get(end..)?.chars().next();
    let is_end = next.is_none_or(|char| !is_name_start(char) && !char.is_numeric() && char != '.');
    is_end.then_some((value, end))
}
