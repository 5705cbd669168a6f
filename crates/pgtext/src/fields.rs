//! Splits a time's text into its parts: numbers, words, dates, clock times and offsets.

/// A part of the text of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimeTextField {
    /// Digits, with a fraction after a point.
    Number(String),
    /// Letters, in lower case.
    Word(String),
    /// Numbers and letters separated by `-`, `/` or `.`; also `Europe/Berlin`.
    Date(String),
    /// Digits with colons.
    Time(String),
    /// A zone's offset from UTC, with its sign.
    Offset(String),
}

/// The parts of a text; `None` if a character belongs to none.
pub(crate) fn fields(text: &str) -> Option<Vec<TimeTextField>> {
    let mut rest = text.trim();
    let mut fields = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (field, length) = match first {
            _ if first.is_whitespace() || first == ',' => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
            '0'..='9' => numeric(rest),
            '+' | '-' => offset(rest)?,
            '.' => {
                let length = 1 + run(&rest[1..], |c| c.is_ascii_digit());
                (
                    TimeTextField::Number(format!("0{}", &rest[..length])),
                    length,
                )
            }
            _ if first.is_ascii_alphabetic() => word(rest),
            _ => return None,
        };
        fields.push(field);
        rest = &rest[length..];
    }
    Some(fields)
}

/// Length of the leading characters for which `is_of` returns true, in bytes.
fn run(text: &str, is_of: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_of(c)).unwrap_or(text.len())
}

fn numeric(text: &str) -> (TimeTextField, usize) {
    let digits = run(text, |c| c.is_ascii_digit());
    let mut after = text[digits..].chars();
    match (after.next(), after.next()) {
        (Some(':'), _) => {
            let length = run(text, |c| c.is_ascii_digit() || c == ':' || c == '.');
            (TimeTextField::Time(text[..length].to_owned()), length)
        }
        (Some(mark @ ('-' | '/' | '.')), Some(next)) if next.is_ascii_alphanumeric() => {
            let second = digits + 1;
            let is_number = mark == '.' && {
                let more = run(&text[second..], |c| c.is_ascii_digit());
                !text[second + more..].starts_with(['.'])
            };
            let length = if is_number {
                second + run(&text[second..], |c| c.is_ascii_digit())
            } else {
                date_length(text, mark)
            };
            let part = text[..length].to_ascii_lowercase();
            if is_number {
                (TimeTextField::Number(part), length)
            } else {
                (TimeTextField::Date(part), length)
            }
        }
        _ => (TimeTextField::Number(text[..digits].to_owned()), digits),
    }
}

/// Up to three parts separated by one mark.
fn date_length(text: &str, mark: char) -> usize {
    let mut at = run(text, |c| c.is_ascii_digit());
    for _ in 0..2 {
        let Some(after) = text[at..].strip_prefix(mark) else {
            break;
        };
        let is_word = after.starts_with(|c: char| c.is_ascii_alphabetic());
        let part = run(after, |c| {
            c.is_ascii_digit() || is_word && c.is_ascii_alphabetic()
        });
        if part == 0 {
            break;
        }
        at += 1 + part;
    }
    at
}

fn offset(text: &str) -> Option<(TimeTextField, usize)> {
    let space = 1 + run(&text[1..], char::is_whitespace);
    let length = run(&text[space..], |c| c.is_ascii_digit() || c == ':');
    let field = TimeTextField::Offset(format!("{}{}", &text[..1], &text[space..space + length]));
    (length > 0).then_some((field, space + length))
}

fn word(text: &str) -> (TimeTextField, usize) {
    let letters = run(text, |c| c.is_ascii_alphabetic());
    let mark = text[letters..].chars().next();
    let is_zone = matches!(mark, Some('/' | '_'));
    let is_date = matches!(mark, Some('-' | '.'))
        && text[letters + 1..].starts_with(|c: char| c.is_ascii_digit())
        && letters >= 3;
    if is_zone {
        let length = run(text, |c| c.is_ascii_alphanumeric() || "/_+-".contains(c));
        return (TimeTextField::Date(text[..length].to_owned()), length);
    }
    if is_date {
        let length = run(text, |c| c.is_ascii_alphanumeric() || Some(c) == mark);
        return (
            TimeTextField::Date(text[..length].to_ascii_lowercase()),
            length,
        );
    }
    let mut length = letters;
    // "Jul." may end with a period.
    if mark == Some('.') {
        length += 1;
    }
    (
        TimeTextField::Word(text[..letters].to_ascii_lowercase()),
        length,
    )
}
