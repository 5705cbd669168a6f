//! The exact text of requests.

use super::*;
use crate::sample;
use marigram_lab::question::Devices;

const HISTORY: TableHistory = TableHistory {
    first_ns: 1_609_459_200_000_000_000,
    last_ns: 1_609_459_319_000_000_000,
    nulls: false,
};

fn table() -> Table {
    sample::table(2)
}

/// Path and expression (or `match[]`) of each request.
fn texts(select: &Select) -> Vec<(&'static str, String)> {
    assert_eq!(cannot(&table(), select), None);
    let all = requests(&table(), select, Some(HISTORY));
    let text = |request: &Request| match request {
        Request::Export { matching, .. } => matching.clone(),
        Request::Query { expression, .. } => expression.clone(),
    };
    all.iter()
        .map(|request| (request.path(), text(request)))
        .collect()
}

fn aggregates(of: &[(Aggregate, usize)]) -> Select {
    Select::all(0, Selection::Aggregates(of.to_vec()))
}

#[test]
fn rows_are_exported() {
    let select = Select {
        devices: Devices::In(0, vec!["a".to_owned(), "b".to_owned()]),
        from_ns: Some(1_609_459_200_000_000_001),
        to_ns: Some(1_609_459_210_000_000_000),
        ..Select::all(0, Selection::Rows(vec![0, 1]))
    };
    let requests = requests(&table(), &select, Some(HISTORY));
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path(), "/api/v1/export");
    let matching = percent(r#"{__name__=~"t:(celsius|ok)",dev=~"a|b"}"#);
    assert_eq!(
        requests[0].form(),
        format!("match[]={matching}&start=1609459200.0015&end=1609459209.9995")
    );
}

#[test]
fn rows_with_nulls_need_every_field() {
    let select = Select::all(0, Selection::Rows(vec![1]));
    let nulls = TableHistory {
        nulls: true,
        ..HISTORY
    };
    let requests = requests(&table(), &select, Some(nulls));
    let Request::Export { matching, .. } = &requests[0] else {
        panic!("an export");
    };
    assert_eq!(matching, r#"{__name__=~"t:(celsius|ok|note)"}"#);
}

#[test]
fn the_last_row_is_values_and_their_times() {
    assert_eq!(
        texts(&Select::all(0, Selection::Last(vec![0]))),
        [(
            "/api/v1/query",
            r#"aggr_over_time(("last_over_time","tlast_over_time"),t:celsius[119001ms])"#
                .to_owned()
        )]
    );
    let both = texts(&Select::all(0, Selection::Last(vec![0, 1])));
    assert!(
        both[0]
            .1
            .ends_with(r#"{__name__=~"t:(celsius|ok)"}[119001ms]) keep_metric_names"#)
    );
    let form = newest(&table(), HISTORY).form();
    let expression = percent(r#"last_over_time({__name__=~"t:.+",dev="a"}[1d])"#);
    assert_eq!(
        form,
        format!("query={expression}&time=1609459319.0005&nocache=1")
    );
}

#[test]
fn the_last_row_is_looked_for_in_the_last_minutes_first() {
    let long = TableHistory {
        first_ns: HISTORY.first_ns - 600_000 * MILLISECOND_NS,
        ..HISTORY
    };
    let mut select = Select {
        devices: Devices::In(0, vec!["b".to_owned(), "z".to_owned()]),
        ..Select::all(0, Selection::Last(vec![0]))
    };
    let (request, numbers) = recent(&table(), &select, Some(long)).expect("a first try");
    assert_eq!(numbers, 2);
    let expression = percent(
        r#"aggr_over_time(("last_over_time","tlast_over_time"),t:celsius{dev=~"b|z"}[300000ms])"#,
    );
    let form = format!("query={expression}&time=1609459319.0005&nocache=1");
    assert_eq!(request.form(), form);
    select.devices = Devices::All;
    select.what = Selection::Last(vec![0, 1]);
    let (_, numbers) = recent(&table(), &select, Some(long)).expect("a first try");
    assert_eq!(numbers, 2 * 2 * 2);
    assert_eq!(recent(&table(), &select, Some(HISTORY)), None);
    select.what = Selection::Rows(vec![0]);
    assert_eq!(recent(&table(), &select, Some(long)), None);
}

#[test]
fn groups_of_devices_take_one_pass_for_each_way_to_fold() {
    let sum = Select {
        by: vec![1],
        ..aggregates(&[(Aggregate::Sum, 0)])
    };
    assert_eq!(
        texts(&sum),
        [(
            "/api/v1/query",
            "sum(sum_over_time(t:celsius[119001ms])) by (site)".to_owned()
        )]
    );
    let many = aggregates(&[
        (Aggregate::Avg, 0),
        (Aggregate::Spread, 0),
        (Aggregate::Count, 0),
    ]);
    let expected = [
        r#"sum(aggr_over_time(("count_over_time","sum_over_time"),t:celsius[119001ms])) by (rollup)"#,
        "max(max_over_time(t:celsius[119001ms]))",
        "min(min_over_time(t:celsius[119001ms]))",
    ];
    assert_eq!(
        texts(&many),
        expected.map(|text| ("/api/v1/query", text.to_owned()))
    );
}

#[test]
fn single_devices_need_no_folding() {
    let select = Select {
        by: vec![0],
        ..aggregates(&[(Aggregate::Avg, 0), (Aggregate::Spread, 1)])
    };
    let expected = r#"aggr_over_time(("avg_over_time","range_over_time"),{__name__=~"t:(celsius|ok)"}[119001ms]) keep_metric_names"#;
    assert_eq!(texts(&select), [("/api/v1/query", expected.to_owned())]);
}

#[test]
fn windows_end_a_millisecond_before_the_next() {
    let select = Select {
        bucket_ns: Some(60_000 * MILLISECOND_NS),
        ..aggregates(&[(Aggregate::Max, 0)])
    };
    let requests = requests(&table(), &select, Some(HISTORY));
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path(), "/api/v1/query_range");
    let expression = percent("max(max_over_time(t:celsius[60000ms]))");
    assert_eq!(
        requests[0].form(),
        format!(
            "query={expression}&start=1609459259.9995&end=1609459319.9995&step=60000ms&nocache=1"
        )
    );
}

#[test]
fn values_above_a_limit_are_counted_and_their_greatest_found() {
    let select = Select {
        above: Some((0, 24.5)),
        devices: Devices::Below(1, 1),
        ..aggregates(&[(Aggregate::Count, 0), (Aggregate::Max, 0)])
    };
    let expected = [
        r#"sum(count_gt_over_time(t:celsius{site="0"}[119001ms],24.5)) > 0"#,
        r#"max(max_over_time(t:celsius{site="0"}[119001ms])) > 24.5"#,
    ];
    assert_eq!(
        texts(&select),
        expected.map(|text| ("/api/v1/query", text.to_owned()))
    );
}

#[test]
fn what_metricsql_cannot_say_is_declined() {
    let declined = |select: &Select| cannot(&table(), select).is_some();
    let rows = Select::all(0, Selection::Rows(vec![0]));
    assert!(!declined(&rows));
    assert!(declined(&Select::all(0, Selection::Rows(vec![0, 2]))));
    assert!(declined(&aggregates(&[(Aggregate::Count, 2)])));
    let above = Some((0, 1.0));
    assert!(declined(&Select {
        above,
        ..rows.clone()
    }));
    assert!(declined(&Select {
        above,
        ..aggregates(&[(Aggregate::Sum, 0)])
    }));
    assert!(declined(&Select {
        above,
        ..aggregates(&[(Aggregate::Count, 1)])
    }));
    assert!(declined(&Select {
        descending: true,
        ..rows
    }));
    assert!(declined(&Select {
        bucket_ns: Some(1),
        ..aggregates(&[(Aggregate::Sum, 0)])
    }));
}
