//! Statements of PostgreSQL that Marigram does not have.
//!
//! Dumps, drivers and migrations send them. Where leaving a statement out changes nothing, it is
//! accepted, with a notice that says so. Every other one is refused, and the refusal says what to do
//! instead.

mod tables;

use crate::dialect::ast_walk::walk;
use crate::dialect::identifiers::{accept_word, accept_words, parse_name, parse_target};
use crate::dialect::statement::{Command, TableReferenceName};
use crate::dialect::timescale;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{Select, Statement, Visitor};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::ops::ControlFlow;
use tables::{ABSENT, REFUSED, TAGS};

/// Reads a statement of PostgreSQL that Marigram does not have; `None` for any other.
///
/// # Errors
/// That it is not supported, and what to do instead; or that it names what does not exist.
pub(crate) fn other_statement(
    parser: &mut Parser<'_>,
    leading: &[&str],
) -> SqlResult<Option<Command>> {
    match leading {
        ["CREATE", "SCHEMA", ..] => {
            if let Some(command) = schema(parser)? {
                return Ok(Some(command));
            }
        }
        ["CREATE" | "ALTER", "EXTENSION", ..] => return extension(parser).map(Some),
        ["DROP", "EXTENSION", ..] => {
            if let Some(command) = built_in_extension(parser)? {
                return Ok(Some(command));
            }
        }
        ["VACUUM" | "ANALYZE" | "ANALYSE" | "CLUSTER" | "REINDEX", ..] => {
            return maintenance(parser, leading).map(Some);
        }
        ["CHECKPOINT", ..] => {
            parser.next_token();
            let notice = "acknowledged rows are durable without it; FLUSH writes segments now";
            return Ok(Some(skipped("CHECKPOINT", notice)));
        }
        _ => {}
    }
    let words: Vec<&str> = match leading {
        ["CREATE", "OR", "REPLACE", rest @ ..] => [&["CREATE"], rest].concat(),
        _ => leading.to_vec(),
    };
    for (begin, kind, sqlstate) in ABSENT {
        if words.starts_with(begin) {
            accept_words(parser, begin);
            return absent(parser, begin, kind, sqlstate).map(Some);
        }
    }
    let found = REFUSED.iter().find(|(begin, _)| words.starts_with(begin));
    let Some((begin, instead)) = found else {
        return Ok(None);
    };
    let _ = accept_words(parser, &["CREATE", "OR", "REPLACE"]) && accept_words(parser, &begin[1..])
        || accept_words(parser, begin);
    let next = parser.peek_token();
    if matches!(next.token, Token::EOF | Token::SemiColon) {
        return Ok(parser.expected("the rest of the statement", next)?);
    }
    const OBJECTS: [&str; 10] = [
        "TABLE",
        "TEMP",
        "TEMPORARY",
        "VIEW",
        "DATA",
        "WRAPPER",
        "SCHEMA",
        "LABEL",
        "OWNED",
        "PRIVILEGES",
    ];
    let rest = words[begin.len()..].iter();
    let object = rest.take_while(|word| OBJECTS.contains(*word));
    let words: Vec<&str> = begin.iter().chain(object).copied().collect();
    let words = words.join(" ");
    let message = format!("{words} is not supported; {instead}");
    Err(SqlError::named("0A000", begin[0], message))
}

fn skipped(tag: &'static str, notice: impl Into<String>) -> Command {
    Command::Skipped {
        tag,
        notice: notice.into(),
    }
}

fn skip_rest(parser: &mut Parser<'_>) {
    while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
        parser.next_token();
    }
}

/// Where the statement begins: behind blanks and comments, over which the parser does not step back.
fn begin(parser: &mut Parser<'_>) -> usize {
    parser.next_token();
    parser.prev_token();
    parser.index()
}

/// `CREATE SCHEMA` of a schema that every database has; `None` for another.
fn schema(parser: &mut Parser<'_>) -> SqlResult<Option<Command>> {
    const ALWAYS: [&str; 3] = ["public", "pg_catalog", "information_schema"];
    let begin = begin(parser);
    accept_words(parser, &["CREATE", "SCHEMA"]);
    let may_exist = accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let next = parser.peek_token();
    if matches!(next.token, Token::EOF | Token::SemiColon) {
        return Ok(parser.expected("the name of a schema", next)?);
    }
    let name = parse_name(parser)?;
    if !ALWAYS.contains(&name.as_str()) {
        while parser.index() > begin {
            parser.prev_token();
        }
        return Ok(None);
    }
    if !may_exist {
        let message = format!("schema '{name}' exists already; every database has it");
        return Err(SqlError::named("42P06", &name, message));
    }
    skip_rest(parser);
    let notice = format!("schema '{name}' exists already, and was left as it is");
    Ok(Some(skipped("CREATE SCHEMA", notice)))
}

/// `CREATE EXTENSION [IF NOT EXISTS] name …`, `ALTER EXTENSION name …`
fn extension(parser: &mut Parser<'_>) -> SqlResult<Command> {
    let is_new = accept_words(parser, &["CREATE", "EXTENSION"]);
    let tag = if is_new {
        "CREATE EXTENSION"
    } else {
        accept_words(parser, &["ALTER", "EXTENSION"]);
        "ALTER EXTENSION"
    };
    let may_exist = is_new && accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let name = parse_name(parser)?;
    skip_rest(parser);
    if timescale::is_built_in(&name) {
        let notice = format!("what '{name}' adds to SQL is built in; nothing was done");
        return Ok(skipped(tag, notice));
    }
    let none = format!(
        "there is no extension '{name}': the functions that Marigram has are built in, and those \
         that it lacks cannot be added"
    );
    if !may_exist {
        return Err(SqlError::named("0A000", &name, none));
    }
    Ok(skipped(tag, none))
}

/// `DROP EXTENSION [IF EXISTS] name …` of an extension that every database has; `None` for another.
fn built_in_extension(parser: &mut Parser<'_>) -> SqlResult<Option<Command>> {
    let begin = begin(parser);
    accept_words(parser, &["DROP", "EXTENSION"]);
    accept_words(parser, &["IF", "EXISTS"]);
    let name = parse_name(parser)?;
    if !timescale::is_built_in(&name) {
        while parser.index() > begin {
            parser.prev_token();
        }
        return Ok(None);
    }
    skip_rest(parser);
    let notice = format!("what '{name}' adds to SQL is built in, and stays");
    Ok(Some(skipped("DROP EXTENSION", notice)))
}

/// `VACUUM`, `ANALYZE`, `CLUSTER` and `REINDEX`, with options and the tables that they name.
fn maintenance(parser: &mut Parser<'_>, leading: &[&str]) -> SqlResult<Command> {
    parser.next_token();
    let tag = match leading[0] {
        "VACUUM" => "VACUUM",
        "CLUSTER" => "CLUSTER",
        "REINDEX" => "REINDEX",
        _ => "ANALYZE",
    };
    if parser.consume_token(&Token::LParen) {
        while !matches!(
            parser.peek_token().token,
            Token::RParen | Token::EOF | Token::SemiColon
        ) {
            parser.next_token();
        }
        parser.expect_token(&Token::RParen)?;
    }
    const OPTIONS: [&str; 6] = [
        "FULL",
        "FREEZE",
        "VERBOSE",
        "ANALYZE",
        "ANALYSE",
        "SKIP_LOCKED",
    ];
    while OPTIONS.iter().any(|option| accept_word(parser, option)) {}
    let mut targets = Vec::new();
    if tag == "REINDEX" {
        let is_table = accept_word(parser, "TABLE");
        accept_word(parser, "CONCURRENTLY");
        if !is_table {
            const KINDS: [&str; 4] = ["DATABASE", "SYSTEM", "SCHEMA", "INDEX"];
            if !KINDS.iter().any(|kind| accept_word(parser, kind)) {
                let found = parser.peek_token();
                return Ok(parser.expected("TABLE, DATABASE, SYSTEM, SCHEMA or INDEX", found)?);
            }
            accept_word(parser, "CONCURRENTLY");
            skip_rest(parser);
            return Ok(Command::Maintain { tag, targets });
        }
    }
    while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
        targets.push(maintained(parser)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    Ok(Command::Maintain { tag, targets })
}

/// `table [(column, …)] [USING index]`
fn maintained(parser: &mut Parser<'_>) -> SqlResult<TableReferenceName> {
    let target = parse_target(parser)?;
    if parser.consume_token(&Token::LParen) {
        loop {
            parse_name(parser)?;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    if accept_word(parser, "USING") {
        parse_name(parser)?;
    }
    Ok(target)
}

/// A statement about an object of a kind that Marigram does not have.
fn absent(
    parser: &mut Parser<'_>,
    begin: &[&str],
    kind: &str,
    sqlstate: &'static str,
) -> SqlResult<Command> {
    accept_word(parser, "CONCURRENTLY");
    let may_be_missing = accept_words(parser, &["IF", "EXISTS"]);
    let name = parser.parse_object_name(false)?;
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    let name = parts.map(crate::name_forms::fold_case).next_back();
    let name = name.unwrap_or_default();
    skip_rest(parser);
    if kind == "schema" && name == "public" {
        let message = "the schema public is a part of every database; DROP TABLE drops its tables, \
                       and DROP DATABASE all of it";
        return Err(SqlError::named("0A000", &name, message));
    }
    if may_be_missing {
        // The first two words are the tag.
        let tag = TAGS
            .iter()
            .find(|tag| **tag == begin.join(" "))
            .copied()
            .unwrap_or("DROP");
        let notice = format!("{kind} '{name}' does not exist, so nothing was done");
        return Ok(skipped(tag, notice));
    }
    let message = format!("{kind} '{name}' does not exist: Marigram has no {kind}");
    let message = match kind {
        "schema" => format!(
            "schema '{name}' does not exist: a database has the one schema public; DROP DATABASE \
             drops a database"
        ),
        _ if kind.ends_with('s') || kind == "statistics object" => message,
        _ => format!("{message} that users create"),
    };
    Err(SqlError::named(sqlstate, &name, message))
}

/// Refuses `SELECT … INTO table`.
///
/// # Errors
/// Names the statement that does the same.
pub(crate) fn refuse_into(statement: &Statement) -> SqlResult<()> {
    struct IntoFinder;

    impl Visitor for IntoFinder {
        type Break = String;

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
            match &select.into {
                Some(into) => ControlFlow::Break(into.name.to_string()),
                None => ControlFlow::Continue(()),
            }
        }
    }

    match walk(statement, &mut IntoFinder) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => {
            let message = format!(
                "SELECT … INTO is not supported; write CREATE TABLE {name} AS SELECT …, or INSERT INTO \
                 {name} SELECT …"
            );
            Err(SqlError::named("0A000", &name, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::parse::parse;
    use crate::dialect::statement::Command;

    #[test]
    fn what_changes_nothing_is_accepted_with_a_notice() {
        for (sql, expected) in [
            ("CREATE SCHEMA IF NOT EXISTS public", "CREATE SCHEMA"),
            (
                "create extension if not exists pgcrypto with schema public cascade;",
                "CREATE EXTENSION",
            ),
            ("drop function if exists f(int, text)", "DROP FUNCTION"),
            ("drop trigger if exists t on r", "DROP TRIGGER"),
            ("checkpoint", "CHECKPOINT"),
        ] {
            match parse(sql) {
                Ok(Command::Skipped { tag, notice }) => {
                    assert_eq!(tag, expected, "{sql}");
                    assert!(!notice.is_empty(), "{sql}");
                }
                other => panic!("{sql}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_comment_may_stand_before_what_is_refused() {
        for sql in [
            "create schema plant",
            " create schema plant",
            "-- dump\ncreate schema plant",
            "/* dump */ drop extension postgis",
        ] {
            assert!(parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn maintenance_names_its_tables() {
        for (sql, count) in [
            ("vacuum", 0),
            ("VACUUM (FULL, ANALYZE) r, public.s (a, b);", 2),
            ("vacuum full verbose analyze r", 1),
            ("analyze verbose r", 1),
            ("reindex table concurrently r", 1),
            ("reindex database main", 0),
            ("cluster r using i", 1),
        ] {
            match parse(sql) {
                Ok(Command::Maintain { targets, .. }) => {
                    assert_eq!(targets.len(), count, "{sql}");
                }
                other => panic!("{sql}: {other:?}"),
            }
        }
    }
}
