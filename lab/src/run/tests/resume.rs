//! Runs that continue others, and orders that are refused.

use super::fakes::{self, asking, plan, writing};
use super::lab::Lab;
use super::{full, outcome};
use crate::record::Configuration;
use crate::study::{Plan, Scale, StepAction, Write};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

fn two_setups(_scale: Scale) -> Plan {
    plan(vec![
        ("one", vec![StepAction::Write(writing())]),
        ("two", vec![StepAction::Write(writing())]),
    ])
}

#[test]
fn targets_take_turns_in_being_first() {
    let mut lab = Lab::new(two_setups, &["right", "wrong", "mute"]);
    lab.order.repeat = 3;
    lab.run().expect("a run");
    let rounds = [
        ["Right", "Wrong", "Mute"],
        ["Wrong", "Mute", "Right"],
        ["Mute", "Right", "Wrong"],
    ];
    assert_eq!(lab.started(), [rounds, rounds].concat().concat());
}

#[test]
fn what_was_interrupted_is_continued() {
    let mut lab = Lab::new(two_setups, &["right", "wrong"]);
    lab.stop.store(true, Ordering::Relaxed);
    let error = lab.run().expect_err("interrupted");
    assert!(
        error.to_string().contains("the same command continues"),
        "{error}"
    );
    assert!(!lab.folder("one", "right", 0).join("result.json").exists());
    lab.stop.store(false, Ordering::Relaxed);
    assert_eq!(lab.run().expect("a run"), outcome(4, 0, 0, 0));
    lab.started();
    let folder = lab.folder("two", "wrong", 0);
    std::fs::remove_file(folder.join("result.json")).expect("a result");
    std::fs::write(folder.join("half"), "").expect("a file");
    assert_eq!(lab.run().expect("a run"), outcome(1, 3, 0, 0));
    assert_eq!(lab.started(), ["Wrong"]);
    assert!(!folder.join("half").exists(), "it begins anew");
    lab.order.repeat = 2;
    lab.order
        .targets
        .push((fakes::kind("mute"), crate::target::Settings::default()));
    assert_eq!(lab.run().expect("a run"), outcome(8, 4, 0, 0));
    let text = std::fs::read(lab.order.out.join("lab.json")).expect("a configuration");
    let all: Configuration = serde_json::from_slice(&text).expect("a configuration");
    assert_eq!((all.repeat, all.targets.len()), (2, 3));
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let mut lab = Lab::new(two_setups, &["null"]);
    lab.run().expect("a run");
    lab.order.seed = 2;
    lab.order.scale = Scale::Small;
    let error = lab.run().expect_err("another seed").to_string();
    for part in ["scale tiny, not small", "seed 1, not 2", "another --out"] {
        assert!(error.contains(part), "{error}");
    }
    lab.order.seed = 1;
    lab.order.scale = Scale::Tiny;
    lab.order.studies[0].plan = full;
    let error = lab.run().expect_err("another plan").to_string();
    assert!(error.contains("another plan of study study"), "{error}");
    lab.order.targets.push(lab.order.targets[0].clone());
    assert!(lab.run().is_err(), "a target twice");
}

fn again(_scale: Scale) -> Plan {
    let other = Write {
        clients: 1,
        ..writing()
    };
    plan(vec![
        (
            "all",
            vec![StepAction::Write(writing()), StepAction::Write(writing())],
        ),
        (
            "other",
            vec![StepAction::Write(writing()), StepAction::Write(other)],
        ),
        ("unwritten", vec![StepAction::Ask(asking(&["easy"]))]),
    ])
}

#[test]
fn steps_that_cannot_be_are_refused_with_their_reason() {
    let lab = Lab::new(again, &["right"]);
    assert_eq!(lab.run().expect("a run"), outcome(0, 0, 3, 0));
    let why = |setup| lab.result(setup, "right", 0).failed.expect("a failure");
    let reasons: BTreeSet<String> = ["all", "other", "unwritten"].into_iter().map(why).collect();
    for part in [
        "wrote them all",
        "another suffix",
        "no step before this one",
    ] {
        assert!(reasons.iter().any(|why| why.contains(part)), "{reasons:?}");
    }
}
