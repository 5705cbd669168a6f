//! DuckDB's `FROM t [WHERE …]`, which selects all columns.
//!
//! The parser accepts a SELECT after its FROM, but no FROM without a SELECT: `SELECT *` is inserted
//! into the tokens of such a query.

use crate::dialect::rewriting::selects;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{Query, SelectFlavor, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::ControlFlow;

/// Words after which a query begins.
const QUERY_FOLLOWS: [&str; 8] = [
    "as",
    "all",
    "union",
    "except",
    "intersect",
    "explain",
    "analyze",
    "verbose",
];
/// Words between two queries.
const SET_OPERATORS: [&str; 3] = ["union", "except", "intersect"];
/// Functions whose arguments may begin with FROM.
const TAKES_FROM: [&str; 3] = ["trim", "substring", "overlay"];

/// Whether a statement, in lower case, may contain a FROM without a SELECT before it.
pub(crate) fn may_begin_with_from(folded: &str) -> bool {
    let Some(first) = folded.find("from") else {
        return false;
    };
    let with = folded.find("with").unwrap_or(usize::MAX);
    let comment = folded.find("--").unwrap_or(usize::MAX);
    // The text before one FROM is not read again for the next.
    folded[first..].match_indices("from").any(|(at, _)| {
        let at = first + at;
        let before = folded[..at].trim_end();
        // A comment may hide the text before it.
        before.is_empty()
            || before.ends_with(['(', ';', '/'])
            || before.ends_with(')') && with < at
            || comment < at
            || QUERY_FOLLOWS
                .iter()
                .chain(&["distinct"])
                .any(|word| ends_with_word(before, word))
    })
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.strip_suffix(word)
        .is_some_and(|rest| !rest.ends_with(is_part))
}

/// The tokens with `SELECT *` before each FROM that begins a query without a SELECT; `None` if
/// there is no such query.
pub(crate) fn expanded(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !is_blank(token)).collect();
    let places = queries_without_select(&tokens);
    if places.is_empty() {
        return None;
    }
    let mut put = Vec::with_capacity(tokens.len() + 2 * places.len());
    let mut places = places.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        if places.next_if_eq(&at).is_some() {
            let select = Token::make_word("SELECT", None);
            put.push(TokenWithSpan::new(select, token.span));
            put.push(TokenWithSpan::new(Token::Mul, token.span));
        }
        put.push(token.clone());
    }
    Some(put)
}

/// The word of a token, in lower case; empty if it is not a word.
fn word(token: &TokenWithSpan) -> String {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// What is known of a parenthesis, or of the statement around all, while its tokens are read.
#[derive(Default)]
struct QueryLevel {
    /// FROMs that begin a query in which no SELECT was read yet.
    pending: Vec<usize>,
    /// Whether a WITH was read, and behind it none of the words that its queries stand before.
    is_with_clause: bool,
}

/// The places of the FROMs that begin a query without a SELECT at its own level, ascending. Every token
/// is read once: a statement may have millions of them.
fn queries_without_select(tokens: &[&TokenWithSpan]) -> Vec<usize> {
    let mut outer: Vec<QueryLevel> = Vec::new();
    let mut level = QueryLevel::default();
    let mut places = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => outer.push(std::mem::take(&mut level)),
            Token::RParen => {
                places.append(&mut level.pending);
                level = outer.pop().unwrap_or_default();
            }
            Token::SemiColon => {
                for mut ended in outer.drain(..).chain([std::mem::take(&mut level)]) {
                    places.append(&mut ended.pending);
                }
            }
            Token::Word(_) => match word(token).as_str() {
                "from" => {
                    if begins_query(tokens, at, level.is_with_clause) {
                        level.pending.push(at);
                    }
                    level.is_with_clause = false;
                }
                "with" => level.is_with_clause = true,
                "select" => {
                    level.pending.clear();
                    level.is_with_clause = false;
                }
                "values" | "insert" | "update" | "delete" => level.is_with_clause = false,
                name if SET_OPERATORS.contains(&name) => places.append(&mut level.pending),
                _ => {}
            },
            _ => {}
        }
    }
    for mut ended in outer.into_iter().chain([level]) {
        places.append(&mut ended.pending);
    }
    places.sort_unstable();
    places
}

/// Whether a FROM stands at the start of a query.
fn begins_query(tokens: &[&TokenWithSpan], at: usize, is_with_clause: bool) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return true;
    };
    match &tokens[before].token {
        Token::LParen => {
            let name = before.checked_sub(1).map(|at| word(tokens[at]));
            name.is_none_or(|name| !TAKES_FROM.contains(&name.as_str()))
        }
        // The queries of a WITH end here; FROM follows a closing parenthesis in no other case where
        // it begins a query.
        Token::RParen => is_with_clause,
        Token::Word(_) => {
            let name = word(tokens[before]);
            let is_set = |at: usize| SET_OPERATORS.contains(&word(tokens[at]).as_str());
            QUERY_FOLLOWS.contains(&name.as_str())
                || name == "distinct" && before.checked_sub(1).is_some_and(is_set)
        }
        _ => false,
    }
}

/// Moves a SELECT that follows its FROM to the usual position.
pub(crate) struct FromFirst;

impl VisitorMut for FromFirst {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        for select in selects(&mut query.body) {
            if !matches!(select.flavor, SelectFlavor::Standard) {
                select.flavor = SelectFlavor::Standard;
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::grammar::MarigramDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn rewritten(sql: &str) -> Option<String> {
        let tokens = Tokenizer::new(&MarigramDialect, sql).tokenize_with_location();
        let tokens = expanded(&tokens.expect("it is tokens"))?;
        let texts: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        Some(texts.join(" "))
    }

    #[test]
    fn queries_without_a_select_get_one() {
        for (sql, expected) in [
            ("FROM t", "SELECT * FROM t"),
            (
                "from t where x > 2 order by y",
                "SELECT * from t where x > 2 order by y",
            ),
            (
                "SELECT 1 FROM (FROM t WHERE x)",
                "SELECT 1 FROM ( SELECT * FROM t WHERE x )",
            ),
            (
                "WITH a AS (FROM t), b AS (SELECT 1) FROM a UNION DISTINCT FROM b",
                "WITH a AS ( SELECT * FROM t ) , b AS ( SELECT 1 ) SELECT * FROM a UNION DISTINCT \
                 SELECT * FROM b",
            ),
            (
                "FROM t JOIN (SELECT 1) AS u ON true",
                "SELECT * FROM t JOIN ( SELECT 1 ) AS u ON true",
            ),
        ] {
            assert!(may_begin_with_from(&sql.to_ascii_lowercase()), "{sql}");
            assert_eq!(rewritten(sql).as_deref(), Some(expected), "{sql}");
        }
    }

    /// Statements of 4 MB: reading the text around each FROM again would take quadratic time.
    #[test]
    fn long_statements_are_read_once() {
        let fold = |sql: &str| may_begin_with_from(sql);
        assert!(!fold(&format!("select {}", "'a from' ".repeat(500_000))));
        assert!(!fold(&format!("select '{}'", "from".repeat(1_000_000))));
        assert!(!fold(&format!(
            "insert {}",
            "('a' from x) ".repeat(300_000)
        )));
        let begun = "AS FROM ".repeat(200_000);
        let tokens = Tokenizer::new(&MarigramDialect, &begun).tokenize_with_location();
        let found = expanded(&tokens.expect("it is tokens")).expect("queries begin");
        assert_eq!(found.len(), 800_000);
        let closed = format!("WITH {}", "(1) FROM ".repeat(200_000));
        let tokens = Tokenizer::new(&MarigramDialect, &closed).tokenize_with_location();
        let found = expanded(&tokens.expect("it is tokens")).expect("a query begins");
        assert_eq!(found.len(), 800_001 + 2);
    }

    #[test]
    fn other_queries_stay() {
        for sql in [
            "SELECT count(*) FROM t",
            "FROM t SELECT x",
            "SELECT (1 + 2) FROM t",
            "WITH a AS (SELECT 1) SELECT (2) FROM a",
            "SELECT trim(FROM x), extract(year FROM time) FROM t",
            "SELECT x IS DISTINCT FROM y FROM t",
            "DELETE FROM t",
        ] {
            assert_eq!(rewritten(sql), None, "{sql}");
        }
    }
}
