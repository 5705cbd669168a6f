//! The replacement of `regexp_replace`: `\1` to `\9` and `\&` stand for parts of the match.

use super::matcher::{GroupSpans, Matcher};

enum ReplacementPart {
    Text(String),
    Group(usize),
}

/// A parsed replacement.
pub(super) struct Replacement {
    parts: Vec<ReplacementPart>,
}

impl Replacement {
    pub(super) fn parse(written: &str) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = written.chars().peekable();
        while let Some(c) = rest.next() {
            let group = match (c, rest.peek()) {
                ('\\', Some('&')) => Some(0),
                ('\\', Some(digit @ '1'..='9')) => Some(*digit as usize - '0' as usize),
                ('\\', Some('\\')) => {
                    rest.next();
                    None
                }
                _ => None,
            };
            match group {
                Some(group) => {
                    rest.next();
                    parts.push(ReplacementPart::Text(std::mem::take(&mut text)));
                    parts.push(ReplacementPart::Group(group));
                }
                None => text.push(c),
            }
        }
        parts.push(ReplacementPart::Text(text));
        Self { parts }
    }

    fn write(&self, text: &str, spans: &GroupSpans, out: &mut String) {
        for part in &self.parts {
            match part {
                ReplacementPart::Text(text) => out.push_str(text),
                ReplacementPart::Group(group) => {
                    if let Some(Some((start, end))) = spans.get(*group) {
                        out.push_str(&text[*start..*end]);
                    }
                }
            }
        }
    }

    /// The text with matches replaced: the `nth` from `from` on, or all of them if that is 0.
    pub(super) fn replace(
        &self,
        matcher: &mut Matcher,
        text: &str,
        from: usize,
        nth: usize,
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for (at, spans) in matcher.matches(text, from).enumerate() {
            if nth > 0 && at + 1 != nth {
                continue;
            }
            if let Some(Some((start, end))) = spans.first().copied() {
                out.push_str(&text[copied..start]);
                self.write(text, &spans, &mut out);
                copied = end;
            }
            if nth > 0 {
                break;
            }
        }
        out.push_str(&text[copied..]);
        out
    }
}
