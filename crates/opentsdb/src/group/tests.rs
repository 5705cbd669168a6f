//! Tests of merging series into groups.

use super::*;
use crate::query::tests::checked;
use proptest::prelude::*;

fn merged(query: &CheckedQuery, series: &[&[(i64, f64)]], some: usize) -> Vec<(i64, f64)> {
    let point = |(time, value): &(i64, f64)| SeriesPoint {
        time_ms: time * 1000,
        value: *value,
    };
    let series = series.iter();
    let series = series.map(|points| points.iter().map(point).collect());
    let mut merge = GroupMerge::new(query, series.collect());
    let mut out = Vec::new();
    while merge.next_points(some, &mut out) {}
    out.iter()
        .map(|point| (point.time_ms / 1000, point.value))
        .collect()
}

/// Two series whose points are at other times: the second one has none at 20 and 40.
const A: &[(i64, f64)] = &[(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)];
const B: &[(i64, f64)] = &[(10, 10.0), (30, 20.0)];

#[test]
fn functions_interpolate_each_in_its_way() {
    let of = |name: &str| {
        let query = checked(&format!("{name}:m"), 0, 100_000);
        merged(&query, &[A, B], 3)
    };
    // At 20 the second series has 15 on its line; at 40 it has ended.
    assert_eq!(of("sum"), [(10, 11.0), (20, 17.0), (30, 23.0), (40, 4.0)]);
    assert_eq!(of("avg"), [(10, 5.5), (20, 8.5), (30, 11.5), (40, 4.0)]);
    assert_eq!(of("max"), [(10, 10.0), (20, 15.0), (30, 20.0), (40, 4.0)]);
    assert_eq!(of("min"), [(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)]);
    assert_eq!(of("dev"), [(10, 4.5), (20, 6.5), (30, 8.5), (40, 0.0)]);
    assert_eq!(of("zimsum"), [(10, 11.0), (20, 2.0), (30, 23.0), (40, 4.0)]);
    assert_eq!(of("mimmax"), [(10, 10.0), (20, 2.0), (30, 20.0), (40, 4.0)]);
    assert_eq!(of("mimmin"), [(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)]);
    assert_eq!(of("pfsum"), [(10, 11.0), (20, 12.0), (30, 23.0), (40, 4.0)]);
    assert_eq!(of("count"), [(10, 2.0), (20, 2.0), (30, 2.0), (40, 1.0)]);
}

#[test]
fn rates_hold_until_the_next_one() {
    let query = checked("sum:rate:m", 0, 100_000);
    let sums = [(10, 11.0), (20, 12.0), (30, 23.0), (40, 4.0)];
    assert_eq!(merged(&query, &[A, B], 1), sums);
}

#[test]
fn points_outside_of_the_query_only_help() {
    let query = checked("sum:m", 15_000, 35_000);
    assert_eq!(merged(&query, &[A, B], 100), [(20, 17.0), (30, 23.0)]);
}

#[test]
fn points_of_a_second_are_one_unless_milliseconds_are_wanted() {
    let points = [(100, 1.0), (100, 2.0), (101, 4.0)].map(|(time, value)| SeriesPoint {
        time_ms: time * 1000 + value as i64,
        value,
    });
    let of = |name: &str, has_milliseconds: bool| {
        let mut query = checked(&format!("{name}:m"), 0, 200_000);
        query.has_milliseconds = has_milliseconds;
        let mut merge = GroupMerge::new(&query, vec![points.to_vec()]);
        let mut out = Vec::new();
        while merge.next_points(1, &mut out) {}
        out.iter()
            .map(|point| (point.time_ms, point.value))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("sum", false), [(100_000, 3.0), (101_000, 4.0)]);
    assert_eq!(of("none", false), [(100_000, 2.0), (101_000, 4.0)]);
    assert_eq!(
        of("sum", true),
        [(100_001, 1.0), (100_002, 2.0), (101_004, 4.0)]
    );
}

#[test]
fn tags_are_shared_or_differ() {
    let mut tags = GroupTags::default();
    tags.add([("host", "a"), ("dc", "x"), ("cpu", "0")]);
    tags.add([("host", "b"), ("dc", "x")]);
    tags.add([("host", "c"), ("dc", "x")]);
    let (shared, differing) = tags.into_parts();
    let shared: Vec<_> = shared
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .collect();
    assert_eq!(shared, [("cpu", "0"), ("dc", "x")]);
    assert_eq!(differing, ["host"]);
}

/// How often the merge comes back to its caller.
fn calls(name: &str, series: Vec<Vec<SeriesPoint>>) -> (usize, usize) {
    let query = checked(&format!("{name}:m"), 0, 100_000_000_000);
    let mut merge = GroupMerge::new(&query, series);
    let (mut out, mut calls) = (Vec::new(), 1);
    while merge.next_points(usize::MAX, &mut out) {
        calls += 1;
    }
    (calls, out.len())
}

#[test]
fn work_is_bounded_between_calls_and_series_that_do_not_take_part_cost_nothing() {
    let point = |time_s: i64| SeriesPoint {
        time_ms: time_s * 1000,
        value: 1.0,
    };
    // Each series after the one before: one takes part at a time.
    let row = (0..2000_i64).map(|series| (0..20).map(|at| point(series * 20 + at)).collect());
    let (calls_of_row, points) = calls("sum", row.collect());
    assert!(calls_of_row <= 2, "{calls_of_row}");
    assert_eq!(points, 40_000);
    // All at once, and each with times of its own.
    let all = || (0..2000_i64).map(|series| (0..20).map(move |at| point(at * 2000 + series)));
    let all = || all().map(Iterator::collect).collect::<Vec<_>>();
    assert!(calls("mimmax", all()).0 <= 2);
    // 2000 values at each of about 38,000 times.
    let (calls, points) = calls("sum", all());
    assert!(calls >= 700, "{calls}");
    assert_eq!(points, 40_000);
}

/// The aggregate by the rules alone: every series at every time.
fn by_the_rules(query: &CheckedQuery, series: &[Vec<(i64, f64)>]) -> Vec<(i64, f64)> {
    let times: BTreeSet<i64> = series.iter().flatten().map(|(time, _)| *time).collect();
    let at = |time: i64| {
        let mut state = AggregatorState::new(query.aggregator);
        for points in series {
            let next = points.iter().find(|(at, _)| *at >= time);
            let before = points.iter().rev().find(|(at, _)| *at < time);
            let value = match (before, next, query.aggregator.interpolation()) {
                (_, Some((at, value)), _) if *at == time => *value,
                (Some(a), Some(b), Interpolation::Linear) => {
                    let (passed, whole) = ((time - a.0) * 1000, (b.0 - a.0) * 1000);
                    a.1 + passed as f64 * (b.1 - a.1) / whole as f64
                }
                (Some(_), Some(_), Interpolation::Zero) => 0.0,
                (Some(a), Some(_), Interpolation::Previous) => a.1,
                _ => continue,
            };
            state.push(value);
        }
        (time, state.result())
    };
    times.into_iter().map(at).collect()
}

proptest! {
    #[test]
    fn series_of_any_times_are_merged_by_the_rules(
        series in proptest::collection::vec(
            proptest::collection::btree_map(1_i64..60, -1e3_f64..1e3, 0..12), 0..8),
        name in prop_oneof![
            Just("sum"), Just("zimsum"), Just("pfsum"), Just("mimmin"), Just("first"),
            Just("diff"), Just("count"), Just("p50"),
        ],
        some in 1_usize..20,
    ) {
        let series: Vec<Vec<_>> = series.into_iter().map(|points| points.into_iter().collect()).collect();
        let query = checked(&format!("{name}:m"), 0, 1_000_000);
        let slices: Vec<_> = series.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(merged(&query, &slices, some), by_the_rules(&query, &series));
    }

    #[test]
    fn a_sum_over_series_of_the_same_times_is_the_sum_of_their_points(
        values in proptest::collection::vec((-1e3_f64..1e3, -1e3_f64..1e3), 1..40),
        some in 1_usize..50,
    ) {
        let times = || (0_i64..).map(|step| 100 + 10 * step);
        let first: Vec<_> = times().zip(values.iter().map(|(a, _)| *a)).collect();
        let second: Vec<_> = times().zip(values.iter().map(|(_, b)| *b)).collect();
        let expected: Vec<_> = times().zip(values.iter().map(|(a, b)| a + b)).collect();
        let query = checked("sum:m", 0, 1_000_000);
        prop_assert_eq!(merged(&query, &[first.as_slice(), second.as_slice()], some), expected);
    }
}
