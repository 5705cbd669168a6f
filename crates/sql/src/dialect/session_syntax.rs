//! Parses `SET`, `RESET` and `DISCARD`.

use crate::dialect::identifiers::{accept_word, accept_words, parse_name};
use crate::dialect::statement::Command;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// Reads `SET …`, `RESET …` and `DISCARD …`.
pub fn parse_set(parser: &mut Parser<'_>) -> SqlResult<Command> {
    if accept_words(parser, &["DISCARD"]) {
        parser.next_token();
        return Ok(Command::Nothing("DISCARD ALL"));
    }
    if accept_words(parser, &["RESET"]) {
        let name = if accept_words(parser, &["TIME", "ZONE"]) {
            "timezone".into()
        } else {
            variable(parser)?
        };
        return Ok(Command::Set { name, value: None });
    }
    accept_words(parser, &["SET"]);
    if accept_words(parser, &["TRANSACTION"])
        || accept_words(parser, &["SESSION", "CHARACTERISTICS"])
    {
        while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
            parser.next_token();
        }
        return Ok(Command::Nothing("SET"));
    }
    if !accept_words(parser, &["SESSION"]) {
        accept_words(parser, &["LOCAL"]);
    }
    if accept_words(parser, &["TIME", "ZONE"]) {
        return Ok(Command::Set {
            name: "timezone".into(),
            value: value(parser)?,
        });
    }
    if accept_words(parser, &["NAMES"]) {
        return Ok(Command::Set {
            name: "client_encoding".into(),
            value: value(parser)?,
        });
    }
    let name = variable(parser)?;
    if !(parser.consume_token(&Token::Eq) || accept_word(parser, "TO")) {
        let found = parser.peek_token();
        return Ok(parser.expected("= or TO", found)?);
    }
    Ok(Command::Set {
        name,
        value: value(parser)?,
    })
}

fn variable(parser: &mut Parser<'_>) -> SqlResult<String> {
    let mut variable = parse_name(parser)?;
    while parser.consume_token(&Token::Period) {
        variable = format!("{variable}.{}", parse_name(parser)?);
    }
    Ok(variable.to_lowercase())
}

/// Reads the values up to the end of the statement; `None` for DEFAULT and LOCAL.
fn value(parser: &mut Parser<'_>) -> SqlResult<Option<String>> {
    let mut parts = Vec::new();
    loop {
        let found = parser.peek_token();
        match found.token {
            Token::EOF | Token::SemiColon => break,
            Token::SingleQuotedString(text) | Token::Number(text, _) => parts.push(text),
            Token::Word(word) => parts.push(word.value),
            Token::Comma => parts.push(",".into()),
            Token::Minus => parts.push("-".into()),
            Token::Plus => parts.push("+".into()),
            _ => return Ok(parser.expected("a value", found)?),
        }
        parser.next_token();
    }
    let joined = parts
        .join(" ")
        .replace(" ,", ",")
        .replace("- ", "-")
        .replace("+ ", "+");
    match joined.to_lowercase().as_str() {
        _ if parts.is_empty() => Err(SqlError::syntax("SET needs a value")),
        "default" | "local" => Ok(None),
        _ => Ok(Some(joined)),
    }
}
