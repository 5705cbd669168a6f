//! Splits SQL at semicolons, aware of quotes and comments: for the shell, which must know when a
//! statement is complete, and for scripts sent to a server.

/// A statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptPiece<'a> {
    /// Its text, trimmed, without the semicolon.
    pub text: &'a str,
    /// Whether a semicolon ended it.
    pub complete: bool,
}

/// The statements of a script; empty ones are left out. Only the last can be incomplete.
pub fn split(script: &str) -> Vec<ScriptPiece<'_>> {
    let mut statements = Vec::new();
    let mut rest = script;
    while !rest.is_empty() {
        let (len, complete) = statement_end(rest);
        let text = rest[..len].trim();
        if !text.is_empty() && !is_only_comments(text) {
            statements.push(ScriptPiece { text, complete });
        }
        rest = rest.get(len + 1..).unwrap_or("");
    }
    statements
}

/// Length of the first statement, and whether a semicolon follows it.
fn statement_end(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b';' => return (at, true),
            quote @ (b'\'' | b'"') => at = quoted_end(bytes, at + 1, quote),
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at = text[at..].find('\n').map_or(bytes.len(), |len| at + len);
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => at = comment_end(bytes, at + 2),
            b'$' => at = dollar_end(text, at),
            _ => at += 1,
        }
    }
    (bytes.len(), false)
}

/// The position after the quote that closes the text that begins at `at`; a doubled quote is part
/// of the text.
pub fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() {
        if bytes[at] == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 1;
        }
        at += 1;
    }
    bytes.len()
}

/// The position after the end of a comment, which may contain other comments.
fn comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 1;
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"*/") => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            Some(b"/*") => {
                depth += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The position after `$tag$ … $tag$` that begins at `at`, or after the dollar if it begins no such
/// text.
fn dollar_end(text: &str, at: usize) -> usize {
    let Some(tag_len) = text[at + 1..].find('$') else {
        return at + 1;
    };
    let tag = &text[at..at + tag_len + 2];
    let is_tag = tag[1..tag.len() - 1]
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_')
        && !tag[1..].starts_with(|c: char| c.is_ascii_digit());
    if !is_tag {
        return at + 1;
    }
    let start = at + tag.len();
    text[start..]
        .find(tag)
        .map_or(text.len(), |len| start + len + tag.len())
}

fn is_only_comments(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        if rest.starts_with("--") {
            rest = rest
                .split_once('\n')
                .map_or("", |(_, rest)| rest)
                .trim_start();
        } else if rest.starts_with("/*") {
            rest = rest[comment_end(rest.as_bytes(), 2)..].trim_start();
        } else {
            return rest.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<&str> {
        split(script)
            .into_iter()
            .map(|statement| statement.text)
            .collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        assert_eq!(texts("SELECT 1; SELECT 2"), ["SELECT 1", "SELECT 2"]);
        assert_eq!(texts("SELECT 'a;''b;'; x"), ["SELECT 'a;''b;'", "x"]);
        assert_eq!(
            texts("SELECT \"a;b\" -- c;d\n;x"),
            ["SELECT \"a;b\" -- c;d", "x"]
        );
        assert_eq!(
            texts("a /* ; /* ; */ ; */ b;c"),
            ["a /* ; /* ; */ ; */ b", "c"]
        );
        assert_eq!(texts("$x$ ; $x$;$1;y"), ["$x$ ; $x$", "$1", "y"]);
        assert_eq!(
            texts(" ; -- nothing\n ; /* nor here */"),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn only_a_semicolon_completes() {
        assert!(split("SELECT 1;")[0].complete);
        assert!(!split("SELECT 'a;")[0].complete);
        assert!(!split("SELECT 1 /* ;")[0].complete);
    }
}
