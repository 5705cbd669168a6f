//! Divides a text into tokens.
//!
//! It behaves like InfluxDB's scanner, including its oddities, because errors contain positions:
//! the position of a string is the character before its quote, a bare name at the end of the text
//! reads the end twice, and in `ab"cd"` only `cd` is the name.

use crate::quote::{begins_ident, in_ident};
use crate::reader::{END, Reader};
use crate::token::{InfluxQlToken, Keyword};

/// A token, its text, and the cursor that its errors report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scanned {
    pub(crate) token: InfluxQlToken,
    /// The name, number or string; empty where the kind says all.
    pub(crate) text: String,
    pub(crate) at: usize,
}

impl Scanned {
    fn new(token: InfluxQlToken, text: impl Into<String>, at: usize) -> Self {
        let text = text.into();
        Self { token, text, at }
    }

    /// The token as an error shows it.
    pub(crate) fn found(&self) -> &str {
        if self.text.is_empty() {
            self.token.name()
        } else {
            &self.text
        }
    }
}

/// Why a quoted text is invalid.
enum BadQuoted {
    /// It is unterminated; contains the part that was read.
    Unfinished(String),
    /// A backslash before a character that cannot be escaped, and that character.
    Escape(String),
}

/// The next token.
pub(crate) fn scan(reader: &mut Reader<'_>) -> Scanned {
    let at = reader.cursor();
    let first = reader.read();
    let token = match first {
        ' ' | '\t' | '\n' => return scan_whitespace(reader, at),
        first if begins_ident(first) => {
            reader.unread();
            return scan_ident(reader, true);
        }
        first if first.is_ascii_digit() => {
            reader.unread();
            return scan_number(reader);
        }
        END => InfluxQlToken::Eof,
        '"' => {
            reader.unread();
            return scan_ident(reader, true);
        }
        '\'' => return scan_string(reader),
        '.' => {
            let next = reader.read();
            reader.unread();
            if next.is_ascii_digit() {
                reader.unread();
                return scan_number(reader);
            }
            InfluxQlToken::Dot
        }
        '$' => {
            let name = scan_ident(reader, false);
            let token = match name.token {
                InfluxQlToken::Ident => InfluxQlToken::BoundParam,
                bad => bad,
            };
            return Scanned::new(token, format!("${}", name.text), at);
        }
        '+' => InfluxQlToken::Add,
        '-' if read_if(reader, '-') => {
            while !matches!(reader.read(), '\n' | END) {}
            InfluxQlToken::Comment
        }
        '-' => InfluxQlToken::Sub,
        '*' => InfluxQlToken::Mul,
        '/' if read_if(reader, '*') => skip_comment(reader),
        '/' => InfluxQlToken::Div,
        '%' => InfluxQlToken::Mod,
        '&' => InfluxQlToken::BitwiseAnd,
        '|' => InfluxQlToken::BitwiseOr,
        '^' => InfluxQlToken::BitwiseXor,
        '=' if read_if(reader, '~') => InfluxQlToken::EqRegex,
        '=' => InfluxQlToken::Eq,
        '!' if read_if(reader, '=') => InfluxQlToken::Neq,
        '!' if read_if(reader, '~') => InfluxQlToken::NeqRegex,
        '>' if read_if(reader, '=') => InfluxQlToken::Gte,
        '>' => InfluxQlToken::Gt,
        '<' if read_if(reader, '=') => InfluxQlToken::Lte,
        '<' if read_if(reader, '>') => InfluxQlToken::Neq,
        '<' => InfluxQlToken::Lt,
        '(' => InfluxQlToken::LeftParen,
        ')' => InfluxQlToken::RightParen,
        ',' => InfluxQlToken::Comma,
        ';' => InfluxQlToken::Semicolon,
        ':' if read_if(reader, ':') => InfluxQlToken::DoubleColon,
        ':' => InfluxQlToken::Colon,
        _ => return Scanned::new(InfluxQlToken::Illegal, first, at),
    };
    Scanned::new(token, "", at)
}

/// A regular expression between slashes, in a place where the grammar allows one.
pub(crate) fn scan_regex(reader: &mut Reader<'_>) -> Scanned {
    let at = reader.before();
    if reader.read() != '/' {
        return Scanned::new(InfluxQlToken::BadRegex, "", at);
    }
    let mut text = String::new();
    loop {
        match reader.read() {
            '/' => return Scanned::new(InfluxQlToken::Regex, text, at),
            END | '\n' => return Scanned::new(InfluxQlToken::BadRegex, "", at),
            '\\' if read_if(reader, '/') => text.push('/'),
            // A backslash before anything else is the expression's own.
            '\\' if reader.peek() == END => return Scanned::new(InfluxQlToken::BadRegex, "", at),
            ch => text.push(ch),
        }
    }
}

/// Reads `expected` if it is next.
fn read_if(reader: &mut Reader<'_>, expected: char) -> bool {
    let found = reader.read() == expected;
    if !found {
        reader.unread();
    }
    found
}

fn scan_whitespace(reader: &mut Reader<'_>, at: usize) -> Scanned {
    let mut end = reader.cursor();
    loop {
        match reader.read() {
            ' ' | '\t' | '\n' => end = reader.cursor(),
            END => break,
            _ => {
                reader.unread();
                break;
            }
        }
    }
    let text = reader.slice(at, end).replace("\r\n", "\n");
    Scanned::new(InfluxQlToken::Whitespace, text.replace('\r', "\n"), at)
}

/// Skips what follows `/*`.
fn skip_comment(reader: &mut Reader<'_>) -> InfluxQlToken {
    let mut after_star = false;
    loop {
        match reader.read() {
            '/' if after_star => return InfluxQlToken::Comment,
            END => return InfluxQlToken::Illegal,
            ch => after_star = ch == '*',
        }
    }
}

/// A name, bare or quoted; a bare one may be a keyword.
fn scan_ident(reader: &mut Reader<'_>, keywords: bool) -> Scanned {
    let at = reader.cursor();
    let mut name = String::new();
    loop {
        match reader.read() {
            END => break,
            '"' => {
                let mut quoted = scan_string(reader);
                if quoted.token == InfluxQlToken::String {
                    quoted.token = InfluxQlToken::Ident;
                    quoted.at = at;
                }
                return quoted;
            }
            ch if in_ident(ch) => {
                name.push(ch);
                read_bare(reader, &mut name);
            }
            _ => {
                reader.unread();
                break;
            }
        }
    }
    match Keyword::lookup(&name) {
        Some(keyword) if keywords => Scanned::new(InfluxQlToken::Keyword(keyword), "", at),
        _ => Scanned::new(InfluxQlToken::Ident, name, at),
    }
}

/// The rest of a bare name. Consumes the end of the text without putting it back.
fn read_bare(reader: &mut Reader<'_>, name: &mut String) {
    loop {
        match reader.read() {
            END => return,
            ch if in_ident(ch) => name.push(ch),
            _ => return reader.unread(),
        }
    }
}

/// A quoted text after its first quote.
fn scan_string(reader: &mut Reader<'_>) -> Scanned {
    reader.unread();
    let at = reader.before();
    match read_quoted(reader) {
        Ok(text) => Scanned::new(InfluxQlToken::String, text, at),
        Err(BadQuoted::Unfinished(text)) => Scanned::new(InfluxQlToken::BadString, text, at),
        Err(BadQuoted::Escape(text)) => {
            Scanned::new(InfluxQlToken::BadEscape, text, reader.before())
        }
    }
}

fn read_quoted(reader: &mut Reader<'_>) -> Result<String, BadQuoted> {
    let quote = reader.read();
    let mut text = String::new();
    loop {
        match reader.read() {
            ch if ch == quote => return Ok(text),
            END | '\n' => return Err(BadQuoted::Unfinished(text)),
            '\\' => match reader.read() {
                'n' => text.push('\n'),
                ch @ ('\\' | '"' | '\'') => text.push(ch),
                ch => return Err(BadQuoted::Escape(format!("\\{ch}"))),
            },
            ch => text.push(ch),
        }
    }
}

/// A number, or a duration: digits followed by letters.
fn scan_number(reader: &mut Reader<'_>) -> Scanned {
    let at = reader.cursor();
    let mut text = String::new();
    read_while(reader, &mut text, |ch| ch.is_ascii_digit());
    if read_if(reader, '.') {
        let decimal = reader.read();
        reader.unread();
        if decimal.is_ascii_digit() {
            text.push('.');
            read_while(reader, &mut text, |ch| ch.is_ascii_digit());
        }
        return Scanned::new(InfluxQlToken::Number, text, at);
    }
    let digits = text.len();
    let in_duration = |ch: char| ch.is_ascii_alphabetic() || ch == 'µ';
    read_while(reader, &mut text, in_duration);
    if text.len() == digits {
        return Scanned::new(InfluxQlToken::Integer, text, at);
    }
    read_while(reader, &mut text, |ch| {
        in_duration(ch) || ch.is_ascii_digit()
    });
    Scanned::new(InfluxQlToken::DurationValue, text, at)
}

fn read_while(reader: &mut Reader<'_>, text: &mut String, take: impl Fn(char) -> bool) {
    loop {
        let ch = reader.read();
        if !take(ch) {
            return reader.unread();
        }
        text.push(ch);
    }
}

#[cfg(test)]
mod tests {
    use super::{InfluxQlToken, Reader, Scanned, scan, scan_regex};
    use crate::token::Keyword;

    fn tokens(text: &str) -> Vec<(InfluxQlToken, String, usize)> {
        let mut reader = Reader::new(text);
        let next = || {
            let Scanned { token, text, at } = scan(&mut reader);
            (token != InfluxQlToken::Eof).then_some((token, text, at))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn each_kind_of_token() {
        let one = |text: &str| tokens(text).remove(0);
        for (text, token, value) in [
            ("cpu_1 ", InfluxQlToken::Ident, "cpu_1"),
            ("\"a \\\"b\\\"\\n\"", InfluxQlToken::Ident, "a \"b\"\n"),
            ("ab\"cd\"", InfluxQlToken::Ident, "cd"),
            ("seLect", InfluxQlToken::Keyword(Keyword::Select), ""),
            ("'it\\'s'", InfluxQlToken::String, "it's"),
            ("'a", InfluxQlToken::BadString, "a"),
            ("'a\\q'", InfluxQlToken::BadEscape, "\\q"),
            ("12", InfluxQlToken::Integer, "12"),
            ("12.", InfluxQlToken::Number, "12"),
            (".5", InfluxQlToken::Number, ".5"),
            ("1.25x", InfluxQlToken::Number, "1.25"),
            ("1h30m", InfluxQlToken::DurationValue, "1h30m"),
            ("5µ", InfluxQlToken::DurationValue, "5µ"),
            ("$x", InfluxQlToken::BoundParam, "$x"),
            ("$\"a b\"", InfluxQlToken::BoundParam, "$a b"),
            ("$", InfluxQlToken::BoundParam, "$"),
            ("-- x\ny", InfluxQlToken::Comment, ""),
            ("/* x **/", InfluxQlToken::Comment, ""),
            ("/* x", InfluxQlToken::Illegal, ""),
            ("<>", InfluxQlToken::Neq, ""),
            ("!", InfluxQlToken::Illegal, "!"),
            ("é", InfluxQlToken::Illegal, "é"),
            ("\t\r\n \r", InfluxQlToken::Whitespace, "\t\n \n"),
        ] {
            let (found, read, _) = one(text);
            assert_eq!((found, read.as_str()), (token, value), "{text}");
        }
        let joined: String = tokens("+-*/%&|^==~!=!~<<=>>=(),:::;.")
            .iter()
            .map(|(token, ..)| token.name())
            .collect();
        assert_eq!(joined, "+-*/%&|^==~!=!~<<=>>=(),:::;.");
    }

    #[test]
    fn places_are_those_that_influxdb_names() {
        let at: Vec<usize> = tokens("a 'b' \"c\" 1").iter().map(|t| t.2).collect();
        assert_eq!(at, [0, 1, 1, 5, 6, 9, 10]);
    }

    #[test]
    fn regular_expressions_keep_their_backslashes_but_before_a_slash() {
        let read = |text: &str| {
            let scanned = scan_regex(&mut Reader::new(text));
            (scanned.token, scanned.text)
        };
        assert_eq!(
            read(r"/a\/b\.c/ x"),
            (InfluxQlToken::Regex, r"a/b\.c".to_owned())
        );
        assert_eq!(read("//"), (InfluxQlToken::Regex, String::new()));
        for bad in ["/a", "/a\nb/", r"/a\"] {
            assert_eq!(read(bad).0, InfluxQlToken::BadRegex, "{bad}");
        }
    }
}
