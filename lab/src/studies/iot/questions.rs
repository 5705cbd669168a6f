//! IoT-Benchmark's questions, Q1 to Q11.

use super::super::parts::{IOT_START_NS, question};
use crate::data::{FieldKind, SECOND_NS};
use crate::generate::IotSpec;
use crate::question::{Aggregate, Devices, Question, Select, Selection};

/// Buckets of Q7 and Q11, `GROUP_BY_TIME_UNIT`.
const BUCKET_NS: i64 = 20 * SECOND_NS;
/// The value that values are compared with, `QUERY_LOWER_VALUE`.
const LOWER_VALUE: f64 = -5.0;
/// Instances of each question.
const INSTANCES: usize = 8;

/// A kind of question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Q1: one time.
    ExactPoint,
    /// Q2: a range.
    Range,
    /// Q3: a range, above a value.
    RangeAndValue,
    /// Q4: aggregates of a range.
    Aggregate,
    /// Q5: aggregates above a value.
    AggregateValue,
    /// Q6: aggregates of a range, above a value.
    AggregateRangeAndValue,
    /// Q7: aggregates by buckets of time.
    ByTime,
    /// Q8: the latest rows.
    Latest,
    /// Q9: Q2, newest first.
    RangeDescending,
    /// Q10: Q3, newest first.
    RangeAndValueDescending,
    /// Q11: Q7, newest first.
    ByTimeDescending,
}

/// All kinds.
pub(super) const ALL: [Kind; 11] = [
    Kind::ExactPoint,
    Kind::Range,
    Kind::RangeAndValue,
    Kind::Aggregate,
    Kind::AggregateValue,
    Kind::AggregateRangeAndValue,
    Kind::ByTime,
    Kind::Latest,
    Kind::RangeDescending,
    Kind::RangeAndValueDescending,
    Kind::ByTimeDescending,
];

/// The kinds that represent the others.
pub(super) const USUAL: [Kind; 4] = [Kind::Range, Kind::Aggregate, Kind::ByTime, Kind::Latest];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::ExactPoint => "Q1 exact point",
            Self::Range => "Q2 range",
            Self::RangeAndValue => "Q3 range, value",
            Self::Aggregate => "Q4 aggregate",
            Self::AggregateValue => "Q5 aggregate, value",
            Self::AggregateRangeAndValue => "Q6 aggregate, range, value",
            Self::ByTime => "Q7 by time",
            Self::Latest => "Q8 latest",
            Self::RangeDescending => "Q9 range, descending",
            Self::RangeAndValueDescending => "Q10 range, value, descending",
            Self::ByTimeDescending => "Q11 by time, descending",
        }
    }

    fn aggregates(self) -> bool {
        matches!(
            self,
            Self::Aggregate
                | Self::AggregateValue
                | Self::AggregateRangeAndValue
                | Self::ByTime
                | Self::ByTimeDescending
        )
    }

    fn has_range(self) -> bool {
        !matches!(self, Self::ExactPoint | Self::AggregateValue | Self::Latest)
    }

    fn has_value(self) -> bool {
        matches!(
            self,
            Self::RangeAndValue
                | Self::AggregateValue
                | Self::AggregateRangeAndValue
                | Self::RangeAndValueDescending
        )
    }

    fn is_descending(self) -> bool {
        matches!(
            self,
            Self::RangeDescending | Self::RangeAndValueDescending | Self::ByTimeDescending
        )
    }
}

/// The extent of questions.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Devices of a question.
    pub devices: usize,
    /// Sensors of a question, the first ones.
    pub sensors: usize,
    /// Range of time of a question, seconds.
    pub range_s: u32,
}

/// Instances of these kinds of questions about `data`: their ranges begin at steps spread over the
/// data, and take devices in turn.
pub(super) fn questions(data: &IotSpec, extent: Extent, kinds: &[Kind]) -> Vec<Question> {
    let instances = |kind: &Kind| {
        let kind = *kind;
        (0..INSTANCES)
            .map(move |instance| question(kind.name(), select(data, extent, kind, instance)))
    };
    kinds.iter().flat_map(instances).collect()
}

fn select(data: &IotSpec, extent: Extent, kind: Kind, instance: usize) -> Select {
    let step_ns = i64::from(data.step_ms) * 1_000_000;
    let range_ns = i64::from(extent.range_s) * SECOND_NS;
    // Number of rows after which a whole range follows.
    let starts = (data.rows as i64 - range_ns / step_ns).max(1);
    let from_ns = IOT_START_NS + starts * instance as i64 / INSTANCES as i64 * step_ns;
    let (from_ns, to_ns) = match kind {
        Kind::ExactPoint => (Some(from_ns), Some(from_ns + 1)),
        _ if kind.has_range() => (Some(from_ns), Some(from_ns + range_ns)),
        _ => (None, None),
    };
    let first = instance * extent.devices;
    let device = |number| format!("d_{}", (first + number) % data.devices);
    Select {
        devices: Devices::In(0, (0..extent.devices).map(device).collect()),
        from_ns,
        to_ns,
        above: kind.has_value().then_some((0, LOWER_VALUE)),
        bucket_ns: matches!(kind, Kind::ByTime | Kind::ByTimeDescending).then_some(BUCKET_NS),
        descending: kind.is_descending(),
        ..Select::all(0, what(data.kind, extent.sensors, kind))
    }
}

fn what(values: FieldKind, sensors: usize, kind: Kind) -> Selection {
    if kind == Kind::Latest {
        return Selection::Last((0..sensors).collect());
    }
    if !kind.aggregates() {
        return Selection::Rows((0..sensors).collect());
    }
    // IoT-Benchmark counts, which some databases answer without reading a value. So the question
    // includes the mean, if there is one.
    let functions = match values {
        FieldKind::Bool | FieldKind::Text => &[Aggregate::Count][..],
        _ => &[Aggregate::Count, Aggregate::Avg],
    };
    let of_sensor = |sensor| functions.iter().map(move |function| (*function, sensor));
    Selection::Aggregates((0..sensors).flat_map(of_sensor).collect())
}
