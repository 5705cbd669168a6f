//! Reads the text of a statement into its syntax tree.

mod cursor;
mod definition;
mod expression;
mod insert;
mod query;
mod show;
mod values;
mod windows;

#[cfg(test)]
mod tests;

pub use cursor::{NESTING_MAX, OPERATORS_MAX};
pub use values::InsertedRows;

use crate::ast::TaosStatement;
use crate::error::{TaosError, TaosResult};
use crate::lexer::SqlTokenKind;
use cursor::TaosCursor;

/// Reads a statement, which may end with a semicolon.
///
/// # Errors
/// If the text is no statement: the error shows where it goes wrong. If it is one that this server does
/// not have, the error names it.
pub fn parse_statement(sql: &str) -> TaosResult<TaosStatement> {
    let mut cursor = TaosCursor::new(sql, 0, query::query)?;
    let parsed = statement(&mut cursor)?;
    while cursor.eat_symbol(";")? {}
    if cursor.kind() != SqlTokenKind::End {
        return Err(cursor.error());
    }
    Ok(parsed)
}

fn statement(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    if cursor.is_symbol("(") {
        return Ok(TaosStatement::Query(Box::new(cursor.query()?)));
    }
    if cursor.kind() != SqlTokenKind::Word {
        return Err(cursor.error());
    }
    let verb = cursor.text().to_ascii_lowercase();
    if verb == "select" {
        return Ok(TaosStatement::Query(Box::new(cursor.query()?)));
    }
    let unknown = cursor.error();
    cursor.advance()?;
    match verb.as_str() {
        "insert" | "import" => insert::insert(cursor),
        "create" => definition::create(cursor),
        "drop" => definition::drop_statement(cursor),
        "alter" => {
            if cursor.is_any_word(&["local", "dnode", "all", "dnodes"]) {
                return maintain(cursor);
            }
            definition::alter(cursor)
        }
        "use" => Ok(TaosStatement::UseDatabase(cursor.name()?)),
        "show" => show::show(cursor),
        "describe" | "desc" => Ok(TaosStatement::Describe(cursor.full_name()?)),
        "delete" => {
            cursor.expect_word("from")?;
            let table = cursor.full_name()?;
            let mut condition = None;
            if cursor.eat_word("where")? {
                condition = Some(expression::expression(cursor)?);
            }
            Ok(TaosStatement::Delete { table, condition })
        }
        "flush" | "reset" | "compact" | "trim" | "balance" | "s3migrate" => maintain(cursor),
        "explain" => explain(cursor),
        "grant" | "revoke" | "kill" | "split" | "redistribute" | "merge" | "sync" | "pause"
        | "resume" | "recalculate" | "restore" | "analyze" | "with" => {
            Err(TaosError::unsupported(&verb.to_ascii_uppercase()))
        }
        _ => Err(unknown),
    }
}

/// Reads what follows EXPLAIN; what it says of ANALYZE and VERBOSE changes nothing.
fn explain(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    cursor.eat_word("analyze")?;
    for option in ["verbose", "ratio"] {
        if cursor.eat_word(option)? {
            cursor.advance()?;
        }
    }
    Ok(TaosStatement::Explain(Box::new(cursor.query()?)))
}

/// A command that has nothing to do here; what it says is not read.
fn maintain(cursor: &mut TaosCursor<'_>) -> TaosResult<TaosStatement> {
    if cursor.kind() == SqlTokenKind::End {
        return Err(cursor.error());
    }
    while cursor.kind() != SqlTokenKind::End && !cursor.is_symbol(";") {
        cursor.advance()?;
    }
    Ok(TaosStatement::Maintain)
}
