//! Parses `SET`, `RESET` and `DISCARD`.

use crate::dialect::identifiers::{accept_word, accept_words, parse_name};
use crate::dialect::statement::Command;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// Reads `SET …`, `RESET …` and `DISCARD …`.
pub(crate) fn parse_set(parser: &mut Parser<'_>) -> SqlResult<Command> {
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
    if accept_words(parser, &["TRANSACTION"]) {
        return transaction_modes(parser, ["transaction_read_only", "transaction_isolation"]);
    }
    if accept_words(parser, &["SESSION", "CHARACTERISTICS"]) {
        let variables = [
            "default_transaction_read_only",
            "default_transaction_isolation",
        ];
        return transaction_modes(parser, variables);
    }
    if accept_words(parser, &["CONSTRAINTS"]) {
        while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
            parser.next_token();
        }
        return Ok(Command::Nothing("SET CONSTRAINTS"));
    }
    if accept_words(parser, &["SESSION", "AUTHORIZATION"]) {
        return another_user(parser, "session_authorization");
    }
    if !accept_words(parser, &["SESSION"]) {
        accept_words(parser, &["LOCAL"]);
    }
    if accept_words(parser, &["ROLE"]) {
        return another_user(parser, "role");
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

/// The modes of transactions: `READ ONLY` and `READ WRITE` set the first variable, an isolation level the second.
fn transaction_modes(
    parser: &mut Parser<'_>,
    [read_only_variable, level_variable]: [&str; 2],
) -> SqlResult<Command> {
    const LEVELS: [&str; 4] = [
        "SERIALIZABLE",
        "REPEATABLE READ",
        "READ COMMITTED",
        "READ UNCOMMITTED",
    ];
    let (mut read_only, mut level) = (None, None);
    while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
        if accept_words(parser, &["ISOLATION", "LEVEL"]) {
            let accepted = |level: &&str| {
                let words: Vec<&str> = level.split(' ').collect();
                accept_words(parser, &words)
            };
            level = LEVELS.into_iter().find(accepted);
            if level.is_none() {
                let found = parser.peek_token();
                return Ok(parser.expected("an isolation level", found)?);
            }
        } else if accept_words(parser, &["READ", "ONLY"]) {
            read_only = Some("on");
        } else if accept_words(parser, &["READ", "WRITE"]) {
            read_only = Some("off");
        } else {
            parser.next_token();
        }
    }
    let set = |name: &str, value: &str| Command::Set {
        name: name.to_owned(),
        value: Some(value.to_lowercase()),
    };
    match (read_only, level) {
        (Some(value), None) => Ok(set(read_only_variable, value)),
        (None, Some(level)) => Ok(set(level_variable, level)),
        (None, None) => Ok(Command::Nothing("SET")),
        (Some(_), Some(_)) => Err(SqlError::unsupported(
            "set the isolation level and READ ONLY in two statements",
        )),
    }
}

/// `SET ROLE name` and `SET SESSION AUTHORIZATION name`.
fn another_user(parser: &mut Parser<'_>, variable: &str) -> SqlResult<Command> {
    let _ = parser.consume_token(&Token::Eq) || accept_word(parser, "TO");
    let name = value(parser)?;
    let name = name.filter(|name| !name.eq_ignore_ascii_case("none"));
    Ok(Command::Set {
        name: variable.to_owned(),
        value: name,
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
    let (mut values, mut is_empty, mut is_signed) = (String::new(), true, false);
    loop {
        let found = parser.peek_token();
        let part = match &found.token {
            Token::EOF | Token::SemiColon => break,
            Token::SingleQuotedString(text) | Token::Number(text, _) => text.as_str(),
            Token::Word(word) => &word.value,
            Token::Comma => ",",
            Token::Minus => "-",
            Token::Plus => "+",
            _ => return Ok(parser.expected("a value", found)?),
        };
        // Blanks stand between the values, not before a comma or behind a sign. What is in quotes stays.
        if !is_empty && !is_signed && found.token != Token::Comma {
            values.push(' ');
        }
        values.push_str(part);
        is_empty = false;
        is_signed = matches!(found.token, Token::Minus | Token::Plus);
        parser.next_token();
    }
    match values.to_lowercase().as_str() {
        _ if is_empty => Err(SqlError::syntax("SET needs a value")),
        "default" | "local" => Ok(None),
        _ => Ok(Some(values)),
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::parse::parse;
    use crate::dialect::statement::Command;

    #[test]
    fn values_are_set_as_they_are_quoted() {
        for (sql, expected) in [
            (
                "SET application_name = 'a - b , c + d'",
                Some("a - b , c + d"),
            ),
            ("SET search_path TO a , \"b\",c", Some("a, b, c")),
            ("SET timezone = - 5", Some("-5")),
            ("SET timezone = +5;", Some("+5")),
            ("SET application_name = ''", Some("")),
            ("SET timezone TO DEFAULT", None),
        ] {
            let Ok(Command::Set { value, .. }) = parse(sql) else {
                panic!("{sql} sets nothing");
            };
            assert_eq!(value.as_deref(), expected, "{sql}");
        }
    }
}
