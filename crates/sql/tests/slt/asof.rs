//! Compares random joins by time with a naive model that reads every row of the right side.

use super::Database;
use super::random::{number, one};
use super::service::block_on;
use rand::prelude::*;
use sqllogictest::{AsyncDB, DBOutput};

/// The number of queries per set of data.
const QUERIES: u64 = 10;

/// Time in ns, device, value.
type Row = (i64, Option<u32>, i64);

async fn rows(db: &mut Database, sql: &str) -> Vec<Vec<String>> {
    match db.run(sql).await {
        Ok(DBOutput::Rows { rows, .. }) => rows,
        Ok(_) => Vec::new(),
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// A table of random rows, one per device and time.
async fn table(db: &mut Database, rng: &mut StdRng, name: &str, most: usize) -> Vec<Row> {
    let create = format!("CREATE TABLE {name} (time TIMESTAMP, dev STRING TAG, v BIGINT)");
    rows(db, &create).await;
    let mut made: Vec<Row> = Vec::new();
    for value in 0..rng.random_range(1..most) {
        let time = rng.random_range(0..60);
        let dev = (!rng.random_ratio(1, 8)).then(|| rng.random_range(0..3));
        if !made.iter().any(|row| (row.0, row.1) == (time, dev)) {
            made.push((time, dev, value as i64));
        }
    }
    let values = made.iter().map(|(time, dev, value)| {
        let dev = dev.map_or("NULL".into(), |dev| format!("'d{dev}'"));
        format!("(TIMESTAMP '1970-01-01' + INTERVAL '{time} nanoseconds', {dev}, {value})")
    });
    let values: Vec<String> = values.collect();
    let insert = format!(
        "INSERT INTO {name} (time, dev, v) VALUES {}",
        values.join(", ")
    );
    rows(db, &insert).await;
    if rng.random_bool(0.5) {
        rows(db, "FLUSH").await;
    }
    made
}

async fn check(db: &mut Database, rng: &mut StdRng, sides: (&[Row], &[Row]), seed: u64) {
    let (sign, forward, strict) = *[
        (">=", false, false),
        (">", false, true),
        ("<=", true, false),
        ("<", true, true),
    ]
    .choose(rng)
    .expect("there is one");
    let most = rng.random_bool(0.5).then(|| rng.random_range(0..15));
    let by_dev = rng.random_bool(0.7);
    let bound = most.map_or(String::new(), |most| {
        let (later, earlier) = if forward { ("r", "l") } else { ("l", "r") };
        format!(" AND {later}.time - {earlier}.time <= INTERVAL '{most} nanoseconds'")
    });
    let on = if by_dev { "ON l.dev = r.dev" } else { "" };
    // Without a condition, and with conditions that apply to one side or both.
    let condition = one(
        rng,
        &[
            "",
            "WHERE l.dev = 'd1'",
            "WHERE l.v % 2 = 0",
            "WHERE r.v IS NULL",
        ],
    );
    let sql = format!(
        "SELECT l.v, r.time IS NULL, coalesce(r.time::BIGINT, -1), r.v FROM l ASOF JOIN r \
         MATCH_CONDITION (l.time {sign} r.time{bound}) {on} {condition} ORDER BY l.v"
    );
    let mut expected = Vec::new();
    let (left, right) = sides;
    for (time, dev, value) in left {
        let apart = |row: &&Row| if forward { row.0 - time } else { time - row.0 };
        let matches = right.iter().filter(|row| {
            let apart = apart(row);
            apart >= i64::from(strict)
                && most.is_none_or(|most| apart <= most)
                && (!by_dev || (row.1 == *dev && dev.is_some()))
        });
        let matches: Vec<&Row> = matches.collect();
        let nearest = matches.iter().map(&apart).min();
        // If several rows have the same time, any of them is correct: so only without keys.
        let found: Vec<&Row> = matches
            .into_iter()
            .filter(|row| Some(apart(row)) == nearest)
            .collect();
        let taken = match condition {
            "WHERE l.dev = 'd1'" => *dev == Some(1),
            "WHERE l.v % 2 = 0" => value % 2 == 0,
            "WHERE r.v IS NULL" => found.is_empty(),
            _ => true,
        };
        if taken {
            expected.push((*value, found));
        }
    }
    let answer = rows(db, &sql).await;
    assert_eq!(answer.len(), expected.len(), "seed {seed}: {sql}");
    for (row, (value, found)) in answer.iter().zip(&expected) {
        let same = match found.first() {
            None => row[3] == "NULL" && row[2] == "-1",
            Some((time, ..)) => {
                row[2] == time.to_string() && found.iter().any(|f| row[3] == f.2.to_string())
            }
        };
        let same = same && row[0] == value.to_string();
        assert!(same, "seed {seed}: {sql}\n{row:?}, not {value} {found:?}");
    }
}

#[test]
fn joins_by_time_are_as_by_hand() {
    let seed = number("MARIGRAM_RANDOM_SEED", 1);
    let queries = number("MARIGRAM_RANDOM_QUERIES", 200);
    for seed in seed..seed + queries.div_ceil(QUERIES) {
        let mut rng = StdRng::seed_from_u64(seed);
        block_on(async {
            let mut db = Database::open().await.expect("a database");
            let left = table(&mut db, &mut rng, "l", 40).await;
            let right = table(&mut db, &mut rng, "r", 40).await;
            for _ in 0..QUERIES {
                check(&mut db, &mut rng, (&left, &right), seed).await;
            }
        });
    }
}

#[test]
fn large_sides_are_merged_batch_by_batch() {
    block_on(async {
        let mut db = Database::open().await.expect("a database");
        rows(
            &mut db,
            "CREATE TABLE l (time TIMESTAMP, dev BIGINT TAG, v BIGINT)",
        )
        .await;
        rows(
            &mut db,
            "CREATE TABLE r (time TIMESTAMP, dev BIGINT TAG, v BIGINT)",
        )
        .await;
        // One left row per hundred thousand right rows, and a hundred left rows per right row.
        for (name, rows_of, step) in [("l", 30, 100_000), ("r", 300_000, 10)] {
            let insert = format!(
                "INSERT INTO {name} SELECT (value * {step})::TIMESTAMP, value % 3, value FROM \
                 generate_series(1, {rows_of})"
            );
            rows(&mut db, &insert).await;
        }
        let count = |left: &str, right: &str| {
            format!(
                "SELECT count(*), count(b.v), sum((a.time::BIGINT - b.time::BIGINT) / 1000), max(a.time - \
                 b.time) <= INTERVAL '0.00003 seconds' FROM {left} AS a ASOF JOIN {right} AS b \
                 MATCH_CONDITION (a.time >= b.time) ON a.dev = b.dev"
            )
        };
        let sparse = rows(&mut db, &count("l", "r")).await;
        assert_eq!(sparse[0][..2], ["30", "30"]);
        let dense = rows(&mut db, &count("r", "l")).await;
        assert_eq!(dense[0][0], "300000");
        let plain = "SELECT count(*) FROM r WHERE EXISTS (SELECT 1 FROM l WHERE l.dev = r.dev AND \
                     l.time <= r.time)";
        let plain = rows(&mut db, plain).await;
        assert_eq!(dense[0][1], plain[0][0]);
    });
}
