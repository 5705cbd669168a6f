//! Compares random aggregates over random data between the series-aware operator and DataFusion's
//! own: the results must be equal. Rows are late, overwritten, deleted, flushed or not, and have
//! nulls.
//!
//! `MARIGRAM_RANDOM_QUERIES` sets the number of queries, and `MARIGRAM_RANDOM_SEED` the first seed.

use super::service::block_on;
use super::to_texts;
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_service::{Answer, Identity, Query, ServiceError, Session};
use marigram_sql::{SqlOptions, SqlService};
use rand::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The number of queries per set of data.
const QUERIES: u64 = 25;

const TABLE: &str = "CREATE TABLE r (time TIMESTAMP, site STRING TAG, unit BIGINT TAG, up BOOLEAN TAG, \
     a INT, b BIGINT, c DOUBLE, d REAL, e BIGINT UNSIGNED, s STRING, f BOOLEAN, t TIMESTAMP) \
     WITH (page_size = '1KiB', partition = '1h')";

pub(crate) fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

pub(crate) struct DatabaseAndModel {
    pub engine: Engine,
    pub ours: SqlService,
    plain: SqlService,
    pub session: Session,
    _dir: tempfile::TempDir,
}

impl DatabaseAndModel {
    pub(crate) async fn open(partition_rows: usize) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            flush_age_max: None,
            background_threads: 0,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options);
        let engine = engine.expect("an engine");
        let ours = SqlOptions {
            partition_rows,
            refreshes_views: false,
            ..SqlOptions::default()
        };
        let plain = SqlOptions {
            knows_series: false,
            ..ours.clone()
        };
        let ours = SqlService::new(engine.clone(), ours).expect("a service");
        let plain = SqlService::new(engine.clone(), plain).expect("a service");
        let session = ours
            .session(None, &Identity::owner("tester"))
            .await
            .expect("a session");
        Self {
            engine,
            ours,
            plain,
            session,
            _dir: dir,
        }
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        let done = self.ours.execute(&mut self.session, sql).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Executes this many queries, and compares them with DataFusion's own operators.
    async fn check(
        &mut self,
        seed: u64,
        RandomQuery { sql, in_order }: &RandomQuery,
        times: usize,
    ) {
        let plain = self.rows_as_given(false, sql).await;
        for _ in 0..times {
            match (self.rows_as_given(true, sql).await, plain.clone()) {
                (Ok(mut ours), Ok(mut plain)) => {
                    if !in_order {
                        ours.sort();
                        plain.sort();
                    }
                    assert_eq!(ours, plain, "seed {seed}: {sql}");
                }
                (ours, plain) => panic!("seed {seed}: {sql}\n{ours:?}\n{plain:?}"),
            }
        }
    }

    /// The rows, in a canonical order.
    pub(crate) async fn rows(
        &mut self,
        ours: bool,
        sql: &str,
    ) -> Result<Vec<Vec<String>>, ServiceError> {
        let mut rows = self.rows_as_given(ours, sql).await?;
        rows.sort();
        Ok(rows)
    }

    async fn rows_as_given(
        &mut self,
        ours: bool,
        sql: &str,
    ) -> Result<Vec<Vec<String>>, ServiceError> {
        let service = if ours { &self.ours } else { &self.plain };
        let Answer::Rows(mut rows) = service.execute(&mut self.session, sql).await? else {
            panic!("{sql} has no rows")
        };
        let mut texts = Vec::new();
        while let Some(batch) = rows.batches.next().await {
            texts.extend(to_texts(&batch?));
        }
        Ok(texts)
    }
}

/// A time of day: seconds, and different milliseconds for each series, so that no two series have
/// rows with the same time, and first and last values are unambiguous.
pub(crate) fn time(second: u32, series: u32) -> String {
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("'2024-03-31T{hour:02}:{minute:02}:{second:02}.{series:03}Z'")
}

/// An INSERT of rows of a few seconds from `start` on.
pub(crate) fn insert(rng: &mut StdRng, start: u32) -> String {
    let mut sql = String::from("INSERT INTO r VALUES ");
    let rows = rng.random_range(20..400);
    let step = rng.random_range(1..40);
    // Devices that report every second but sometimes fail to, or rows of any device.
    let steady = rng.random_bool(0.3);
    let complete = rng.random_bool(0.5);
    // Floats whose order differs from that of their bits.
    let special = rng.random_ratio(1, 3);
    let mut clock = start;
    for row in 0..rows {
        let series: u32 = if steady {
            row / 100
        } else {
            rng.random_range(0..12)
        };
        clock = match row % 100 {
            0 => start,
            _ if rng.random_bool(0.7) => clock + 1,
            _ => clock + rng.random_range(2..5),
        };
        let site = if series.is_multiple_of(5) {
            "NULL".into()
        } else {
            format!("'s{}'", series % 3)
        };
        let mut float = |value: f64| {
            if !special || rng.random_ratio(9, 10) {
                return format!("{value}");
            }
            let text = one(rng, &["NaN", "-NaN", "inf", "-inf", "0.0", "-0.0"]);
            match text {
                "-NaN" => "-('NaN'::DOUBLE)".into(),
                text => format!("'{text}'::DOUBLE"),
            }
        };
        let c = float(f64::from(row) * 0.25 - 3.0);
        let d = float(f64::from(row % 37) * 0.5);
        let mut field = |value: String| {
            if complete || rng.random_ratio(5, 6) {
                value
            } else {
                "NULL".into()
            }
        };
        let values = [
            field(format!("{}", i64::from(row) * 7 % 101 - 50)),
            field(format!("{}", i64::from(row) * 1_000_003 - 77)),
            field(c),
            field(d),
            // A row has at least one field.
            format!("{}", row * 3),
            field(format!("'text {}'", row % 11)),
            field(format!("{}", row % 2 == 0)),
            field(time(row, 0)),
        ];
        let comma = if row == 0 { "" } else { ", " };
        let second = if steady {
            clock
        } else {
            start + row * step / 8
        };
        let at = time(second % 86_400, series);
        let _ = write!(
            sql,
            "{comma}({at}, {site}, {series}, {}, {})",
            series.is_multiple_of(2),
            values.join(", ")
        );
    }
    sql
}

pub(crate) async fn fill(pair: &mut DatabaseAndModel, rng: &mut StdRng) {
    pair.run(TABLE).await;
    let start = rng.random_range(0..40_000);
    for round in 0..rng.random_range(2..7) {
        // Some rounds continue in time, some lie in between, some overwrite.
        let at = match rng.random_range(0..3) {
            0 => start + round * 600,
            1 => start + rng.random_range(0..2000),
            _ => start,
        };
        pair.run(&insert(rng, at)).await;
        if rng.random_bool(0.6) {
            pair.run("FLUSH").await;
        }
        if rng.random_ratio(1, 5) {
            let from = start + rng.random_range(0..600);
            let unit = rng.random_range(0..12);
            let to = time(from + rng.random_range(1..300), 0);
            let from = time(from, 0);
            pair.run(&format!(
                "DELETE FROM r WHERE unit = {unit} AND time >= {from} AND time < {to}"
            ))
            .await;
        }
        if rng.random_ratio(1, 8) {
            pair.run("COMPACT").await;
        }
    }
}

pub(crate) fn one<'a>(rng: &mut StdRng, of: &[&'a str]) -> &'a str {
    of.choose(rng).expect("there is one")
}

fn bucket(rng: &mut StdRng) -> String {
    let zone = one(
        rng,
        &["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"],
    );
    match rng.random_range(0..7) {
        0 => "time_bucket('1 minute', time)".into(),
        1 => "time_bucket(INTERVAL '7 minutes', time, TIMESTAMP '2024-03-31 00:01:30')".into(),
        2 => format!("time_bucket('1 day', time, '{zone}')"),
        3 => format!("time_bucket('2 hours', time, '{zone}')"),
        4 => "date_bin(INTERVAL '13 seconds', time, TIMESTAMP '2000-01-01')".into(),
        5 => format!(
            "date_trunc('{}', time)",
            one(rng, &["minute", "hour", "week", "month"])
        ),
        _ => "time_bucket('1 month', time)".into(),
    }
}

pub(crate) fn condition(rng: &mut StdRng) -> String {
    let second = rng.random_range(0..50_000);
    match rng.random_range(0..9) {
        0 => format!("time >= {}", time(second, 3)),
        1 => format!("time < {}", time(second, 7)),
        2 => format!("site = 's{}'", rng.random_range(0..4)),
        3 => format!(
            "unit IN ({}, {})",
            rng.random_range(0..12),
            rng.random_range(0..12)
        ),
        4 => format!("a > {}", rng.random_range(-60..60)),
        5 => format!(
            "c BETWEEN {} AND {}",
            rng.random_range(-5..20),
            rng.random_range(20..90)
        ),
        6 => "site IS NULL".into(),
        7 => format!("s = 'text {}' OR f", rng.random_range(0..12)),
        _ => format!("unit % 3 = {}", rng.random_range(0..3)),
    }
}

pub(crate) fn call(rng: &mut StdRng) -> String {
    let value = one(rng, &["a", "b", "c", "d", "e"]);
    let any = one(rng, &["a", "b", "c", "d", "e", "s", "f", "t"]);
    let call = match rng.random_range(0..18) {
        0 => "count(*)".into(),
        1 => format!("count({any})"),
        2 | 3 => format!("sum({value})"),
        4 | 5 => format!("avg({value})"),
        6 => format!("min({any})"),
        7 => format!("max({any})"),
        8 => format!("first({any}, time)"),
        9 => format!("last({any}, time)"),
        10 => {
            let call = one(rng, &["stddev", "stddev_pop", "var_samp", "var_pop"]);
            // The last digits depend on the order of addition.
            format!("round(ln({call}({value}) + 1.000123), 6)")
        }
        11 => format!("median({value})"),
        12 => format!("count(DISTINCT {any})"),
        13 => "min(time), max(time)".into(),
        14 => "sum(a + b)".into(),
        15 => format!("{}(f)", one(rng, &["bool_and", "bool_or"])),
        16 => {
            let call = one(rng, &["bit_and", "bit_or", "bit_xor"]);
            format!("{call}({})", one(rng, &["a", "b", "e"]))
        }
        _ => "max(site), count(unit)".into(),
    };
    // FILTER belongs to a call, not to the expression around it.
    if !call.contains(", ") && !call.starts_with("round") && rng.random_ratio(1, 5) {
        return format!("{call} FILTER (WHERE {})", condition(rng));
    }
    call
}

/// A query for first, last or newest rows, which the last values may answer, or for all rows.
fn edges(rng: &mut StdRng) -> String {
    let conditions = match rng.random_range(0..3) {
        0 => String::new(),
        _ => format!("WHERE {}", condition(rng)),
    };
    let order = one(rng, &["DESC", "DESC", "ASC"]);
    match rng.random_range(0..5) {
        0 => format!(
            "SELECT DISTINCT ON (unit) unit, time, site, a, s FROM r {conditions} \
             ORDER BY unit, time {order}"
        ),
        1 => format!(
            "SELECT unit, last(a, time), last(s, time), max(time) FROM r {conditions} GROUP BY unit"
        ),
        2 => format!("SELECT site, last(f, time), max(time) FROM r {conditions} GROUP BY site"),
        3 => format!(
            "SELECT time, unit, c AS x, s FROM r {conditions} ORDER BY time {order} LIMIT {}",
            rng.random_range(1..40)
        ),
        _ => format!("SELECT time, unit, a, e FROM r {conditions}"),
    }
}

/// A query.
struct RandomQuery {
    sql: String,
    /// Whether the query defines the order of all of its rows.
    in_order: bool,
}

/// All group keys, in some order and each in some direction.
fn order(rng: &mut StdRng, keys: &[String]) -> String {
    let mut keys: Vec<&String> = keys.iter().collect();
    keys.shuffle(rng);
    let ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"];
    let keys = keys.iter().map(|key| format!("{key}{}", one(rng, &ways)));
    let keys: Vec<String> = keys.collect();
    let limit = match rng.random_range(0..3) {
        0 => format!(" LIMIT {}", rng.random_range(1..20)),
        _ => String::new(),
    };
    format!(" ORDER BY {}{limit}", keys.join(", "))
}

fn query(rng: &mut StdRng) -> RandomQuery {
    if rng.random_ratio(1, 4) {
        return RandomQuery {
            sql: edges(rng),
            in_order: false,
        };
    }
    let mut keys = BTreeSet::new();
    for _ in 0..rng.random_range(0..3) {
        let tag = one(
            rng,
            &["site", "unit", "up", "coalesce(site, 'none')", "unit % 4"],
        );
        keys.insert(tag.to_owned());
    }
    if rng.random_bool(0.5) {
        keys.insert(bucket(rng));
    }
    let calls: Vec<String> = (0..rng.random_range(1..5)).map(|_| call(rng)).collect();
    let mut conditions: Vec<String> = Vec::new();
    for _ in 0..rng.random_range(0..3) {
        conditions.push(format!("({})", condition(rng)));
    }
    let keys: Vec<String> = keys.into_iter().collect();
    let listed: Vec<&str> = keys.iter().chain(&calls).map(String::as_str).collect();
    let mut sql = format!("SELECT {} FROM r", listed.join(", "));
    if !conditions.is_empty() {
        let _ = write!(sql, " WHERE {}", conditions.join(" AND "));
    }
    if !keys.is_empty() {
        let _ = write!(sql, " GROUP BY {}", keys.join(", "));
    }
    if rng.random_ratio(1, 6) {
        sql.push_str(" HAVING count(*) > 3");
    }
    let in_order = !keys.is_empty() && rng.random_bool(0.5);
    if in_order {
        sql.push_str(&order(rng, &keys));
    }
    RandomQuery { sql, in_order }
}

#[test]
fn aggregates_are_what_datafusion_makes_of_the_same_rows() {
    let seed = number("MARIGRAM_RANDOM_SEED", 1);
    let queries = number("MARIGRAM_RANDOM_QUERIES", 500);
    let (mut by_us, mut ordered) = (0, 0);
    for seed in seed..seed + queries.div_ceil(QUERIES) {
        let mut rng = StdRng::seed_from_u64(seed);
        block_on(async {
            // One partition or several.
            let partition_rows = if seed % 2 == 0 { 1 } else { 1 << 20 };
            let mut pair = DatabaseAndModel::open(partition_rows).await;
            fill(&mut pair, &mut rng).await;
            let mut asked = Vec::new();
            for _ in 0..QUERIES {
                let query = query(&mut rng);
                let plan = pair.rows(true, &format!("EXPLAIN {}", query.sql)).await;
                let plan = format!("{plan:?}");
                by_us += u64::from(plan.contains("SeriesAggregate"));
                ordered += u64::from(plan.contains("ordered, "));
                // Planned; with a cached plan; with cached operators, too.
                pair.check(seed, &query, 3).await;
                asked.push(query);
            }
            let start = rng.random_range(0..40_000);
            pair.run(&insert(&mut rng, start)).await;
            for query in asked {
                pair.check(seed, &query, 1).await;
            }
        });
    }
    assert!(by_us * 2 > queries, "the operator did {by_us} of {queries}");
    assert!(ordered * 8 > queries, "it sorted {ordered} of {queries}");
}
