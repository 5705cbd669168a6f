//! A minimal SQL lexer that recognizes the statements that the protocol layer itself answers: COPY,
//! transactions, session settings.

use std::iter::Peekable;
use std::str::CharIndices;

/// A token of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// An identifier or keyword without quotes, in lower case.
    Word(String),
    /// An identifier in double quotes.
    Quoted(String),
    /// A text in single quotes, optionally with a preceding `E`.
    Text(String),
    /// Any other character.
    Sign(char),
}

impl Token {
    /// Whether the token is this keyword.
    pub fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word == keyword)
    }

    /// The name that the token stands for, if it can be one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some(name),
            _ => None,
        }
    }
}

/// The tokens of a statement, each with its byte offset; skips comments and blanks.
pub struct StatementLexer<'a> {
    text: &'a str,
    characters: Peekable<CharIndices<'a>>,
}

impl<'a> StatementLexer<'a> {
    /// A lexer at the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            characters: text.char_indices().peekable(),
        }
    }

    /// Byte offset of the unread rest.
    pub fn offset(&mut self) -> usize {
        self.characters
            .peek()
            .map_or(self.text.len(), |(at, _)| *at)
    }

    /// Skips past the `)` that closes a `(` just read; returns the text between them, if it is
    /// closed.
    pub fn parenthesized(&mut self) -> Option<&'a str> {
        let begin = self.offset();
        let mut depth = 1;
        loop {
            let (at, token) = self.next()?;
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(&self.text[begin..at]);
            }
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.offset()..];
            if rest.starts_with("--") {
                while self
                    .characters
                    .next()
                    .is_some_and(|(_, character)| character != '\n')
                {}
            } else if rest.starts_with("/*") {
                let length = rest.find("*/").map_or(rest.len(), |at| at + 2);
                let end = self.offset() + length;
                while self.offset() < end {
                    self.characters.next();
                }
            } else if rest.starts_with(char::is_whitespace) {
                self.characters.next();
            } else {
                return;
            }
        }
    }

    /// The text up to `quote`; a doubled quote represents one.
    fn quoted(&mut self, quote: char, escapes: bool) -> String {
        let mut text = String::new();
        while let Some((_, character)) = self.characters.next() {
            if character == quote {
                if self
                    .characters
                    .next_if(|(_, next)| *next == quote)
                    .is_none()
                {
                    break;
                }
                text.push(quote);
            } else if escapes && character == '\\' {
                match self.characters.next() {
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, 'b')) => text.push('\u{8}'),
                    Some((_, 'f')) => text.push('\u{c}'),
                    Some((_, other)) => text.push(other),
                    None => {}
                }
            } else {
                text.push(character);
            }
        }
        text
    }
}

impl Iterator for StatementLexer<'_> {
    type Item = (usize, Token);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let (at, first) = self.characters.next()?;
        let token = match first {
            '"' => Token::Quoted(self.quoted('"', false)),
            '\'' => Token::Text(self.quoted('\'', false)),
            'e' | 'E' if self.characters.next_if(|(_, next)| *next == '\'').is_some() => {
                Token::Text(self.quoted('\'', true))
            }
            _ if first.is_alphanumeric() || first == '_' => {
                let mut word = first.to_lowercase().to_string();
                let more =
                    |next: &(usize, char)| next.1.is_alphanumeric() || matches!(next.1, '_' | '$');
                while let Some((_, next)) = self.characters.next_if(more) {
                    word.extend(next.to_lowercase());
                }
                Token::Word(word)
            }
            other => Token::Sign(other),
        };
        Some((at, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_comments() {
        let text = "/* a */ Copy \"A\"\"b\" -- c\n(x1, 'it''s', E'\\t');";
        let tokens: Vec<Token> = StatementLexer::new(text).map(|(_, token)| token).collect();
        let word = |word: &str| Token::Word(word.to_owned());
        let expected = vec![
            word("copy"),
            Token::Quoted("A\"b".to_owned()),
            Token::Sign('('),
            word("x1"),
            Token::Sign(','),
            Token::Text("it's".to_owned()),
            Token::Sign(','),
            Token::Text("\t".to_owned()),
            Token::Sign(')'),
            Token::Sign(';'),
        ];
        assert_eq!(tokens, expected);
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
}
