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

/// The cases; the head of the file explains them.
const CASES: &str = include_str!("nested.txt");

/// The statement of a case with this many repetitions.
fn statement(case: &str, count: usize) -> String {
    let parts: Vec<&str> = case.split(['«', '»']).collect();
    match *parts.as_slice() {
        [begin, before, middle, after, end] => {
            let (before, after) = (before.repeat(count), after.repeat(count));
            format!("{begin}{before}{middle}{after}{end}")
        }
        [begin, step, end] => numbered([begin, step, end], count),
        _ => panic!("{case}: it has one or two repeated parts"),
    }
}

fn numbered([begin, step, end]: [&str; 3], steps: usize) -> String {
    let mut sql = begin.to_owned();
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
                let cases = CASES.lines().filter(|line| !line.starts_with('#'));
                for sql in cases.map(|case| statement(case, levels)) {
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
        for (case, levels) in [
            ("select «(select »1«)»", 12),
            ("select 1 where «exists (select 1 where »true«)»", 12),
            (
                "select a from t where «a in (select a from t where »b«)»",
                6,
            ),
            ("select «case when b then 1 else »2« end» from t", 60),
            ("select «(»a« between 1 and 2)::int» from t", 10),
        ] {
            let sql = statement(case, levels);
            assert_eq!(
                db.run(&sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error}")),
                1,
                "{sql}"
            );
        }
        let scalar = statement("select «(select »1«)»", 20);
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
        let wide = "select 1«, (select max(a) + {} from t u where u.a = t.a)» from t";
        let wide = statement(wide, 300);
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
