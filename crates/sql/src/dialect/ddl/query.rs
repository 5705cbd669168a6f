//! Parses the statements that contain a query, and `TRUNCATE`.

use super::materialized_views::query_span;
use crate::dialect::identifiers::{accept_word, accept_words, parse_name, parse_target};
use crate::dialect::settings::{set, value};
use crate::dialect::statement::{Command, CreatePlainView, CreateTableAs, TableReferenceName};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

/// `[WITH (tags = 'a,b', time = 't', setting = value, …)] AS query [WITH [NO] DATA]`: the part
/// after the name of the table.
pub(crate) fn create_table_as(
    parser: &mut Parser<'_>,
    target: TableReferenceName,
    text: impl Fn(Location, Location) -> String,
) -> SqlResult<CreateTableAs> {
    let mut table = CreateTableAs {
        database: target.database,
        table: target.table,
        ..CreateTableAs::default()
    };
    if accept_words(parser, &["WITH"]) {
        parser.expect_token(&Token::LParen)?;
        loop {
            let key = parse_name(parser)?;
            parser.expect_token(&Token::Eq)?;
            let value = value(parser)?;
            match key.as_str() {
                "tags" => {
                    let names = value.unwrap_or_default();
                    table.tags = Some(names_of(&names));
                }
                "time" => table.time = value,
                _ => set(&mut table.options, &key, value)?,
            }
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    if !accept_words(parser, &["AS"]) {
        let found = parser.peek_token();
        return Ok(parser.expected("columns in parentheses, or AS SELECT …", found)?);
    }
    let (start, end, with_data) = query_span(parser);
    table.query = text(start, end);
    table.with_data = with_data;
    Ok(table)
}

/// The names in a list, without quotes.
fn names_of(list: &str) -> Vec<String> {
    let names = list.split(',').map(|name| name.trim().trim_matches('"'));
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(column, …)] AS query`
pub(crate) fn create_view(
    parser: &mut Parser<'_>,
    text: impl Fn(Location, Location) -> String,
) -> SqlResult<Command> {
    let or_replace = accept_words(parser, &["CREATE", "OR", "REPLACE", "VIEW"]);
    accept_words(parser, &["CREATE", "VIEW"]);
    let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let target = parse_target(parser)?;
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        loop {
            columns.push(parse_name(parser)?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    if accept_words(parser, &["WITH"]) {
        return Err(SqlError::unsupported(
            "a view has no settings; CREATE MATERIALIZED VIEW … WITH (continuous) keeps its rows",
        ));
    }
    if !accept_words(parser, &["AS"]) {
        let found = parser.peek_token();
        return Ok(parser.expected("AS SELECT …", found)?);
    }
    let start = parser.peek_token().span.start;
    let mut end = start;
    loop {
        let next = parser.peek_token();
        if matches!(next.token, Token::EOF | Token::SemiColon) {
            break;
        }
        parser.next_token();
        end = next.span.end;
    }
    Ok(Command::CreatePlainView(CreatePlainView {
        target,
        or_replace,
        if_not_exists,
        columns,
        query: text(start, end),
    }))
}

/// `DROP VIEW [IF EXISTS] name, … [RESTRICT]`
pub(crate) fn drop_view(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["DROP", "VIEW"]);
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    let targets = targets(parser)?;
    accept_words(parser, &["RESTRICT"]);
    Ok(Command::DropPlainView { targets, if_exists })
}

/// `ALTER VIEW name RENAME TO name`
pub(crate) fn rename_view(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["ALTER", "VIEW"]);
    let target = parse_target(parser)?;
    if !accept_words(parser, &["RENAME", "TO"]) {
        let found = parser.peek_token();
        return Ok(parser.expected("RENAME TO and the view's new name", found)?);
    }
    let to = parse_name(parser)?;
    Ok(Command::RenameView { target, to })
}

/// `TRUNCATE [TABLE] name, … [RESTART IDENTITY | CONTINUE IDENTITY] [CASCADE | RESTRICT]`. The words after
/// the names mean something to reference tables only.
pub(crate) fn truncate(parser: &mut Parser<'_>) -> SqlResult<Command> {
    parser.next_token();
    accept_words(parser, &["TABLE"]);
    accept_words(parser, &["ONLY"]);
    let targets = targets(parser)?;
    let restarts_identity = accept_words(parser, &["RESTART", "IDENTITY"]);
    let _ = restarts_identity || accept_words(parser, &["CONTINUE", "IDENTITY"]);
    let cascades = accept_word(parser, "CASCADE");
    let _ = cascades || accept_word(parser, "RESTRICT");
    Ok(Command::Truncate {
        targets,
        restarts_identity,
        cascades,
    })
}

/// `CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON table [USING method] (column
/// [ASC | DESC] [NULLS FIRST | LAST], …) [WITH (…)]`
pub(crate) fn create_index(parser: &mut Parser<'_>) -> SqlResult<Command> {
    let is_unique = accept_words(parser, &["CREATE", "UNIQUE", "INDEX"]);
    accept_words(parser, &["CREATE", "INDEX"]);
    accept_words(parser, &["CONCURRENTLY"]);
    accept_words(parser, &["IF", "NOT", "EXISTS"]);
    if !accept_word(parser, "ON") {
        parse_name(parser)?;
        if !accept_word(parser, "ON") {
            let found = parser.peek_token();
            return Ok(parser.expected("ON and a table", found)?);
        }
    }
    accept_words(parser, &["ONLY"]);
    let target = parse_target(parser)?;
    if accept_word(parser, "USING") {
        parse_name(parser)?;
    }
    parser.expect_token(&Token::LParen)?;
    let mut columns = Vec::new();
    loop {
        if parser.peek_token().token == Token::LParen
            || parser.peek_nth_token(1).token == Token::LParen
        {
            return Err(SqlError::unsupported(
                "an index of an expression is not supported: rows are found by their tags and \
                 times; store the value in a column of its own",
            ));
        }
        columns.push(parse_name(parser)?);
        let _ = accept_word(parser, "ASC") || accept_word(parser, "DESC");
        let _ =
            accept_words(parser, &["NULLS", "FIRST"]) || accept_words(parser, &["NULLS", "LAST"]);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    if accept_word(parser, "WITH") {
        parser.expect_token(&Token::LParen)?;
        while !matches!(parser.peek_token().token, Token::RParen | Token::EOF) {
            parser.next_token();
        }
        parser.expect_token(&Token::RParen)?;
    }
    for clause in ["INCLUDE", "WHERE", "TABLESPACE"] {
        if accept_word(parser, clause) {
            let message = format!(
                "CREATE INDEX … {clause} is not supported: rows are found by their tags and times, \
                 without an index"
            );
            return Err(SqlError::named("0A000", clause, message));
        }
    }
    Ok(Command::CreateIndex {
        target,
        columns,
        is_unique,
    })
}

fn targets(parser: &mut Parser<'_>) -> SqlResult<Vec<TableReferenceName>> {
    let mut targets = vec![parse_target(parser)?];
    while parser.consume_token(&Token::Comma) {
        targets.push(parse_target(parser)?);
    }
    Ok(targets)
}
