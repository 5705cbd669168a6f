//! Parses statements.
//!
//! This is recursive descent over the tokens, with the same buffer of three tokens as InfluxDB's
//! parser: which tokens it can put back, and what it sees past them, determines the error of a
//! wrong statement. Operators are parsed with a stack, so that chains may be long; parentheses,
//! calls and subqueries may nest [`NESTING_MAX`] deep.

mod admin;
mod clauses;
mod expr;
mod select;
mod show;
mod source;
mod statement;

use crate::ast::{Expr, InfluxQlQuery, SourceSpan, Statement};
use crate::error::ParseError;
use crate::params::Params;
use crate::reader::Reader;
use crate::scanner::{Scanned, scan, scan_regex};
use crate::token::{InfluxQlToken, Keyword};
use crate::zone::TimeZones;
use std::borrow::Cow;

/// The deepest accepted nesting of parentheses, calls and subqueries. InfluxDB is limited only by
/// its memory.
pub const NESTING_MAX: usize = 200;

/// The options for parsing a query.
#[derive(Clone, Copy, Default)]
pub struct ParseOptions<'a> {
    /// Values for `$name`.
    pub params: Option<&'a Params>,
    /// The zones that `tz('…')` may name. Without it, every name is accepted.
    pub time_zones: Option<&'a dyn TimeZones>,
}

/// Parses a query: statements separated by `;`.
///
/// # Errors
/// The first error, in InfluxDB's words.
pub fn parse_query(text: &str) -> Result<InfluxQlQuery, ParseError> {
    parse_query_with(text, ParseOptions::default())
}

/// Parses a query, with parameters and time zones.
///
/// # Errors
/// The first error, in InfluxDB's words.
pub fn parse_query_with(
    text: &str,
    options: ParseOptions<'_>,
) -> Result<InfluxQlQuery, ParseError> {
    Parser::new(text, options).query()
}

/// Parses one expression and ignores what follows it.
///
/// # Errors
/// The first error, in InfluxDB's words.
pub fn parse_expr(text: &str) -> Result<Expr, ParseError> {
    Parser::new(text, ParseOptions::default()).expr()
}

/// Tokens that can be put back.
const BUFFERED: usize = 3;

struct Parser<'a> {
    reader: Reader<'a>,
    options: ParseOptions<'a>,
    /// A ring of the last tokens.
    buffer: [Scanned; BUFFERED],
    /// The newest token in the ring.
    newest: usize,
    /// The number of tokens that were put back.
    put_back: usize,
    /// The number of open parentheses, calls and subqueries.
    nesting: usize,
}

type Parsed<T> = Result<T, ParseError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str, options: ParseOptions<'a>) -> Self {
        let none = || Scanned {
            token: InfluxQlToken::Illegal,
            text: String::new(),
            at: 0,
        };
        Self {
            reader: Reader::new(text),
            options,
            buffer: [none(), none(), none()],
            newest: 0,
            put_back: 0,
            nesting: 0,
        }
    }

    fn query(&mut self) -> Parsed<InfluxQlQuery> {
        let mut query = InfluxQlQuery::default();
        let mut separated = true;
        loop {
            let next = self.next();
            match next.token {
                InfluxQlToken::Eof | InfluxQlToken::Semicolon => {
                    if let (false, Some(span)) = (separated, query.spans.last_mut()) {
                        *span = self.trimmed(span.start, next.at);
                    }
                    separated = true;
                    if next.token == InfluxQlToken::Eof {
                        return Ok(query);
                    }
                }
                _ if !separated => return self.unexpected(&next, &[";"]),
                _ => {
                    self.unscan();
                    let statement: Statement = self.statement()?;
                    query.statements.push(statement);
                    let (start, end) = (next.at, next.at);
                    query.spans.push(SourceSpan { start, end });
                    separated = false;
                }
            }
        }
    }

    /// The part of the text between two cursors, without blanks around it.
    fn trimmed(&self, start: usize, end: usize) -> SourceSpan {
        let text = self.reader.text();
        let end = end.min(text.len()).max(start);
        let Some(part) = text.get(start..end) else {
            return SourceSpan { start, end };
        };
        let start = end - part.trim_start().len();
        let end = start + part.trim().len();
        SourceSpan { start, end }
    }

    /// The next token, including blanks and comments.
    fn scan(&mut self) -> Scanned {
        self.scan_by(scan)
    }

    /// The next token in a place where a regular expression is allowed.
    fn scan_regex(&mut self) -> Scanned {
        self.scan_by(scan_regex)
    }

    fn scan_by(&mut self, by: impl Fn(&mut Reader<'a>) -> Scanned) -> Scanned {
        if self.put_back > 0 {
            self.put_back -= 1;
        } else {
            self.newest = (self.newest + 1) % BUFFERED;
            self.buffer[self.newest] = by(&mut self.reader);
        }
        let back = self.put_back % BUFFERED;
        let scanned = &self.buffer[(self.newest + BUFFERED - back) % BUFFERED];
        self.substituted(scanned.clone())
    }

    /// Replaces a token that is a parameter with its value, if it has one.
    fn substituted(&self, mut scanned: Scanned) -> Scanned {
        if scanned.token == InfluxQlToken::BoundParam
            && let Some(params) = self.options.params
            && let Some((token, text)) = params.token(&scanned.text[1..])
        {
            (scanned.token, scanned.text) = (token, text);
        }
        scanned
    }

    /// The next token that is neither blank nor a comment.
    fn next(&mut self) -> Scanned {
        loop {
            let scanned = self.scan();
            if !matches!(
                scanned.token,
                InfluxQlToken::Whitespace | InfluxQlToken::Comment
            ) {
                return scanned;
            }
        }
    }

    /// Puts the last token back.
    fn unscan(&mut self) {
        self.put_back += 1;
    }

    /// Reads the next token if it is this one.
    fn next_is(&mut self, token: InfluxQlToken) -> bool {
        let is = self.next().token == token;
        if !is {
            self.unscan();
        }
        is
    }

    /// Reads the next token if it is this keyword.
    fn next_is_keyword(&mut self, keyword: Keyword) -> bool {
        self.next_is(InfluxQlToken::Keyword(keyword))
    }

    /// Reads a token that must be there.
    fn expect(&mut self, token: InfluxQlToken) -> Parsed<()> {
        let next = self.next();
        if next.token == token {
            return Ok(());
        }
        self.unexpected(&next, &[token.name()])
    }

    /// Reads required keywords.
    fn expect_keywords(&mut self, keywords: &[Keyword]) -> Parsed<()> {
        keywords
            .iter()
            .try_for_each(|keyword| self.expect(InfluxQlToken::Keyword(*keyword)))
    }

    /// Parses something nested.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == NESTING_MAX {
            let message = format!("query is nested more than {NESTING_MAX} levels deep");
            let position = self.reader.position(self.reader.before());
            return Err(ParseError::with_position(message, position));
        }
        self.nesting += 1;
        let read = read(self);
        self.nesting -= 1;
        read
    }

    fn unexpected<T>(&self, found: &Scanned, expected: &[&'static str]) -> Parsed<T> {
        let expected = expected.iter().map(|text| Cow::Borrowed(*text)).collect();
        self.unexpected_of(found, expected)
    }

    fn unexpected_of<T>(&self, found: &Scanned, expected: Vec<Cow<'static, str>>) -> Parsed<T> {
        let position = self.reader.position(found.at);
        Err(ParseError::unexpected(found.found(), expected, position))
    }

    fn message<T>(&self, message: impl Into<String>, at: &Scanned) -> Parsed<T> {
        Err(ParseError::with_position(
            message,
            self.reader.position(at.at),
        ))
    }
}
