//! What failed, was not possible, or has not been run yet, by target.

use super::document::{Block, Line, Table, TableCell, Tone};
use super::load::{Lab, StudyRuns};
use super::names::{is_null, label, short};
use crate::record::Verdict;
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of reasons listed for a target; the rest is counted.
const LISTED_MAX: usize = 12;

/// A step of a study, whatever the repetition.
type StepKey = (String, String);

/// What happened to one target.
#[derive(Default)]
struct Problems {
    wrong: BTreeMap<StepKey, String>,
    failed: BTreeMap<StepKey, String>,
    cannot: BTreeMap<StepKey, String>,
    missing: usize,
    checked: BTreeSet<StepKey>,
}

/// The table of problems, and the reasons.
#[must_use]
pub(super) fn blocks(lab: &Lab) -> Vec<Block> {
    let mut table = Table {
        name: "problems".to_owned(),
        caption: "Steps by target, each counted once whatever the number of repetitions. Wrong \
                  and failed steps are never ranked. “Checked” steps have answers that were \
                  compared with those that the data give."
            .to_owned(),
        ..Table::default()
    };
    table.head = [
        "target",
        "checked",
        "wrong",
        "failed",
        "cannot",
        "runs missing",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut reasons = Vec::new();
    for target in lab
        .configuration
        .targets
        .iter()
        .filter(|target| !is_null(target))
    {
        let problems = problems(lab, target);
        let counts = [
            problems.checked.len(),
            problems.wrong.len(),
            problems.failed.len(),
            problems.cannot.len(),
            problems.missing,
        ];
        let mut cells: Vec<TableCell> = counts
            .iter()
            .map(|count| TableCell::plain(count.to_string()))
            .collect();
        for cell in cells[1..3].iter_mut().filter(|cell| cell.text != "0") {
            cell.mark = super::document::CellMark::Wrong;
        }
        table.push(label(target), cells);
        let kinds = [
            ("wrong", Tone::Bad, &problems.wrong),
            ("failed", Tone::Bad, &problems.failed),
            ("cannot", Tone::Plain, &problems.cannot),
        ];
        for (kind, tone, places) in kinds {
            reasons.extend(lines(target, kind, tone, places));
        }
    }
    let mut blocks = vec![Block::Table(table)];
    if !reasons.is_empty() {
        blocks.push(Block::Folded {
            summary: "What was wrong, failed, or not possible".to_owned(),
            blocks: vec![Block::List(reasons)],
        });
    }
    blocks
}

fn problems(lab: &Lab, target: &str) -> Problems {
    let mut problems = Problems::default();
    for study in &lab.studies {
        let missing = study.missing.iter().filter(|place| place.target == target);
        problems.missing += missing.count();
        for run in study.runs.iter().map(|run| &run.result) {
            if run.target != target {
                continue;
            }
            if let Some(reason) = &run.failed {
                let place = (study.name.clone(), format!("{} ended early", run.setup));
                problems.failed.insert(place, short(reason));
            }
            for step in &run.steps {
                let knobs = step
                    .knobs
                    .iter()
                    .map(|(knob, value)| format!("{knob} {value}"));
                let knobs: Vec<String> = knobs.collect();
                let at = format!("{}, step {}: {}", run.setup, step.step, knobs.join(", "));
                let place = (study.name.clone(), at);
                match &step.verdict {
                    Verdict::Unchecked => {}
                    Verdict::Right => {
                        problems.checked.insert(place);
                    }
                    Verdict::Wrong(why) => {
                        problems.checked.insert(place.clone());
                        problems.wrong.insert(place, short(why));
                    }
                    Verdict::Cannot(why) => {
                        problems.cannot.insert(place, why.clone());
                    }
                    Verdict::Failed(why) => {
                        problems.failed.insert(place, short(why));
                    }
                }
            }
        }
    }
    problems
}

/// Steps with the same reason share a line.
fn lines(target: &str, kind: &str, tone: Tone, places: &BTreeMap<StepKey, String>) -> Vec<Line> {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for ((study, at), reason) in places {
        let place = format!("{study} / {at}");
        match by_reason.iter_mut().find(|(own, _)| *own == reason) {
            Some((_, same)) => same.push(place),
            None => by_reason.push((reason, vec![place])),
        }
    }
    let more = by_reason.len().saturating_sub(LISTED_MAX);
    let mut lines = Vec::new();
    for (reason, same) in by_reason.into_iter().take(LISTED_MAX) {
        let others = match same.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        lines.push(Line {
            lead: format!("{} {kind}:", label(target)),
            phrases: vec![(tone, format!("{reason} ({}{others})", same[0]))],
        });
    }
    if more > 0 {
        lines.push(Line {
            lead: format!("{} {kind}:", label(target)),
            phrases: vec![(tone, format!("{more} further reasons, in results.csv"))],
        });
    }
    lines
}

/// What has not been run of `study`; `None` if everything has.
#[must_use]
pub(super) fn unfinished(study: &StudyRuns) -> Option<String> {
    if study.plan.setups.is_empty() {
        return Some("This study has not begun.".to_owned());
    }
    if study.missing.is_empty() {
        return None;
    }
    let mut by_target: BTreeMap<&str, usize> = BTreeMap::new();
    for place in &study.missing {
        *by_target.entry(&place.target).or_default() += 1;
    }
    let all = study.missing.len() + study.runs.len();
    let said = by_target
        .iter()
        .map(|(target, count)| format!("{} {count}", label(target)));
    Some(format!(
        "Unfinished: {} of {all} runs are missing ({}). Run the laboratory again on the same \
         folder to complete them.",
        study.missing.len(),
        said.collect::<Vec<_>>().join(", ")
    ))
}
