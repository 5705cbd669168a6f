//! InfluxDB line protocol: `measurement,tag=value field=value,… time`.
//!
//! The source is the [InfluxDB reference][1]. A measurement is a table. Lines are independent: a
//! bad one is reported and left out, and the good ones are kept.
//!
//! - Numbers without a suffix are floats; `i` and `u` make integers. NaN and infinity are refused.
//! - Quoted text may contain line breaks; its escapes are `\"` and `\\`.
//! - Elsewhere, a backslash escapes a following comma, space or (except in a measurement) equals
//!   sign; before anything else, it stands for itself.
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

/// Unit of the times in a body of lines.
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
            // The micro sign and the Greek letter mu look alike.
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

/// Limits on the result of parsing a body; the model limits names and values.
#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// Errors that are described; further ones are only counted.
    pub errors_max: usize,
    /// Whether a field may have the name of a tag, as in InfluxDB. Its column is then called
    /// `name::field`, see [`TAGGED_FIELD_SUFFIX`]. Otherwise the line is refused.
    pub tagged_fields: bool,
}

/// What follows the name of a tag in the name of the column that holds the field of that name.
pub const TAGGED_FIELD_SUFFIX: &str = "::field";

impl Default for LineLimits {
    fn default() -> Self {
        Self {
            errors_max: 1000,
            tagged_fields: false,
        }
    }
}

/// A refused line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line's number, from 1; of the first line if quoted text spans several.
    pub line: u32,
    /// Position of the error on it, in bytes from 1.
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

/// The content of a body of lines.
#[derive(Clone, Debug, Default)]
pub struct ParsedLines {
    /// The rows of valid lines, one batch per table, in the order in which the tables first appear.
    /// If a batch would be nearly all nulls because its lines share few names, further batches of
    /// the same table follow it; later batches have newer rows.
    pub batches: Vec<WriteBatch>,
    /// For each batch, the number (from 1) of each row's line.
    pub lines: Vec<Vec<u32>>,
    /// The first [`LineLimits::errors_max`] refused lines, ascending.
    pub errors: Vec<LineError>,
    /// Number of further refused lines.
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
    /// Byte offset in the text.
    at: usize,
    reason: String,
}

fn fault<T>(at: usize, reason: impl Into<String>) -> Result<T, LineFault> {
    Err(LineFault {
        at,
        reason: reason.into(),
    })
}
