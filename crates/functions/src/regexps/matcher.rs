//! A compiled expression, and its matches in a text.
//!
//! Of the matches that begin first, PostgreSQL takes the longest, or the shortest if the first repetition is
//! not greedy; the crate `regex` takes that of the first alternative. Where the two may differ, an automaton
//! finds the end, and a second search up to there finds the groups.

use crate::interrupt;
use crate::refusal::refused;
use datafusion::common::DataFusionError;
use marigram_pgtext::{MatchOptions, RegularExpressionError, regular_expression};
use regex::{Captures, Regex};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};

/// The bounds of a match and of its groups, bytes.
pub(super) type GroupSpans = Vec<Option<(usize, usize)>>;

/// See the module documentation.
pub(super) struct Matcher {
    regex: Regex,
    preferred: Option<PreferredMatch>,
    /// Whether all matches count.
    pub(super) is_global: bool,
}

/// Finds the match at a place whose length PostgreSQL prefers.
struct PreferredMatch {
    is_short: bool,
    automaton: DFA,
    cache: Cache,
    /// The expression, which must match up to the end.
    whole: Regex,
}

fn invalid(error: &impl std::fmt::Display) -> DataFusionError {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default();
    let reason = reason.trim_start_matches("error: ");
    refused("2201B", format!("invalid regular expression: {reason}"))
}

impl PreferredMatch {
    /// The finder for an expression; `None` if its first match is the right one, or an automaton cannot tell.
    fn new(expression: &str) -> Option<Self> {
        // A group of flags, `(?s)`, is no repetition.
        let flags = usize::from(expression.starts_with("(?"));
        let repetitions = expression.matches(['*', '+', '?', '{']).count();
        if !expression.contains('|') && repetitions < 2 + flags {
            return None;
        }
        let config = DFA::config().match_kind(MatchKind::All);
        let automaton = DFA::builder()
            .configure(config.unicode_word_boundary(true))
            .build(expression)
            .ok()?;
        let cache = automaton.create_cache();
        let whole = Regex::new(&format!(r"(?:{expression})\z")).ok()?;
        Some(Self {
            is_short: prefers_shortest(expression),
            automaton,
            cache,
            whole,
        })
    }

    /// The end of the preferred match that begins at a place.
    fn end(&mut self, text: &str, start: usize) -> Option<usize> {
        let input = Input::new(text)
            .range(start..)
            .anchored(Anchored::Yes)
            .earliest(self.is_short);
        let found = self.automaton.try_search_fwd(&mut self.cache, &input);
        found.ok().flatten().map(|end| end.offset())
    }
}

/// Whether PostgreSQL takes the shortest match: the first repetition says so, unless there are alternatives.
fn prefers_shortest(expression: &str) -> bool {
    let mut rest = expression.chars().peekable();
    let mut first = None;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                let is_named = matches!(rest.next(), Some('p' | 'P' | 'b'));
                if is_named && rest.peek() == Some(&'{') {
                    while rest.next().is_some_and(|c| c != '}') {}
                }
            }
            '[' => {
                while let Some(c) = rest.next().filter(|c| *c != ']') {
                    if c == '\\' {
                        rest.next();
                    }
                }
            }
            '(' => {
                rest.next_if_eq(&'?');
            }
            '|' => return false,
            '*' | '+' | '?' => {
                first.get_or_insert(rest.next_if_eq(&'?').is_some());
            }
            '{' => {
                let mut is_range = false;
                while let Some(c) = rest.next().filter(|c| *c != '}') {
                    is_range |= c == ',';
                }
                let is_lazy = rest.next_if_eq(&'?').is_some();
                if is_range {
                    first.get_or_insert(is_lazy);
                }
            }
            _ => {}
        }
    }
    first == Some(true)
}

/// The expression of the crate `regex`, and whether all matches count.
fn translated(pattern: &str, options: &str) -> Result<(String, bool), RegularExpressionError> {
    let options = MatchOptions::parse(options)?;
    let expression = regular_expression(pattern, options)?;
    Ok((expression, options.is_global))
}

fn spans(captures: &Captures) -> GroupSpans {
    let groups = captures.iter();
    groups
        .map(|group| group.map(|group| (group.start(), group.end())))
        .collect()
}

impl Matcher {
    /// Compiles an expression with options.
    ///
    /// # Errors
    /// 2201B, 22023 and 0A000.
    pub(super) fn new(pattern: &str, options: &str) -> Result<Self, DataFusionError> {
        let (expression, is_global) = translated(pattern, options)
            .map_err(|error| refused(error.sqlstate(), error.to_string()))?;
        let regex = Regex::new(&expression).map_err(|error| invalid(&error))?;
        Ok(Self {
            regex,
            preferred: PreferredMatch::new(&expression),
            is_global,
        })
    }

    /// The number of groups in parentheses.
    pub(super) fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// The first match from a place on, with its groups.
    pub(super) fn find(&mut self, text: &str, from: usize) -> Option<GroupSpans> {
        let first = self.regex.captures_at(text, from)?;
        let whole = first.get(0)?;
        if let Some(preferred) = &mut self.preferred
            && let Some(end) = preferred.end(text, whole.start())
            && end != whole.end()
        {
            let captures = preferred.whole.captures_at(&text[..end], whole.start());
            let found = captures.filter(|captures| {
                captures
                    .get(0)
                    .is_some_and(|found| found.start() == whole.start())
            });
            if let Some(found) = found {
                return Some(spans(&found));
            }
        }
        Some(spans(&first))
    }

    /// The matches from a place on, as PostgreSQL finds one after the other.
    pub(super) fn matches<'a>(&'a mut self, text: &'a str, from: usize) -> Matches<'a> {
        Matches {
            matcher: self,
            text,
            next: Some(from),
        }
    }
}

/// See [`Matcher::matches`].
pub(super) struct Matches<'a> {
    matcher: &'a mut Matcher,
    text: &'a str,
    /// Where the next search begins.
    next: Option<usize>,
}

impl Iterator for Matches<'_> {
    type Item = GroupSpans;

    fn next(&mut self) -> Option<GroupSpans> {
        let from = self.next.take()?;
        // The caller looks between rows whether the statement was cancelled.
        interrupt::check().ok()?;
        let found = self.matcher.find(self.text, from)?;
        let (start, end) = found.first().copied().flatten()?;
        // After an empty match, the search goes on behind the next character.
        self.next = if start < end {
            Some(end)
        } else {
            let skipped = self.text[end..].chars().next();
            skipped.map(|skipped| end + skipped.len_utf8())
        };
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 finds.
    #[test]
    fn the_preferred_match_is_found() {
        for (pattern, text, expected) in [
            ("o|oo", "foobar", &[Some("oo")][..]),
            (
                "(a|ab)(c|bcd)?",
                "xabcabcy",
                &[Some("abc"), Some("ab"), Some("c")],
            ),
            ("a*", "aab", &[Some("aa")]),
            ("x|(y)", "x", &[Some("x"), None]),
            ("a?(ab)?", "ab", &[Some("ab"), Some("ab")]),
            ("x*(xy)?", "xxy", &[Some("xxy"), Some("xy")]),
            (
                "(.*?)(\\d+)(.*)",
                "abc01234xyz",
                &[Some("abc0"), Some("abc"), Some("0"), Some("")],
            ),
            ("Y*?([0-9]{1,3})", "XY1234Z", &[Some("Y1"), Some("1")]),
            (
                "\\m(foo|foobar)",
                "foobar",
                &[Some("foobar"), Some("foobar")],
            ),
        ] {
            let mut matcher = Matcher::new(pattern, "").unwrap();
            let spans = matcher.find(text, 0).unwrap();
            let found: Vec<Option<&str>> = spans
                .iter()
                .map(|span| span.map(|(start, end)| &text[start..end]))
                .collect();
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn empty_matches_follow_one_another() {
        let mut matcher = Matcher::new("b*", "").unwrap();
        let found: Vec<_> = matcher.matches("aäbb", 0).map(|spans| spans[0]).collect();
        let expected = [(0, 0), (1, 1), (3, 5), (5, 5)].map(Some);
        assert_eq!(found, expected);
    }
}
