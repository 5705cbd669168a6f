//! The parameter `m` of a URL: `sum:1m-avg:rate{counter}:sys.cpu.user{host=*}{dc=literal_or(lga)}`.

use crate::error::QueryFault;
use crate::filter::{TagValueFilter, check_filter_count};
use crate::scalar::Flag;
use crate::sub_query::{RateSpec, SubQuery};

/// Parts of an `m`: function, downsampling, rate, `explicit_tags` and metric.
const PARTS_MAX: usize = 5;

/// Reads one `m`.
///
/// # Errors
/// Which part cannot be read.
pub fn parse_m(text: &str) -> Result<SubQuery, QueryFault> {
    if text.is_empty() {
        return Err(QueryFault::new("The query string was empty"));
    }
    let shown: String = text.chars().take(200).collect();
    let parts = split_outside(text, ':');
    let (aggregator, middle, metric) = match parts.as_slice() {
        [_] => return Err(wrong_parts(&shown, "not enough")),
        [aggregator, middle @ .., metric] if middle.len() < PARTS_MAX - 1 => {
            (aggregator, middle, metric)
        }
        _ => return Err(wrong_parts(&shown, "too many")),
    };
    if metric.is_empty() {
        return Err(QueryFault::new("Metric cannot be null or empty"));
    }
    let mut query = SubQuery {
        aggregator: Some((*aggregator).to_owned()),
        ..SubQuery::default()
    };
    for part in middle {
        let lower = part.to_ascii_lowercase();
        if lower.starts_with("rate") {
            query.rate = Flag(true);
            query.rate_options = rate(part.get("rate".len()..).unwrap_or_default())?;
        } else if part.starts_with(|ch: char| ch.is_ascii_digit()) {
            query.downsample = Some((*part).to_owned());
        } else if lower == "explicit_tags" {
            query.explicit_tags = Flag(true);
        } else {
            let part: String = part.chars().take(50).collect();
            return Err(QueryFault::new(format!("Invalid parameter m={shown}"))
                .with_details(format!("The part '{part}' is not known")));
        }
    }
    let (name, braces) = metric.split_at(metric.find('{').unwrap_or(metric.len()));
    query.metric = Some(name.to_owned());
    let mut rest = braces;
    for group_by in [true, false] {
        if rest.is_empty() {
            break;
        }
        let end = rest.strip_prefix('{').and_then(closing);
        let Some((inside, after)) = end else {
            let metric: String = metric.chars().take(200).collect();
            return Err(QueryFault::new(format!(
                "Missing '}}' at the end of: {metric}"
            )));
        };
        add_filters(&mut query, inside, group_by)?;
        rest = after;
    }
    if rest.is_empty() {
        Ok(query)
    } else {
        Err(QueryFault::new(format!("Invalid parameter m={shown}"))
            .with_details("A metric has at most two lists of filters in braces"))
    }
}

fn wrong_parts(shown: &str, how_many: &str) -> QueryFault {
    QueryFault::new(format!(
        "Invalid parameter m={shown} ({how_many} :-separated parts)"
    ))
    .with_details("It has the form function:[downsampling:][rate:]metric[{tags}][{filters}]")
}

/// The text up to the closing brace, which may be inside of parentheses, and the text after it.
fn closing(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut last = None;
    for (at, ch) in text.char_indices() {
        match ch {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '}' if depth == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            '}' => last = Some(at),
            _ => {}
        }
    }
    // Parentheses that do not match: of a regular expression, or none.
    let at = last?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Splits at a sign that is not inside of braces or parentheses.
pub(crate) fn split_outside(text: &str, sign: char) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_usize, 0, Vec::new());
    for (at, ch) in text.char_indices() {
        match ch {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            ch if ch == sign && depth == 0 => {
                parts.push(text.get(from..at).unwrap_or_default());
                from = at + ch.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}

fn add_filters(query: &mut SubQuery, inside: &str, group_by: bool) -> Result<(), QueryFault> {
    if inside.is_empty() {
        return Ok(());
    }
    let pairs = split_outside(inside, ',');
    check_filter_count(query.parsed.len() + pairs.len())?;
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(QueryFault::new(format!("invalid tag: {pair:.100}")));
        };
        query.parsed.push(TagValueFilter::from_value(
            key.trim(),
            value.trim(),
            group_by,
        )?);
    }
    Ok(())
}

/// Reads `{counter,max,reset}`.
fn rate(text: &str) -> Result<Option<RateSpec>, QueryFault> {
    if text.is_empty() {
        return Ok(None);
    }
    let invalid = || {
        QueryFault::new(format!(
            "Invalid rate options specification: rate{text:.60}"
        ))
    };
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let parts: Vec<&str> = inside.ok_or_else(invalid)?.split(',').collect();
    let number = |at: usize, what: &str| match parts.get(at).copied() {
        None | Some("") => Ok(None),
        Some(text) => text.parse::<f64>().map(Some).map_err(|_| {
            QueryFault::new(format!(
                "{what} value of counter was not a number, received '{text:.30}'"
            ))
        }),
    };
    if parts.len() > 3 {
        return Err(QueryFault::new(format!(
            "Incorrect number of values in rate options specification, must be \
             counter[,counter max value,reset value], recieved: {} parts",
            parts.len()
        )));
    }
    let kind = parts.first().copied().unwrap_or_default();
    if !["", "counter", "dropcounter"].contains(&kind) {
        return Err(invalid());
    }
    Ok(Some(RateSpec {
        counter: Flag(kind.ends_with("counter")),
        counter_max: number(1, "Max")?,
        reset_value: number(2, "Reset")?,
        drop_resets: Flag(kind == "dropcounter"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::TagTest;
    use proptest::prelude::*;

    #[test]
    fn parts_stand_between_colons() {
        let query = parse_m(
            "sum:1m-avg:rate{counter,100,5}:explicit_tags:sys.cpu{host=*,dc=lga}{os=regexp(a:b{2},c)}",
        )
        .unwrap();
        assert_eq!(query.aggregator.as_deref(), Some("sum"));
        assert_eq!(query.downsample.as_deref(), Some("1m-avg"));
        assert_eq!(query.metric.as_deref(), Some("sys.cpu"));
        assert!(query.rate.0 && query.explicit_tags.0);
        let options = query.rate_options.unwrap();
        assert_eq!(
            (options.counter_max, options.reset_value),
            (Some(100.0), Some(5.0))
        );
        let filters: Vec<_> = query
            .parsed
            .iter()
            .map(|filter| (filter.key.as_str(), filter.group_by))
            .collect();
        assert_eq!(filters, [("host", true), ("dc", true), ("os", false)]);
        assert_eq!(query.parsed[2].test, TagTest::Regexp("a:b{2},c".into()));
        let plain = parse_m("avg:m").unwrap();
        assert!(plain.parsed.is_empty() && !plain.rate.0);
        assert!(parse_m("avg:m{}{host=a}").is_ok_and(|query| !query.parsed[0].group_by));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for wrong in [
            "",
            "sum",
            "sum:",
            "sum:1m-avg:rate:explicit_tags:rate:m",
            "sum:what:m",
            "sum:m{host=a",
            "sum:m{host}",
            "sum:m{}{}{}",
            "sum:rate{x}:m",
            "sum:rate{counter,x}:m",
            "sum:rate{counter,1,2,3}:m",
            "sum:m{host=wildcard(a)}",
        ] {
            assert!(parse_m(wrong).is_err(), "{wrong}");
        }
        // In the words of OpenTSDB 2.4.1.
        for (wrong, expected) in [
            ("", "The query string was empty"),
            (
                "sum",
                "Invalid parameter m=sum (not enough :-separated parts)",
            ),
            (
                "a:b:c:d:e:f",
                "Invalid parameter m=a:b:c:d:e:f (too many :-separated parts)",
            ),
            ("sum:", "Metric cannot be null or empty"),
            ("sum:m{host=a", "Missing '}' at the end of: m{host=a"),
            (
                "sum:rate{counter,x}:m",
                "Max value of counter was not a number, received 'x'",
            ),
            (
                "sum:rate{counter,1,x}:m",
                "Reset value of counter was not a number, received 'x'",
            ),
            (
                "sum:rate{counter,1,2,3}:m",
                "Incorrect number of values in rate options specification, must be \
                 counter[,counter max value,reset value], recieved: 4 parts",
            ),
        ] {
            assert_eq!(parse_m(wrong).unwrap_err().message, expected);
        }
        assert!(parse_m("sum:RATE:m").is_ok_and(|query| query.rate.0));
        // The query is checked later.
        assert!(parse_m(":m").is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_none(text in ".{0,60}", signs in "[a-z0-9:{}(),=|*.-]{0,60}") {
            let _ = parse_m(&text);
            let _ = parse_m(&signs);
            let _ = parse_m(&format!("sum:{signs}"));
        }
    }
}
