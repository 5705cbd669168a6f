//! Times with a zone: compares them with PostgreSQL 15's answers (`golden/ask_zones.py`), and tests
//! what is our own: stored times are in UTC whatever the session's zone is, and cached plans depend
//! on their zone.

use super::Database;
use super::service::block_on;
use marigram_service::Query;
use std::collections::BTreeMap;

/// The number of expressions per query.
const ASKED_AT_ONCE: usize = 24;

/// The answers, or the SQLSTATE of the first error for all of them.
async fn ask(db: &mut Database, expressions: &[&str]) -> Vec<String> {
    let columns = expressions.iter().enumerate();
    let columns: Vec<String> = columns
        .map(|(at, expression)| format!("{expression} AS c{at}"))
        .collect();
    let sql = format!("SELECT {}", columns.join(", "));
    match db.sql.execute(&mut db.session, &sql).await {
        Ok(answer) => match super::service::rows(answer).await {
            Ok(mut rows) => rows.remove(0),
            Err(error) => vec![error.sqlstate().to_owned(); expressions.len()],
        },
        Err(error) => vec![error.sqlstate().to_owned(); expressions.len()],
    }
}

#[test]
fn times_with_zones_are_as_postgresql_has_them() {
    let text = include_str!("../golden/zones.tsv");
    let mut by_zone: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [zone, expression, answer] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        by_zone.entry(zone).or_default().push((expression, answer));
    }
    let (mut differing, mut asked) = (Vec::new(), 0);
    block_on(async {
        let mut db = Database::open().await.unwrap();
        for (zone, cases) in by_zone {
            db.done("RESET timezone").await;
            let set = format!("SET timezone = '{}'", zone.replace('\'', "''"));
            let set = db.sql.execute(&mut db.session, &set).await;
            if let Err(error) = set {
                for (expression, theirs) in cases {
                    if error.sqlstate() != theirs {
                        differing.push(format!(
                            "{zone}: {expression}: {error}, PostgreSQL {theirs}"
                        ));
                    }
                }
                continue;
            }
            let is_error = |case: &(&str, &str)| {
                case.1.len() == 5
                    && !case.1.contains([':', ' ', '-'])
                    && case.0.contains("AT TIME ZONE")
            };
            let (errors, values): (Vec<_>, Vec<_>) = cases.into_iter().partition(is_error);
            let singles = errors.chunks(1);
            for part in values.chunks(ASKED_AT_ONCE).chain(singles) {
                let expressions: Vec<&str> = part.iter().map(|case| case.0).collect();
                let mut ours = ask(&mut db, &expressions).await;
                let refused = |answer: &String| {
                    answer.len() == 5 && answer.starts_with(|c: char| c.is_ascii_digit())
                };
                if part.len() > 1 && ours.iter().all(refused) {
                    ours.clear();
                    for expression in &expressions {
                        ours.extend(ask(&mut db, &[*expression]).await);
                    }
                }
                for ((expression, theirs), ours) in part.iter().zip(ours) {
                    asked += 1;
                    if ours != *theirs {
                        differing
                            .push(format!("{zone}: {expression}: {ours}, PostgreSQL {theirs}"));
                    }
                }
            }
        }
    });
    assert!(
        differing.is_empty(),
        "{} of {asked} differ:\n{}",
        differing.len(),
        differing[..differing.len().min(60)].join("\n")
    );
    assert!(asked > 3000, "{asked}");
}

#[test]
fn stored_times_are_in_utc_in_every_session() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE, at TIMESTAMP, seen TIMESTAMPTZ)")
            .await;
        db.done("CREATE TABLE z (time TIMESTAMPTZ, dev STRING TAG, x DOUBLE)")
            .await;
        db.done("SET TIME ZONE 'Europe/Berlin'").await;
        db.done("INSERT INTO t VALUES ('2014-07-01 12:00', 'a', 1, TIMESTAMPTZ '2014-07-01 12:00', '2014-07-01 12:00')")
            .await;
        db.done("INSERT INTO z VALUES ('2014-07-01 12:00', 'a', 1), (TIMESTAMP '2014-07-01 13:00', 'b', 2), ('2014-07-01 12:00Z', 'c', 3)")
            .await;
        let ask = async |db: &mut Database, sql: &str| db.rows(sql).await.concat().join(" ");
        let shown = ask(&mut db, "SELECT time, at, seen::text FROM t").await;
        assert_eq!(
            shown,
            "2014-07-01T12:00:00 2014-07-01T10:00:00 2014-07-01 12:00:00+02"
        );
        let shown = ask(&mut db, "SELECT time::text FROM z ORDER BY time").await;
        assert_eq!(
            shown,
            "2014-07-01 12:00:00+02 2014-07-01 13:00:00+02 2014-07-01 14:00:00+02"
        );
        // The same moments, in different notations.
        for condition in [
            "time = TIMESTAMPTZ '2014-07-01 14:00'",
            "time < TIMESTAMPTZ '2014-07-01 14:00:01' AND time > '2014-07-01 11:59'",
            "time BETWEEN TIMESTAMPTZ '2014-07-01 14:00' AND TIMESTAMPTZ '2014-07-01 15:00'",
            "time + INTERVAL '1 hour' = TIMESTAMPTZ '2014-07-01 15:00'",
            "date_trunc('hour', time) >= TIMESTAMPTZ '2014-07-01 14:00'",
            "time::timestamptz = TIMESTAMPTZ '2014-07-01 14:00'",
            "time IN (SELECT max(time) FROM t)",
            "extract(hour FROM time::timestamptz AT TIME ZONE 'Europe/Berlin') = 14",
            "extract(hour FROM time::timestamptz) = 14",
            "extract(hour FROM time) = 12",
            "extract(hour FROM seen) = 12",
            "seen = TIMESTAMPTZ '2014-07-01 10:00Z'",
            "to_char(seen, 'HH24 TZ') = '12 CEST'",
            "seen::date = DATE '2014-07-01'",
        ] {
            let sql = format!("SELECT count(*) FROM t WHERE {condition}");
            assert_eq!(ask(&mut db, &sql).await, "1", "{condition}");
        }
        let derived = "SELECT count(*) FROM (SELECT max(time) AS m, date_trunc('hour', time) AS h FROM t GROUP BY h) s \
                       WHERE m = TIMESTAMPTZ '2014-07-01 14:00' AND h = m::timestamptz";
        assert_eq!(ask(&mut db, derived).await, "1");
        let day = "SELECT date_trunc('day', time)::text, count(*), max(x), last(x, time) FROM z GROUP BY 1";
        assert_eq!(ask(&mut db, day).await, "2014-07-01 00:00:00+02 3 3.0 3.0");
        db.done("SET TIME ZONE 'UTC'").await;
        assert_eq!(ask(&mut db, day).await, "2014-07-01 00:00:00+00 3 3.0 3.0");
        let bucket = "SELECT time_bucket('1 hour', time)::text, count(*) FROM z WHERE time >= '2014-07-01' GROUP BY 1 ORDER BY 1 LIMIT 1";
        assert_eq!(ask(&mut db, bucket).await, "2014-07-01 10:00:00+00 1");
    });
}

#[test]
fn a_declared_zone_is_kept_and_shown() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE z (time TIMESTAMP WITH TIME ZONE, dev STRING TAG, x DOUBLE, seen TIMESTAMPTZ, at TIMESTAMP)")
            .await;
        db.done("ALTER TABLE z ADD COLUMN later TIMESTAMPTZ, ADD y DOUBLE")
            .await;
        let described: Vec<String> = db
            .rows("DESCRIBE z")
            .await
            .into_iter()
            .map(|row| row[..2].join(" "))
            .collect();
        assert_eq!(
            described,
            [
                "time TIMESTAMPTZ",
                "dev STRING",
                "x DOUBLE",
                "seen TIMESTAMPTZ",
                "at TIMESTAMP",
                "later TIMESTAMPTZ",
                "y DOUBLE"
            ]
        );
        let made = db.rows("SHOW CREATE TABLE z").await.concat().join(" ");
        assert!(
            made.contains("time TIMESTAMPTZ") && made.contains("later TIMESTAMPTZ FIELD"),
            "{made}"
        );
        db.done("INSERT INTO z (time, dev, x, seen, at, later) VALUES (now(), 'a', 1, now(), now(), now())")
            .await;
        db.done("INSERT INTO z (dev, x) VALUES ('b', 2)").await;
        let same = "SELECT count(*) FROM z WHERE time = seen AND at = seen AND later = time AND time > now() - INTERVAL '1 hour'";
        assert_eq!(db.rows(same).await.concat(), ["1"]);
        let all = "SELECT count(*) FROM z WHERE time <= now()";
        assert_eq!(db.rows(all).await.concat(), ["2"]);
        db.done("DELETE FROM z WHERE time < now() - INTERVAL '1 day'")
            .await;
        assert_eq!(db.rows(all).await.concat(), ["2"]);
        let types =
            "SELECT arrow_typeof(time), arrow_typeof(at), arrow_typeof(now()) FROM z LIMIT 1";
        let zoned = "Timestamp(ns, \"UTC\")";
        assert_eq!(
            db.rows(types).await.concat(),
            [zoned, "Timestamp(ns)", zoned]
        );
    });
}

#[test]
fn kept_plans_know_their_zone() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE z (time TIMESTAMPTZ, dev STRING TAG, x DOUBLE)")
            .await;
        db.done("INSERT INTO z VALUES ('2014-07-01 12:00Z', 'a', 1)")
            .await;
        let sql = "SELECT extract(hour FROM time) FROM z";
        let prepared = db.sql.prepare(&db.session, sql).await.unwrap();
        for (zone, hour) in [
            ("UTC", "12"),
            ("Asia/Tokyo", "21"),
            ("UTC", "12"),
            ("Asia/Tokyo", "21"),
        ] {
            db.done(&format!("SET TIME ZONE '{zone}'")).await;
            assert_eq!(db.rows(sql).await.concat(), [hour], "{zone}");
            let service = db.sql.clone();
            let answer = service
                .execute_prepared(&mut db.session, &*prepared, Vec::new())
                .await
                .unwrap();
            let rows = super::service::rows(answer).await.unwrap();
            assert_eq!(rows.concat(), [hour], "{zone}, prepared");
        }
    });
}

#[test]
fn integers_are_times_where_one_unit_is_plausible() {
    block_on(async {
        let mut db = Database::open().await.unwrap();
        db.done("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE, at TIMESTAMPTZ)")
            .await;
        db.done("CREATE TABLE n (time TIMESTAMP, dev STRING TAG, k BIGINT)")
            .await;
        for at in [
            "1404172800",
            "1404172800000",
            "1404172800000000",
            "1404172800000000000",
        ] {
            db.done(&format!("INSERT INTO t VALUES ({at}, 'a{at}', 1, {at})"))
                .await;
        }
        let same = "SELECT count(*) FROM t WHERE time = '2014-07-01' AND at = time";
        assert_eq!(db.rows(same).await.concat(), ["4"]);
        db.done("INSERT INTO n VALUES ('2014-07-01', 'a', 1404172801), ('2014-07-01', 'b', 12)")
            .await;
        db.done("INSERT INTO t (time, dev, x) SELECT k, dev, 2 FROM n WHERE dev = 'a'")
            .await;
        db.done("INSERT INTO t VALUES (to_timestamp_millis(12), 'c', 3, NULL)")
            .await;
        for sql in [
            "INSERT INTO t VALUES (12, 'a', 1, NULL)",
            "INSERT INTO t (time, dev, x) SELECT k, dev, 2 FROM n WHERE dev = 'b'",
            "INSERT INTO t VALUES ('2014-07-01', 'a', 1, 12)",
        ] {
            let refused = db.sql.execute(&mut db.session, sql).await;
            let Err(error) = refused else {
                panic!("{sql} is done")
            };
            assert_eq!(error.sqlstate(), "42804", "{sql}: {error}");
            let text = error.to_string();
            assert!(text.contains("1970-01-01 00:00:12 in seconds"), "{text}");
            assert!(text.contains("to_timestamp_millis(12)"), "{text}");
        }
        let later = "SELECT count(*) FROM t WHERE time = '2014-07-01 00:00:01'";
        assert_eq!(db.rows(later).await.concat(), ["1"]);
    });
}
