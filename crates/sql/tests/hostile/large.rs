//! Functions that make large values from small ones: each is answered or refused with 53200,
//! whatever the number of rows, and none crashes the process.

use super::{Database, in_own_process};
use std::fmt::Write as _;

/// Statements that would take gigabytes.
const HUGE: &[&str] = &[
    "select max(length(repeat(s, 1000000))) from t",
    "select length(repeat('x', 2000000000))",
    "select repeat('x', 1000000000), a from t",
    "select repeat('x', 50000000), a from t",
    "select cast(NULL as int[2000000000]), a from t",
    "select max(length(repeat(s, a * 1000))) from t",
    "select max(length(lpad(s, 1000000))) from t",
    "select max(length(rpad(s, 1000000, 'ü'))) from t",
    "select length(lpad('x', 2000000000, 'y'))",
    "select levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
    "select max(length(replace(repeat(s, 1000), 't', repeat('x', 1000)))) from t",
    "select max(length(regexp_replace(repeat(s, 1000), '.', repeat('x', 1000), 'g'))) from t",
    "select max(length(regexp_replace(repeat(s, 1000), '(.*)', repeat('\\1', 1000), 'g'))) from t",
    "select max(length(concat(s, repeat('x', 1000000)))) from t",
    "select max(length(concat_ws(repeat('x', 1000000), s, s, s))) from t",
    "select max(length(s || repeat('x', 1000000))) from t",
    "select max(length(overlay(s placing repeat('x', 1000000) from 1))) from t",
    "select max(length(greatest(s, repeat('x', 1000000)))) from t",
    "select max(length(to_char(time, repeat('%c', 100000)))) from t",
    "select max(cardinality(array_repeat(s, 10000000))) from t",
    "select cardinality(array_repeat(1, 100000000000))",
    "select cardinality(array_repeat(array_repeat(array_repeat(1, 10000), 10000), 10000))",
    "select max(cardinality(array_resize([a], 100000000, 7))) from t",
    "select cardinality(array_resize([1], 9000000000000000000))",
    "select cardinality(range(0, 9000000000000000000))",
    "select count(*) from (select generate_series(a, a + 100000000000, 1) as g from t) s",
    "select max(cardinality(range(0, a * 1000000))) from t",
    "select count(*) from (select generate_series(0.5, 1e15, 0.001) as g) s",
    "select count(*) from (select generate_series(time, timestamp '2200-01-01', interval '1 microsecond') as g from t) s",
    "select max(length(array_to_string(array_repeat(s, 1000), repeat('x', 10000)))) from t",
    "select max(cardinality(make_array(s, repeat('x', 1000000)))) from t",
    "select max(cardinality([s, repeat('x', 1000000)])) from t",
    "select max(cardinality(array_concat([s], array_repeat('x', 1000000)))) from t",
    "select max(cardinality(array_append([s], repeat('x', 1000000)))) from t",
    "select max(cardinality(array_replace(array_repeat(s, 1000), 'text', repeat('x', 100000)))) from t",
    "select max(cardinality(string_to_array(repeat(s, 100000), NULL))) from t",
    "select count(*) from (select regexp_matches(repeat(s, 100000), '(.)(.)(.)', 'g') from t) as m",
    "select max(cardinality(regexp_split_to_array(repeat(s, 1000000), ''))) from t",
    "select max(length(to_json(repeat(s, 1000000)))) from t",
    "select max(length(json_build_array(array_repeat(true, 100000000)))) from t",
    "select length(json_agg(repeat(s, 100000))) from t",
    "select max(length(encode(repeat(s, 1000000)::bytea, 'escape'))) from t",
    "select arrow_cast(NULL, 'FixedSizeList(2000000000, Int64)')",
    "select arrow_cast(s, 'FixedSizeBinary(2000000000)') from t",
    "select approx_percentile_cont(x, 0.5, 100000000000) from t",
    "with a as (select repeat('x', 1000000) as s) select a.s, t.a from t, a where repeat(a.s, 1000) <> ''",
];

/// Statements whose bound is large and whose values are small, and others that must succeed.
const WORKS: &[(&str, u64)] = &[
    ("select s || 'x' from t", 10_000),
    ("select repeat(s, 100) from t", 10_000),
    ("select repeat(s, (a % 100)::bigint) from t", 10_000),
    ("select lpad(s, 100), rpad(dev, 20, 'ü') from t", 10_000),
    ("select replace(repeat(s, 50), 'te', 'TE') from t", 10_000),
    (
        "select regexp_replace(repeat(s, 20), '(t)(e)', '\\2\\1', 'g') from t",
        10_000,
    ),
    (
        "select regexp_replace(s, '(t)(e)', '\\2\\1') from t",
        10_000,
    ),
    (
        "select concat(s, dev, 'x'), concat_ws('-', s, dev) from t",
        10_000,
    ),
    ("select unnest(range(1, 1000001)) as n", 1_000_000),
    ("select generate_series(1, 1000000000) as n limit 2", 2),
    ("select generate_series(1, 1000) as n from t limit 2", 2),
    ("select regexp_matches(s, '.', 'g') from t where a < 10", 36),
    (
        "select to_json(s), json_build_object(dev, a) from t",
        10_000,
    ),
    ("select json_agg(a), json_object_agg(dev, s) from t", 1),
    ("select length(repeat('x', 10000000))", 1),
    (
        "select array_to_string(array_agg(s), ',') from t group by a % 10",
        10,
    ),
    (
        "select array_concat([a], [a + 1]), array_append([a], 2) from t",
        10_000,
    ),
    (
        "select translate(s, 'te', 'TE'), to_char(time, '%Y-%m-%d') from t",
        10_000,
    ),
    (
        "select dev || s || 'x' as label, count(*) from t group by 1",
        1,
    ),
    ("select string_agg(s, ', ') from t", 1),
];

/// A text that is doubled in each step.
fn doubled(first: &str, steps: usize) -> String {
    let mut sql = format!("with c0 as ({first})");
    for at in 1..=steps {
        let _ = write!(sql, ", c{at} as (select s || s as s from c{})", at - 1);
    }
    format!("{sql} select max(length(s)) from c{steps}")
}

#[test]
fn functions_that_make_large_values_are_refused() {
    in_own_process(
        "large::functions_that_make_large_values_are_refused",
        || {
            let mut db = Database::open(10_000);
            let mut wrong = Vec::new();
            let doubled = [
                doubled("select repeat(s, 1000) as s from t", 12),
                doubled("select repeat('x', 1000000) as s", 10),
            ];
            let huge = HUGE
                .iter()
                .copied()
                .chain(doubled.iter().map(String::as_str));
            for sql in huge {
                println!("{sql}");
                let begun = std::time::Instant::now();
                let answer = db.run(sql);
                println!("  {answer:?} in {:?}", begun.elapsed());
                match answer {
                    Err(error) if ["53200", "54001"].contains(&error.sqlstate()) => {}
                    // The functions' own limits.
                    Err(error) if error.to_string().contains("size overflow") => {}
                    Err(error) if error.to_string().contains("limit exceeded") => {}
                    Err(error) if error.to_string().contains("keeps at most 10000") => {}
                    Err(error) if error.to_string().contains("at most 255 characters") => {}
                    Err(error) if error.to_string().contains("at most 67108864 bytes") => {}
                    other => wrong.push(format!("{sql}: {other:?}")),
                }
            }
            assert_eq!(db.run("select 1").unwrap(), 1);
            assert!(wrong.is_empty(), "{wrong:#?}");
        },
    );
}

#[test]
fn functions_that_make_small_values_work() {
    in_own_process("large::functions_that_make_small_values_work", || {
        let mut db = Database::open(10_000);
        for (sql, rows) in WORKS {
            println!("{sql}");
            assert_eq!(
                db.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}")),
                *rows,
                "{sql}"
            );
        }
    });
}

#[test]
fn names_of_types_are_not_read_without_bound() {
    in_own_process("large::names_of_types_are_not_read_without_bound", || {
        let mut db = Database::open(10_000);
        for depth in [10, 1000, 100_000] {
            let name = format!("{}Int8{}", "List(".repeat(depth), ")".repeat(depth));
            for function in ["arrow_cast", "arrow_try_cast"] {
                let answer = db.run(&format!("select {function}(NULL, '{name}')"));
                println!("{function} {depth}: {answer:?}");
                assert!(depth < 1000 || answer.is_err());
            }
        }
    });
}
