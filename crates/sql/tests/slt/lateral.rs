//! Compares random LATERAL subqueries with nested loops: for each row of the left side, every row
//! of the right side, in order.
//!
//! `MARIGRAM_RANDOM_QUERIES` and `MARIGRAM_RANDOM_SEED` as for the random aggregates.

use super::Database;
use super::random::{number, one};
use super::service::block_on;
use rand::prelude::*;
use sqllogictest::{AsyncDB, DBOutput};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

/// The number of queries per set of data.
const QUERIES: u64 = 20;

/// A row of either side; `v` distinguishes rows.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    time: i64,
    dev: Option<u32>,
    unit: i64,
    v: i64,
    w: Option<i64>,
}

/// The rows of a table, and how to insert them.
fn table(rng: &mut StdRng, name: &str, most: usize) -> (Vec<Row>, String) {
    let mut made: Vec<Row> = Vec::new();
    for v in 0..rng.random_range(1..most) {
        let row = Row {
            time: rng.random_range(0..30),
            dev: (!rng.random_ratio(1, 8)).then(|| rng.random_range(0..3)),
            unit: rng.random_range(0..3),
            v: v as i64,
            w: (!rng.random_ratio(1, 5)).then(|| rng.random_range(0..6)),
        };
        let same =
            |other: &Row| (other.time, other.dev, other.unit) == (row.time, row.dev, row.unit);
        if !made.iter().any(same) {
            made.push(row);
        }
    }
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "NULL".into());
    let values = made.iter().map(|row| {
        let dev = or_null(row.dev.map(|dev| format!("'d{dev}'")));
        let w = or_null(row.w.map(|w| w.to_string()));
        let (time, unit, v) = (row.time, row.unit, row.v);
        format!("(to_timestamp_nanos({time}), {dev}, {unit}, {v}, {w})")
    });
    let values: Vec<String> = values.collect();
    let insert = format!("INSERT INTO {name} VALUES {}", values.join(", "));
    (made, insert)
}

async fn rows(db: &mut Database, sql: &str) -> Vec<Vec<String>> {
    match db.run(sql).await {
        Ok(DBOutput::Rows { rows, .. }) => rows,
        Ok(_) => Vec::new(),
        Err(error) => panic!("{sql}: {error}"),
    }
}

async fn fill(db: &mut Database, rng: &mut StdRng) -> (Vec<Row>, Vec<Row>) {
    let mut sides = Vec::new();
    for (name, most) in [("o", 12), ("i", 60)] {
        rows(
            db,
            &format!(
                "CREATE TABLE {name} (time TIMESTAMP, dev STRING TAG, unit BIGINT TAG, v BIGINT, w \
                 BIGINT)"
            ),
        )
        .await;
        let (made, insert) = table(rng, name, most);
        rows(db, &insert).await;
        if rng.random_bool(0.5) {
            rows(db, "FLUSH").await;
        }
        sides.push(made);
    }
    let inner = sides.pop().expect("two sides");
    (sides.pop().expect("two sides"), inner)
}

type LateralPredicate = fn(&Row, &Row) -> bool;

/// Conditions, and whether they are equalities with the left side, or do not mention it.
const CONDITIONS: [(&str, bool, LateralPredicate); 11] = [
    ("i.dev = o.dev", true, |o, i| {
        i.dev == o.dev && i.dev.is_some()
    }),
    ("(i.dev IS NOT DISTINCT FROM o.dev)", true, |o, i| {
        i.dev == o.dev
    }),
    ("i.unit = o.unit", true, |o, i| i.unit == o.unit),
    ("i.unit = o.v % 3", true, |o, i| i.unit == o.v % 3),
    ("i.w = o.w", true, |o, i| i.w == o.w && i.w.is_some()),
    ("i.time <= o.time", false, |o, i| i.time <= o.time),
    ("i.time < o.time", false, |o, i| i.time < o.time),
    ("i.time >= o.time", false, |o, i| i.time >= o.time),
    ("i.w > o.w", false, |o, i| {
        i.w.zip(o.w).is_some_and(|(i, o)| i > o)
    }),
    ("i.v % 2 = 0", true, |_, i| i.v % 2 == 0),
    ("i.w IS NOT NULL", true, |_, i| i.w.is_some()),
];

type OrderKey = fn(&Row, &Row) -> Ordering;

/// Orders in which no two rows are equal.
const ORDERS: [(&str, OrderKey); 6] = [
    ("i.time DESC, i.v", |a, b| {
        (Reverse(a.time), a.v).cmp(&(Reverse(b.time), b.v))
    }),
    ("i.time, i.v DESC", |a, b| {
        (a.time, Reverse(a.v)).cmp(&(b.time, Reverse(b.v)))
    }),
    ("i.v DESC", |a, b| b.v.cmp(&a.v)),
    ("i.v", |a, b| a.v.cmp(&b.v)),
    // Nulls sort as the greatest values.
    ("i.w, i.v", |a, b| {
        (a.w.is_none(), a.w, a.v).cmp(&(b.w.is_none(), b.w, b.v))
    }),
    ("i.w DESC, i.time, i.v", |a, b| {
        (b.w.is_none(), b.w, a.time, a.v).cmp(&(a.w.is_none(), a.w, b.time, b.v))
    }),
];

fn picked(rng: &mut StdRng) -> (String, Vec<(bool, LateralPredicate)>) {
    let count = rng.random_range(1..4);
    let picked: Vec<_> = CONDITIONS.sample(rng, count).collect();
    let texts: Vec<&str> = picked.iter().map(|(text, ..)| *text).collect();
    let holds = picked.iter().map(|(_, plain, holds)| (*plain, *holds));
    (texts.join(" AND "), holds.collect())
}

fn or_null<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".into(), |value| value.to_string())
}

/// The first rows for each left row.
async fn check_rows(db: &mut Database, rng: &mut StdRng, sides: &(Vec<Row>, Vec<Row>), seed: u64) {
    let (conditions, holds) = picked(rng);
    let (order, by) = ORDERS.choose(rng).expect("there is one");
    let limit = rng.random_range(1..4);
    let is_plain = holds.iter().all(|(plain, _)| *plain);
    let left = rng.random_bool(0.5);
    // Queries that are documented as unsupported.
    let skip = if left && !is_plain {
        0
    } else {
        rng.random_range(0..3)
    };
    let skip = if rng.random_bool(0.7) { 0 } else { skip };
    let (join, on) = match (left, rng.random_bool(0.5)) {
        (true, _) => ("LEFT JOIN", "ON true"),
        (false, true) => ("JOIN", "ON true"),
        (false, false) => ("CROSS JOIN", ""),
    };
    let offset = if skip > 0 {
        format!("OFFSET {skip}")
    } else {
        String::new()
    };
    let sql = format!(
        "SELECT o.v, p.v, p.dev, p.w FROM o {join} LATERAL (SELECT * FROM i WHERE {conditions} ORDER \
         BY {order} LIMIT {limit} {offset}) AS p {on}"
    );
    let (outer, inner) = sides;
    let mut expected = Vec::new();
    for o in outer {
        let mut found: Vec<&Row> = inner
            .iter()
            .filter(|i| holds.iter().all(|(_, holds)| holds(o, i)))
            .collect();
        found.sort_by(|a, b| by(a, b));
        let taken: Vec<&Row> = found.into_iter().skip(skip).take(limit).collect();
        if taken.is_empty() && left {
            let nothing = || "NULL".to_owned();
            expected.push(vec![o.v.to_string(), nothing(), nothing(), nothing()]);
        }
        expected.extend(taken.into_iter().map(|i| {
            let dev = or_null(i.dev.map(|dev| format!("d{dev}")));
            vec![o.v.to_string(), i.v.to_string(), dev, or_null(i.w)]
        }));
    }
    let mut answer = rows(db, &sql).await;
    answer.sort();
    expected.sort();
    assert_eq!(answer, expected, "seed {seed}: {sql}");
}

/// Aggregates for each left row, with or without grouping by a tag.
async fn check_groups(
    db: &mut Database,
    rng: &mut StdRng,
    sides: &(Vec<Row>, Vec<Row>),
    seed: u64,
) {
    let (conditions, holds) = loop {
        let (conditions, holds) = picked(rng);
        // DataFusion decorrelates these itself.
        if holds.iter().all(|(plain, _)| *plain) && !conditions.contains("DISTINCT") {
            break (conditions, holds);
        }
    };
    let by_unit = rng.random_bool(0.6);
    let (key, group) = if by_unit {
        ("i.unit", "GROUP BY i.unit")
    } else {
        // No constant: DataFusion returns null if there are no rows (docs/guides/sql.md).
        ("count(*)", "")
    };
    let having = one(rng, &["", "HAVING count(*) > 1"]);
    // Without GROUP BY there is a row of no input rows, which HAVING may remove.
    let having = if by_unit { having } else { "" };
    let sql = format!(
        "SELECT o.v, p.g, p.n, p.most FROM o CROSS JOIN LATERAL (SELECT {key} AS g, count(*) AS \
         n, max(i.w) AS most FROM i WHERE {conditions} {group} {having}) AS p"
    );
    let (outer, inner) = sides;
    let mut expected = Vec::new();
    for o in outer {
        let mut groups: BTreeMap<i64, (usize, Option<i64>)> = BTreeMap::new();
        if !by_unit {
            groups.insert(0, (0, None));
        }
        for i in inner {
            if holds.iter().all(|(_, holds)| holds(o, i)) {
                let unit = if by_unit { i.unit } else { 0 };
                let (count, most) = groups.entry(unit).or_default();
                *count += 1;
                *most = (*most).max(i.w);
            }
        }
        for (unit, (count, most)) in groups {
            if having.is_empty() || count > 1 {
                let most = or_null(most);
                let key = if by_unit {
                    unit.to_string()
                } else {
                    count.to_string()
                };
                expected.push(vec![o.v.to_string(), key, count.to_string(), most]);
            }
        }
    }
    let mut answer = rows(db, &sql).await;
    answer.sort();
    expected.sort();
    assert_eq!(answer, expected, "seed {seed}: {sql}");
}

#[test]
fn lateral_subqueries_are_as_by_hand() {
    let seed = number("MARIGRAM_RANDOM_SEED", 1);
    let queries = number("MARIGRAM_RANDOM_QUERIES", 400);
    for seed in seed..seed + queries.div_ceil(QUERIES) {
        let mut rng = StdRng::seed_from_u64(seed);
        block_on(async {
            let mut db = Database::open().await.expect("a database");
            let sides = fill(&mut db, &mut rng).await;
            for _ in 0..QUERIES {
                if rng.random_ratio(1, 3) {
                    check_groups(&mut db, &mut rng, &sides, seed).await;
                } else {
                    check_rows(&mut db, &mut rng, &sides, seed).await;
                }
            }
        });
    }
}
