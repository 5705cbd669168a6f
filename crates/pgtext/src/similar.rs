//! `SIMILAR TO`: translates SQL's regular expressions to those of the crate `regex`.

/// Why a pattern is invalid (SQLSTATE `2201B`, `22019` and `22025`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimilarError {
    /// The pattern ends with the escape character.
    #[error("the pattern of SIMILAR TO ends with its escape character")]
    EscapeAtEnd,
    /// One repetition directly follows another.
    #[error("the pattern of SIMILAR TO repeats a repetition")]
    Repeated,
    /// A bracket is not closed.
    #[error("a bracket of the pattern of SIMILAR TO is not closed")]
    OpenBracket,
}

/// The regular expression that matches a whole text exactly if it is similar to `pattern`. `escape`
/// is the character that makes the next one literal (PostgreSQL's default is the backslash).
///
/// # Errors
/// If an escape or a bracket is not complete. Compiling the expression finds other errors.
pub fn similar_to_regex(pattern: &str, escape: Option<char>) -> Result<String, SimilarError> {
    // A point matches any character, including a line break.
    let mut regex = String::from("(?s)^(?:");
    let mut rest = pattern.chars().peekable();
    let mut was_repetition = false;
    while let Some(c) = rest.next() {
        let repeats = Some(c) != escape && "*+?{".contains(c);
        // A `?` after a repetition makes it non-greedy, which does not matter here.
        if repeats && was_repetition && c != '?' {
            return Err(SimilarError::Repeated);
        }
        was_repetition = Some(c) != escape && "*+?%}".contains(c);
        if Some(c) == escape {
            let escaped = rest.next().ok_or(SimilarError::EscapeAtEnd)?;
            push_escaped(&mut regex, escaped);
            continue;
        }
        match c {
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '[' => {
                regex.push('[');
                let mut is_first = true;
                if rest.next_if_eq(&'^').is_some() {
                    regex.push('^');
                }
                loop {
                    let c = rest.next().ok_or(SimilarError::OpenBracket)?;
                    match c {
                        ']' if !is_first => break,
                        '[' if rest.peek() == Some(&':') => push_class(&mut regex, &mut rest)?,
                        _ if Some(c) == escape => {
                            let escaped = rest.next().ok_or(SimilarError::EscapeAtEnd)?;
                            push_escaped(&mut regex, escaped);
                        }
                        '-' => regex.push('-'),
                        other => push_plain(&mut regex, other),
                    }
                    is_first = false;
                }
                regex.push(']');
            }
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(c),
            other => push_plain(&mut regex, other),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

/// `[:alpha:]` within brackets, from its colon on.
fn push_class(
    regex: &mut String,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<(), SimilarError> {
    regex.push('[');
    loop {
        let c = rest.next().ok_or(SimilarError::OpenBracket)?;
        regex.push(c);
        if c == ']' {
            return Ok(());
        }
    }
}

/// An escaped character: a character class such as `\d`, or the character itself.
fn push_escaped(regex: &mut String, c: char) {
    if "dDwWsS".contains(c) {
        regex.push('\\');
        regex.push(c);
    } else {
        push_plain(regex, c);
    }
}

fn push_plain(regex: &mut String, c: char) {
    // `\\<` and `\\>` match word boundaries rather than characters.
    if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
        regex.push('\\');
    }
    regex.push(c);
}
