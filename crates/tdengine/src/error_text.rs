//! How an error of TDengine travels inside of an error of the service: its number stands before its message.

use crate::error::TaosError;

/// The message with the number before it: `[0x2603] Table does not exist`.
#[must_use]
pub fn error_text(error: &TaosError) -> String {
    format!("[0x{:04X}] {}", error.code.number(), error.message)
}

/// The number and the message of such a text; `None` if it is none.
#[must_use]
pub fn split_error_text(text: &str) -> Option<(u16, &str)> {
    let (number, message) = text.strip_prefix("[0x")?.split_once("] ")?;
    Some((u16::from_str_radix(number, 16).ok()?, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TaosCode;

    #[test]
    fn numbers_are_read_back() {
        let text = error_text(&TaosError::about(TaosCode::NoSuchTable, "d1"));
        assert_eq!(text, "[0x2603] Table does not exist: d1");
        let split = split_error_text(&text);
        assert_eq!(split, Some((0x2603, "Table does not exist: d1")));
        assert_eq!(split_error_text("[0xfffff] x"), None);
        assert_eq!(split_error_text("[0x26 x"), None);
        assert_eq!(split_error_text("x"), None);
    }
}
