//! Constants in expressions.

use crate::civil;
use crate::duration::InfluxDuration;
use crate::number::FixedFloat;
use crate::quote::QuotedString;
use std::fmt;

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A whole number that only fits into an unsigned integer.
    Unsigned(u64),
    /// A number with a decimal point.
    Number(f64),
    /// Text; next to a time it may denote one.
    String(String),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A regular expression.
    Regex(RegexSource),
    /// A moment. Only constant folding produces one.
    Time(TimeValue),
    /// No value. Only constant folding produces it.
    Nil,
}

/// A validated regular expression in Go's syntax.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RegexSource(pub(crate) String);

impl RegexSource {
    /// The expression as it was written, without slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The expression for Rust's `regex`; see [`crate::go_regex`].
    pub fn to_rust(&self) -> String {
        crate::go_regex::translate(&self.0).unwrap_or_else(|_| self.0.clone())
    }
}

/// A moment, which may be outside the range that can be stored.
#[derive(Debug, Clone, Copy)]
pub struct TimeValue {
    /// Nanoseconds since the Unix epoch.
    pub unix_ns: i128,
    /// The offset from UTC that the moment was written with, in seconds.
    pub offset_seconds: i32,
}

/// Two moments are equal whatever their offsets.
impl PartialEq for TimeValue {
    fn eq(&self, other: &Self) -> bool {
        self.unix_ns == other.unix_ns
    }
}

impl Eq for TimeValue {}

impl fmt::Display for RegexSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.0.replace('/', "\\/"))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{}", FixedFloat(*value)),
            Self::String(value) => write!(f, "{}", QuotedString(value)),
            Self::Duration(ns) => write!(f, "{}", InfluxDuration(*ns)),
            Self::Regex(regex) => write!(f, "{regex}"),
            Self::Time(time) => write!(f, "'{}'", civil::rfc3339_nano(time.unix_ns)),
            Self::Nil => f.write_str("nil"),
        }
    }
}
