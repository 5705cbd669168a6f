//! Rules confirmed or refuted: a study's claims about figures, compared with the figures.
//!
//! A rule is judged for each of Marigram's interfaces. Its results are compared by medians; a side
//! of the bound is certain if the interval of the ratio lies on it.

use super::load::{StudyRuns, figure};
use super::names;
use super::number::plain;
use super::statistics::{JUDGED_MIN, Summary, median};
use crate::record::{Configuration, Verdict};
use crate::study::{Comparison, FigureBound, Knobs, Rule, Scale};
use std::collections::{BTreeMap, BTreeSet};

/// A result that a rule is about.
struct RuleCase {
    /// The knobs of the result.
    knobs: Knobs,
    /// The figure, or its ratio to what it is compared with: median and interval.
    value: f64,
    low: f64,
    high: f64,
    /// Number of repetitions, of the side that has fewer.
    repetitions: usize,
}

/// The judgement of each rule of `study`, in a sentence or two.
#[must_use]
pub(super) fn sentences(configuration: &Configuration, study: &StudyRuns) -> Vec<String> {
    let rules = study.plan.rules.iter();
    rules
        .map(|rule| sentence(configuration, study, rule))
        .collect()
}

fn sentence(configuration: &Configuration, study: &StudyRuns, rule: &Rule) -> String {
    let targets = configuration.targets.iter();
    let said: Vec<String> = targets
        .filter(|target| names::is_marigram(target))
        .filter_map(|target| {
            let cases = cases(&summaries(study, rule, target), rule);
            verdict(rule, &names::label(target), &cases)
        })
        .collect();
    let said = if said.is_empty() {
        "Not decided: no figures were measured for it".to_owned()
    } else {
        let rehearsal = match configuration.scale {
            Scale::Tiny | Scale::Small => ". The scale is too small to decide it",
            Scale::Medium | Scale::Paper => "",
        };
        said.join(". ") + rehearsal
    };
    format!("Rule: {} ({}). {said}.", rule.says, rule.source)
}

/// The rule's figure of `target` by knobs.
fn summaries(study: &StudyRuns, rule: &Rule, target: &str) -> BTreeMap<Knobs, Summary> {
    let mut by_repeat: BTreeMap<&Knobs, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    let runs = study.runs.iter().map(|run| &run.result);
    for run in runs.filter(|run| run.target == target) {
        for step in &run.steps {
            let value = match step.verdict {
                Verdict::Right | Verdict::Unchecked => figure(step, &rule.figure),
                _ => None,
            };
            let repeats = by_repeat.entry(&step.knobs).or_default();
            let repeat = value.map(|value| (run.repeat, value));
            if let Some((repeat, value)) = repeat {
                repeats.entry(repeat).or_default().push(value);
            }
        }
    }
    let summary = |repeats: BTreeMap<usize, Vec<f64>>| {
        Summary::new(repeats.values().filter_map(|own| median(own)).collect())
    };
    let each = by_repeat.into_iter();
    each.filter_map(|(knobs, repeats)| Some((knobs.clone(), summary(repeats)?)))
        .collect()
}

/// Every result of the rule that has something to compare it with.
fn cases(summaries: &BTreeMap<Knobs, Summary>, rule: &Rule) -> Vec<RuleCase> {
    let is_of = |knobs: &Knobs| {
        rule.of
            .iter()
            .all(|(name, value)| knobs.get(name) == Some(value))
    };
    let subjects = summaries.iter().filter(|(knobs, _)| is_of(knobs));
    subjects
        .filter_map(|(knobs, own)| {
            let case = |value, low, high, repetitions| RuleCase {
                knobs: knobs.clone(),
                value,
                low,
                high,
                repetitions,
            };
            let other = match &rule.with {
                Comparison::Itself(scale) => {
                    let [value, low, high] = [own.median, own.low, own.high].map(|v| v * scale);
                    return Some(case(value, low, high, own.n()));
                }
                Comparison::Result(changed) => {
                    let mut wanted = knobs.clone();
                    wanted.extend(changed.clone());
                    summaries.get(&wanted)?
                }
                Comparison::Smallest(knob) => smallest(summaries, knobs, knob)?,
            };
            (other.low > 0.0).then(|| {
                let value = own.median / other.median;
                let (low, high) = (own.low / other.high, own.high / other.low);
                case(value, low, high, own.n().min(other.n()))
            })
        })
        .collect()
}

/// The smallest figure among results that differ from `knobs` in `knob` alone.
fn smallest<'a>(
    summaries: &'a BTreeMap<Knobs, Summary>,
    knobs: &Knobs,
    knob: &str,
) -> Option<&'a Summary> {
    let without = |knobs: &Knobs| {
        let mut rest = knobs.clone();
        rest.remove(knob);
        rest
    };
    let own = without(knobs);
    let others = summaries
        .iter()
        .filter(|(other, _)| other.contains_key(knob) && *other != knobs && without(other) == own);
    others
        .map(|(_, summary)| summary)
        .min_by(|a, b| a.median.total_cmp(&b.median))
}

fn holds(bound: FigureBound, value: f64) -> bool {
    match bound {
        FigureBound::AtMost(limit) => value <= limit,
        FigureBound::AtLeast(limit) => value >= limit,
    }
}

/// The judgement of `cases` of the target `label`; `None` if there are none.
fn verdict(rule: &Rule, label: &str, cases: &[RuleCase]) -> Option<String> {
    let worst = cases.iter().reduce(|worst, case| {
        let worse = match rule.bound {
            FigureBound::AtMost(_) => case.value > worst.value,
            FigureBound::AtLeast(_) => case.value < worst.value,
        };
        if worse { case } else { worst }
    })?;
    let held = cases.iter().filter(|case| holds(rule.bound, case.value));
    let held = held.count();
    let word = match held {
        0 => "Refuted",
        held if held == cases.len() => "Confirmed",
        _ => "Refuted in part",
    };
    let (side, limit) = match rule.bound {
        FigureBound::AtMost(limit) => ("at most", limit),
        FigureBound::AtLeast(limit) => ("at least", limit),
    };
    let what = match rule.with {
        Comparison::Itself(_) => "",
        _ => " ×",
    };
    let count = match cases.len() {
        1 => String::new(),
        all => format!("in {held} of {all}; at worst "),
    };
    let figure = format!("{}{what}", plain(worst.value));
    let place = place(cases, &worst.knobs);
    let doubt = doubt(rule.bound, cases);
    Some(format!(
        "{word} for {label}: {count}{figure}{place}, where {side} {}{what} is claimed{doubt}",
        plain(limit)
    ))
}

/// The worst case, by the knobs in which cases differ.
fn place(cases: &[RuleCase], worst: &Knobs) -> String {
    let differs = |(name, _): &(&String, &String)| {
        let values: BTreeSet<_> = cases.iter().map(|case| case.knobs.get(*name)).collect();
        values.len() > 1
    };
    let parts = worst.iter().filter(differs);
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect();
    match parts.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}

/// Whether chance could explain the result.
fn doubt(bound: FigureBound, cases: &[RuleCase]) -> String {
    let fewest = cases.iter().map(|case| case.repetitions).min().unwrap_or(0);
    let open = |case: &&RuleCase| holds(bound, case.low) != holds(bound, case.high);
    let open = cases.iter().filter(open).count();
    if fewest < JUDGED_MIN {
        let times = match fewest {
            1 => "one repetition".to_owned(),
            few => format!("{few} repetitions"),
        };
        format!("; {times} cannot tell that from noise")
    } else if open > 0 {
        format!("; in {open} of {} noise could turn it round", cases.len())
    } else {
        "; beyond noise".to_owned()
    }
}

#[cfg(test)]
mod tests;
