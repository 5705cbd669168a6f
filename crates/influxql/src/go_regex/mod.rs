//! Go's regular expressions (RE2), which InfluxQL uses: checks them with Go's error texts, and
//! translates them for Rust's `regex`, which reads some of the syntax differently.
//!
//! In Go, `\d`, `\w`, `\s` and `\b` match only ASCII, a `{` that does not begin a repetition is a
//! literal, a class has no operators (`[a&&b]` contains an `&`), and `\Q…\E` and octal escapes
//! exist.
//!
//! Not checked: the size to which nested repetitions expand, the names of scripts in Unicode
//! classes, and groups with the same name. `(?<name>…)`, which only later versions of Go support,
//! is accepted. `(?U)` between an element and its repetition only affects what follows.

mod class;

use class::{escape, literal, perl_class, unicode_class};

/// Largest count of a repetition.
const REPEAT_MAX: u32 = 1000;

/// Deepest nesting of groups; Go allows as many.
const DEPTH_MAX: usize = 1000;

/// Why a text is not a regular expression, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{part}`")]
pub struct RegexError {
    code: &'static str,
    part: String,
}

impl RegexError {
    fn new(code: &'static str, part: impl Into<String>) -> Self {
        let part = part.into();
        Self { code, part }
    }
}

/// Translates a Go expression to one that Rust's `regex` (with Unicode on) matches in the same way.
///
/// # Errors
/// If Go would refuse it.
pub fn translate(source: &str) -> Result<String, RegexError> {
    let mut translation = Translation {
        source,
        rest: source,
        rust: String::with_capacity(source.len() + 8),
        flags: String::new(),
        has_atom: false,
        groups: 0,
    };
    translation.run()?;
    Ok(translation.rust)
}

struct Translation<'a> {
    source: &'a str,
    rest: &'a str,
    rust: String,
    /// Flags such as `(?i)` that were read but not written yet: a repetition of the element before
    /// them may follow, and Rust requires it to follow immediately.
    flags: String,
    /// Whether an element that can be repeated precedes the cursor.
    has_atom: bool,
    /// Open groups.
    groups: usize,
}

impl<'a> Translation<'a> {
    fn run(&mut self) -> Result<(), RegexError> {
        // The text since the previous repetition, if the last thing read was one.
        let mut repetition = None;
        while let Some(first) = self.rest.chars().next() {
            let previous = repetition.take();
            let repeats = match first {
                // The contents of the parenthesis decide there.
                '*' | '+' | '?' | '(' => true,
                '{' => counted(self.rest).is_some(),
                _ => false,
            };
            if !repeats {
                self.write_flags();
            }
            match first {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.take(1);
                    self.has_atom = false;
                }
                '*' | '+' | '?' => {
                    let before = self.rest;
                    self.repeat(1, previous)?;
                    repetition = Some(before);
                }
                '{' => {
                    let before = self.rest;
                    match counted(before) {
                        None => {
                            self.rust.push('\\');
                            self.take(1);
                            self.has_atom = true;
                        }
                        Some((len, valid)) => {
                            if !valid {
                                return Err(RegexError::new(
                                    "invalid repeat count",
                                    &before[..len],
                                ));
                            }
                            self.repeat(len, previous)?;
                            repetition = Some(before);
                        }
                    }
                }
                '[' => {
                    self.rest = class::bracketed(self.rest, &mut self.rust)?;
                    self.has_atom = true;
                }
                '\\' => self.backslash()?,
                '^' | '$' | '.' => {
                    self.take(1);
                    self.has_atom = true;
                }
                ch => {
                    literal(ch, &mut self.rust);
                    self.rest = &self.rest[ch.len_utf8()..];
                    self.has_atom = true;
                }
            }
        }
        self.write_flags();
        if self.groups > 0 {
            return Err(RegexError::new("missing closing )", self.source));
        }
        Ok(())
    }

    fn write_flags(&mut self) {
        self.rust.push_str(&self.flags);
        self.flags.clear();
    }

    /// Copies `len` bytes.
    fn take(&mut self, len: usize) {
        let (taken, rest) = self.rest.split_at(len);
        self.rust.push_str(taken);
        self.rest = rest;
    }

    fn open(&mut self) -> Result<(), RegexError> {
        if !self.rest.starts_with("(?") {
            self.write_flags();
            self.take(1);
            return self.enter();
        }
        let named = ["(?P<", "(?<"]
            .into_iter()
            .find(|begin| self.rest.starts_with(begin));
        if let Some(begin) = named.filter(|begin| self.rest.len() > begin.len()) {
            let Some(end) = self.rest.find('>') else {
                return Err(RegexError::new("invalid named capture", self.rest));
            };
            let name = &self.rest[begin.len()..end];
            let word = |ch: char| ch.is_ascii_alphanumeric() || ch == '_';
            if name.is_empty() || !name.chars().all(word) {
                let capture = &self.rest[..=end];
                return Err(RegexError::new("invalid named capture", capture));
            }
            self.write_flags();
            // A group's name does not change what matches, and Rust's names may not begin with a
            // digit.
            self.rust.push('(');
            self.rest = &self.rest[end + 1..];
            return self.enter();
        }
        let mut negated = None;
        for (index, ch) in self.rest.char_indices().skip(2) {
            match ch {
                'i' | 'm' | 's' | 'U' => negated = negated.map(|_| true),
                '-' if negated.is_none() => negated = Some(false),
                ':' | ')' if negated != Some(false) => {
                    let empty = index == 2 && ch == ')';
                    if empty {
                        self.rest = &self.rest[3..];
                        return Ok(());
                    }
                    if ch == ':' {
                        self.write_flags();
                        self.take(index + 1);
                        return self.enter();
                    }
                    let (flags, rest) = self.rest.split_at(index + 1);
                    self.flags.push_str(flags);
                    self.rest = rest;
                    return Ok(());
                }
                ch => {
                    let part = &self.rest[..index + ch.len_utf8()];
                    return Err(RegexError::new("invalid or unsupported Perl syntax", part));
                }
            }
        }
        let part = self.rest;
        Err(RegexError::new("invalid or unsupported Perl syntax", part))
    }

    fn enter(&mut self) -> Result<(), RegexError> {
        self.groups += 1;
        self.has_atom = false;
        if self.groups > DEPTH_MAX {
            return Err(RegexError::new("expression nests too deeply", self.source));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), RegexError> {
        if self.groups == 0 {
            return Err(RegexError::new("unexpected )", self.source));
        }
        self.take(1);
        self.groups -= 1;
        self.has_atom = true;
        Ok(())
    }

    /// Translates a repetition of `len` bytes and the `?` that makes it lazy. `previous` is the
    /// text of the repetition that immediately precedes it.
    fn repeat(&mut self, len: usize, previous: Option<&'a str>) -> Result<(), RegexError> {
        let before = self.rest;
        let lazy = usize::from(before[len..].starts_with('?'));
        let after = &before[len + lazy..];
        if let Some(previous) = previous {
            let part = &previous[..previous.len() - after.len()];
            return Err(RegexError::new("invalid nested repetition operator", part));
        }
        if !self.has_atom {
            let part = &before[..len + lazy];
            return Err(RegexError::new(
                "missing argument to repetition operator",
                part,
            ));
        }
        self.take(len + lazy);
        Ok(())
    }

    fn backslash(&mut self) -> Result<(), RegexError> {
        let had_atom = std::mem::replace(&mut self.has_atom, true);
        match self.rest.as_bytes().get(1) {
            Some(b'A' | b'z') => self.take(2),
            Some(b @ (b'b' | b'B')) => {
                self.rust
                    .push_str(if *b == b'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                self.rest = &self.rest[2..];
            }
            Some(b'C') => return Err(RegexError::new("invalid escape sequence", r"\C")),
            Some(b'Q') => {
                let quoted = &self.rest[2..];
                let (quoted, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
                quoted.chars().for_each(|ch| literal(ch, &mut self.rust));
                self.has_atom = had_atom || !quoted.is_empty();
                self.rest = rest;
            }
            _ => {
                if let Some(rest) = unicode_class(self.rest, &mut self.rust)? {
                    self.rest = rest;
                } else if let Some((class, rest)) = perl_class(self.rest) {
                    self.rust.push('[');
                    self.rust.push_str(class);
                    self.rust.push(']');
                    self.rest = rest;
                } else {
                    let (ch, rest) = escape(self.rest)?;
                    literal(ch, &mut self.rust);
                    self.rest = rest;
                }
            }
        }
        Ok(())
    }
}

/// The length in bytes of `{n}`, `{n,}` or `{n,m}` at the beginning of `text`, and whether its
/// numbers are valid. If anything else follows the brace, it is a literal.
fn counted(text: &str) -> Option<(usize, bool)> {
    let end = text.find('}')?;
    let inside = &text[1..end];
    let (min, max) = inside.split_once(',').unwrap_or((inside, inside));
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let plain = digits && (text.len() == 1 || !text.starts_with('0'));
        plain.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let min = number(min)?;
    let max = if max.is_empty() {
        None
    } else {
        Some(number(max)?)
    };
    let valid = min <= REPEAT_MAX && max.is_none_or(|max| max <= REPEAT_MAX && min <= max);
    Some((end + 1, valid))
}

#[cfg(test)]
mod tests;
