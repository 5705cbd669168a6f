//! Tests the analysis of a SELECT. `tests/statements/compile.txt` tests the refusals.

use super::{Interval, SelectAnalysis, analyze};
use crate::ast::{Fill, Statement};
use crate::duration::{DAY, SECOND};
use crate::parse_query;
use crate::time_range::{TIME_MAX_NS, TIME_MIN_NS, TimeContext};
use crate::zone::UtcOnly;

const NOW_NS: i64 = 1_600_000_000_000_000_123;
const MINUTE: i64 = 60 * SECOND;

fn analyzed(text: &str) -> SelectAnalysis {
    let query = parse_query(text).expect(text);
    let Some(Statement::Select(select)) = query.statements.first() else {
        panic!("{text} is no SELECT");
    };
    let context = TimeContext {
        now_ns: NOW_NS,
        time_zone: None,
        zones: &UtcOnly,
    };
    analyze(select, &context).expect(text)
}

fn interval(by: &str) -> Option<(i64, i64)> {
    let found = analyzed(&format!("SELECT mean(v) FROM m GROUP BY {by}")).interval;
    found.map(
        |Interval {
             every_ns,
             offset_ns,
         }| (every_ns, offset_ns),
    )
}

#[test]
fn intervals_have_offsets() {
    for (by, expected) in [
        ("host", None),
        ("time(0s)", None),
        ("time(0s, 5s)", None),
        ("time(10m), host", Some((10 * MINUTE, 0))),
        ("time(10m, 2m)", Some((10 * MINUTE, 2 * MINUTE))),
        ("time(10m, -12m)", Some((10 * MINUTE, -2 * MINUTE))),
        ("time(1m, now())", Some((MINUTE, 40 * SECOND + 123))),
        (
            "time(1m, '2000-01-01T00:00:05Z')",
            Some((MINUTE, 5 * SECOND)),
        ),
        ("time(1m, '2000-01-01' + 5s)", Some((MINUTE, 5 * SECOND))),
        // Weeks are counted from a Monday, the first day of year 1; 2000 began on a Saturday.
        ("time(1w, '2000-01-01')", Some((7 * DAY, 5 * DAY))),
    ] {
        assert_eq!(interval(by), expected, "{by}");
    }
}

#[test]
fn times_end_now_where_there_are_groups_of_time() {
    let times = |text| {
        let analysis = analyzed(text);
        (analysis.min_ns, analysis.max_ns)
    };
    assert_eq!(times("SELECT v FROM m"), (TIME_MIN_NS, TIME_MAX_NS));
    assert_eq!(times("SELECT mean(v) FROM m"), (TIME_MIN_NS, TIME_MAX_NS));
    assert_eq!(
        times("SELECT mean(v) FROM m GROUP BY time(1m)"),
        (TIME_MIN_NS, NOW_NS)
    );
    let bounded = "SELECT mean(v) FROM m WHERE time > 5 AND time < 9 GROUP BY time(1m)";
    assert_eq!(times(bounded), (6, 8));
}

#[test]
fn columns_are_folded_and_named() {
    let analysis = analyzed("SELECT time AS t, DISTINCT v FROM m WHERE a = 2 * 3 AND time > 0");
    assert_eq!(analysis.time_column, "t");
    assert_eq!(analysis.fields[0].expr.to_string(), "distinct(v)");
    assert_eq!(
        analysis.condition.map(|c| c.to_string()).as_deref(),
        Some("a = 6")
    );
    let analysis = analyzed("SELECT count(DISTINCT v), 2 * 3 * max(w) FROM m");
    let columns: Vec<String> = analysis.fields.iter().map(|f| f.expr.to_string()).collect();
    assert_eq!(columns, ["count(distinct(v))", "6 * max(w)"]);
}

#[test]
fn functions_are_counted() {
    let functions = |columns| analyzed(&format!("SELECT {columns} FROM m")).functions;
    let raw = functions("v, w");
    assert!(raw.only_selectors && raw.has_bare_columns && raw.calls == 0);
    let selector = functions("max(v), host");
    assert!(selector.only_selectors && selector.has_bare_columns && selector.calls == 1);
    let both = functions("max(v), mean(v)");
    assert!(!both.only_selectors && !both.has_bare_columns && both.calls == 2);
    let top = functions("top(v, host, 3)");
    assert!(top.has_bare_columns && top.top_bottom.as_deref() == Some("top"));
    let distinct = functions("distinct(v)");
    assert!(distinct.has_distinct && !distinct.only_selectors);
    assert!(!functions("count(distinct(v))").has_distinct);
    let nested = analyzed("SELECT derivative(mean(v)) FROM m GROUP BY time(1m)");
    assert_eq!((nested.functions.calls, nested.extra_intervals), (2, 1));
    let moving = analyzed("SELECT moving_average(mean(v), 5) FROM m GROUP BY time(1m)");
    assert_eq!(moving.extra_intervals, 5);
}

#[test]
fn subqueries_take_over_what_they_do_not_say() {
    let text = "SELECT mean(x) FROM (SELECT derivative(v) AS x FROM m WHERE time > 3), \
                (SELECT max(v) AS x FROM m WHERE time > 90 GROUP BY time(1s)) \
                WHERE time > 5 AND time < 100 GROUP BY time(1m) fill(0) ORDER BY time DESC";
    let analysis = analyzed(text);
    assert_eq!(analysis.fill, Fill::Integer(0));
    let [first, second] = analysis.subqueries.as_slice() else {
        panic!("two subqueries");
    };
    assert_eq!(
        (first.min_ns, first.max_ns, first.ascending),
        (6, 99, false)
    );
    assert_eq!(
        (first.interval, first.interval_is_inherited),
        (analysis.interval, true)
    );
    assert_eq!(
        (second.min_ns, second.max_ns, second.ascending),
        (91, 99, false)
    );
    assert_eq!(
        second.interval.map(|interval| interval.every_ns),
        Some(SECOND)
    );
    // An empty group of a subquery is left out.
    assert_eq!((first.fill, second.fill), (Fill::Null, Fill::None));
}
