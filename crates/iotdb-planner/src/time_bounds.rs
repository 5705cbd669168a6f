//! The times that a condition allows.

use marigram_iotdb::{TreeComparison, TreeExpr, TreeLiteral};

/// The times that a condition allows, ms, both included, and what else it asks for.
pub(crate) fn split_times(condition: &TreeExpr) -> ((i64, i64), Option<TreeExpr>) {
    let parts = match condition {
        TreeExpr::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let (mut range, mut others) = ((i64::MIN, i64::MAX), Vec::new());
    for part in parts {
        let (bounds, rest) = match &part {
            TreeExpr::And(_) => split_times(&part),
            part => match time_bounds(part) {
                Some(bounds) => (bounds, None),
                None => ((i64::MIN, i64::MAX), Some(part.clone())),
            },
        };
        range = (range.0.max(bounds.0), range.1.min(bounds.1));
        others.extend(rest);
    }
    let rest = match (others.pop(), others.is_empty()) {
        (Some(only), true) => Some(only),
        (None, _) => None,
        (Some(last), false) => {
            others.push(last);
            Some(TreeExpr::And(others))
        }
    };
    (range, rest)
}

fn time_bounds(condition: &TreeExpr) -> Option<(i64, i64)> {
    let ms = |side: &TreeExpr| match side {
        TreeExpr::Literal(TreeLiteral::Integer(time) | TreeLiteral::Time(time)) => Some(*time),
        _ => None,
    };
    match condition {
        TreeExpr::Between(time, low, high) if **time == TreeExpr::Time => {
            Some((ms(low)?, ms(high)?))
        }
        TreeExpr::Compare(left, comparison, right) => {
            let (time, comparison) = match (&**left, &**right) {
                (TreeExpr::Time, value) => (ms(value)?, *comparison),
                (value, TreeExpr::Time) => (ms(value)?, comparison.mirrored()),
                _ => return None,
            };
            Some(match comparison {
                TreeComparison::Equal => (time, time),
                TreeComparison::Greater => (time.saturating_add(1), i64::MAX),
                TreeComparison::GreaterOrEqual => (time, i64::MAX),
                TreeComparison::Less => (i64::MIN, time.saturating_sub(1)),
                TreeComparison::LessOrEqual => (i64::MIN, time),
                TreeComparison::NotEqual => return None,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_iotdb::{TreeSqlContext, TreeStatement, parse_statement};

    fn condition(text: &str) -> TreeExpr {
        let text = format!("select s from root.a where {text}");
        match parse_statement(&text, &TreeSqlContext::for_utc(0)) {
            Ok(TreeStatement::Select(query)) => query.condition.expect("a condition"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_are_split_from_conditions() {
        let (range, rest) = split_times(&condition("time > 5 and s > 1 and 9 >= time"));
        assert_eq!(range, (6, 9));
        assert_eq!(rest.map(|rest| rest.to_string()).as_deref(), Some("s > 1"));
        let (range, rest) = split_times(&condition("time between 2 and 4"));
        assert_eq!((range, rest), ((2, 4), None));
        let (range, rest) = split_times(&condition("time > 5 or time < 2"));
        assert_eq!(range, (i64::MIN, i64::MAX));
        assert!(rest.is_some());
    }
}
