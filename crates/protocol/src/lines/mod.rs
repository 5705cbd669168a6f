//! InfluxDB line protocol: `measurement,tag=value field=value,… time`.
//!
//! The source is the [InfluxDB reference][1]. A measurement is a table. Lines stand for themselves:
//! a bad one is named and left out, and the good ones are kept.
//!
//! - Numbers without a suffix are floats; `i` and `u` make integers. NaN and infinity are refused.
//! - Text in quotes may hold line breaks; it knows the escapes `\"` and `\\`.
//! - Elsewhere a backslash takes the meaning off a following comma, space or (but not in a
//!   measurement) equals sign, and stands for itself before anything else.
//!
//! [1]: https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/

mod batches;
mod encode;
mod influx_fault;
mod parse;
mod series;
#[cfg(test)]
mod tests;
mod text;
mod value;

pub use encode::{EncodeError, encode_batch, encode_row};
pub use influx_fault::influx_fault;
pub use parse::parse;

use marigram_model::WriteBatch;

/// Unit of the times of a body of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// ns.
    #[default]
    Nanoseconds,
    /// µs.
    Microseconds,
    /// ms.
    Milliseconds,
    /// s.
    Seconds,
    /// min.
    Minutes,
    /// h.
    Hours,
}

impl Precision {
    /// The precision that a request names (`n`, `ns`, `u`, `us`, `µ`, `µs`, `ms`, `s`, `m`, `h`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "n" | "ns" => Self::Nanoseconds,
            // Micro sign and Greek mu look the same.
            "u" | "us" | "\u{b5}" | "\u{b5}s" | "\u{3bc}" | "\u{3bc}s" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "m" => Self::Minutes,
            "h" => Self::Hours,
            _ => return None,
        })
    }

    /// One unit, ns.
    #[must_use]
    pub fn unit_ns(self) -> i64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
        }
    }
}

/// Bounds on the answer to a body of lines; those on names and values are the model's.
#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// Errors that are described; of more, only the number is kept.
    pub errors_max: usize,
}

impl Default for LineLimits {
    fn default() -> Self {
        Self { errors_max: 1000 }
    }
}

/// A line that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line's number, from 1; the first one, where quoted text goes over several.
    pub line: u32,
    /// Where on it the fault is: bytes from the line's start, from 1.
    pub column: u32,
    /// What is wrong.
    pub reason: String,
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.reason
        )
    }
}

/// What a body of lines holds.
#[derive(Clone, Debug, Default)]
pub struct ParsedLines {
    /// The rows of good lines, one batch a table, in the order in which the tables first appear.
    /// Where a batch would be nearly all nulls, since lines have few names in common, it is
    /// followed by others of the same table; rows of later ones are newer.
    pub batches: Vec<WriteBatch>,
    /// For each batch, the number (from 1) of each row's line.
    pub lines: Vec<Vec<u32>>,
    /// The lines refused, ascending; the first [`LineLimits::errors_max`] of them.
    pub errors: Vec<LineError>,
    /// How many more lines were refused.
    pub errors_omitted: u64,
}

impl ParsedLines {
    /// Number of rows in all batches.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.batches.iter().map(WriteBatch::len).sum()
    }
}

/// Where and why a line is refused.
#[derive(Debug)]
struct LineFault {
    /// Byte of the text.
    at: usize,
    reason: String,
}

fn fault<T>(at: usize, reason: impl Into<String>) -> Result<T, LineFault> {
    Err(LineFault {
        at,
        reason: reason.into(),
    })
}
