//! What a target tells about itself, and settings that it may refuse.

use super::fakes::plan;
use super::lab::Lab;
use super::{figure, full, outcome};
use crate::record::Verdict;
use crate::study::{Plan, Scale, StepAction};
use std::collections::BTreeMap;

fn observed(_scale: Scale) -> Plan {
    let known = BTreeMap::from([("theory".to_owned(), 7.0)]);
    plan(vec![("main", vec![StepAction::Observe { known }])])
}

#[test]
fn what_a_target_tells_stands_beside_what_is_known() {
    let lab = Lab::new(observed, &["right", "mute"]);
    assert_eq!(lab.run().expect("a run"), outcome(2, 0, 0, 0));
    let step = &lab.result("main", "right", 0).steps[0];
    assert_eq!(
        (figure(step, "segments"), figure(step, "theory")),
        (3.0, 7.0)
    );
    let step = &lab.result("main", "mute", 0).steps[0];
    assert!(matches!(step.verdict, Verdict::Cannot(_)), "{step:?}");
    assert!(step.figures.is_empty());
}

fn tuned(scale: Scale) -> Plan {
    let mut plan = full(scale);
    let name = "compaction".to_owned();
    plan.setups[0]
        .tuning
        .server
        .insert(name, "balance".to_owned());
    plan
}

fn tuned_for_marigram(scale: Scale) -> Plan {
    Plan {
        marigram_only: true,
        ..tuned(scale)
    }
}

#[test]
fn a_target_that_has_no_such_settings_says_so_in_every_step() {
    let lab = Lab::new(tuned, &["right", "null"]);
    assert_eq!(lab.run().expect("a run"), outcome(2, 0, 0, 0));
    let result = lab.result("main", "right", 0);
    let refused = Verdict::Cannot("it has no such settings".to_owned());
    assert!(result.steps.iter().all(|step| step.verdict == refused));
    assert!(result.facts.is_some(), "it was started without them");
    let steps = lab.result("main", "null", 0).steps;
    assert!(figure(&steps[0], "mib_per_s") > 0.0);
}

#[test]
fn peers_take_no_part_in_studies_of_marigrams_settings() {
    let mut lab = Lab::new(tuned_for_marigram, &["null", "right"]);
    lab.order.targets[1].0.peer = true;
    assert_eq!(lab.run().expect("a run"), outcome(1, 0, 0, 0));
    assert!(!lab.folder("main", "right", 0).exists());
}
