//! Every plan can be run and shown at every scale.

use crate::generate::SourceSpec;
use crate::question::Question;
use crate::study::{AskStep, Comparison, Knobs, Plan, ReportView, Scale, Setup, Step, StepAction};
use std::collections::{BTreeMap, BTreeSet};

mod sources;

const SCALES: [Scale; 4] = [Scale::Tiny, Scale::Small, Scale::Medium, Scale::Paper];

/// Figures that the acts promise.
const FIGURES: [&str; 14] = [
    "rows_per_s",
    "points_per_s",
    "latency_ms",
    "settle_s",
    "bytes_per_row",
    "bytes_per_point",
    "disk_bytes",
    "restart_ms",
    "series",
    "mean_ms",
    "p999_ms",
    "cpu_share",
    "rss_bytes",
    "behind_s",
];

/// Figures of a step that observes, in addition to those that its study knows.
const OBSERVED: [&str; 6] = [
    "write_amplification",
    "segments",
    "index_bytes",
    "wal_bytes",
    "rss_peak_bytes",
    "rss_grown_bytes",
];

fn plans() -> impl Iterator<Item = (&'static str, Scale, Plan)> {
    let studies = super::all().into_iter();
    studies.flat_map(|study| SCALES.map(|scale| (study.name, scale, (study.plan)(scale))))
}

fn asks(act: &StepAction) -> Option<&AskStep> {
    match act {
        StepAction::Ask(ask) | StepAction::Mixed { ask, .. } => Some(ask),
        _ => None,
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

#[test]
fn studies_and_setups_have_names_of_their_own() {
    let studies = super::all();
    let names: BTreeSet<_> = studies.iter().map(|study| study.name).collect();
    assert_eq!(names.len(), studies.len());
    assert!(names.iter().all(|name| is_plain(name)));
    for (study, scale, plan) in plans() {
        let names: BTreeSet<_> = plan.setups.iter().map(|setup| &setup.name).collect();
        assert_eq!(names.len(), plan.setups.len(), "{study} {scale:?}");
        assert!(
            names.iter().all(|name| is_plain(name)),
            "{study}: {names:?}"
        );
        assert!(!plan.views.is_empty(), "{study} {scale:?}");
    }
}

#[test]
fn plans_survive_being_stored() {
    for (study, scale, plan) in plans() {
        let stored = serde_json::to_string(&plan).expect("to JSON");
        let read: Plan = serde_json::from_str(&stored).expect("from JSON");
        let again = serde_json::to_string(&read).expect("to JSON");
        assert_eq!(stored, again, "{study} {scale:?}");
    }
}

/// The names of questions, each once.
fn names(questions: &[Question]) -> Vec<&str> {
    let names = questions.iter().map(|question| question.name.as_str());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Knobs of the results of a step: its own knobs, and those that the runner adds.
fn results(step: &Step) -> Vec<Knobs> {
    let with = |name: &str, values: &[&str]| {
        let each = values.iter().map(|value| {
            let mut knobs = step.knobs.clone();
            knobs.insert(name.to_owned(), (*value).to_owned());
            knobs
        });
        each.collect::<Vec<_>>()
    };
    match &step.act {
        StepAction::Ask(ask) | StepAction::Cold(ask) => with("question", &names(&ask.questions)),
        StepAction::Mix(ask) => {
            let mut all = with("question", &["all"]);
            all.extend(with("question", &names(&ask.questions)));
            all
        }
        StepAction::Mixed { ask, .. } => {
            let mut all = with("side", &["write"]);
            for mut knobs in with("question", &names(&ask.questions)) {
                knobs.insert("side".to_owned(), "ask".to_owned());
                all.push(knobs);
            }
            all
        }
        StepAction::Clock(_) => {
            let mut all = with("series", &["10"]);
            all.extend(with("trial", &["largest"]));
            all
        }
        _ => vec![step.knobs.clone()],
    }
}

fn promises(act: &StepAction, figure: &str) -> bool {
    let write = ["rows_per_s", "points_per_s", "latency_ms"];
    match act {
        StepAction::Write(_) | StepAction::Mixed { .. } => write.contains(&figure),
        StepAction::Ask(_) => figure == "latency_ms",
        StepAction::Mix(_) => ["latency_ms", "p99_ms", "asked_per_s"].contains(&figure),
        StepAction::Cold(_) => ["latency_ms", "read_bytes"].contains(&figure),
        StepAction::Settle => figure == "settle_s",
        StepAction::Flush => figure == "flush_s",
        StepAction::Size => ["bytes_per_row", "bytes_per_point", "disk_bytes"].contains(&figure),
        StepAction::Restart => figure == "restart_ms",
        StepAction::Observe { known } => OBSERVED.contains(&figure) || known.contains_key(figure),
        StepAction::Clock(_) => FIGURES[8..].contains(&figure) || figure == "bytes_per_point",
    }
}

fn is_shown(view: &ReportView, knobs: &Knobs) -> bool {
    let only = |(name, value): (&String, &String)| knobs.get(name) == Some(value);
    view.only.iter().all(only)
        && knobs.contains_key(&view.x)
        && view
            .split
            .as_ref()
            .is_none_or(|split| knobs.contains_key(split))
}

#[test]
fn every_view_has_something_to_show() {
    for (study, scale, plan) in plans() {
        let steps: Vec<&Step> = plan.setups.iter().flat_map(|setup| &setup.steps).collect();
        for view in &plan.views {
            let title = format!("{study} {scale:?}: {}", view.title);
            let figures = view.second.iter().map(|(figure, _)| figure);
            for figure in figures.chain([&view.figure]) {
                let promised = steps.iter().any(|step| promises(&step.act, figure));
                assert!(promised, "{title}: {figure}");
                let shown = steps.iter().any(|step| {
                    let results = results(step);
                    promises(&step.act, figure) && results.iter().any(|knobs| is_shown(view, knobs))
                });
                assert!(shown, "{title}: {figure}");
            }
            let results: Vec<Knobs> = steps.iter().flat_map(|step| results(step)).collect();
            for published in &view.published {
                let Some(split) = &published.split else {
                    continue;
                };
                let name = view.split.as_ref().expect("a split view");
                let known = results.iter().any(|knobs| knobs.get(name) == Some(split));
                assert!(known, "{title}: {split}");
            }
        }
    }
}

/// Every result belongs to at most one point of a plot, so no two steps coincide.
#[test]
fn no_two_results_are_shown_as_one() {
    for (study, scale, plan) in plans() {
        for view in plan.views.iter().filter(|view| view.x != "series") {
            let mut places = BTreeSet::new();
            for step in plan.setups.iter().flat_map(|setup| &setup.steps) {
                let knobs = results(step).into_iter();
                for knobs in knobs.filter(|knobs| is_shown(view, knobs)) {
                    if !promises(&step.act, &view.figure) {
                        continue;
                    }
                    let split = view.split.as_ref().map(|split| knobs[split].clone());
                    let place = (knobs[&view.x].clone(), split);
                    let twice = format!("{study} {scale:?}: {} {place:?}", view.title);
                    assert!(places.insert(place), "{twice}");
                }
            }
        }
    }
}

#[test]
fn no_step_writes_where_another_has_written() {
    for (study, scale, plan) in plans() {
        for setup in &plan.setups {
            let mut written = BTreeMap::new();
            for step in &setup.steps {
                if let StepAction::Write(write) | StepAction::Mixed { write, .. } = &step.act {
                    assert!(write.clients > 0 && write.batch_rows > 0);
                    let name = &write.suffix;
                    assert!(name.is_empty() || is_plain(name), "{study}: {name}");
                    // A step may continue another one that wrote in the same manner.
                    let manner = (write.clients, write.batch_rows);
                    let before = written.insert(name, manner);
                    assert!(
                        before.is_none_or(|before| before == manner && write.rows_max.is_some()),
                        "{study} {scale:?} {}: {name}",
                        setup.name
                    );
                }
                if let Some(ask) = asks(&step.act) {
                    assert!(ask.clients > 0 && ask.times > 0 && !ask.questions.is_empty());
                    assert!(written.contains_key(&ask.suffix), "{study}: {}", ask.suffix);
                }
            }
        }
    }
}

/// Approximate seconds of a setup, on a target that accepts `points_per_s`, answers any question in
/// `ask_s`, and starts in `start_s`.
fn seconds(setup: &Setup, points_per_s: f64, ask_s: f64, start_s: f64) -> f64 {
    let (devices, rows, fields) = match &setup.source {
        SourceSpec::SetS { devices, rows }
        | SourceSpec::LateSetS { devices, rows, .. }
        | SourceSpec::Fleet { devices, rows } => (*devices, *rows, 2),
        SourceSpec::Iot(spec) | SourceSpec::Paths { spec, .. } => {
            (spec.devices, spec.rows, spec.sensors)
        }
        SourceSpec::Trucks { trucks, steps, .. } => (*trucks, *steps, 10),
    };
    let all = (devices * rows * fields) as f64 / points_per_s;
    let of = |step: &Step| match &step.act {
        StepAction::Write(write) | StepAction::Mixed { write, .. } => {
            let limit = write.time_max.map_or(f64::MAX, |limit| limit.as_secs_f64());
            let cap = write
                .rows_max
                .map_or(f64::MAX, |rows| rows as f64 * fields as f64 / points_per_s);
            let paced = write
                .rows_per_s
                .map_or(0.0, |pace| (devices * rows) as f64 / pace);
            all.max(paced).min(limit).min(cap)
        }
        StepAction::Ask(ask) => {
            let limit = ask.time_max.map_or(f64::MAX, |limit| limit.as_secs_f64());
            let once = ask_s * (ask.clients as f64 / 2.0).max(1.0);
            names(&ask.questions).len() as f64
                * (once + (once * ask.times as f64).min(limit.max(once)))
        }
        StepAction::Mix(ask) => {
            let limit = ask.time_max.map_or(f64::MAX, |limit| limit.as_secs_f64());
            let once = ask_s * ask.clients as f64 * names(&ask.questions).len() as f64;
            once + (once * ask.times as f64).min(limit.max(once))
        }
        StepAction::Cold(ask) => names(&ask.questions).len() as f64 * (start_s + ask_s),
        StepAction::Settle | StepAction::Flush | StepAction::Restart => start_s,
        StepAction::Size | StepAction::Observe { .. } => 0.0,
        StepAction::Clock(clock) => {
            let trials = (clock.devices_max as f64 / clock.devices_min as f64).log2() + 3.0;
            // Without waiting, the trials before the last ones end early.
            let waits = if clock.virtual_time { 0.5 } else { 1.0 };
            waits * trials * clock.period.as_secs_f64() * f64::from(clock.periods)
        }
    };
    start_s + setup.steps.iter().map(of).sum::<f64>()
}

#[test]
fn scales_keep_to_their_time() {
    // A fast target at small scale, one of medium speed at medium scale. Studies of Marigram's
    // settings may take longer, because peers take no part.
    let cases = [
        (Scale::Small, 2e6, 0.002, 0.1, (2.5, 15.0)),
        (Scale::Medium, 1e6, 0.02, 0.5, (30.0, 200.0)),
    ];
    for (scale, points_per_s, ask_s, start_s, (of_all, of_marigram)) in cases {
        let mut total = 0.0;
        for study in super::all() {
            let plan = (study.plan)(scale);
            let each = plan.setups.iter();
            let seconds: f64 = each
                .map(|setup| seconds(setup, points_per_s, ask_s, start_s))
                .sum();
            let limit = if plan.marigram_only {
                of_marigram
            } else {
                of_all
            };
            eprintln!("{scale:?} {:20} {seconds:5.1} s", study.name);
            assert!(seconds <= limit, "{} takes {seconds} s", study.name);
            total += seconds;
        }
        eprintln!("{scale:?} {total:.1} s");
    }
}

/// Every rule is about results that exist, and compares them with others that exist.
#[test]
fn every_rule_can_be_judged() {
    for (study, scale, plan) in plans() {
        let steps: Vec<&Step> = plan.setups.iter().flat_map(|setup| &setup.steps).collect();
        for rule in &plan.rules {
            let title = format!("{study} {scale:?}: {}", rule.says);
            assert!(
                !rule.source.is_empty() && !rule.says.ends_with('.'),
                "{title}"
            );
            let giving = steps
                .iter()
                .filter(|step| promises(&step.act, &rule.figure));
            let given: Vec<Knobs> = giving.flat_map(|step| results(step)).collect();
            let is_of = |knobs: &&Knobs| rule.of.iter().all(|(k, v)| knobs.get(k) == Some(v));
            let subjects: Vec<&Knobs> = given.iter().filter(is_of).collect();
            assert!(!subjects.is_empty(), "{title}: {:?}", rule.of);
            for knobs in subjects {
                let found = match &rule.with {
                    Comparison::Itself(scale) => *scale > 0.0,
                    Comparison::Result(changed) => {
                        let mut wanted = knobs.clone();
                        wanted.extend(changed.clone());
                        wanted != *knobs && given.contains(&wanted)
                    }
                    Comparison::Smallest(knob) => given.iter().any(|other| {
                        let mut same = other.clone();
                        same.extend(knobs.get(knob).map(|own| (knob.clone(), own.clone())));
                        other != knobs && same == *knobs
                    }),
                };
                assert!(found, "{title}: {knobs:?}");
            }
        }
    }
}

#[test]
fn peers_have_no_part_where_settings_are_marigrams() {
    for (study, scale, plan) in plans() {
        let tuned = plan.setups.iter().any(|setup| !setup.tuning.is_default());
        assert!(!tuned || plan.marigram_only, "{study} {scale:?}");
    }
}
