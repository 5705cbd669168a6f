//! Times in conditions, with time zones.

use super::{ConditionTimeRange, TimeContext, split_condition};
use crate::duration::{DAY, SECOND};
use crate::parse_expr;
use crate::zone::TimeZones;

/// 2020-09-13T12:26:40.000000123Z
const NOW_NS: i64 = 1_600_000_000_000_000_123;

/// 2000-01-01T00:00:00Z
const Y2K_NS: i64 = 946_684_800 * SECOND;

const HOUR: i64 = 3_600 * SECOND;

/// One zone: an hour ahead of UTC, two in the summer of 2000 (26 March to 29 October, 01:00 UTC).
struct Berlin;

impl TimeZones for Berlin {
    fn offset_seconds(&self, zone: &str, unix_seconds: i64) -> Option<i32> {
        let summer = (954_032_400..972_781_200).contains(&unix_seconds);
        (zone == "Europe/Berlin").then_some(if summer { 7_200 } else { 3_600 })
    }
}

fn split(
    text: &str,
    time_zone: Option<&str>,
) -> Result<(Option<String>, ConditionTimeRange), String> {
    let context = TimeContext {
        now_ns: NOW_NS,
        time_zone,
        zones: &Berlin,
    };
    let condition = parse_expr(text).expect(text);
    let split = split_condition(Some(&condition), &context).map_err(|error| error.to_string())?;
    Ok((
        split.condition.map(|condition| condition.to_string()),
        split.time_range,
    ))
}

fn range(text: &str, time_zone: Option<&str>) -> (Option<i64>, Option<i64>) {
    let (condition, range) = split(text, time_zone).expect(text);
    assert_eq!(condition, None, "{text}");
    (range.min_ns, range.max_ns)
}

#[test]
fn every_form_of_a_time_is_read() {
    for (text, min_ns, max_ns) in [
        ("time > 5", Some(6), None),
        ("time >= 5", Some(5), None),
        ("time < 5", None, Some(4)),
        ("time <= 5", None, Some(5)),
        ("time = 5", Some(5), Some(5)),
        ("5 < time", Some(6), None),
        ("5 >= TIME", None, Some(5)),
        ("time > 1.9", Some(2), None),
        ("time > 2s", Some(2 * SECOND + 1), None),
        ("time > -2s", Some(-2 * SECOND + 1), None),
        ("time >= now()", Some(NOW_NS), None),
        ("time >= now() - 1d", Some(NOW_NS - DAY), None),
        ("now() - 1d <= time", Some(NOW_NS - DAY), None),
        ("time >= '2000-01-01'", Some(Y2K_NS), None),
        ("time >= '2000-01-01 01:00:00'", Some(Y2K_NS + HOUR), None),
        (
            "time >= '2000-01-01T01:00:00.000000001Z'",
            Some(Y2K_NS + HOUR + 1),
            None,
        ),
        ("time >= '2000-01-01T01:00:00+01:00'", Some(Y2K_NS), None),
        ("time >= '2000-01-01' - 1h", Some(Y2K_NS - HOUR), None),
        ("time >= 946684800000ms + 1ns", Some(Y2K_NS + 1), None),
        ("time > 9223372036854775807", Some(i64::MAX), None),
        ("time > 5 AND time < 10 AND time > 7", Some(8), Some(9)),
        ("time > 5 OR time < 3", Some(6), Some(2)),
        ("(time > 5) AND ((time < 10))", Some(6), Some(9)),
        ("true AND time > 5", Some(6), None),
    ] {
        let found = range(&format!("time <= 9223372036854775807 AND {text}"), None);
        let max_ns = max_ns.or(Some(i64::MAX));
        assert_eq!(found, (min_ns, max_ns), "{text}");
    }
    assert_eq!(range("true", None), (None, None));
}

#[test]
fn what_is_no_time_remains() {
    for (text, condition) in [
        ("a = 1 AND time > 5", "a = 1"),
        ("time > 5 AND a = 1 OR b = 2", "a = 1 OR b = 2"),
        ("(a = 1 OR b = 2) AND time > 5", "a = 1 OR b = 2"),
        (
            "(a = 1 OR time < 3) AND time > 5 AND c = 2",
            "(a = 1) AND c = 2",
        ),
        ("a = 1 + 2 AND time > 5", "a = 3"),
        ("1 = 1 AND a = 2", "a = 2"),
        ("a = now()", "a = '2020-09-13T12:26:40.000000123Z'"),
        ("time = 5 AND 1 = 2", "false"),
    ] {
        let (found, _) = split(text, None).expect(text);
        assert_eq!(found.as_deref(), Some(condition), "{text}");
    }
}

#[test]
fn a_time_without_an_offset_is_in_the_zone() {
    let zone = Some("Europe/Berlin");
    for (text, ns) in [
        ("time >= '2000-01-01'", Y2K_NS - HOUR),
        ("time >= '2000-01-01T00:00:00Z'", Y2K_NS),
        ("time >= '2000-07-01'", 962_402_400 * SECOND),
        ("time >= '2000-07-01' + 1h", 962_406_000 * SECOND),
        // Half past two does not exist on the day when clocks are set forward, and exists twice on
        // the day when they are set back.
        ("time >= '2000-03-26 02:30:00'", 954_034_200 * SECOND),
        ("time >= '2000-10-29 02:30:00'", 972_783_000 * SECOND),
    ] {
        assert_eq!(range(text, zone), (Some(ns), None), "{text}");
    }
    let error = split("time > '9999-12-31'", zone).expect_err("too late");
    assert_eq!(
        error,
        "time 9999-12-31T00:00:00+01:00 overflows time literal"
    );
}

#[test]
fn long_conditions_do_not_recurse() {
    let text = format!("time > 0{}", " AND a = 1".repeat(100_000));
    let (condition, _) = split(&text, None).expect("a chain");
    assert_eq!(condition.map(|text| text.len()), Some(100_000 * 10 - 5));
}
