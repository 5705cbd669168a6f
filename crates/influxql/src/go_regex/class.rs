//! Classes of characters and escapes.

use super::RegexError;

/// Names that are allowed in `[[:name:]]`, with or without `^`.
const POSIX_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Writes a character that stands for itself in every position.
pub(super) fn literal(ch: char, rust: &mut String) {
    if r"\.+*?()|[]{}^$#&-~".contains(ch) {
        rust.push('\\');
    }
    rust.push(ch);
}

/// Translates `[…]` at the beginning of `source`; returns the rest.
pub(super) fn bracketed<'a>(source: &'a str, rust: &mut String) -> Result<&'a str, RegexError> {
    let mut rest = &source[1..];
    rust.push('[');
    if let Some(behind) = rest.strip_prefix('^') {
        rust.push('^');
        rest = behind;
    }
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if rest.starts_with("[:")
            && let Some(end) = rest.get(2..).and_then(|rest| rest.find(":]"))
        {
            let (named, behind) = rest.split_at(end + 4);
            let name = &named[2..named.len() - 2];
            if !POSIX_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(RegexError::new("invalid character class range", named));
            }
            rust.push_str(named);
            rest = behind;
            continue;
        }
        if let Some(behind) = unicode_class(rest, rust)? {
            rest = behind;
            continue;
        }
        if let Some((class, behind)) = perl_class(rest) {
            rust.push('[');
            rust.push_str(class);
            rust.push(']');
            rest = behind;
            continue;
        }
        let range = rest;
        let (low, behind) = member(rest, source)?;
        rest = behind;
        literal(low, rust);
        if let Some(behind) = rest.strip_prefix('-')
            && !behind.is_empty()
            && !behind.starts_with(']')
        {
            let (high, behind) = member(behind, source)?;
            rest = behind;
            if high < low {
                let part = &range[..range.len() - rest.len()];
                return Err(RegexError::new("invalid character class range", part));
            }
            rust.push('-');
            literal(high, rust);
        }
    }
    rust.push(']');
    Ok(&rest[1..])
}

/// One character of a class, and the rest.
fn member<'a>(rest: &'a str, class: &str) -> Result<(char, &'a str), RegexError> {
    match rest.chars().next() {
        None => Err(RegexError::new("missing closing ]", class)),
        Some('\\') => escape(rest),
        Some(ch) => Ok((ch, &rest[ch.len_utf8()..])),
    }
}

/// The contents of `\d`, `\w`, `\s` and their negations, for use in brackets.
pub(super) fn perl_class(rest: &str) -> Option<(&'static str, &str)> {
    let class = match rest.get(..2)? {
        r"\d" => "0-9",
        r"\D" => "^0-9",
        r"\s" => r"\t\n\x0C\r ",
        r"\S" => r"^\t\n\x0C\r ",
        r"\w" => "0-9A-Za-z_",
        r"\W" => "^0-9A-Za-z_",
        _ => return None,
    };
    Some((class, &rest[2..]))
}

/// `\pN` or `\p{Name}`, if that is next.
pub(super) fn unicode_class<'a>(
    source: &'a str,
    rust: &mut String,
) -> Result<Option<&'a str>, RegexError> {
    let Some(name) = source
        .strip_prefix(r"\p")
        .or_else(|| source.strip_prefix(r"\P"))
    else {
        return Ok(None);
    };
    let len = match name.chars().next() {
        Some('{') => match name.find('}') {
            Some(end) => end + 1,
            None => return Err(RegexError::new("invalid character class range", source)),
        },
        first => first.map_or(0, char::len_utf8),
    };
    let (class, rest) = source.split_at(2 + len);
    let name = class[2..].trim_start_matches('{').trim_end_matches('}');
    let name = name.strip_prefix('^').unwrap_or(name);
    if !is_class_name(name) {
        return Err(RegexError::new("invalid character class range", class));
    }
    let negated = class.starts_with(r"\P") != class[2..].starts_with("{^");
    rust.push_str(if negated { r"\P{" } else { r"\p{" });
    rust.push_str(name);
    rust.push('}');
    Ok(Some(rest))
}

/// Whether `name` is a general category, or may be a script.
fn is_class_name(name: &str) -> bool {
    const CATEGORIES: &str = "Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc \
                              Sk Sm So Zl Zp Zs";
    match name.len() {
        0 => false,
        1 => "CLMNPSZ".contains(name),
        2 => CATEGORIES.split(' ').any(|category| category == name),
        _ => name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'),
    }
}

/// The character denoted by an escape at the beginning of `source`, and the rest.
pub(super) fn escape(source: &str) -> Result<(char, &str), RegexError> {
    let mut chars = source[1..].chars();
    let Some(first) = chars.next() else {
        return Err(RegexError::new(
            "trailing backslash at end of expression",
            "",
        ));
    };
    let found = match first {
        '0'..='7' => octal(first, &mut chars),
        'x' => hexadecimal(&mut chars),
        'a' => Some('\x07'),
        'f' => Some('\x0C'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0B'),
        ch if ch.is_ascii() && !ch.is_ascii_alphanumeric() => Some(ch),
        _ => None,
    };
    let rest = chars.as_str();
    let part = &source[..source.len() - rest.len()];
    let error = || RegexError::new("invalid escape sequence", part);
    found.map(|ch| (ch, rest)).ok_or_else(error)
}

/// Up to three octal digits. A single digit other than zero would be a reference to a group.
fn octal(first: char, chars: &mut std::str::Chars<'_>) -> Option<char> {
    let next_digit = |chars: &std::str::Chars<'_>| chars.clone().next()?.to_digit(8);
    let mut value = first.to_digit(8)?;
    if value > 0 {
        next_digit(chars)?;
    }
    for _ in 0..2 {
        let Some(digit) = next_digit(chars) else {
            break;
        };
        chars.next();
        value = value * 8 + digit;
    }
    char::from_u32(value)
}

/// Two hexadecimal digits, or any number of them in braces.
fn hexadecimal(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let first = chars.next()?;
    if first != '{' {
        let high = first.to_digit(16)?;
        let low = chars.next()?.to_digit(16)?;
        return char::from_u32(high * 16 + low);
    }
    let mut value = None;
    loop {
        let ch = chars.next()?;
        if ch == '}' {
            return char::from_u32(value?);
        }
        let longer = value.unwrap_or(0) * 16 + ch.to_digit(16)?;
        value = Some(longer).filter(|value| *value <= u32::from(char::MAX));
        value?;
    }
}
