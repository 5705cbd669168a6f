//! Answers that a real InfluxDB 1.6.7 gave, compared as text: each file in `answers/` has statements,
//! each with the answer of `/query?epoch=ns` behind it, over the rows of `answers/rows.lines` or of a file
//! of its name.

mod support;

use std::fmt::Write as _;
use support::Harness;

const ROWS: &str = include_str!("answers/rows.lines");

async fn compare(file: &str) {
    compare_over(ROWS, file).await;
}

async fn compare_over(rows: &str, file: &str) {
    let harness = Harness::new();
    harness.write(rows);
    let mut wrong = String::new();
    for pair in file.split("\n\n") {
        let Some((statement, expected)) = pair.trim().split_once('\n') else {
            continue;
        };
        let answer = harness.ask(statement).await;
        if answer != expected {
            let _ = writeln!(wrong, "{statement}\n  ours   {answer}\n  theirs {expected}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The chain was as deep a tree as it is long, and each level looked at all below it.
#[tokio::test]
async fn long_chains_are_answered_or_refused() {
    let harness = Harness::new();
    harness.write(ROWS);
    let hosts: Vec<String> = (0..16_000).map(|at| format!("host = 'h{at}'")).collect();
    let condition = format!("host = 'a' OR {}", hosts.join(" OR "));
    let answer = harness
        .ask(&format!("SELECT count(v) FROM cpu WHERE {condition}"))
        .await;
    let short = "SELECT count(v) FROM cpu WHERE host = 'a'";
    assert_eq!(answer, harness.ask(short).await);
    for (operand, operator, operands) in [
        ("v", " OR 1 < ", 100_000),
        ("v", " AND 1 < ", 5_000),
        ("v", " + ", 100_000),
    ] {
        let chain = vec![operand; operands].join(operator);
        let answer = harness
            .ask(&format!("SELECT v FROM cpu WHERE 2 < v AND (1 < {chain})"))
            .await;
        assert!(answer.contains("operands in a row"), "{answer}");
    }
}

#[tokio::test]
async fn raw_rows() {
    compare(include_str!("answers/raw.txt")).await;
}

#[tokio::test]
async fn aggregates() {
    compare(include_str!("answers/aggregates.txt")).await;
}

#[tokio::test]
async fn selectors() {
    compare(include_str!("answers/selectors.txt")).await;
}

#[tokio::test]
async fn transformations() {
    compare(include_str!("answers/transformations.txt")).await;
}

#[tokio::test]
async fn subqueries() {
    compare(include_str!("answers/subqueries.txt")).await;
}

/// InfluxDB's answers over what SELECT … INTO wrote for the whole time, as its continuous query does
/// little by little.
#[tokio::test]
async fn continuous_queries() {
    compare(include_str!("answers/continuous.txt")).await;
}

/// What no view can be, and why: selected, target, source, reason.
const UNFIT: [(&str, &str, &str, &str); 18] = [
    ("v", "w", "cpu", "there is no GROUP BY time()"),
    (
        "mean(v)",
        "w",
        "cpu GROUP BY time(1m), /h.*/",
        "GROUP BY has tags of a regular expression",
    ),
    (
        "mean(v)",
        "w",
        "cpu GROUP BY time(1m) fill(0)",
        "it fills groups without rows",
    ),
    (
        "mean(v)",
        "w",
        "cpu GROUP BY time(1m) LIMIT 1",
        "it has LIMIT or OFFSET",
    ),
    (
        "mean(v)",
        "w",
        "cpu GROUP BY time(1m), v",
        "v in GROUP BY is no tag",
    ),
    (
        "mean(/v/)",
        "w",
        "cpu GROUP BY time(1m)",
        "mean() does not name one field",
    ),
    (
        "mean(s)",
        "w",
        "cpu GROUP BY time(1m)",
        "mean() of s is none of numbers",
    ),
    (
        "mean(x)",
        "w",
        "cpu GROUP BY time(1m)",
        "x is no field of cpu",
    ),
    (
        "mode(v)",
        "w",
        "cpu GROUP BY time(1m)",
        "mode() is none of its functions",
    ),
    (
        "mean(v) / 2",
        "w",
        "cpu GROUP BY time(1m)",
        "is no function over a field",
    ),
    (
        "max(v), max(i)",
        "w",
        "cpu GROUP BY time(1m)",
        "two columns are called max",
    ),
    (
        "mean(v)",
        "w",
        "/c.*/ GROUP BY time(1m)",
        "it reads measurements by a regular expression",
    ),
    (
        "mean(v)",
        "w",
        "(SELECT v FROM cpu) GROUP BY time(1m)",
        "it reads a subquery",
    ),
    (
        "mean(v)",
        "w",
        "nosuch GROUP BY time(1m)",
        "the measurement nosuch has no rows yet",
    ),
    ("mean(v)", ":MEASUREMENT", "cpu GROUP BY time(1m)", ""),
    (
        "mean(v)",
        "mem",
        "cpu GROUP BY time(1m)",
        "the measurement mem has rows of its own",
    ),
    (
        "mean(v)",
        "w",
        "cpu WHERE host =~ /a/ GROUP BY time(1m)",
        "is none of its comparisons",
    ),
    (
        "mean(v)",
        "w",
        "cpu WHERE host = 'a\\'; --' GROUP BY time(1m), host",
        "accepted",
    ),
];

#[tokio::test]
async fn continuous_queries_that_are_no_views_are_refused() {
    let harness = Harness::new();
    harness.write(ROWS);
    let form = "CREATE CONTINUOUS QUERY q ON d BEGIN SELECT SELECTED INTO TARGET FROM SOURCE END";
    for (selected, target, source, reason) in UNFIT {
        let statement = form.replace("SELECTED", selected);
        let statement = statement
            .replace("TARGET", target)
            .replace("SOURCE", source);
        let answer = harness.ask(&statement).await;
        if reason == "accepted" {
            assert_eq!(answer, r#"{"results":[{"statement_id":0}]}"#, "{statement}");
        } else {
            let is_told = answer.contains("error") && answer.contains(reason);
            assert!(is_told, "{statement}: {answer}");
        }
    }
    // The rows of the target would go with the query.
    let kept = harness.ask("DROP CONTINUOUS QUERY q ON d").await;
    assert!(kept.contains("DROP MEASUREMENT removes both"), "{kept}");
    let dropped = harness
        .ask("DROP MEASUREMENT w; SHOW CONTINUOUS QUERIES; SHOW MEASUREMENTS")
        .await;
    assert!(
        !dropped.contains("error") && !dropped.contains("\"w\""),
        "{dropped}"
    );
}

/// `*` stands for what the measurement has when the query is created.
#[tokio::test]
async fn continuous_queries_of_all_tags_and_fields() {
    let harness = Harness::new();
    harness.write(ROWS);
    let named =
        "SELECT mean(v), mean(i) FROM cpu WHERE time < 500s GROUP BY time(2m), host fill(none)";
    let named = harness.ask(named).await;
    let create = "CREATE CONTINUOUS QUERY q ON d BEGIN SELECT mean(*) INTO w FROM cpu GROUP BY time(2m), * END";
    assert_eq!(
        harness.ask(create).await,
        r#"{"results":[{"statement_id":0}]}"#
    );
    let all = harness
        .ask("SELECT mean_v, mean_i FROM w GROUP BY host")
        .await;
    let renamed = all.replace(r#""name":"w""#, r#""name":"cpu""#);
    let renamed = renamed.replace(r#""mean_v","mean_i""#, r#""mean","mean_1""#);
    assert_eq!(renamed, named);
}

/// What makes groups of time without rows is bounded before it makes them.
#[tokio::test]
async fn too_many_groups_of_time_are_refused_at_once() {
    let harness = Harness::new();
    harness.write(ROWS);
    for (interval, fill) in [("1ns", ""), ("1u", "fill(0)"), ("1ns", "fill(previous)")] {
        let statement = format!(
            "SELECT count(v) FROM cpu WHERE time >= 0 AND time < 400s GROUP BY time({interval}) {fill}"
        );
        let answer = harness.ask(&statement).await;
        assert!(
            answer.contains("max-select-buckets limit exceeded"),
            "{statement}: {answer}"
        );
    }
    let rows = "SELECT count(v) FROM cpu GROUP BY time(1ns) fill(none)";
    assert!(harness.ask(rows).await.contains("[400000000000,1]"));
}

/// DELETE with bounds removes a series that it empties, as InfluxDB does, until rows of it come again.
#[tokio::test]
async fn series_that_a_delete_with_bounds_empties_are_not_listed() {
    let harness = Harness::new();
    harness.write("m,host=a v=1 10\nm,host=a v=2 20\nm,host=b v=3 30");
    let keys = async || harness.ask("SHOW SERIES FROM m").await;
    harness.ask("DELETE FROM m WHERE time < 20").await;
    assert!(keys().await.contains("host=a"));
    for flushed in [false, true] {
        harness
            .ask("DELETE FROM m WHERE host = 'a' AND time < 25")
            .await;
        let left = keys().await;
        assert!(
            !left.contains("host=a") && left.contains("host=b"),
            "{left}"
        );
        harness.write("m,host=a v=4 20");
        assert!(keys().await.contains("host=a"), "{flushed}");
        harness.flush();
    }
    harness.ask("DELETE WHERE time < 100").await;
    let nothing = r#"{"results":[{"statement_id":0}]}"#;
    for list in [
        "SHOW SERIES",
        "SHOW MEASUREMENTS",
        "SHOW TAG KEYS",
        "SHOW FIELD KEYS",
    ] {
        assert_eq!(harness.ask(list).await, nothing, "{list}");
    }
}

/// Dashboards that were made for SQL write the schema of its tables before a measurement.
#[tokio::test]
async fn the_schema_of_sql_stands_for_the_default_policy() {
    let harness = Harness::new();
    harness.write(ROWS);
    let plain = harness.ask("SELECT v FROM cpu").await;
    assert_eq!(harness.ask("SELECT v FROM \"public\".\"cpu\"").await, plain);
    assert_eq!(harness.ask("SELECT v FROM d.public.cpu").await, plain);
    let other = harness.ask("SELECT v FROM nosuch.cpu").await;
    assert!(
        other.contains("retention policy not found: nosuch"),
        "{other}"
    );
    let made = "CREATE RETENTION POLICY public ON d DURATION INF REPLICATION 1";
    harness.ask(made).await;
    let empty = harness.ask("SELECT v FROM \"public\".\"cpu\"").await;
    assert!(!empty.contains("series"), "{empty}");
}

/// As in InfluxDB, a series without rows is gone.
#[tokio::test]
async fn series_that_delete_empties_are_no_longer_listed() {
    let harness = Harness::new();
    harness.write(ROWS);
    let deleted = harness.ask("DELETE FROM mem WHERE host = 'a'").await;
    assert!(!deleted.contains("error"), "{deleted}");
    let keys = |of: &str| {
        let columns = r#"{"columns":["key"],"values":"#;
        format!(r#"{{"results":[{{"statement_id":0,"series":[{columns}{of}}}]}}]}}"#)
    };
    let left = r#"[["mem,host=b,region=eu"],["mem,host=b,region=us"]]"#;
    assert_eq!(harness.ask("SHOW SERIES FROM mem").await, keys(left));
    harness.ask("DELETE FROM mem").await;
    let none = r#"{"results":[{"statement_id":0}]}"#;
    assert_eq!(harness.ask("SHOW SERIES FROM mem").await, none);
    let names = harness.ask("SHOW MEASUREMENTS").await;
    assert!(names.contains("cpu") && !names.contains("mem"), "{names}");
}

/// SHOW FIELD KEYS is about the default policy, as in InfluxDB.
#[tokio::test]
async fn field_keys_are_those_of_the_default_policy() {
    let harness = Harness::new();
    harness.write(ROWS);
    let made = "CREATE RETENTION POLICY week ON d DURATION INF REPLICATION 1; \
                SELECT v AS weekly INTO week.cpu FROM cpu; SELECT v AS weekly INTO week.other FROM cpu";
    assert!(!harness.ask(made).await.contains("error"));
    let of = |measurement: &str, fields: &[(&str, &str)]| {
        let rows = fields
            .iter()
            .map(|(name, kind)| format!("[\"{name}\",\"{kind}\"]"));
        let rows: Vec<String> = rows.collect();
        let columns = "\"columns\":[\"fieldKey\",\"fieldType\"]";
        format!(
            "{{\"name\":\"{measurement}\",{columns},\"values\":[{}]}}",
            rows.join(",")
        )
    };
    let answer =
        |series: &str| format!(r#"{{"results":[{{"statement_id":0,"series":[{series}]}}]}}"#);
    let cpu = [
        ("b", "boolean"),
        ("i", "integer"),
        ("s", "string"),
        ("v", "float"),
    ];
    let mem = of("mem", &[("used", "integer"), ("v", "float")]);
    let weekly = |name| of(name, &[("weekly", "float")]);
    let both = answer(&format!("{},{mem}", of("cpu", &cpu)));
    assert_eq!(harness.ask("SHOW FIELD KEYS").await, both);
    assert_eq!(harness.ask("SHOW FIELD KEYS FROM /.*/").await, both);
    let of_cpu = answer(&of("cpu", &cpu));
    assert_eq!(harness.ask("SHOW FIELD KEYS FROM cpu").await, of_cpu);
    let of_week = answer(&weekly("cpu"));
    assert_eq!(harness.ask("SHOW FIELD KEYS FROM week.cpu").await, of_week);
    let all_of_week = answer(&format!("{},{}", weekly("cpu"), weekly("other")));
    assert_eq!(
        harness.ask("SHOW FIELD KEYS FROM week./.*/").await,
        all_of_week
    );
    let none = r#"{"results":[{"statement_id":0}]}"#;
    assert_eq!(harness.ask("SHOW FIELD KEYS FROM other").await, none);
}

#[tokio::test]
async fn limits_and_groups_of_subqueries() {
    let rows = include_str!("answers/limits.lines");
    compare_over(rows, include_str!("answers/limits.txt")).await;
}

#[tokio::test]
async fn show() {
    compare(include_str!("answers/show.txt")).await;
}

#[tokio::test]
async fn statements() {
    compare(include_str!("answers/statements.txt")).await;
}

#[tokio::test]
async fn fields_named_as_tags_and_the_order_of_series() {
    let rows = include_str!("answers/names.lines");
    compare_over(rows, include_str!("answers/names.txt")).await;
}

/// More rows than a batch of the scan has: their order must last up to the answer.
#[tokio::test]
async fn many_rows_of_many_series_stay_in_order() {
    let harness = Harness::new();
    let hosts = ["a", "b", "c", "d", "e"];
    let kinds = ["x", "y", "z"];
    for (place, host) in hosts.iter().enumerate() {
        let line = |row: usize| {
            let (time, kind) = (row * hosts.len() + place, kinds[row % 3]);
            format!("m,host={host},kind={kind} v={row} {time}\n")
        };
        harness.write(&(0..20_000).map(line).collect::<String>());
    }
    for (statement, series) in [
        ("SELECT v FROM m GROUP BY host", 5),
        ("SELECT v FROM m WHERE v >= 0 GROUP BY host, kind", 15),
        ("SELECT v FROM m GROUP BY kind ORDER BY time DESC", 3),
        ("SELECT count(v) FROM m GROUP BY kind, host", 15),
        (
            "SELECT mean(w) FROM (SELECT v AS w FROM m GROUP BY *) GROUP BY kind",
            3,
        ),
    ] {
        for _ in 0..3 {
            let answer = harness.ask(statement).await;
            assert_eq!(answer.matches("\"tags\"").count(), series, "{statement}");
        }
    }
}

/// What SHOW collects counts as memory of the statement: here 4,000 keys of 8 KB at a limit of 64 MB.
#[tokio::test]
async fn show_of_more_keys_than_fit_into_memory_is_refused() {
    let harness = Harness::with_memory(64 << 20);
    for host in 0..4_000 {
        harness.write(&format!("m,host={host:0>8000} v=1 1"));
    }
    for statement in ["SHOW SERIES", "SHOW TAG VALUES WITH KEY = host"] {
        let answer = harness.ask(statement).await;
        assert!(answer.contains("memory"), "{statement}: {answer:.200}");
    }
    let answer = harness.ask("SHOW SERIES EXACT CARDINALITY").await;
    assert!(answer.contains("[4000]"), "{answer:.200}");
    let answer = harness.ask("SHOW MEASUREMENTS").await;
    assert!(answer.contains("\"m\""), "{answer:.200}");
}

/// The times vary; what the statement read does not.
#[tokio::test]
async fn an_analysis_runs_the_statement() {
    let harness = Harness::new();
    harness.write("m,h=a v=1,w=2i 1\nm,h=b v=3 2");
    for (statement, lines) in [
        (
            "EXPLAIN ANALYZE SELECT mean(v) FROM m GROUP BY h",
            ["expr: mean(v", "series: 2", "rows: 2", "total_time: "],
        ),
        (
            "EXPLAIN ANALYZE SELECT v, w FROM m WHERE h = 'a'",
            [
                "auxiliary_fields: v",
                "series: 1",
                "rows: 1",
                "planning_time: ",
            ],
        ),
    ] {
        let answer = harness.ask(statement).await;
        assert!(answer.contains("[\"EXPLAIN ANALYZE\"]"), "{answer}");
        for line in lines {
            assert!(answer.contains(line), "{line}: {answer}");
        }
    }
    let answer = harness.ask("EXPLAIN ANALYZE SELECT mean(x + FROM m").await;
    assert!(answer.contains("error parsing query"), "{answer}");
}
