//! Compares random queries with gap filling with a naive model: it finds buckets by stepping
//! through the range minute by minute, rows by a plain `GROUP BY`, and values by searching
//! neighbours one by one.
//!
//! `MARIGRAM_RANDOM_QUERIES` and `MARIGRAM_RANDOM_SEED` as for the random aggregates.

use super::random::{number, one};
use super::service::block_on;
use super::{Database, to_texts};
use arrow::array::{ArrayRef, StringArray, TimestampNanosecondArray};
use futures::StreamExt;
use marigram_service::{Answer, Query};
use rand::prelude::*;
use sqllogictest::{AsyncDB, DBOutput};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Bound;
use std::sync::Arc;

/// The number of queries per set of data.
const QUERIES: u64 = 10;

/// A row that exists: number of rows, and the mean if there is one.
type PresentRows = (u64, Option<f64>);

async fn rows(db: &mut Database, sql: &str) -> Vec<Vec<String>> {
    match db.run(sql).await {
        Ok(DBOutput::Rows { rows, .. }) => rows,
        Ok(_) => Vec::new(),
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn time(minute: i64) -> String {
    let (day, minute) = (minute.div_euclid(1440), minute.rem_euclid(1440));
    let (month, day) = if day < 31 {
        (3, day + 1)
    } else {
        (4, day - 30)
    };
    format!(
        "'2024-{month:02}-{day:02}T{:02}:{:02}:00Z'",
        minute / 60,
        minute % 60
    )
}

async fn fill(db: &mut Database, rng: &mut StdRng) {
    rows(
        db,
        "CREATE TABLE g (time TIMESTAMP, dev STRING TAG, x DOUBLE, y INT)",
    )
    .await;
    let mut sql = String::from("INSERT INTO g VALUES ");
    let count = rng.random_range(1..60);
    for row in 0..count {
        let comma = if row == 0 { "" } else { ", " };
        // Around the night in which European clocks are set forward.
        let at = time(rng.random_range(29 * 1440..32 * 1440));
        let dev = rng.random_range(0..3);
        let value = if rng.random_ratio(1, 4) {
            "NULL".into()
        } else {
            format!("{}", f64::from(rng.random_range(-40..40)) * 0.25)
        };
        let _ = write!(sql, "{comma}({at}, 'd{dev}', {value}, {row})");
    }
    rows(db, &sql).await;
}

/// The arguments of a bucket, except for the time.
fn bucket(rng: &mut StdRng) -> (&'static str, String) {
    let zone = one(
        rng,
        &[
            "Europe/Berlin",
            "America/New_York",
            "Australia/Lord_Howe",
            "Asia/Kolkata",
        ],
    );
    match rng.random_range(0..6) {
        0 => ("7 minutes", String::new()),
        1 => ("1 hour", format!(", '{zone}'")),
        2 => ("1 day", format!(", '{zone}'")),
        3 => ("5 hours", format!(", '{zone}', INTERVAL '30 minutes'")),
        4 => ("1 month", format!(", '{zone}'")),
        _ => ("90 minutes", ", TIMESTAMP '2024-03-31 00:20:00'".into()),
    }
}

fn ns(text: &str) -> i64 {
    let time: jiff::civil::DateTime = text.parse().expect("a time");
    let time = time
        .to_zoned(jiff::tz::TimeZone::UTC)
        .expect("a time in UTC");
    i64::try_from(time.timestamp().as_nanosecond()).expect("a time of our age")
}

fn float(text: &str) -> Option<f64> {
    (text != "NULL").then(|| text.parse().expect("a number"))
}

/// The value of the next row from `at` in a direction: the adjacent one, or the next that has a
/// value.
fn beside<'a>(
    mut rows: impl Iterator<Item = (&'a String, &'a PresentRows)>,
    nulls_missing: bool,
) -> Option<(i64, f64)> {
    let (time, (_, value)) = rows.find(|(_, (_, value))| value.is_some() || !nulls_missing)?;
    Some((ns(time), (*value)?))
}

/// The expected values of a group at a bucket: count, mean, locf, locf over nulls, interpolate,
/// interpolate over nulls, constant.
fn expected(group: &BTreeMap<String, PresentRows>, bucket: &str) -> [Option<f64>; 7] {
    let own = group.get(bucket);
    let mean = own.and_then(|(_, mean)| *mean);
    let before = |missing| {
        let to = (Bound::Unbounded, Bound::Excluded(bucket));
        beside(group.range::<str, _>(to).rev(), missing)
    };
    let after = |missing| {
        let from = (Bound::Excluded(bucket), Bound::Unbounded);
        beside(group.range::<str, _>(from), missing)
    };
    let line = |missing| {
        let ((from, first), (to, last)) = (before(missing)?, after(missing)?);
        let part = (ns(bucket) - from) as f64 / (to - from) as f64;
        Some(first + (last - first) * part)
    };
    let carried = |missing| before(missing).map(|(_, value)| value);
    let there = own.is_some();
    [
        own.map(|(count, _)| *count as f64),
        mean,
        if there { mean } else { carried(false) },
        mean.or_else(|| carried(true)),
        if there { mean } else { line(false) },
        mean.or_else(|| line(true)),
        if there { mean } else { Some(-7.5) },
    ]
}

async fn check(db: &mut Database, rng: &mut StdRng, seed: u64) {
    let (width, places) = bucket(rng);
    let first = rng.random_range(29 * 1440..32 * 1440);
    let last = first + rng.random_range(0..1500);
    let by_dev = rng.random_bool(0.7);
    let (key, keys) = if by_dev {
        ("dev, ", "b, dev")
    } else {
        ("", "b")
    };
    let range = format!("time >= {} AND time < {}", time(first), time(last));
    let grid = format!(
        "SELECT DISTINCT time_bucket('{width}', value{places}) AS b FROM generate_series(TIMESTAMP \
         {}, TIMESTAMP {}, INTERVAL '1 minute') ORDER BY b",
        time(first),
        time(last - 1)
    );
    let grid: Vec<String> = if first < last {
        rows(db, &grid).await.into_iter().flatten().collect()
    } else {
        Vec::new()
    };
    // What HAVING removes is a gap, or a group that does not exist.
    let having = one(
        rng,
        &[
            "",
            "",
            "HAVING avg(x) > 0",
            "HAVING count(*) > 1",
            "HAVING max(y) % 2 = 0 AND count(x) > 0",
        ],
    );
    let plain = format!(
        "SELECT {key}time_bucket('{width}', time{places}) AS b, count(*), avg(x) FROM g WHERE {range} \
         GROUP BY {keys} {having}"
    );
    let mut groups: BTreeMap<String, BTreeMap<String, PresentRows>> = BTreeMap::new();
    if !by_dev {
        groups.insert(String::new(), BTreeMap::new());
    }
    for mut row in rows(db, &plain).await {
        let group = if by_dev { row.remove(0) } else { String::new() };
        let count = row[1].parse().expect("a number of rows");
        let there = (count, float(&row[2]));
        groups
            .entry(group)
            .or_default()
            .insert(row[0].clone(), there);
    }
    let filled = format!(
        "SELECT {key}time_bucket_gapfill('{width}', time{places}) AS b, count(*), avg(x), \
         locf(avg(x)), locf(avg(x), true), interpolate(avg(x)), interpolate(avg(x), true), \
         fill_value(avg(x), -7.5) FROM g WHERE {range} GROUP BY {keys} {having} ORDER BY {key}b"
    );
    let mut answer = rows(db, &filled).await.into_iter();
    for (dev, group) in &groups {
        for bucket in &grid {
            let mut row = answer
                .next()
                .unwrap_or_else(|| panic!("seed {seed}: {filled} ends"));
            let group_of_row = if by_dev { row.remove(0) } else { String::new() };
            assert_eq!(
                (&group_of_row, &row[0]),
                (dev, bucket),
                "seed {seed}: {filled}"
            );
            for (text, expected) in row[1..].iter().zip(expected(group, bucket)) {
                let same = match (float(text), expected) {
                    (Some(value), Some(expected)) => (value - expected).abs() < 1e-9,
                    (value, expected) => value.is_none() && expected.is_none(),
                };
                assert!(same, "seed {seed}: {filled}\n{row:?}, not {expected:?}");
            }
        }
    }
    assert!(answer.next().is_none(), "seed {seed}: {filled} goes on");
}

#[test]
fn gaps_are_filled_as_by_hand() {
    let seed = number("MARIGRAM_RANDOM_SEED", 1);
    let queries = number("MARIGRAM_RANDOM_QUERIES", 200);
    for seed in seed..seed + queries.div_ceil(QUERIES) {
        let mut rng = StdRng::seed_from_u64(seed);
        block_on(async {
            let mut db = Database::open().await.expect("a database");
            fill(&mut db, &mut rng).await;
            for _ in 0..QUERIES {
                check(&mut db, &mut rng, seed).await;
            }
        });
    }
}

#[test]
fn a_prepared_statement_takes_its_range_from_parameters() {
    block_on(async {
        let mut db = Database::open().await.expect("a database");
        rows(&mut db, "CREATE TABLE g (time TIMESTAMP, x DOUBLE)").await;
        rows(&mut db, "INSERT INTO g VALUES ('2024-01-01T00:01:00Z', 2)").await;
        let sql = db.sql.clone();
        let statement = "SELECT time_bucket_gapfill($1, time) AS b, locf(avg(x)) FROM g WHERE time >= \
                         $2 AND time < $3 GROUP BY b ORDER BY b";
        let prepared = sql
            .prepare(&db.session, statement)
            .await
            .expect("it is one");
        let time = |minute: i64| TimestampNanosecondArray::from(vec![minute * 60_000_000_000]);
        let start = 1_704_067_200 / 60;
        for (end, expected) in [(3, vec!["NULL", "2.0", "2.0"]), (2, vec!["NULL", "2.0"])] {
            let values: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from(vec!["1m"])),
                Arc::new(time(start)),
                Arc::new(time(start + end)),
            ];
            let answer = sql
                .execute_prepared(&mut db.session, &*prepared, values)
                .await;
            let Answer::Rows(mut answer) = answer.expect("it answers") else {
                panic!("the statement has rows")
            };
            let mut found = Vec::new();
            while let Some(batch) = answer.batches.next().await {
                found.extend(to_texts(&batch.expect("a batch")));
            }
            let values: Vec<&str> = found.iter().map(|row| row[1].as_str()).collect();
            assert_eq!(values, expected);
        }
    });
}

#[test]
fn many_rows_are_streamed_and_the_query_can_be_stopped() {
    block_on(async {
        let mut db = Database::open_with(32 << 20).await.expect("a database");
        rows(
            &mut db,
            "CREATE TABLE g (time TIMESTAMP, dev BIGINT TAG, x DOUBLE)",
        )
        .await;
        let insert = "INSERT INTO g SELECT TIMESTAMP '2024-01-01 00:00:00', value, 1.0 FROM \
                      generate_series(1, 20)";
        rows(&mut db, insert).await;
        // Twenty groups of 86,400 rows each, with less memory than they need together.
        let filled = "SELECT dev, time_bucket_gapfill('1s', time) AS b, locf(avg(x)) AS l FROM g \
                      WHERE time >= '2024-01-01' AND time < '2024-01-02' GROUP BY dev, b";
        let counted = rows(&mut db, &format!("SELECT count(*), sum(l) FROM ({filled})")).await;
        assert_eq!(counted, [["1728000", "1728000.0"]]);
        // Ten thousand groups of 8.6 million rows, for which nobody waits.
        rows(&mut db, &insert.replace("20)", "10000)")).await;
        let endless = filled.replace("'1s'", "'10ms'");
        db.run("SET statement_timeout = '200ms'")
            .await
            .expect("it is set");
        let error = db.run(&format!("SELECT sum(l) FROM ({endless})")).await;
        let error = error
            .err()
            .expect("the statement takes too long")
            .to_string();
        assert!(error.starts_with("57014"), "{error}");
    });
}
