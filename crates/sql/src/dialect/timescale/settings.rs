//! Reads the names and values of TimescaleDB's settings in `WITH (tsdb.hypertable, …)` and
//! `SET (timescaledb.compress, …)`.

use crate::dialect::identifiers::parse_name;
use crate::error::SqlResult;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// Reads the prefix of TimescaleDB's settings before the name of a setting.
fn accept_prefix(parser: &mut Parser<'_>) -> bool {
    const PREFIXES: [&str; 2] = ["timescaledb", "tsdb"];
    let is_prefix = matches!(&parser.peek_token().token, Token::Word(word)
        if PREFIXES.iter().any(|known| word.value.eq_ignore_ascii_case(known)));
    if !is_prefix || parser.peek_nth_token(1).token != Token::Period {
        return false;
    }
    parser.next_token();
    parser.next_token();
    true
}

/// The value of a setting, or that it is only named.
///
/// # Errors
/// If what follows `=` is not a value.
pub(crate) fn optional_value(
    parser: &mut Parser<'_>,
    value: impl Fn(&mut Parser<'_>) -> SqlResult<Option<String>>,
) -> SqlResult<Option<String>> {
    if parser.consume_token(&Token::Eq) {
        value(parser)
    } else {
        Ok(Some("true".to_owned()))
    }
}

/// The name of a setting of TimescaleDB, if one comes next.
///
/// # Errors
/// If no name follows the prefix.
pub(crate) fn accept_key(parser: &mut Parser<'_>) -> SqlResult<Option<String>> {
    if accept_prefix(parser) {
        return parse_name(parser).map(Some);
    }
    Ok(None)
}
