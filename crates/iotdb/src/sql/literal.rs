//! Values in statements.

use super::ast::TreeLiteral;
use super::cursor::SqlCursor;
use crate::status::IotDbFault;

impl SqlCursor<'_> {
    /// Reads a value; `None` if none follows.
    ///
    /// # Errors
    /// If it is malformed.
    pub(super) fn literal(&mut self) -> Result<Option<TreeLiteral>, IotDbFault> {
        if let Some(text) = self.string()? {
            return Ok(Some(TreeLiteral::Text(text)));
        }
        let rest = self.rest();
        if rest.starts_with("X'") || rest.starts_with("x'") {
            self.advance(1);
            let text = self.string()?.unwrap_or_default();
            let bytes = hex(&text).ok_or_else(|| self.expected("pairs of hexadecimal digits"))?;
            return Ok(Some(TreeLiteral::Bytes(bytes)));
        }
        for (word, value) in [
            ("true", TreeLiteral::Boolean(true)),
            ("false", TreeLiteral::Boolean(false)),
            ("null", TreeLiteral::Null),
            ("nan", TreeLiteral::Float(f64::NAN)),
        ] {
            if self.keyword(word) {
                return Ok(Some(value));
            }
        }
        let is_now = self.sees("now");
        let has_digit = rest
            .trim_start_matches(['-', '+', '.'])
            .starts_with(|char: char| char.is_ascii_digit());
        if is_now {
            return Ok(self.time()?.map(TreeLiteral::Time));
        }
        if !has_digit {
            return Ok(None);
        }
        let begin = self.place();
        if self.date_time()?.is_some() {
            self.return_to(begin);
            return Ok(self.time()?.map(TreeLiteral::Time));
        }
        if let Some(number) = self.whole_number()? {
            return Ok(Some(TreeLiteral::Integer(number)));
        }
        self.float().map(Some)
    }

    fn float(&mut self) -> Result<TreeLiteral, IotDbFault> {
        let rest = self.rest();
        let mut before = ' ';
        let end = rest.find(|char: char| {
            let is_sign = matches!(char, '-' | '+') && matches!(before, ' ' | 'e' | 'E');
            let is_part = is_sign || char.is_ascii_digit() || matches!(char, '.' | 'e' | 'E');
            before = char;
            !is_part
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        let number = text.parse().map_err(|_| self.expected("a number"))?;
        self.advance(text.len());
        Ok(TreeLiteral::Float(number))
    }
}

/// The bytes of hexadecimal digits.
fn hex(text: &str) -> Option<Vec<u8>> {
    if text.len() % 2 == 1 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}
