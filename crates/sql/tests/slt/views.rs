//! Materialized views: they always have the rows of their queries, and queries that are rewritten
//! to use them return the same results.
//!
//! `MARIGRAM_RANDOM_QUERIES` sets the number of queries, and `MARIGRAM_RANDOM_SEED` the first seed.

use super::random::{DatabaseAndModel, call, condition, fill, insert, number, one, time};
use super::service::block_on;
use futures::StreamExt;
use marigram_service::{Answer, Identity, Query};
use rand::prelude::*;
use std::fmt::Write;

/// The number of queries per set of data.
const QUERIES: u64 = 30;

const BUCKETS: [&str; 8] = [
    "time_bucket('5 minutes', time)",
    "time_bucket('15 minutes', time)",
    "time_bucket('1 hour', time)",
    "date_trunc('hour', time)",
    "time_bucket(INTERVAL '7 minutes', time, TIMESTAMP '2024-03-31 00:01:30')",
    "time_bucket('2 hours', time, 'Europe/Berlin')",
    "time_bucket('1 day', time, 'America/New_York')",
    "date_trunc('month', time)",
];

/// The query of a view.
fn definition(rng: &mut StdRng) -> String {
    let mut listed = vec![format!("{} AS slot", one(rng, &BUCKETS))];
    let mut keys = vec!["slot"];
    for tag in ["site", "unit", "up"] {
        if rng.random_ratio(1, 3) {
            listed.push(tag.to_owned());
            keys.push(tag);
        }
    }
    for at in 0..rng.random_range(1..5) {
        let mut call = call(rng);
        while call.contains("), ") {
            call = self::call(rng);
        }
        listed.push(format!("{call} AS c{at}"));
    }
    let mut sql = format!("SELECT {} FROM r", listed.join(", "));
    if rng.random_ratio(1, 4) {
        let _ = write!(sql, " WHERE {}", condition(rng));
    }
    let _ = write!(sql, " GROUP BY {}", keys.join(", "));
    sql
}

/// A query that a view may answer: the columns that it lists, and fewer.
fn question(rng: &mut StdRng, definition: &str) -> String {
    let (list, rest) = definition.split_once(" FROM r").expect("a FROM");
    let list = list.trim_start_matches("SELECT ");
    let (bucket, others) = list.split_once(" AS slot").expect("a bucket");
    let (tags, calls): (Vec<&str>, Vec<&str>) = others
        .trim_start_matches(", ")
        .split(", ")
        .partition(|part| ["site", "unit", "up"].contains(part));
    let calls = calls.join(", ");
    let tags: Vec<&str> = tags.into_iter().filter(|_| rng.random_bool(0.6)).collect();
    let bucket = match rng.random_range(0..3) {
        0 => one(rng, &BUCKETS),
        _ => bucket,
    };
    let mut conditions: Vec<String> = Vec::new();
    if let Some((_, given)) = rest.split_once(" WHERE ") {
        let given = given.split(" GROUP BY ").next().unwrap_or_default();
        conditions.push(format!("({given})"));
    }
    for _ in 0..rng.random_range(0..3) {
        let second = rng.random_range(0..50_000);
        conditions.push(match rng.random_range(0..4) {
            0 => format!("time >= {}", time(second, 3)),
            1 => format!("time < {}", time(second + 9_000, 7)),
            2 => "time >= '2024-03-31 01:00:00' AND time < '2024-03-31 09:00:00'".into(),
            _ => format!("({})", condition(rng)),
        });
    }
    let mut sql = format!("SELECT {bucket} AS slot");
    for part in tags.iter().chain([&calls.as_str()]) {
        let _ = write!(sql, ", {part}");
    }
    sql.push_str(" FROM r");
    if !conditions.is_empty() {
        let _ = write!(sql, " WHERE {}", conditions.join(" AND "));
    }
    sql.push_str(" GROUP BY slot");
    for tag in &tags {
        let _ = write!(sql, ", {tag}");
    }
    sql
}

async fn change(pair: &mut DatabaseAndModel, rng: &mut StdRng) {
    let second = rng.random_range(0..45_000);
    match rng.random_range(0..7) {
        0..=2 => pair.run(&insert(rng, second)).await,
        3 => pair.run("FLUSH").await,
        4 => pair.run("COMPACT").await,
        _ => {
            let (from, to) = (time(second, 0), time(second + 2000, 0));
            let unit = rng.random_range(0..12);
            let of = one(rng, &["true", "unit = "]);
            let of = of.replace("unit = ", &format!("unit = {unit}"));
            let delete = format!("DELETE FROM r WHERE {of} AND time >= {from} AND time < {to}");
            pair.run(&delete).await;
        }
    }
}

async fn compare(pair: &mut DatabaseAndModel, seed: u64, asked: &str, plain: &str) {
    let expected = pair.rows(false, plain).await;
    let found = pair.rows(true, asked).await;
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "seed {seed}: {asked}\n{plain}"),
        (found, expected) => panic!("seed {seed}: {asked}\n{plain}\n{found:?}\n{expected:?}"),
    }
}

#[test]
fn views_have_the_rows_of_their_queries_and_answer_others_unasked() {
    let seed = number("MARIGRAM_RANDOM_SEED", 1);
    let queries = number("MARIGRAM_RANDOM_QUERIES", 500);
    let mut from_views = 0;
    for seed in seed..seed + queries.div_ceil(QUERIES) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
        block_on(async {
            let mut pair = DatabaseAndModel::open(1).await;
            fill(&mut pair, &mut rng).await;
            let views: Vec<String> = (0..3).map(|_| definition(&mut rng)).collect();
            for (at, view) in views.iter().enumerate() {
                let data = one(&mut rng, &["", " WITH DATA", " WITH NO DATA"]);
                let create =
                    format!("CREATE MATERIALIZED VIEW v{at} WITH (continuous) AS {view}{data}");
                pair.run(&create).await;
            }
            for round in 0..QUERIES {
                if round % 3 == 0 {
                    change(&mut pair, &mut rng).await;
                }
                let at = rng.random_range(0..views.len());
                if rng.random_ratio(1, 4) {
                    pair.run(&format!("REFRESH MATERIALIZED VIEW v{at}")).await;
                }
                if rng.random_ratio(1, 3) {
                    compare(&mut pair, seed, &format!("SELECT * FROM v{at}"), &views[at]).await;
                    continue;
                }
                let sql = question(&mut rng, &views[at]);
                let plan = pair.rows(true, &format!("EXPLAIN {sql}")).await;
                from_views += u64::from(format!("{plan:?}").contains("RollupScan"));
                compare(&mut pair, seed, &sql, &sql).await;
            }
        });
    }
    assert!(
        from_views * 8 > queries,
        "views answered {from_views} of {queries}"
    );
}

/// The number that a query returns.
async fn number_of(pair: &mut DatabaseAndModel, sql: &str) -> i64 {
    let rows = pair.rows(true, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows[0][0].parse().unwrap_or_else(|_| panic!("{rows:?}"))
}

/// Each batch adds up to zero, in two distant buckets: a reader that sees half of one, or one
/// bucket before and one after a change, sees a different sum.
#[test]
fn a_query_sees_one_version_while_a_view_is_refreshed() {
    block_on(async {
        let mut pair = DatabaseAndModel::open(1).await;
        pair.run("CREATE TABLE t (time TIMESTAMP, d STRING TAG, x BIGINT)")
            .await;
        for hour in 0..24 {
            pair.run(&format!(
                "INSERT INTO t SELECT to_timestamp_nanos(1714521600000000000 + ({hour} * 360 + n) * \
                 10000000000), 'a', 0 FROM generate_series(0, 359) AS s(n)"
            ))
            .await;
        }
        pair.run(
            "CREATE MATERIALIZED VIEW v WITH (continuous) AS SELECT time_bucket('5 minutes', time) \
             AS b, sum(x) AS s, count(*) AS n FROM t GROUP BY b",
        )
        .await;
        let service = pair.ours.clone();
        let mut writing = pair.session.clone();
        let mut refreshing = pair.session.clone();
        let (writer, refresher) = (service.clone(), service);
        let write = std::thread::spawn(move || {
            let mut rng = StdRng::seed_from_u64(7);
            for x in 1..=120 {
                let mut at = || {
                    let (hour, minute) = (rng.random_range(0..24), rng.random_range(0..60));
                    format!("'2024-05-01 {hour:02}:{minute:02}:01.{x:03}'")
                };
                let (one, other) = (at(), at());
                let sql = format!("INSERT INTO t VALUES ({one}, 'a', {x}), ({other}, 'a', -{x})");
                let done = block_on(writer.execute(&mut writing, &sql));
                assert!(done.is_ok(), "{:?}", done.err());
            }
        });
        let refresh = std::thread::spawn(move || {
            for _ in 0..60 {
                let sql = "REFRESH MATERIALIZED VIEW v";
                let done = block_on(refresher.execute(&mut refreshing, sql));
                assert!(done.is_ok(), "{:?}", done.err());
            }
        });
        let mut looks = 0;
        while !(write.is_finished() && refresh.is_finished()) {
            assert_eq!(number_of(&mut pair, "SELECT sum(s) FROM v").await, 0);
            looks += 1;
        }
        assert!(write.join().is_ok(), "rows were written");
        assert!(refresh.join().is_ok(), "the view was refreshed");
        assert!(looks > 10, "{looks}");
        pair.run("REFRESH MATERIALIZED VIEW v").await;
        let rows = number_of(&mut pair, "SELECT sum(n) FROM v").await;
        assert_eq!(rows, number_of(&mut pair, "SELECT count(*) FROM t").await);
    });
}

/// Rows that the table no longer keeps remain in the view, and only there.
#[test]
fn a_view_outlives_the_rows_of_its_table() {
    block_on(async {
        let mut pair = DatabaseAndModel::open(1).await;
        for sql in [
            "CREATE TABLE t (time TIMESTAMP, d STRING TAG, x DOUBLE)",
            "INSERT INTO t SELECT to_timestamp_nanos(1714521600000000000 + i * 3600000000000), 'a', i \
             FROM generate_series(0, 239) AS g(i)",
            "INSERT INTO t VALUES (now(), 'a', 1000)",
            "CREATE MATERIALIZED VIEW v WITH (continuous) AS SELECT time_bucket('1 day', time) AS \
             day, d, sum(x) AS s FROM t GROUP BY day, d",
            "ALTER TABLE t SET (ttl = '30d')",
            "FLUSH",
        ] {
            pair.run(sql).await;
        }
        assert!(pair.engine.maintain().expect("upkeep"), "partitions go");
        assert_eq!(number_of(&mut pair, "SELECT count(*) FROM t").await, 1);
        pair.run("REFRESH MATERIALIZED VIEW v").await;
        assert_eq!(number_of(&mut pair, "SELECT count(*) FROM v").await, 11);
        let sum = "SELECT CAST(sum(s) AS BIGINT) FROM v";
        assert_eq!(number_of(&mut pair, sum).await, 239 * 240 / 2 + 1000);
        let unasked = "SELECT CAST(sum(s) AS BIGINT) FROM (SELECT time_bucket('1 day', time) AS day, \
                       sum(x) AS s FROM t GROUP BY day)";
        assert_eq!(number_of(&mut pair, unasked).await, 1000);
    });
}

/// Neither the refreshes of views nor the sender of the last result hold the directory longer than
/// the callers do.
#[test]
fn a_database_can_be_opened_again_as_soon_as_it_is_dropped() {
    use marigram_engine::{Engine, EngineOptions};
    use marigram_env::Env;
    use marigram_sql::{SqlOptions, SqlService};
    let dir = tempfile::tempdir().expect("a directory");
    for round in 0..60 {
        let data = dir.path().join("data");
        let engine = Engine::open(Env::real(), &data, EngineOptions::default());
        let engine = engine.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let sql = SqlService::new(engine, SqlOptions::default()).expect("a service");
        block_on(async {
            let mut session = sql
                .session(None, &Identity::owner("tester"))
                .await
                .expect("a session");
            for statement in [
                "CREATE TABLE IF NOT EXISTS t (time TIMESTAMP, x BIGINT)",
                "SELECT count(*) FROM t",
            ] {
                match sql
                    .execute(&mut session, statement)
                    .await
                    .expect("an answer")
                {
                    Answer::Done { .. } => {}
                    Answer::Rows(mut rows) => while rows.batches.next().await.is_some() {},
                }
            }
        });
    }
}

#[test]
fn views_are_refreshed_in_the_background_and_found_again_after_a_restart() {
    use marigram_engine::{Engine, EngineOptions};
    use marigram_env::Env;
    use marigram_sql::{SqlOptions, SqlService};
    let dir = tempfile::tempdir().expect("a directory");
    let open = || {
        let data = dir.path().join("data");
        let engine = Engine::open(Env::real(), &data, EngineOptions::default());
        let engine = engine.expect("an engine");
        let sql = SqlService::new(engine.clone(), SqlOptions::default()).expect("a service");
        (engine, sql)
    };
    async fn run(sql: &SqlService, statement: &str) -> Vec<Vec<String>> {
        let mut session = sql
            .session(None, &Identity::owner("tester"))
            .await
            .expect("a session");
        let answer = sql.execute(&mut session, statement).await;
        match answer.unwrap_or_else(|error| panic!("{statement}: {error}")) {
            Answer::Done { .. } => Vec::new(),
            Answer::Rows(mut rows) => {
                let mut texts = Vec::new();
                while let Some(batch) = rows.batches.next().await {
                    texts.extend(super::to_texts(&batch.expect("rows")));
                }
                texts
            }
        }
    }
    block_on(async {
        let (engine, sql) = open();
        for statement in [
            "CREATE TABLE t (time TIMESTAMP, d STRING TAG, x DOUBLE)",
            "INSERT INTO t VALUES ('2024-05-01 00:00:01', 'a', 1), ('2024-05-01 00:01:01', 'a', 2), \
             ('2024-05-01 00:02:01', 'a', 3)",
            "CREATE MATERIALIZED VIEW v WITH (continuous, refresh = '50ms') AS SELECT \
             time_bucket('1 minute', time) AS b, d, avg(x) AS mean FROM t GROUP BY b, d WITH NO DATA",
        ] {
            run(&sql, statement).await;
        }
        let through = || async {
            let views = run(&sql, "SHOW MATERIALIZED VIEWS").await;
            (views[0][2].clone(), views[0][4].clone())
        };
        while through().await.0 != "2024-05-01T00:02:00" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        run(&sql, "INSERT INTO t VALUES ('2024-05-01 00:00:02', 'a', 5)").await;
        let rows = run(&sql, "SELECT mean FROM v ORDER BY b").await;
        assert_eq!(rows, [["3.0"], ["2.0"], ["3.0"]]);
        while through().await.1 != "0s" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // When the last handle is dropped, after the last row of a result, the directory has been
        // released.
        drop(sql);
        drop(engine);
        let (_engine, sql) = open();
        let rows = run(&sql, "SELECT mean FROM v ORDER BY b").await;
        assert_eq!(rows, [["3.0"], ["2.0"], ["3.0"]]);
    });
}

/// Whether a view answers a query; the result must equal that of the table in both cases.
async fn is_from_view(pair: &mut DatabaseAndModel, sql: &str) -> bool {
    compare(pair, 0, sql, sql).await;
    let plan = pair.rows(true, &format!("EXPLAIN {sql}")).await;
    format!("{plan:?}").contains("RollupScan")
}

#[test]
fn a_view_is_taken_by_what_conditions_leave() {
    // 100 devices at ten sites, one of which has a single device; three rows per half minute for
    // each device.
    let setup = [
        "CREATE TABLE t (time TIMESTAMP, dev STRING TAG, site STRING TAG, x DOUBLE)",
        "INSERT INTO t SELECT to_timestamp_nanos(i / 100 * 10000000000), 'd' || (i % 100), \
         's' || CASE WHEN i % 100 = 99 THEN 9 ELSE i % 100 % 9 END, i FROM generate_series(0, 8999) AS g(i)",
        "FLUSH",
        "CREATE MATERIALIZED VIEW v WITH (continuous) AS SELECT time_bucket('30 s', time) AS b, \
         site, sum(x) AS s FROM t GROUP BY b, site",
    ];
    let by = |condition: &str| {
        format!("SELECT time_bucket('1 minute', time) AS b, sum(x) FROM t {condition} GROUP BY b")
    };
    let all = by("");
    let early = by("WHERE time < '1970-01-01 00:05:00'");
    let late = by("WHERE time >= '1970-01-01 00:10:00'");
    block_on(async {
        let mut pair = DatabaseAndModel::open(1).await;
        for sql in setup {
            pair.run(sql).await;
        }
        for sql in [&all, &early, &late, &by("WHERE site = 's1'")] {
            assert!(is_from_view(&mut pair, sql).await, "{sql}");
        }
        // One hundredth of the table's series remain, and one tenth of the view's.
        let one = by("WHERE site = 's9'");
        assert!(!is_from_view(&mut pair, &one).await, "{one}");
        let none = by("WHERE site = 'nowhere'");
        assert!(!is_from_view(&mut pair, &none).await, "{none}");
    });
    block_on(async {
        // Operators take longer to begin here, and so do the last pages of all devices.
        let mut pair = DatabaseAndModel::open(64).await;
        for sql in setup {
            pair.run(sql).await;
        }
        for sql in [&all, &early] {
            assert!(is_from_view(&mut pair, sql).await, "{sql}");
        }
        assert!(!is_from_view(&mut pair, &late).await, "{late}");
    });
    block_on(async {
        let mut pair = DatabaseAndModel::open(300).await;
        for sql in setup {
            pair.run(sql).await;
        }
        assert!(!is_from_view(&mut pair, &all).await, "{all}");
        // Except for queries that must read each row.
        let median =
            "SELECT time_bucket('30 s', time) AS b, site, median(x) FROM t GROUP BY b, site";
        assert!(!is_from_view(&mut pair, median).await);
        let view = format!("CREATE MATERIALIZED VIEW w WITH (continuous) AS {median}");
        pair.run(&view).await;
        assert!(is_from_view(&mut pair, median).await);
        assert!(!is_from_view(&mut pair, &all).await, "{all}");
    });
}
