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

/// Whether a statement may contain a FROM without a SELECT before it.
pub fn may_begin_with_from(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    lower.match_indices("from").any(|(at, _)| {
        let before = lower[..at].trim_end();
        let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        // A comment may hide the text before it.
        before.is_empty()
            || before.ends_with(['(', ';', '/'])
            || before.ends_with(')') && before.contains("with")
            || before.contains("--")
            || word
                .into_iter()
                .next()
                .is_some_and(|word| QUERY_FOLLOWS.contains(&word) || word == "distinct")
    })
}

/// The tokens with `SELECT *` before each FROM that begins a query without a SELECT; `None` if
/// there is no such query.
pub fn expanded(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(|token| !is_blank(token)).collect();
    let places: Vec<usize> = (0..tokens.len())
        .filter(|at| begins_query(&tokens, *at) && has_no_select(&tokens[*at..]))
        .collect();
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

/// Whether the token is a FROM at the start of a query.
fn begins_query(tokens: &[&TokenWithSpan], at: usize) -> bool {
    if word(tokens[at]) != "from" {
        return false;
    }
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
        Token::RParen => ends_with_clause(&tokens[..at]),
        Token::Word(_) => {
            let name = word(tokens[before]);
            let is_set = |at: usize| SET_OPERATORS.contains(&word(tokens[at]).as_str());
            QUERY_FOLLOWS.contains(&name.as_str())
                || name == "distinct" && before.checked_sub(1).is_some_and(is_set)
        }
        _ => false,
    }
}

/// Whether tokens that end with a parenthesis are a `WITH name AS (…), …`: at their level, they
/// contain a WITH without a SELECT after it.
fn ends_with_clause(tokens: &[&TokenWithSpan]) -> bool {
    let mut open = 0_usize;
    for token in tokens.iter().rev() {
        match &token.token {
            Token::RParen => open += 1,
            Token::LParen if open == 0 => return false,
            Token::LParen => open -= 1,
            Token::SemiColon => return false,
            _ if open > 0 => {}
            _ => match word(token).as_str() {
                "with" => return true,
                "select" | "from" | "values" | "insert" | "delete" => return false,
                _ => {}
            },
        }
    }
    false
}

/// Whether the query that begins with these tokens has no SELECT at its own level.
fn has_no_select(tokens: &[&TokenWithSpan]) -> bool {
    let mut open = 0_usize;
    for token in tokens {
        match &token.token {
            Token::LParen => open += 1,
            Token::RParen if open == 0 => return true,
            Token::RParen => open -= 1,
            Token::SemiColon => return true,
            _ if open > 0 => {}
            _ => match word(token).as_str() {
                "select" => return false,
                name if SET_OPERATORS.contains(&name) => return true,
                _ => {}
            },
        }
    }
    true
}

/// Moves a SELECT that follows its FROM to the usual position.
pub struct FromFirst;

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
            assert!(may_begin_with_from(sql), "{sql}");
            assert_eq!(rewritten(sql).as_deref(), Some(expected), "{sql}");
        }
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
