//! `CREATE INDEX`, as both grammars read it, and `DROP INDEX`.

use super::alterations::change;
use super::constraints::nulls_are_distinct;
use super::tokens::{parser_of, skip_rest};
use crate::dialect::ddl::query;
use crate::dialect::identifiers::{accept_word, accept_words, end, parse_name, parse_target};
use crate::dialect::statement::{Command, ReferenceChange, ReferenceStatement, TableReferenceName};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// `CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON [ONLY] table [USING method] (column, …)`.
/// `tokens` are those of the whole statement, which `parser` begins to read.
///
/// # Errors
/// If neither grammar has such a statement.
pub(crate) fn create_index(
    parser: &mut Parser<'_>,
    tokens: Vec<TokenWithSpan>,
) -> SqlResult<Command> {
    let series = query::create_index(parser).and_then(|command| {
        end(parser)?;
        Ok(command)
    });
    let mut ahead = parser_of(tokens);
    let head = IndexHead::parse(&mut ahead)?;
    let target = head.target.clone();
    let reference = index(&mut ahead, head);
    skip_rest(parser);
    change(target, false, series, reference)
}

/// An index up to its columns.
struct IndexHead {
    name: Option<String>,
    target: TableReferenceName,
    is_unique: bool,
    if_not_exists: bool,
}

impl IndexHead {
    fn parse(parser: &mut Parser<'_>) -> SqlResult<Self> {
        let is_unique = accept_words(parser, &["CREATE", "UNIQUE", "INDEX"]);
        accept_words(parser, &["CREATE", "INDEX"]);
        accept_word(parser, "CONCURRENTLY");
        let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
        let mut name = None;
        if !accept_word(parser, "ON") {
            name = Some(parse_target(parser)?.table);
            if !accept_word(parser, "ON") {
                let found = parser.peek_token();
                return Ok(parser.expected("ON and a table", found)?);
            }
        }
        accept_word(parser, "ONLY");
        Ok(Self {
            name,
            target: parse_target(parser)?,
            is_unique,
            if_not_exists,
        })
    }
}

/// The rest of the statement, from `USING` or the columns.
fn index(parser: &mut Parser<'_>, head: IndexHead) -> SqlResult<ReferenceChange> {
    let mut is_sorted = true;
    if accept_word(parser, "USING") {
        is_sorted = ["btree", "hash"].contains(&parse_name(parser)?.as_str());
    }
    let mut columns = Vec::new();
    let mut has_expression = false;
    parser.expect_token(&Token::LParen)?;
    loop {
        match parser.parse_create_index_expr()?.column.expr {
            Expr::Identifier(name) => columns.push(fold_case(&name)),
            Expr::Collate { expr, .. } => match *expr {
                Expr::Identifier(name) => columns.push(fold_case(&name)),
                _ => has_expression = true,
            },
            _ => has_expression = true,
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    let is_partial = options(parser, head.is_unique)?;
    end(parser)?;
    if head.is_unique && (has_expression || is_partial || !is_sorted) {
        let what = if has_expression {
            "of an expression"
        } else if is_partial {
            "with a condition"
        } else {
            "of this method"
        };
        let message = format!(
            "a unique index {what} is not supported: it would be unique in its columns alone; store the \
             value in a column of its own"
        );
        return Err(SqlError::named("0A000", "UNIQUE", message));
    }
    if !is_sorted {
        columns.clear();
    }
    Ok(ReferenceChange::CreateIndex {
        name: head.name,
        columns,
        is_unique: head.is_unique,
        if_not_exists: head.if_not_exists,
    })
}

/// What PostgreSQL allows behind the columns; whether the index has a condition.
fn options(parser: &mut Parser<'_>, is_unique: bool) -> SqlResult<bool> {
    if accept_word(parser, "INCLUDE") {
        skip_list(parser)?;
    }
    let is_refused = accept_words(parser, &["NULLS", "NOT", "DISTINCT"]);
    if is_refused && is_unique {
        return Err(nulls_are_distinct());
    }
    accept_words(parser, &["NULLS", "DISTINCT"]);
    if accept_word(parser, "WITH") {
        skip_list(parser)?;
    }
    if accept_word(parser, "TABLESPACE") {
        parse_name(parser)?;
    }
    let is_partial = accept_word(parser, "WHERE");
    if is_partial {
        parser.parse_expr()?;
    }
    Ok(is_partial)
}

/// Skips a list in parentheses.
fn skip_list(parser: &mut Parser<'_>) -> SqlResult<()> {
    parser.expect_token(&Token::LParen)?;
    while !matches!(parser.peek_token().token, Token::RParen | Token::EOF) {
        parser.next_token();
    }
    parser.expect_token(&Token::RParen)?;
    Ok(())
}

/// `DROP INDEX [CONCURRENTLY] [IF EXISTS] name, … [CASCADE | RESTRICT]`
///
/// # Errors
/// If it is no such statement.
pub(crate) fn drop_index(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["DROP", "INDEX"]);
    accept_word(parser, "CONCURRENTLY");
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    let mut names = vec![parse_target(parser)?];
    while parser.consume_token(&Token::Comma) {
        names.push(parse_target(parser)?);
    }
    let _ = accept_word(parser, "CASCADE") || accept_word(parser, "RESTRICT");
    Ok(Command::Reference(ReferenceStatement::DropIndex {
        names,
        if_exists,
    }))
}

/// The error for an index that no reference table has: 42704.
pub(crate) fn missing_index(name: &str) -> SqlError {
    let message = format!(
        "index '{name}' does not exist: only reference tables have indexes; a table of series finds rows by \
         their tags and times, without an index"
    );
    SqlError::named("42704", name, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;
    use crate::dialect::statement::GrammarError;

    type Readings = (
        Result<Box<Command>, GrammarError>,
        Result<ReferenceChange, GrammarError>,
    );

    fn readings(sql: &str) -> Readings {
        match parse(sql) {
            Ok(Command::Reference(ReferenceStatement::Change {
                target,
                series,
                reference,
                ..
            })) => {
                assert_eq!(target.table, "t", "{sql}");
                (series, reference)
            }
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn indexes_are_read_by_both_grammars() {
        for (sql, name, columns, is_unique) in [
            ("CREATE INDEX ON t (a)", None, vec!["a"], false),
            (
                "create unique index concurrently if not exists I on only public.t using btree \
                 (A desc nulls last, \"B\") include (c) with (fillfactor = 70)",
                Some("i"),
                vec!["a", "B"],
                true,
            ),
            (
                "CREATE INDEX i ON t (lower(a), b text_pattern_ops) WHERE c > 0;",
                Some("i"),
                vec!["b"],
                false,
            ),
            ("CREATE INDEX i ON t (lower(a))", Some("i"), vec![], false),
            (
                "CREATE INDEX i ON t USING gin (a)",
                Some("i"),
                vec![],
                false,
            ),
            (
                "CREATE INDEX i ON t (a COLLATE \"C\")",
                Some("i"),
                vec!["a"],
                false,
            ),
        ] {
            let expected = ReferenceChange::CreateIndex {
                name: name.map(ToOwned::to_owned),
                columns: columns.into_iter().map(ToOwned::to_owned).collect(),
                is_unique,
                if_not_exists: sql.contains("if not exists"),
            };
            assert_eq!(readings(sql).1, Ok(expected), "{sql}");
        }
        let (series, _) = readings("CREATE INDEX ON t (a DESC)");
        assert!(
            matches!(series.as_deref(), Ok(Command::CreateIndex { .. })),
            "{series:?}"
        );
    }

    #[test]
    fn unique_indexes_are_of_columns() {
        for sql in [
            "CREATE UNIQUE INDEX ON t (lower(a))",
            "CREATE UNIQUE INDEX ON t (a) WHERE b",
            "CREATE UNIQUE INDEX ON t USING gist (a)",
            "CREATE UNIQUE INDEX ON t (a) NULLS NOT DISTINCT",
        ] {
            let error = SqlError::from(readings(sql).1.expect_err(sql)).into_service(sql);
            assert_eq!(error.sqlstate(), "0A000", "{sql}: {error}");
        }
        for sql in [
            "create index t (a)",
            "create index on t",
            "create index on t ()",
        ] {
            assert!(parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn several_indexes_are_dropped() {
        let sql = "drop index concurrently if exists public.A, \"B\" cascade";
        let Ok(Command::Reference(ReferenceStatement::DropIndex { names, if_exists })) = parse(sql)
        else {
            panic!("{:?}", parse(sql));
        };
        let names: Vec<&str> = names.iter().map(|name| name.table.as_str()).collect();
        assert_eq!((names, if_exists), (vec!["a", "B"], true));
    }
}
