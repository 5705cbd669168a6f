//! Parses words and names for all of Marigram's own statements.

use crate::dialect::statement::TableReferenceName;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// Reads a word that is not a keyword of sqlparser, regardless of case.
pub(crate) fn accept_word(parser: &mut Parser<'_>, expected: &str) -> bool {
    let next = parser.peek_token();
    let is = matches!(&next.token, Token::Word(w) if w.quote_style.is_none()
        && w.value.eq_ignore_ascii_case(expected));
    if is {
        parser.next_token();
    }
    is
}

/// Reads several words, all or none.
pub(crate) fn accept_words(parser: &mut Parser<'_>, expected: &[&str]) -> bool {
    for (at, expected) in expected.iter().enumerate() {
        let next = parser.peek_nth_token(at);
        let is = matches!(&next.token, Token::Word(w) if w.quote_style.is_none()
            && w.value.eq_ignore_ascii_case(expected));
        if !is {
            return false;
        }
    }
    for _ in expected {
        parser.next_token();
    }
    true
}

/// Requires the end of the statement.
///
/// # Errors
/// If something follows.
pub(crate) fn end(parser: &mut Parser<'_>) -> SqlResult<()> {
    while parser.consume_token(&Token::SemiColon) {}
    match parser.peek_token() {
        found if found.token == Token::EOF => Ok(()),
        found => Ok(parser.expected("the end of the statement", found)?),
    }
}

/// Reads a name; an unquoted name is folded to lower case, as in PostgreSQL.
pub(crate) fn parse_name(parser: &mut Parser<'_>) -> SqlResult<String> {
    Ok(fold_case(&parser.parse_identifier()?))
}

/// Reads `table`, `database.table` or `database.public.table`.
pub(crate) fn parse_target(parser: &mut Parser<'_>) -> SqlResult<TableReferenceName> {
    let written = parser.parse_object_name(false)?;
    let parts: Option<Vec<String>> = written
        .0
        .iter()
        .map(|p| p.as_ident().map(fold_case))
        .collect();
    let parts = parts.unwrap_or_default();
    target_of(&parts).ok_or_else(|| {
        SqlError::syntax(format!(
            "'{written}' is not the name of a table; write table, database.table or database.public.table"
        ))
    })
}

/// The table to which the parts of a name refer.
pub(crate) fn target_of(parts: &[String]) -> Option<TableReferenceName> {
    let (database, table) = match parts {
        [table] => (None, table),
        [schema, table] if schema == "public" => (None, table),
        [database, table] => (Some(database), table),
        [database, schema, table] if schema == "public" => (Some(database), table),
        _ => return None,
    };
    Some(TableReferenceName {
        database: database.cloned(),
        table: table.clone(),
    })
}
