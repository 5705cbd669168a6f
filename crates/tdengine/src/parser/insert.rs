//! INSERT.

use super::cursor::TaosCursor;
use super::values::{row, tags};
use crate::ast::{TaosInsert, TaosInsertClause, TaosStatement, TaosUsing};
use crate::error::{TaosError, TaosResult};
use crate::lexer::SqlTokenKind;

/// Reads what follows INSERT or IMPORT.
pub(super) fn insert(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    cursor.expect_word("into")?;
    let mut clauses = vec![clause(cursor)?];
    while cursor.kind() != SqlTokenKind::End && !cursor.is_symbol(";") {
        clauses.push(clause(cursor)?);
    }
    Ok(TaosStatement::Insert(TaosInsert { clauses }))
}

fn clause(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosInsertClause> {
    let table = cursor.full_name()?;
    let mut columns = None;
    if cursor.is_symbol("(") {
        columns = Some(cursor.name_list()?);
    }
    let mut using = None;
    if cursor.eat_word("using")? {
        using = Some(self::using(cursor)?);
        if cursor.is_symbol("(") && columns.is_none() {
            columns = Some(cursor.name_list()?);
        }
    }
    if cursor.is_word("file") {
        return Err(TaosError::unsupported("INSERT … FILE"));
    }
    if cursor.is_word("select") {
        return Err(TaosError::unsupported("INSERT … SELECT"));
    }
    if !cursor.eat_word("values")? {
        cursor.expect_word("value")?;
    }
    let start = cursor.start();
    let (mut values, mut row_count, mut end) = (Vec::new(), 0, start);
    while cursor.is_symbol("(") {
        row(cursor, &mut values)?;
        row_count += 1;
        end = start + cursor.text_since(start).len();
        cursor.eat_symbol(",")?;
    }
    if row_count == 0 {
        return Err(cursor.error());
    }
    Ok(TaosInsertClause {
        table,
        using,
        columns,
        rows: start..end,
        row_count,
    })
}

/// Reads a super table and the values of tags.
pub(super) fn using(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosUsing> {
    let stable = cursor.full_name()?;
    let mut tag_names = None;
    if cursor.is_symbol("(") {
        tag_names = Some(cursor.name_list()?);
    }
    cursor.expect_word("tags")?;
    Ok(TaosUsing {
        stable,
        tag_names,
        tags: tags(cursor)?,
    })
}
