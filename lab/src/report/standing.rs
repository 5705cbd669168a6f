//! Where Marigram stands: its best interface compared with each peer, view by view, good or bad.

use super::document::{Line, Tone, put};
use super::names;
use super::number::times;
use super::sentences::{comparatives, ratio};
use super::series::{ArrangedView, Cell, Panel, State, TargetRow};
use super::statistics::{Judgement, Summary, judge};
use crate::study::ReportView;

/// The outcome of comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Marigram is better, beyond noise.
    pub ahead: usize,
    /// Marigram is worse, beyond noise.
    pub behind: usize,
    /// Noise would explain the difference.
    pub noise: usize,
    /// Too few repetitions to tell.
    pub untold: usize,
}

impl Count {
    /// Adds another count.
    pub(super) fn add(&mut self, other: Self) {
        self.ahead += other.ahead;
        self.behind += other.behind;
        self.noise += other.noise;
        self.untold += other.untold;
    }

    fn all(self) -> usize {
        self.ahead + self.behind + self.noise + self.untold
    }
}

/// Marigram compared with one peer in one view.
#[derive(Default)]
struct PeerComparison {
    count: Count,
    /// Ratios beyond noise, and all of them; more than 1 is better.
    ahead: Vec<f64>,
    behind: Vec<f64>,
    all: Vec<f64>,
    /// Cells in which only the peer, or only Marigram, has a figure.
    ours_absent: usize,
    theirs_absent: usize,
}

/// The line of one view, and the outcome of its comparisons; `None` if Marigram or every peer is
/// missing.
#[must_use]
pub(super) fn line(arranged: &ArrangedView) -> Option<(Line, Count)> {
    let view = arranged.view;
    let rows = || arranged.panels.iter().flat_map(|panel| &panel.rows);
    if !rows().any(|row| names::is_marigram(&row.target)) {
        return None;
    }
    let mut peers: Vec<&str> = Vec::new();
    for row in rows().filter(|row| !names::is_marigram(&row.target)) {
        if !peers.contains(&row.target.as_str()) {
            peers.push(&row.target);
        }
    }
    let mut ways: Vec<&str> = Vec::new();
    let mut count = Count::default();
    let mut phrases = Vec::new();
    for peer in peers {
        let mut duel = PeerComparison::default();
        for panel in &arranged.panels {
            fight(view, panel, peer, &mut duel, &mut ways);
        }
        count.add(duel.count);
        phrases.extend(phrase(view, peer, &duel));
    }
    if phrases.is_empty() {
        return None;
    }
    let ways = if ways.is_empty() {
        "Marigram".to_owned()
    } else {
        format!("Marigram ({})", ways.join(", "))
    };
    let lead = format!("{} — {ways}", view.title);
    Some((Line { lead, phrases }, count))
}

/// Compares in every cell of `panel`.
fn fight<'a>(
    view: &ReportView,
    panel: &'a Panel,
    peer: &str,
    duel: &mut PeerComparison,
    ways: &mut Vec<&'a str>,
) {
    for theirs in panel.rows.iter().filter(|row| row.target == peer) {
        let mut rows = panel.rows.iter();
        let over_a_wire =
            rows.any(|row| names::is_marigram(&row.target) && !names::is_library(&row.target));
        // Comparing a library with a server would compare connections, not databases.
        let fair = |way: &str| names::is_library(peer) || !over_a_wire || !names::is_library(way);
        let ours = |row: &&TargetRow| {
            // Rows of the same further knobs are compared with each other.
            names::is_marigram(&row.target) && row.variant == theirs.variant && fair(&row.target)
        };
        for (at, cell) in theirs.cells.iter().enumerate() {
            let rows = panel.rows.iter().filter(ours);
            let values = rows
                .clone()
                .filter_map(|row| Some((row, row.cells[at].value()?)));
            let best = values.reduce(|best, other| {
                if better(view, other.1, best.1) {
                    other
                } else {
                    best
                }
            });
            match (best, cell.value()) {
                (Some((way, ours)), Some(theirs)) => {
                    let way = way.target.as_str();
                    if !ways.contains(&way) {
                        ways.push(way);
                    }
                    compare(view, ours, theirs, duel);
                }
                (None, Some(_)) => {
                    duel.ours_absent += usize::from(rows.clone().any(|row| gone(&row.cells[at])));
                }
                (Some(_), None) => duel.theirs_absent += usize::from(gone(cell)),
                (None, None) => {}
            }
        }
    }
}

/// Whether a figure should be there, but is not.
fn gone(cell: &Cell) -> bool {
    matches!(
        cell.state,
        State::Wrong(_) | State::Failed(_) | State::Cannot(_)
    )
}

fn better(view: &ReportView, a: &Summary, b: &Summary) -> bool {
    (a.median > b.median) == view.more_is_better && a.median != b.median
}

fn compare(view: &ReportView, ours: &Summary, theirs: &Summary, duel: &mut PeerComparison) {
    let ratio = ratio(view, ours, theirs);
    duel.all.extend(ratio);
    match judge(ours, theirs) {
        Judgement::More(_) | Judgement::Less(_) if better(view, ours, theirs) => {
            duel.count.ahead += 1;
            duel.ahead.extend(ratio);
        }
        Judgement::More(_) | Judgement::Less(_) => {
            duel.count.behind += 1;
            duel.behind.extend(ratio);
        }
        Judgement::Noise => duel.count.noise += 1,
        Judgement::Untold(_) => duel.count.untold += 1,
    }
}

/// `ratio` with its comparative: `2.31× faster`, `12.0 % slower`.
fn ratio_text(view: &ReportView, ratio: f64) -> String {
    let (better, worse) = comparatives(view);
    if ratio >= 1.0 {
        format!("{} {better}", times(ratio))
    } else {
        format!("{} {worse}", times(1.0 / ratio))
    }
}

/// The geometric mean, in which halves and doubles cancel out.
fn mean(ratios: &[f64]) -> f64 {
    let logarithms = ratios.iter().map(|ratio| ratio.ln());
    (logarithms.sum::<f64>() / ratios.len().max(1) as f64).exp()
}

/// The phrase about one peer; `None` if there is nothing to say.
fn phrase(view: &ReportView, peer: &str, duel: &PeerComparison) -> Option<(Tone, String)> {
    let count = duel.count;
    let cells = count.all();
    if cells + duel.ours_absent + duel.theirs_absent == 0 {
        return None;
    }
    let label = names::label(peer);
    let mean = mean(&duel.all);
    let than = format!("is {} than {label}", ratio_text(view, mean));
    let usual = |decided: usize| match (cells, decided) {
        (1, _) => than.clone(),
        (all, decided) if all == decided => {
            format!("{than} (geometric mean of {cells}, all beyond noise)")
        }
        _ => format!("{than} (geometric mean of {cells}, {decided} beyond noise)"),
    };
    let (mut tone, mut text) = if cells == 0 {
        (Tone::Plain, format!("is not comparable with {label}"))
    } else if count.untold == cells {
        let text = format!("{than} (too few repetitions to tell)");
        (Tone::Plain, text)
    } else if count.ahead == 0 && count.behind == 0 {
        let text = format!("is not different from {label} beyond noise");
        (Tone::Plain, text)
    } else if count.behind == 0 && count.ahead * 2 > cells && mean > 1.0 {
        (Tone::Good, usual(count.ahead))
    } else if count.ahead == 0 && count.behind * 2 > cells && mean < 1.0 {
        (Tone::Bad, usual(count.behind))
    } else {
        let (tone, parts) = parts(view, duel);
        (tone, format!("against {label}, of {cells}: {parts}"))
    };
    if duel.ours_absent > 0 {
        let absent = duel.ours_absent;
        let more = format_args!("; Marigram has no right answer in {absent} more");
        put(&mut text, more);
        tone = Tone::Bad;
    }
    if duel.theirs_absent > 0 {
        let absent = duel.theirs_absent;
        let more = format_args!("; {label} has no right answer in {absent} more");
        put(&mut text, more);
    }
    Some((tone, text))
}

/// The cells in which Marigram is ahead, behind, or not different, if it is not mostly one of them.
fn parts(view: &ReportView, duel: &PeerComparison) -> (Tone, String) {
    let count = duel.count;
    let (better, worse) = comparatives(view);
    let mut parts = Vec::new();
    if count.ahead > 0 {
        parts.push(extreme(&duel.ahead, better, count.ahead));
    }
    if count.behind > 0 {
        parts.push(extreme(&duel.behind, worse, count.behind));
    }
    let same = count.noise + count.untold;
    if same > 0 {
        parts.push(format!("not different beyond noise in {same}"));
    }
    let tone = match (count.ahead, count.behind) {
        (1.., 0) => Tone::Good,
        (0, 1..) => Tone::Bad,
        _ => Tone::Plain,
    };
    (tone, parts.join(", "))
}

/// `faster in 3 (up to 2.31×)`.
fn extreme(ratios: &[f64], word: &str, count: usize) -> String {
    let most = ratios.iter().map(|ratio| ratio.max(1.0 / ratio));
    match most.reduce(f64::max) {
        Some(most) => format!("{word} in {count} (up to {})", times(most.max(1.0))),
        None => format!("{word} in {count}"),
    }
}
