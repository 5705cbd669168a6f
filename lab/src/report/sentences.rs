//! Sentences computed from figures. They claim a difference only if it is more than noise
//! ([`judge`]).

use super::number::{plain, times};
use super::series::{Panel, State, TargetRow};
use super::statistics::{Judgement, Summary, judge};
use crate::study::ReportView;

/// The comparatives for a better and a worse figure of `view`.
#[must_use]
pub(super) fn comparatives(view: &ReportView) -> (&'static str, &'static str) {
    let figure = view.figure.as_str();
    let rate = figure.contains("per_s") || view.unit.contains("/s");
    let time = figure.ends_with("_ms") || matches!(figure, "settle_s" | "flush_s");
    if figure.contains("bytes") || figure.starts_with("disk") {
        ("smaller", "larger")
    } else if !figure.contains("cpu") && (rate || (time && !view.more_is_better)) {
        ("faster", "slower")
    } else if view.more_is_better {
        ("higher", "lower")
    } else {
        ("lower", "higher")
    }
}

/// The ratio by which `ours` is better than `theirs`; less than 1 if it is worse, `None` if one of
/// them is not positive.
#[must_use]
pub(super) fn ratio(view: &ReportView, ours: &Summary, theirs: &Summary) -> Option<f64> {
    let both = ours.median > 0.0 && theirs.median > 0.0;
    let more = ours.median / theirs.median;
    both.then_some(if view.more_is_better {
        more
    } else {
        1.0 / more
    })
}

/// A figure with its unit.
#[must_use]
pub(super) fn with_unit(view: &ReportView, value: f64) -> String {
    // A unit like `1000 rows/s` would merge with the figure.
    let counts = view.unit.starts_with(|first: char| first.is_ascii_digit());
    let by = if counts { "× " } else { "" };
    let text = format!("{} {by}{}", plain(value), view.unit);
    text.trim_end().to_owned()
}

/// Sentences about the table of `panel`.
#[must_use]
pub(super) fn sentences(view: &ReportView, panel: &Panel) -> Vec<String> {
    let ranked: Vec<(&str, Vec<(&TargetRow, &Summary)>)> = panel
        .xs
        .iter()
        .enumerate()
        .map(|(at, x)| (x.as_str(), ranking(view, panel, at)))
        .filter(|(_, ranking)| !ranking.is_empty())
        .collect();
    let mut sentences = Vec::new();
    // The last comparable value of x says most, because studies vary x upwards.
    let compared = ranked.iter().rev().find(|(_, ranking)| ranking.len() > 1);
    if let Some((x, ranking)) = compared.or(ranked.last()) {
        if ranked.len() > 1 {
            sentences.extend(leaders(view, &ranked));
        }
        let place = if ranked.len() > 1 {
            format!("At {} {x}, ", view.x.replace('_', " "))
        } else {
            String::new()
        };
        sentences.push(format!("{place}{}.", first_and_second(view, ranking)));
    }
    sentences.extend(others(panel));
    sentences
}

/// The measured rows at one value of x, best first.
fn ranking<'a>(
    view: &ReportView,
    panel: &'a Panel,
    at: usize,
) -> Vec<(&'a TargetRow, &'a Summary)> {
    let rows = panel.rows.iter();
    let mut ranking: Vec<_> = rows
        .filter_map(|row| Some((row, row.cells[at].value()?)))
        .collect();
    ranking.sort_by(|(_, a), (_, b)| {
        let order = a.median.total_cmp(&b.median);
        if view.more_is_better {
            order.reverse()
        } else {
            order
        }
    });
    ranking
}

/// The best target at each value, if more than one was measured.
fn leaders(view: &ReportView, ranked: &[(&str, Vec<(&TargetRow, &Summary)>)]) -> Option<String> {
    let mut leaders: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut compared = 0;
    for (x, ranking) in ranked.iter().filter(|(_, ranking)| ranking.len() > 1) {
        compared += 1;
        let best = ranking[0].0.label.as_str();
        match leaders.iter_mut().find(|(label, _)| *label == best) {
            Some((_, xs)) => xs.push(x),
            None => leaders.push((best, vec![x])),
        }
    }
    leaders.sort_by_key(|(_, xs)| std::cmp::Reverse(xs.len()));
    let (first, others) = leaders.split_first()?;
    if others.is_empty() {
        return Some(format!(
            "{} has the best median at every value of {} ({compared} of {compared}).",
            first.0,
            view.x.replace('_', " ")
        ));
    }
    let said = |(label, xs): &(&str, Vec<&str>)| {
        let at = xs.join(", ");
        format!("{label} at {at}")
    };
    let said: Vec<String> = leaders.iter().map(said).collect();
    let knob = view.x.replace('_', " ");
    Some(format!("Best median by {knob}: {}.", said.join("; ")))
}

fn first_and_second(view: &ReportView, ranking: &[(&TargetRow, &Summary)]) -> String {
    let (best, figure) = ranking[0];
    let value = with_unit(view, figure.median);
    let Some((second, other)) = ranking.get(1) else {
        return format!("only {} was measured: {value}", best.label);
    };
    let better = comparatives(view).0;
    let by = ratio(view, figure, other).map_or(String::new(), |ratio| {
        format!("{} {better} than ", times(ratio))
    });
    let than = if by.is_empty() { "better than " } else { "" };
    let said = format!("{} has {value}, {by}{than}{}", best.label, second.label);
    let noise = match judge(figure, other) {
        Judgement::More(p) | Judgement::Less(p) => {
            format!(
                "; the difference is more than noise (p = {p:.3}, {})",
                counts(figure, other)
            )
        }
        Judgement::Noise => {
            format!("; noise would explain that ({})", counts(figure, other))
        }
        Judgement::Untold(n) => too_few(n),
    };
    said + &noise
}

/// The remark if `n` repetitions cannot distinguish a difference from noise.
fn too_few(n: usize) -> String {
    let times = match n {
        1 => "one repetition".to_owned(),
        n => format!("{n} repetitions"),
    };
    format!("; {times} cannot tell whether that is more than noise")
}

fn counts(a: &Summary, b: &Summary) -> String {
    if a.n() == b.n() {
        format!("{} repetitions each", a.n())
    } else {
        format!("{} and {} repetitions", a.n(), b.n())
    }
}

/// What is not ranked, and at which values.
fn others(panel: &Panel) -> Option<String> {
    let mut kinds: [(&str, Vec<String>); 3] = [
        ("wrong answers", Vec::new()),
        ("failures", Vec::new()),
        ("cannot be asked of", Vec::new()),
    ];
    for row in &panel.rows {
        for (kind, said) in kinds.iter_mut().enumerate() {
            let matching = row.cells.iter().zip(&panel.xs).filter(|(cell, _)| {
                matches!(
                    (kind, &cell.state),
                    (0, State::Wrong(_)) | (1, State::Failed(_)) | (2, State::Cannot(_))
                )
            });
            let at: Vec<&str> = matching.map(|(_, x)| x.as_str()).collect();
            if !at.is_empty() && at.len() == panel.xs.len() {
                said.1.push(row.label.clone());
            } else if !at.is_empty() {
                said.1.push(format!("{} (at {})", row.label, at.join(", ")));
            }
        }
    }
    let said: Vec<String> = kinds
        .iter()
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(kind, rows)| format!("{kind}: {}", rows.join(", ")))
        .collect();
    (!said.is_empty()).then(|| format!("Not ranked — {}.", said.join("; ")))
}
