//! Values of Flux: scalars, records, functions and streams of tables.

mod arguments;
mod builtin;
mod scope;
mod span;
mod stream;
mod table;

pub(crate) use arguments::FluxArguments;
pub(crate) use builtin::FluxBuiltin;
pub(crate) use scope::{FluxClosure, FluxScope};
pub(crate) use span::{ENDLESS, FluxSpan};
pub(crate) use stream::{
    BucketRead, FluxBucket, FluxCaller, FluxListing, FluxOperation, FluxStream,
};
pub(crate) use table::{FluxCells, FluxColumn, FluxGroupKey, FluxTable, HeldBudget};

use jiff::Timestamp;
use regex::Regex;
use std::cmp::Ordering;
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum FluxValue {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A float.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A time, in nanoseconds since the Unix epoch.
    Time(i64),
    /// A duration.
    Duration(FluxSpan),
    /// A regular expression.
    Regex(Arc<Regex>),
    /// An array.
    Array(Arc<Vec<FluxValue>>),
    /// A record.
    Record(Arc<FluxRecord>),
    /// A row of a table, as a record.
    Row(Arc<FluxTable>, usize),
    /// A function of the script.
    Function(Arc<FluxClosure>),
    /// A function of this crate.
    Builtin(&'static FluxBuiltin),
    /// An imported package, by its path.
    Package(&'static str),
    /// A stream of tables.
    Stream(Arc<FluxStream>),
}

/// Names and values, in order.
pub(crate) type FluxRecord = Vec<(Arc<str>, FluxValue)>;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FluxKind {
    /// Booleans.
    Bool,
    /// Signed integers.
    Int,
    /// Unsigned integers.
    UInt,
    /// Floats.
    Float,
    /// Texts.
    Text,
    /// Times.
    Time,
}

impl FluxKind {
    /// The name that Flux gives the type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::UInt => "uint",
            Self::Float => "float",
            Self::Text => "string",
            Self::Time => "time",
        }
    }
}

impl FluxValue {
    /// A text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Whether there is no value.
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The type of the column that can hold the value.
    pub(crate) const fn kind(&self) -> Option<FluxKind> {
        Some(match self {
            Self::Bool(_) => FluxKind::Bool,
            Self::Int(_) => FluxKind::Int,
            Self::UInt(_) => FluxKind::UInt,
            Self::Float(_) => FluxKind::Float,
            Self::Text(_) => FluxKind::Text,
            Self::Time(_) => FluxKind::Time,
            _ => return None,
        })
    }

    /// The name of the value's type, for errors.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Duration(_) => "duration",
            Self::Regex(_) => "regexp",
            Self::Array(_) => "array",
            Self::Record(_) | Self::Row(..) => "record",
            Self::Function(_) | Self::Builtin(_) => "function",
            Self::Package(_) => "package",
            Self::Stream(_) => "stream",
            other => match other.kind() {
                Some(kind) => kind.name(),
                None => "value",
            },
        }
    }

    /// A number as a float.
    pub(crate) fn as_float(&self) -> Option<f64> {
        Some(match self {
            Self::Int(value) => *value as f64,
            Self::UInt(value) => *value as f64,
            Self::Float(value) => *value,
            _ => return None,
        })
    }

    /// The bytes that the value holds outside of itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 16,
            _ => 0,
        }
    }

    /// The value as `string()` and interpolation show it; `None` for what has no text.
    pub(crate) fn shown(&self) -> Option<String> {
        Some(match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::UInt(value) => value.to_string(),
            Self::Float(value) => shown_float(*value),
            Self::Text(value) => value.to_string(),
            Self::Time(ns) => shown_time(*ns),
            Self::Duration(span) => span.to_string(),
            _ => return None,
        })
    }

    /// The order of two values of a kind, null first; of values of different kinds, that of the
    /// kinds.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) | (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::UInt(a), Self::UInt(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b).unwrap_or_else(|| a.total_cmp(b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (a, b) => a.kind().cmp(&b.kind()),
        }
    }
}

/// A float as Go's format `f` shows it, with as many digits as it needs.
pub(crate) fn shown_float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

/// A time as RFC 3339 shows it, with as many digits as it needs.
pub(crate) fn shown_time(ns: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    time.to_string()
}
