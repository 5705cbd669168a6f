//! Aggregates of a value over time: `increase`, `rate`, `delta`, `derivative`, `integral`,
//! `time_weighted_avg`. Rows whose value or time is null do not count.
//!
//! `delta` and `derivative` keep the first and the last row of a group. The others need all rows in
//! order of time, and keep them: 16 bytes per row until the group is done. Rows with the same time
//! are ordered by their values, so that the result never depends on the order in which rows
//! arrived.

use super::aggregate::{AccumulatorFactory, AggregateDescription, AggregateState, column};
use super::arguments::{self, ConstantArguments};
use super::numbers::{NumberDifference, NumberKind};
use super::pairs::{
    self, AllPairsState, PairsAnswer, TimeValueColumns, TimeValuePair, TimeValuePairs,
};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OverTime {
    /// How much a counter grew; if it falls, it restarted at zero.
    Increase,
    /// The increase per second.
    Rate,
    /// The last value minus the first.
    Delta,
    /// The delta per unit of time.
    Derivative,
    /// The area under the line through the values.
    Integral,
    /// The integral divided by the time between the first and the last row.
    Average,
}

/// All functions.
pub(crate) const ALL: [OverTime; 6] = [
    OverTime::Increase,
    OverTime::Rate,
    OverTime::Delta,
    OverTime::Derivative,
    OverTime::Integral,
    OverTime::Average,
];

impl AggregateDescription for OverTime {
    fn name(&self) -> &'static str {
        match self {
            Self::Increase => "increase",
            Self::Rate => "rate",
            Self::Delta => "delta",
            Self::Derivative => "derivative",
            Self::Integral => "integral",
            Self::Average => "time_weighted_avg",
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::Average => &["time_weight", "twa"],
            _ => &[],
        }
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let third = match (self, types) {
            (_, [_, _]) => None,
            (Self::Derivative | Self::Integral, [_, _, unit]) => {
                Some(arguments::interval(name, unit)?)
            }
            (Self::Average, [_, _, method]) => match arguments::plain(method) {
                text if text.is_string() => Some(DataType::Utf8),
                other => {
                    return plan_err!("{name}: {other} is not a method; write 'linear' or 'locf'");
                }
            },
            (Self::Derivative | Self::Integral, _) => {
                return plan_err!(
                    "{name} takes a value and its time: {name}(value, time [, unit])"
                );
            }
            (Self::Average, _) => {
                return plan_err!(
                    "{name} takes a value and its time: {name}(value, time [, 'linear' | 'locf'])"
                );
            }
            _ => return plan_err!("{name} takes a value and its time: {name}(value, time)"),
        };
        let value = arguments::number(name, &types[0])?;
        let mut coerced = vec![value, arguments::time(name, &types[1])?];
        coerced.extend(third);
        Ok(coerced)
    }

    fn answer_type(&self, types: &[DataType]) -> DataType {
        match (self, &types[0]) {
            (Self::Delta, DataType::UInt64) => DataType::Int64,
            (Self::Delta | Self::Increase, value) => value.clone(),
            _ => DataType::Float64,
        }
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        pairs::state_types()
    }

    fn fold(
        &self,
        types: &[DataType],
        constants: &ConstantArguments<'_>,
        sliding: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        let (mut unit_ns, mut carry) = (1_000_000_000, false);
        match self {
            Self::Derivative | Self::Integral => unit_ns = constants.interval_ns(2)?,
            Self::Average if constants.expressions.len() > 2 => {
                let method = constants.word(2, "the method")?;
                carry = match method.to_ascii_lowercase().as_str() {
                    "linear" => false,
                    "locf" => true,
                    _ => {
                        let method = method.escape_debug();
                        return exec_err!(
                            "{}: '{method}' is not a method; write 'linear' or 'locf'",
                            self.name()
                        );
                    }
                };
            }
            _ => (),
        }
        let finish = OverTimeFinish {
            function: *self,
            kind: NumberKind::from_type(&types[0])?,
            answer: self.answer_type(types),
            unit_ns: unit_ns as f64,
            carry,
        };
        Ok(match self {
            // A sliding frame removes rows, and then needs the rows that follow them.
            Self::Delta | Self::Derivative if !sliding => Box::new(EndRowsState(finish)),
            _ => Box::new(AllPairsState {
                answer: finish,
                time: 1,
                value: 0,
                sliding,
            }),
        })
    }
}

/// How to compute the result from the rows of a group.
#[derive(Debug)]
struct OverTimeFinish {
    function: OverTime,
    kind: NumberKind,
    answer: DataType,
    unit_ns: f64,
    /// Whether a value holds until the next one (`locf`); otherwise a line connects them.
    carry: bool,
}

impl OverTimeFinish {
    /// The result for rows in order of time.
    fn answer(&self, pairs: &[TimeValuePair]) -> Result<ScalarValue> {
        let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else {
            return ScalarValue::try_from(&self.answer);
        };
        let span_ns = since(first, last);
        let per_unit = |difference: NumberDifference| {
            (span_ns > 0.0).then(|| difference.float() / (span_ns / self.unit_ns))
        };
        let float = match self.function {
            OverTime::Increase => {
                return self.increase(pairs).scalar("increase", &self.answer);
            }
            OverTime::Delta => {
                let delta = self.kind.minus(last.1, first.1);
                return delta.scalar("delta", &self.answer);
            }
            OverTime::Rate => per_unit(self.increase(pairs)),
            OverTime::Derivative => per_unit(self.kind.minus(last.1, first.1)),
            OverTime::Integral => Some(self.area(pairs, self.unit_ns)),
            // All rows are at the same time, so they have the same weight.
            OverTime::Average if span_ns == 0.0 => {
                let sum: f64 = pairs.iter().map(|pair| self.kind.float(pair.1)).sum();
                Some(sum / pairs.len() as f64)
            }
            OverTime::Average => Some(self.area(pairs, span_ns)),
        };
        Ok(ScalarValue::Float64(float))
    }

    fn increase(&self, pairs: &[TimeValuePair]) -> NumberDifference {
        let mut increase = self.kind.minus(0, 0);
        for (before, after) in pairs.iter().zip(&pairs[1..]) {
            let fell = self.kind.compare(after.1, before.1).is_lt();
            // The bits of zero are zero in every kind.
            let from = if fell { 0 } else { before.1 };
            increase = increase.plus(self.kind.minus(after.1, from));
        }
        increase
    }

    /// The area between the values and zero, with widths in `unit_ns`.
    fn area(&self, pairs: &[TimeValuePair], unit_ns: f64) -> f64 {
        let mut area = 0.0;
        for (before, after) in pairs.iter().zip(&pairs[1..]) {
            let width = since(before, after) / unit_ns;
            // An infinite value of zero duration would make the result NaN.
            if width > 0.0 {
                let (left, right) = (self.kind.float(before.1), self.kind.float(after.1));
                let height = if self.carry {
                    left
                } else {
                    // Halve first: the sum of two very large floats is infinite.
                    left / 2.0 + right / 2.0
                };
                area += height * width;
            }
        }
        area
    }
}

/// The nanoseconds from one pair to a later one; they may not fit in 63 bits.
fn since(before: &TimeValuePair, after: &TimeValuePair) -> f64 {
    (i128::from(after.0) - i128::from(before.0)) as f64
}

impl PairsAnswer for OverTimeFinish {
    fn answers(&self, states: &mut [TimeValuePairs], keep: bool) -> Result<ArrayRef> {
        let answers = states
            .iter_mut()
            .map(|state| state.ordered(self.kind, keep, |pairs| self.answer(pairs)));
        column(answers, &self.answer)
    }
}

/// Keeps the first and the last row.
#[derive(Debug)]
struct EndRowsState(OverTimeFinish);

/// The first and the last row of a group.
type EndPairs = Option<[TimeValuePair; 2]>;

impl EndRowsState {
    fn push(&self, state: &mut EndPairs, pair: TimeValuePair) {
        let Some([first, last]) = state else {
            *state = Some([pair, pair]);
            return;
        };
        let compare = |other: &TimeValuePair| {
            let by_time = pair.0.cmp(&other.0);
            by_time.then_with(|| self.0.kind.compare(pair.1, other.1))
        };
        if compare(first).is_lt() {
            *first = pair;
        }
        if compare(last).is_gt() {
            *last = pair;
        }
    }
}

impl AggregateState for EndRowsState {
    type State = EndPairs;
    type Rows<'a> = TimeValueColumns<'a>;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<TimeValueColumns<'a>> {
        TimeValueColumns::from_arrays(&columns[1], &columns[0])
    }

    fn add(&self, state: &mut EndPairs, rows: &TimeValueColumns<'_>, row: usize) {
        if let Some(pair) = rows.pair(row) {
            self.push(state, pair);
        }
    }

    fn states(&self, states: &[EndPairs]) -> Result<Vec<ArrayRef>> {
        let groups: Vec<TimeValuePairs> = states
            .iter()
            .map(|ends| {
                let mut pairs = TimeValuePairs::default();
                ends.iter().flatten().for_each(|pair| pairs.push(*pair));
                pairs
            })
            .collect();
        pairs::states(&groups)
    }

    fn merge(&self, state: &mut EndPairs, columns: &[ArrayRef], row: usize) -> Result<()> {
        let mut pairs = TimeValuePairs::default();
        pairs.merge(columns, row)?;
        pairs.ordered(self.0.kind, false, |pairs| {
            for pair in pairs {
                self.push(state, *pair);
            }
        });
        Ok(())
    }

    fn answers(&self, states: &mut [EndPairs]) -> Result<ArrayRef> {
        let answers = states.iter().map(|ends| match ends {
            Some(ends) => self.0.answer(ends),
            None => self.0.answer(&[]),
        });
        column(answers, &self.0.answer)
    }

    fn heap_bytes(&self, _: &EndPairs) -> usize {
        0
    }
}
