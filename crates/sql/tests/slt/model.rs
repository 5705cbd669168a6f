//! Compares random aggregates with rows that are added up by hand: a map of what was written,
//! overwritten and deleted, without the operators of any database.
//!
//! `MARIGRAM_RANDOM_QUERIES` and `MARIGRAM_RANDOM_SEED` as for the random aggregates.

use super::Database;
use super::random::{number, one};
use super::service::block_on;
use rand::prelude::*;
use sqllogictest::{AsyncDB, DBOutput};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The number of queries per set of data.
const QUERIES: u64 = 25;
/// The longest time, s.
const TIME_MAX: i64 = 1200;

/// Fields of a row; quarters, so that sums are exact.
#[derive(Clone, Copy, Debug, Default)]
struct ModelFields {
    a: Option<i64>,
    c: Option<f64>,
}

/// Rows by series and time in ms; no two series have rows with the same time.
type ModelRows = BTreeMap<(u32, i64), ModelFields>;

fn site(series: u32) -> Option<String> {
    (!series.is_multiple_of(5)).then(|| format!("s{}", series % 3))
}

async fn rows(db: &mut Database, sql: &str) -> Vec<Vec<String>> {
    match db.run(sql).await {
        Ok(DBOutput::Rows { rows, .. }) => rows,
        Ok(_) => Vec::new(),
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn or_null<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".into(), |value| value.to_string())
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

async fn insert(db: &mut Database, rng: &mut StdRng, there: &mut ModelRows) {
    let mut values = BTreeMap::new();
    let (start, step) = (rng.random_range(0..TIME_MAX), rng.random_range(1..20));
    for row in 0..rng.random_range(10..300) {
        let series = rng.random_range(0..9);
        let ms = (start + row * step / 6) % TIME_MAX * 1000 + i64::from(series);
        let mut fields = ModelFields {
            a: (!rng.random_ratio(1, 6)).then(|| rng.random_range(-50..50)),
            c: (!rng.random_ratio(1, 6)).then(|| f64::from(rng.random_range(-99..99)) * 0.25),
        };
        // A row without any value does not exist.
        if fields.c.is_none() {
            fields.a = fields.a.or(Some(row));
        }
        values.insert((series, ms), fields);
    }
    let texts = values.iter().map(|((series, ms), fields)| {
        let site = or_null(site(*series).as_deref().map(quoted));
        let (a, c) = (or_null(fields.a), or_null(fields.c));
        format!("(to_timestamp_nanos({ms} * 1000000), {site}, {series}, {a}, {c})")
    });
    let texts: Vec<String> = texts.collect();
    let sql = format!("INSERT INTO m VALUES {}", texts.join(", "));
    rows(db, &sql).await;
    for (key, new) in values {
        // A null leaves the old value.
        let known = there.entry(key).or_default();
        known.a = new.a.or(known.a);
        known.c = new.c.or(known.c);
    }
}

async fn fill(db: &mut Database, rng: &mut StdRng) -> ModelRows {
    let create = "CREATE TABLE m (time TIMESTAMP, site STRING TAG, unit BIGINT TAG, a INT, c DOUBLE) \
                  WITH (page_size = '1KiB', partition = '1h')";
    rows(db, create).await;
    let mut there = ModelRows::new();
    for _ in 0..rng.random_range(1..6) {
        insert(db, rng, &mut there).await;
        if rng.random_bool(0.6) {
            rows(db, "FLUSH").await;
        }
        if rng.random_ratio(1, 3) {
            let unit = rng.random_range(0..9);
            let from = rng.random_range(0..TIME_MAX) * 1000;
            let to = from + rng.random_range(1..400_000);
            let sql = format!(
                "DELETE FROM m WHERE unit = {unit} AND time >= to_timestamp_nanos({from} * 1000000) AND time \
                 < to_timestamp_nanos({to} * 1000000)"
            );
            rows(db, &sql).await;
            there.retain(|(series, ms), _| *series != unit || *ms < from || *ms >= to);
        }
        if rng.random_ratio(1, 6) {
            rows(db, "COMPACT").await;
        }
    }
    there
}

/// The contents of a group: its rows by time.
type ModelGroup = BTreeMap<i64, (u32, ModelFields)>;
type ModelAnswer = fn(&ModelGroup) -> Option<f64>;

fn values(group: &ModelGroup) -> impl DoubleEndedIterator<Item = f64> {
    group.values().filter_map(|(_, fields)| fields.c)
}

fn numbers(group: &ModelGroup) -> impl DoubleEndedIterator<Item = f64> {
    let numbers = group.values().filter_map(|(_, fields)| fields.a);
    numbers.map(|a| a as f64)
}

fn sum(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

const CALLS: [(&str, ModelAnswer); 14] = [
    ("count(*)", |group| Some(group.len() as f64)),
    ("count(a)", |group| Some(numbers(group).count() as f64)),
    ("count(c)", |group| Some(values(group).count() as f64)),
    ("sum(a)", |group| sum(numbers(group))),
    ("sum(c)", |group| sum(values(group))),
    ("avg(a)", |group| {
        Some(sum(numbers(group))? / numbers(group).count() as f64)
    }),
    ("min(a)", |group| numbers(group).reduce(f64::min)),
    ("max(c)", |group| values(group).reduce(f64::max)),
    ("first(a, time)", |group| numbers(group).next()),
    ("last(c, time)", |group| values(group).next_back()),
    ("max(unit)", |group| {
        group
            .values()
            .map(|(unit, _)| f64::from(*unit))
            .reduce(f64::max)
    }),
    ("count(DISTINCT a)", |group| {
        let mut all: Vec<i64> = group.values().filter_map(|(_, f)| f.a).collect();
        all.sort_unstable();
        all.dedup();
        Some(all.len() as f64)
    }),
    ("sum(a) FILTER (WHERE c > 2)", |group| {
        let wanted = group.values().filter(|(_, f)| f.c.is_some_and(|c| c > 2.0));
        sum(wanted.filter_map(|(_, f)| f.a).map(|a| a as f64))
    }),
    ("max(time)::BIGINT / 1000000", |group| {
        group.keys().next_back().map(|ms| *ms as f64)
    }),
];

type ModelPredicate = Box<dyn Fn(u32, i64, ModelFields) -> bool>;

fn condition(rng: &mut StdRng) -> (String, ModelPredicate) {
    let second = rng.random_range(0..TIME_MAX);
    let (ms, unit, a) = (
        second * 1000,
        rng.random_range(0..9),
        rng.random_range(-60..60),
    );
    match rng.random_range(0..7) {
        0 => (
            format!("time >= to_timestamp_nanos({ms} * 1000000)"),
            Box::new(move |_, time, _| time >= ms),
        ),
        1 => (
            format!("time < to_timestamp_nanos({ms} * 1000000)"),
            Box::new(move |_, time, _| time < ms),
        ),
        2 => (
            "site = 's1'".into(),
            Box::new(|series, _, _| site(series).as_deref() == Some("s1")),
        ),
        3 => (
            format!("unit IN ({unit}, 2)"),
            Box::new(move |series, _, _| series == unit || series == 2),
        ),
        4 => (
            format!("a > {a}"),
            Box::new(move |_, _, fields| fields.a.is_some_and(|own| own > a)),
        ),
        5 => (
            "site IS NULL".into(),
            Box::new(|series, _, _| site(series).is_none()),
        ),
        _ => (
            "unit % 2 = 1".into(),
            Box::new(|series, _, _| series % 2 == 1),
        ),
    }
}

async fn check(db: &mut Database, rng: &mut StdRng, there: &ModelRows, seed: u64) {
    let keys: Vec<&str> = ["site", "unit", "unit % 4", "b"]
        .into_iter()
        .filter(|_| rng.random_ratio(1, 3))
        .collect();
    let width = rng.random_range(1..200);
    let conditions: Vec<(String, ModelPredicate)> = (0..rng.random_range(0..3))
        .map(|_| condition(rng))
        .collect();
    let count = rng.random_range(1..5);
    let calls: Vec<_> = CALLS.sample(rng, count).collect();
    let listed = keys.iter().map(|key| match *key {
        "b" => format!("time_bucket(INTERVAL '{width} seconds', time, TIMESTAMP '1970-01-01')::BIGINT / 1000000 AS b"),
        key => key.to_owned(),
    });
    let listed: Vec<String> = listed
        .chain(calls.iter().map(|(call, _)| (*call).to_owned()))
        .collect();
    let mut sql = format!("SELECT {} FROM m", listed.join(", "));
    if !conditions.is_empty() {
        let texts: Vec<&str> = conditions.iter().map(|(text, _)| text.as_str()).collect();
        let _ = write!(sql, " WHERE {}", texts.join(" AND "));
    }
    if !keys.is_empty() {
        let by = keys.iter().map(|key| match *key {
            "b" => format!("time_bucket(INTERVAL '{width} seconds', time, TIMESTAMP '1970-01-01')"),
            key => key.to_owned(),
        });
        let by: Vec<String> = by.collect();
        let _ = write!(sql, " GROUP BY {}", by.join(", "));
        if rng.random_bool(0.5) {
            let way = one(rng, &["", " DESC"]);
            let _ = write!(sql, " ORDER BY {}{way}", by.join(", "));
        }
    }
    let mut groups: BTreeMap<Vec<String>, ModelGroup> = BTreeMap::new();
    if keys.is_empty() {
        groups.insert(Vec::new(), ModelGroup::new());
    }
    for ((series, ms), fields) in there {
        if conditions
            .iter()
            .all(|(_, holds)| holds(*series, *ms, *fields))
        {
            let key = keys.iter().map(|key| match *key {
                "site" => or_null(site(*series)),
                "unit" => series.to_string(),
                "b" => (ms - ms.rem_euclid(width * 1000)).to_string(),
                _ => (series % 4).to_string(),
            });
            let group = groups.entry(key.collect()).or_default();
            group.insert(*ms, (*series, *fields));
        }
    }
    for _ in 0..2 {
        let answer = rows(db, &sql).await;
        assert_eq!(answer.len(), groups.len(), "seed {seed}: {sql}");
        for row in answer {
            let (key, answers) = row.split_at(keys.len());
            let Some(group) = groups.get(key) else {
                panic!("seed {seed}: {sql}\nno such group: {row:?}")
            };
            for (text, (call, of)) in answers.iter().zip(&calls) {
                let found = (text != "NULL").then(|| text.parse::<f64>().expect("a number"));
                let expected = of(group);
                let same = match found.zip(expected) {
                    Some((found, expected)) => (found - expected).abs() < 1e-9,
                    None => found.is_none() && expected.is_none(),
                };
                assert!(
                    same,
                    "seed {seed}: {sql}\n{call} of {key:?}: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

#[test]
fn aggregates_are_as_by_hand() {
    let seed = number("MARIGRAM_RANDOM_SEED", 1);
    let queries = number("MARIGRAM_RANDOM_QUERIES", 500);
    for seed in seed..seed + queries.div_ceil(QUERIES) {
        let mut rng = StdRng::seed_from_u64(seed);
        block_on(async {
            let mut db = Database::open().await.expect("a database");
            let mut there = fill(&mut db, &mut rng).await;
            for query in 0..QUERIES {
                if query == QUERIES / 2 {
                    insert(&mut db, &mut rng, &mut there).await;
                }
                check(&mut db, &mut rng, &there, seed).await;
            }
        });
    }
}
