//! Nesting below the parser's limits for which planning could take exponential time: each statement
//! is answered, refused or stopped within moments, and nothing works on afterwards.

use super::{Database, in_own_process};
use marigram_service::ServiceError;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// No case may use more processor time: a generous bound, far below what exponential work takes.
const CASE_MAX: Duration = Duration::from_secs(20);
/// How long a case may wait for a busy machine.
const WAIT_MAX: Duration = Duration::from_mins(2);
/// Far beyond what can be planned if each level doubles the work, and below the parser's limits.
const DEEP: usize = 60;
/// Planned at once.
const SHALLOW: usize = 6;
/// How long a stopped statement may work on.
const STOP_MAX: Duration = Duration::from_secs(5);
/// An idle process uses less than this much of a core.
const IDLE_PERCENT: u128 = 20;
const LOOK: Duration = Duration::from_millis(500);

/// What is repeated before the middle, the middle, and what is repeated after it, with what surrounds
/// all.
const NESTED: &[[&str; 5]] = &[
    ["select ", "(select ", "1", ")", ""],
    ["select ", "(select a + ", "1", " from t limit 1)", ""],
    [
        "select a from t where a = ",
        "(select max(a) from t where a < ",
        "1",
        ")",
        "",
    ],
    [
        "select 1 where ",
        "exists (select 1 where ",
        "true",
        ")",
        "",
    ],
    [
        "select 1 from t where ",
        "not exists (select 1 from t where ",
        "b",
        ")",
        "",
    ],
    ["select ", "exists (select 1 where ", "true", ")", ""],
    ["select ", "exists (select ", "1", ")", ""],
    [
        "select a from t where ",
        "a in (select a from t where ",
        "b",
        ")",
        "",
    ],
    [
        "select a from t where ",
        "(a in (select a from t where ",
        "b",
        ")) is not null",
        "",
    ],
    ["select ", "(1 = any (select ", "1", "))::int", ""],
    ["select ", "(1 = all (select ", "1", "))::int", ""],
    ["select ", "array(select ", "1", ")", ""],
    ["select 1 order by ", "(select ", "1", ")", ""],
    ["select 1 limit ", "(select 1 limit ", "1", ")", ""],
    ["", "select 1 union select (", "select 2", ")", ""],
    ["", "(select 1 union ", "select 2", ")", ""],
    [
        "select max(a) from t having max(a) > ",
        "(select max(a) from t having max(a) > ",
        "1",
        ")",
        "",
    ],
    [
        "select count(*) from t group by ",
        "(select count(*) from t group by ",
        "a",
        " limit 1)",
        "",
    ],
    [
        "select sum(a) over (order by ",
        "(select max(a) from t where a < ",
        "1",
        ")",
        ") from t",
    ],
    [
        "select 1 from t x join t y on x.a = ",
        "(select max(x.a) from t x join t y on x.a = ",
        "1",
        ")",
        "",
    ],
    ["explain select ", "(select ", "1", ")", ""],
    [
        "insert into t (time, dev, a) select now(), 'z', ",
        "(select ",
        "1",
        ")",
        " where false",
    ],
    [
        "delete from t where time < '1950-01-01' and a = ",
        "(select max(a) from t where a < ",
        "1",
        ")",
        "",
    ],
    [
        "create materialized view v as select time_bucket('1 hour', time) as h, max(",
        "(select ",
        "1",
        ")",
        ") as m from t group by h",
    ],
    ["", "select * from (", "select a from t", ") s", ""],
    [
        "",
        "select max(a) as a from (",
        "select a from t",
        ") s group by a",
        "",
    ],
    [
        "",
        "select sum(a) over (order by a) as a from (",
        "select a from t",
        ") s",
        "",
    ],
    [
        "",
        "select (a between 1 and 2)::int as a from (",
        "select a from t",
        ") s",
        "",
    ],
    ["", "select a + a as a from (", "select a from t", ") s", ""],
    ["", "select 1 from t, lateral (", "select 1", ") s", ""],
    ["select ", "(", "a", " between 1 and 2)::int", " from t"],
    [
        "select ",
        "((timestamp '2024-01-01' + interval '1 day' * ",
        "a",
        ", timestamp '2024-01-02') overlaps (timestamp '2024-01-01', timestamp '2024-01-05'))::int",
        " from t",
    ],
    [
        "select ",
        "((",
        "a",
        ", 1) in ((1, 1), (2, 2), (3, 3)))::int",
        " from t",
    ],
    [
        "select a from t where 1 = ",
        "(",
        "a",
        " not between 1 and 2)::int",
        "",
    ],
    ["select ", "((select ", "1", ") between 1 and 2)::int", ""],
    ["select ", "case when ", "b", " then true end", " from t"],
    [
        "select ",
        "case when ",
        "b",
        " then true when x > 1 then false else true end",
        " from t",
    ],
    [
        "select ",
        "case when b then ",
        "1",
        " else 2 end",
        " from t",
    ],
    [
        "select ",
        "case when b then 1 else ",
        "2",
        " end",
        " from t",
    ],
    ["select ", "nullif(", "a", ", 1)", " from t"],
    ["select ", "greatest(", "a", ", 1)", " from t"],
    [
        "select a from t where ",
        "(a > 1 and (a < 2 or ",
        "b",
        "))",
        "",
    ],
    ["select ", "row(1, ", "1", ", 2)", ""],
    ["select ", "array[", "1", "]", ""],
    ["select ", "{'a': ", "1", "}", ""],
    ["select cast(null as ", "struct<a ", "int", ">", ")"],
];

/// What is repeated with a number, after a beginning and before an end.
const NUMBERED: &[[&str; 3]] = &[
    ["select 1 from t t0", " join t t{+} on t{+}.a = t{}.a", ""],
    [
        "select 1 from t t0",
        " left join t t{+} on t{+}.a = t{}.a",
        "",
    ],
    [
        "select 1 from t t0",
        " full join t t{+} on t{+}.a = t{}.a",
        "",
    ],
    ["select 1 from t t0", " natural join t t{+}", ""],
    [
        "select 1 from t t0",
        ", lateral (select a from t where a = t{}.a) t{+}",
        "",
    ],
    [
        "select a from (select a as x0, a from t) s0",
        " cross join lateral (select x{} + x{} as x{+}) s{+}",
        "",
    ],
    [
        "select a from t where b",
        " and exists (select 1 from t u where u.a = t.a + {})",
        "",
    ],
    [
        "select a from t where b",
        " or a in (select a + {} from t)",
        "",
    ],
    ["select 1", ", (select max(a) + {} from t)", ""],
    [
        "select 1",
        ", sum(a) over (partition by a + {} order by x)",
        " from t",
    ],
    ["select 1", ", count(distinct a + {})", " from t"],
    ["select count(*) from t group by rollup (a", ", a + {}", ")"],
    ["select count(*) from t group by cube (a", ", a + {}", ")"],
    [
        "with c0 as (select 1 as a)",
        ", c{+} as (select a + 1 as a from c{})",
        " select 1",
    ],
];

fn nested([begin, before, middle, after, end]: &[&str; 5], levels: usize) -> String {
    let (before, after) = (before.repeat(levels), after.repeat(levels));
    format!("{begin}{before}{middle}{after}{end}")
}

fn numbered([begin, step, end]: &[&str; 3], steps: usize) -> String {
    let mut sql = (*begin).to_owned();
    for number in 0..steps {
        let next = (number + 1).to_string();
        let _ = write!(
            sql,
            "{}",
            step.replace("{+}", &next)
                .replace("{}", &number.to_string())
        );
    }
    sql + end
}

/// The processor time that this process has used.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = |field: usize| -> u64 {
        let text = fields.split_whitespace().nth(field);
        text.unwrap().parse().unwrap()
    };
    // Linux counts these in hundredths of a second.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Whether the process becomes idle in time.
fn becomes_idle() -> bool {
    let begun = Instant::now();
    while begun.elapsed() < STOP_MAX {
        let (clock, before) = (Instant::now(), processor_time());
        std::thread::sleep(LOOK);
        let used = processor_time().saturating_sub(before);
        if used.as_millis() * 100 < clock.elapsed().as_millis() * IDLE_PERCENT {
            return true;
        }
    }
    false
}

#[test]
fn nested_statements_are_answered_or_refused_at_once() {
    in_own_process(
        "nested::nested_statements_are_answered_or_refused_at_once",
        || {
            let mut db = Database::open(1);
            db.session.statement_timeout = Some(WAIT_MAX);
            let mut wrong = Vec::new();
            for levels in [SHALLOW, DEEP] {
                let nested = NESTED.iter().map(|parts| nested(parts, levels));
                let statements = nested.chain(NUMBERED.iter().map(|parts| numbered(parts, levels)));
                for sql in statements {
                    let before = processor_time();
                    let answer = db.run(&sql);
                    let took = processor_time().saturating_sub(before);
                    let shown: String = sql.chars().take(90).collect();
                    println!(
                        "{levels} {took:?} {shown}: {:?}",
                        answer.as_ref().map_err(ServiceError::sqlstate)
                    );
                    let is_late = took >= CASE_MAX
                        || answer.is_err_and(|error| matches!(error.sqlstate(), "57014" | "XX000"));
                    if is_late || (levels == DEEP && !becomes_idle()) {
                        wrong.push(format!("{levels} {took:?} {shown}"));
                    }
                }
            }
            assert!(wrong.is_empty(), "{wrong:#?}");
            assert_eq!(db.run("select 1").unwrap(), 1);
        },
    );
}

#[test]
fn what_people_nest_is_planned() {
    in_own_process("nested::what_people_nest_is_planned", || {
        let mut db = Database::open(1);
        for (parts, levels) in [
            (["select ", "(select ", "1", ")", ""], 12),
            (
                [
                    "select 1 where ",
                    "exists (select 1 where ",
                    "true",
                    ")",
                    "",
                ],
                12,
            ),
            (
                [
                    "select a from t where ",
                    "a in (select a from t where ",
                    "b",
                    ")",
                    "",
                ],
                6,
            ),
            (
                [
                    "select ",
                    "case when b then 1 else ",
                    "2",
                    " end",
                    " from t",
                ],
                60,
            ),
            (
                ["select ", "(", "a", " between 1 and 2)::int", " from t"],
                10,
            ),
        ] {
            let sql = nested(&parts, levels);
            assert_eq!(
                db.run(&sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error}")),
                1,
                "{sql}"
            );
        }
        let scalar = nested(&["select ", "(select ", "1", ")", ""], 20);
        let refused = db.run(&scalar).unwrap_err();
        assert_eq!(refused.sqlstate(), "54001", "{refused}");
        let message = refused.to_string();
        assert!(message.contains("at most 100000"), "{message}");
    });
}

/// Planning takes long here without being exponential.
#[test]
fn planning_that_times_out_or_is_left_stops() {
    in_own_process("nested::planning_that_times_out_or_is_left_stops", || {
        let mut db = Database::open(1);
        let wide = numbered(
            &[
                "select 1",
                ", (select max(a) + {} from t u where u.a = t.a)",
                " from t",
            ],
            300,
        );
        db.session.statement_timeout = Some(Duration::from_millis(300));
        let error = db.run(&wide).unwrap_err();
        assert_eq!(error.sqlstate(), "57014", "{error}");
        assert!(becomes_idle(), "a statement that timed out works on");

        db.session.statement_timeout = None;
        let clients = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let left = clients.block_on(async {
            let asked = marigram_service::Query::execute(&db.sql, &mut db.session, &wide);
            tokio::time::timeout(Duration::from_millis(300), asked).await
        });
        assert!(left.is_err(), "it was to take longer");
        drop(left);
        assert!(becomes_idle(), "a statement whose client left works on");
    });
}
