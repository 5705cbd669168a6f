//! Removes passwords from texts that are logged in their original form.
//!
//! A text that cannot be parsed may contain a password, too, which may be wrongly quoted or
//! truncated. So everything in the position of a password is removed, whatever it is.

use crate::reader::{END, Reader};
use crate::scanner::scan;
use crate::token::{InfluxQlToken, Keyword};

/// What stands in the context of a password.
const REDACTED: &str = "[REDACTED]";

/// The position of the scan in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenContext {
    /// Anywhere.
    Elsewhere,
    /// After PASSWORD.
    BehindPassword,
    /// After PASSWORD FOR, before `=`.
    BehindUser,
    /// Before the password itself.
    BeforeSecret,
}

/// The text without the words after `PASSWORD` and after `PASSWORD FOR … =`.
pub fn redact_passwords(text: &str) -> String {
    let parts = text.split(END).map(redact_part);
    parts.collect::<Vec<_>>().join("\0")
}

/// Like [`redact_passwords`], for a text without NUL.
fn redact_part(text: &str) -> String {
    let mut reader = Reader::new(text);
    let mut redacted = String::with_capacity(text.len());
    let mut copied = 0;
    let mut context = TokenContext::Elsewhere;
    loop {
        let start = reader.cursor();
        let token = scan(&mut reader).token;
        context = match (context, token) {
            (_, InfluxQlToken::Eof) => break,
            (context, InfluxQlToken::Whitespace) => context,
            (_, InfluxQlToken::Semicolon) => TokenContext::Elsewhere,
            (_, InfluxQlToken::Keyword(Keyword::Password)) => TokenContext::BehindPassword,
            (TokenContext::BehindPassword, InfluxQlToken::Keyword(Keyword::For)) => {
                TokenContext::BehindUser
            }
            (TokenContext::BehindPassword | TokenContext::BehindUser, InfluxQlToken::Eq) => {
                TokenContext::BeforeSecret
            }
            // A comment, or a string where a quote is too much, hides what follows from the parser
            // and not from a reader of the log.
            (TokenContext::Elsewhere, token) => {
                let hidden = match token {
                    InfluxQlToken::Comment => Some(2),
                    InfluxQlToken::BadString | InfluxQlToken::BadEscape => Some(1),
                    InfluxQlToken::String | InfluxQlToken::Ident => {
                        let part = text.get(start..reader.cursor()).unwrap_or_default();
                        mentions_password(part).then_some(1)
                    }
                    _ => None,
                };
                if let Some(width) = hidden {
                    reader.skip_to(start + width);
                }
                TokenContext::Elsewhere
            }
            // The equals sign may be missing: then a string is the password.
            (TokenContext::BehindUser, other) if !is_secret(other) => TokenContext::BehindUser,
            (context, secret) => {
                redacted.push_str(text.get(copied..start).unwrap_or_default());
                redacted.push_str(REDACTED);
                copied = match secret {
                    InfluxQlToken::String | InfluxQlToken::Comment => reader.cursor(),
                    // The end of a string that has none is the end of the text.
                    InfluxQlToken::BadString | InfluxQlToken::BadEscape => text.len(),
                    _ => {
                        let rest = text.get(start..).unwrap_or_default();
                        let end = rest.find([' ', '\t', '\n', '\r', ';']);
                        start + end.unwrap_or(rest.len())
                    }
                };
                reader.skip_to(copied);
                if secret == InfluxQlToken::Comment {
                    context
                } else {
                    TokenContext::Elsewhere
                }
            }
        };
    }
    redacted.push_str(text.get(copied..).unwrap_or_default());
    redacted
}

/// Whether a string or a name contains more than the word.
fn mentions_password(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    let mut mentions = lower.match_indices("password");
    mentions.any(|(at, word)| lower[at + word.len()..].starts_with([' ', '\t', '\n', '\r']))
}

/// Whether a token behind a user's name can only be a password, or may hide one.
fn is_secret(token: InfluxQlToken) -> bool {
    matches!(
        token,
        InfluxQlToken::String
            | InfluxQlToken::BadString
            | InfluxQlToken::BadEscape
            | InfluxQlToken::Comment
    )
}

#[cfg(test)]
mod tests {
    use super::redact_passwords;

    #[test]
    fn passwords_are_taken_out() {
        for (text, redacted) in [
            (
                "CREATE USER u WITH PASSWORD 'a b;c'",
                "CREATE USER u WITH PASSWORD [REDACTED]",
            ),
            (
                "create user u with password 'it\\'s' with all privileges; SHOW USERS",
                "create user u with password [REDACTED] with all privileges; SHOW USERS",
            ),
            (
                "CREATE USER u WITH PASSWORD \"x\"",
                "CREATE USER u WITH PASSWORD [REDACTED]",
            ),
            (
                "CREATE USER u WITH PASSWORD x$y'z; b",
                "CREATE USER u WITH PASSWORD [REDACTED]; b",
            ),
            (
                "CREATE USER u WITH PASSWORD 5",
                "CREATE USER u WITH PASSWORD [REDACTED]",
            ),
            (
                "CREATE USER u WITH PASSWORD 'x y",
                "CREATE USER u WITH PASSWORD [REDACTED]",
            ),
            (
                "CREATE USER u WITH PASSWORD 'x\\y z'",
                "CREATE USER u WITH PASSWORD [REDACTED]",
            ),
            (
                "WITH PASSWORD/* c */'x'",
                "WITH PASSWORD[REDACTED][REDACTED]",
            ),
            (
                "WITH PASSWORD -- 'x'\n'y' z",
                "WITH PASSWORD [REDACTED][REDACTED] z",
            ),
            ("-- WITH PASSWORD 'x'", "-- WITH PASSWORD [REDACTED]"),
            (
                "it's /* WITH PASSWORD 'x' */",
                "it's /* WITH PASSWORD [REDACTED] */",
            ),
            (
                "USER \"u WITH PASSWORD 'x'",
                "USER \"u WITH PASSWORD [REDACTED]",
            ),
            ("a\0 PASSWORD 'x'\0b", "a\0 PASSWORD [REDACTED]\0b"),
            ("SET PASSWORD FOR \"u = 'x'", "SET PASSWORD FOR [REDACTED]"),
            ("WITH PASSWORD = 'x'", "WITH PASSWORD = [REDACTED]"),
            (
                "SET PASSWORD FOR \"u v\" = 'x'",
                "SET PASSWORD FOR \"u v\" = [REDACTED]",
            ),
            ("SET PASSWORD FOR u='x'", "SET PASSWORD FOR u=[REDACTED]"),
            ("SET PASSWORD FOR u 'x'", "SET PASSWORD FOR u [REDACTED]"),
            ("SET PASSWORD FOR u = x", "SET PASSWORD FOR u = [REDACTED]"),
            (
                "SELECT v FROM m WHERE a = 'b'",
                "SELECT v FROM m WHERE a = 'b'",
            ),
            ("SELECT \"password\" FROM m", "SELECT \"password\" FROM m"),
            ("WITH PASSWORD", "WITH PASSWORD"),
        ] {
            assert_eq!(redact_passwords(text), redacted);
        }
    }
}
