//! The place in the text up to which a statement is read, and the steps that all statements share.
//!
//! Invariant: [`TaosCursor::nested`] bounds the recursion of all parsers, and [`TaosCursor::count_operator`] the
//! depth of chains.

use crate::ast::{TaosName, TaosQuery};
use crate::error::{TaosCode, TaosError, TaosResult};
use crate::lexer::{SqlToken, SqlTokenKind, error_near, next_token, unquoted, unquoted_name};
use std::borrow::Cow;

/// How deep parentheses, calls, signs and queries may stand in each other.
pub const NESTING_MAX: usize = 48;

/// Operators of arithmetic in one expression.
pub const OPERATORS_MAX: usize = 128;

/// Longest name, bytes.
const NAME_BYTES_MAX: usize = 192;

/// Words that are no names unless they stand in backquotes.
const RESERVED: [&str; 42] = [
    "add",
    "all",
    "alter",
    "and",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "create",
    "desc",
    "describe",
    "distinct",
    "drop",
    "else",
    "exists",
    "fill",
    "from",
    "group",
    "having",
    "in",
    "insert",
    "interval",
    "into",
    "is",
    "join",
    "like",
    "limit",
    "not",
    "null",
    "on",
    "or",
    "order",
    "partition",
    "select",
    "set",
    "slimit",
    "table",
    "then",
    "union",
    "using",
    "where",
];

/// Reads a query; queries and expressions contain each other, and modules must not.
pub(super) type QueryParser = for<'a> fn(&mut TaosCursor<'a>) -> TaosResult<TaosQuery>;

/// The place in a text.
#[derive(Clone)]
pub(super) struct TaosCursor<'a> {
    sql: &'a str,
    /// The next token.
    token: SqlToken,
    /// Where the token before ended.
    before: usize,
    nesting: usize,
    operators: usize,
    query: QueryParser,
}

impl<'a> TaosCursor<'a> {
    pub(super) fn new(sql: &'a str, from: usize, query: QueryParser) -> TaosResult<Self> {
        Ok(Self {
            sql,
            token: next_token(sql, from)?,
            before: from,
            nesting: 0,
            operators: 0,
            query,
        })
    }

    /// The kind of the next token.
    pub(super) fn kind(&self) -> SqlTokenKind {
        self.token.kind
    }

    /// Where the next token begins.
    pub(super) fn start(&self) -> usize {
        self.token.start
    }

    /// The text of the next token.
    pub(super) fn text(&self) -> &'a str {
        self.sql
            .get(self.token.start..self.token.end)
            .unwrap_or_default()
    }

    /// The text from a place to the end of the last token.
    pub(super) fn text_since(&self, start: usize) -> &'a str {
        self.sql.get(start..self.before).unwrap_or_default()
    }

    /// The token after the next one.
    pub(super) fn text_after(&self) -> &'a str {
        let next = next_token(self.sql, self.token.end).ok();
        let text = next.and_then(|next| self.sql.get(next.start..next.end));
        text.unwrap_or_default()
    }

    /// Goes to the next token.
    pub(super) fn advance(&mut self) -> TaosResult<()> {
        self.before = self.token.end;
        self.token = next_token(self.sql, self.token.end)?;
        Ok(())
    }

    /// The error that the next token is.
    pub(super) fn error(&self) -> TaosError {
        error_near(self.sql, self.token.start)
    }

    /// Whether the next token is this keyword.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.token.kind == SqlTokenKind::Word && self.text().eq_ignore_ascii_case(word)
    }

    /// Whether the next token is one of these keywords.
    pub(super) fn is_any_word(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    /// Whether the next token is this symbol.
    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.token.kind == SqlTokenKind::Symbol && self.text() == symbol
    }

    /// Takes a keyword, if it is next.
    pub(super) fn eat_word(&mut self, word: &str) -> TaosResult<bool> {
        let is_next = self.is_word(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Takes keywords, if the first one is next.
    pub(super) fn eat_words(&mut self, words: &[&str]) -> TaosResult<bool> {
        let Some((first, rest)) = words.split_first() else {
            return Ok(false);
        };
        if !self.eat_word(first)? {
            return Ok(false);
        }
        rest.iter().try_for_each(|word| self.expect_word(word))?;
        Ok(true)
    }

    /// Takes a symbol, if it is next.
    pub(super) fn eat_symbol(&mut self, symbol: &str) -> TaosResult<bool> {
        let is_next = self.is_symbol(symbol);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Takes a keyword.
    pub(super) fn expect_word(&mut self, word: &str) -> TaosResult<()> {
        if self.eat_word(word)? {
            return Ok(());
        }
        Err(self.error())
    }

    /// Takes a symbol.
    pub(super) fn expect_symbol(&mut self, symbol: &str) -> TaosResult<()> {
        if self.eat_symbol(symbol)? {
            return Ok(());
        }
        Err(self.error())
    }

    /// Whether the next token can be a name.
    pub(super) fn is_name(&self) -> bool {
        match self.token.kind {
            SqlTokenKind::QuotedName => true,
            SqlTokenKind::Word => !RESERVED.iter().any(|word| self.is_word(word)),
            _ => false,
        }
    }

    /// Takes a name: in lower case, unless it stands in backquotes.
    pub(super) fn name(&mut self) -> TaosResult<String> {
        if !self.is_name() {
            return Err(self.error());
        }
        let name = match self.token.kind {
            SqlTokenKind::QuotedName => unquoted_name(self.text()),
            _ => self.text().to_lowercase(),
        };
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
            return Err(TaosError::about(TaosCode::InvalidName, &shown));
        }
        self.advance()?;
        Ok(name)
    }

    /// Takes a name with or without its database.
    pub(super) fn full_name(&mut self) -> TaosResult<TaosName> {
        let name = self.name()?;
        if !self.eat_symbol(".")? {
            return Ok(TaosName {
                database: None,
                name,
            });
        }
        Ok(TaosName {
            database: Some(name),
            name: self.name()?,
        })
    }

    /// Takes names between parentheses.
    pub(super) fn name_list(&mut self) -> TaosResult<Vec<String>> {
        self.expect_symbol("(")?;
        let mut names = vec![self.name()?];
        while self.eat_symbol(",")? {
            names.push(self.name()?);
        }
        self.expect_symbol(")")?;
        Ok(names)
    }

    /// Takes a text in quotes.
    pub(super) fn quoted(&mut self) -> TaosResult<Cow<'a, str>> {
        if self.token.kind != SqlTokenKind::Text {
            return Err(self.error());
        }
        let text = unquoted(self.text());
        self.advance()?;
        Ok(text)
    }

    /// Takes an integer without sign.
    pub(super) fn integer(&mut self) -> TaosResult<i128> {
        if self.token.kind != SqlTokenKind::Integer {
            return Err(self.error());
        }
        let number = integer(self.text()).ok_or_else(|| self.error())?;
        self.advance()?;
        Ok(number)
    }

    /// Takes an integer for a limit.
    pub(super) fn count(&mut self) -> TaosResult<u64> {
        let error = self.error();
        u64::try_from(self.integer()?).map_err(|_| error)
    }

    /// Reads what stands one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> TaosResult<T>,
    ) -> TaosResult<T> {
        if self.nesting >= NESTING_MAX {
            let message = format!("the statement nests deeper than {NESTING_MAX} levels");
            return Err(TaosError::with_message(TaosCode::SyntaxError, message));
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    /// Begins an expression of its own; returns what [`end_expression`](Self::end_expression) needs.
    pub(super) fn begin_expression(&mut self) -> usize {
        std::mem::take(&mut self.operators)
    }

    /// Ends an expression.
    pub(super) fn end_expression(&mut self, operators: usize) {
        self.operators = operators;
    }

    /// Counts an operator, each of which makes the tree deeper.
    pub(super) fn count_operator(&mut self) -> TaosResult<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            let message = format!("an expression has more than {OPERATORS_MAX} operators");
            return Err(TaosError::with_message(TaosCode::SyntaxError, message));
        }
        Ok(())
    }

    /// Reads a query.
    pub(super) fn query(&mut self) -> TaosResult<TaosQuery> {
        let query = self.query;
        self.nested(|cursor| {
            let operators = cursor.begin_expression();
            let read = query(cursor);
            cursor.end_expression(operators);
            read
        })
    }
}

/// The value of an integer's text: decimal, `0x…` or `0b…`.
pub(super) fn integer(text: &str) -> Option<i128> {
    let radix = |prefix: [&str; 2], radix| {
        let digits = prefix.iter().find_map(|prefix| text.strip_prefix(prefix));
        digits.map(|digits| i128::from_str_radix(digits, radix).ok())
    };
    radix(["0x", "0X"], 16)
        .or_else(|| radix(["0b", "0B"], 2))
        .unwrap_or_else(|| text.parse().ok())
}
