//! The statements of a script: pieces of text between semicolons that are in no quote or comment.

use crate::lexer::StatementLexer;

/// A statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptPiece<'a> {
    /// Its text, trimmed, without the semicolon.
    pub text: &'a str,
    /// Byte of the script at which the text begins.
    pub begin: usize,
    /// Whether a semicolon ended it.
    pub complete: bool,
}

impl ScriptPiece<'_> {
    /// Characters of `script`, which the piece is of, before it: what positions of errors in the
    /// statement are counted from.
    #[must_use]
    pub fn characters_before(&self, script: &str) -> usize {
        script[..self.begin].chars().count()
    }
}

/// The statements of a script; those without a word are left out. Only the last can be incomplete.
/// A script with a quote or comment that does not end is one statement: its parser says where, and
/// nothing of it is done.
#[must_use]
pub fn split_script(script: &str) -> Vec<ScriptPiece<'_>> {
    let mut pieces = Vec::new();
    let mut lexer = StatementLexer::new(script);
    let (mut start, mut has_words) = (0, false);
    let mut push = |start: usize, end: usize, complete| {
        let text = &script[start..end];
        let begin = start + (text.len() - text.trim_start().len());
        pieces.push(ScriptPiece {
            text: text.trim(),
            begin,
            complete,
        });
    };
    while let Some(token) = lexer.next_token_range() {
        if &script[token.clone()] != ";" {
            has_words = true;
            continue;
        }
        if has_words {
            push(start, token.start, true);
        }
        (start, has_words) = (token.end, false);
    }
    if lexer.is_open() {
        let (text, complete) = (script, false);
        return vec![ScriptPiece {
            text,
            begin: 0,
            complete,
        }];
    }
    if has_words {
        push(start, script.len(), false);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<&str> {
        split_script(script)
            .into_iter()
            .map(|statement| statement.text)
            .collect()
    }

    #[test]
    fn semicolons_in_quotes_and_comments_end_nothing() {
        assert_eq!(texts("SELECT 1; SELECT 2"), ["SELECT 1", "SELECT 2"]);
        assert_eq!(texts("SELECT 'a;''b;'; x"), ["SELECT 'a;''b;'", "x"]);
        assert_eq!(texts(r"SELECT E'a\';b'; x"), [r"SELECT E'a\';b'", "x"]);
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
            texts("select 'ü;' ; -- one; two\n/* ; */ ;\nselect $$;$$"),
            ["select 'ü;'", "select $$;$$"]
        );
        assert_eq!(
            texts(" ; -- nothing\n ; /* nor here */"),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn only_a_semicolon_completes() {
        assert!(split_script("SELECT 1;")[0].complete);
        assert!(!split_script("SELECT 'a;")[0].complete);
        assert!(!split_script("SELECT 1 /* ;")[0].complete);
    }

    #[test]
    fn a_script_that_does_not_end_is_one_statement() {
        assert_eq!(texts("SELECT 1; SELECT 'a;"), ["SELECT 1; SELECT 'a;"]);
        assert_eq!(texts("SELECT 1; /* ;"), ["SELECT 1; /* ;"]);
    }

    #[test]
    fn pieces_know_where_they_begin() {
        let script = "select 'é'; select 1;  select 1";
        let before: Vec<usize> = split_script(script)
            .iter()
            .map(|piece| piece.characters_before(script))
            .collect();
        assert_eq!(before, [0, 12, 23]);
    }
}
