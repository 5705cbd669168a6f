//! The text of a statement as far as a request needs it: `$name` of SQL, and whether a second statement
//! follows.

use crate::http::error::HttpError;
use serde_json::{Map, Value};

/// A part of a statement.
enum StatementToken<'a> {
    /// Text in quotes, a comment, or anything else that is passed on.
    Other(&'a str),
    /// `$name`, without the dollar.
    Name(&'a str),
    /// A semicolon.
    Semicolon,
}

/// The length of what begins at the head of `rest`, up to and with `end`.
fn until(rest: &str, begin: usize, end: &str) -> usize {
    match rest[begin..].find(end) {
        Some(at) => begin + at + end.len(),
        None => rest.len(),
    }
}

/// The next part of a text that is not empty, and its length.
fn next_part(rest: &str) -> (StatementToken<'_>, usize) {
    let length = match rest.as_bytes()[0] {
        b';' => return (StatementToken::Semicolon, 1),
        b'\'' => until(rest, 1, "'"),
        b'"' => until(rest, 1, "\""),
        b'-' if rest.starts_with("--") => until(rest, 2, "\n"),
        b'/' if rest.starts_with("/*") => until(rest, 2, "*/"),
        b'$' => {
            let is_name = |c: char| c == '_' || c.is_alphanumeric();
            let name = &rest[1..];
            let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
            if end > 0 && !name.starts_with(|c: char| c.is_ascii_digit()) {
                return (StatementToken::Name(&name[..end]), end + 1);
            }
            1
        }
        _ => {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let stop = |c: char| matches!(c, ';' | '\'' | '"' | '-' | '/' | '$');
            rest[first..].find(stop).map_or(rest.len(), |at| at + first)
        }
    };
    (StatementToken::Other(&rest[..length]), length)
}

/// Whether there is text behind the first statement.
pub(crate) fn has_second_statement(text: &str) -> bool {
    let (mut rest, mut ended) = (text, false);
    while !rest.is_empty() {
        let (part, length) = next_part(rest);
        match part {
            StatementToken::Semicolon => ended = true,
            StatementToken::Other(text) if text.trim().is_empty() || text.starts_with("--") => {}
            StatementToken::Other(_) | StatementToken::Name(_) if ended => return true,
            StatementToken::Other(_) | StatementToken::Name(_) => {}
        }
        rest = &rest[length..];
    }
    false
}

/// The SQL with the values of `params` in the places of `$name`.
///
/// # Errors
/// 400 if a name has no value, or its value is an array or an object.
pub(crate) fn bound_sql(sql: &str, params: &Map<String, Value>) -> Result<String, HttpError> {
    let (mut rest, mut bound) = (sql, String::with_capacity(sql.len()));
    while !rest.is_empty() {
        let (part, length) = next_part(rest);
        match part {
            StatementToken::Semicolon => bound.push(';'),
            StatementToken::Other(text) => bound.push_str(text),
            StatementToken::Name(name) => bound.push_str(&literal(name, params)?),
        }
        rest = &rest[length..];
    }
    Ok(bound)
}

fn literal(name: &str, params: &Map<String, Value>) -> Result<String, HttpError> {
    let value = params.get(name).ok_or_else(|| {
        HttpError::bad_request(format!(
            "the statement has ${name}, and params has no '{name}'"
        ))
    })?;
    Ok(match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(value) => value.to_string(),
        // A sign of its own must not join one before it to a comment.
        Value::Number(number) => format!("({number})"),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Array(_) | Value::Object(_) => {
            let message =
                format!("the parameter '{name}' is neither a number, a text, a boolean nor null");
            return Err(HttpError::bad_request(message));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bind(sql: &str, params: &Value) -> Result<String, String> {
        let params = params.as_object().cloned().unwrap_or_default();
        bound_sql(sql, &params).map_err(|error| error.message)
    }

    #[test]
    fn names_outside_of_quotes_get_their_values() {
        let params = json!({"a": "it's; --", "n": -1.5, "b": true, "x": null, "l": [1]});
        let sql = "SELECT $a, '$a', \"$a\", 2-$n -- $a\n, $b /* $a */, $x, é$b";
        let expected =
            "SELECT 'it''s; --', '$a', \"$a\", 2-(-1.5) -- $a\n, true /* $a */, NULL, étrue";
        assert_eq!(bind(sql, &params).as_deref(), Ok(expected));
        assert!(bind("SELECT $missing", &params).is_err());
        assert!(bind("SELECT $l", &params).is_err());
        assert_eq!(bind("SELECT $1, $", &params).as_deref(), Ok("SELECT $1, $"));
        assert_eq!(bind("SELECT 'open", &params).as_deref(), Ok("SELECT 'open"));
    }

    #[test]
    fn a_second_statement_is_seen() {
        assert!(has_second_statement("SELECT 1; SELECT 2"));
        assert!(!has_second_statement("SELECT ';'; -- done\n ;"));
        assert!(!has_second_statement("SELECT \";\""));
        assert!(has_second_statement(";$x"));
    }
}
