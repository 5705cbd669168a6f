//! Targets in a report: which are Marigram's, and their names, colours and marks.

/// Marigram's interfaces, by their names on the command line.
const MARIGRAM: [&str; 3] = ["embedded", "http", "postgres"];

/// Whether `target` is one of Marigram's interfaces.
#[must_use]
pub(super) fn is_marigram(target: &str) -> bool {
    MARIGRAM.contains(&target)
}

/// Whether `target` is a library, which has no cost of a connection.
#[must_use]
pub(super) fn is_library(target: &str) -> bool {
    ["embedded", "duckdb", "chdb"].contains(&target)
}

/// Whether `target` is the null target, which shows the client's own cost.
#[must_use]
pub(super) fn is_null(target: &str) -> bool {
    target == "null"
}

/// The product that `target` belongs to.
#[must_use]
pub(super) fn product(target: &str) -> &str {
    if is_marigram(target) {
        "marigram"
    } else {
        target
    }
}

/// The name of `target` in tables and plots.
#[must_use]
pub(super) fn label(target: &str) -> String {
    if is_marigram(target) {
        format!("Marigram {target}")
    } else {
        target.to_owned()
    }
}

/// A colour, red, green, blue.
pub(super) type Colour = (u8, u8, u8);

/// A mark in a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointMark {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle, point up.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle, point down.
    Wedge,
}

/// The appearance of a target in every plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TargetStyle {
    /// Its colour.
    pub colour: Colour,
    /// Its mark, for readers who cannot distinguish the colour.
    pub mark: PointMark,
}

/// Marigram's interfaces are blue discs of three lightnesses.
const BLUES: [Colour; 3] = [(0, 114, 178), (86, 180, 233), (68, 85, 170)];

/// The peers: colours that the colour-blind can distinguish (M. Okabe, K. Ito, *Color Universal
/// Design*, 2008, without its blues, yellow and black; the last three from P. Tol's *muted*
/// scheme).
const PEERS: [(Colour, PointMark); 8] = [
    ((213, 94, 0), PointMark::Square),
    ((0, 158, 115), PointMark::Triangle),
    ((204, 121, 167), PointMark::Diamond),
    ((230, 159, 0), PointMark::Wedge),
    ((136, 34, 85), PointMark::Square),
    ((153, 153, 51), PointMark::Triangle),
    ((125, 125, 125), PointMark::Diamond),
    ((170, 68, 153), PointMark::Wedge),
];

/// The appearance of `target`, which depends on its index in `targets`, all targets of the report.
#[must_use]
pub(super) fn look(targets: &[String], target: &str) -> TargetStyle {
    if let Some(way) = MARIGRAM.iter().position(|way| *way == target) {
        return TargetStyle {
            colour: BLUES[way],
            mark: PointMark::Circle,
        };
    }
    let mut peers = targets
        .iter()
        .filter(|name| !is_marigram(name) && !is_null(name));
    let place = peers.position(|name| name == target).unwrap_or(0);
    let (colour, mark) = PEERS[place % PEERS.len()];
    TargetStyle { colour, mark }
}

/// The largest number of characters of a reason in a report; the record of the run has all of it.
const REASON_CHARACTERS: usize = 180;

/// A reason, shortened for a report.
#[must_use]
pub(super) fn short(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARACTERS) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}
