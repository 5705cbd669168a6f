//! Tells statements that are nested too deeply from statements that are wrong.
//!
//! The parser tries several readings of a statement, and forgets that one of them failed only because
//! it recursed too deeply. It then reports the place at which another reading failed, as a syntax error.

use crate::error::SqlError;
use crate::stack::NESTED_MAX;
use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// How often the parser recurses for one level: for a parenthesis in FROM, as a query and as a table.
const PER_LEVEL: usize = 2;

/// Whether the parser reports a place of the text.
pub(crate) fn is_syntax_error(error: &SqlError) -> bool {
    match error {
        SqlError::Parser(error) => matches!(error, ParserError::ParserError(_)),
        SqlError::DataFusion(error) => is_of_parser(error),
        _ => false,
    }
}

fn is_of_parser(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::SQL(error, _) => matches!(error.as_ref(), ParserError::ParserError(_)),
        // It has the place of the error, and the error itself.
        DataFusionError::Diagnostic(_, error) => is_of_parser(error),
        _ => false,
    }
}

/// Whether the parser may have recursed too deeply.
pub(crate) fn is_too_deep(tokens: &[TokenWithSpan]) -> bool {
    let (mut open, mut prefixes, mut deepest) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        let word = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.as_str(),
            _ => "",
        };
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::Plus | Token::Minus | Token::Tilde => prefixes += 1,
            Token::LParen | Token::LBracket | Token::LBrace | Token::Lt => open += 1,
            Token::RParen | Token::RBracket | Token::RBrace | Token::Gt => {
                open = open.saturating_sub(1);
                prefixes = 0;
            }
            Token::ShiftRight => open = open.saturating_sub(2),
            _ if word.eq_ignore_ascii_case("not") => prefixes += 1,
            _ if word.eq_ignore_ascii_case("case") => open += 1,
            _ if word.eq_ignore_ascii_case("end") => open = open.saturating_sub(1),
            _ => prefixes = 0,
        }
        deepest = deepest.max(open + prefixes);
    }
    deepest * PER_LEVEL >= NESTED_MAX
}

#[cfg(test)]
mod tests {
    use crate::dialect::parse::parse;

    #[test]
    fn what_is_too_deep_is_no_syntax_error() {
        let nested = |before: &str, inner: &str, after: &str, times: usize| {
            format!("{}{inner}{}", before.repeat(times), after.repeat(times))
        };
        for sql in [
            format!("select {}", nested("not ", "true", "", 300)),
            format!(
                "select {}",
                nested("case when true then ", "1", " end", 300)
            ),
            format!("select * from {}", nested("(", "r", ")", 120)),
            format!("select cast(1 as {})", nested("array<", "int", ">", 300)),
        ] {
            let error = parse(&sql).expect_err("it is too deep").into_service(&sql);
            assert_eq!(error.sqlstate(), "54001", "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_a_syntax_error() {
        for sql in [
            "select (((1)) from r",
            "select 1 + * 2 from r",
            "select case when true then 1 from r",
        ] {
            let error = parse(sql).expect_err("it is wrong").into_service(sql);
            assert_eq!(error.sqlstate(), "42601", "{error}");
        }
    }
}
