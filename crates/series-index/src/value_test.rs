//! Tests of a tag's value: patterns and ranges.

use marigram_model::{TagValue, TagValueRef};
use regex::{Regex, RegexBuilder};
use std::ops::Bound;

/// A test of a tag's value. A value whose type differs from the test's does not meet it.
#[derive(Clone, Debug)]
pub enum ValueTest {
    /// A text with this prefix.
    Prefix(String),
    /// A text that the expression matches anywhere; anchors must be in the expression.
    Regex(Regex),
    /// A value between two bounds: texts compare by their bytes, and false is before true.
    Range(Bound<TagValue>, Bound<TagValue>),
}

/// Why a text is not a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' is not a valid pattern: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: String,
}

impl ValueTest {
    /// SQL's LIKE: `%` matches any text, `_` any character, and a backslash makes the next
    /// character literal. At the end of the pattern, a backslash matches itself.
    ///
    /// # Errors
    /// If the compiled pattern would be too large.
    pub fn like(pattern: &str, ignore_case: bool) -> Result<Self, PatternError> {
        let mut expression = String::from("^");
        let mut prefix = Some(String::new());
        let mut chars = pattern.chars().peekable();
        while let Some(c) = chars.next() {
            let literal = match c {
                '%' if chars.peek().is_none() => {
                    return match prefix {
                        Some(prefix) if !ignore_case => Ok(Self::Prefix(prefix)),
                        _ => build(&expression, pattern, ignore_case),
                    };
                }
                '%' | '_' => {
                    expression.push_str(if c == '%' { ".*" } else { "." });
                    prefix = None;
                    continue;
                }
                '\\' => chars.next().unwrap_or('\\'),
                c => c,
            };
            let mut buffer = [0; 4];
            expression.push_str(&regex::escape(literal.encode_utf8(&mut buffer)));
            if let Some(prefix) = &mut prefix {
                prefix.push(literal);
            }
        }
        expression.push('$');
        build(&expression, pattern, ignore_case)
    }

    /// A regular expression (in the syntax of the crate `regex`) that matches anywhere in the text.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn regex(expression: &str, ignore_case: bool) -> Result<Self, PatternError> {
        let built = RegexBuilder::new(expression)
            .case_insensitive(ignore_case)
            .build();
        built.map(Self::Regex).map_err(|error| PatternError {
            pattern: expression.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Whether a value meets the test.
    #[must_use]
    pub fn is_met_by(&self, value: TagValueRef<'_>) -> bool {
        match (self, value) {
            (Self::Prefix(prefix), TagValueRef::String(text)) => text.starts_with(prefix),
            (Self::Regex(regex), TagValueRef::String(text)) => regex.is_match(text),
            (Self::Prefix(_) | Self::Regex(_), _) => false,
            (Self::Range(min, max), value) => {
                let fits = |bound: &Bound<TagValue>| match bound {
                    Bound::Included(bound) | Bound::Excluded(bound) => {
                        bound.as_ref().tag_type() == value.tag_type()
                    }
                    Bound::Unbounded => true,
                };
                let above = match min {
                    Bound::Included(min) => value >= min.as_ref(),
                    Bound::Excluded(min) => value > min.as_ref(),
                    Bound::Unbounded => true,
                };
                let below = match max {
                    Bound::Included(max) => value <= max.as_ref(),
                    Bound::Excluded(max) => value < max.as_ref(),
                    Bound::Unbounded => true,
                };
                fits(min) && fits(max) && above && below
            }
        }
    }
}

fn build(expression: &str, pattern: &str, ignore_case: bool) -> Result<ValueTest, PatternError> {
    let built = RegexBuilder::new(expression)
        .case_insensitive(ignore_case)
        .dot_matches_new_line(true)
        .build();
    built.map(ValueTest::Regex).map_err(|error| PatternError {
        pattern: pattern.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_means_what_it_means_in_sql() {
        let cases = [
            ("pump", "pump", true),
            ("pump", "pump-1", false),
            ("pump%", "pump-1", true),
            ("pump%", "Pump-1", false),
            ("%7", "pump-7", true),
            ("%m%-_", "pump-7", true),
            ("%m%-_", "pump-77", false),
            ("_", "é", true),
            ("a_b", "a\nb", true),
            ("a%b", "a\n\nb", true),
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("50\\%", "50%", true),
            ("50\\%", "50 %", false),
            ("50\\%", "501", false),
            ("a\\_%", "a_b", true),
            ("a\\_%", "axb", false),
            ("a\\\\%", "a\\b", true),
            ("a\\", "a\\", true),
            ("a.c", "abc", false),
            ("(a|b)%", "(a|b)c", true),
        ];
        for (pattern, text, expected) in cases {
            let test = ValueTest::like(pattern, false).unwrap();
            let found = test.is_met_by(TagValueRef::String(text));
            assert_eq!(found, expected, "{text} LIKE {pattern}: {test:?}");
            let test = ValueTest::like(pattern, true).unwrap();
            let found = test.is_met_by(TagValueRef::String(&text.to_uppercase()));
            assert!(found || !expected, "{text} ILIKE {pattern}: {test:?}");
        }
        assert!(matches!(ValueTest::like("ab%", false), Ok(ValueTest::Prefix(p)) if p == "ab"));
        assert!(
            !ValueTest::like("7%", false)
                .unwrap()
                .is_met_by(TagValueRef::I64(7))
        );
    }

    #[test]
    fn expressions_are_found_anywhere_and_wrong_ones_are_named() {
        let test = ValueTest::regex("[0-9]+$", false).unwrap();
        assert!(test.is_met_by(TagValueRef::String("pump-7")));
        assert!(!test.is_met_by(TagValueRef::String("pump-x")));
        assert!(
            ValueTest::regex("PUMP", true)
                .unwrap()
                .is_met_by(TagValueRef::String("a pump"))
        );
        let error = ValueTest::regex("(", false).unwrap_err();
        assert!(
            error.to_string().starts_with("'(' is not a valid pattern"),
            "{error}"
        );
    }

    #[test]
    fn ranges_hold_values_of_their_type() {
        let number = |n| TagValue::I64(n);
        let range = ValueTest::Range(Bound::Excluded(number(-1)), Bound::Included(number(3)));
        let within: Vec<i64> = (-3..6)
            .filter(|n| range.is_met_by(TagValueRef::I64(*n)))
            .collect();
        assert_eq!(within, [0, 1, 2, 3]);
        assert!(!range.is_met_by(TagValueRef::String("2")));
        let text = ValueTest::Range(
            Bound::Included(TagValue::String("b".into())),
            Bound::Unbounded,
        );
        assert!(
            text.is_met_by(TagValueRef::String("bb")) && !text.is_met_by(TagValueRef::String("a"))
        );
        assert!(!text.is_met_by(TagValueRef::Bool(true)));
    }
}
