//! `lttb(time, value, n)`: the `n` rows of a group that best show its shape, by *largest triangle,
//! three buckets* (Sveinn Steinarsson, Downsampling Time Series for Visual Representation, 2013).
//! Rows whose value or time is null do not count. The state keeps all rows of a group until it is
//! done.

use super::aggregate::{AccumulatorFactory, AggregateDescription, list_type, lists};
use super::arguments::{self, ConstantArguments, TIME};
use super::numbers::NumberKind;
use super::pairs::{self, AllPairsState, PairsAnswer, TimeValuePair, TimeValuePairs};
use arrow::array::{ArrayRef, Float64Array, StructArray, TimestampNanosecondArray};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, plan_err};
use std::sync::Arc;

/// No screen has more pixels.
const POINTS_MAX: usize = 1_000_000;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lttb;

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("time", TIME, true),
        Field::new("value", DataType::Float64, true),
    ])
}

impl AggregateDescription for Lttb {
    fn name(&self) -> &'static str {
        "lttb"
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [time, value, n] = types else {
            return plan_err!("lttb takes a time, a value and a number: lttb(time, value, n)");
        };
        arguments::number("lttb", value)?;
        let time = arguments::time("lttb", time)?;
        Ok(vec![
            time,
            DataType::Float64,
            arguments::count("lttb", "n", n)?,
        ])
    }

    fn answer_type(&self, _: &[DataType]) -> DataType {
        list_type(DataType::Struct(fields()))
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        pairs::state_types()
    }

    fn fold(
        &self,
        _: &[DataType],
        constants: &ConstantArguments<'_>,
        sliding: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        Ok(Box::new(AllPairsState {
            answer: LargestTriangles {
                n: constants.count(2, "n", 2, POINTS_MAX)?,
            },
            time: 0,
            value: 1,
            sliding,
        }))
    }
}

#[derive(Debug)]
struct LargestTriangles {
    n: usize,
}

impl PairsAnswer for LargestTriangles {
    fn answers(&self, states: &mut [TimeValuePairs], keep: bool) -> Result<ArrayRef> {
        let (mut times, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for state in states {
            let before = times.len();
            state.ordered(NumberKind::Float, keep, |pairs| {
                for at in chosen(pairs, self.n) {
                    times.push(pairs[at].0);
                    values.push(f64::from_bits(pairs[at].1));
                }
            });
            let length = times.len() - before;
            lengths.push((length > 0).then_some(length));
        }
        let times: ArrayRef = Arc::new(TimestampNanosecondArray::from(times));
        let values: ArrayRef = Arc::new(Float64Array::from(values));
        let points = StructArray::try_new(fields(), vec![times, values], None)?;
        lists("lttb", &lengths, Arc::new(points))
    }
}

/// The indexes of the `pairs` to show: the first, the last, and from each bucket between them the
/// one that makes the largest triangle with the pair chosen before it and the mean of the bucket
/// after it.
fn chosen(pairs: &[TimeValuePair], n: usize) -> Vec<usize> {
    if pairs.len() <= n {
        return (0..pairs.len()).collect();
    }
    let last = pairs.len() - 1;
    let (Some(first), buckets) = (pairs.first(), n - 2) else {
        return Vec::new();
    };
    // Count from the first time, so that floats represent the differences.
    let point = |at: usize| {
        let since = i128::from(pairs[at].0) - i128::from(first.0);
        (since as f64, f64::from_bits(pairs[at].1))
    };
    // Divide the pairs between the first and the last into as many buckets as there are pairs to
    // choose.
    let edge = |bucket: usize| 1 + ((last - 1) as u128 * bucket as u128 / buckets as u128) as usize;
    let mut chosen = vec![0];
    let mut held = 0;
    for bucket in 0..buckets {
        let next = if bucket + 1 < buckets {
            edge(bucket + 1)..edge(bucket + 2)
        } else {
            last..last + 1
        };
        let count = next.len() as f64;
        let sum = next
            .map(point)
            .fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        let mean = (sum.0 / count, sum.1 / count);
        let from = point(held);
        let (mut best, mut largest) = (edge(bucket), -1.0);
        for at in edge(bucket)..edge(bucket + 1) {
            let p = point(at);
            let doubled = (from.0 - mean.0) * (p.1 - from.1) - (from.0 - p.0) * (mean.1 - from.1);
            // A NaN makes no triangle.
            if doubled.abs() > largest {
                (best, largest) = (at, doubled.abs());
            }
        }
        chosen.push(best);
        held = best;
    }
    chosen.push(last);
    chosen
}
