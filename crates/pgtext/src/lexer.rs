//! SQL's words, as PostgreSQL tells them apart: for all who look at a statement before it is parsed.
//!
//! Comments may hold comments; texts stand in `'…'`, `E'…'` and `$tag$…$tag$`.

use std::ops::Range;

/// A word of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// An identifier, keyword or digits without quotes, in lower case.
    Word(String),
    /// An identifier in double quotes.
    Quoted(String),
    /// A text in single quotes, with `E` before it, or between `$tag$`.
    Text(String),
    /// Any other character.
    Sign(char),
}

impl Token {
    /// Whether it is this keyword.
    #[must_use]
    pub fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word == keyword)
    }

    /// The name that it is, if it can be one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some(name),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Word,
    Quoted,
    Text { escapes: bool },
    Dollar { tag: usize },
    Sign,
}

/// The tokens of a statement with the byte at which each begins; comments and blanks are left out.
#[derive(Clone, Debug)]
pub struct StatementLexer<'a> {
    text: &'a str,
    /// The byte of what was not read yet.
    at: usize,
    is_open: bool,
}

impl<'a> StatementLexer<'a> {
    /// A lexer at the begin of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            is_open: false,
        }
    }

    /// Byte offset of what was not read yet.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether the text ended within a quote or a comment.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Skips to after the `)` that closes a `(` just read; the text between, if it is closed.
    pub fn parenthesized(&mut self) -> Option<&'a str> {
        let begin = self.at;
        let mut depth = 1;
        loop {
            let (kind, place) = self.next_place()?;
            match (kind, &self.text[place.clone()]) {
                (TokenKind::Sign, "(") => depth += 1,
                (TokenKind::Sign, ")") => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(&self.text[begin..place.start]);
            }
        }
    }

    /// Where the next token stands, quotes included; nothing is copied.
    pub fn next_token_range(&mut self) -> Option<Range<usize>> {
        self.next_place().map(|(_, place)| place)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves behind the next `end`, or to the end of a text that is open.
    fn skip_past(&mut self, end: &str) {
        match self.rest().find(end) {
            Some(len) => self.at += len + end.len(),
            None => {
                self.at = self.text.len();
                self.is_open = true;
            }
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.skip_comment();
            } else if let Some(blank) = rest.chars().next().filter(|c| c.is_whitespace()) {
                self.at += blank.len_utf8();
            } else {
                return;
            }
        }
    }

    fn skip_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while self.at < bytes.len() {
            match bytes.get(self.at..self.at + 2) {
                Some(b"/*") => {
                    depth += 1;
                    self.at += 2;
                }
                Some(b"*/") => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
        self.is_open = true;
    }

    /// Moves behind the quote that closes a text; a doubled one is part of it.
    fn skip_quoted(&mut self, quote: u8, escapes: bool) {
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            let byte = bytes[self.at];
            self.at += 1;
            if byte == b'\\' && escapes {
                // What follows may be longer than a byte: none of the others is a quote.
                self.at += usize::from(self.at < bytes.len());
            } else if byte == quote {
                if bytes.get(self.at) != Some(&quote) {
                    return;
                }
                self.at += 1;
            }
        }
        self.is_open = true;
    }

    /// The length of the `$tag$` that begins here.
    fn dollar_tag(&self) -> Option<usize> {
        let tag = self.rest().strip_prefix('$')?;
        let len = tag.find('$')?;
        let is_tag = tag[..len].chars().all(|c| c.is_alphanumeric() || c == '_')
            && !tag.starts_with(|c: char| c.is_ascii_digit());
        is_tag.then_some(len + 2)
    }

    fn next_place(&mut self) -> Option<(TokenKind, Range<usize>)> {
        self.skip_blanks();
        let (begin, rest) = (self.at, self.rest());
        let first = rest.chars().next()?;
        let kind = match first {
            '"' => {
                self.at += 1;
                self.skip_quoted(b'"', false);
                TokenKind::Quoted
            }
            '\'' => {
                self.at += 1;
                self.skip_quoted(b'\'', false);
                TokenKind::Text { escapes: false }
            }
            'e' | 'E' if rest[1..].starts_with('\'') => {
                self.at += 2;
                self.skip_quoted(b'\'', true);
                TokenKind::Text { escapes: true }
            }
            '$' if let Some(tag) = self.dollar_tag() => {
                self.at += tag;
                self.skip_past(&rest[..tag]);
                TokenKind::Dollar { tag }
            }
            _ if first.is_ascii_digit() => {
                self.at += number_len(rest);
                TokenKind::Word
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let is_more = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
                self.at += rest.find(|c| !is_more(c)).unwrap_or(rest.len());
                TokenKind::Word
            }
            sign => {
                self.at += sign.len_utf8();
                TokenKind::Sign
            }
        };
        Some((kind, begin..self.at))
    }
}

/// The length of the digits that a text begins with, and of their exponent. What follows is a token
/// of its own: `1e3E'x'` is a number and a text.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize, is_digit: fn(&u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| is_digit(byte)).count()
    };
    if matches!(bytes, [b'0', b'x' | b'X', ..]) {
        return 2 + digits(2, u8::is_ascii_hexdigit);
    }
    let len = digits(0, u8::is_ascii_digit);
    let sign = match bytes.get(len..) {
        Some([b'e' | b'E', b'+' | b'-', ..]) => 2,
        Some([b'e' | b'E', ..]) => 1,
        _ => return len,
    };
    match digits(len + sign, u8::is_ascii_digit) {
        0 => len,
        exponent => len + sign + exponent,
    }
}

/// The text within quotes, of which the first `skipped` bytes begin it.
fn unquoted(written: &str, skipped: usize, quote: char, escapes: bool) -> String {
    let mut characters = written[skipped..].chars();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        if character == quote {
            // The second of two, or the end.
            if characters.next().is_none() {
                break;
            }
            text.push(quote);
        } else if escapes && character == '\\' {
            match characters.next() {
                Some('t') => text.push('\t'),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('b') => text.push('\u{8}'),
                Some('f') => text.push('\u{c}'),
                Some(other) => text.push(other),
                None => {}
            }
        } else {
            text.push(character);
        }
    }
    text
}

impl Iterator for StatementLexer<'_> {
    type Item = (usize, Token);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, place) = self.next_place()?;
        let begin = place.start;
        let written = &self.text[place];
        let token = match kind {
            TokenKind::Word => Token::Word(written.to_lowercase()),
            TokenKind::Quoted => Token::Quoted(unquoted(written, 1, '"', false)),
            TokenKind::Text { escapes } => {
                Token::Text(unquoted(written, 1 + usize::from(escapes), '\'', escapes))
            }
            TokenKind::Dollar { tag } => {
                let text = &written[tag..];
                let end = text.len().saturating_sub(tag);
                let text = match text.get(end..) {
                    Some(closing) if closing == &written[..tag] => &text[..end],
                    _ => text,
                };
                Token::Text(text.to_owned())
            }
            TokenKind::Sign => Token::Sign(written.chars().next()?),
        };
        Some((begin, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        StatementLexer::new(text).map(|(_, token)| token).collect()
    }

    fn word(word: &str) -> Token {
        Token::Word(word.to_owned())
    }

    fn text(text: &str) -> Token {
        Token::Text(text.to_owned())
    }

    #[test]
    fn words_quotes_and_comments() {
        let expected = vec![
            word("copy"),
            Token::Quoted("A\"b".to_owned()),
            Token::Sign('('),
            word("x1"),
            Token::Sign(','),
            text("it's"),
            Token::Sign(','),
            text("\t"),
            Token::Sign(')'),
            Token::Sign(';'),
        ];
        let sql = "/* a */ Copy \"A\"\"b\" -- c\n(x1, 'it''s', E'\\t');";
        assert_eq!(tokens(sql), expected);
    }

    #[test]
    fn comments_hold_comments() {
        assert_eq!(tokens("a /* x /* y */ z */ b"), [word("a"), word("b")]);
        let mut open = StatementLexer::new("a /* x /* y */ b");
        assert_eq!(open.by_ref().count(), 1);
        assert!(open.is_open());
    }

    #[test]
    fn texts_stand_between_dollars() {
        assert_eq!(
            tokens("$$it's; $1$$ $a_1$ $$ $a_1$ $1 a$b$ 1$$;$$"),
            [
                text("it's; $1"),
                text(" $$ "),
                Token::Sign('$'),
                word("1"),
                word("a$b$"),
                word("1"),
                text(";")
            ]
        );
        let mut open = StatementLexer::new("$x$ never closed $y$");
        assert_eq!(open.next(), Some((0, text(" never closed $y$"))));
        assert!(open.is_open());
    }

    #[test]
    fn escapes_hide_quotes_only_where_they_are_escapes() {
        assert_eq!(tokens(r"E'a\'b' c"), [text("a'b"), word("c")]);
        assert_eq!(tokens(r"'a\' b"), [text(r"a\"), word("b")]);
        let mut open = StatementLexer::new("e'a\\");
        assert_eq!(open.next(), Some((0, text("a"))));
        assert!(open.is_open());
    }

    #[test]
    fn parentheses_close() {
        let mut lexer = StatementLexer::new("(select ')' , (1)) to");
        assert_eq!(lexer.next(), Some((0, Token::Sign('('))));
        assert_eq!(lexer.parenthesized(), Some("select ')' , (1)"));
        assert!(
            lexer
                .next()
                .is_some_and(|(_, token)| token.is_keyword("to"))
        );
        assert_eq!(StatementLexer::new("never closed").parenthesized(), None);
    }

    #[test]
    fn every_text_is_read_to_its_end() {
        for sql in [
            "",
            "é",
            "'é",
            "\"",
            "$",
            "$é$",
            "e'",
            "e'\\é",
            "/*é",
            "--é",
            "\u{3000}a",
            "*/",
        ] {
            let mut lexer = StatementLexer::new(sql);
            while lexer.next().is_some() {}
            assert_eq!(lexer.offset(), sql.len(), "{sql}");
        }
    }
}
