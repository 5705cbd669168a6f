//! Quotes names and strings in printed statements.

use crate::token::Keyword;
use std::fmt::{self, Write};

/// Whether `ch` may begin a bare identifier.
pub(crate) const fn begins_ident(ch: char) -> bool {
    ch.is_ascii_alphabetic() || ch == '_'
}

/// Whether `ch` may occur inside a bare identifier.
pub(crate) const fn in_ident(ch: char) -> bool {
    ch.is_ascii_alphanumeric() || ch == '_'
}

/// Whether `name` requires quotes. `false` for an empty name: its meaning depends on its position.
pub fn ident_needs_quotes(name: &str) -> bool {
    let mut chars = name.chars();
    Keyword::lookup(name).is_some()
        || chars.next().is_some_and(|first| !begins_ident(first))
        || chars.any(|ch| !in_ident(ch))
}

/// Prints a name, in double quotes if necessary.
#[derive(Debug, Clone, Copy)]
pub struct QuotedIdent<'a>(pub &'a str);

impl fmt::Display for QuotedIdent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() || ident_needs_quotes(self.0) {
            write_quoted(f, self.0, '"')
        } else {
            f.write_str(self.0)
        }
    }
}

/// Prints a string in single quotes.
#[derive(Debug, Clone, Copy)]
pub struct QuotedString<'a>(pub &'a str);

impl fmt::Display for QuotedString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.0, '\'')
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str, quote: char) -> fmt::Result {
    f.write_char(quote)?;
    for ch in text.chars() {
        match ch {
            '\n' => f.write_str("\\n")?,
            '\\' => f.write_str("\\\\")?,
            ch if ch == quote => write!(f, "\\{quote}")?,
            ch => f.write_char(ch)?,
        }
    }
    f.write_char(quote)
}

/// Prints a name with several segments: all but the last are quoted, and an empty one in the middle
/// is omitted.
pub(crate) fn quote_segments(segments: &[String]) -> String {
    let last = segments.len().saturating_sub(1);
    let quoted = segments.iter().enumerate().map(|(index, segment)| {
        let outer = index == 0 || index == last;
        if segment.is_empty() && !outer {
            String::new()
        } else if index == last {
            QuotedIdent(segment).to_string()
        } else {
            let escaped = segment.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{}\"", escaped.replace('\n', "\\n"))
        }
    });
    quoted.collect::<Vec<_>>().join(".")
}

/// Writes `items`, separated by `between`.
pub(crate) fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    between: &str,
) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{QuotedIdent, QuotedString, quote_segments};

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, printed) in [
            ("cpu", "cpu"),
            ("_x9", "_x9"),
            ("", "\"\""),
            ("9x", "\"9x\""),
            ("a.b", "\"a.b\""),
            ("Select", "\"Select\""),
            ("naïve", "\"naïve\""),
            ("a\"b\\c\nd", "\"a\\\"b\\\\c\\nd\""),
        ] {
            assert_eq!(QuotedIdent(name).to_string(), printed);
        }
        assert_eq!(QuotedString("it's \\\n").to_string(), "'it\\'s \\\\\\n'");
    }

    #[test]
    fn segments_are_quoted_but_for_the_last() {
        let quote = |segments: &[&str]| {
            quote_segments(&segments.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(quote(&["a", "", "b"]), "\"a\"..b");
        assert_eq!(
            quote(&["a\n", "b", "c d", ""]),
            "\"a\\n\".\"b\".\"c d\".\"\""
        );
    }
}
