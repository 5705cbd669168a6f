//! QuestDB's `SELECT … FROM t [WHERE …] LATEST ON time PARTITION BY tag, …` in the tokens of a
//! statement: the row with the latest time of each group, among the rows that satisfy WHERE.
//!
//! It becomes
//! `FROM (SELECT DISTINCT ON (tag, …) * FROM t [WHERE …] ORDER BY tag, …, time DESC) AS t`, and the
//! rest of the statement follows.

use crate::dialect::grammar::MarigramDialect;
use crate::dialect::identifiers::accept_words;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The largest number of such clauses in a statement.
const CLAUSES_MAX: usize = 64;

/// Whether a statement, in lower case, may contain the clause.
pub(crate) fn may_have_latest(folded: &str) -> bool {
    folded.contains("latest") && folded.contains("partition")
}

fn is_keyword(token: &TokenWithSpan, expected: &str) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case(expected))
}

/// The tokens with subqueries instead of the clauses; `None` if there are no clauses.
///
/// # Errors
/// If a clause is wrong.
pub(crate) fn expanded(tokens: &[TokenWithSpan]) -> SqlResult<Option<Vec<TokenWithSpan>>> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut tokens: Vec<TokenWithSpan> = tokens.iter().filter(|t| !is_blank(t)).cloned().collect();
    let mut found = 0;
    // Innermost clauses first, from the end.
    while let Some(at) = (0..tokens.len().saturating_sub(1))
        .rev()
        .find(|at| is_keyword(&tokens[*at], "latest") && is_keyword(&tokens[*at + 1], "on"))
    {
        found += 1;
        if found > CLAUSES_MAX {
            let message = format!("a statement may have at most {CLAUSES_MAX} LATEST ON clauses");
            return Err(SqlError::invalid("54001", message));
        }
        expand_at(&mut tokens, at)?;
    }
    Ok((found > 0).then_some(tokens))
}

/// Replaces the clause that begins at a token, with the FROM that it belongs to.
fn expand_at(tokens: &mut Vec<TokenWithSpan>, at: usize) -> SqlResult<()> {
    let span = tokens[at].span;
    let dialect = MarigramDialect;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens[at..].to_vec());
    accept_words(&mut parser, &["LATEST", "ON"]);
    let time_at = parser.index();
    parser.parse_identifier()?;
    let time = tokens[at + time_at..at + parser.index()].to_vec();
    if !accept_words(&mut parser, &["PARTITION", "BY"]) {
        let found = parser.peek_token();
        return Ok(parser.expected("PARTITION BY and columns", found)?);
    }
    let keys_at = parser.index();
    loop {
        parser.parse_identifier()?;
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    let end = at + parser.index();
    let keys = tokens[at + keys_at..end].to_vec();
    let from =
        from_of(tokens, at).ok_or_else(|| SqlError::syntax("LATEST ON follows FROM and WHERE"))?;
    let alias = alias_of(tokens, from, at)?;
    let word = |text: &str| TokenWithSpan::new(Token::make_word(text, None), span);
    let sign = |token: Token| TokenWithSpan::new(token, span);
    let mut put = vec![word("FROM"), sign(Token::LParen)];
    put.extend([
        word("SELECT"),
        word("DISTINCT"),
        word("ON"),
        sign(Token::LParen),
    ]);
    put.extend(keys.iter().cloned());
    put.extend([sign(Token::RParen), sign(Token::Mul)]);
    put.extend(tokens[from..at].iter().cloned());
    put.extend([word("ORDER"), word("BY")]);
    put.extend(keys);
    put.push(sign(Token::Comma));
    put.extend(time);
    put.extend([word("DESC"), sign(Token::RParen), word("AS"), alias]);
    tokens.splice(from..end, put);
    Ok(())
}

/// The FROM before a position, at the same level of parentheses.
fn from_of(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut open = 0_usize;
    for place in (0..at).rev() {
        match &tokens[place].token {
            Token::RParen => open += 1,
            Token::LParen => open = open.checked_sub(1)?,
            Token::SemiColon => return None,
            _ if open == 0 && is_keyword(&tokens[place], "from") => return Some(place),
            _ => {}
        }
    }
    None
}

/// The name by which the rest of the statement refers to the table after a FROM: its alias, or its
/// own name.
fn alias_of(tokens: &[TokenWithSpan], from: usize, end: usize) -> SqlResult<TokenWithSpan> {
    let wrong = || {
        SqlError::unsupported(
            "LATEST ON applies to one table: write it in a subquery, and join that",
        )
    };
    let mut at = from + 1;
    let mut alias = None;
    if matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen)) {
        let mut open = 0_usize;
        while at < end {
            match &tokens[at].token {
                Token::LParen => open += 1,
                Token::RParen => open -= 1,
                _ => {}
            }
            at += 1;
            if open == 0 {
                break;
            }
        }
    } else {
        loop {
            match tokens.get(at).filter(|_| at < end) {
                Some(token) if matches!(token.token, Token::Word(_)) => alias = Some(token.clone()),
                _ => return Err(wrong()),
            }
            at += 1;
            if !matches!(tokens.get(at).map(|t| &t.token), Some(Token::Period)) {
                break;
            }
            at += 1;
        }
    }
    if at < end && is_keyword(&tokens[at], "as") {
        at += 1;
    }
    if at < end && matches!(tokens[at].token, Token::Word(_)) && !is_keyword(&tokens[at], "where") {
        alias = Some(tokens[at].clone());
        at += 1;
    }
    if at < end && !is_keyword(&tokens[at], "where") {
        return Err(wrong());
    }
    alias.ok_or_else(wrong)
}
