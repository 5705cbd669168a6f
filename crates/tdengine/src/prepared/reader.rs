//! Reads the tokens of a statement that is prepared.

use super::{HOLES_MAX, PreparedInsert, PreparedItem, PreparedUsing, too_many};
use crate::error::TaosResult;
use crate::lexer::{SqlToken, SqlTokenKind, error_near, next_token, unquoted_name};

/// Reads tokens.
pub(super) struct PreparedTextReader<'a> {
    pub(super) sql: &'a str,
    pub(super) at: usize,
}

impl<'a> PreparedTextReader<'a> {
    pub(super) fn peek(&self) -> TaosResult<SqlToken> {
        next_token(self.sql, self.at)
    }

    pub(super) fn next(&mut self) -> TaosResult<SqlToken> {
        let token = self.peek()?;
        self.at = token.end;
        Ok(token)
    }

    pub(super) fn text(&self, token: SqlToken) -> &'a str {
        self.sql.get(token.start..token.end).unwrap_or_default()
    }

    pub(super) fn is_word(&self, token: SqlToken, word: &str) -> bool {
        token.kind == SqlTokenKind::Word && self.text(token).eq_ignore_ascii_case(word)
    }

    fn is_symbol(&self, token: SqlToken, symbol: &str) -> bool {
        token.kind == SqlTokenKind::Symbol && self.text(token) == symbol
    }

    fn error<T>(&self, token: SqlToken) -> TaosResult<T> {
        Err(error_near(self.sql, token.start))
    }

    fn expect_word(&mut self, word: &str) -> TaosResult<()> {
        let token = self.next()?;
        if self.is_word(token, word) {
            return Ok(());
        }
        self.error(token)
    }

    fn expect_symbol(&mut self, symbol: &str) -> TaosResult<()> {
        let token = self.next()?;
        if self.is_symbol(token, symbol) {
            return Ok(());
        }
        self.error(token)
    }

    /// Reads `a`, `` `a` `` or `a.b`, and returns it as it is written.
    pub(super) fn name(&mut self) -> TaosResult<String> {
        let mut written = String::new();
        loop {
            let token = self.next()?;
            if !matches!(token.kind, SqlTokenKind::Word | SqlTokenKind::QuotedName) {
                return self.error(token);
            }
            let is_second = !written.is_empty();
            if is_second {
                written.push('.');
            }
            written.push_str(self.text(token));
            if is_second || !self.is_symbol(self.peek()?, ".") {
                return Ok(written);
            }
            self.next()?;
        }
    }

    /// Reads the names of a list, as TDengine stores them.
    fn names(&mut self) -> TaosResult<Vec<String>> {
        self.expect_symbol("(")?;
        let mut names = Vec::new();
        loop {
            let token = self.next()?;
            names.push(match token.kind {
                SqlTokenKind::Word => self.text(token).to_lowercase(),
                SqlTokenKind::QuotedName => unquoted_name(self.text(token)),
                _ => return self.error(token),
            });
            let token = self.next()?;
            if self.is_symbol(token, ")") {
                return Ok(names);
            }
            if !self.is_symbol(token, ",") || names.len() > HOLES_MAX {
                return self.error(token);
            }
        }
    }

    /// Reads the values of a list.
    fn items(&mut self) -> TaosResult<Vec<PreparedItem>> {
        self.expect_symbol("(")?;
        let mut items = Vec::new();
        loop {
            let (start, mut depth, mut end) = (self.peek()?.start, 0_usize, 0);
            let mut is_bound = false;
            // A value ends where a comma or a parenthesis stands outside of other parentheses.
            let last = loop {
                let token = self.next()?;
                match self.text(token) {
                    _ if token.kind == SqlTokenKind::End => return self.error(token),
                    "," | ")" if depth == 0 && token.kind == SqlTokenKind::Symbol => break token,
                    "(" => depth += 1,
                    ")" => depth = depth.saturating_sub(1),
                    "?" if token.kind == SqlTokenKind::Symbol => {
                        if token.start != start {
                            return self.error(token);
                        }
                        is_bound = true;
                    }
                    _ if is_bound => return self.error(token),
                    _ => {}
                }
                end = token.end;
            };
            let text = self.sql.get(start..end).unwrap_or_default();
            items.push(match text {
                "" => return self.error(last),
                "?" => PreparedItem::Bound,
                text => PreparedItem::Written(text.to_owned()),
            });
            if items.len() > HOLES_MAX {
                return Err(too_many());
            }
            if self.is_symbol(last, ")") {
                return Ok(items);
            }
        }
    }

    pub(super) fn insert(&mut self) -> TaosResult<PreparedInsert> {
        self.next()?;
        self.expect_word("into")?;
        let table = if self.is_symbol(self.peek()?, "?") {
            self.next()?;
            None
        } else {
            Some(self.name()?)
        };
        let mut columns = None;
        if self.is_symbol(self.peek()?, "(") {
            columns = Some(self.names()?);
        }
        let mut using = None;
        if self.is_word(self.peek()?, "using") {
            self.next()?;
            let stable = self.name()?;
            let mut tag_names = None;
            if self.is_symbol(self.peek()?, "(") {
                tag_names = Some(self.names()?);
            }
            self.expect_word("tags")?;
            let tags = self.items()?;
            using = Some(PreparedUsing {
                stable,
                tag_names,
                tags,
            });
            if columns.is_none() && self.is_symbol(self.peek()?, "(") {
                columns = Some(self.names()?);
            }
        }
        let token = self.peek()?;
        if self.is_word(token, "value") {
            self.next()?;
        } else {
            self.expect_word("values")?;
        }
        let values = self.items()?;
        let mut token = self.next()?;
        if self.is_symbol(token, ";") {
            token = self.next()?;
        }
        if token.kind != SqlTokenKind::End {
            return self.error(token);
        }
        Ok(PreparedInsert {
            table,
            using,
            columns,
            values,
        })
    }
}
