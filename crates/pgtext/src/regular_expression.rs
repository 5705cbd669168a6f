//! PostgreSQL's regular expressions and their options: translates them to those of the crate `regex`.
//!
//! The language is that of "advanced regular expressions" (PostgreSQL 15, section 9.7.3). A finite
//! automaton has no back references and does not look around, so these are refused.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// The largest number of repetitions, as in PostgreSQL.
const REPETITIONS_MAX: u32 = 255;

/// Why an expression or its options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegularExpressionError {
    /// An option does not exist (SQLSTATE `22023`).
    #[error("invalid regular expression option: \"{0}\"")]
    Option(char),
    /// The expression is wrong (`2201B`).
    #[error("invalid regular expression: {0}")]
    Invalid(&'static str),
    /// A part of the language that is missing (`0A000`).
    #[error("regular expressions have no {0}")]
    Missing(&'static str),
}

impl RegularExpressionError {
    /// Its SQLSTATE.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Option(_) => "22023",
            Self::Invalid(_) => "2201B",
            Self::Missing(_) => "0A000",
        }
    }
}

use RegularExpressionError::{Invalid, Missing};

/// The options of a match, `'gi'` and the like.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a letter that stands there or does not"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchOptions {
    /// All matches, not only the first one (`g`).
    pub is_global: bool,
    ignores_case: bool,
    /// The expression is a plain text (`q`).
    is_literal: bool,
    /// Blanks and comments do not count (`x`).
    is_expanded: bool,
    /// Points and negated brackets match no line break (`n`, `p`).
    excludes_breaks: bool,
    /// `^` and `$` match at line breaks, too (`n`, `w`).
    has_line_anchors: bool,
}

impl MatchOptions {
    /// Reads options.
    ///
    /// # Errors
    /// If an option does not exist.
    pub fn parse(options: &str) -> Result<Self, RegularExpressionError> {
        let mut read = Self::default();
        for option in options.chars() {
            match option {
                'g' => read.is_global = true,
                other => read.add(other)?,
            }
        }
        Ok(read)
    }

    /// Adds an option that may also stand at the start of an expression.
    fn add(&mut self, option: char) -> Result<(), RegularExpressionError> {
        match option {
            'b' => return Err(Missing("basic syntax (option b)")),
            // Extended expressions are read as advanced ones.
            'e' | 't' => {}
            'i' => self.ignores_case = true,
            'c' => self.ignores_case = false,
            'q' => self.is_literal = true,
            'x' => self.is_expanded = true,
            'm' | 'n' => (self.excludes_breaks, self.has_line_anchors) = (true, true),
            'p' => (self.excludes_breaks, self.has_line_anchors) = (true, false),
            's' => (self.excludes_breaks, self.has_line_anchors) = (false, false),
            'w' => (self.excludes_breaks, self.has_line_anchors) = (false, true),
            other => return Err(RegularExpressionError::Option(other)),
        }
        Ok(())
    }
}

/// The expression of the crate `regex` that matches as PostgreSQL's `pattern` does.
///
/// # Errors
/// If the expression uses what is missing, or is wrong. Compiling it finds other errors.
pub fn regular_expression(
    pattern: &str,
    options: MatchOptions,
) -> Result<String, RegularExpressionError> {
    let (pattern, options) = without_director(pattern, options)?;
    let mut flags = String::from("(?");
    if !options.excludes_breaks {
        flags.push('s');
    }
    if options.has_line_anchors {
        flags.push('m');
    }
    if options.ignores_case {
        flags.push('i');
    }
    flags.push(')');
    let mut out = if flags == "(?)" { String::new() } else { flags };
    if options.is_literal {
        pattern.chars().for_each(|c| push_literal(&mut out, c));
        return Ok(out);
    }
    PatternTranslation {
        rest: pattern.chars().peekable(),
        options,
        out,
        can_repeat: false,
    }
    .run()
}

/// Reads what an expression says about itself: `***=`, `***:` and `(?i)`.
fn without_director(
    pattern: &str,
    mut options: MatchOptions,
) -> Result<(&str, MatchOptions), RegularExpressionError> {
    if options.is_literal {
        return Ok((pattern, options));
    }
    if let Some(text) = pattern.strip_prefix("***=") {
        options.is_literal = true;
        return Ok((text, options));
    }
    let pattern = pattern.strip_prefix("***:").unwrap_or(pattern);
    let Some((letters, rest)) = pattern
        .strip_prefix("(?")
        .and_then(|head| head.split_once(')'))
    else {
        return Ok((pattern, options));
    };
    if letters.is_empty() || !letters.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Ok((pattern, options));
    }
    for letter in letters.chars() {
        options.add(letter).map_err(|error| match error {
            RegularExpressionError::Option(_) => Invalid("invalid embedded option"),
            other => other,
        })?;
    }
    Ok((rest, options))
}

/// A character that stands for itself.
fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() && c != '_' && c != '<' && c != '>' {
        out.push('\\');
    }
    out.push(c);
}

struct PatternTranslation<'a> {
    rest: Peekable<Chars<'a>>,
    options: MatchOptions,
    out: String,
    /// Whether a repetition may follow.
    can_repeat: bool,
}

impl PatternTranslation<'_> {
    fn run(mut self) -> Result<String, RegularExpressionError> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.bracket()?,
                '(' => self.open()?,
                '*' | '+' | '?' => self.repetition(&c.to_string())?,
                '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                    let bounds = self.bounds()?;
                    self.repetition(&bounds)?;
                }
                '^' | '$' | '|' => {
                    self.out.push(c);
                    self.can_repeat = false;
                }
                ')' | '.' => self.atom(c),
                '#' if self.options.is_expanded => {
                    while self.rest.next_if(|c| *c != '\n').is_some() {}
                }
                c if self.options.is_expanded && c.is_whitespace() => {}
                other => {
                    push_literal(&mut self.out, other);
                    self.can_repeat = true;
                }
            }
        }
        Ok(self.out)
    }

    fn atom(&mut self, c: char) {
        self.out.push(c);
        self.can_repeat = true;
    }

    fn repetition(&mut self, text: &str) -> Result<(), RegularExpressionError> {
        if !self.can_repeat {
            return Err(Invalid("quantifier operand invalid"));
        }
        self.out.push_str(text);
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        self.can_repeat = false;
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,5}`, after the brace.
    fn bounds(&mut self) -> Result<String, RegularExpressionError> {
        let mut text = String::from("{");
        let least = self
            .count()?
            .ok_or(Invalid("invalid repetition count(s)"))?;
        let _ = write!(text, "{least}");
        if self.rest.next_if_eq(&',').is_some() {
            text.push(',');
            if let Some(most) = self.count()? {
                if most < least {
                    return Err(Invalid("invalid repetition count(s)"));
                }
                let _ = write!(text, "{most}");
            }
        }
        if self.rest.next() != Some('}') {
            return Err(Invalid("invalid repetition count(s)"));
        }
        text.push('}');
        Ok(text)
    }

    fn count(&mut self) -> Result<Option<u32>, RegularExpressionError> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        if digits.is_empty() {
            return Ok(None);
        }
        let count = digits
            .parse()
            .ok()
            .filter(|count| *count <= REPETITIONS_MAX);
        count
            .map(Some)
            .ok_or(Invalid("invalid repetition count(s)"))
    }

    /// What follows an opening parenthesis.
    fn open(&mut self) -> Result<(), RegularExpressionError> {
        self.can_repeat = false;
        if self.rest.next_if_eq(&'?').is_none() {
            self.out.push('(');
            return Ok(());
        }
        match self.rest.next() {
            Some(':') => self.out.push_str("(?:"),
            Some('=' | '!' | '<') => return Err(Missing("look-around constraints")),
            Some('#') => {
                if self.rest.by_ref().all(|c| c != ')') {
                    return Err(Invalid("parentheses () not balanced"));
                }
                self.can_repeat = true;
            }
            _ => return Err(Invalid("quantifier operand invalid")),
        }
        Ok(())
    }

    /// What follows a backslash outside of brackets.
    fn escape(&mut self) -> Result<(), RegularExpressionError> {
        let Some(&c) = self.rest.peek() else {
            return Err(Invalid("invalid escape \\ sequence"));
        };
        let anchor = match c {
            'A' => "\\A",
            'Z' => "\\z",
            'm' => "\\b{start}",
            'M' => "\\b{end}",
            'y' => "\\b",
            'Y' => "\\B",
            _ => "",
        };
        if !anchor.is_empty() {
            self.rest.next();
            self.out.push_str(anchor);
            self.can_repeat = false;
            return Ok(());
        }
        if matches!(c, 'd' | 's' | 'w' | 'D' | 'S' | 'W') {
            self.rest.next();
            self.out.push('\\');
            self.out.push(c);
        } else if matches!(c, '1'..='9') {
            return Err(Missing("back references"));
        } else {
            let literal = self.escaped_character()?;
            push_literal(&mut self.out, literal);
        }
        self.can_repeat = true;
        Ok(())
    }

    /// The character that an escape names, after the backslash.
    fn escaped_character(&mut self) -> Result<char, RegularExpressionError> {
        const WRONG: RegularExpressionError = Invalid("invalid escape \\ sequence");
        let c = self.rest.next().ok_or(WRONG)?;
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'c' => {
                let letter = self.rest.next().ok_or(WRONG)?;
                char::from_u32(u32::from(letter) & 0x1f).ok_or(WRONG)?
            }
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => self.code(16, 4, 4)?,
            'U' => self.code(16, 8, 8)?,
            'x' => self.code(16, 1, 8)?,
            '0' => self.code(8, 0, 2)?,
            other if other.is_alphanumeric() => return Err(WRONG),
            other => other,
        })
    }

    /// A character by its number.
    fn code(
        &mut self,
        radix: u32,
        least: usize,
        most: usize,
    ) -> Result<char, RegularExpressionError> {
        let (mut code, mut digits) = (0_u32, 0);
        while digits < most
            && let Some(digit) = self.rest.next_if(|c| c.is_digit(radix))
        {
            code = code * radix + digit.to_digit(radix).unwrap_or(0);
            digits += 1;
        }
        let found = char::from_u32(code).filter(|_| digits >= least);
        found.ok_or(Invalid("invalid escape \\ sequence"))
    }

    /// `[…]`, after the bracket.
    fn bracket(&mut self) -> Result<(), RegularExpressionError> {
        const OPEN: RegularExpressionError = Invalid("brackets [] not balanced");
        for (word, anchor) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            let mut ahead = self.rest.clone();
            if word.chars().all(|c| ahead.next() == Some(c)) {
                self.rest = ahead;
                self.out.push_str(anchor);
                self.can_repeat = false;
                return Ok(());
            }
        }
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
            if self.options.excludes_breaks {
                self.out.push_str("\\n");
            }
        }
        let mut is_first = true;
        loop {
            let c = self.rest.next().ok_or(OPEN)?;
            match c {
                ']' if !is_first => break,
                '[' if self.rest.peek() == Some(&':') => self.class()?,
                '\\' if self
                    .rest
                    .peek()
                    .is_some_and(|c| matches!(c, 'd' | 's' | 'w' | 'D' | 'S' | 'W')) =>
                {
                    self.out.push('\\');
                    self.out.extend(self.rest.next());
                }
                c => self.range(c)?,
            }
            is_first = false;
        }
        self.out.push(']');
        self.can_repeat = true;
        Ok(())
    }

    /// `[:alpha:]` within brackets, after the bracket.
    fn class(&mut self) -> Result<(), RegularExpressionError> {
        self.rest.next();
        let mut name = String::new();
        while let Some(letter) = self.rest.next_if(char::is_ascii_alphabetic) {
            name.push(letter);
        }
        let is_closed = self.rest.next() == Some(':') && self.rest.next() == Some(']');
        // Classes of the crate `regex` are those of ASCII.
        let class = match name.as_str() {
            "alpha" => "\\p{Alphabetic}",
            "lower" => "\\p{Lowercase}",
            "upper" => "\\p{Uppercase}",
            "alnum" => "\\p{Alphabetic}\\p{Nd}",
            "digit" => "0-9",
            "xdigit" => "0-9A-Fa-f",
            "space" => "\\s",
            "blank" => " \\t",
            "cntrl" => "\\p{Cc}",
            "punct" => "\\p{P}\\p{S}",
            "graph" => "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}",
            "print" => "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S} ",
            "word" => "\\w",
            _ => return Err(Invalid("invalid character class")),
        };
        if !is_closed {
            return Err(Invalid("invalid character class"));
        }
        self.out.push_str(class);
        Ok(())
    }

    /// A character within brackets, or a range that begins with it.
    fn range(&mut self, first: char) -> Result<(), RegularExpressionError> {
        let low = self.element(first)?;
        push_literal(&mut self.out, low);
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || ahead.next().is_none_or(|c| c == ']') {
            return Ok(());
        }
        self.rest.next();
        let Some(next) = self.rest.next() else {
            return Err(Invalid("brackets [] not balanced"));
        };
        let high = self.element(next)?;
        if high < low {
            return Err(Invalid("invalid character range"));
        }
        self.out.push('-');
        push_literal(&mut self.out, high);
        Ok(())
    }

    /// A character within brackets: plain, escaped, or `[.x.]` and `[=x=]`.
    fn element(&mut self, first: char) -> Result<char, RegularExpressionError> {
        match first {
            '\\' => self.escaped_character(),
            '[' => match self.rest.next_if(|c| matches!(c, '.' | '=')) {
                None => Ok('['),
                Some(mark) => {
                    let element = self.rest.next();
                    let is_closed = self.rest.next() == Some(mark) && self.rest.next() == Some(']');
                    element
                        .filter(|_| is_closed)
                        .ok_or(Invalid("invalid collating element"))
                }
            },
            other => Ok(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(pattern: &str, options: &str) -> Result<String, RegularExpressionError> {
        regular_expression(pattern, MatchOptions::parse(options)?)
    }

    /// Whether a pattern matches a text, according to PostgreSQL 15.
    #[test]
    fn patterns_match_as_in_postgresql() {
        for (pattern, options, text, matches) in [
            ("a.b", "", "a\nb", true),
            ("a.b", "n", "a\nb", false),
            ("^b", "", "a\nb", false),
            ("^b", "n", "a\nb", true),
            ("^b", "w", "a\nb", true),
            ("a.b", "p", "a\nb", false),
            ("[^x]b", "n", "a\nb", false),
            ("a b # c", "x", "ab", true),
            ("a.c", "q", "abc", false),
            ("***=a.c", "", "a.c", true),
            ("(?i)ABC", "", "abc", true),
            (r"\mfoo\M", "", "a foo b", true),
            (r"\yfoo\y", "", "afoo", false),
            ("[[:<:]]foo", "", "a foo", true),
            (r"[\d]+x", "", "12x", true),
            ("[]a]", "", "]", true),
            ("[a-c&&b]", "", "&", true),
            ("[[:alpha:]]", "", "ä", true),
            ("a{2,3}", "", "aa", true),
            ("a{", "", "a{", true),
            (r"\x41\u0042", "", "AB", true),
            ("(?#note)a", "", "a", true),
        ] {
            let translated = translated(pattern, options).unwrap();
            let regex = regex::Regex::new(&translated).unwrap();
            assert_eq!(regex.is_match(text), matches, "{pattern} as {translated}");
        }
    }

    #[test]
    fn wrong_patterns_are_refused() {
        for (pattern, options, sqlstate) in [
            ("*a", "", "2201B"),
            ("a**", "", "2201B"),
            ("a{300}", "", "2201B"),
            ("[a", "", "2201B"),
            ("[z-a]", "", "2201B"),
            (r"\q", "", "2201B"),
            (r"(a)\1", "", "0A000"),
            ("a(?=b)", "", "0A000"),
            ("a", "z", "22023"),
        ] {
            let error = translated(pattern, options).unwrap_err();
            assert_eq!(error.sqlstate(), sqlstate, "{pattern}");
        }
    }
}
