//! Reads JSON, and writes the text of `jsonb`: keys in their order (shorter ones first), the last of equal
//! keys, characters instead of their escapes, and one space after each comma and colon.

use super::escapes::{characters, read_string, requoted};
use crate::refusal::refused;
use datafusion::common::{DataFusionError, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The deepest nesting of arrays and objects.
const DEPTH_MAX: usize = 128;

/// JSON in the form of `jsonb`.
///
/// # Errors
/// 22P02 if the text is no JSON, 54001 if it is nested too deeply.
pub(super) fn binary_text(json: &str) -> Result<String> {
    let mut reader = JsonReader::new(json);
    reader.is_binary = true;
    let mut out = String::with_capacity(json.len());
    reader.value(&mut out)?;
    reader.end()?;
    Ok(out)
}

/// Checks that a text is JSON.
///
/// # Errors
/// 22P02 if it is none, 54001 if it is nested too deeply.
pub(super) fn check_json(json: &str) -> Result<()> {
    let mut reader = JsonReader::new(json);
    reader.raw_value()?;
    reader.end()
}

/// Reads a text of JSON from its beginning.
pub(super) struct JsonReader<'a> {
    json: &'a str,
    place: usize,
    depth: usize,
    /// Whether values become those of `jsonb`, which holds characters and numbers and not their texts.
    is_binary: bool,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self {
            json,
            place: 0,
            depth: 0,
            is_binary: false,
        }
    }

    /// Requires the end of the text.
    pub(super) fn end(&mut self) -> Result<()> {
        self.blanks();
        if self.place < self.json.len() {
            return Err(self.invalid());
        }
        Ok(())
    }

    /// The next value as it is written.
    pub(super) fn raw_value(&mut self) -> Result<&'a str> {
        self.blanks();
        let start = self.place;
        self.value(&mut String::new())?;
        Ok(&self.json[start..self.place])
    }

    /// The next text, with its quotes, as it is written.
    pub(super) fn raw_name(&mut self) -> Result<&'a str> {
        self.blanks();
        self.string()
    }

    pub(super) fn invalid(&self) -> DataFusionError {
        let rest = self.json.get(self.place..).unwrap_or_default();
        let rest: String = rest.chars().take(20).collect();
        refused(
            "22P02",
            format!("invalid input syntax for type json at \"{rest}\""),
        )
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.place).copied()
    }

    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.place += 1;
        }
    }

    pub(super) fn next_if(&mut self, byte: u8) -> bool {
        self.blanks();
        let is_there = self.peek() == Some(byte);
        self.place += usize::from(is_there);
        is_there
    }

    fn value(&mut self, out: &mut String) -> Result<()> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(out),
            Some(b'[') => self.array(out),
            Some(b'"') => {
                let text = self.string()?;
                out.push_str(&self.written(text)?);
                Ok(())
            }
            _ => {
                let text = self.scalar()?;
                if !self.is_binary {
                    return Ok(());
                }
                match text.parse::<f64>() {
                    // Floats are displayed without an exponent. Writing to a String cannot fail.
                    Ok(number) if text.contains(['e', 'E']) => {
                        let _ = write!(out, "{number}");
                    }
                    Ok(0.0) if text.starts_with('-') => out.push_str(&text[1..]),
                    _ => out.push_str(text),
                }
                Ok(())
            }
        }
    }

    fn enter(&mut self) -> Result<()> {
        self.place += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("JSON is nested in at most {DEPTH_MAX} levels");
            return Err(refused("54001", message));
        }
        Ok(())
    }

    fn array(&mut self, out: &mut String) -> Result<()> {
        self.enter()?;
        out.push('[');
        if !self.next_if(b']') {
            loop {
                self.value(out)?;
                if self.next_if(b']') {
                    break;
                }
                if !self.next_if(b',') {
                    return Err(self.invalid());
                }
                out.push_str(", ");
            }
        }
        self.depth -= 1;
        out.push(']');
        Ok(())
    }

    fn object(&mut self, out: &mut String) -> Result<()> {
        self.enter()?;
        let mut members: BTreeMap<(usize, Cow<'a, str>), String> = BTreeMap::new();
        if !self.next_if(b'}') {
            loop {
                self.blanks();
                let name = self.string()?;
                let name = self.written(name)?;
                if !self.next_if(b':') {
                    return Err(self.invalid());
                }
                let mut value = String::new();
                self.value(&mut value)?;
                let length = if self.is_binary {
                    characters(&name)?.len()
                } else {
                    name.len()
                };
                members.insert((length, name), value);
                if self.next_if(b'}') {
                    break;
                }
                if !self.next_if(b',') {
                    return Err(self.invalid());
                }
            }
        }
        self.depth -= 1;
        out.push('{');
        for (at, ((_, name), value)) in members.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            out.push_str(name);
            out.push_str(": ");
            out.push_str(value);
        }
        out.push('}');
        Ok(())
    }

    /// A text with its quotes.
    fn string(&mut self) -> Result<&'a str> {
        let length = self.json.get(self.place..).and_then(read_string);
        let Some(length) = length else {
            return Err(self.invalid());
        };
        let text = &self.json[self.place..self.place + length];
        self.place += length;
        Ok(text)
    }

    /// A text with its quotes as it is written out.
    fn written(&self, text: &'a str) -> Result<Cow<'a, str>> {
        if self.is_binary {
            requoted(text)
        } else {
            Ok(Cow::Borrowed(text))
        }
    }

    /// A number or a word.
    fn scalar(&mut self) -> Result<&'a str> {
        let rest = &self.json[self.place..];
        let is_end = |c: char| matches!(c, ',' | ']' | '}' | ':' | ' ' | '\n' | '\r' | '\t');
        let text = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        // Numbers of jsonb are written without an exponent, so none may be endless.
        let is_number = is_json_number(text)
            && (!self.is_binary || text.parse::<f64>().is_ok_and(f64::is_finite));
        if !is_number && !matches!(text, "true" | "false" | "null") {
            return Err(self.invalid());
        }
        self.place += text.len();
        Ok(text)
    }
}

/// Whether a text is a number in JSON: `-?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?`.
fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            (mantissa, Some(digits))
        }
        None => (digits, None),
    };
    let (whole, places) = match mantissa.split_once('.') {
        Some((whole, places)) => (whole, Some(places)),
        None => (mantissa, None),
    };
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && places.is_none_or(are_digits)
        && exponent.is_none_or(are_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_and_unique() {
        let found =
            binary_text("{ \"bb\" : 1, \"c\":[1,{\"x\":\"a\\\"b\"}] , \"a\":null, \"bb\":1.50 }");
        let expected = "{\"a\": null, \"c\": [1, {\"x\": \"a\\\"b\"}], \"bb\": 1.50}";
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn texts_have_characters_instead_of_escapes() {
        let found = binary_text(r#"{"\u0061a": "\u00e9\/\n\u0001", "b": "\ud83d\ude00"}"#).unwrap();
        assert_eq!(found, r#"{"b": "😀", "aa": "é/\n\u0001"}"#);
        for json in [r#""\u0000""#, r#""\ud800""#, r#""\ude00x""#] {
            assert!(binary_text(json).is_err(), "{json}");
            assert!(check_json(json).is_ok(), "{json}");
        }
    }

    #[test]
    fn numbers_have_no_exponent() {
        let found = binary_text("[1e20, 1e-7, -0.0, 10, 0]").unwrap();
        assert_eq!(found, "[100000000000000000000, 0.0000001, 0.0, 10, 0]");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for json in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "nul",
            "1 2",
            "\"a",
            "\"a\\",
            "{1:2}",
            "[1 2]",
            "01",
            "1.",
            "-.5",
            "-",
            "1.e5",
            "1e",
            "+1",
            "NaN",
            "\"\t\"",
            "\"\\q\"",
            "\"\\u12\"",
        ] {
            assert!(binary_text(json).is_err(), "{json}");
            assert!(check_json(json).is_err(), "{json}");
        }
        assert!(check_json("1e999").is_ok() && binary_text("1e999").is_err());
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(binary_text(&deep).is_err());
    }
}
