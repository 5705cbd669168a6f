//! A place in the text of a statement, and the smallest pieces that are read there.

use super::context::TreeSqlContext;
use crate::path::{PathNode, PathPattern, TreePath, is_plain, node_of_word, quoted};
use crate::status::{IotDbFault, StatusCode};

/// How deep conditions may contain each other.
const DEPTH_MAX: u32 = 64;

/// A place in a statement.
pub(super) struct SqlCursor<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// Operators of arithmetic that were read.
    pub(super) operators: u32,
    pub(super) context: &'a TreeSqlContext,
}

impl<'a> SqlCursor<'a> {
    pub(super) fn new(text: &'a str, context: &'a TreeSqlContext) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            operators: 0,
            context,
        }
    }

    /// The text that follows, from the next piece on.
    pub(super) fn rest(&mut self) -> &'a str {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            let rest = &rest[blank..];
            let comment = if rest.starts_with("--") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                self.at += blank;
                return rest;
            };
            self.at += blank + comment;
        }
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// A place to come back to.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn return_to(&mut self, place: usize) {
        self.at = place;
    }

    /// The text between an earlier place and this one.
    pub(super) fn text_before(&self, place: usize) -> &'a str {
        &self.text[place..self.at]
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Runs `read` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, IotDbFault>,
    ) -> Result<T, IotDbFault> {
        if self.depth >= DEPTH_MAX {
            return Err(IotDbFault::new(
                StatusCode::SQL_PARSE,
                format!("expressions are nested more than {DEPTH_MAX} deep"),
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The fault that something else was expected here.
    pub(super) fn expected(&mut self, what: &str) -> IotDbFault {
        let rest = self.rest();
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before
            .chars()
            .rev()
            .take_while(|char| *char != '\n')
            .count();
        let word_end = rest
            .char_indices()
            .find(|(at, char)| *at > 0 && !is_plain(*char))
            .map_or(rest.len(), |(at, _)| at);
        let found = match &rest[..word_end] {
            "" => "<EOF>".to_owned(),
            word => word.chars().take(40).collect(),
        };
        IotDbFault::new(
            StatusCode::SQL_PARSE,
            format!(
                "Error occurred while parsing SQL to physical plan: line {line}:{column} mismatched input '{found}' expecting {what}"
            ),
        )
    }

    /// The next word: letters, digits and `_`.
    pub(super) fn peek_word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Whether the next word is this one.
    pub(super) fn sees(&mut self, keyword: &str) -> bool {
        self.peek_word().eq_ignore_ascii_case(keyword)
    }

    /// Reads a word if it is this one.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let is_there = self.sees(keyword);
        if is_there {
            self.at += keyword.len();
        }
        is_there
    }

    /// Reads these words, if all of them follow.
    pub(super) fn keywords(&mut self, keywords: &[&str]) -> bool {
        let begin = self.at;
        let are_there = keywords.iter().all(|keyword| self.keyword(keyword));
        if !are_there {
            self.at = begin;
        }
        are_there
    }

    pub(super) fn expect_keyword(&mut self, keyword: &str) -> Result<(), IotDbFault> {
        if self.keyword(keyword) {
            return Ok(());
        }
        Err(self.expected(keyword))
    }

    /// Reads a sign if it follows.
    pub(super) fn sign(&mut self, sign: &str) -> bool {
        let is_there = self.rest().starts_with(sign);
        if is_there {
            self.at += sign.len();
        }
        is_there
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<(), IotDbFault> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(self.expected(&format!("'{sign}'")))
    }

    /// Reads values that commas separate.
    pub(super) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, IotDbFault>,
    ) -> Result<Vec<T>, IotDbFault> {
        let mut values = vec![read(self)?];
        while self.sign(",") {
            values.push(read(self)?);
        }
        Ok(values)
    }

    /// Reads a text in quotes.
    pub(super) fn string(&mut self) -> Result<Option<String>, IotDbFault> {
        let rest = self.rest();
        let Some(quote @ ('\'' | '"')) = rest.chars().next() else {
            return Ok(None);
        };
        match quoted(rest, quote) {
            Some((text, after)) => {
                self.at += rest.len() - after.len();
                Ok(Some(text))
            }
            None => Err(self.expected("the end of a text")),
        }
    }

    /// Reads an integer without a sign.
    pub(super) fn unsigned(&mut self) -> Result<u64, IotDbFault> {
        let rest = self.rest();
        let end = rest.find(|char: char| !char.is_ascii_digit());
        let digits = &rest[..end.unwrap_or(rest.len())];
        let number = digits.parse().map_err(|_| self.expected("an integer"))?;
        self.at += digits.len();
        Ok(number)
    }

    /// Reads a path that may have wildcards.
    pub(super) fn pattern(&mut self) -> Result<PathPattern, IotDbFault> {
        let mut nodes = Vec::new();
        self.rest();
        loop {
            let rest = &self.text[self.at..];
            let Some((node, len)) = sql_node(rest) else {
                return Err(self.expected("a path"));
            };
            nodes.push(node);
            self.at += len;
            if !self.text[self.at..].starts_with('.') {
                return PathPattern::from_nodes(nodes);
            }
            self.at += 1;
        }
    }

    /// Reads a path without wildcards that begins at the root.
    pub(super) fn absolute_path(&mut self) -> Result<TreePath, IotDbFault> {
        let pattern = self.pattern()?;
        let path = pattern.as_path().filter(TreePath::is_absolute);
        path.ok_or_else(|| {
            IotDbFault::path(format!(
                "{pattern} must begin with root and have no wildcards"
            ))
        })
    }

    /// Reads a name: a path of one node without wildcards.
    pub(super) fn name(&mut self) -> Result<String, IotDbFault> {
        self.rest();
        match sql_node(&self.text[self.at..]) {
            Some((PathNode::Name(name), len)) => {
                self.at += len;
                Ok(name)
            }
            _ => Err(self.expected("a name")),
        }
    }
}

/// The node at the begin of a text, and its length.
fn sql_node(text: &str) -> Option<(PathNode, usize)> {
    if text.starts_with('`') {
        let (name, rest) = quoted(text, '`')?;
        return (!name.is_empty()).then_some((PathNode::Name(name), text.len() - rest.len()));
    }
    let end = text.find(|char: char| !(is_plain(char) || char == '*'));
    let word = &text[..end.unwrap_or(text.len())];
    if word.is_empty() {
        return None;
    }
    Some((node_of_word(word)?, word.len()))
}
