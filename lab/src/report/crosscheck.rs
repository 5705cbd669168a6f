//! Compares answers that only targets can give.
//!
//! The laboratory cannot compute some answers itself ([`crate::question::Ask::Sql`]); such an
//! answer is right if most products agree on it. Marigram's interfaces have one vote together,
//! because they share one engine; every peer has one. On a tie, the first target is the reference.
//! An answer that differs from the reference makes its step [`Verdict::Wrong`] in every repetition
//! in which it differs. Answers that agree are [`Verdict::Right`] if two products agree.

use super::load::Lab;
use super::names;
use crate::question::{Answer, Difference};
use crate::record::Verdict;
use crate::study::Knobs;
use std::collections::BTreeMap;

/// One step's answers: (index of the run, of the step's result), and the answers in order.
struct TargetAnswers {
    run: usize,
    step: usize,
    target: String,
    answers: Vec<Answer>,
}

/// Marks steps with differing answers as wrong.
pub(super) fn check(lab: &mut Lab) {
    let order = lab.configuration.targets.clone();
    for study in &mut lab.studies {
        let mut asked: BTreeMap<(String, usize, Knobs), Vec<TargetAnswers>> = BTreeMap::new();
        for (index, run) in study.runs.iter_mut().enumerate() {
            let (setup, target) = (&run.result.setup, &run.result.target);
            if names::is_null(target) {
                continue;
            }
            for (position, step) in run.result.steps.iter_mut().enumerate() {
                let answered = matches!(step.verdict, Verdict::Unchecked | Verdict::Right);
                if !answered || step.answers.is_empty() {
                    continue;
                }
                let answers = std::mem::take(&mut step.answers);
                let given = TargetAnswers {
                    run: index,
                    step: position,
                    target: target.clone(),
                    answers: answers.into_iter().map(Answer::sorted).collect(),
                };
                let key = (setup.clone(), step.step, step.knobs.clone());
                asked.entry(key).or_default().push(given);
            }
        }
        for given in asked.into_values() {
            for (run, step, verdict) in judge(&order, &given) {
                study.runs[run].result.steps[step].verdict = verdict;
            }
        }
    }
}

/// The verdicts on `given`, by run and step.
fn judge(order: &[String], given: &[TargetAnswers]) -> Vec<(usize, usize, Verdict)> {
    // One vote per product: its first answer.
    let mut voices: Vec<&TargetAnswers> = Vec::new();
    for target in order {
        let Some(first) = given.iter().find(|given| given.target == *target) else {
            continue;
        };
        voices.push(first);
    }
    let products = |agreeing: &TargetAnswers| {
        let agree = voices
            .iter()
            .filter(|voice| differs(&voice.answers, &agreeing.answers).is_none());
        let mut products: Vec<&str> = agree.map(|voice| names::product(&voice.target)).collect();
        products.sort_unstable();
        products.dedup();
        products.len()
    };
    let mut reference: Option<(usize, &TargetAnswers)> = None;
    for voice in &voices {
        let votes = products(voice);
        if reference.is_none_or(|(most, _)| votes > most) {
            reference = Some((votes, voice));
        }
    }
    let Some((votes, reference)) = reference else {
        return Vec::new();
    };
    let mut agreeing: Vec<String> = Vec::new();
    for voice in &voices {
        if differs(&voice.answers, &reference.answers).is_none() {
            agreeing.push(names::label(&voice.target));
        }
    }
    let agreeing = agreeing.join(", ");
    let verdict = |given: &TargetAnswers| match differs(&given.answers, &reference.answers) {
        Some(difference) => Some(Verdict::Wrong(format!(
            "{difference}, the answer of {agreeing}"
        ))),
        // Nothing confirms an answer that only one product gives.
        None => (votes > 1).then_some(Verdict::Right),
    };
    let verdicts = given.iter();
    verdicts
        .filter_map(|given| Some((given.run, given.step, verdict(given)?)))
        .collect()
}

/// Where `ours` differs from `theirs`.
fn differs(ours: &[Answer], theirs: &[Answer]) -> Option<String> {
    if ours.len() != theirs.len() {
        return Some(format!(
            "{} answers instead of {}",
            ours.len(),
            theirs.len()
        ));
    }
    let pairs = ours.iter().zip(theirs).enumerate();
    let mut differences = pairs.filter_map(|(instance, (ours, theirs))| {
        let Difference(difference) = ours.compare(theirs).err()?;
        Some(format!("instance {instance}: {difference}"))
    });
    differences.next()
}
