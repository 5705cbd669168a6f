//! Column names in the conditions of `CHECK` constraints.
//!
//! This crate does not parse SQL. It finds names as a lexer does: outside strings and comments, not before `(` (a
//! function) and not behind `::` (a type).

use std::ops::Range;

/// Whether a condition names a column.
pub(crate) fn mentions(sql: &str, column: &str) -> bool {
    !names(sql, column).is_empty()
}

/// The condition with another name for a column.
pub(crate) fn renamed(sql: &str, from: &str, to: &str) -> String {
    let mut changed = sql.to_owned();
    let quoted = format!("\"{}\"", to.replace('"', "\"\""));
    for range in names(sql, from).into_iter().rev() {
        changed.replace_range(range, &quoted);
    }
    changed
}

/// Where a condition names a column.
fn names(sql: &str, column: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut before = "";
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        let (len, name) = token(rest);
        let text = rest.get(..len).unwrap_or_default();
        let is_call = rest
            .get(len..)
            .is_some_and(|after| after.trim_start().starts_with('('));
        let is_quoted = text.starts_with('"');
        if name.as_deref() == Some(column) && (is_quoted || !is_call) && before != "::" {
            found.push(at..at + len);
        }
        if !text.trim().is_empty() {
            before = text;
        }
        at += len.max(1);
    }
    found
}

/// The length of the first token, and the name that it is.
fn token(rest: &str) -> (usize, Option<String>) {
    let mut characters = rest.chars();
    let first = characters.next().unwrap_or_default();
    if first == '\'' || ((first == 'e' || first == 'E') && characters.next() == Some('\'')) {
        return (string(rest, first != '\''), None);
    }
    if first == '"' {
        let len = quoted(rest, '"');
        let inner = rest.get(1..len.saturating_sub(1)).unwrap_or_default();
        return (len, Some(inner.replace("\"\"", "\"")));
    }
    if rest.starts_with("--") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (rest.find("*/").map_or(rest.len(), |end| end + 2), None);
    }
    if rest.starts_with("::") {
        return (2, None);
    }
    let is_part = |next: char| next.is_alphanumeric() || next == '_' || next == '$';
    if first.is_alphanumeric() || first == '_' {
        let len = rest.find(|next| !is_part(next)).unwrap_or(rest.len());
        let word = rest.get(..len).unwrap_or_default().to_ascii_lowercase();
        return (len, (!first.is_ascii_digit()).then_some(word));
    }
    (first.len_utf8(), None)
}

/// The length of a string, which may have escapes with backslashes.
fn string(rest: &str, has_escapes: bool) -> usize {
    if !has_escapes {
        return quoted(rest, '\'');
    }
    let mut is_escaped = false;
    for (position, next) in rest.char_indices().skip(2) {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => return position + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of what is between quotes, where two quotes are one.
fn quoted(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((position, next)) = characters.next() {
        if next != quote {
            continue;
        }
        if characters.peek().is_some_and(|(_, after)| *after == quote) {
            characters.next();
            continue;
        }
        return position + 1;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_are_columns() {
        let renamed = |sql| renamed(sql, "a", "b c");
        assert_eq!(renamed("a > 0 AND A<aa"), "\"b c\" > 0 AND \"b c\"<aa");
        assert_eq!(
            renamed("\"a\" = 'a' || 'it''s a' OR a(a)"),
            "\"b c\" = 'a' || 'it''s a' OR a(\"b c\")"
        );
        assert_eq!(
            renamed("x::a = E'\\'a' /* a */ -- a"),
            "x::a = E'\\'a' /* a */ -- a"
        );
        assert_eq!(renamed("t.a IN (1)"), "t.\"b c\" IN (1)");
        assert!(mentions("\"A\"\"\" > 1", "A\""));
        assert!(!mentions("\"A\" > 1", "a"));
        assert!(!mentions("ä'a", "a"));
    }
}
