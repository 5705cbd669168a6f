//! The text of `jsonb`: keys in their order (shorter ones first), the last of equal keys, and one space
//! after each comma and colon.

use crate::refusal::refused;
use datafusion::common::{DataFusionError, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The deepest nesting of arrays and objects.
const DEPTH_MAX: usize = 128;

/// JSON in the form of `jsonb`.
///
/// # Errors
/// 22P02 if the text is no JSON, 54001 if it is nested too deeply.
pub(super) fn binary_text(json: &str) -> Result<String> {
    let mut reader = JsonReader {
        json,
        place: 0,
        depth: 0,
    };
    let mut out = String::with_capacity(json.len());
    reader.value(&mut out)?;
    reader.blanks();
    if reader.place < json.len() {
        return Err(reader.invalid());
    }
    Ok(out)
}

struct JsonReader<'a> {
    json: &'a str,
    place: usize,
    depth: usize,
}

impl<'a> JsonReader<'a> {
    fn invalid(&self) -> DataFusionError {
        let rest: String = self.json[self.place..].chars().take(20).collect();
        refused(
            "22P02",
            format!("invalid input syntax for type json at \"{rest}\""),
        )
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.place).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.place += 1;
        }
    }

    fn next_if(&mut self, byte: u8) -> bool {
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
                out.push_str(self.string()?);
                Ok(())
            }
            _ => {
                let text = self.scalar()?;
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
        let mut members: BTreeMap<(usize, &'a str), String> = BTreeMap::new();
        if !self.next_if(b'}') {
            loop {
                self.blanks();
                let name = self.string()?;
                if !self.next_if(b':') {
                    return Err(self.invalid());
                }
                let mut value = String::new();
                self.value(&mut value)?;
                members.insert((name.len(), name), value);
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
        let start = self.place;
        if self.peek() != Some(b'"') {
            return Err(self.invalid());
        }
        self.place += 1;
        loop {
            match self.peek() {
                None => {
                    self.place = start;
                    return Err(self.invalid());
                }
                Some(b'"') => break,
                // What is escaped may be a quote.
                Some(b'\\') => self.place += 2,
                Some(_) => self.place += 1,
            }
        }
        self.place += 1;
        let text = self.json.get(start..self.place);
        text.ok_or_else(|| refused("22P02", "invalid input syntax for type json"))
    }

    /// A number or a word.
    fn scalar(&mut self) -> Result<&'a str> {
        let rest = &self.json[self.place..];
        let is_end = |c: char| matches!(c, ',' | ']' | '}' | ':' | ' ' | '\n' | '\r' | '\t');
        let text = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        let is_number = digits.first().is_some_and(u8::is_ascii_digit)
            && !(digits[0] == b'0' && digits.get(1).is_some_and(u8::is_ascii_digit))
            && !text.ends_with('.')
            && text.parse::<f64>().is_ok_and(f64::is_finite);
        if !is_number && !matches!(text, "true" | "false" | "null") {
            return Err(self.invalid());
        }
        self.place += text.len();
        Ok(text)
    }
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
    fn numbers_have_no_exponent() {
        let found = binary_text("[1e20, 1e-7, -0.0, 10, 0]").unwrap();
        assert_eq!(found, "[100000000000000000000, 0.0000001, 0.0, 10, 0]");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for json in [
            "", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"a", "\"a\\", "{1:2}", "[1 2]", "01", "1.",
            "-.5", "-",
        ] {
            assert!(binary_text(json).is_err(), "{json}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(binary_text(&deep).is_err());
    }
}
