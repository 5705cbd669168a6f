//! What every form of an answer can write, and how times are shown.

use super::columns::InfluxValue;
use super::series::SeriesHeader;
use arrow::array::timezone::Tz;

/// In which unit times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeForm {
    /// As text, or as a number of ns where a form has no texts of times.
    Default,
    /// As a number of units of so many ns.
    Epoch(i64),
}

impl TimeForm {
    /// What the parameter `epoch` asks for. A unit that is not known is ns.
    pub(super) fn from_parameter(epoch: &str) -> Self {
        match epoch {
            "" => Self::Default,
            "u" => Self::Epoch(1_000),
            "ms" => Self::Epoch(1_000_000),
            "s" => Self::Epoch(1_000_000_000),
            "m" => Self::Epoch(60_000_000_000),
            "h" => Self::Epoch(3_600_000_000_000),
            _ => Self::Epoch(1),
        }
    }

    /// A time in the unit, or as text, or as it is.
    pub(super) fn number(self, time_ns: i64) -> Option<i64> {
        match self {
            Self::Default => None,
            Self::Epoch(unit_ns) => Some(time_ns / unit_ns),
        }
    }
}

/// A form: writes what it is told of, in this order: document (statement (series (row …) …) …) ….
pub(super) trait SeriesForm: Send {
    /// A document begins.
    fn begin_document(&mut self);
    /// A result begins.
    fn begin_statement(&mut self, id: usize);
    /// A series begins, or goes on in a new document.
    fn begin_series(&mut self, series: &SeriesHeader);
    /// A row of it.
    fn row(&mut self, values: &mut dyn Iterator<Item = (InfluxValue<'_>, Option<Tz>)>);
    /// The series ends in this document; `partial` if more of it follows in the next.
    fn end_series(&mut self, partial: bool);
    /// The result ends.
    fn end_statement(&mut self, end: &StatementEnd<'_>);
    /// The document ends.
    fn end_document(&mut self);
    /// An answer that is an error and nothing else.
    fn error(&mut self, message: &str);
    /// How many bytes are ready to be sent.
    fn ready_bytes(&self) -> usize;
    /// The bytes that are ready to be sent.
    fn take(&mut self) -> Vec<u8>;
    /// Bytes that are held until more is known.
    fn held_bytes(&self) -> usize;
}

/// What a result ends with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StatementEnd<'a> {
    /// What the client should know beside.
    pub messages: &'a [String],
    /// Whether more of the statement follows in the next document.
    pub partial: bool,
    /// Why the statement was not done, or not to its end.
    pub error: Option<&'a str>,
}
