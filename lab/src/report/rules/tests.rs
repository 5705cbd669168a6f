//! Rules judged by given figures.

use super::*;
use crate::record::{RunResult, StepResult};
use crate::report::load::FinishedRun;
use crate::report::tests::fixture::{Fixture, knobs};
use crate::study::Plan;
use std::path::PathBuf;

/// A study with the results (target, knobs, one figure per repetition).
fn study(rule: &Rule, results: &[(&str, Knobs, &[f64])]) -> StudyRuns {
    let mut runs = Vec::new();
    for (target, knobs, values) in results {
        for (repeat, value) in values.iter().enumerate() {
            let step = StepResult {
                knobs: knobs.clone(),
                figures: BTreeMap::from([("f".to_owned(), *value)]),
                ..StepResult::default()
            };
            let result = RunResult {
                study: String::new(),
                setup: String::new(),
                target: (*target).to_owned(),
                repeat,
                facts: None,
                started: String::new(),
                seconds: 0.0,
                steps: vec![step],
                failed: None,
            };
            let folder = PathBuf::new();
            runs.push(FinishedRun { result, folder });
        }
    }
    StudyRuns {
        name: "study".to_owned(),
        title: String::new(),
        about: String::new(),
        source: String::new(),
        plan: Plan {
            rules: vec![rule.clone()],
            ..Plan::default()
        },
        runs,
        missing: Vec::new(),
    }
}

fn rule(with: Comparison, bound: FigureBound) -> Rule {
    Rule {
        says: "It is so".to_owned(),
        source: "somebody".to_owned(),
        figure: "f".to_owned(),
        of: knobs(&[("mode", "new")]),
        with,
        bound,
    }
}

/// The sentences about the results.
fn said(rule: &Rule, results: &[(&str, Knobs, &[f64])]) -> String {
    said_at(Scale::Medium, rule, results)
}

fn said_at(scale: Scale, rule: &Rule, results: &[(&str, Knobs, &[f64])]) -> String {
    let targets = [("http", 1.0), ("embedded", 1.0), ("questdb", 1.0)];
    let mut configuration = Fixture::new(&targets, 3).configuration;
    configuration.scale = scale;
    let mut said = sentences(&configuration, &study(rule, results));
    assert_eq!(said.len(), 1);
    said.remove(0)
}

fn knobs_at(mode: &str, size: &str) -> Knobs {
    knobs(&[("mode", mode), ("size", size)])
}

#[test]
fn a_figure_is_held_against_a_bound() {
    let rule = rule(Comparison::Itself(0.5), FigureBound::AtMost(2.0));
    let results = [
        ("http", knobs_at("new", "1"), &[3.0, 3.1, 2.9][..]),
        ("embedded", knobs_at("new", "1"), &[5.0, 5.1, 5.2]),
        ("questdb", knobs_at("new", "1"), &[9.0, 9.0, 9.0]),
    ];
    let said = said(&rule, &results);
    assert!(said.starts_with("Rule: It is so (somebody). "), "{said}");
    let http = "Confirmed for Marigram http: 1.50, where at most 2.00 is claimed; beyond noise";
    assert!(said.contains(http), "{said}");
    let embedded = "Refuted for Marigram embedded: 2.55, where at most 2.00 is claimed";
    assert!(said.contains(embedded), "{said}");
    assert!(!said.contains("questdb"), "{said}");
}

#[test]
fn results_are_compared_with_their_counterparts() {
    let changed = knobs(&[("mode", "old")]);
    let rule = rule(Comparison::Result(changed), FigureBound::AtLeast(0.9));
    let results = [
        ("http", knobs_at("new", "1"), &[10.0, 10.0, 10.0][..]),
        ("http", knobs_at("old", "1"), &[10.0, 10.0, 10.0]),
        ("http", knobs_at("new", "2"), &[5.0, 5.0, 5.0]),
        ("http", knobs_at("old", "2"), &[10.0, 10.0, 10.0]),
        // Without a counterpart.
        ("http", knobs_at("new", "3"), &[1.0, 1.0, 1.0]),
    ];
    let said = said(&rule, &results);
    let expected = "Refuted in part for Marigram http: in 1 of 2; at worst 0.500 × (size 2), where \
                    at least 0.900 × is claimed; beyond noise.";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_smallest_of_the_others_is_found() {
    let rule = rule(
        Comparison::Smallest("mode".to_owned()),
        FigureBound::AtMost(1.03),
    );
    let results = [
        ("http", knobs_at("new", "1"), &[10.2, 10.2, 10.2][..]),
        ("http", knobs_at("old", "1"), &[20.0, 20.0, 20.0]),
        ("http", knobs_at("older", "1"), &[10.0, 10.0, 10.0]),
        // Of another size.
        ("http", knobs_at("older", "2"), &[1.0, 1.0, 1.0]),
    ];
    let said = said(&rule, &results);
    assert!(
        said.contains("Confirmed for Marigram http: 1.02 ×"),
        "{said}"
    );
}

#[test]
fn chance_is_said() {
    let rule = rule(Comparison::Itself(1.0), FigureBound::AtMost(2.0));
    let once = said(&rule, &[("http", knobs_at("new", "1"), &[1.0])]);
    assert!(
        once.contains("; one repetition cannot tell that from noise"),
        "{once}"
    );
    let wide = said(&rule, &[("http", knobs_at("new", "1"), &[1.0, 1.5, 9.0])]);
    assert!(
        wide.contains("; in 1 of 1 noise could turn it round"),
        "{wide}"
    );
    let none = said(&rule, &[("http", knobs_at("old", "1"), &[1.0])]);
    assert!(
        none.ends_with("Not decided: no figures were measured for it."),
        "{none}"
    );
}

#[test]
fn a_small_scale_decides_nothing() {
    let rule = rule(Comparison::Itself(1.0), FigureBound::AtMost(2.0));
    let small = said_at(
        Scale::Small,
        &rule,
        &[("http", knobs_at("new", "1"), &[1.0])],
    );
    assert!(
        small.ends_with("The scale is too small to decide it."),
        "{small}"
    );
}
