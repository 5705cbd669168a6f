//! Reads a statement.

use super::ast::TreeStatement;
use super::context::TreeSqlContext;
use super::cursor::SqlCursor;
use crate::status::IotDbFault;

/// Bytes of a statement.
const STATEMENT_BYTES_MAX: usize = 16 << 20;

/// Statements that IoTDB has and this server has not, by the words they begin with.
const UNSUPPORTED: &[&str] = &[
    "alter",
    "authorize",
    "call",
    "clear",
    "explain",
    "flush",
    "full",
    "grant",
    "kill",
    "list",
    "load",
    "merge",
    "move",
    "pay",
    "prune",
    "remove",
    "repair",
    "revoke",
    "settle",
    "start",
    "stop",
    "trace",
    "unload",
    "use",
    "verify",
    "with",
];

/// Reads a statement of the tree dialect.
///
/// # Errors
/// If it is malformed or too long, or names a clause that is not supported.
pub fn parse_statement(text: &str, context: &TreeSqlContext) -> Result<TreeStatement, IotDbFault> {
    if text.len() > STATEMENT_BYTES_MAX {
        return Err(IotDbFault::parameter(format!(
            "a statement has more than {STATEMENT_BYTES_MAX} bytes"
        )));
    }
    let mut cursor = SqlCursor::new(text, context);
    let statement = statement(&mut cursor)?;
    cursor.sign(";");
    if cursor.is_at_end() {
        return Ok(statement);
    }
    Err(cursor.expected("the end of the statement"))
}

/// The time that a text means; `None` if it is none.
pub fn parse_time(text: &str, context: &TreeSqlContext) -> Option<i64> {
    let mut cursor = SqlCursor::new(text, context);
    let time = cursor.time().ok()??;
    cursor.is_at_end().then_some(time)
}

fn statement(cursor: &mut SqlCursor<'_>) -> Result<TreeStatement, IotDbFault> {
    if cursor.keyword("select") {
        return Ok(TreeStatement::Select(Box::new(cursor.select()?)));
    }
    if cursor.keyword("insert") {
        cursor.expect_keyword("into")?;
        return cursor.insert().map(TreeStatement::Insert);
    }
    if cursor.keyword("show") {
        return cursor.show();
    }
    if cursor.keyword("count") {
        return cursor.count();
    }
    if cursor.keyword("create") {
        return cursor.create();
    }
    if cursor.keyword("delete") || cursor.keyword("drop") {
        return cursor.drop_or_delete();
    }
    if cursor.keyword("set") {
        return cursor.set();
    }
    if cursor.keyword("unset") {
        return cursor.unset();
    }
    let word = cursor.peek_word();
    if UNSUPPORTED
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word))
    {
        let word = word.to_uppercase();
        return Err(IotDbFault::unsupported(format!("{word} is not supported")));
    }
    Err(cursor.expected("a statement"))
}
