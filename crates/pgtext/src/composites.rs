//! The texts of rows and of arrays: `(1,"a b",)` and `{1,"a b",NULL}`, as PostgreSQL's `record_out` and
//! `array_out` write them.

/// The text of a row with the texts of its values; `None` is NULL, of which nothing is written.
pub fn row_text<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let mut out = String::from("(");
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let Some(value) = value else { continue };
        let is_special =
            |c: char| matches!(c, '"' | '\\' | '(' | ')' | ',') || is_postgres_space(c);
        if value.is_empty() || value.contains(is_special) {
            push_quoted(value, ["\"\"", "\\\\"], &mut out);
        } else {
            out.push_str(value);
        }
    }
    out.push(')');
    out
}

/// The text of an array of one dimension with the texts of its elements.
pub fn array_text<'a>(elements: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let mut out = String::from("{");
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let Some(element) = element else {
            out.push_str("NULL");
            continue;
        };
        let is_special =
            |c: char| matches!(c, '"' | '\\' | '{' | '}' | ',') || is_postgres_space(c);
        let is_null_word = element.eq_ignore_ascii_case("null");
        if element.is_empty() || is_null_word || element.contains(is_special) {
            push_quoted(element, ["\\\"", "\\\\"], &mut out);
        } else {
            out.push_str(element);
        }
    }
    out.push('}');
    out
}

/// Appends a value in quotes; quotes and backslashes in it are written as `escapes` says.
fn push_quoted(value: &str, [quote, backslash]: [&str; 2], out: &mut String) {
    out.push('"');
    for character in value.chars() {
        match character {
            '"' => out.push_str(quote),
            '\\' => out.push_str(backslash),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Whether PostgreSQL takes a character for a blank.
fn is_postgres_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers of PostgreSQL 15.
    #[test]
    fn rows_quote_what_would_end_a_value() {
        for (values, expected) in [
            (vec![Some("1"), Some("2")], "(1,2)"),
            (vec![Some("a b"), None], "(\"a b\",)"),
            (
                vec![Some("a\"b"), Some("\\"), Some("")],
                "(\"a\"\"b\",\"\\\\\",\"\")",
            ),
            (vec![Some("(1,2)"), Some("{1,2}")], "(\"(1,2)\",\"{1,2}\")"),
            (vec![Some("null"), Some(" x")], "(null,\" x\")"),
            (vec![None], "()"),
            (vec![], "()"),
        ] {
            assert_eq!(row_text(values), expected);
        }
    }

    #[test]
    fn arrays_quote_braces_and_the_word_null() {
        for (elements, expected) in [
            (vec![Some("1"), None], "{1,NULL}"),
            (vec![Some("NULL"), Some("")], "{\"NULL\",\"\"}"),
            (
                vec![Some("a\"b\\"), Some("a b"), Some("(1)")],
                "{\"a\\\"b\\\\\",\"a b\",(1)}",
            ),
            (vec![], "{}"),
        ] {
            assert_eq!(array_text(elements), expected);
        }
    }
}
