//! Statements from every production of the grammar, from 10 to 100,000 deep or long, in every
//! statement that can contain them: each is answered, or refused with an SQLSTATE other than that
//! of an internal error.
//!
//! `MARIGRAM_DEEP_ALL=1` runs every production in every wrapper at every depth. Otherwise
//! `MARIGRAM_DEEP_SEED` chooses the wrappers, and only the smallest and the greatest depth are
//! used: statements of medium depth are planned, which takes time.

use super::{Database, in_own_process};
use rand::prelude::*;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// No case may take longer; a generous bound against a hang.
const CASE_MAX: Duration = Duration::from_mins(1);
const DEPTHS: [usize; 5] = [10, 100, 1000, 10_000, 100_000];
/// The smallest and the greatest depth.
const ENDS: [usize; 2] = [10, 100_000];
/// Lists have no limit, and the time for planning grows with the square of their length: longer
/// lists only run with `MARIGRAM_DEEP_ALL`.
const LIST_MAX: usize = 500;

/// An expression: its beginning, what is repeated before the middle, the middle, and what is
/// repeated after it.
struct Production {
    before: &'static str,
    middle: &'static str,
    after: &'static str,
}

const fn row(middle: &'static str, after: &'static str) -> Production {
    Production {
        before: "",
        middle,
        after,
    }
}

const fn nest(before: &'static str, middle: &'static str, after: &'static str) -> Production {
    Production {
        before,
        middle,
        after,
    }
}

/// Expressions, most of which have a value.
const EXPRESSIONS: &[Production] = &[
    row("1", "+1"),
    row("1", " - 1"),
    row("1", "*1"),
    row("1", "/1"),
    row("1", "%1"),
    row("x", "+x"),
    row("a", "+a"),
    row("1", "|1"),
    row("1", "#1"),
    row("1", " << 1"),
    row("'s'", "||'s'"),
    row("s", "||s"),
    row("[1]", "||[1]"),
    row("b", " or b"),
    row("a = 1", " or a = 2"),
    row("b", " and b"),
    row("a > 1", " and a > 2"),
    row("a > 1 and a < 3", " or a > 2 and a < 9"),
    row("a between 1 and 2", " and a between 2 and 3"),
    row("1", " between 1 and 2"),
    row("1", " = 1"),
    row("1", " < 1"),
    row("b", " is null"),
    row("b", " is not null"),
    row("b", " is true"),
    row("b", " is not unknown"),
    row("b", " is distinct from b"),
    row("b", " is not distinct from true"),
    row("s", " like 's'"),
    row("s", " not ilike 's'"),
    row("s", " similar to 's'"),
    row("s", " ~ 's'"),
    row("s", " collate \"C\""),
    row("a", "::bigint"),
    row("a", "::int::text"),
    row("a", " in (1, 2)"),
    row("now()", " at time zone 'UTC'"),
    row("time", " + interval '1 second'"),
    row("[1]", "[1]"),
    row("[1]", "[1:2]"),
    row("s", "->'s'"),
    row("s", "->>'s'"),
    row("struct(1)", ".c0"),
    row("t", ".a"),
    row("[1]", " @> [1]"),
    row("1", "(1)"),
    row("'a'", " 'b'"),
    row("interval '1 day'", " + interval '1 day'"),
    nest("(", "1", ")"),
    nest("((", "1", ") + 1)"),
    nest("not ", "b", ""),
    nest("not(", "b", ")"),
    nest("- ", "1", ""),
    nest("+ ", "1", ""),
    nest("~ ", "1", ""),
    nest("-(", "1", ")"),
    nest("abs(", "1", ")"),
    nest("coalesce(1, ", "1", ")"),
    nest("coalesce(", "1", ", 1)"),
    nest("greatest(", "1", ", 2)"),
    nest("concat(s, ", "s", ")"),
    nest("cast(", "1", " as bigint)"),
    nest("case when b then ", "1", " end"),
    nest("case when ", "b", " then true end"),
    nest("case when b then 1 else ", "1", " end"),
    nest("case ", "1", " when 1 then 1 end"),
    nest("[", "1", "]"),
    nest("make_array(", "1", ")"),
    nest("array[", "1", "]"),
    nest("struct(", "1", ")"),
    nest("(1, ", "1", ")"),
    nest("1 in (", "1", ")"),
    nest("a in (1, ", "1", ")"),
    nest("(select ", "1", ")"),
    nest("exists (select 1 where ", "b", ")"),
    nest("1 in (select ", "1", ")"),
    nest("1 = any (select ", "1", ")"),
    nest("array(select ", "1", ")"),
    nest("extract(day from ", "time", ")"),
    nest("substring(", "s", " from 1 for 2)"),
    nest("trim(both 's' from ", "s", ")"),
    nest("overlay(", "s", " placing 'x' from 1)"),
    nest("position('s' in ", "s", ")"),
    nest("interval ", "'1 day'", ""),
    nest("array_transform([1], v -> ", "1", ")"),
    nest("{'a': ", "1", "}"),
    nest("map {'a': ", "1", "}"),
    nest("f(", "1", ""),
    nest("(", "1", ""),
    nest("case ", "1", ""),
    nest("1 + (select max(a) from t where a < ", "1", ")"),
    nest("1 + ", "1", ""),
    nest("cast(1 as array<", "int", ">)"),
    nest("cast(1 as struct<a ", "int", ">)"),
    row("cast(null as int", "[]"),
    row("1 in (1", ", 1"),
    row("coalesce(1", ", 1"),
    row("concat('a'", ", 'b'"),
    row("case when b then 1", " when b then 2"),
    row("a in (1", ", 2"),
    row("count(*) filter (where b", " or b"),
];

/// The end of expressions whose end is not repeated.
fn closed(production: &Production, text: String) -> String {
    let opened = production.middle.matches('(').count() + production.after.matches('(').count();
    let closed = production.middle.matches(')').count() + production.after.matches(')').count();
    if production.before.is_empty() && opened > closed {
        text + ")"
    } else if production.middle.starts_with("case") {
        text + " end"
    } else {
        text
    }
}

/// Whole queries.
const QUERIES: &[Production] = &[
    row("select 1", " union all select 1"),
    row("select a from t", " union all select a from t"),
    row("select 1", " union select 1"),
    row("select 1", " except select 2"),
    row("select a from t", " except select 2"),
    row("select 1", " intersect select 1"),
    row("select 1", " except select 2 union all select 3"),
    row("select 1", " union all select 1 union select 1"),
    row("values (1)", ", (1)"),
    row("values (1)", " union all values (1)"),
    row("select * from t", " join t on true"),
    row("select t.a from t", " natural join t"),
    row("select 1 from t", ", t"),
    row("select 1 from t", " cross join t"),
    row("select 1 from t", ", lateral (select 1)"),
    row("select 1", ", 1"),
    row("select a from t group by a", ", a + 1"),
    row("select a from t order by a", ", a"),
    row(
        "select sum(a) over (order by a)",
        ", sum(a) over (order by x)",
    ),
    row("select (select 1)", ", (select 1)"),
    row("select 1 where 1 in (select 1)", " and 1 in (select 1)"),
    row("select count(distinct a)", ", count(distinct x)"),
    row("select unnest([1])", ", unnest([1])"),
    row("select a from t group by grouping sets ((a)", ", (a)"),
    nest("select * from (", "select 1", ") as s"),
    nest(
        "select * from (",
        "select a from t where a = 1",
        ") where a = 2",
    ),
    nest("select a + 1 as a from (", "select 1 as a", ") as s"),
    nest("(", "select 1", ")"),
    nest("(", "select 1", ") union all select 1"),
    nest("select 1 from (t join ", "t", " on true)"),
    nest("select 1 from (", "t", ")"),
    nest("select 1 from ((", "t", "))"),
    nest("with a as (", "select 1", ") select * from a"),
    nest("select * from t, lateral (", "select 1", ") as s"),
    nest("select 1 union all (", "select 1", ")"),
    nest("explain ", "select 1", ""),
    nest("explain analyze ", "select 1", ""),
    nest("prepare p as ", "select 1", ""),
    nest("select distinct * from (", "select 1", ") as s"),
    nest(
        "select * from (",
        "select 1 as a",
        " limit 5) as s order by a",
    ),
    nest(
        "select max(a) as a from (",
        "select 1 as a",
        ") as s group by a",
    ),
    nest("select * from unnest(", "[1]", ")"),
    nest("insert into t ", "select * from t", ""),
    nest("delete from t where exists (", "select 1", ")"),
    nest("copy (", "select 1", ") to stdout"),
    nest("create table n (x array<", "int", ">)"),
    nest("create materialized view v as ", "select 1", ""),
    nest("begin; ", "select 1", ""),
];

/// Statements with one `{}` for an expression.
const WRAPPERS: &[&str] = &[
    "select {}",
    "select {} from t limit 3",
    "select count(*) from t where {} is null",
    "select a from t where b and {} = {} limit 1",
    "select count(*) from t group by {}",
    "select a from t order by {} limit 1",
    "select max({}) from t",
    "select a, lag(a) over (partition by {} order by time) from t limit 1",
    "select count(*) from t group by a having {} is null",
    "select count(*) from t as l join t as r on l.a = r.a and {} is null where l.a < 3",
    "select 1 limit {}",
    "delete from t where {} is null",
    "delete from t where time < '1960-01-01' and {}",
    "insert into t (time, a) select '2020-01-01', {}",
    "insert into t (time, a) values ('2020-01-01', {})",
    "explain select {} from t",
    "with c as (select {} as v from t) select * from c limit 1",
    "select * from (select {} as v) as s",
    "create materialized view v as select time_bucket('1 hour', time), max({}) from t group by 1",
    "select time_bucket_gapfill('1 hour', time), max({}) from t group by 1",
    "select avg({}) from t sample by 1h",
    "select * from generate_series(1, {})",
    "copy (select {}) to stdout",
    "update t set a = {}",
    "set x.y = {}",
    "select $1 + {}",
    "values ({})",
    "select case when {} is null then 1 end from t limit 1",
    "select pg_typeof({}), current_schema",
];

fn repeated(production: &Production, times: usize) -> String {
    let text = format!(
        "{}{}{}",
        production.before.repeat(times),
        production.middle,
        production.after.repeat(times)
    );
    closed(production, text)
}

/// Common table expressions, each over the one before it.
fn chained_ctes(times: usize) -> String {
    let mut sql = "with c0 as (select 1 as a)".to_owned();
    for at in 1..=times {
        let _ = write!(sql, ", c{at} as (select a + 1 as a from c{})", at - 1);
    }
    format!("{sql} select * from c{times}")
}

/// Runs one case and returns how long it took.
fn check(db: &mut Database, what: &str, sql: &str, prepares: bool) {
    let begun = Instant::now();
    let shown: String = sql.chars().take(100).collect();
    println!("{what}: {} bytes of {shown}", sql.len());
    let answer = if prepares {
        db.prepared(sql)
    } else {
        db.run(sql)
    };
    let took = begun.elapsed();
    match answer {
        Ok(rows) => println!("  {rows} rows, {took:?}"),
        Err(error) => {
            let message: String = error.to_string().chars().take(160).collect();
            println!("  {}, {took:?}: {message}", error.sqlstate());
            // Short statements may hit gaps in DataFusion.
            let is_deep = sql.len() > 2000;
            assert!(
                !is_deep || error.sqlstate() != "XX000" || !message.contains("panic"),
                "{message}"
            );
        }
    }
    assert!(took < CASE_MAX, "{what} took {took:?}");
}

#[test]
fn deep_statements_answer_or_refuse() {
    in_own_process("deep::deep_statements_answer_or_refuse", || {
        let all = std::env::var_os("MARIGRAM_DEEP_ALL").is_some();
        let seed = std::env::var("MARIGRAM_DEEP_SEED");
        let seed = seed.ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        let mut rng = StdRng::seed_from_u64(seed);
        // A single row, so that every join returns one row.
        let mut db = Database::open(1);
        let depths = if all { &DEPTHS[..] } else { &ENDS[..] };
        for &depth in depths {
            for (number, production) in EXPRESSIONS.iter().enumerate() {
                let expression = repeated(production, depth);
                for wrapper in WRAPPERS {
                    if !all
                        && !rng.random_ratio(1, WRAPPERS.len() as u32)
                        && *wrapper != WRAPPERS[number % 3]
                    {
                        continue;
                    }
                    let sql = wrapper.replace("{}", &expression);
                    let what = format!(
                        "depth {depth}, {}…{} in {wrapper}",
                        production.before, production.after
                    );
                    check(&mut db, &what, &sql, rng.random_ratio(1, 4));
                }
            }
            for production in QUERIES {
                let is_list = production.after.starts_with(',');
                let depth = if is_list && !all { LIST_MAX } else { depth };
                let sql = repeated(production, depth);
                let what = format!("depth {depth}, {}…{}", production.before, production.after);
                check(&mut db, &what, &sql, rng.random_ratio(1, 4));
            }
            check(
                &mut db,
                &format!("depth {depth}, chained CTEs"),
                &chained_ctes(depth),
                false,
            );
        }
        // The server still answers.
        assert_eq!(db.run("select 1").unwrap(), 1);
    });
}

#[test]
fn what_programs_generate_works() {
    in_own_process("deep::what_programs_generate_works", || {
        let mut db = Database::open(10_000);
        let list = |count: usize, text: &dyn Fn(usize) -> String, by: &str| {
            (0..count).map(text).collect::<Vec<_>>().join(by)
        };
        let compare = |at: usize| format!("a = {at}");
        let sum = format!("select 1{}", "+1".repeat(2000));
        for (what, sql, rows) in [
            (
                "an OR of 5,000 comparisons",
                format!("select a from t where {}", list(5000, &compare, " or ")),
                4999,
            ),
            (
                "an AND of 2,000 comparisons",
                format!(
                    "select a from t where {}",
                    list(2000, &|at| format!("a <> {at}"), " and ")
                ),
                8001,
            ),
            (
                "an IN of 50,000 literals",
                format!(
                    "select a from t where a in ({})",
                    list(50_000, &|at| at.to_string(), ", ")
                ),
                10_000,
            ),
            (
                "500 queries in a UNION ALL",
                list(
                    500,
                    &|at| format!("select a from t where a = {at}"),
                    " union all ",
                ),
                499,
            ),
            (
                "10,000 rows of VALUES",
                format!(
                    "insert into t (time, dev, a) values {}",
                    list(
                        10_000,
                        &|at| format!("({}, 'v', {at})", 1_700_000_000 + at),
                        ", "
                    )
                ),
                10_000,
            ),
            ("a sum of 2,000", sum.clone(), 1),
            (
                "a sum of 4,000 columns, as a condition",
                format!(
                    "select a from t where 1.0{} > 12003000.0 limit 7",
                    " + x + a - x".repeat(1333)
                ),
                7,
            ),
            (
                "products and differences of 4,000, in an aggregate",
                format!("select max(1.0{}) from t", " - x * 2 + a".repeat(1333)),
                1,
            ),
            (
                "a text of 2,000",
                format!(
                    "select s{} from t where dev = 'd' limit 7",
                    " || s".repeat(2000)
                ),
                7,
            ),
            (
                "a CASE of 3,000",
                format!(
                    "select case{} end",
                    list(3000, &|at| format!(" when {at} = 2999 then 1"), "")
                ),
                1,
            ),
            ("100 CTEs", chained_ctes(100), 1),
        ] {
            let begun = Instant::now();
            let answer = db.run(&sql);
            println!("{what}: {answer:?} in {:?}", begun.elapsed());
            assert_eq!(answer.unwrap(), rows, "{what}");
        }
        assert_eq!(db.prepared(&sum).unwrap(), 1);
        // The types of parameters are not known while the chain is planned.
        let unknown = format!("select 1{}", " + $1".repeat(1000));
        let refused = db.prepared(&unknown).unwrap_err();
        assert_eq!(refused.sqlstate(), "54001", "{refused}");
        let known = format!("select 1{}", " + $1::bigint".repeat(1000));
        let unbound = db.prepared(&known).unwrap_err();
        assert_ne!(unbound.sqlstate(), "54001", "{unbound}");
    });
}

/// The name of a call by an alias contains the names of its arguments: it doubled with each level.
#[test]
fn nested_calls_by_an_alias_are_planned_at_once() {
    in_own_process("deep::nested_calls_by_an_alias_are_planned_at_once", || {
        let mut database = Database::open(3);
        let mut slow = Vec::new();
        for (before, middle, after) in [
            ("row(", "1", ")"),
            ("pow(", "1.5", ", 1)"),
            ("pow(", "x", ", 1)"),
            ("char_length(", "s", ")::text"),
            ("1 + row(pow(", "x", ", 1)) IS NULL::INT"),
            ("array_length(make_list(", "a", "))"),
        ] {
            let nested = format!("{}{middle}{}", before.repeat(40), after.repeat(40));
            for statement in [
                format!("SELECT {nested} FROM t"),
                format!("SELECT count(*) FROM t WHERE {nested} IS NULL"),
                format!("SELECT count(*) FROM t GROUP BY {nested}"),
                format!("SELECT (SELECT max({nested}) FROM t)"),
                format!(
                    "CREATE MATERIALIZED VIEW v AS SELECT time_bucket('1m', time) AS m, dev, count({nested}) AS n FROM t GROUP BY m, dev"
                ),
            ] {
                let start = Instant::now();
                let answer = database.run(&statement);
                let took = start.elapsed();
                if took > CASE_MAX {
                    slow.push(format!("{took:?}: {}: {answer:?}", &statement[..60]));
                }
                let _ = database.run("DROP MATERIALIZED VIEW IF EXISTS v");
            }
        }
        assert!(slow.is_empty(), "{slow:#?}");
    });
}
