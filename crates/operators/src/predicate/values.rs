//! Predicates on the value of one tag, as tests that the series index evaluates once per value.

use super::{PredicateLiteral, PredicateRows, equality, literal, tag_of, tag_value};
use datafusion::logical_expr::{Like, Operator};
use marigram_engine::{TagFilter, ValueTest};
use marigram_model::{TableSchema, TagType, TagValue};
use std::ops::Bound;

/// The series for which a comparison of a tag with a value is true.
pub(super) fn compare(ordinal: u16, op: Operator, value: TagValue) -> PredicateRows {
    let regex = |expression: &TagValue, ignore_case, wanted| match expression {
        TagValue::String(text) => match ValueTest::regex(text, ignore_case) {
            Ok(test) => matching(ordinal, test, wanted),
            // Evaluating the predicate reports what is wrong with it.
            Err(_) => PredicateRows::all(),
        },
        _ => PredicateRows::all(),
    };
    let range = |min, max| matching(ordinal, ValueTest::Range(min, max), true);
    match op {
        Operator::Eq => PredicateRows::tags(equality(ordinal, vec![value], false)),
        Operator::NotEq => PredicateRows::tags(equality(ordinal, vec![value], true)),
        Operator::Lt => range(Bound::Unbounded, Bound::Excluded(value)),
        Operator::LtEq => range(Bound::Unbounded, Bound::Included(value)),
        Operator::Gt => range(Bound::Excluded(value), Bound::Unbounded),
        Operator::GtEq => range(Bound::Included(value), Bound::Unbounded),
        Operator::RegexMatch => regex(&value, false, true),
        Operator::RegexIMatch => regex(&value, true, true),
        Operator::RegexNotMatch => regex(&value, false, false),
        Operator::RegexNotIMatch => regex(&value, true, false),
        _ => PredicateRows::all(),
    }
}

/// The series for which `LIKE` or `ILIKE` of a tag is `wanted`.
pub(super) fn like(like: &Like, wanted: bool, schema: &TableSchema) -> PredicateRows {
    let Some((ordinal, kind @ TagType::String)) = tag_of(&like.expr, schema) else {
        return PredicateRows::all();
    };
    let pattern = match literal(&like.pattern).map(|scalar| tag_value(scalar, kind)) {
        Some(PredicateLiteral::Value(TagValue::String(pattern))) => pattern,
        Some(PredicateLiteral::Null) => return PredicateRows::none(),
        _ => return PredicateRows::all(),
    };
    if like.escape_char.is_some_and(|c| c != '\\') || !escapes_are_plain(&pattern) {
        return PredicateRows::all();
    }
    match ValueTest::like(&pattern, like.case_insensitive) {
        Ok(test) => matching(ordinal, test, wanted != like.negated),
        Err(_) => PredicateRows::all(),
    }
}

/// Whether each backslash precedes a special character of the pattern, so that all readers agree on
/// its meaning.
fn escapes_are_plain(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && !chars.next().is_some_and(|c| matches!(c, '%' | '_' | '\\')) {
            return false;
        }
    }
    true
}

fn matching(ordinal: u16, test: ValueTest, wanted: bool) -> PredicateRows {
    let matches = TagFilter::Matches(ordinal, test);
    PredicateRows::tags(if wanted {
        matches
    } else {
        TagFilter::And(vec![
            TagFilter::Not(Box::new(matches)),
            TagFilter::IsNotNull(ordinal),
        ])
    })
}
