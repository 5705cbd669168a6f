//! Targets as a reader sees them: which are Marigram's, what they are called, and how they look.

/// Marigram's ways in, as targets are named on the command line.
const MARIGRAM: [&str; 3] = ["embedded", "http", "postgres"];

/// Whether `target` is one of Marigram's ways in.
#[must_use]
pub fn is_marigram(target: &str) -> bool {
    MARIGRAM.contains(&target)
}

/// Whether `target` is a library: it pays for no connection, neither when it is written to nor when
/// it answers.
#[must_use]
pub fn is_library(target: &str) -> bool {
    ["embedded", "duckdb", "chdb"].contains(&target)
}

/// Whether `target` is the one that does nothing, which shows what the client itself costs.
#[must_use]
pub fn is_null(target: &str) -> bool {
    target == "null"
}

/// The product that `target` belongs to.
#[must_use]
pub fn product(target: &str) -> &str {
    if is_marigram(target) {
        "marigram"
    } else {
        target
    }
}

/// What `target` is called in tables and plots.
#[must_use]
pub fn label(target: &str) -> String {
    if is_marigram(target) {
        format!("Marigram {target}")
    } else {
        target.to_owned()
    }
}

/// A colour, red, green, blue.
pub type Colour = (u8, u8, u8);

/// A mark in a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
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

/// How a target looks in every plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its colour.
    pub colour: Colour,
    /// Its mark, for those who do not see the colour.
    pub mark: Mark,
}

/// Marigram's ways in are blue discs of three lightnesses.
const BLUES: [Colour; 3] = [(0, 114, 178), (86, 180, 233), (68, 85, 170)];

/// The peers: colours that the colour-blind tell apart (M. Okabe, K. Ito, *Color Universal Design*,
/// 2008, without its blues, yellow and black; the last three from P. Tol's *muted* scheme).
const PEERS: [(Colour, Mark); 8] = [
    ((213, 94, 0), Mark::Square),
    ((0, 158, 115), Mark::Triangle),
    ((204, 121, 167), Mark::Diamond),
    ((230, 159, 0), Mark::Wedge),
    ((136, 34, 85), Mark::Square),
    ((153, 153, 51), Mark::Triangle),
    ((125, 125, 125), Mark::Diamond),
    ((170, 68, 153), Mark::Wedge),
];

/// The look of `target`, which depends on its place among `targets`, all those of the report.
#[must_use]
pub fn look(targets: &[String], target: &str) -> Look {
    if let Some(way) = MARIGRAM.iter().position(|way| *way == target) {
        return Look {
            colour: BLUES[way],
            mark: Mark::Circle,
        };
    }
    let mut peers = targets
        .iter()
        .filter(|name| !is_marigram(name) && !is_null(name));
    let place = peers.position(|name| name == target).unwrap_or(0);
    let (colour, mark) = PEERS[place % PEERS.len()];
    Look { colour, mark }
}

/// Characters of a reason that a report shows; the record of the run has the whole of it.
const REASON_CHARACTERS: usize = 180;

/// A reason, as a report shows it.
#[must_use]
pub fn short(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARACTERS) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}
