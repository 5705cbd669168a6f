//! The studies of Marigram's settings go through the runner and come out as a report; here on the
//! null target, so that no database is needed. Where the machine has Marigram's binary, they run on
//! its server as well: `MARIGRAM_LAB_BIN` is the binary, `MARIGRAM_LAB_STUDIES` names studies or is
//! `all`.

use marigram_lab::run::{Order, Outcome, run};
use marigram_lab::study::{Scale, Study};
use marigram_lab::target::{Kind, Settings};
use marigram_lab::{null, report, studies};
use marigram_lab_drivers::marigram;
use std::env::var;
use std::path::Path;

/// Studies of Marigram's settings at tiny scale on one target, in `folder`.
fn order(wanted: &str, target: (Kind, Settings), folder: &Path) -> Order {
    let is_wanted = |study: &Study| {
        let named = wanted == "all" || wanted.split(',').any(|name| name == study.name);
        named && (study.plan)(Scale::Tiny).marigram_only
    };
    Order {
        studies: studies::all().into_iter().filter(is_wanted).collect(),
        targets: vec![target],
        scale: Scale::Tiny,
        repeat: 1,
        seed: 1,
        out: folder.join("out"),
        data: None,
        command: "lab run".to_owned(),
        quiet: true,
    }
}

/// Runs `order`, all of which should go well, and gives the sentences about rules.
fn rules(order: &Order) -> Vec<String> {
    let plans = order.studies.iter().map(|study| (study.plan)(Scale::Tiny));
    let done: usize = plans.map(|plan| plan.setups.len()).sum();
    let outcome = run(order).expect("it runs");
    let written = report::write(&order.out).expect("a report");
    let expected = Outcome {
        done,
        ..Outcome::default()
    };
    let page = std::fs::read_to_string(&written.markdown).expect("the report");
    assert_eq!(outcome, expected, "{page}");
    let said = written.sentences.into_iter();
    said.filter(|said| said.contains(": Rule: ")).collect()
}

#[test]
fn studies_of_settings_run_and_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let null = (null::KIND, Settings::default());
    let order = order("all", null, folder.path());
    assert_eq!(order.studies.len(), 10);
    let rules = rules(&order);
    assert!(rules.len() >= 12, "{rules:?}");
    let open = "no figures were measured for it.";
    assert!(rules.iter().all(|said| said.ends_with(open)), "{rules:?}");
}

#[test]
fn studies_run_on_a_server() {
    let (Ok(binary), Ok(wanted)) = (var("MARIGRAM_LAB_BIN"), var("MARIGRAM_LAB_STUDIES")) else {
        eprintln!("passed over: MARIGRAM_LAB_BIN and MARIGRAM_LAB_STUDIES are not set");
        return;
    };
    for kind in [marigram::HTTP, marigram::POSTGRES] {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            marigram: binary.clone().into(),
            ..Settings::default()
        };
        let order = order(&wanted, (kind, settings), folder.path());
        for said in rules(&order) {
            eprintln!("{said}");
        }
    }
}
