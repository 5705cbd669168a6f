//! Says which column of a file without a time looks most like one, and why it is none.

use super::time_columns::TimeSearch;
use marigram_tabular::names::{self, TimeNameStrength};
use marigram_tabular::time::TimePart;

/// Names of columns that are part of a time which is not read from parts.
const OTHER_PARTS: [&str; 12] = [
    "doy",
    "yday",
    "jday",
    "julian",
    "julian_day",
    "dayofyear",
    "day_of_year",
    "hhmm",
    "hhmmss",
    "hrmn",
    "week",
    "kw",
];

/// Characters of a cell that a message shows.
const CELL_CHARS: usize = 40;

/// The columns that come nearest to a time, as lines of a message; empty if none does.
pub fn nearest(search: &TimeSearch<'_>) -> String {
    let found = contradicting(search)
        .or_else(|| parts(search))
        .or_else(|| unreadable(search))
        .or_else(|| unnamed(search));
    found.map_or_else(String::new, |found| format!("\n  {found}"))
}

fn columns(search: &TimeSearch<'_>) -> impl Iterator<Item = usize> {
    let profiles = search.profiles;
    (0..profiles.len()).filter(|at| !profiles[*at].is_empty())
}

/// A column whose dates fit no single order of day and month.
fn contradicting(search: &TimeSearch<'_>) -> Option<String> {
    columns(search).find_map(|at| {
        let (one, other) = search.profiles[at].times.contradiction()?;
        let name = &search.dialect.names[at];
        Some(format!(
            "column '{name}' has '{}', which is day, month and year, and '{}', which is month, day and year: \
             no order fits both; --time-column {name} --date-order dmy or mdy reads those of one order, and \
             refuses the other rows",
            shown(one),
            shown(other)
        ))
    })
}

/// Columns that are named like parts of a time, but not all of them.
fn parts(search: &TimeSearch<'_>) -> Option<String> {
    use TimePart::{Day, Hour, Minute, Month, Year};
    let is_part = |at: &usize| {
        let name = &search.dialect.names[*at];
        let is_named = |part: TimePart| part.is_named(name) && name.len() > 1;
        [Year, Month, Day, Hour, Minute].into_iter().any(is_named)
            || OTHER_PARTS.contains(&name.trim().to_lowercase().as_str())
    };
    let parts: Vec<usize> = columns(search).filter(is_part).collect();
    if parts.len() < 2 {
        return None;
    }
    let cells = parts.iter().map(|at| {
        let (name, times) = (&search.dialect.names[*at], &search.profiles[*at].times);
        format!("'{name}' ('{}')", shown(times.first()))
    });
    Some(format!(
        "columns {} are named like parts of a time, but do not make up a date: that takes year, month and day \
         as whole numbers. Join them into one column before, such as 2026-01-31 or 2026-031, the day of the \
         year, with a time of day such as 09:30 behind it",
        cells.collect::<Vec<_>>().join(", ")
    ))
}

/// A column that is named like a time, or whose first cell looks like one, but cannot be read.
fn unreadable(search: &TimeSearch<'_>) -> Option<String> {
    let strength = |at: &usize| names::time_name_strength(&search.dialect.names[*at]).0;
    let is_likely = |at: &usize| {
        let times = &search.profiles[*at].times;
        strength(at) >= TimeNameStrength::Word || looks_dated(times.first())
    };
    let at = columns(search).filter(is_likely).max_by_key(|at| {
        let times = &search.profiles[*at].times;
        (
            looks_dated(times.first()),
            strength(at),
            std::cmp::Reverse(*at),
        )
    })?;
    let name = &search.dialect.names[at];
    let cell = search.profiles[at].times.first();
    let months = if looks_dated(cell) && cell.chars().any(char::is_alphabetic) {
        "; months are read by their names in English and other western languages, or as numbers"
    } else {
        ""
    };
    Some(format!(
        "column '{name}' comes nearest, but '{}' cannot be read as a time{months}; --time-column {name} with \
         --time-format, such as '%d.%m.%Y %H:%M', reads other forms",
        shown(cell)
    ))
}

/// A column of numbers that are times if someone says so.
fn unnamed(search: &TimeSearch<'_>) -> Option<String> {
    let at = columns(search).find(|at| search.profiles[*at].times.is_epoch())?;
    let name = &search.dialect.names[at];
    Some(format!(
        "column '{name}' has numbers such as {} that may be times, but its name does not say so; give \
         --time-column {name} if they are",
        shown(search.profiles[at].times.first())
    ))
}

/// Whether a cell has a year of four digits beside other signs, or a time of day.
fn looks_dated(cell: &str) -> bool {
    let runs: Vec<&str> = cell.split(|char: char| !char.is_ascii_digit()).collect();
    let is_year = |run: &&str| run.len() == 4 && (run.starts_with("19") || run.starts_with("20"));
    let has_others = runs.iter().filter(|run| !run.is_empty()).count() > 1;
    has_others && runs.iter().any(is_year) && cell.chars().count() <= CELL_CHARS
}

fn shown(cell: &str) -> String {
    cell.chars().take(CELL_CHARS).collect()
}
