//! Checks `json`, and writes `jsonb` as PostgreSQL does: no needless spaces, the keys of an object by length and
//! then by bytes, the last of equal keys, and numbers without exponents.
//!
//! Invariant: two texts of equal `jsonb` values become the same text, except for zeros behind a number's point,
//! which PostgreSQL keeps, too.

use crate::error::{ReferenceError, Result};
use crate::json_text::{write_number, write_string};

/// How deep arrays and objects may be nested: recursion must not use up the stack.
const DEPTH_MAX: usize = 1000;
/// Checks a `json` text.
pub(crate) fn check_json(text: &str) -> Result<()> {
    JsonTextReader::new(text, false).document().map(drop)
}

/// The text of a `jsonb` value.
pub(crate) fn canonical_jsonb(text: &str) -> Result<String> {
    JsonTextReader::new(text, true).document()
}

struct JsonTextReader<'a> {
    text: &'a str,
    at: usize,
    /// Whether the value is for `jsonb`, which refuses what it cannot store.
    is_binary: bool,
    out: String,
}

/// A pair of an object: its key, and where it stands in the output.
struct Pair {
    key: String,
    start: usize,
    end: usize,
}

impl<'a> JsonTextReader<'a> {
    fn new(text: &'a str, is_binary: bool) -> Self {
        Self {
            text,
            at: 0,
            is_binary,
            out: String::with_capacity(text.len()),
        }
    }

    fn document(mut self) -> Result<String> {
        self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.invalid());
        }
        Ok(self.out)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes a byte after spaces if it is the next.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn invalid(&self) -> ReferenceError {
        let error = ReferenceError::new("22P02", "invalid input syntax for type json");
        match self
            .text
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            None => error.with_detail("The input string ended unexpectedly."),
            Some(next) => error.with_detail(format!("Token \"{next}\" is invalid.")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(ReferenceError::new("54001", "stack depth limit exceeded"));
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let value = self.string()?;
                write_string(&mut self.out, &value);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<()> {
        for word in ["true", "false", "null"] {
            if self
                .text
                .get(self.at..)
                .is_some_and(|rest| rest.starts_with(word))
            {
                self.at += word.len();
                self.out.push_str(word);
                return Ok(());
            }
        }
        Err(self.invalid())
    }

    fn array(&mut self, depth: usize) -> Result<()> {
        self.at += 1;
        self.out.push('[');
        if !self.takes(b']') {
            loop {
                self.value(depth + 1)?;
                if self.takes(b']') {
                    break;
                }
                if !self.takes(b',') {
                    return Err(self.invalid());
                }
                self.out.push_str(", ");
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<()> {
        self.at += 1;
        self.out.push('{');
        let begin = self.out.len();
        let mut pairs = Vec::new();
        if !self.takes(b'}') {
            loop {
                pairs.push(self.pair(depth)?);
                if self.takes(b'}') {
                    break;
                }
                if !self.takes(b',') {
                    return Err(self.invalid());
                }
                self.out.push_str(", ");
            }
        }
        self.order(begin, pairs);
        self.out.push('}');
        Ok(())
    }

    fn pair(&mut self, depth: usize) -> Result<Pair> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.invalid());
        }
        let start = self.out.len();
        let key = self.string()?;
        write_string(&mut self.out, &key);
        if !self.takes(b':') {
            return Err(self.invalid());
        }
        self.out.push_str(": ");
        self.value(depth + 1)?;
        Ok(Pair {
            key,
            start,
            end: self.out.len(),
        })
    }

    /// Puts the pairs of an object, which end the output, in order.
    fn order(&mut self, begin: usize, mut pairs: Vec<Pair>) {
        let rank = |pair: &Pair| (pair.key.len(), pair.key.clone());
        let precedes = |a: &Pair, b: &Pair| (a.key.len(), &a.key) < (b.key.len(), &b.key);
        if pairs.is_sorted_by(precedes) {
            return;
        }
        // Stable: of equal keys, the last one stays last.
        pairs.sort_by_key(rank);
        let mut ordered = String::with_capacity(self.out.len().saturating_sub(begin));
        for (position, pair) in pairs.iter().enumerate() {
            if pairs
                .get(position + 1)
                .is_some_and(|next| next.key == pair.key)
            {
                continue;
            }
            if !ordered.is_empty() {
                ordered.push_str(", ");
            }
            ordered.push_str(self.out.get(pair.start..pair.end).unwrap_or_default());
        }
        self.out.truncate(begin);
        self.out.push_str(&ordered);
    }

    /// Reads a string, whose first quote is next.
    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut value = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest
                .bytes()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let Some(plain) = plain else {
                self.at = self.text.len();
                return Err(self.invalid());
            };
            value.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\\') => self.escape(&mut value)?,
                _ => return Err(self.invalid()),
            }
        }
    }

    fn escape(&mut self, value: &mut String) -> Result<()> {
        self.at += 1;
        let escaped = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode(value);
            }
            _ => return Err(self.invalid()),
        };
        self.at += 1;
        value.push(escaped);
        Ok(())
    }

    fn unicode(&mut self, value: &mut String) -> Result<()> {
        let first = self.hex()?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first)
            && self
                .text
                .get(self.at..)
                .is_some_and(|rest| rest.starts_with("\\u"))
        {
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            }
        }
        match char::from_u32(code) {
            Some('\0') if self.is_binary => Err(ReferenceError::new(
                "22P05",
                "unsupported Unicode escape sequence",
            )
            .with_detail("\\u0000 cannot be converted to text.")),
            Some(next) => {
                value.push(next);
                Ok(())
            }
            None if self.is_binary => Err(ReferenceError::new(
                "22P02",
                "invalid input syntax for type json",
            )
            .with_detail("Unicode surrogates must come in pairs.")),
            None => Ok(()),
        }
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|text| u32::from_str_radix(text, 16).ok());
        let code = code.ok_or_else(|| self.invalid())?;
        self.at += 4;
        Ok(code)
    }

    fn digits(&mut self) -> &'a str {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn number(&mut self) -> Result<()> {
        let is_negative = self.peek() == Some(b'-');
        self.at += usize::from(is_negative);
        let integer = self.digits();
        if integer.is_empty() || (integer.len() > 1 && integer.starts_with('0')) {
            return Err(self.invalid());
        }
        let mut fraction = "";
        if self.peek() == Some(b'.') {
            self.at += 1;
            fraction = self.digits();
            if fraction.is_empty() {
                return Err(self.invalid());
            }
        }
        let mut exponent = 0;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let sign = match self.peek() {
                Some(b'-') => -1,
                _ => 1,
            };
            self.at += usize::from(matches!(self.peek(), Some(b'-' | b'+')));
            let digits = self.digits();
            if digits.is_empty() {
                return Err(self.invalid());
            }
            exponent = sign * digits.parse::<i64>().unwrap_or(i64::MAX);
        }
        if matches!(
            self.peek(),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'0'..=b'9')
        ) {
            return Err(self.invalid());
        }
        if self.is_binary {
            write_number(&mut self.out, is_negative, integer, fraction, exponent)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
