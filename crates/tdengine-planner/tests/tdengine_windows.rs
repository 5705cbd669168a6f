//! Functions of many rows and windows, compared with what follows from their definitions.

mod harness;

use harness::Harness;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A table of one column with these rows.
async fn table(rows: &[(i64, Option<i64>)]) -> Harness {
    let data = Harness::with_database().await;
    data.done("CREATE STABLE s (ts TIMESTAMP, v INT, f DOUBLE) TAGS (g INT)")
        .await;
    data.done("CREATE TABLE t USING s TAGS (1)").await;
    let mut text = "INSERT INTO t VALUES".to_owned();
    for (time, value) in rows {
        let value = value.map_or("NULL".to_owned(), |value| value.to_string());
        let _ = write!(text, " ({time}, {value}, {value})");
    }
    data.done(&text).await;
    data
}

fn some(rows: &[(i64, i64)]) -> Vec<(i64, Option<i64>)> {
    rows.iter()
        .map(|(time, value)| (*time, Some(*value)))
        .collect()
}

#[tokio::test]
async fn aggregates_have_their_values() {
    let data = table(&some(&[
        (1000, 3),
        (2000, 1),
        (3000, 4),
        (4000, 1),
        (5000, 5),
    ]))
    .await;
    let row = data.value(
        "SELECT COUNT(*), COUNT(v), SUM(v), AVG(v), MIN(v), MAX(v), SPREAD(v), FIRST(v), LAST(v), \
         LAST_ROW(v), STDDEV(f), ELAPSED(ts, 1s) FROM t",
    );
    assert_eq!(row.await, "5 5 14 2.8 1 5 4 3 5 5 1.6 4");
    assert_eq!(
        data.value("SELECT PERCENTILE(v, 50), APERCENTILE(f, 25) FROM t")
            .await,
        "3 1"
    );
    assert_eq!(data.value("SELECT TWA(f) FROM t").await, "2.5");
    assert_eq!(data.value("SELECT IRATE(f) FROM t").await, "4");
    assert_eq!(
        data.value("SELECT MODE(v), HYPERLOGLOG(v) FROM t").await,
        "1 4"
    );
    let fitted = data.value("SELECT LEASTSQUARES(v, 1, 1) FROM t").await;
    assert_eq!(fitted, "{slop:0.400000, intercept:1.600000}");
    // The row of the only value is shown.
    assert_eq!(data.value("SELECT ts, MAX(v) FROM t").await, "5000 5");
    assert_eq!(data.value("SELECT ts, MIN(v), g FROM s").await, "2000 1 1");
    let named = data.query("SELECT LAST(*) FROM t").await;
    let names: Vec<&str> = named
        .columns
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["last(ts)", "last(v)", "last(f)"]);
    assert_eq!(
        data.value("SELECT COUNT(*) FROM t WHERE v > 100").await,
        "0"
    );
    assert_eq!(
        data.rows("SELECT SUM(v) FROM t WHERE v > 100").await.len(),
        0
    );
    assert_eq!(
        data.value("SELECT SUM(v) * 2 + COUNT(*) FROM t HAVING COUNT(*) > 4")
            .await,
        "33"
    );
}

#[tokio::test]
async fn rows_are_chosen() {
    let data = table(&some(&[
        (1000, 3),
        (2000, 1),
        (3000, 4),
        (4000, 1),
        (5000, 5),
    ]))
    .await;
    assert_eq!(
        data.rows("SELECT ts, TOP(v, 2) FROM t").await,
        ["3000 4", "5000 5"]
    );
    assert_eq!(
        data.rows("SELECT ts, BOTTOM(v, 2) FROM t").await,
        ["2000 1", "4000 1"]
    );
    assert_eq!(
        data.rows("SELECT ts, TAIL(v, 2, 1) FROM t").await,
        ["3000 4", "4000 1"]
    );
    assert_eq!(data.rows("SELECT ts, UNIQUE(v) FROM t").await.len(), 4);
    assert_eq!(data.rows("SELECT SAMPLE(v, 3) FROM t").await.len(), 3);
    let bins = data
        .rows("SELECT HISTOGRAM(v, 'user_input', '[0, 2, 6]', 0) FROM t")
        .await;
    assert_eq!(bins[0], "{\"lower_bin\":0, \"upper_bin\":2, \"count\":2}");
    assert_eq!(bins[1], "{\"lower_bin\":2, \"upper_bin\":6, \"count\":3}");
}

#[tokio::test]
async fn rows_follow_the_rows_before() {
    let data = table(&some(&[(1000, 3), (2000, 1), (3000, 4), (5000, 6)])).await;
    let rows = data.rows("SELECT ts, DIFF(v) FROM t").await;
    assert_eq!(rows, ["2000 -2", "3000 3", "5000 2"]);
    let rows = data.rows("SELECT ts, DERIVATIVE(f, 1s, 1) FROM t").await;
    assert_eq!(rows, ["3000 3", "5000 1"]);
    let rows = data.rows("SELECT CSUM(v) FROM t").await;
    assert_eq!(rows, ["3", "4", "8", "14"]);
    let rows = data.rows("SELECT ts, MAVG(v, 2) FROM t").await;
    assert_eq!(rows, ["2000 2", "3000 2.5", "5000 5"]);
    let rows = data
        .rows("SELECT STATECOUNT(v, 'GT', 2), STATEDURATION(v, 'GT', 2, 1s) FROM t")
        .await;
    assert_eq!(rows, ["1 0", "-1 -1", "1 0", "2 2"]);
}

#[tokio::test]
async fn windows_of_time_are_filled() {
    let data = table(&some(&[(1000, 1), (1500, 3), (5000, 9)])).await;
    let range = "ts >= 0 AND ts < 7000";
    let query = |fill: &str| {
        format!("SELECT _wstart, _wend, COUNT(*), SUM(v) FROM t WHERE {range} INTERVAL(2s){fill}")
    };
    let rows = data.rows(&query("")).await;
    assert_eq!(rows, ["0 2000 2 4", "4000 6000 1 9"]);
    let rows = data.rows(&query(" FILL(NULL)")).await;
    let wanted = [
        "0 2000 2 4",
        "2000 4000 NULL NULL",
        "4000 6000 1 9",
        "6000 8000 NULL NULL",
    ];
    assert_eq!(rows, wanted);
    let rows = data.rows(&query(" FILL(VALUE, 0, 7)")).await;
    assert_eq!(rows[1], "2000 4000 0 7");
    let rows = data.rows(&query(" FILL(PREV)")).await;
    assert_eq!([&rows[1], &rows[3]], ["2000 4000 2 4", "6000 8000 1 9"]);
    let rows = data.rows(&query(" FILL(NEXT)")).await;
    assert_eq!(
        [&rows[1], &rows[3]],
        ["2000 4000 1 9", "6000 8000 NULL NULL"]
    );
    let linear =
        "SELECT _wstart, AVG(f) FROM t WHERE ts >= 0 AND ts < 7000 INTERVAL(2s) FILL(LINEAR)";
    assert_eq!(data.rows(linear).await[1], "2000 5.5");
    assert_eq!(
        data.code("SELECT COUNT(*) FROM t INTERVAL(2s) FILL(NULL)")
            .await,
        0x263B
    );
    let sliding = "SELECT _wstart, COUNT(*) FROM t INTERVAL(2s) SLIDING(1s)";
    let wanted = ["0 2", "1000 2", "4000 1", "5000 1"];
    assert_eq!(data.rows(sliding).await, wanted);
    let offset = "SELECT _wstart, COUNT(*) FROM t INTERVAL(2s, 1s)";
    assert_eq!(data.rows(offset).await, ["1000 2", "5000 1"]);
    let months = "SELECT _wstart, COUNT(*) FROM t INTERVAL(1n)";
    assert_eq!(data.rows(months).await, ["0 3"]);
}

#[tokio::test]
async fn windows_follow_gaps_states_events_and_counts() {
    let rows = [
        (1000, 1),
        (2000, 1),
        (6000, 2),
        (7000, 2),
        (8000, 1),
        (20000, 5),
    ];
    let data = table(&some(&rows)).await;
    let session = "SELECT _wstart, _wend, COUNT(*) FROM t SESSION(ts, 3s)";
    let wanted = ["1000 2000 2", "6000 8000 3", "20000 20000 1"];
    assert_eq!(data.rows(session).await, wanted);
    let state = "SELECT _wstart, _wduration, COUNT(*), FIRST(v) FROM t STATE_WINDOW(v)";
    let wanted = [
        "1000 1000 2 1",
        "6000 1000 2 2",
        "8000 0 1 1",
        "20000 0 1 5",
    ];
    assert_eq!(data.rows(state).await, wanted);
    let event = "SELECT _wstart, _wend, COUNT(*) FROM t \
                 EVENT_WINDOW START WITH v = 2 END WITH v = 1";
    assert_eq!(data.rows(event).await, ["6000 8000 3"]);
    let count = "SELECT _wstart, _wend, COUNT(*) FROM t COUNT_WINDOW(4)";
    assert_eq!(data.rows(count).await, ["1000 7000 4", "8000 20000 2"]);
    let count = "SELECT _wstart, COUNT(*) FROM t COUNT_WINDOW(4, 2)";
    assert_eq!(data.rows(count).await, ["1000 4", "6000 4", "8000 2"]);
}

#[tokio::test]
async fn values_are_interpolated() {
    let data = table(&some(&[(1000, 10), (3000, 30), (4000, 40)])).await;
    let query = |fill: &str| {
        format!("SELECT _irowts, INTERP(f) FROM t RANGE(0, 5000) EVERY(1s) FILL({fill})")
    };
    let rows = data.rows(&query("LINEAR")).await;
    assert_eq!(rows, ["1000 10", "2000 20", "3000 30", "4000 40"]);
    let rows = data.rows(&query("PREV")).await;
    assert_eq!(
        rows,
        ["1000 10", "2000 10", "3000 30", "4000 40", "5000 40"]
    );
    let rows = data.rows(&query("NEXT")).await;
    assert_eq!(rows, ["0 10", "1000 10", "2000 30", "3000 30", "4000 40"]);
    let rows = data.rows(&query("VALUE, 7")).await;
    assert_eq!(
        rows,
        ["0 7", "1000 10", "2000 7", "3000 30", "4000 40", "5000 7"]
    );
    let one = data
        .rows("SELECT INTERP(v) FROM t RANGE(2000) FILL(LINEAR)")
        .await;
    assert_eq!(one, ["20"]);
}

#[tokio::test]
async fn partitions_have_their_own_limits() {
    let data = Harness::with_database().await;
    data.done("CREATE STABLE s (ts TIMESTAMP, v INT) TAGS (g INT)")
        .await;
    for table in 1..=3 {
        let insert = format!(
            "INSERT INTO t{table} USING s TAGS ({table}) VALUES (1000, {table}) (2000, {table}0) (3000, 7)"
        );
        data.done(&insert).await;
    }
    let rows = data
        .rows("SELECT tbname, SUM(v) FROM s PARTITION BY tbname")
        .await;
    assert_eq!(rows, ["t1 18", "t2 29", "t3 40"]);
    let rows = data
        .rows("SELECT g, COUNT(*) FROM s PARTITION BY g SLIMIT 1 SOFFSET 1")
        .await;
    assert_eq!(rows, ["2 3"]);
    let rows = data
        .rows("SELECT tbname, ts FROM s PARTITION BY tbname ORDER BY ts DESC, tbname LIMIT 1")
        .await;
    assert_eq!(rows, ["t1 3000", "t2 3000", "t3 3000"]);
    let rows = data
        .rows("SELECT tbname, DIFF(v) FROM s PARTITION BY tbname SLIMIT 1")
        .await;
    assert_eq!(rows, ["t1 9", "t1 -3"]);
    let rows = data
        .rows("SELECT _wstart, g, MAX(v) FROM s PARTITION BY g INTERVAL(2s) SLIMIT 1")
        .await;
    assert_eq!(rows, ["0 1 1", "2000 1 10"]);
}

/// Numbers that look random, and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % below).expect("it is small")
    }
}

#[tokio::test]
async fn random_windows_equal_those_of_the_definition() {
    for seed in 0..6 {
        let mut numbers = Numbers(seed + 17);
        let mut rows: BTreeMap<i64, Option<i64>> = BTreeMap::new();
        for _ in 0..200 {
            let value = numbers.next(50);
            rows.insert(numbers.next(100_000), (value > 5).then_some(value - 25));
        }
        let rows: Vec<(i64, Option<i64>)> = rows.into_iter().collect();
        let data = table(&rows).await;
        let width = 500 + numbers.next(5000);
        let slide = (1 + width / (1 + numbers.next(4))).min(width);
        let offset = numbers.next(u64::try_from(width).expect("it is positive"));
        for slide in [width, slide] {
            let query = format!(
                "SELECT _wstart, COUNT(*), COUNT(v), SUM(v), MIN(v), LAST(v), LAST_ROW(v), SPREAD(v) FROM t \
                 INTERVAL({width}a, {offset}a) SLIDING({slide}a)"
            );
            let wanted = oracle(&rows, width, slide, offset);
            assert_eq!(data.rows(&query).await, wanted, "{query}");
        }
        let gap = 200 + numbers.next(1500);
        let query = format!("SELECT _wstart, _wend, COUNT(*) FROM t SESSION(ts, {gap}a)");
        assert_eq!(data.rows(&query).await, sessions(&rows, gap), "{query}");
    }
}

/// Each window by itself, from all rows.
fn oracle(rows: &[(i64, Option<i64>)], width: i64, slide: i64, offset: i64) -> Vec<String> {
    let mut answer = Vec::new();
    let (first, last) = (rows[0].0, rows[rows.len() - 1].0);
    let mut start = (first - width - offset).div_euclid(slide) * slide + offset;
    while start <= last {
        let within: Vec<&(i64, Option<i64>)> = rows
            .iter()
            .filter(|(time, _)| (start..start + width).contains(time))
            .collect();
        if !within.is_empty() {
            let values: Vec<i64> = within.iter().filter_map(|(_, value)| *value).collect();
            let shown =
                |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
            let sum = (!values.is_empty()).then(|| values.iter().sum());
            let spread = values
                .iter()
                .max()
                .zip(values.iter().min())
                .map(|(max, min)| max - min);
            answer.push(format!(
                "{start} {} {} {} {} {} {} {}",
                within.len(),
                values.len(),
                shown(sum),
                shown(values.iter().min().copied()),
                shown(values.last().copied()),
                shown(within[within.len() - 1].1),
                shown(spread)
            ));
        }
        start += slide;
    }
    answer
}

fn sessions(rows: &[(i64, Option<i64>)], gap: i64) -> Vec<String> {
    let mut answer: Vec<(i64, i64, usize)> = Vec::new();
    for (time, _) in rows {
        match answer.last_mut() {
            Some((_, end, count)) if time - *end <= gap => {
                *end = *time;
                *count += 1;
            }
            _ => answer.push((*time, *time, 1)),
        }
    }
    let rows = answer.iter();
    rows.map(|(start, end, count)| format!("{start} {end} {count}"))
        .collect()
}
