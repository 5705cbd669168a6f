//! Makes tokens of a text, one at a time. Whether `/` begins a regular expression depends on the
//! token before it.

use crate::error::{FluxError, FluxPosition};
use crate::literal::{FluxDuration, parse_time};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FluxToken {
    /// A name or a keyword.
    Word(String),
    Integer(i64),
    Float(f64),
    Duration(FluxDuration),
    Time(i64),
    Text(Vec<ScannedText>),
    Regex(String),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

impl FluxToken {
    /// The token as an error shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Duration(value) => value.to_string(),
            Self::Time(_) => "a time".to_owned(),
            Self::Text(_) => "a text".to_owned(),
            Self::Regex(text) => format!("/{text}/"),
            Self::Symbol(symbol) => (*symbol).to_owned(),
            Self::End => "the end".to_owned(),
        }
    }

    /// Whether an operand may end with it.
    fn ends_operand(&self) -> bool {
        match self {
            Self::Word(word) => !matches!(
                word.as_str(),
                "and" | "or" | "not" | "exists" | "if" | "then" | "else" | "return"
            ),
            Self::Symbol(symbol) => matches!(*symbol, ")" | "]" | "}"),
            Self::End => false,
            _ => true,
        }
    }
}

/// A part of a text literal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScannedText {
    Text(String),
    /// The bytes of an expression.
    Code(usize, usize),
}

/// Symbols, those of several characters first.
const SYMBOLS: [&str; 29] = [
    "|>", "=>", "<-", "==", "!=", "=~", "!~", "<=", ">=", "(", ")", "[", "]", "{", "}", ",", ":",
    ".", "+", "-", "*", "/", "%", "^", "<", ">", "=", "?", ";",
];

/// Reads tokens from a part of a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    /// The byte at which the next token is looked for.
    at: usize,
    end: usize,
    /// Whether the token before ends an operand, so that `/` divides.
    behind_operand: bool,
    /// A position, and the byte that has it.
    counted: (usize, FluxPosition),
}

impl<'a> Scanner<'a> {
    /// Reads the bytes from `at` to `end`.
    pub(crate) fn new(text: &'a str, at: usize, end: usize) -> Self {
        let begin = FluxPosition { line: 1, column: 1 };
        Self {
            text,
            at,
            end,
            behind_operand: false,
            counted: (0, begin),
        }
    }

    /// The position of a byte; those asked for only grow.
    fn position(&mut self, byte: usize) -> FluxPosition {
        let (from, mut position) = self.counted;
        for char in self.text.get(from..byte).unwrap_or_default().chars() {
            if char == '\n' {
                position.line += 1;
                position.column = 1;
            } else {
                position.column += 1;
            }
        }
        if byte >= from {
            self.counted = (byte, position);
        }
        position
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// The next token, where it begins, and where it ends.
    pub(crate) fn next(&mut self) -> Result<(FluxToken, FluxPosition), FluxError> {
        self.skip_space();
        let at = self.position(self.at);
        let token = self.token(at)?;
        self.behind_operand = token.ends_operand();
        Ok((token, at))
    }

    fn token(&mut self, at: FluxPosition) -> Result<FluxToken, FluxError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(FluxToken::End);
        };
        if first == '"' {
            return self.text_literal(at);
        }
        if first == '/' && !self.behind_operand {
            return self.regex(at);
        }
        if first.is_ascii_digit() {
            return self.number(at);
        }
        if first == '_' || first.is_alphabetic() {
            let is_word = |char: char| char == '_' || char.is_alphanumeric();
            let length = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
            self.at += length;
            return Ok(FluxToken::Word(rest[..length].to_owned()));
        }
        let is_fraction = first == '.' && rest[1..].starts_with(|char: char| char.is_ascii_digit());
        if is_fraction {
            return self.number(at);
        }
        for symbol in SYMBOLS {
            if rest.starts_with(symbol) {
                self.at += symbol.len();
                return Ok(FluxToken::Symbol(symbol));
            }
        }
        Err(FluxError::new(
            at,
            format!("unexpected character {first:?}"),
        ))
    }

    fn number(&mut self, at: FluxPosition) -> Result<FluxToken, FluxError> {
        let rest = self.rest();
        let wrong = |what: &str, text: &str| {
            let text: String = text.chars().take(40).collect();
            Err(FluxError::new(at, format!("{text} is no {what}")))
        };
        let is_time = |char: char| matches!(char, '-' | ':' | '.' | '+' | 'T' | 'Z');
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let has_dash = |at: usize| rest.as_bytes().get(at) == Some(&b'-');
        if digits == 4 && has_dash(4) && has_dash(7) {
            let mut length = 10.min(rest.len());
            if rest.as_bytes().get(10) == Some(&b'T') {
                let stop = |char: char| !char.is_ascii_digit() && !is_time(char);
                length = rest.find(stop).unwrap_or(rest.len());
            }
            if let Some(time) = rest.get(..length).and_then(parse_time) {
                self.at += length;
                return Ok(FluxToken::Time(time));
            }
            return wrong("time", rest.get(..length).unwrap_or("it"));
        }
        let behind = &rest[digits..];
        let fraction = behind.strip_prefix('.').map(|digits| {
            let digits = digits.bytes().take_while(u8::is_ascii_digit);
            digits.count()
        });
        if let Some(fraction) = fraction.filter(|count| *count > 0 || digits > 0) {
            let length = digits + 1 + fraction;
            self.at += length;
            return match rest[..length].parse() {
                Ok(value) => Ok(FluxToken::Float(value)),
                Err(_) => wrong("number", &rest[..length]),
            };
        }
        if behind.starts_with(|char: char| char.is_ascii_alphabetic() || char == 'µ' || char == 'μ')
        {
            let stop = |char: char| !char.is_alphanumeric();
            let length = rest.find(stop).unwrap_or(rest.len());
            self.at += length;
            return match FluxDuration::parse(&rest[..length]) {
                Some(value) => Ok(FluxToken::Duration(value)),
                None => wrong("duration", &rest[..length]),
            };
        }
        self.at += digits;
        match rest[..digits].parse() {
            Ok(value) => Ok(FluxToken::Integer(value)),
            Err(_) => wrong("integer of 64 bits", &rest[..digits]),
        }
    }

    fn regex(&mut self, at: FluxPosition) -> Result<FluxToken, FluxError> {
        let mut source = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((place, char)) = chars.next() {
            match char {
                '/' => {
                    self.at += place + 1;
                    return Ok(FluxToken::Regex(source));
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, '/')) => source.push('/'),
                    Some((_, '\n')) | None => break,
                    Some((_, other)) => source.extend(['\\', other]),
                },
                char => source.push(char),
            }
        }
        Err(FluxError::new(
            at,
            "a regular expression has no end: close it with /",
        ))
    }

    fn text_literal(&mut self, at: FluxPosition) -> Result<FluxToken, FluxError> {
        let rest = self.rest();
        let no_end = || FluxError::new(at, "a text has no end: close it with \"");
        let (mut parts, mut bytes) = (Vec::new(), Vec::new());
        let mut chars = rest.char_indices().skip(1).peekable();
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes);
            text.map_err(|_| FluxError::new(at, "the bytes of a text are not UTF-8"))
        };
        while let Some((place, char)) = chars.next() {
            match char {
                '"' => {
                    self.at += place + 1;
                    if !bytes.is_empty() || parts.is_empty() {
                        parts.push(ScannedText::Text(text(bytes)?));
                    }
                    return Ok(FluxToken::Text(parts));
                }
                '\\' => match chars.next().ok_or_else(no_end)?.1 {
                    'n' => bytes.push(b'\n'),
                    'r' => bytes.push(b'\r'),
                    't' => bytes.push(b'\t'),
                    'x' => {
                        let mut digit = || chars.next().and_then(|(_, char)| char.to_digit(16));
                        let (Some(high), Some(low)) = (digit(), digit()) else {
                            let message = "\\x is followed by two hexadecimal digits";
                            return Err(FluxError::new(at, message));
                        };
                        bytes.push((high * 16 + low) as u8);
                    }
                    other @ ('"' | '\\' | '$') => bytes.push(other as u8),
                    other => {
                        let message = format!("a text has no escape \\{other}");
                        return Err(FluxError::new(at, message));
                    }
                },
                '$' if rest[place + 1..].starts_with('{') => {
                    let begin = place + 2;
                    let length = code_length(&rest[begin..]).ok_or_else(no_end)?;
                    if !bytes.is_empty() {
                        parts.push(ScannedText::Text(text(std::mem::take(&mut bytes))?));
                    }
                    parts.push(ScannedText::Code(self.at + begin, self.at + begin + length));
                    while chars.next_if(|(at, _)| *at <= begin + length).is_some() {}
                }
                char => {
                    let mut buffer = [0; 4];
                    bytes.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes());
                }
            }
        }
        Err(no_end())
    }
}

/// The bytes before the `}` that closes an expression in a text.
fn code_length(text: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for (place, char) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match char {
            '\\' => is_escaped = true,
            '"' => in_text = !in_text,
            '{' if !in_text => depth += 1,
            '}' if !in_text && depth == 0 => return Some(place),
            '}' if !in_text => depth -= 1,
            _ => {}
        }
    }
    None
}
