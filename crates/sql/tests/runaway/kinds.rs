//! Statements that never end by themselves, or only after far too long.

use std::fmt::Write;

/// Runaways by name.
#[expect(clippy::too_many_lines, reason = "a table of statements")]
pub(crate) fn runaways() -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = [
        (
            "a series without end",
            "SELECT count(*) FROM generate_series(1, 1000000000000000000)",
        ),
        (
            "a long series",
            "SELECT sum(value) FROM generate_series(1, 1000000000000)",
        ),
        (
            "a cross join of series",
            "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
        ),
        (
            "a cross join that is summed up",
            "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) a, \
             generate_series(1, 1000000) b",
        ),
        (
            "a nested loop that finds nothing",
            "SELECT count(*) FROM generate_series(1, 3000000) a JOIN generate_series(1, 3000000) b \
             ON a.value * b.value < 0",
        ),
        (
            "a nested loop that finds much",
            "SELECT count(*) FROM generate_series(1, 3000000) a JOIN generate_series(1, 3000000) b \
             ON a.value < b.value + 7",
        ),
        (
            "an outer nested loop",
            "SELECT count(*) FROM generate_series(1, 3000000) a LEFT JOIN \
             generate_series(1, 3000000) b ON a.value + b.value < 0",
        ),
        (
            "a hash join of one key",
            "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b \
             ON a.value % 1 = b.value % 1 AND a.value + b.value < 0",
        ),
        (
            "recursion without end",
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) \
             SELECT count(*) FROM r",
        ),
        (
            "recursion that doubles",
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL \
             SELECT r.n + 1 FROM r, generate_series(1, 2)) SELECT count(*) FROM r",
        ),
        (
            "a sort of a series",
            "SELECT value FROM generate_series(1, 100000000) ORDER BY value % 1000, value DESC",
        ),
        (
            "a window over a series",
            "SELECT sum(w) FROM (SELECT sum(value) OVER (ORDER BY value % 1000 ROWS BETWEEN 1000 \
             PRECEDING AND CURRENT ROW) w FROM generate_series(1, 50000000)) q",
        ),
        (
            "lists of all rows so far",
            "SELECT max(array_length(w)) FROM (SELECT array_agg(value) OVER (ORDER BY value) w \
             FROM generate_series(1, 3000000)) q",
        ),
        (
            "texts of all rows so far",
            "SELECT max(w) FROM (SELECT string_agg(value::text, ',') OVER (ORDER BY value) w \
             FROM generate_series(1, 3000000)) q",
        ),
        (
            "medians of wide frames",
            "SELECT max(w) FROM (SELECT median(value) OVER (ORDER BY value ROWS BETWEEN 100000 \
             PRECEDING AND CURRENT ROW) w FROM generate_series(1, 3000000)) q",
        ),
        (
            "a rank over a series",
            "SELECT max(w) FROM (SELECT rank() OVER (PARTITION BY value % 3 ORDER BY -value) w \
             FROM generate_series(1, 50000000)) q",
        ),
        (
            "groups without end",
            "SELECT count(*) FROM (SELECT value, count(*) FROM generate_series(1, 1000000000) \
             GROUP BY value) q",
        ),
        (
            "distinct texts without end",
            "SELECT count(DISTINCT concat('a', value::text)) FROM generate_series(1, 1000000000)",
        ),
        (
            "patterns over long texts",
            "SELECT count(*) FROM generate_series(1, 10000000) WHERE \
             regexp_like(repeat('ab', 2000 + value % 7), '(a|b|ab)*c$')",
        ),
        (
            "arrays that are unnested",
            "SELECT count(*) FROM (SELECT unnest(range(0, 500)) u FROM \
             generate_series(1, 10000000)) q WHERE u < 0",
        ),
        (
            "rows without end",
            "SELECT a.value, b.value FROM generate_series(1, 1000000) a, \
             generate_series(1, 1000000) b",
        ),
        (
            "a table joined with itself",
            "SELECT count(*) FROM t a, t b, t c WHERE a.v + b.v + c.v < 0",
        ),
        (
            "a subquery for each row",
            "SELECT sum((SELECT count(*) FROM t b WHERE b.v = a.v)) FROM t a, t c, t d",
        ),
        (
            "a full nested loop",
            "SELECT count(*) FROM generate_series(1, 3000000) a FULL JOIN \
             generate_series(1, 3000000) b ON a.value * b.value < 0",
        ),
        (
            "a hash join of one key that keeps what it finds",
            "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b \
             ON a.value % 1 = b.value % 1",
        ),
        (
            "an array of a series",
            "SELECT array_length(array_agg(value)) FROM generate_series(1, 1000000000)",
        ),
        (
            "a text of a series",
            "SELECT length(string_agg(value::text, ',')) FROM generate_series(1, 1000000000)",
        ),
        (
            "a median of a series",
            "SELECT median(value) FROM generate_series(1, 1000000000)",
        ),
        (
            "an array that is folded",
            "SELECT array_length(generate_series(1, 1000000000))",
        ),
        (
            "an array that is unnested",
            "SELECT count(*) FROM (SELECT unnest(range(0, 10000000000)) u) q",
        ),
        (
            "a text that is folded",
            "SELECT length(repeat(repeat('ab', 1000000), 1000000))",
        ),
        (
            "distinct rows of a cross join",
            "SELECT DISTINCT a.value + b.value * 7 FROM generate_series(1, 1000000) a, \
             generate_series(1, 1000000) b",
        ),
        (
            "a difference of series",
            "SELECT value FROM generate_series(1, 1000000000) EXCEPT \
             SELECT value * 2 FROM generate_series(1, 1000000000)",
        ),
        (
            "gaps without end",
            "SELECT count(*) FROM (SELECT time_bucket_gapfill('1us', time) AS b, locf(avg(v)) FROM t \
             WHERE time >= '2023-01-01' AND time < '2024-01-01' GROUP BY b) q",
        ),
        (
            "rows that are inserted",
            "INSERT INTO sink SELECT to_timestamp_seconds(value), 'd', value::double FROM \
             generate_series(1, 1000000000000)",
        ),
        (
            "an analysis of a runaway",
            "EXPLAIN ANALYZE SELECT count(*) FROM generate_series(1, 1000000) a, \
             generate_series(1, 1000000) b WHERE a.value * b.value < 0",
        ),
    ]
    .map(|(name, sql)| (name, sql.to_owned()))
    .into();
    all.push(("WITH queries that double", doubling(40, "count(*)", "")));
    all.push(("WITH queries of doubling width", widening(40)));
    all.push(("WITH queries that barely pass", doubling(8, "count(*)", "")));
    let sums = computed(40, "x + x");
    all.push((
        "conditions that double",
        format!("{sums} SELECT * FROM c40 WHERE x > 1"),
    ));
    all.push((
        "columns that double",
        format!("{sums} SELECT count(x) FROM c40"),
    ));
    for (name, twice) in [
        ("structures that double", "struct(x, x)"),
        ("structures of aggregates", "first_value(struct(x, x))"),
        ("arrays that double", "make_array(x, x)"),
        ("texts that double", "concat(x, x)"),
        ("texts of sorted aggregates", "max(concat(x, x))"),
        ("cases that double", "case when x > x then x else x end"),
    ] {
        all.push((
            name,
            format!("{} SELECT count(x) FROM c40", computed(40, twice)),
        ));
    }
    // Just below the limit at which it is refused.
    let sums = computed(14, "x + x");
    all.push((
        "conditions that barely pass",
        format!("{sums} SELECT * FROM c14 WHERE x > 1"),
    ));
    all.push((
        "columns that barely pass",
        format!("{sums} SELECT count(x) FROM c14"),
    ));
    all.push(("tables in tables", nested(40)));
    let mut list = String::new();
    for value in 0..100_000 {
        let _ = write!(list, "{}{value}", if value > 0 { "," } else { "" });
    }
    all.push((
        "a huge list",
        format!("SELECT count(*) FROM generate_series(1, 100000000) WHERE value IN ({list})"),
    ));
    all.push((
        "a huge list that is negated",
        format!(
            "SELECT count(*) FROM t WHERE NOT (v::bigint IN ({list}) OR v::bigint IN ({list}))"
        ),
    ));
    let values: Vec<String> = (0..500_000).map(|at| format!("({at},{at})")).collect();
    all.push((
        "rows of text",
        format!(
            "SELECT count(*) FROM (VALUES {}) AS x(a, b)",
            values.join(",")
        ),
    ));
    let values: Vec<String> = (0..1_000_000).map(|at| at.to_string()).collect();
    all.push((
        "a list of a million",
        format!("SELECT count(*) FROM t WHERE v IN ({})", values.join(",")),
    ));
    all.push(("sets of groups", {
        let keys: Vec<String> = (0..12).map(|at| format!("k{at}")).collect();
        let made: Vec<String> = (0..12)
            .map(|at| format!("(v + {at})::bigint % {} AS k{at}", 20_000 - at))
            .collect();
        let (keys, made) = (keys.join(", "), made.join(", "));
        format!(
            "SELECT count(*) FROM (SELECT count(*) FROM (SELECT {made} FROM t) \
             GROUP BY CUBE({keys}))"
        )
    }));
    all.push(("many joins", {
        let tables: Vec<String> = (0..40).map(|at| format!("t AS t{at}")).collect();
        let equal: Vec<String> = (1..40).map(|at| format!("t0.v = t{at}.v + {at}")).collect();
        format!(
            "SELECT count(*) FROM {} WHERE {}",
            tables.join(", "),
            equal.join(" AND ")
        )
    }));
    all
}

/// WITH queries, each of which uses the one before it twice.
fn doubling(steps: usize, what: &str, rest: &str) -> String {
    let mut sql = "WITH c0 AS (SELECT v AS n FROM t)".to_owned();
    for step in 1..=steps {
        let before = step - 1;
        let _ = write!(
            sql,
            ", c{step} AS (SELECT x.n FROM c{before} x, c{before} y)"
        );
    }
    format!("{sql} SELECT {what} FROM c{steps} {rest}")
}

/// The same, and each has all columns of the one before it twice.
fn widening(steps: usize) -> String {
    let mut sql = "WITH c0 AS (SELECT v AS n FROM t)".to_owned();
    for step in 1..=steps {
        let before = step - 1;
        let _ = write!(sql, ", c{step} AS (SELECT * FROM c{before} x, c{before} y)");
    }
    format!("{sql} SELECT count(*) FROM c{steps}")
}

/// WITH queries, each of which computes its column from that of the one before it, twice.
fn computed(steps: usize, twice: &str) -> String {
    let mut sql = "WITH c0 AS (SELECT v AS x FROM t)".to_owned();
    for step in 1..=steps {
        let before = step - 1;
        let _ = write!(sql, ", c{step} AS (SELECT {twice} AS x FROM c{before})");
    }
    sql
}

/// Nested derived tables, each of which computes its column from that of the inner one, twice.
fn nested(levels: usize) -> String {
    let (before, after) = (
        "SELECT x + x AS x FROM (".repeat(levels),
        ") q".repeat(levels),
    );
    format!("SELECT count(x) FROM ({before}SELECT v AS x FROM t{after}) q")
}
