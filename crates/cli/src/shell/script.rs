//! The parts of a script, as psql reads them: statements that end with `;`, and commands that begin with
//! a backslash and end with their line.
//!
//! A command may stand behind a statement that has begun: `\g` runs it, and most others leave it as it is.

use marigram_pgtext::StatementLexer;

/// A part of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptPart<'a> {
    /// The rest of a statement that ends with `;`, which is not part of it.
    Statement(&'a str),
    /// A command.
    Command {
        /// The text of the statement before it.
        before: &'a str,
        /// The command with its argument.
        text: &'a str,
        /// Its line, from 1.
        line: usize,
    },
    /// The begin of a statement at the end of the script.
    Begun(&'a str),
}

/// The parts of a script. A script with a quote or comment that does not end is one statement: its parser
/// says where, and nothing of it is done.
pub(super) fn split(script: &str) -> Vec<ScriptPart<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut from) = (0, 0);
    // Counted on from command to command.
    let (mut line, mut counted) = (1, 0);
    loop {
        let mut lexer = StatementLexer::new(&script[from..]);
        let mut command = None;
        while let Some(token) = lexer.next_token_range() {
            let (begin, end) = (from + token.start, from + token.end);
            if script[begin..].starts_with('\\') {
                command = Some(begin);
                break;
            }
            if &script[begin..end] == ";" {
                parts.push(ScriptPart::Statement(&script[start..begin]));
                start = end;
            }
        }
        let Some(begin) = command else {
            if lexer.is_open() {
                return vec![ScriptPart::Begun(script)];
            }
            parts.push(ScriptPart::Begun(&script[start..]));
            return parts;
        };
        let end = script[begin..].find('\n');
        let end = end.map_or(script.len(), |length| begin + length);
        line += script[counted..begin].matches('\n').count();
        counted = begin;
        parts.push(ScriptPart::Command {
            before: &script[start..begin],
            text: script[begin..end].trim(),
            line,
        });
        (start, from) = (end, end);
    }
}

/// Whether an input of the shell can be run: its last statement ends, or its last line is a command.
pub(super) fn is_whole(input: &str) -> bool {
    match split(input).as_slice() {
        [.., ScriptPart::Command { .. }, ScriptPart::Begun(rest)] if rest.trim().is_empty() => true,
        [.., ScriptPart::Begun(rest)] => !has_words(rest),
        _ => true,
    }
}

/// Whether a text holds more than blanks and comments.
pub(super) fn has_words(text: &str) -> bool {
    let mut lexer = StatementLexer::new(text);
    lexer.next_token_range().is_some() || lexer.is_open()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_with_their_line_and_statements_with_a_semicolon() {
        let command = |before, text, line| ScriptPart::Command { before, text, line };
        assert_eq!(
            split("SELECT 1;\n\\echo it's; here\nSELECT ';' \\gx\n\\dt"),
            [
                ScriptPart::Statement("SELECT 1"),
                command("\n", "\\echo it's; here", 2),
                command("\nSELECT ';' ", "\\gx", 3),
                command("\n", "\\dt", 4),
                ScriptPart::Begun(""),
            ]
        );
        let open = "SELECT 1; SELECT '\\g";
        assert_eq!(split(open), [ScriptPart::Begun(open)]);
        assert_eq!(
            split("SELECT E'\\'\\g';"),
            [
                ScriptPart::Statement("SELECT E'\\'\\g'"),
                ScriptPart::Begun("")
            ]
        );
    }

    #[test]
    fn an_input_is_whole_where_something_can_be_done() {
        for whole in [
            "",
            "SELECT 1;",
            "SELECT 1\n\\g",
            "\\dt",
            "SELECT 1; -- so\n",
            "a \\p",
        ] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in [
            "SELECT 1",
            "SELECT ';",
            "SELECT 1; SELECT",
            "SELECT '\\g",
            "\\p\nSELECT",
        ] {
            assert!(!is_whole(part), "{part}");
        }
    }
}
