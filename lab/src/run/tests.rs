//! The runner with targets that behave in known ways.

mod fakes;
mod lab;
mod resume;
mod settings;

use super::Outcome;
use crate::record::{StepResult, Verdict};
use crate::study::{Plan, Scale, StepAction, Write};
use fakes::{DEVICES, ROWS, asking, plan, writing};
use lab::Lab;
use std::time::Duration;

const ALL_ROWS: usize = DEVICES * ROWS;

/// Everything but the clock.
fn full(_scale: Scale) -> Plan {
    plan(vec![(
        "main",
        vec![
            StepAction::Write(writing()),
            StepAction::Settle,
            StepAction::Size,
            StepAction::Restart,
            StepAction::Ask(asking(&["easy", "sql", "hard"])),
        ],
    )])
}

fn outcome(done: usize, skipped: usize, failed: usize, wrong: usize) -> Outcome {
    Outcome {
        done,
        skipped,
        failed,
        wrong,
    }
}

fn figure(step: &StepResult, name: &str) -> f64 {
    let figure = step.figures.get(name).copied();
    figure.unwrap_or_else(|| panic!("no figure {name} among {:?}", step.figures))
}

/// The result of a question.
fn asked<'a>(steps: &'a [StepResult], name: &str) -> &'a StepResult {
    let of = |step: &&StepResult| step.knobs.get("question").is_some_and(|q| q == name);
    steps.iter().find(of).expect("a question")
}

#[test]
fn a_right_target_is_measured_and_right() {
    let lab = Lab::new(full, &["right"]);
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    let result = lab.result("main", "right", 0);
    assert_eq!(result.failed, None);
    assert_eq!(result.facts.expect("facts").version, "Right");
    let steps = &result.steps;
    assert_eq!(steps.len(), 7);
    assert!(figure(&steps[0], "rows_per_s") > 0.0);
    assert!(figure(&steps[0], "points_per_s") > 0.0);
    assert!(!steps[0].figures.contains_key("mib_per_s"), "own payloads");
    assert!(figure(&steps[1], "settle_s") >= 0.0);
    assert_eq!(figure(&steps[2], "disk_bytes"), 400.0);
    assert_eq!(figure(&steps[2], "bytes_per_row"), 400.0 / ALL_ROWS as f64);
    assert_eq!(figure(&steps[3], "restart_ms"), 7.0);
    assert_eq!(asked(steps, "easy").verdict, Verdict::Right);
    assert_eq!(asked(steps, "easy").step, 4);
    assert_eq!(asked(steps, "easy").knobs["knob"], "1");
    assert_eq!(asked(steps, "sql").verdict, Verdict::Unchecked);
    assert_eq!(asked(steps, "sql").answers.len(), 2, "one an instance");
    let hard = Verdict::Cannot("too hard".to_owned());
    assert_eq!(asked(steps, "hard").verdict, hard);
    let writes = lab.latencies_ms("main", "right", "write");
    assert_eq!(writes.len(), ALL_ROWS / 10);
    assert_eq!(lab.latencies_ms("main", "right", "easy").len(), 2 * 3);
    assert!(
        lab.folder("main", "right", 0)
            .join("resources.parquet")
            .exists()
    );
    assert!(lab.order.out.join("plans/study.json").exists());
    assert!(!lab.order.out.join("data").exists(), "the data are removed");
}

#[test]
fn the_null_target_shows_the_cost_of_the_client() {
    let lab = Lab::new(full, &["null"]);
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    let steps = lab.result("main", "null", 0).steps;
    assert!(figure(&steps[0], "mib_per_s") > 0.0);
    let cannot = |step: &StepResult| matches!(step.verdict, Verdict::Cannot(_));
    assert!(steps[2..].iter().all(cannot), "{steps:?}");
}

#[test]
fn a_target_that_cannot_keep_the_tables_says_so_in_every_step() {
    let lab = Lab::new(full, &["unfit", "right"]);
    assert_eq!(lab.run().expect("a run"), outcome(2, 0, 0, 0));
    let result = lab.result("main", "unfit", 0);
    assert_eq!(result.failed, None);
    assert_eq!(
        result.steps.len(),
        lab.result("main", "right", 0).steps.len()
    );
    let refused = |step: &StepResult| step.verdict == Verdict::Cannot("too wide".to_owned());
    assert!(result.steps.iter().all(refused), "{:?}", result.steps);
    assert_eq!(asked(&result.steps, "sql").step, 4);
}

#[test]
fn a_mixture_has_figures_of_all_questions_and_of_each() {
    let mixture = |_| {
        let mut asking = asking(&["easy", "sql"]);
        asking.clients = 3;
        plan(vec![(
            "main",
            vec![StepAction::Write(writing()), StepAction::Mix(asking)],
        )])
    };
    let lab = Lab::new(mixture, &["right"]);
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    let steps = lab.result("main", "right", 0).steps;
    assert_eq!(steps.len(), 4);
    let (all, easy, sql) = (
        asked(&steps, "all"),
        asked(&steps, "easy"),
        asked(&steps, "sql"),
    );
    let count = |step: &StepResult| step.latency.expect("latencies").count;
    assert_eq!((count(easy), count(sql)), (3 * 3, 3 * 3), "clients × times");
    assert_eq!(count(all), 18);
    assert!(figure(all, "asked_per_s") > figure(easy, "asked_per_s"));
    assert!(figure(easy, "p99_ms") <= figure(all, "max_ms"));
    assert_eq!(easy.verdict, Verdict::Right);
    assert_eq!(lab.latencies_ms("main", "right", "sql").len(), 9);
}

#[test]
fn a_target_that_cannot_answer_all_of_a_mixture_is_asked_nothing() {
    let mixture = |_| {
        plan(vec![(
            "main",
            vec![
                StepAction::Write(writing()),
                StepAction::Mix(asking(&["easy", "hard"])),
            ],
        )])
    };
    let lab = Lab::new(mixture, &["right"]);
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    let steps = lab.result("main", "right", 0).steps;
    let hard = Verdict::Cannot("too hard".to_owned());
    assert!(
        steps[1..].iter().all(|step| step.verdict == hard),
        "{steps:?}"
    );
    assert_eq!(steps.len(), 4);
}

#[test]
fn a_cold_question_is_asked_once_after_a_restart_and_checked() {
    let cold = |_| {
        plan(vec![(
            "main",
            vec![
                StepAction::Write(writing()),
                StepAction::Cold(asking(&["easy", "sql", "hard"])),
            ],
        )])
    };
    let lab = Lab::new(cold, &["right"]);
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    let steps = lab.result("main", "right", 0).steps;
    let easy = asked(&steps, "easy");
    assert_eq!(easy.verdict, Verdict::Right);
    assert_eq!(easy.latency.expect("a latency").count, 1);
    assert!(figure(easy, "read_bytes") >= 0.0);
    assert_eq!(asked(&steps, "sql").answers.len(), 1, "its first instance");
    let hard = Verdict::Cannot("too hard".to_owned());
    assert_eq!(asked(&steps, "hard").verdict, hard);
}

#[test]
fn a_slow_target_shows_in_its_latencies() {
    let lab = Lab::new(full, &["right", "slow"]);
    lab.run().expect("a run");
    let slow = lab.latencies_ms("main", "slow", "write");
    assert!(slow.iter().all(|ms| *ms >= 10.0), "{slow:?}");
    let rate = |target| figure(&lab.result("main", target, 0).steps[0], "rows_per_s");
    // Two clients, ten rows in ten milliseconds.
    assert!(rate("slow") <= 2_000.0 && rate("right") > rate("slow"));
}

#[test]
fn a_failure_is_recorded_and_only_it_is_repeated() {
    let lab = Lab::new(full, &["halfway", "panics", "no-start", "right"]);
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 3, 0));
    let failed = |target| {
        let result = lab.result("main", target, 0);
        (result.failed.clone().expect("a failure"), result)
    };
    let (why, result) = failed("halfway");
    assert!(
        why.contains("step 1 (write)") && why.contains("disk is full"),
        "{why}"
    );
    assert!(matches!(result.steps[0].verdict, Verdict::Failed(_)));
    assert!(
        figure(&result.steps[0], "rows_per_s") > 0.0,
        "what was measured stays"
    );
    let (why, result) = failed("panics");
    assert!(why.contains("a bug of the driver"), "{why}");
    assert_eq!(result.steps.len(), 1);
    let (why, result) = failed("no-start");
    assert!(why.contains("it is not installed"), "{why}");
    assert_eq!(result.facts, None);
    lab.started();
    assert_eq!(lab.run().expect("a run"), outcome(0, 1, 3, 0));
    assert_eq!(lab.started(), ["Halfway", "Panics"]);
}

#[test]
fn a_wrong_answer_is_recorded_as_wrong() {
    let lab = Lab::new(full, &["wrong", "right"]);
    assert_eq!(lab.run().expect("a run"), outcome(2, 0, 0, 1));
    let steps = lab.result("main", "wrong", 0).steps;
    let wrong = Verdict::Wrong("instance 0: 3 rows instead of 4".to_owned());
    assert_eq!(asked(&steps, "easy").verdict, wrong);
    assert_eq!(lab.run().expect("a run"), outcome(0, 2, 0, 1));
}

#[test]
fn a_question_that_fails_leaves_the_others_measured() {
    let lab = Lab::new(full, &["mute"]);
    assert_eq!(lab.run().expect("a run"), outcome(0, 0, 1, 0));
    let result = lab.result("main", "mute", 0);
    let failed = |name| matches!(asked(&result.steps, name).verdict, Verdict::Failed(_));
    assert!(failed("easy") && failed("sql"));
    let why = result.failed.expect("a failure");
    assert!(
        why.contains("question easy") && why.contains("no answer"),
        "{why}"
    );
}

fn paced(_scale: Scale) -> Plan {
    let write = Write {
        clients: 1,
        rows_per_s: Some(1_000.0),
        ..writing()
    };
    plan(vec![("main", vec![StepAction::Write(write)])])
}

#[test]
fn a_stall_delays_the_requests_that_were_due_meanwhile() {
    let lab = Lab::new(paced, &["stalls", "right"]);
    lab.run().expect("a run");
    // Requests are due every 10 ms; the first takes 150 ms, and those after it take no time.
    let stalled = lab.latencies_ms("main", "stalls", "write");
    assert_eq!(stalled.len(), ALL_ROWS / 10);
    for (place, ms) in stalled.iter().take(10).enumerate() {
        assert!(*ms >= 149.0 - 10.0 * place as f64, "{stalled:?}");
    }
    let right = lab.result("main", "right", 0);
    let rate = figure(&right.steps[0], "rows_per_s");
    assert!(rate <= 1_060.0, "{rate} rows/s");
}

fn bounded(_scale: Scale) -> Plan {
    let time = Write {
        time_max: Some(Duration::from_millis(50)),
        rows_per_s: Some(1_000.0),
        ..writing()
    };
    let rows = Write {
        rows_max: Some(70),
        ..writing()
    };
    let ask = || StepAction::Ask(asking(&["easy"]));
    plan(vec![
        ("time", vec![StepAction::Write(time), ask()]),
        // The second step continues where the first stopped.
        (
            "rows",
            vec![
                StepAction::Write(rows.clone()),
                ask(),
                StepAction::Write(rows),
                ask(),
            ],
        ),
    ])
}

#[test]
fn writing_ends_when_it_should_and_the_answers_fit() {
    let lab = Lab::new(bounded, &["right"]);
    assert_eq!(lab.run().expect("a run"), outcome(2, 0, 0, 0));
    // Two clients take turns, every 10 ms.
    let batches = lab.latencies_ms("time", "right", "write").len();
    assert!(batches <= 6, "{batches} batches");
    assert_eq!(lab.latencies_ms("rows", "right", "write").len(), 14);
    for setup in ["time", "rows"] {
        let steps = lab.result(setup, "right", 0).steps;
        let asked = steps
            .iter()
            .filter(|step| step.knobs.contains_key("question"));
        assert!(asked.clone().all(|step| step.verdict == Verdict::Right));
        assert!(asked.count() > 0);
    }
}

#[test]
fn what_is_larger_than_memory_goes_in_rounds() {
    let mut lab = Lab::new(full, &["right"]);
    // Each client has memory for one batch.
    lab.round_bytes = 2;
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    assert_eq!(
        lab.latencies_ms("main", "right", "write").len(),
        ALL_ROWS / 10
    );
    let steps = lab.result("main", "right", 0).steps;
    assert_eq!(asked(&steps, "easy").verdict, Verdict::Right);
}

fn both(_scale: Scale) -> Plan {
    let load = Write {
        rows_max: Some(60),
        ..writing()
    };
    let more = Write {
        rows_per_s: Some(2_000.0),
        ..writing()
    };
    let mixed = |names: &[&str]| StepAction::Mixed {
        write: more.clone(),
        ask: asking(names),
    };
    let load = || StepAction::Write(load.clone());
    plan(vec![
        (
            "easy",
            vec![load(), mixed(&["easy"]), StepAction::Ask(asking(&["easy"]))],
        ),
        ("hard", vec![load(), mixed(&["easy", "hard"])]),
    ])
}

#[test]
fn writers_and_askers_work_at_once() {
    let lab = Lab::new(both, &["right", "halfway", "mute"]);
    assert_eq!(
        lab.run().expect("a run").done,
        3,
        "mute writes what is too hard"
    );
    let steps = lab.result("easy", "right", 0).steps;
    let side = |name: &str| {
        let of = |step: &&StepResult| step.knobs.get("side").is_some_and(|side| side == name);
        steps.iter().find(of).expect("a side")
    };
    assert!(figure(side("write"), "rows_per_s") <= 2_200.0);
    assert!(side("ask").resources.is_some());
    assert!(lab.latencies_ms("easy", "right", "easy").len() > 6);
    assert_eq!(
        asked(&steps, "easy").verdict,
        Verdict::Right,
        "after both writes"
    );
    assert!(lab.result("easy", "mute", 0).failed.is_some());
    let steps = lab.result("hard", "right", 0).steps;
    assert!(matches!(steps[2].verdict, Verdict::Cannot(_)), "{steps:?}");
    assert!(figure(&steps[1], "rows_per_s") > 0.0);
}
