//! Questions in terms that every database's language can express, and answers in one form, so that
//! they can be compared.

mod answer;

pub use answer::{Answer, Cell, Difference};

use serde::{Deserialize, Serialize};

/// A question with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Short name, as tables of the report show it: `Q3`, `avg`.
    pub name: String,
    /// What is asked.
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// A question that the laboratory can answer itself from the rows.
    Select(Select),
    /// Marigram's SQL, for what [`Select`] cannot express. Answers are compared between targets. A
    /// driver for another dialect declines it.
    Sql(String),
}

/// Rows, aggregates or latest rows of one table.
///
/// The columns of the answer, in this order: for [`Selection::Rows`] and [`Selection::Last`] the table's key
/// tag, the time, the fields; for [`Selection::Aggregates`] the tags of `by`, the start of the bucket if
/// there is one, the aggregates. Groups without rows are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Select {
    /// Index of the table among the source's tables.
    pub table: usize,
    /// What is selected.
    pub what: Selection,
    /// The devices.
    pub devices: Devices,
    /// Start of the range, nanoseconds; `None`: from the beginning.
    pub from_ns: Option<i64>,
    /// End of the range (exclusive), nanoseconds; `None`: to the end.
    pub to_ns: Option<i64>,
    /// Only rows whose field (an index) is greater than this.
    pub above: Option<(usize, f64)>,
    /// One group for each combination of these tags (indices).
    pub by: Vec<usize>,
    /// One group for each window of this length, nanoseconds; windows begin at multiples of it.
    pub bucket_ns: Option<i64>,
    /// Newest first.
    pub descending: bool,
}

/// What is selected of the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Selection {
    /// The rows themselves, these fields (indices).
    Rows(Vec<usize>),
    /// Aggregates over fields (indices); the field of `Count` is the one whose values are counted.
    Aggregates(Vec<(Aggregate, usize)>),
    /// The newest row of each device, these fields (indices).
    Last(Vec<usize>),
}

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aggregate {
    /// Number of values that are not null.
    Count,
    /// Sum.
    Sum,
    /// Mean.
    Avg,
    /// Least.
    Min,
    /// Greatest.
    Max,
    /// Difference of maximum and minimum.
    Spread,
}

/// A choice of devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Devices {
    /// All.
    All,
    /// Those whose tag (an index) has one of these values.
    In(usize, Vec<String>),
    /// Those whose tag (an index, of [`crate::data::TagKind::Integer`]) is less than this.
    Below(usize, i64),
}

impl Select {
    /// Everything of `what` in `table`.
    #[must_use]
    pub fn all(table: usize, what: Selection) -> Self {
        Self {
            table,
            what,
            devices: Devices::All,
            from_ns: None,
            to_ns: None,
            above: None,
            by: Vec::new(),
            bucket_ns: None,
            descending: false,
        }
    }
}
