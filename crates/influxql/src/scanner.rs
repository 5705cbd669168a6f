//! Divides a text into tokens.
//!
//! It behaves like InfluxDB's scanner, including its oddities, because errors contain positions:
//! the position of a string is the character before its quote, a bare name at the end of the text
//! reads the end twice, and in `ab"cd"` only `cd` is the name.

use crate::quote::{begins_ident, in_ident};
use crate::reader::{END, Reader};
use crate::token::{Keyword, Token};

/// A token, its text, and the cursor that its errors report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scanned {
    pub(crate) token: Token,
    /// The name, number or string; empty if the kind is sufficient.
    pub(crate) text: String,
    pub(crate) at: usize,
}

impl Scanned {
    fn new(token: Token, text: impl Into<String>, at: usize) -> Self {
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
        END => Token::Eof,
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
            Token::Dot
        }
        '$' => {
            let name = scan_ident(reader, false);
            let token = match name.token {
                Token::Ident => Token::BoundParam,
                bad => bad,
            };
            return Scanned::new(token, format!("${}", name.text), at);
        }
        '+' => Token::Add,
        '-' if read_if(reader, '-') => {
            while !matches!(reader.read(), '\n' | END) {}
            Token::Comment
        }
        '-' => Token::Sub,
        '*' => Token::Mul,
        '/' if read_if(reader, '*') => skip_comment(reader),
        '/' => Token::Div,
        '%' => Token::Mod,
        '&' => Token::BitwiseAnd,
        '|' => Token::BitwiseOr,
        '^' => Token::BitwiseXor,
        '=' if read_if(reader, '~') => Token::EqRegex,
        '=' => Token::Eq,
        '!' if read_if(reader, '=') => Token::Neq,
        '!' if read_if(reader, '~') => Token::NeqRegex,
        '>' if read_if(reader, '=') => Token::Gte,
        '>' => Token::Gt,
        '<' if read_if(reader, '=') => Token::Lte,
        '<' if read_if(reader, '>') => Token::Neq,
        '<' => Token::Lt,
        '(' => Token::LeftParen,
        ')' => Token::RightParen,
        ',' => Token::Comma,
        ';' => Token::Semicolon,
        ':' if read_if(reader, ':') => Token::DoubleColon,
        ':' => Token::Colon,
        _ => return Scanned::new(Token::Illegal, first, at),
    };
    Scanned::new(token, "", at)
}

/// A regular expression between slashes, in a place where the grammar allows one.
pub(crate) fn scan_regex(reader: &mut Reader<'_>) -> Scanned {
    let at = reader.before();
    if reader.read() != '/' {
        return Scanned::new(Token::BadRegex, "", at);
    }
    let mut text = String::new();
    loop {
        match reader.read() {
            '/' => return Scanned::new(Token::Regex, text, at),
            END | '\n' => return Scanned::new(Token::BadRegex, "", at),
            '\\' if read_if(reader, '/') => text.push('/'),
            // A backslash before anything else belongs to the expression.
            '\\' if reader.peek() == END => return Scanned::new(Token::BadRegex, "", at),
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
    Scanned::new(Token::Whitespace, text.replace('\r', "\n"), at)
}

/// Skips a comment after its `/*`.
fn skip_comment(reader: &mut Reader<'_>) -> Token {
    let mut after_star = false;
    loop {
        match reader.read() {
            '/' if after_star => return Token::Comment,
            END => return Token::Illegal,
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
                if quoted.token == Token::String {
                    quoted.token = Token::Ident;
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
        Some(keyword) if keywords => Scanned::new(Token::Keyword(keyword), "", at),
        _ => Scanned::new(Token::Ident, name, at),
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
        Ok(text) => Scanned::new(Token::String, text, at),
        Err(BadQuoted::Unfinished(text)) => Scanned::new(Token::BadString, text, at),
        Err(BadQuoted::Escape(text)) => Scanned::new(Token::BadEscape, text, reader.before()),
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
        return Scanned::new(Token::Number, text, at);
    }
    let digits = text.len();
    let in_duration = |ch: char| ch.is_ascii_alphabetic() || ch == 'µ';
    read_while(reader, &mut text, in_duration);
    if text.len() == digits {
        return Scanned::new(Token::Integer, text, at);
    }
    read_while(reader, &mut text, |ch| {
        in_duration(ch) || ch.is_ascii_digit()
    });
    Scanned::new(Token::DurationValue, text, at)
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
    use super::{Reader, Scanned, Token, scan, scan_regex};
    use crate::token::Keyword;

    fn tokens(text: &str) -> Vec<(Token, String, usize)> {
        let mut reader = Reader::new(text);
        let next = || {
            let Scanned { token, text, at } = scan(&mut reader);
            (token != Token::Eof).then_some((token, text, at))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn each_kind_of_token() {
        let one = |text: &str| tokens(text).remove(0);
        for (text, token, value) in [
            ("cpu_1 ", Token::Ident, "cpu_1"),
            ("\"a \\\"b\\\"\\n\"", Token::Ident, "a \"b\"\n"),
            ("ab\"cd\"", Token::Ident, "cd"),
            ("seLect", Token::Keyword(Keyword::Select), ""),
            ("'it\\'s'", Token::String, "it's"),
            ("'a", Token::BadString, "a"),
            ("'a\\q'", Token::BadEscape, "\\q"),
            ("12", Token::Integer, "12"),
            ("12.", Token::Number, "12"),
            (".5", Token::Number, ".5"),
            ("1.25x", Token::Number, "1.25"),
            ("1h30m", Token::DurationValue, "1h30m"),
            ("5µ", Token::DurationValue, "5µ"),
            ("$x", Token::BoundParam, "$x"),
            ("$\"a b\"", Token::BoundParam, "$a b"),
            ("$", Token::BoundParam, "$"),
            ("-- x\ny", Token::Comment, ""),
            ("/* x **/", Token::Comment, ""),
            ("/* x", Token::Illegal, ""),
            ("<>", Token::Neq, ""),
            ("!", Token::Illegal, "!"),
            ("é", Token::Illegal, "é"),
            ("\t\r\n \r", Token::Whitespace, "\t\n \n"),
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
        assert_eq!(read(r"/a\/b\.c/ x"), (Token::Regex, r"a/b\.c".to_owned()));
        assert_eq!(read("//"), (Token::Regex, String::new()));
        for bad in ["/a", "/a\nb/", r"/a\"] {
            assert_eq!(read(bad).0, Token::BadRegex, "{bad}");
        }
    }
}
